//! Every text that a person reads on Jira or GitHub, as pure functions.

use domain::{FailedCheck, Job, PullRequestRef, RepositoryName, RunId, SkipReason, StopReason, TicketKey};

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
    /// Nothing is done.
    Skipped { reason: SkipReason, again: String },
}

/// A comment on the ticket, as Markdown.
pub(crate) fn comment(say: &Say, made: &Made, ticket: &TicketKey, run: Option<&RunId>) -> String {
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
        Say::Skipped { reason, again } => skipped(reason, ticket, again),
    };
    paragraphs.extend(made.moved.as_ref().and_then(|moved| moved_sentence(moved, say)));
    paragraphs.extend(run.map(|run| format!("Journeyman, run {}", code(&run.to_string()))));
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
            let reachable: Vec<String> = reachable
                .iter()
                .map(|name| format!("**{}**", harmless(name)))
                .collect();
            let reachable = if reachable.is_empty() {
                "none".to_owned()
            } else {
                reachable.join(", ")
            };
            Some(format!(
                "The ticket stays in **{}**: its workflow has no way to **{}** from there. It can be moved to: \
                 {reachable}. Please move it by hand.",
                harmless(status),
                harmless(wanted)
            ))
        }
        Moved::Refused { wanted, detail } => Some(format!(
            "The ticket could not be moved to **{}** ({}). Please move it by hand.",
            harmless(wanted),
            code(detail)
        )),
    }
}

fn link(pull_request: &PullRequestRef) -> String {
    let name = format!("pull request {}#{}", pull_request.repository, pull_request.number);
    if is_web_link(&pull_request.url) {
        format!("[{name}](<{}>)", pull_request.url)
    } else {
        name
    }
}

/// A name in code style: it neither notifies its owner nor is read as Markdown.
fn person(name: &str) -> String {
    if name.trim().is_empty() {
        "Somebody".to_owned()
    } else {
        code(name)
    }
}

fn code(text: &str) -> String {
    format!("`{}`", capped(&one_line(text).replace('`', "'"), 300))
}

fn harmless(text: &str) -> String {
    sanitize::plain(&capped(&one_line(text), 300))
}

fn quoted(markdown: &str) -> String {
    let text = sanitize::markdown(&capped(markdown, 4_000));
    text.trim()
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

fn is_web_link(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://"))
        && !url
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"'))
}

fn one_line(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn capped(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit - 1).chain(['…']).collect()
}

fn tail(text: &str, limit: usize) -> String {
    let skipped = text.chars().count().saturating_sub(limit);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
