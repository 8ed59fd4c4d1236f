//! Effects: outbound writes, each of which can check if it is done and perform itself.

mod assignment;
mod base_update;
mod begin_work;
mod check_requirements;
mod checks;
mod ci;
mod clearance;
mod code_experts;
mod comment;
mod discussion;
mod draft_state;
mod planned_issues;
mod pull_request;
mod pull_request_index;
mod push_branch;
mod reply;
mod request_review;
mod resolve_thread;
mod shown_change;
mod submit_review;
mod text_writes;
mod thread;
mod transition;
mod triage;

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use domain::{
    BranchRecord, OutboundRefusal, OutboundRequest, PullRequestRef, RepositoryName, RepositoryRules,
    TicketKey, Trigger,
};
use github::PullRequest;
use queue::{BranchIndex, ContentStore, IssueIdentities, KeyedLog, PullRequestIndex, TableRevision};

use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    inspect::ChangeInspector,
    message::{FooterPages, RoundsText},
    mirror::RepositoryMirrors,
    policy::LimitSettings,
    receipt::EffectReceipts,
    rounds::{RoundEvent, ShownOn},
    signing::CommitSigner,
};

pub(crate) use assignment::{AssignTicket, UnassignTicket};
pub(crate) use base_update::UpdateBase;
pub(crate) use begin_work::BeginWork;
pub(crate) use check_requirements::CheckRequirements;
pub(crate) use checks::{CheckRun, RerunChecks};
pub(crate) use clearance::{EffectClearance, EffectTarget, TicketRecords};
pub(crate) use comment::{AddReaction, CallFor, CallPeople, WriteComment};
pub(crate) use discussion::{CloseDiscussion, LinkThreads, MarkAnswer, ResearchThread, WriteSummary};
pub(crate) use draft_state::{BackToDraft, MarkReady, MarkReadyUnchecked, end_draft};
pub(crate) use planned_issues::{AddSubIssue, CreateIssue};
pub(crate) use pull_request::{
    LabelPullRequest, LinkPullRequest, OpenPullRequest, find_open_by_branch, is_by_our_account,
};
pub(crate) use pull_request_index::{RecordEnd, RecordOpen};
pub(crate) use push_branch::PushBranch;
pub(crate) use reply::{ReplyInThread, ThreadReplyText};
pub(crate) use request_review::RequestReview;
pub(crate) use resolve_thread::ResolveThread;
pub(crate) use shown_change::{ShowChange, ShowFiles};
pub(crate) use submit_review::SubmitReview;
pub(crate) use text_writes::{comment_on_issue, link_pull_request, open_pull_request};
pub(crate) use thread::CommentThread;
pub(crate) use transition::{CloseIssue, TransitionIssue, convert_transition};
pub(crate) use triage::{AddLabels, LinkIssues, SetIssueType, SetPriority, SetProjectFields};

/// One outbound write. A new one needs a line here, a failpoint and a row in the table of faults.
#[async_trait]
pub(crate) trait OutboundEffect: Debug + Send + Sync {
    /// Output for later effects, texts and the planner. It is also the receipt in the ledger.
    type Output: Into<EffectReceipts> + Send;

    /// True for an effect that only informs people. Its failure does not undo the report.
    const ONLY_INFORMS: bool = false;

    /// True if GitHub or Jira refuses or absorbs a repetition. If false, an attempt of unknown outcome is searched for
    /// until its window has passed.
    const ABSORBS_REPETITION: bool = true;

    /// True for an effect that writes nothing outside.
    const ONLY_READS: bool = false;

    /// Returns the name in the ledger, in failpoints and in metrics. It never changes.
    fn name(&self) -> &'static str;

    /// Returns the target as the report names it. The reporter checks it before anything is done.
    fn target(&self) -> EffectTarget<'_>;

    /// Returns the thread that gets the text of the report, for the effect that writes it.
    fn notice_thread(&self) -> Option<&CommentThread> {
        None
    }

    /// Returns the round event to record and the repository of the check run, for the effect that shows them.
    fn shows_round(&self) -> Option<(&RoundEvent, Option<&RepositoryName>)> {
        None
    }

    /// Returns the result if the effect is already done. Effects whose repetition changes nothing keep the default.
    async fn find_result(
        &self,
        _: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        Ok(None)
    }

    /// Performs the effect. Callers record the attempt in the ledger first.
    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError>;
}

/// An effect of a plan, whatever its output is.
#[async_trait]
pub(crate) trait PlannedEffect: Debug + Send + Sync {
    /// See [`OutboundEffect::name`].
    fn name(&self) -> &'static str;

    /// See [`OutboundEffect::target`].
    fn target(&self) -> EffectTarget<'_>;

    /// See [`OutboundEffect::ONLY_INFORMS`].
    fn only_informs(&self) -> bool;

    /// See [`OutboundEffect::ABSORBS_REPETITION`].
    fn absorbs_repetition(&self) -> bool;

    /// See [`OutboundEffect::ONLY_READS`].
    fn only_reads(&self) -> bool;

    /// See [`OutboundEffect::notice_thread`].
    fn notice_thread(&self) -> Option<&CommentThread>;

    /// See [`OutboundEffect::shows_round`].
    fn shows_round(&self) -> Option<(&RoundEvent, Option<&RepositoryName>)>;

    /// See [`OutboundEffect::find_result`].
    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<EffectReceipts>, EffectError>;

    /// See [`OutboundEffect::create`].
    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<EffectReceipts, EffectError>;
}

#[async_trait]
impl<E: OutboundEffect> PlannedEffect for E {
    fn name(&self) -> &'static str {
        OutboundEffect::name(self)
    }

    fn target(&self) -> EffectTarget<'_> {
        OutboundEffect::target(self)
    }

    fn only_informs(&self) -> bool {
        E::ONLY_INFORMS
    }

    fn absorbs_repetition(&self) -> bool {
        E::ABSORBS_REPETITION
    }

    fn only_reads(&self) -> bool {
        E::ONLY_READS
    }

    fn notice_thread(&self) -> Option<&CommentThread> {
        OutboundEffect::notice_thread(self)
    }

    fn shows_round(&self) -> Option<(&RoundEvent, Option<&RepositoryName>)> {
        OutboundEffect::shows_round(self)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<EffectReceipts>, EffectError> {
        let found = OutboundEffect::find_result(self, outside, asked).await?;
        Ok(found.map(Into::into))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<EffectReceipts, EffectError> {
        let output = OutboundEffect::create(self, outside, asked).await?;
        Ok(output.into())
    }
}

/// Clients and stores for everything that effects read and write.
pub(crate) struct OutboundClients {
    pub(crate) github: github::GitHubWriter,
    pub(crate) jira: jira::JiraWriter,
    pub(crate) mirrors: Arc<RepositoryMirrors>,
    pub(crate) objects: ContentStore,
    pub(crate) branches: BranchIndex,
    pub(crate) pull_requests: PullRequestIndex,
    /// Keys of moved Jira issues, which ingest writes.
    pub(crate) identities: IssueIdentities,
    /// Triggers of tickets: decisions and pinned work. The reporter appends only pinned work.
    pub(crate) triggers: KeyedLog<Trigger>,
    pub(crate) inspector: ChangeInspector,
    pub(crate) limits: LimitSettings,
    pub(crate) signer: CommitSigner,
    /// Log of requests to the reporter.
    pub(crate) reports: KeyedLog<OutboundRequest>,
    pub(crate) pages: FooterPages,
}

/// Context of an effect: its report, its clearance and the receipts so far.
pub(crate) struct EffectContext<'a> {
    pub(crate) report: &'a OutboundRequest,
    /// Present key of the ticket; it differs from that of the report after a move.
    pub(crate) present: &'a TicketKey,
    /// Absent if the repository has no usable rules.
    pub(crate) rules: Option<&'a RepositoryRules>,
    /// Proof that the target belongs to the ticket.
    pub(crate) cleared: &'a EffectClearance,
    /// Receipts of the earlier effects of the report.
    pub(crate) receipts: &'a EffectReceipts,
    /// Id of the effect in the ledger and in markers.
    pub(crate) id: &'a str,
    /// Text for an effect that writes a comment.
    pub(crate) text: &'a ClearedText,
    /// Rounds of work and their check run, for the effect that shows them.
    pub(crate) rounds: Option<(&'a ShownOn, &'a RoundsText)>,
    /// True if the next effect is a notice, which writes the board and records the round event of this one, too.
    pub(crate) is_noted_next: bool,
    /// Round event of the effect before, for a notice.
    pub(crate) previous_round: Option<&'a RoundEvent>,
}

impl EffectContext<'_> {
    /// Returns the readers of a comment on a service desk request: the team, unless the rules allow customers.
    pub(crate) fn audience(&self) -> jira::CommentAudience {
        // Rules of the project that an issue was moved from say nothing about the customers of its present one.
        let allows = |rules: &RepositoryRules| rules.jira.public_comments && rules.cover(self.present);
        if self.rules.is_some_and(allows) {
            jira::CommentAudience::Customers
        } else {
            jira::CommentAudience::Internal
        }
    }
}

impl OutboundClients {
    /// Returns the present key of a ticket, and addresses a moved issue by its id from now on.
    pub(crate) async fn present_key(&self, ticket: &TicketKey) -> Result<TicketKey, EffectError> {
        let Some(identity) = self.identities.of_key(ticket).await? else {
            return Ok(ticket.clone());
        };
        self.jira.remember_move(ticket, identity.id, &identity.key);
        Ok(identity.key)
    }

    /// Returns the address of a Jira issue's page.
    pub(crate) fn ticket_url(&self, ticket: &TicketKey, rules: Option<&RepositoryRules>) -> Option<String> {
        let TicketKey::Jira { .. } = ticket else {
            return None;
        };
        let configured = rules
            .map(|rules| rules.jira.base_url.as_str())
            .filter(|url| !url.is_empty());
        match configured {
            Some(base) => Some(format!(
                "{}/browse/{}",
                base.trim_end_matches('/'),
                self.jira.present_key(ticket).short()
            )),
            None => self.jira.browse_url(ticket),
        }
    }

    /// Returns the record of a branch of the report's own ticket.
    ///
    /// # Errors
    /// A refusal if the branch belongs to another ticket.
    async fn own_branch(
        &self,
        ticket: &TicketKey,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<(BranchRecord, TableRevision)>, EffectError> {
        match self.branches.get(repository, branch).await? {
            Some((record, _)) if record.ticket != *ticket => {
                Err(EffectError::Refused(OutboundRefusal::BranchOfAnotherTicket {
                    branch: record.branch,
                    ticket: record.ticket,
                }))
            }
            known => Ok(known),
        }
    }

    /// Returns the record of the branch of a pull request of the report's own ticket.
    ///
    /// # Errors
    /// A refusal if the record does not name the pull request: it belongs to a person.
    async fn own_pull_request(
        &self,
        ticket: &TicketKey,
        ours: &PullRequestRef,
    ) -> Result<(BranchRecord, TableRevision), EffectError> {
        let known = self.own_branch(ticket, &ours.repository, &ours.branch).await?;
        let names_it = |record: &BranchRecord| {
            let named = record.pull_request.as_ref();
            named.is_some_and(|named| named.is_same(ours))
        };
        known
            .filter(|(record, _)| names_it(record))
            .ok_or(EffectError::Refused(OutboundRefusal::UnknownPullRequest {
                number: ours.number,
            }))
    }

    /// Reads the present state of a pull request.
    async fn read_pull_request(&self, named: &PullRequestRef) -> Result<PullRequest, EffectError> {
        let pull_requests = self.github.pull_requests();
        Ok(pull_requests
            .pull_request(&named.repository, named.number)
            .await?)
    }
}
