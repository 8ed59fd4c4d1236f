//! What a triage chose and the outside refuses.

use crate::{
    made::{Left, Made, Why, Wish},
    trouble::Trouble,
};

impl Left {
    /// What is left when the outside refuses for good; trouble that may pass stays an error.
    pub(crate) fn when_refused(set: Result<(), Trouble>, wish: Wish) -> Result<Made, Trouble> {
        let detail = match set {
            Ok(()) => return Ok(Made::default()),
            Err(Trouble::Refused(refusal)) => refusal.words(),
            Err(
                Trouble::Failed(detail)
                | Trouble::Missing(detail)
                | Trouble::Denied { detail, .. }
                | Trouble::Credentials { detail, .. },
            ) => detail,
            Err(
                passing @ (Trouble::Later { .. }
                | Trouble::HeldBack { .. }
                | Trouble::DiskFull(_)
                | Trouble::Unknown(_)
                | Trouble::Ledger(_)
                | Trouble::HandBack(_)
                | Trouble::Shutdown),
            ) => return Err(passing),
        };
        tracing::warn!(?wish, %detail, "not set: it is refused");
        Ok(Self::because(wish, Why::Refused { detail }))
    }
}
