//! What came of it, as a table in Markdown.

use std::time::Duration;

use crate::names::Round;

/// One round.
pub(crate) struct Row {
    /// What happened.
    pub(crate) event: String,
    /// More about it.
    pub(crate) note: String,
    /// How long that took.
    pub(crate) took: Option<Duration>,
    /// What became of the tickets.
    pub(crate) round: Round,
    /// What was to be shown beyond the tickets was shown.
    pub(crate) is_good: bool,
}

impl Row {
    /// Everything is there exactly once.
    pub(crate) fn is_good(&self) -> bool {
        let round = &self.round;
        self.is_good && round.done == round.tickets && round.lost.is_empty() && round.doubled.is_empty()
    }
}

/// The whole table.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![
        "| during the tickets | it took | tickets done | wall | lost | doubled |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(rows.iter().map(line));
    lines.join("\n")
}

fn line(row: &Row) -> String {
    let Row {
        event, note, round, ..
    } = row;
    let event = match note.as_str() {
        "" => event.clone(),
        note => format!("{event} ({note})"),
    };
    let took = row
        .took
        .map_or_else(String::new, |took| format!("{} s", took.as_secs()));
    format!(
        "| {event} | {took} | {} of {} | {} s | {} | {} |",
        round.done,
        round.tickets,
        round.wall_s,
        round.lost.len(),
        round.doubled.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            event: "nothing".to_owned(),
            note: String::new(),
            took: None,
            round: Round {
                tickets: 2,
                done: 2,
                wall_s: 7,
                ..Round::default()
            },
            is_good: true,
        }
    }

    #[test]
    fn a_round_has_a_row_with_what_was_lost_and_doubled() {
        let drained = Row {
            event: "drain".to_owned(),
            note: "with nats".to_owned(),
            took: Some(Duration::from_millis(8600)),
            ..row()
        };
        let text = table(&[row(), drained]);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| nothing |  | 2 of 2 | 7 s | 0 | 0 |",
                "| drain (with nats) | 8 s | 2 of 2 | 7 s | 0 | 0 |"
            ]
        );
    }

    #[test]
    fn a_round_is_good_when_everything_is_there_once() {
        assert!(row().is_good());
        let mut short = row();
        short.round.done = 1;
        let mut doubled = row();
        doubled.round.doubled.push("a comment".to_owned());
        let mut open = row();
        open.is_good = false;
        assert!(![short, doubled, open].iter().any(Row::is_good));
    }
}
