//! Choices of a triage that GitHub or Jira refuses.

use crate::{
    effect_error::EffectError,
    effect_output::{EffectOutput, TriageWish, UnsetChoice, UnsetReason},
};

impl UnsetChoice {
    /// Records the wish as left if the refusal is permanent.
    ///
    /// # Errors
    /// Trouble that may pass, so that the effect is retried.
    pub(crate) fn when_refused(
        set: Result<(), EffectError>,
        wish: TriageWish,
    ) -> Result<EffectOutput, EffectError> {
        let detail = match set {
            Ok(()) => return Ok(EffectOutput::default()),
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
        Ok(Self::because(wish, UnsetReason::Refused { detail }))
    }
}
