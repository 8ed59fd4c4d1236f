//! Opens the draft pull request, labels it and links it. A local folder gets a patch instead.

use async_trait::async_trait;
use domain::{
    BranchRecord, OutboundRefusal, PullRequestRecord, PullRequestRef, PullRequestStatus, RepositoryName,
    SecretPlace, TicketKey, cause::format_error_chain,
};
use github::PullRequestState;

use super::{
    EffectContext, EffectTarget, OutboundClients, OutboundEffect,
    text_writes::{link_pull_request, open_pull_request},
};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    folders::{FolderPlace, PatchDelivery},
    message::{self, PullRequestDraft},
    mirror::run_blocking,
    receipt::RefusedLink,
};

/// Opens a draft, or adopts the open pull request of the same branch.
#[derive(Debug)]
pub(crate) struct OpenPullRequest(pub(crate) PullRequestDraft);

#[async_trait]
impl OutboundEffect for OpenPullRequest {
    type Output = PullRequestRef;

    fn name(&self) -> &'static str {
        "open_pull_request"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Repository(&self.0.repository)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        find_open_pull_request(outside, asked, &self.0).await
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        create_draft(outside, asked, &self.0).await
    }
}

/// Done if a pull request of ours is open for the branch.
async fn find_open_pull_request(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    draft: &PullRequestDraft,
) -> Result<Option<PullRequestRef>, EffectError> {
    if draft.repository.local_folder().is_some() {
        return Ok(None);
    }
    let found = find_open_by_branch(&outside.github, &draft.repository, &draft.branch);
    let Some(found) = found.await? else {
        return Ok(None);
    };
    if is_ours(outside, asked, draft, &found).await? {
        record_pull_request(outside, asked, draft, &found).await.map(Some)
    } else {
        Err(EffectError::Refused(OutboundRefusal::ForeignPullRequest {
            number: found.number,
            author: found.author,
        }))
    }
}

/// Returns true if our record names the pull request or our account opened it. A person may have opened one from our
/// branch.
async fn is_ours(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    draft: &PullRequestDraft,
    found: &github::PullRequest,
) -> Result<bool, EffectError> {
    let own = outside.own_branch(&asked.report.ticket, &draft.repository, &draft.branch);
    let record = own.await?;
    let known = record.and_then(|(record, _)| record.pull_request);
    if known.is_some_and(|known| known.number == found.number) {
        return Ok(true);
    }
    Ok(is_by_our_account(&outside.github, &draft.repository, found).await?)
}

/// Finds the open pull request of a branch.
pub(crate) async fn find_open_by_branch(
    github: &github::GitHubWriter,
    repository: &RepositoryName,
    branch: &str,
) -> Result<Option<github::PullRequest>, github::Error> {
    let found = github
        .pull_requests()
        .find_pull_request_by_head(repository, branch)
        .await?;
    Ok(found.filter(|found| found.state == PullRequestState::Open))
}

/// Returns true if our account opened the pull request.
pub(crate) async fn is_by_our_account(
    github: &github::GitHubWriter,
    repository: &RepositoryName,
    found: &github::PullRequest,
) -> Result<bool, github::Error> {
    let login = github.login(repository.instance()).await?;
    Ok(login.eq_ignore_ascii_case(&found.author))
}

/// Opens the pull request, always as a draft.
async fn create_draft(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    draft: &PullRequestDraft,
) -> Result<PullRequestRef, EffectError> {
    if let Some(place) = outside.mirrors.place(&draft.repository)? {
        return write_patch(outside, asked, draft, place).await;
    }
    let ticket = &asked.report.ticket;
    let own = outside.own_branch(ticket, &draft.repository, &draft.branch);
    if own.await?.is_none() {
        return Err(EffectError::Refused(OutboundRefusal::NotPushed {
            branch: draft.branch.clone(),
        }));
    }
    let ticket_url = outside.ticket_url(ticket, asked.rules);
    let title = ClearedText::by_the_model(message::pull_request_title(draft), SecretPlace::Title)?;
    let board_url = asked
        .rules
        .and_then(|rules| board_url(ticket_url.as_deref()?, rules.jira.board_id));
    let links = message::BodyLinks {
        ticket_url: ticket_url.as_deref(),
        board_url: board_url.as_deref(),
        run: asked.report.run.as_ref(),
        run_url: outside.pages.run_url.as_deref(),
        guide_url: outside.pages.guide_url.as_deref(),
    };
    let body = message::pull_request_body(draft, ticket, &links);
    let body = ClearedText::by_the_model(body, SecretPlace::Body)?;
    let open = open_pull_request(&outside.github, draft, &title, &body, true);
    match failpoint::around("reporter.pull_request.open", open).await {
        Ok(opened) => record_pull_request(outside, asked, draft, &opened).await,
        // The pull request exists, although GitHub's list may not show it yet.
        Err(error @ github::Error::Conflict { .. }) => find_open_pull_request(outside, asked, draft)
            .await?
            .ok_or_else(|| EffectError::Unknown(format_error_chain(&error))),
        Err(error) => Err(error.into()),
    }
}

/// Returns the address of the rules' board at the ticket's site. Jira redirects from it for both kinds of boards.
fn board_url(ticket_url: &str, board: u64) -> Option<String> {
    let (site, _) = ticket_url.rsplit_once("/browse/")?;
    (board > 0).then(|| format!("{site}/secure/RapidBoard.jspa?rapidView={board}"))
}

/// Records the pull request. Later events of it find their ticket by these records.
async fn record_pull_request(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    draft: &PullRequestDraft,
    opened: &github::PullRequest,
) -> Result<PullRequestRef, EffectError> {
    let pull_request = opened.to_ref(&draft.repository);
    let own = outside.own_branch(&asked.report.ticket, &draft.repository, &draft.branch);
    // An unchanged record is not written again, so a repetition needs no compare-and-set.
    if let Some((record, last)) = own.await?
        && record.pull_request.as_ref() != Some(&pull_request)
    {
        let record = BranchRecord {
            pull_request: Some(pull_request.clone()),
            ..record
        };
        outside.branches.put(&record, Some(last)).await?;
    }
    let open = PullRequestRecord {
        pull_request: pull_request.clone(),
        ticket: asked.report.ticket.clone(),
        head: Some(opened.head.clone()),
        status: PullRequestStatus::Open,
    };
    outside.pull_requests.keep(&open).await?;
    tracing::info!(repository = %draft.repository, number = opened.number, "pull request open");
    Ok(pull_request)
}

/// Writes both files. A repetition replaces them, because only this ticket uses its results folder.
async fn write_patch(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    draft: &PullRequestDraft,
    place: FolderPlace,
) -> Result<PullRequestRef, EffectError> {
    let ticket = &asked.report.ticket;
    let TicketKey::Folder { number, .. } = ticket else {
        return Err(EffectError::Refused(OutboundRefusal::ForeignProject {
            ticket: ticket.clone(),
            repository: draft.repository.clone(),
        }));
    };
    let own = outside.own_branch(ticket, &draft.repository, &draft.branch);
    let (record, last) = own.await?.ok_or_else(|| {
        EffectError::Refused(OutboundRefusal::NotPushed {
            branch: draft.branch.clone(),
        })
    })?;
    let body = message::patch_text(draft, ticket, asked.report.run.as_ref(), &outside.pages);
    let body = ClearedText::by_the_model(body, SecretPlace::Body)?;
    let change = PatchDelivery {
        ticket: ticket.clone(),
        base_branch: draft.base_branch.clone(),
        head: record.head.clone(),
    };
    let mirror = outside.mirrors.hold(&draft.repository);
    let patch = run_blocking(move || place.deliver(&mirror, &change, &body)).await?;
    let pull_request = PullRequestRef {
        repository: draft.repository.clone(),
        number: *number,
        url: patch.display().to_string(),
        branch: draft.branch.clone(),
    };
    let record = BranchRecord {
        pull_request: Some(pull_request.clone()),
        ..record
    };
    outside.branches.put(&record, Some(last)).await?;
    tracing::info!(repository = %draft.repository, %ticket, "patch written");
    Ok(pull_request)
}

/// Adds labels to the pull request of the report. Existing labels stay.
#[derive(Debug)]
pub(crate) struct LabelPullRequest {
    /// Labels as the operator wrote them.
    pub(crate) labels: Vec<String>,
}

#[async_trait]
impl OutboundEffect for LabelPullRequest {
    type Output = ();

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "label_pull_request"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::OpenedPullRequest
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some(pull_request) = asked.receipts.last::<PullRequestRef>() else {
            return Err(EffectError::Failed(message::nothing_to_link()));
        };
        let labels = self.labels.iter();
        let labels = labels
            .map(|label| ClearedText::by_the_model(label.clone(), SecretPlace::Label))
            .collect::<Result<Vec<_>, _>>()?;
        // GitHub's API for labels treats a pull request as the issue of the same number.
        let issue = TicketKey::GitHub {
            repository: pull_request.repository.clone(),
            number: pull_request.number,
        };
        outside.label(&issue, &labels).await?;
        Ok(())
    }
}

/// Links the pull request of the report on the Jira issue. A repetition replaces the link. If Jira refuses for good,
/// the status comment contains the link.
#[derive(Debug)]
pub(crate) struct LinkPullRequest {
    /// Key of the Jira issue.
    pub(crate) issue: TicketKey,
}

#[async_trait]
impl OutboundEffect for LinkPullRequest {
    type Output = Option<RefusedLink>;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "link_pull_request"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.issue)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some(pull_request) = asked.receipts.last::<PullRequestRef>() else {
            return Err(EffectError::Failed(message::nothing_to_link()));
        };
        let title = ClearedText::without_credentials(&message::remote_link_title(pull_request));
        let linked = link_pull_request(&outside.jira, &self.issue, pull_request, &title).await;
        let detail = match linked.map_err(EffectError::from) {
            Ok(()) => return Ok(None),
            Err(EffectError::Refused(refusal)) => refusal.words(),
            Err(EffectError::Denied { detail, .. }) => {
                tracing::error!(%detail, "permission missing: the pull request is not linked on the issue");
                detail
            }
            Err(trouble) => return Err(trouble),
        };
        Ok(Some(RefusedLink(detail)))
    }
}
