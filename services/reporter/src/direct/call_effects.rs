//! Effects of a pull request call. They use the writing accounts alone: a call has no ticket, records or stores.

use async_trait::async_trait;
use git::FolderView;
use github::GitHubWriter;

use crate::{
    effect_cycle::EffectSteps,
    effect_error::EffectError,
    mirror::{RemotePush, push_commit},
};

/// Pushes a branch from a view of the folder, so that neither its settings nor its hooks apply.
pub(super) struct PushFolderBranch<'a> {
    pub(super) github: &'a GitHubWriter,
    pub(super) view: &'a FolderView,
    pub(super) push: RemotePush<'a>,
}

#[async_trait]
impl EffectSteps for PushFolderBranch<'_> {
    type Receipt = ();

    fn name(&self) -> &'static str {
        "push_branch"
    }

    /// Done if the remote branch is at the commit.
    async fn look(&self) -> Result<Option<()>, EffectError> {
        let there = self.github.branch_head(self.push.repository, self.push.branch);
        let is_done = there.await?.as_ref() == Some(self.push.head);
        Ok(is_done.then_some(()))
    }

    async fn create(&self) -> Result<(), EffectError> {
        let transport = self.view.transport();
        push_commit(self.github, &transport, &self.push).await.map(drop)
    }
}
