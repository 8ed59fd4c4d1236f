//! Times relative to now, with the absolute time on hover.

use domain::Timestamp;
use maud::{Markup, html};

use crate::words::{format_instant, make_visible};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
// Age from which a date says more than a number of days.
const DATED: u64 = 60 * DAY;

/// Renders a time in RFC 3339: `3 min ago`, and the time in UTC on hover. Other texts are shown as they are.
pub(crate) fn render_moment(at: &str, now: Timestamp) -> Markup {
    let Some(moment) = Timestamp::parse(at) else {
        return html! { (make_visible(at)) };
    };
    html! { time datetime=(moment) title=(format_instant(at)) { (describe_moment(moment, now)) } }
}

/// Describes a time: `just now`, `3 min ago`, `in 2 h`, `2026-11-25`.
pub(crate) fn describe_moment(at: Timestamp, now: Timestamp) -> String {
    let (past, future) = (now.since(at).as_secs(), at.since(now).as_secs());
    match (past, future) {
        (0..MINUTE, 0..MINUTE) => "just now".to_owned(),
        (DATED.., _) | (_, DATED..) => at.to_string().chars().take(10).collect(),
        (0..MINUTE, future) => format!("in {}", format_span(future)),
        (past, _) => format!("{} ago", format_span(past)),
    }
}

/// Formats seconds in their largest unit: `3 min`, `2 h`, `5 d`.
pub(crate) fn format_span(seconds: u64) -> String {
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        DAY.. => format!("{} d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_to_now() {
        let now = Timestamp::parse("2026-11-25T12:00:00Z").unwrap();
        for (at, words) in [
            ("2026-11-25T11:59:30Z", "just now"),
            ("2026-11-25T12:00:20Z", "just now"),
            ("2026-11-25T11:57:00Z", "3 min ago"),
            ("2026-11-25T02:10:00Z", "9 h ago"),
            ("2026-11-20T12:00:00Z", "5 d ago"),
            ("2026-11-25T15:00:00Z", "in 3 h"),
            ("2026-01-02T12:00:00Z", "2026-01-02"),
            ("2027-06-02T12:00:00Z", "2027-06-02"),
        ] {
            let at = Timestamp::parse(at).unwrap();
            assert_eq!(describe_moment(at, now), words, "{at}");
        }
    }

    #[test]
    fn absolute_time_is_shown_on_hover() {
        let now = Timestamp::parse("2026-11-25T12:00:00Z").unwrap();
        let text = render_moment("2026-11-25T11:57:00.250Z", now).into_string();
        assert!(text.contains("title=\"2026-11-25 11:57:00 UTC\""), "{text}");
        assert!(text.ends_with(">2 min ago</time>"), "{text}");
        assert_eq!(render_moment("<soon>", now).into_string(), "&lt;soon&gt;");
    }
}
