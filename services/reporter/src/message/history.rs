//! The rounds of work on a pull request, for its check run and for programs that read the status comment.

use domain::{CommitId, Job};
use serde_json::json;

use crate::{
    board::Board,
    rounds::{Checked, Round, Rounds},
};

/// What the check run says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundsText {
    pub(crate) title: String,
    /// Markdown.
    pub(crate) summary: String,
    /// Whether the last commit passed its checks.
    pub(crate) passed: bool,
}

/// The rounds as a table, the newest first.
pub(crate) fn rounds(rounds: &Rounds) -> RoundsText {
    let last = rounds.rows.last().and_then(|round| round.checked);
    let count = rounds.count();
    let mut lines = vec![
        "| Round | Began with | Commit | Checks | Failed tries | Cost |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    let numbered = rounds.rows.iter().enumerate().rev();
    lines.extend(numbered.map(|(index, round)| row(rounds.dropped + index + 1, round)));
    let rows = if count == 1 {
        "1 round of work"
    } else {
        "rounds of work"
    };
    let counted = if count == 1 {
        rows.to_owned()
    } else {
        format!("{count} {rows}")
    };
    RoundsText {
        title: format!("{counted}; the last commit {}", standing(last)),
        summary: format!(
            "What Journeyman did on this pull request. This check decides nothing: it is neutral until the checks of the \
             last commit have passed.\n\n{}",
            lines.join("\n")
        ),
        passed: last == Some(Checked::Passed),
    }
}

fn row(number: usize, round: &Round) -> String {
    let cost = round
        .cost
        .map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    let commit = round.commit.as_ref().map_or("none", CommitId::short);
    let (began, checks, failures) = (began_with(round.job), result(round.checked), round.failures);
    format!("| {number} | {began} | {commit} | {checks} | {failures} | {cost} |")
}

const fn began_with(job: Job) -> &'static str {
    match job {
        Job::FixCi => "failed checks",
        Job::AddressReview => "a review",
        Job::BackToDraft => "a push by somebody else",
        Job::Reopen => "the pull request was opened again",
        _ => "the ticket",
    }
}

const fn result(checked: Option<Checked>) -> &'static str {
    match checked {
        None => "not complete",
        Some(Checked::Passed) => "passed",
        Some(Checked::Failed) => "failed",
        Some(Checked::Absent) => "none report",
    }
}

const fn standing(checked: Option<Checked>) -> &'static str {
    match checked {
        None => "waits for its checks",
        Some(Checked::Passed) => "passed its checks",
        Some(Checked::Failed) => "failed its checks",
        Some(Checked::Absent) => "has no checks",
    }
}

/// The same for programs, as a comment that GitHub does not show. It is copied from what happened: whoever changes it
/// changes nothing.
pub(crate) fn hidden_state(board: &Board) -> String {
    let rounds = &board.rounds;
    let checked = rounds.rows.iter().rev().find(|round| round.checked.is_some());
    let failed = rounds.failed.as_ref().filter(|_| rounds.failures() > 0);
    let state = json!({
        "iteration": rounds.count(),
        "branch": rounds.branch,
        "pr_number": rounds.number,
        "last_ci_commit": checked.and_then(|round| round.commit.as_ref()),
        "last_ci_result": checked.and_then(|round| round.checked),
        "consecutive_failures": rounds.failures(),
        "failure_type": failed.map(|(reason, _)| reason),
        "last_failure_timestamp": failed.map(|(_, at)| at.to_string()),
        "complete": board.is_done(),
    });
    // Nothing in it may end the comment.
    let text = state.to_string().replace('>', "\\u003e");
    format!("<!-- journeyman:state {text} -->")
}

#[cfg(test)]
mod tests {
    use domain::{Dollars, RunId, TicketKey, Timestamp};
    use insta::assert_snapshot;

    use super::*;

    fn round(run: u64, job: Job, commit: &str, checked: Option<Checked>) -> Round {
        let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
        Round {
            run: RunId::new(ticket, run),
            job,
            commit: Some(commit.repeat(40).parse().unwrap()),
            checked,
            failures: 0,
            noted: 5,
            cost: Some(Dollars::from_micros(120_000)),
        }
    }

    fn two_rounds() -> Rounds {
        Rounds {
            rows: vec![
                round(1, Job::Implement, "a", Some(Checked::Failed)),
                Round {
                    failures: 1,
                    cost: None,
                    ..round(2, Job::FixCi, "b", None)
                },
            ],
            branch: Some("fix/-->7".to_owned()),
            number: Some(8),
            failed: Some((
                "model_failed".to_owned(),
                Timestamp::from_unix_ms(1_795_255_200_000),
            )),
            ..Rounds::default()
        }
    }

    #[test]
    fn the_check_run_shows_each_round_in_a_row() {
        let RoundsText {
            title,
            summary,
            passed,
        } = rounds(&two_rounds());
        assert!(!passed);
        assert_snapshot!(title, @r#"2 rounds of work; the last commit waits for its checks"#);
        assert_snapshot!(summary, @r#"
        What Journeyman did on this pull request. This check decides nothing: it is neutral until the checks of the last commit have passed.

        | Round | Began with | Commit | Checks | Failed tries | Cost |
        |---|---|---|---|---|---|
        | 2 | failed checks | bbbbbbbbbbbb | not complete | 1 | unknown |
        | 1 | the ticket | aaaaaaaaaaaa | failed | 0 | $0.12 |
        "#);
        let mut done = two_rounds();
        done.rows.truncate(1);
        done.rows[0].checked = Some(Checked::Passed);
        let text = rounds(&done);
        assert!(text.passed);
        assert_eq!(text.title, "1 round of work; the last commit passed its checks");
    }

    #[test]
    fn nothing_in_the_hidden_state_ends_its_comment() {
        let board = Board {
            rounds: two_rounds(),
            ..Board::default()
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
                "last_ci_result": "failed", "consecutive_failures": 1, "failure_type": "model_failed",
                "last_failure_timestamp": "2026-11-21T10:00:00Z", "complete": false,
            })
        );
    }
}
