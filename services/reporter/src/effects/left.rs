//! Choices of a triage that GitHub or Jira refuses.

use crate::{
    made::{Left, Made, Why, Wish},
    trouble::Trouble,
};

impl Left {
    /// Records the wish as left if the refusal is permanent.
    ///
    /// # Errors
    /// Trouble that may pass, so that the effect is retried.
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
