//! Snapshot tests of the status comment.

use domain::{Dollars, Job, OutboundId, TicketKey, Timestamp, report::JobProgress};
use insta::assert_snapshot;

use super::*;

fn render_board(board: &StatusBoard) -> String {
    render_status(board, None)
}

fn build_board(said: &[(i64, &str)]) -> StatusBoard {
    let ticket: TicketKey = "jira:ENG-12".parse().unwrap();
    let run = RunId::new(ticket.clone(), 57);
    let mut board = StatusBoard::default();
    for (second, text) in said {
        let entry = BoardEntry {
            report: OutboundId::notice(&ticket, u64::try_from(*second).unwrap()),
            at: Timestamp::from_unix_ms(1_795_255_200_000 + second * 1000),
            run: Some(run.clone()),
            job: None,
            text: (*text).to_owned(),
            mark: None,
        };
        board.add(entry, board.entries.is_empty());
    }
    board
}

#[test]
fn status_shows_latest_in_full_rest_shortly() {
    let said = [
        (0, "Journeyman has started to work on this ticket in `acme/shop`."),
        (252, "Checks failed on a pull request.\n\n- `test`\n- `lint`"),
        (300_000, "Ann merged it.\n\nThe ticket is now **Done**."),
    ];
    assert_snapshot!(render_board(&build_board(&said[..1])), @"
    Journeyman has started to work on this ticket in `acme/shop`.

    Journeyman, run `jira:ENG-12@57`, 2026-11-21 10:00 UTC
    ");
    assert_snapshot!(render_board(&build_board(&said[..2])), @"
    Checks failed on a pull request.

    - `test`
    - `lint`

    Journeyman, run `jira:ENG-12@57`, 2026-11-21 10:04 UTC, 4 min 12 s after the start

    Before that:

    - 2026-11-21 10:00 UTC: Journeyman has started to work on this ticket in `acme/shop`.
    ");
    assert_snapshot!(render_board(&build_board(&said)), @"
    Ann merged it.

    The ticket is now **Done**.

    Journeyman, run `jira:ENG-12@57`, 2026-11-24 21:20 UTC, 3 d 11 h after the start

    Before that:

    - 2026-11-21 10:04 UTC: Checks failed on a pull request.
    - 2026-11-21 10:00 UTC: Journeyman has started to work on this ticket in `acme/shop`.
    ");
    assert_eq!(render_board(&StatusBoard::default()), "");
}

#[test]
fn failed_move_is_shown_until_moved() {
    use crate::receipt::TransitionResult;
    let mut board = build_board(&[(0, "Journeyman has started to work on this ticket in `acme/shop`.")]);
    board.moved(&TransitionResult::Unavailable {
        wanted: "Done".to_owned(),
        status: "In Progress".to_owned(),
        reachable: vec!["To Do".to_owned(), "QA".to_owned()],
    });
    let entry = BoardEntry {
        report: OutboundId::notice(&"jira:ENG-12".parse().unwrap(), 9),
        text: "Checks failed on a pull request.".to_owned(),
        ..board.entries[0].clone()
    };
    board.add(entry, false);
    assert_snapshot!(render_board(&board), @"
    Checks failed on a pull request.

    The ticket is still in **In Progress**: no transition to **Done** is available from that status. It can be moved to: **To Do**, **QA**. Please move it yourself.

    Journeyman, run `jira:ENG-12@57`, 2026-11-21 10:00 UTC

    Before that:

    - 2026-11-21 10:00 UTC: Journeyman has started to work on this ticket in `acme/shop`.
    ");
    board.moved(&TransitionResult::Refused {
        wanted: "Done".to_owned(),
        detail: "jira rejected the request: a field".to_owned(),
        asks_for: vec!["Resolution".to_owned()],
    });
    assert!(render_board(&board).contains(
        "The ticket could not be moved to **Done** (`jira rejected the request: a field`). Please move it yourself \
         and fill in **Resolution**."
    ));
    board.moved(&TransitionResult::To("Done".to_owned()));
    assert!(!render_board(&board).contains("yourself"));
}

#[test]
fn times_are_short() {
    let spans = [59, 61, 3_599, 7_260, 90_000].map(format_seconds);
    assert_eq!(
        spans,
        ["59 s", "1 min 1 s", "59 min 59 s", "2 h 1 min", "1 d 1 h"]
    );
}

#[test]
fn status_signature_shows_phase_cost_and_link() {
    let mut board = build_board(&[(0, "Journeyman has started to work on this ticket in `acme/shop`.")]);
    let progress = JobProgress {
        clone_percent: None,
        job: Job::Implement,
        phase: Some(RunPhase::Plan),
        cost: Some(Dollars::from_micros(415_000)),
    };
    board.entries[0].job = Some(Job::Implement);
    let later = board.entries[0].at.plus(std::time::Duration::from_secs(75));
    board.stand(later, progress, progress.phase);
    assert_snapshot!(render_status(&board, Some("https://journeyman.example/runs/{run}")), @r#"
    Journeyman has started to work on this ticket in `acme/shop`.

    Journeyman, run `jira:ENG-12@57` (implement: planning), 2026-11-21 10:01 UTC, 1 min 15 s after the start, $0.42 spent, [follow it](<https://journeyman.example/runs/jira%3AENG-12%4057>)
    "#);
    board.stand(later, progress, None);
    assert!(
        render_board(&board).contains("(implement), 2026"),
        "no phase once it waits: {}",
        render_board(&board)
    );
    let unknown = JobProgress {
        cost: None,
        ..progress
    };
    board.stand(later, unknown, None);
    assert!(!render_board(&board).contains('$'), "{}", render_board(&board));
    let no_link = render_status(&board, Some("javascript:alert(1)//{run}"));
    assert!(!no_link.contains("follow"), "{no_link}");
}

#[test]
fn ended_work_is_marked_in_status() {
    for (mark, sign) in [
        (WorkEnd::Done, "✅ "),
        (WorkEnd::Failed, "❌ "),
        (WorkEnd::Stopped, "⏹ "),
    ] {
        let mut board = build_board(&[(0, "Something ended."), (9, "Something else ended.")]);
        for entry in &mut board.entries {
            entry.mark = Some(mark);
        }
        let text = render_board(&board);
        assert!(text.starts_with(&format!("{sign}Something else")), "{text}");
        assert!(text.contains(&format!("UTC: {sign}Something ended.")), "{text}");
    }
}

#[test]
fn signature_names_job_of_its_own_run() {
    let mut board = build_board(&[(0, "Journeyman has started to work on this ticket in `acme/shop`.")]);
    board.entries[0].job = Some(Job::Implement);
    let progress = JobProgress {
        clone_percent: None,
        job: Job::Implement,
        phase: None,
        cost: Some(Dollars::from_micros(415_000)),
    };
    let at = board.entries[0].at;
    board.stand(at, progress, None);
    let merged = BoardEntry {
        report: OutboundId::notice(&"jira:ENG-12".parse().unwrap(), 9),
        run: Some(RunId::new("jira:ENG-12".parse().unwrap(), 63)),
        job: Some(Job::Finish),
        text: "`ann` merged it.".to_owned(),
        ..board.entries[0].clone()
    };
    board.add(merged, false);
    assert_snapshot!(render_board(&board), @r"
    `ann` merged it.

    Journeyman, run `jira:ENG-12@63` (finish), 2026-11-21 10:00 UTC

    Before that:

    - 2026-11-21 10:00 UTC: Journeyman has started to work on this ticket in `acme/shop`.
    ");
}
