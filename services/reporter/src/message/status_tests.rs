//! Snapshots of the status comment.

use domain::{ReportId, RunId, TicketKey, Timestamp};
use insta::assert_snapshot;

use super::*;

fn board(said: &[(i64, &str)]) -> Board {
    let ticket: TicketKey = "jira:ENG-12".parse().unwrap();
    let run = RunId::new(ticket.clone(), 57);
    let mut board = Board::default();
    for (second, text) in said {
        let entry = Entry {
            report: ReportId::notice(&ticket, u64::try_from(*second).unwrap()),
            at: Timestamp::from_unix_ms(1_795_255_200_000 + second * 1000),
            run: Some(run.clone()),
            text: (*text).to_owned(),
        };
        board.add(entry, board.entries.is_empty());
    }
    board
}

#[test]
fn the_latest_is_said_in_full_and_the_rest_in_a_line_each() {
    let said = [
        (0, "Journeyman has started to work on this ticket in `acme/shop`."),
        (252, "Checks failed on a pull request.\n\n- `test`\n- `lint`"),
        (300_000, "Ann merged it.\n\nThe ticket is now **Done**."),
    ];
    assert_snapshot!(status(&board(&said[..1])), @"
    Journeyman has started to work on this ticket in `acme/shop`.

    Journeyman, run `jira:ENG-12@57`, 2026-11-21 10:00 UTC
    ");
    assert_snapshot!(status(&board(&said[..2])), @"
    Checks failed on a pull request.

    - `test`
    - `lint`

    Journeyman, run `jira:ENG-12@57`, 2026-11-21 10:04 UTC, 4 min 12 s after the start

    Before that:

    - 2026-11-21 10:00 UTC: Journeyman has started to work on this ticket in `acme/shop`.
    ");
    assert_snapshot!(status(&board(&said)), @"
    Ann merged it.

    The ticket is now **Done**.

    Journeyman, run `jira:ENG-12@57`, 2026-11-24 21:20 UTC, 3 d 11 h after the start

    Before that:

    - 2026-11-21 10:04 UTC: Checks failed on a pull request.
    - 2026-11-21 10:00 UTC: Journeyman has started to work on this ticket in `acme/shop`.
    ");
    assert_eq!(status(&Board::default()), "");
}

#[test]
fn that_a_ticket_was_not_moved_is_said_until_it_is() {
    use crate::made::Moved;
    let mut board = board(&[(0, "Journeyman has started to work on this ticket in `acme/shop`.")]);
    board.moved(&Moved::Unavailable {
        wanted: "Done".to_owned(),
        status: "In Progress".to_owned(),
        reachable: vec!["To Do".to_owned(), "QA".to_owned()],
    });
    let entry = Entry {
        report: ReportId::notice(&"jira:ENG-12".parse().unwrap(), 9),
        text: "Checks failed on a pull request.".to_owned(),
        ..board.entries[0].clone()
    };
    board.add(entry, false);
    assert_snapshot!(status(&board), @"
    Checks failed on a pull request.

    The ticket is still in **In Progress**: no transition to **Done** is available from that status. It can be moved to: **To Do**, **QA**. Please move it yourself.

    Journeyman, run `jira:ENG-12@57`, 2026-11-21 10:00 UTC

    Before that:

    - 2026-11-21 10:00 UTC: Journeyman has started to work on this ticket in `acme/shop`.
    ");
    board.moved(&Moved::Refused {
        wanted: "Done".to_owned(),
        detail: "jira rejected the request: a field".to_owned(),
        asks_for: vec!["Resolution".to_owned()],
    });
    assert!(status(&board).contains(
        "The ticket could not be moved to **Done** (`jira rejected the request: a field`). Please move it yourself \
         and fill in **Resolution**."
    ));
    board.moved(&Moved::To("Done".to_owned()));
    assert!(!status(&board).contains("yourself"));
}

#[test]
fn times_are_short() {
    let spans = [59, 61, 3_599, 7_260, 90_000].map(duration);
    assert_eq!(
        spans,
        ["59 s", "1 min 1 s", "59 min 59 s", "2 h 1 min", "1 d 1 h"]
    );
}
