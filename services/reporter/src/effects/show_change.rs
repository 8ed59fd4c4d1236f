//! Stores the change of a push for the people who decide about it.

use async_trait::async_trait;

use super::{Asked, Effect, EffectTarget, Outside, push_branch::inspected};
use crate::{
    made::{Made, Shown},
    message,
    trouble::Trouble,
};

/// Inspects a change as a push of it would, so that no person decides about a change that cannot be pushed. A repetition
/// produces the same text, which is stored under the hash of its content.
#[derive(Debug)]
pub(crate) struct ShowChange(pub(crate) domain::PushBranch);

#[async_trait]
impl Effect for ShowChange {
    fn name(&self) -> &'static str {
        "show_change"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Repository(&self.0.repository)
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let push = &self.0;
        let (rendered, _) = inspected(outside, asked, push, true).await?;
        let rendered = rendered.ok_or_else(|| Trouble::Failed(message::no_difference()))?;
        let excerpt = message::excerpt(&rendered.text);
        let shown = Shown {
            head: push.head.clone(),
            files: rendered.files,
            diff: outside.objects.put(rendered.text.into()).await?,
            excerpt: excerpt.text,
            hidden_lines: excerpt.hidden_lines,
            hidden_files: excerpt.hidden_files.into_iter().take(200).collect(),
        };
        tracing::info!(repository = %push.repository, head = %push.head, files = shown.files, "change shown for a decision");
        Ok(Made {
            shown: Some(shown),
            ..Made::default()
        })
    }
}
