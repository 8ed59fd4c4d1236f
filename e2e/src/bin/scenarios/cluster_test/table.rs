//! Result as a Markdown table.

use std::time::Duration;

use crate::cluster_test::{
    events::{ClusterEvent, RoundBounds},
    names::{TicketRound, WebhookCount},
};

/// Row of one round.
pub(crate) struct RoundRow {
    /// Event of the round.
    pub(crate) event: ClusterEvent,
    /// Note on the event.
    pub(crate) note: String,
    /// Duration of the event.
    pub(crate) took: Option<Duration>,
    /// Result of the tickets.
    pub(crate) round: TicketRound,
    /// Tickets whose wake-up a sweep had to repair.
    pub(crate) wake_ups: Vec<String>,
    /// True if the round's own check succeeded.
    pub(crate) is_good: bool,
}

impl RoundRow {
    /// True if every result exists exactly once, within the round's bounds.
    pub(crate) fn is_good(&self) -> bool {
        let round = &self.round;
        let is_whole = round.done == round.tickets && round.lost.is_empty() && round.doubled.is_empty();
        self.is_good && is_whole && self.exceeded(self.event.bounds()).is_empty()
    }

    /// Describes the bounds that the round exceeded.
    pub(crate) fn exceeded(&self, bounds: RoundBounds) -> Vec<String> {
        let (round, mut found) = (&self.round, Vec::new());
        let (refused, refusing) = (&round.webhooks.refused, round.webhooks.refused_for());
        if bounds.refusing.is_zero() && !refused.is_empty() {
            found.push(format!(
                "webhooks were refused: {}",
                describe_webhooks(&round.webhooks)
            ));
        } else if refusing > bounds.refusing {
            found.push(format!(
                "webhooks were refused in {} different seconds, at most {} are right",
                refusing.as_secs(),
                bounds.refusing.as_secs()
            ));
        }
        if round.pause_s > bounds.pause.as_secs() {
            found.push(format!(
                "no ticket became done for {} s, at most {} s are right",
                round.pause_s,
                bounds.pause.as_secs()
            ));
        }
        if self.wake_ups.len() > bounds.wake_ups {
            found.push(format!("no wake-up until a sweep: {}", self.wake_ups.join(", ")));
        }
        found
    }
}

/// Describes the answers: accepted ones, then others by status.
fn describe_webhooks(count: &WebhookCount) -> String {
    if count.sent() == 0 {
        return String::new();
    }
    let mut text = format!("{} of {} 202", count.accepted, count.sent());
    for (status, number) in &count.refused {
        let status = match status {
            0 => "no answer".to_owned(),
            status => status.to_string(),
        };
        text.push_str(&format!(", {number} {status}"));
    }
    if !count.refused.is_empty() {
        text.push_str(&format!(
            ", in {} different seconds",
            count.refused_for().as_secs()
        ));
    }
    format!("{text}; slowest {} ms", count.slowest_ms)
}

/// Renders the rows as a table.
pub(crate) fn render_table(rows: &[RoundRow]) -> String {
    let mut lines = vec![
        "| during the tickets | it took | tickets done | wall | longest pause | webhooks | lost | doubled | wake-ups repaired |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(rows.iter().map(render_row));
    lines.join("\n")
}

fn render_row(row: &RoundRow) -> String {
    let RoundRow {
        event, note, round, ..
    } = row;
    let event = match note.as_str() {
        "" => event.name().to_owned(),
        note => format!("{} ({note})", event.name()),
    };
    let took = row
        .took
        .map_or_else(String::new, |took| format!("{} s", took.as_secs()));
    format!(
        "| {event} | {took} | {} of {} | {} s | {} s | {} | {} | {} | {} |",
        round.done,
        round.tickets,
        round.wall_s,
        round.pause_s,
        describe_webhooks(&round.webhooks),
        round.lost.len(),
        round.doubled.len(),
        row.wake_ups.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_round_row(event: ClusterEvent) -> RoundRow {
        RoundRow {
            event,
            note: String::new(),
            took: None,
            round: TicketRound {
                tickets: 2,
                done: 2,
                wall_s: 7,
                pause_s: 4,
                ..TicketRound::default()
            },
            wake_ups: Vec::new(),
            is_good: true,
        }
    }

    fn build_webhook_count(accepted: u64, refused: &[(u16, u64)]) -> WebhookCount {
        let mut count = WebhookCount::default();
        for _ in 0..accepted {
            count.add(Some(202), Duration::ZERO, Duration::from_millis(90));
        }
        for (status, sent_s) in refused {
            let status = (*status > 0).then_some(*status);
            count.add(status, Duration::from_secs(*sent_s), Duration::ZERO);
        }
        count
    }

    #[test]
    fn row_shows_lost_doubled_webhooks_wake_ups() {
        let drained = RoundRow {
            note: "with nats".to_owned(),
            took: Some(Duration::from_millis(8600)),
            wake_ups: vec!["jira:ENG-1 (triggers)".to_owned()],
            ..build_round_row(ClusterEvent::Drain)
        };
        let mut cut_off = build_round_row(ClusterEvent::Partition);
        cut_off.round.webhooks = build_webhook_count(3, &[(0, 1), (503, 4)]);
        let text = render_table(&[build_round_row(ClusterEvent::Nothing), drained, cut_off]);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| nothing |  | 2 of 2 | 7 s | 4 s |  | 0 | 0 | 0 |",
                "| drain of a node (with nats) | 8 s | 2 of 2 | 7 s | 4 s |  | 0 | 0 | 1 |",
                "| NATS server and executor cut off for 50 s |  | 2 of 2 | 7 s | 4 s | 3 of 5 202, 1 no answer, 1 503, in 2 different seconds; slowest 90 ms | 0 | 0 | 0 |"
            ]
        );
    }

    #[test]
    fn row_is_good_without_lost_or_doubled() {
        assert!(build_round_row(ClusterEvent::Nothing).is_good());
        let mut short = build_round_row(ClusterEvent::Nothing);
        short.round.done = 1;
        let mut doubled = build_round_row(ClusterEvent::Nothing);
        doubled.round.doubled.push("a comment".to_owned());
        let mut open = build_round_row(ClusterEvent::Nothing);
        open.is_good = false;
        assert!(![short, doubled, open].iter().any(RoundRow::is_good));
    }

    #[test]
    fn row_fails_beyond_its_bounds() {
        let refused = |event, refused: &[(u16, u64)]| {
            let mut row = build_round_row(event);
            row.round.webhooks = build_webhook_count(3, refused);
            row.is_good()
        };
        assert!(refused(ClusterEvent::Webhooks, &[]));
        assert!(!refused(ClusterEvent::Webhooks, &[(503, 1)]), "one is too many");
        assert!(refused(ClusterEvent::Partition, &[(503, 1), (0, 20)]));
        let for_long: Vec<(u16, u64)> = (0..30).map(|second| (503, second)).collect();
        assert!(!refused(ClusterEvent::Partition, &for_long));
        let mut paused = build_round_row(ClusterEvent::Nothing);
        paused.round.pause_s = 61;
        let mut repaired = build_round_row(ClusterEvent::Nothing);
        repaired.wake_ups.push("jira:ENG-1 (triggers)".to_owned());
        assert!(!paused.is_good() && !repaired.is_good());
    }
}
