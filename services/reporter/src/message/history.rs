//! Rounds of work on a pull request, for its check run and for programs that read the status comment.

use domain::{CommitId, Job, RepositoryName, TicketKey};
use serde_json::{Value, json};

use super::{
    status::run_page,
    words::{is_web_link, name_person},
};
use crate::{
    board::StatusBoard,
    rounds::{ChecksResult, WorkRound, WorkRounds},
};

/// Text of the check run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundsText {
    pub(crate) title: String,
    /// Table of the rounds, in Markdown.
    pub(crate) summary: String,
    /// True if the last commit passed its checks.
    pub(crate) passed: bool,
}

/// Link targets of the check run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundsLinks<'a> {
    pub(crate) ticket: &'a TicketKey,
    /// Page of the ticket; absent for GitHub issues.
    pub(crate) ticket_url: Option<&'a str>,
    /// Repository of the pull request.
    pub(crate) repository: &'a RepositoryName,
    /// Address of a run's page, with `{run}` for the run's id.
    pub(crate) run_url: Option<&'a str>,
}

/// Builds the table of rounds, newest first.
pub(crate) fn render_rounds(rounds: &WorkRounds, links: &RoundsLinks<'_>) -> RoundsText {
    let last = rounds.rows.iter().rfind(|round| round.commit.is_some());
    let last = last.and_then(|round| round.checked);
    let count = rounds.count();
    let mut lines = vec![
        "| Round | Began with | Commit | Checks | Failed tries | Cost |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    let numbered = rounds.rows.iter().enumerate().rev();
    lines.extend(
        numbered.map(|(index, round)| render_round_row(rounds.dropped + index + 1, round, links.run_url)),
    );
    let counted = match count {
        1 => "1 round of work".to_owned(),
        count => format!("{count} rounds of work"),
    };
    let failures = match rounds.failures() {
        0 => String::new(),
        1 => " The last try or check failed.".to_owned(),
        count => format!(" {count} tries or checks failed in a row."),
    };
    RoundsText {
        title: format!("{counted}; the last commit {}", describe_last_commit(last)),
        summary: format!(
            "The work of Journeyman on this pull request{}. This check never blocks a merge: it is neutral until the checks \
             of the last commit have passed.{failures}\n\n{}",
            describe_subject(rounds, links),
            lines.join("\n")
        ),
        passed: last == Some(ChecksResult::Passed),
    }
}

/// Renders the names of the pull request and its ticket, with links.
fn describe_subject(rounds: &WorkRounds, links: &RoundsLinks<'_>) -> String {
    let linked = |name: &str, url: Option<&str>| match url.filter(|url| is_web_link(url)) {
        Some(url) => format!("[{name}](<{url}>)"),
        None => name.to_owned(),
    };
    let pull_request = rounds
        .number
        .map(|number| linked(&format!("#{number}"), Some(&rounds.url)));
    let pull_request = pull_request.map_or_else(String::new, |name| format!(" ({name})"));
    let issue = match links.ticket {
        TicketKey::GitHub { repository, number } => {
            let home = rounds.url.rsplit_once("/pull/").map(|(home, _)| home);
            home.filter(|_| repository == links.repository)
                .map(|home| format!("{home}/issues/{number}"))
        }
        TicketKey::Jira { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => None,
    };
    let url = links.ticket_url.or(issue.as_deref());
    format!("{pull_request} for {}", linked(&links.ticket.short(), url))
}

fn render_round_row(number: usize, round: &WorkRound, run_url: Option<&str>) -> String {
    let cost = round
        .cost
        .map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    let page = run_url.and_then(|url| run_page(&round.run, url));
    let number = page.map_or_else(|| number.to_string(), |page| format!("[{number}](<{page}>)"));
    let commit = round.commit.as_ref().map_or("none", CommitId::short);
    let checks = if is_web_link(&round.page) {
        format!("[{}](<{}>)", describe_result(round.checked), round.page)
    } else {
        describe_result(round.checked).to_owned()
    };
    let (began, failures) = (began_with(round), round.failures);
    format!("| {number} | {began} | {commit} | {checks} | {failures} | {cost} |")
}

/// Renders the start of a round. A separator in a name is replaced, so that it does not end the cell.
fn began_with(round: &WorkRound) -> String {
    let by = round
        .begun
        .by
        .as_ref()
        .map(|by| name_person(&by.replace('|', "/")));
    let by = |what: &str| match &by {
        Some(by) => format!("{what} by {by}"),
        None => what.to_owned(),
    };
    let what = match round.job {
        Job::FixCi => "failed checks".to_owned(),
        Job::AddressReview => by("a review"),
        Job::ResolveConflict => "a conflict with the base branch".to_owned(),
        Job::BackToDraft => by("a push"),
        Job::Reopen => by("the pull request was opened again"),
        Job::Implement
        | Job::Triage
        | Job::Answer
        | Job::Discuss
        | Job::Review
        | Job::MarkReady
        | Job::Finish
        | Job::UpdateBase
        | Job::Rehearse
        | Job::Remind => "the ticket".to_owned(),
    };
    match (round.is_reset, round.begun.is_command) {
        (true, _) => by("asked for again"),
        (false, true) => format!("{}: {what}", by("a command")),
        (false, false) => what,
    }
}

const fn describe_result(checked: Option<ChecksResult>) -> &'static str {
    match checked {
        None => "not complete",
        Some(ChecksResult::Passed) => "passed",
        Some(ChecksResult::Failed) => "failed",
        Some(ChecksResult::Absent) => "none report",
    }
}

const fn describe_last_commit(checked: Option<ChecksResult>) -> &'static str {
    match checked {
        None => "waits for its checks",
        Some(ChecksResult::Passed) => "passed its checks",
        Some(ChecksResult::Failed) => "failed its checks",
        Some(ChecksResult::Absent) => "has no checks",
    }
}

/// Builds the state for programs, as an HTML comment that GitHub does not show. It is a copy of records, so an edit
/// of it has no effect.
pub(crate) fn hidden_state(board: &StatusBoard) -> String {
    let rounds = &board.rounds;
    let checked = rounds.rows.iter().rev().find(|round| round.checked.is_some());
    let failed = rounds.failed.as_ref().filter(|_| rounds.failures() > 0);
    let state = json!({
        "iteration": rounds.count(),
        "branch": rounds.branch,
        "pr_number": rounds.number,
        "last_ci_commit": checked.and_then(|round| round.commit.as_ref()),
        "last_ci_run": checked.and_then(|round| ci_run(&round.page)),
        "last_ci_result": checked.and_then(|round| round.checked),
        "consecutive_failures": rounds.failures(),
        "failure_type": failed.map(|(reason, _)| reason),
        "last_failure_timestamp": failed.map(|(_, at)| at.to_string()),
        "complete": board.is_done(),
    });
    // A `>` in the state would end the HTML comment.
    let text = state.to_string().replace('>', "\\u003e");
    format!("<!-- journeyman:state {text} -->")
}

/// Returns the id of a GitHub Actions run, else the page of the check.
fn ci_run(page: &str) -> Option<Value> {
    match github::parse_run_id(page) {
        Some(run) => Some(run.into()),
        None => is_web_link(page).then(|| page.into()),
    }
}

#[cfg(test)]
mod tests {
    use domain::{Dollars, RunId, Timestamp, report::WorkOrigin};
    use insta::assert_snapshot;

    use super::*;

    fn build_work_round(run: u64, job: Job, commit: &str, checked: Option<ChecksResult>) -> WorkRound {
        let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
        WorkRound {
            run: RunId::new(ticket, run),
            job,
            commit: Some(commit.repeat(40).parse().unwrap()),
            checked,
            page: String::new(),
            failures: 0,
            begun: WorkOrigin::default(),
            is_reset: false,
            noted: 5,
            cost: Some(Dollars::from_micros(120_000)),
        }
    }

    fn build_work_origin(by: &str, is_command: bool, is_again: bool) -> WorkOrigin {
        WorkOrigin {
            by: Some(by.to_owned()),
            is_command,
            is_again,
            ..WorkOrigin::default()
        }
    }

    fn two_rounds() -> WorkRounds {
        WorkRounds {
            rows: vec![
                WorkRound {
                    page: "https://github.example/acme/shop/actions/runs/77/job/9".to_owned(),
                    ..build_work_round(1, Job::Implement, "a", Some(ChecksResult::Failed))
                },
                WorkRound {
                    failures: 1,
                    cost: None,
                    ..build_work_round(2, Job::FixCi, "b", None)
                },
            ],
            branch: Some("fix/-->7".to_owned()),
            number: Some(8),
            url: "https://github.example/acme/shop/pull/8".to_owned(),
            failed: Some((
                "model_failed".to_owned(),
                Timestamp::from_unix_ms(1_795_255_200_000),
            )),
            ..WorkRounds::default()
        }
    }

    fn render_known_rounds(known: &WorkRounds) -> RoundsText {
        let (ticket, repository) = (
            "github:acme/shop#7".parse().unwrap(),
            "acme/shop".parse().unwrap(),
        );
        let links = RoundsLinks {
            ticket: &ticket,
            ticket_url: None,
            repository: &repository,
            run_url: Some("https://journeyman.example/runs/{run}"),
        };
        render_rounds(known, &links)
    }

    #[test]
    fn check_run_table_links_rounds_and_issue() {
        let RoundsText {
            title,
            summary,
            passed,
        } = render_known_rounds(&two_rounds());
        assert!(!passed);
        assert_snapshot!(title, @r#"2 rounds of work; the last commit waits for its checks"#);
        assert_snapshot!(summary, @r#"
        The work of Journeyman on this pull request ([#8](<https://github.example/acme/shop/pull/8>)) for [acme/shop#7](<https://github.example/acme/shop/issues/7>). This check never blocks a merge: it is neutral until the checks of the last commit have passed. 2 tries or checks failed in a row.

        | Round | Began with | Commit | Checks | Failed tries | Cost |
        |---|---|---|---|---|---|
        | [2](<https://journeyman.example/runs/github%3Aacme%2Fshop%237%402>) | failed checks | bbbbbbbbbbbb | not complete | 1 | unknown |
        | [1](<https://journeyman.example/runs/github%3Aacme%2Fshop%237%401>) | the ticket | aaaaaaaaaaaa | [failed](<https://github.example/acme/shop/actions/runs/77/job/9>) | 0 | $0.12 |
        "#);
        let mut done = two_rounds();
        done.rows.truncate(1);
        done.rows[0].checked = Some(ChecksResult::Passed);
        let text = render_known_rounds(&done);
        assert!(text.passed);
        assert_eq!(text.title, "1 round of work; the last commit passed its checks");
    }

    #[test]
    fn round_row_names_cause_and_requester() {
        let with = |job, begun, is_reset| {
            began_with(&WorkRound {
                begun,
                is_reset,
                ..build_work_round(1, job, "a", None)
            })
        };
        let rita = || build_work_origin("ri|ta", false, false);
        assert_eq!(with(Job::Implement, rita(), false), "the ticket");
        assert_eq!(with(Job::Implement, rita(), true), "asked for again by `ri/ta`");
        assert_eq!(with(Job::FixCi, WorkOrigin::default(), false), "failed checks");
        assert_eq!(with(Job::AddressReview, rita(), false), "a review by `ri/ta`");
        assert_eq!(with(Job::BackToDraft, rita(), false), "a push by `ri/ta`");
        let ordered = build_work_origin("ops", true, false);
        assert_eq!(
            with(Job::FixCi, ordered, false),
            "a command by `ops`: failed checks"
        );
    }

    #[test]
    fn work_without_commit_keeps_last_result() {
        let mut known = two_rounds();
        known.rows[0].checked = Some(ChecksResult::Passed);
        known.rows[1].commit = None;
        assert!(render_known_rounds(&known).passed);
    }

    #[test]
    fn hidden_state_cannot_end_its_comment() {
        let board = StatusBoard {
            rounds: two_rounds(),
            ..StatusBoard::default()
        };
        let hidden = hidden_state(&board);
        assert_eq!(hidden.matches("-->").count(), 1, "{hidden}");
        let json = hidden
            .trim_start_matches("<!-- journeyman:state ")
            .trim_end_matches(" -->");
        let state: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(
            state,
            serde_json::json!({
                "iteration": 2, "branch": "fix/-->7", "pr_number": 8, "last_ci_commit": "a".repeat(40),
                "last_ci_run": 77, "last_ci_result": "failed", "consecutive_failures": 2, "failure_type": "model_failed",
                "last_failure_timestamp": "2026-11-21T10:00:00Z", "complete": false,
            })
        );
    }
}
