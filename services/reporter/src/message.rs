//! Every text that a person reads on Jira or GitHub, as pure functions.

use domain::{
    FailedCheck, Job, PullRequestRef, RepositoryName, RunId, SkipReason, StopReason, TicketKey, Timestamp,
};

mod aside;
mod status;
mod words;

pub(crate) use status::status;
use words::{capped, code, fenced, harmless, is_web_link, link, one_line, person, quoted, tail};

use crate::{
    plan::{Draft, Made, Moved},
    sanitize,
};

/// GitHub's limit for titles.
const TITLE_CHARS: usize = 256;
/// Below GitHub's 65,536 with room for the footer.
const BODY_CHARS: usize = 60_000;
/// Below Jira's 32,767 with room for the words around it.
const QUOTED_CHARS: usize = 8_000;

/// What a comment is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Say {
    /// Work starts.
    Started { job: Job, repository: RepositoryName },
    /// The draft of this report is open.
    Opened,
    /// Checks passed, over to the reviewers.
    Ready { pull_request: PullRequestRef },
    /// Checks failed.
    ChecksFailed {
        pull_request: PullRequestRef,
        failed: Vec<FailedCheck>,
    },
    /// Merged by a person.
    Merged {
        pull_request: PullRequestRef,
        by: String,
    },
    /// Closed unmerged by a person; `again` is the status that asks for work.
    Closed {
        pull_request: PullRequestRef,
        by: String,
        again: String,
    },
    /// A person has to decide.
    DecisionNeeded {
        repository: RepositoryName,
        diff: String,
    },
    /// A run ended without its goal.
    Stopped {
        job: Job,
        reason: StopReason,
        pull_request: Option<PullRequestRef>,
        again: String,
    },
    /// A run failed for a reason that may pass and is tried again.
    RetryScheduled {
        job: Job,
        reason: StopReason,
        attempt: u32,
        most: u32,
        due: Timestamp,
    },
    /// The ticket is set aside until a person looks.
    Quarantined { reason: String },
    /// A record about the ticket could not be read.
    Unreadable { what: String },
    /// Nothing is done.
    Skipped { reason: SkipReason, again: String },
}

impl Say {
    /// Whether it is said in a comment of its own and not in the status comment. The run waits for a decision, and an
    /// edited comment would notify nobody on GitHub.
    pub(crate) const fn calls_a_person(&self) -> bool {
        match self {
            Self::DecisionNeeded { .. } => true,
            Self::Started { .. }
            | Self::Opened
            | Self::Ready { .. }
            | Self::ChecksFailed { .. }
            | Self::Merged { .. }
            | Self::Closed { .. }
            | Self::Stopped { .. }
            | Self::RetryScheduled { .. }
            | Self::Quarantined { .. }
            | Self::Unreadable { .. }
            | Self::Skipped { .. } => false,
        }
    }
}

/// A comment of its own, as Markdown.
pub(crate) fn comment(say: &Say, made: &Made, ticket: &TicketKey, run: Option<&RunId>) -> String {
    let mut text = words_of(say, made, ticket, run);
    if let Some(run) = run {
        text.push_str(&format!("\n\nJourneyman, run {}", code(&run.to_string())));
    }
    text
}

/// What is said, as Markdown.
pub(crate) fn words_of(say: &Say, made: &Made, ticket: &TicketKey, run: Option<&RunId>) -> String {
    let mut paragraphs = match say {
        Say::Started { job, repository } => vec![started(*job, repository)],
        Say::Opened => vec![opened(made.pull_request.as_ref())],
        Say::Ready { pull_request } => vec![format!(
            "All checks passed: {} is ready for review. Please review and merge it; Journeyman never merges.",
            link(pull_request)
        )],
        Say::ChecksFailed { pull_request, failed } => checks_failed(pull_request, failed),
        Say::Merged { pull_request, by } => {
            vec![format!("{} merged {}.", person(by), link(pull_request))]
        }
        Say::Closed {
            pull_request,
            by,
            again,
        } => vec![
            format!(
                "{} closed {} without merging it, so nothing more happens here.",
                person(by),
                link(pull_request)
            ),
            try_again(ticket, again),
        ],
        Say::DecisionNeeded { repository, diff } => decision_needed(repository, diff, run),
        Say::Stopped {
            job,
            reason,
            pull_request,
            again,
        } => stopped(*job, reason, pull_request.as_ref(), ticket, again),
        Say::RetryScheduled {
            job,
            reason,
            attempt,
            most,
            due,
        } => retry_scheduled(*job, reason, (*attempt, *most), *due),
        Say::Quarantined { reason } => aside::quarantined(reason),
        Say::Unreadable { what } => aside::unreadable(what),
        Say::Skipped { reason, again } => skipped(reason, ticket, again),
    };
    paragraphs.extend(made.moved.as_ref().and_then(|moved| moved_sentence(moved, say)));
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// The title of a pull request: one line within GitHub's limit.
pub(crate) fn pull_request_title(draft: &Draft) -> String {
    let title = one_line(&draft.title);
    let title = if title.is_empty() {
        draft.branch.clone()
    } else {
        title
    };
    capped(&title, TITLE_CHARS)
}

/// The body of a pull request: the model's words made harmless, then where they come from.
pub(crate) fn pull_request_body(
    draft: &Draft,
    ticket: &TicketKey,
    ticket_url: Option<&str>,
    run: Option<&RunId>,
) -> String {
    let body = sanitize::markdown(&capped(&draft.body, BODY_CHARS));
    let name = ticket.short();
    let ticket = match ticket_url {
        Some(url) => format!("[{name}]({url})"),
        None => name,
    };
    let run = run
        .map(|run| format!(" (run {})", code(&run.to_string())))
        .unwrap_or_default();
    let footer = format!("---\n\nFor {ticket}. Written by Journeyman{run}; a person reviews and merges.");
    format!("{}\n\n{footer}\n", body.trim()).trim_start().to_owned()
}

/// The title of the link on a Jira issue.
pub(crate) fn remote_link_title(pull_request: &PullRequestRef) -> String {
    format!("Pull request {}#{}", pull_request.repository, pull_request.number)
}

fn started(job: Job, repository: &RepositoryName) -> String {
    let work = match job {
        Job::Implement => "work on this ticket",
        Job::Triage => "triage this ticket",
        Job::Answer => "answer the question",
        Job::FixCi => "repair the failing checks",
        Job::AddressReview => "work through the review",
        Job::Review => "review the pull request",
        Job::MarkReady => "hand the pull request over",
        Job::Finish => "finish this ticket",
    };
    format!("Journeyman has started to {work} in `{repository}`.")
}

fn opened(pull_request: Option<&PullRequestRef>) -> String {
    match pull_request {
        Some(pull_request) => {
            format!(
                "Draft {} is open. It becomes ready for review when its checks pass.",
                link(pull_request)
            )
        }
        None => "A draft pull request is open. It becomes ready for review when its checks pass.".to_owned(),
    }
}

fn checks_failed(pull_request: &PullRequestRef, failed: &[FailedCheck]) -> Vec<String> {
    let list: Vec<String> = failed.iter().take(20).map(failed_check).collect();
    vec![
        format!("Checks failed on {}. It stays a draft.", link(pull_request)),
        list.join("\n"),
        "Please look at the failed checks: push a repair to the branch, or close the pull request."
            .to_owned(),
    ]
}

fn failed_check(check: &FailedCheck) -> String {
    if is_web_link(&check.url) {
        format!("- {} ([log](<{}>))", code(&check.name), check.url)
    } else {
        format!("- {}", code(&check.name))
    }
}

fn decision_needed(repository: &RepositoryName, diff: &str, run: Option<&RunId>) -> Vec<String> {
    let run = run.map(ToString::to_string).unwrap_or_default();
    vec![
        format!("A change for `{repository}` is ready and waits for your decision before it is pushed."),
        fenced("diff", &capped(diff, QUOTED_CHARS)),
        format!(
            "Decide with `journeyman decide {run} approve`, `reject`, or `revise --feedback 'what to change'`."
        ),
    ]
}

fn stopped(
    job: Job,
    reason: &StopReason,
    pull_request: Option<&PullRequestRef>,
    ticket: &TicketKey,
    again: &str,
) -> Vec<String> {
    let mut paragraphs = stop_reason(job, reason);
    let retry = try_again(ticket, again);
    match (pull_request, reason) {
        (Some(draft), _) => paragraphs.push(format!(
            "What exists is kept as a draft: {}. {retry}",
            link(draft)
        )),
        (None, StopReason::Completed | StopReason::Superseded) => {}
        (None, _) => paragraphs.push(format!("Nothing was pushed beyond what is linked above. {retry}")),
    }
    paragraphs
}

fn retry_scheduled(job: Job, reason: &StopReason, count: (u32, u32), due: Timestamp) -> Vec<String> {
    let (attempt, most) = count;
    let (what, detail) = match reason {
        StopReason::ModelFailed { detail } => ("the model provider failed", detail.as_str()),
        StopReason::WorkspaceUnavailable { detail } => ("no workspace could be opened", detail.as_str()),
        StopReason::ReportFailed { detail } => ("a change outside could not be made", detail.as_str()),
        other => ("the run failed", other.as_str()),
    };
    vec![
        format!("The {job} run pauses: {what} ({}).", code(detail)),
        format!(
            "It goes on at {due} (retry {attempt} of {most}). Comment `/retry` to go on now, or `/stop` to end it."
        ),
    ]
}

fn stop_reason(job: Job, reason: &StopReason) -> Vec<String> {
    let say = |text: String| vec![text];
    match reason {
        StopReason::Completed => say(format!("The {job} run is complete.")),
        StopReason::NoChange { summary } => {
            vec![
                "Journeyman ended without a change. Its last words:".to_owned(),
                quoted(summary),
            ]
        }
        StopReason::TurnLimit { turns } => say(format!(
            "Journeyman stopped: the limit of {turns} model turns was reached before the work was done."
        )),
        StopReason::Stopped { by } => say(format!("{} stopped the run.", person(by))),
        StopReason::Rejected { by } => say(format!(
            "{} rejected the change, so it was not pushed.",
            person(by)
        )),
        StopReason::ModelFailed { detail } => say(format!(
            "Journeyman stopped: the model provider failed ({}). An operator has to look.",
            code(detail)
        )),
        StopReason::WorkspaceUnavailable { detail } => say(format!(
            "Journeyman stopped: no workspace could be opened ({}).",
            code(detail)
        )),
        StopReason::SetupFailed { log_tail } => vec![
            "Journeyman stopped: the repository's setup commands failed. The end of their log:".to_owned(),
            fenced("", &tail(log_tail, 4_000)),
        ],
        StopReason::ReportRefused { detail } => {
            vec![
                "Journeyman stopped: the change was refused.".to_owned(),
                quoted(detail),
            ]
        }
        StopReason::ReportFailed { detail } => vec![
            "Journeyman stopped: a change outside could not be made.".to_owned(),
            quoted(detail),
        ],
        StopReason::Superseded => say("A newer request took this run's place.".to_owned()),
    }
}

fn skipped(reason: &SkipReason, ticket: &TicketKey, again: &str) -> Vec<String> {
    let retry = try_again(ticket, again);
    match reason {
        SkipReason::Phrase { phrase, place } => vec![format!(
            "Journeyman leaves this ticket alone: {} stands in the {}. Remove it first. {retry}",
            code(phrase),
            harmless(place)
        )],
        SkipReason::Label { label } => vec![format!(
            "Journeyman leaves this ticket alone: it has the label {}. Remove the label first. {retry}",
            code(label)
        )],
        SkipReason::PullRequestExists { url, author } => {
            let which = if is_web_link(url) {
                format!("[a pull request](<{url}>)")
            } else {
                "a pull request".to_owned()
            };
            vec![format!(
                "Journeyman leaves this ticket alone: {which} by {} is open for it. Close that one first. {retry}",
                person(author)
            )]
        }
        SkipReason::NotAllowed { actor, group } if group.is_empty() => vec![format!(
            "Journeyman did not start work that {} asked for: nobody is set up who may. An operator names the Jira \
             group whose members may ask for work in the setting {}. {retry}",
            person(actor),
            code("ingest.jira_trigger_group")
        )],
        SkipReason::NotAllowed { actor, group } => vec![format!(
            "Journeyman did not start work that {} asked for: only members of the Jira group **{}** may ask for it. \
             A member can start it. {retry}",
            person(actor),
            harmless(group)
        )],
        SkipReason::StatusLeft { wanted, status } => vec![format!(
            "Journeyman did not start work: when it heard that the ticket was moved to **{}**, the ticket was in **{}** \
             already. {retry}",
            harmless(wanted),
            harmless(status)
        )],
        SkipReason::TextChanged { by } => vec![format!(
            "Journeyman did not start work: {}, who may not ask for work, changed the ticket's text after it was asked \
             for. Read the text again. {retry}",
            person(by)
        )],
        SkipReason::Unreadable => vec![format!(
            "Journeyman did not start work: Jira's answer about this ticket could not be read. Make the text simpler, for \
             example with fewer nested lists. {retry}"
        )],
    }
}

fn try_again(ticket: &TicketKey, again: &str) -> String {
    match ticket {
        TicketKey::Jira { .. } => format!("To try again, move the ticket back to **{}**.", harmless(again)),
        TicketKey::GitHub { .. } => "To try again, ask for the job once more on this ticket.".to_owned(),
    }
}

fn moved_sentence(moved: &Moved, say: &Say) -> Option<String> {
    let is_final = matches!(say, Say::Merged { .. });
    match moved {
        Moved::To(status) => is_final.then(|| format!("The ticket is now **{}**.", harmless(status))),
        Moved::Unavailable {
            wanted,
            status,
            reachable,
        } => {
            let reachable = bold_list(reachable).unwrap_or_else(|| "none".to_owned());
            Some(format!(
                "The ticket stays in **{}**: its workflow has no way to **{}** from there. It can be moved to: \
                 {reachable}. Please move it by hand.",
                harmless(status),
                harmless(wanted)
            ))
        }
        Moved::Refused {
            wanted,
            detail,
            asks_for,
        } => Some(format!(
            "The ticket could not be moved to **{}** ({}). Please move it by hand{}.",
            harmless(wanted),
            code(detail),
            bold_list(asks_for).map_or_else(String::new, |fields| format!(" and fill in {fields}"))
        )),
    }
}

fn bold_list(names: &[String]) -> Option<String> {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("**{}**", harmless(name)))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
