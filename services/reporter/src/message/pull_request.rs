//! Texts of and about pull requests.

use domain::{
    ApprovalCount, ChangeDescription, ChecksSummary, ConflictEnd, ConflictedBase, FailedCheck, FailureClass,
    OutdatedBase, PullRequestRef, RepairEnd, RepositoryName, RunId, TicketKey, commit_orders,
    text::{remove_hidden, truncate_text},
};

use super::{
    description::{self, DescriptionText},
    status::run_page,
    words::{format_code, is_web_link, link_pull_request_name, mention_logins},
};
use crate::{receipt::RerunResult, sanitize};

// Limit of GitHub for titles, in characters.
const TITLE_CHARS: usize = 256;
// Orders of a maintainer, for readers who have not seen such a pull request before.
const HOW_TO_REPLY: &str = "Ask for changes in a review · `/stop` `/retry` `/help`";
// Lengths of the parts of the body, in characters. GitHub's limit is 65,536, and the footer needs room.
const BODY_CHARS: usize = 48_000;
const DETAIL_CHARS: usize = 12_000;

/// A draft pull request to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PullRequestDraft {
    /// Repository of the pull request.
    pub(crate) repository: RepositoryName,
    /// Head branch, without `refs/heads/`.
    pub(crate) branch: String,
    /// Target branch, without `refs/heads/`.
    pub(crate) base_branch: String,
    /// Title by the model.
    pub(crate) title: String,
    /// Markdown by the model, for pull requests without a description.
    pub(crate) body: String,
    /// Structured description of the change, with its evidence.
    pub(crate) description: Option<Box<ChangeDescription>>,
}

/// Renders the title: one line within GitHub's limit. It causes no notification, and closes no issue as the
/// message of a squashed commit.
pub(crate) fn pull_request_title(draft: &PullRequestDraft) -> String {
    let title = sanitize::sanitize_title(&draft.title);
    let title = if title.is_empty() {
        sanitize::sanitize_title(&draft.branch)
    } else {
        title
    };
    truncate_text(&title, TITLE_CHARS)
}

/// Addresses of pages that texts link to.
#[derive(Clone, Debug, Default)]
pub(crate) struct FooterPages {
    /// Page of a run, with `{run}` for the run's id; absent: no link.
    pub(crate) run_url: Option<String>,
    /// Page for reviewers; absent: no link.
    pub(crate) guide_url: Option<String>,
}

/// Links in the footer of a pull request. An absent page has no link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BodyLinks<'a> {
    pub(crate) ticket_url: Option<&'a str>,
    pub(crate) board_url: Option<&'a str>,
    pub(crate) run: Option<&'a RunId>,
    /// Page of a run, with `{run}` for the run's id.
    pub(crate) run_url: Option<&'a str>,
    /// Page for reviewers.
    pub(crate) guide_url: Option<&'a str>,
}

/// Renders the note at the start of a description while the work continues in a repository without drafts.
pub(crate) const fn render_progress_note() -> &'static str {
    "> **Work in progress.** This repository has no draft pull requests, so this one is open early. Please review it \
     when this note is gone: Journeyman removes it after the checks have passed."
}

/// Builds the body of a pull request: the sanitized text of the model, and a footer with its origin.
pub(crate) fn pull_request_body(
    draft: &PullRequestDraft,
    ticket: &TicketKey,
    links: &BodyLinks<'_>,
) -> String {
    let text = match &draft.description {
        Some(description) => description::render_body(description),
        None => DescriptionText {
            visible: draft.body.clone(),
            details: String::new(),
        },
    };
    // A text of a folder is read as it is, so it has no HTML.
    let is_on_github = !matches!(ticket, TicketKey::Folder { .. });
    let body = if is_on_github {
        let visible = clean_part(&text.visible, BODY_CHARS);
        let details = clean_part(&text.details, DETAIL_CHARS);
        format!("{visible}{}", fold_details(&details))
    } else {
        clean_part(&text.joined(), BODY_CHARS)
    };
    let footer = render_footer(draft, ticket, links);
    format!("{}\n\n---\n\n{footer}\n", body.trim())
        .trim_start()
        .to_owned()
}

fn clean_part(text: &str, most: usize) -> String {
    let text = sanitize::sanitize_and_truncate(text, most);
    commit_orders::clean_marks(&text).trim().to_owned()
}

/// Builds a section that GitHub shows folded. The details contain no HTML, so they cannot end it.
fn fold_details(details: &str) -> String {
    match details {
        "" => String::new(),
        details => {
            format!("\n\n<details>\n<summary>Details</summary>\n\n{details}\n\n</details>")
        }
    }
}

/// Renders the ticket, the ways to reply, and the links for readers.
fn render_footer(draft: &PullRequestDraft, ticket: &TicketKey, links: &BodyLinks<'_>) -> String {
    let key = ticket.short();
    let board = links.board_url.filter(|url| is_web_link(url));
    let board = board.map_or_else(String::new, |url| format!(" ([board]({url}))"));
    let of_ticket = match (ticket, links.ticket_url) {
        // GitHub links the issue by this text, and closes it with the merge.
        (TicketKey::GitHub { repository, number }, _) if *repository == draft.repository => {
            format!("Fixes #{number}")
        }
        (_, Some(url)) => format!("For [{key}]({url})"),
        (_, None) => format!("For {key}"),
    };
    let run = links.run.map(|run| {
        let page = links.run_url.and_then(|url| run_page(run, url));
        match page {
            Some(page) => format!(" ([run]({page}))"),
            None => format!(" (run {})", format_code(&run.to_string())),
        }
    });
    let is_reviewed = !matches!(ticket, TicketKey::Folder { .. });
    let guide = links.guide_url.filter(|url| is_reviewed && is_web_link(url));
    let parts = [
        Some(format!("{of_ticket}{board}")),
        is_reviewed.then(|| HOW_TO_REPLY.to_owned()),
        Some(format!("written by Journeyman{}", run.unwrap_or_default())),
        guide.map(|url| format!("[how this works]({url})")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" · ")
}

/// Builds the text for the folder of a patch: title and body of a pull request.
pub(crate) fn patch_text(
    draft: &PullRequestDraft,
    ticket: &TicketKey,
    run: Option<&RunId>,
    pages: &FooterPages,
) -> String {
    let links = BodyLinks {
        run,
        run_url: pages.run_url.as_deref(),
        ..BodyLinks::default()
    };
    let body = pull_request_body(draft, ticket, &links);
    format!("# {}\n\n{body}", pull_request_title(draft))
}

/// Renders the title of the link on a Jira issue.
pub(crate) fn remote_link_title(pull_request: &PullRequestRef) -> String {
    format!("Pull request {}#{}", pull_request.repository, pull_request.number)
}

pub(crate) fn render_opened(pull_request: Option<&PullRequestRef>) -> String {
    match pull_request {
        Some(pull_request) => {
            format!(
                "Draft {} is open. It becomes ready for review when its checks pass.",
                link_pull_request_name(pull_request)
            )
        }
        None => "A draft pull request is open. It becomes ready for review when its checks pass.".to_owned(),
    }
}

/// Renders Jira's refusal of the link, with its reason.
pub(crate) fn not_linked(detail: &str) -> String {
    format!(
        "Jira did not link it on this ticket: {} The link above leads there all the same.",
        format_sentence(detail)
    )
}

/// Renders the handover to reviewers. `approvals` are those that the base branch requires.
pub(crate) fn render_ready(checks: &ChecksSummary, approvals: Option<&ApprovalCount>) -> String {
    let link = link_pull_request_name(&checks.pull_request);
    let ready = if checks.unfinished.is_empty() {
        format!(
            "All checks passed: {link} is ready for review. Please review and merge it; Journeyman never merges."
        )
    } else {
        format!(
            "{link} is ready for review, although not all of its checks have ended: {}. They made no progress for a long \
             time and may wait for the end of the draft; the others passed. Please look at these checks, review and merge \
             it; Journeyman never merges.",
            list_check_names(&checks.unfinished)
        )
    };
    let ignored = (!checks.ignored.is_empty()).then(|| {
        format!(
            " Ignored by {}: {}.",
            format_code("ci.ignore_checks"),
            list_check_names(&checks.ignored)
        )
    });
    format!(
        "{ready}{}{}",
        render_approvals(approvals),
        ignored.unwrap_or_default()
    )
}

/// Renders the missing approvals, to follow another sentence. Empty where the base branch requires none.
fn render_approvals(approvals: Option<&ApprovalCount>) -> String {
    approvals.map_or_else(String::new, |count| {
        format!(" Before the merge: {}.", count.words())
    })
}

fn list_check_names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format_code(name)).collect();
    names.join(", ")
}

/// Names the rule that requires checks.
pub(crate) fn required_by_rules() -> String {
    "ci.required: true".to_owned()
}

/// Renders the end of the wait for checks. `awaited` is the CI file or check that has not reported, and `approvals` are
/// those that the base branch requires.
pub(crate) fn render_unchecked(
    pull_request: &PullRequestRef,
    awaited: Option<&str>,
    approvals: Option<&ApprovalCount>,
) -> String {
    let link = link_pull_request_name(pull_request);
    match awaited {
        None => format!(
            "No check reports on {link} and none is required, so it is ready for review without one. Please run the tests, \
             review and merge it; Journeyman never merges.{}",
            render_approvals(approvals)
        ),
        Some(awaited) => format!(
            "No check has reported on {link}, although {} is there. It stays a draft until checks pass. If none will report, \
             mark it ready for review yourself, or set `ci.required: false` in the repository's rules.",
            format_code(awaited)
        ),
    }
}

/// Renders failed checks that are not repaired; `why` is the reason.
pub(crate) fn checks_failed(
    pull_request: &PullRequestRef,
    failed: &[FailedCheck],
    why: Option<RepairEnd>,
) -> Vec<String> {
    let mut paragraphs = what_failed(pull_request, failed).to_vec();
    paragraphs.push(why.and_then(not_repaired).unwrap_or_default().to_owned());
    paragraphs.push(
        "Please look at the failed checks: push a fix to the branch, or close the pull request.".to_owned(),
    );
    paragraphs
}

/// Renders the notification about failed checks. It mentions the reviewers by their logins.
pub(crate) fn checks_call(checks: &ChecksSummary) -> String {
    let [first, list] = what_failed(&checks.pull_request, &checks.failed);
    let people = match checks.asked.as_slice() {
        [] => "Please continue here".to_owned(),
        asked => format!("Please continue here, {}", mention_logins(asked)),
    };
    let next = format!(
        "{} {people}: push a fix to the branch, ask for the work again, or close the pull request.",
        checks.calls().and_then(not_repaired).unwrap_or_default()
    );
    let paragraphs = [first, list, next.trim().to_owned()];
    paragraphs
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Renders the update of a pull request with its base branch.
pub(crate) fn render_base_update(outdated: &OutdatedBase) -> String {
    format!(
        "{} lacks commits of {}: Journeyman brings it up to date, and its checks run again.",
        link_pull_request_name(&outdated.pull_request),
        format_code(&outdated.base_branch)
    )
}

/// Renders a conflict with the base branch that is not resolved.
pub(crate) fn render_conflict(conflict: &ConflictedBase) -> Vec<String> {
    vec![
        what_conflicts(conflict),
        conflict
            .unresolved
            .map(not_resolved)
            .unwrap_or_default()
            .to_owned(),
        "Please merge the base branch into the branch and resolve the conflict, or close the pull request."
            .to_owned(),
    ]
}

/// Renders the notification about a conflict. It mentions the reviewers by their logins.
pub(crate) fn conflict_call(conflict: &ConflictedBase) -> String {
    let people = match conflict.asked.as_slice() {
        [] => "Please continue here".to_owned(),
        asked => format!("Please continue here, {}", mention_logins(asked)),
    };
    let why = conflict.unresolved.map(not_resolved).unwrap_or_default();
    let next = format!(
        "{why} {people}: merge the base branch and resolve the conflict, ask for the work again, or close the pull \
         request."
    );
    format!("{}\n\n{}", what_conflicts(conflict), next.trim())
}

fn what_conflicts(conflict: &ConflictedBase) -> String {
    format!(
        "{} conflicts with {} at {} and cannot be merged.",
        link_pull_request_name(&conflict.pull_request),
        format_code(&conflict.base_branch),
        format_code(conflict.base.short())
    )
}

const fn not_resolved(why: ConflictEnd) -> &'static str {
    match why {
        ConflictEnd::Off => "The rules of the repository leave conflicts to people.",
        ConflictEnd::OtherBase => "The pull request targets another branch than the rules of the repository.",
        ConflictEnd::PerHead => "The maximum number of resolutions of this commit is reached.",
        ConflictEnd::PerPullRequest => "The maximum number of resolutions of this pull request is reached.",
        ConflictEnd::Forgotten => {
            "The request of the ticket is no longer stored, so Journeyman does not continue the pull request."
        }
    }
}

/// Renders the restart of failed jobs. `rerun` is its result; absent: unknown.
pub(crate) fn checks_rerun(
    pull_request: &PullRequestRef,
    failed: &[FailedCheck],
    rerun: Option<&RerunResult>,
) -> Vec<String> {
    let people = "Please look at them: start the failed jobs again, push a fix to the branch, or close the pull request.";
    let next = match rerun {
        Some(RerunResult::Started) => {
            "None of them is about this change. The failed jobs run again, once for this commit.".to_owned()
        }
        Some(RerunResult::Before) => {
            format!(
                "None of them is about this change, and the failed jobs were started again before. {people}"
            )
        }
        Some(RerunResult::Refused { detail }) => format!(
            "None of them is about this change. GitHub did not start the failed jobs again: {} {people}",
            format_sentence(detail)
        ),
        None => format!(
            "None of them is about this change, and the failed jobs could not be started again. {people}"
        ),
    };
    let mut paragraphs = what_failed(pull_request, failed).to_vec();
    paragraphs.push(next);
    paragraphs
}

/// Renders the refusal to restart a run of another commit.
pub(crate) fn run_of_another_commit() -> String {
    "the run that a check names is one of another commit".to_owned()
}

fn what_failed(pull_request: &PullRequestRef, failed: &[FailedCheck]) -> [String; 2] {
    let list: Vec<String> = failed.iter().take(20).map(failed_check).collect();
    [
        format!(
            "Checks failed on {}. It stays a draft.",
            link_pull_request_name(pull_request)
        ),
        list.join("\n"),
    ]
}

/// Formats text of others as a sentence that causes no notification.
fn format_sentence(text: &str) -> String {
    let text = sanitize::sanitize_title(&truncate_text(text, 300));
    format!("{}.", text.trim_end_matches('.'))
}

const fn not_repaired(why: RepairEnd) -> Option<&'static str> {
    match why {
        RepairEnd::Off => None,
        RepairEnd::NotOurs => Some("None of them is about this change, so nothing was changed."),
        RepairEnd::FailedAgain => {
            Some("None of them is about this change, and they failed again in a second run.")
        }
        RepairEnd::PerHead => Some("The maximum number of repairs of this commit is reached."),
        RepairEnd::PerPullRequest => Some("The maximum number of repairs of this pull request is reached."),
        RepairEnd::Repeated => Some("The same failure came again after a repair of it."),
        RepairEnd::Forgotten => Some(
            "The request of the ticket is no longer stored, so Journeyman does not continue the pull request.",
        ),
    }
}

fn failed_check(check: &FailedCheck) -> String {
    let log = if is_web_link(&check.url) {
        format!(" ([log](<{}>))", check.url)
    } else {
        String::new()
    };
    format!(
        "- {}{log}{}",
        format_code(&check.name),
        describe_failure_class(check.class)
    )
}

/// Renders the class of a failure that the change did not cause.
const fn describe_failure_class(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Real => "",
        FailureClass::Infra => ": the machine or the network of the check failed",
        FailureClass::Inert => ": it runs something that does not exist",
        FailureClass::Timeout => ": it took too long",
        FailureClass::PreExisting => ": it fails on the target branch too",
        FailureClass::Flaky => ": it has passed on this very commit",
        FailureClass::Policy => ": a rule about the pull request itself, for people to see to",
    }
}

/// Returns the person's title on one line, without hidden characters.
pub(crate) fn asked_title(title: &str) -> String {
    remove_hidden(title)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the person's description without hidden characters.
pub(crate) fn asked_body(description: &str) -> String {
    remove_hidden(description)
}

/// Renders the comment for an issue that accepts no link.
pub(crate) fn link_comment(pull_request: &PullRequestRef) -> String {
    format!("Pull Request: {}", pull_request.url)
}
