//! Choices of a triage that GitHub or Jira refuses.

use crate::{
    effect_error::EffectError,
    receipt::{TriageWish, UnsetChoice, UnsetReason},
};

impl UnsetChoice {
    /// Returns the wish as left to people if it is refused for good; `None` if it is set.
    ///
    /// # Errors
    /// Trouble that may pass, so that the effect is retried.
    pub(crate) fn when_refused(
        set: Result<(), EffectError>,
        wish: TriageWish,
    ) -> Result<Option<Self>, EffectError> {
        let detail = match set {
            Ok(()) => return Ok(None),
            Err(EffectError::Refused(refusal)) => refusal.words(),
            Err(
                EffectError::Failed(detail)
                | EffectError::Missing(detail)
                | EffectError::Denied { detail, .. }
                | EffectError::Credentials { detail, .. },
            ) => detail,
            Err(
                passing @ (EffectError::Later { .. }
                | EffectError::HeldBack { .. }
                | EffectError::DiskFull(_)
                | EffectError::Unknown(_)
                | EffectError::Ledger(_)
                | EffectError::HandBack(_)
                | EffectError::Shutdown),
            ) => return Err(passing),
        };
        tracing::warn!(?wish, %detail, "not set: it is refused");
        let why = UnsetReason::Refused { detail };
        Ok(Some(Self { wish, why }))
    }
}
