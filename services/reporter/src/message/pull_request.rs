//! Texts of and about pull requests.

use domain::{
    FailedCheck, FailureClass, PullRequestRef, RepairEnd, RunId, TicketKey, commit_orders,
    report::ChecksFailed, text::capped,
};

use super::description;
use super::status::run_page;
use super::words::{calling, code, is_web_link, link};
use crate::{draft::Draft, made::Rerun, sanitize};

/// GitHub's limit for titles.
const TITLE_CHARS: usize = 256;
/// Actions of a maintainer, for those who have never seen such a pull request.
const HOW_TO_REPLY: &str =
    "Ask for changes in a review; comment `/stop` to end the work or `/retry` to repeat it.";
/// Below GitHub's 65,536 with room for the footer.
const BODY_CHARS: usize = 60_000;

/// The title of a pull request: one line within GitHub's limit that notifies nobody and, as the message of a squashed
/// commit, closes nothing.
pub(crate) fn pull_request_title(draft: &Draft) -> String {
    let title = sanitize::title(&draft.title);
    let title = if title.is_empty() {
        sanitize::title(&draft.branch)
    } else {
        title
    };
    capped(&title, TITLE_CHARS)
}

/// Addresses of pages that texts link to.
#[derive(Clone, Debug, Default)]
pub(crate) struct FooterPages {
    /// The page of a run, with `{run}` where its id goes; absent: there is no link.
    pub(crate) run_url: Option<String>,
    /// The page for those who review pull requests; absent: there is no link.
    pub(crate) guide_url: Option<String>,
}

/// Links in the footer of a pull request, as far as there is a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BodyLinks<'a> {
    pub(crate) ticket_url: Option<&'a str>,
    pub(crate) board_url: Option<&'a str>,
    pub(crate) run: Option<&'a RunId>,
    /// The page of a run, with `{run}` in the place of its id.
    pub(crate) run_url: Option<&'a str>,
    /// The page for those who review pull requests.
    pub(crate) guide_url: Option<&'a str>,
}

/// The body of a pull request: the model's words made harmless, then where they come from.
pub(crate) fn pull_request_body(draft: &Draft, ticket: &TicketKey, links: &BodyLinks<'_>) -> String {
    let body = match &draft.description {
        Some(description) => description::body(description, ticket),
        None => draft.body.clone(),
    };
    let body = commit_orders::clean_marks(&sanitize::markdown(&capped(&body, BODY_CHARS)));
    let name = ticket.short();
    let is_reviewed = !matches!(ticket, TicketKey::Folder { .. });
    let ticket = match (ticket, links.ticket_url) {
        // GitHub links the issue by it, and closes it with the merge.
        (TicketKey::GitHub { repository, number }, _) if *repository == draft.repository => {
            format!("Fixes #{number}")
        }
        (_, Some(url)) => format!("For [{name}]({url})"),
        (_, None) => format!("For {name}"),
    };
    let board = links
        .board_url
        .map_or_else(String::new, |url| format!(" ([board]({url}))"));
    let run = links.run.map(|run| {
        let name = code(&run.to_string());
        let page = links.run_url.and_then(|url| run_page(run, url));
        page.map_or_else(
            || format!(" (run {name})"),
            |page| format!(" (run [{name}]({page}))"),
        )
    });
    let run = run.unwrap_or_default();
    let mut footer =
        format!("---\n\n{ticket}{board}. Written by Journeyman{run}; a person reviews and merges.");
    if is_reviewed {
        let guide = links.guide_url.filter(|url| is_web_link(url));
        let guide = guide.map_or_else(String::new, |url| format!(" [How this works]({url})."));
        footer = format!("{footer} {HOW_TO_REPLY}{guide}");
    }
    format!("{}\n\n{footer}\n", body.trim()).trim_start().to_owned()
}

/// What lies beside a patch: title and body of what would be a pull request.
pub(crate) fn patch_text(
    draft: &Draft,
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

/// The title of the link on a Jira issue.
pub(crate) fn remote_link_title(pull_request: &PullRequestRef) -> String {
    format!("Pull request {}#{}", pull_request.repository, pull_request.number)
}

pub(crate) fn opened(pull_request: Option<&PullRequestRef>) -> String {
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

/// That Jira did not take the link, with its own words.
pub(crate) fn not_linked(detail: &str) -> String {
    format!(
        "Jira did not link it on this ticket: {} The link above leads there all the same.",
        sentence(detail)
    )
}

pub(crate) fn ready(pull_request: &PullRequestRef) -> String {
    format!(
        "All checks passed: {} is ready for review. Please review and merge it; Journeyman never merges.",
        link(pull_request)
    )
}

/// `awaited` is what should have reported.
/// What waits for checks where the rules do.
pub(crate) fn required_by_rules() -> String {
    "ci.required: true".to_owned()
}

pub(crate) fn unchecked(pull_request: &PullRequestRef, awaited: Option<&str>) -> String {
    let link = link(pull_request);
    match awaited {
        None => format!(
            "No check reports on {link} and none is required, so it is ready for review without one. Please run the tests, \
             review and merge it; Journeyman never merges."
        ),
        Some(awaited) => format!(
            "No check has reported on {link}, although {} is there. It stays a draft until checks pass. If none will report, \
             mark it ready for review yourself, or set `ci.required: false` in the repository's rules.",
            code(awaited)
        ),
    }
}

/// `why` is why nobody but people does something about it.
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

/// It calls those who are asked, by their logins.
pub(crate) fn checks_call(report: &ChecksFailed) -> String {
    let [first, list] = what_failed(&report.pull_request, &report.failed);
    let people = match report.asked.as_slice() {
        [] => "Please go on here".to_owned(),
        asked => format!("Please go on here, {}", calling(asked)),
    };
    let next = format!(
        "{} {people}: push a fix to the branch, ask for the work once more, or close the pull request.",
        report.calls().and_then(not_repaired).unwrap_or_default()
    );
    let paragraphs = [first, list, next.trim().to_owned()];
    paragraphs
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// `rerun` is what became of the failed jobs; absent: that is not known.
pub(crate) fn checks_rerun(
    pull_request: &PullRequestRef,
    failed: &[FailedCheck],
    rerun: Option<&Rerun>,
) -> Vec<String> {
    let people = "Please look at them: start the failed jobs again, push a fix to the branch, or close the pull request.";
    let next = match rerun {
        Some(Rerun::Started) => {
            "None of them is about this change. The failed jobs run again, once for this commit.".to_owned()
        }
        Some(Rerun::Before) => {
            format!(
                "None of them is about this change, and the failed jobs were started again before. {people}"
            )
        }
        Some(Rerun::Refused { detail }) => format!(
            "None of them is about this change. GitHub did not start the failed jobs again: {} {people}",
            sentence(detail)
        ),
        None => format!(
            "None of them is about this change, and the failed jobs could not be started again. {people}"
        ),
    };
    let mut paragraphs = what_failed(pull_request, failed).to_vec();
    paragraphs.push(next);
    paragraphs
}

/// Why a run is not started again, for people.
pub(crate) fn run_of_another_commit() -> String {
    "the run that a check names is one of another commit".to_owned()
}

fn what_failed(pull_request: &PullRequestRef, failed: &[FailedCheck]) -> [String; 2] {
    let list: Vec<String> = failed.iter().take(20).map(failed_check).collect();
    [
        format!("Checks failed on {}. It stays a draft.", link(pull_request)),
        list.join("\n"),
    ]
}

/// Words of others as a sentence that notifies nobody.
fn sentence(text: &str) -> String {
    let text = sanitize::title(&capped(text, 300));
    format!("{}.", text.trim_end_matches('.'))
}

const fn not_repaired(why: RepairEnd) -> Option<&'static str> {
    match why {
        RepairEnd::Off => None,
        RepairEnd::NotOurs => Some("None of them is about this change, so nothing was changed."),
        RepairEnd::FailedAgain => {
            Some("None of them is about this change, and they failed again after they ran once more.")
        }
        RepairEnd::PerHead => Some("Journeyman has tried to repair this commit as often as it may."),
        RepairEnd::PerPullRequest => {
            Some("Journeyman has tried to repair this pull request as often as it may.")
        }
        RepairEnd::Repeated => Some("The same failure came again after a repair of it."),
        RepairEnd::Forgotten => Some(
            "What the ticket asked for is not kept any more, so Journeyman does not go on with the pull request.",
        ),
    }
}

fn failed_check(check: &FailedCheck) -> String {
    let log = match is_web_link(&check.url) {
        true => format!(" ([log](<{}>))", check.url),
        false => String::new(),
    };
    format!("- {}{log}{}", code(&check.name), kind(check.class))
}

/// What a failure is that is not about the change.
const fn kind(class: FailureClass) -> &'static str {
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
