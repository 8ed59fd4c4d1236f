//! Status chips: an icon and a text, so that no meaning depends on color alone.

use api::types::{PullRequestLine, RunState, RunView, TicketStanding};
use domain::{PullRequestStatus, StopClass, check::EvidenceLevel};
use maud::{Markup, html};

use crate::words::{describe_run_state, make_visible, parse_wait, web_address};

/// Meaning of a chip, with its color and its icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChipTone {
    Plain,
    Work,
    Good,
    Warm,
    Bad,
    Merged,
}

impl ChipTone {
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "chip",
            Self::Work => "chip work",
            Self::Good => "chip good",
            Self::Warm => "chip warm",
            Self::Bad => "chip bad",
            Self::Merged => "chip merged",
        }
    }

    /// Path of the icon in a square of 16 units.
    const fn icon(self) -> &'static str {
        match self {
            // A circle.
            Self::Plain => "M8 3a5 5 0 1 0 0 10A5 5 0 1 0 8 3",
            // A triangle to the right.
            Self::Work => "M5 3l8 5-8 5z",
            // A check mark.
            Self::Good => "M3 8.5l3.5 3.5L13 4.5",
            // A clock.
            Self::Warm => "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M8 5v3.5l2.5 1.5",
            // A cross.
            Self::Bad => "M4 4l8 8M12 4l-8 8",
            // Two branches that join.
            Self::Merged => "M4 3v10M4 5c0 4 4 5 8 5M10 7.5l2.5 2.5L10 12.5",
        }
    }
}

/// Renders a chip. The caller has made the words visible.
pub(crate) fn render_chip(tone: ChipTone, words: &str) -> Markup {
    html! {
        span class=(tone.class()) {
            svg.icon viewBox="0 0 16 16" aria-hidden="true" { path d=(tone.icon()) {} }
            span { (words) }
        }
    }
}

/// Renders the state of a run.
pub(crate) fn render_run_chip(run: &RunView) -> Markup {
    render_chip(choose_run_tone(run), &describe_run_state(run).0)
}

fn choose_run_tone(run: &RunView) -> ChipTone {
    match run.status {
        RunState::Queued => ChipTone::Plain,
        RunState::Active => ChipTone::Work,
        RunState::Parked => match run.waits_for.as_deref().and_then(parse_wait) {
            Some(wait) if wait.is_for_person() => ChipTone::Warm,
            Some(_) | None => ChipTone::Plain,
        },
        RunState::Finished => match run.stop.as_ref().map(domain::StopReason::class) {
            Some(StopClass::Completed) => ChipTone::Good,
            Some(StopClass::GivenBack | StopClass::ServiceFailure | StopClass::Failure) => ChipTone::Bad,
            Some(StopClass::Settled) | None => ChipTone::Plain,
        },
    }
}

/// Describes the state of the work on a ticket.
pub(crate) const fn describe_standing(standing: TicketStanding) -> &'static str {
    match standing {
        TicketStanding::NeedsPerson => "needs a person",
        TicketStanding::Working => "working",
        TicketStanding::Failed => "failed",
        TicketStanding::Open => "in review",
        TicketStanding::Merged => "merged",
        TicketStanding::Closed => "closed",
        TicketStanding::Done => "done",
    }
}

/// Renders the state of the work on a ticket.
pub(crate) fn render_standing_chip(standing: TicketStanding) -> Markup {
    let tone = match standing {
        TicketStanding::NeedsPerson => ChipTone::Warm,
        TicketStanding::Working => ChipTone::Work,
        TicketStanding::Failed => ChipTone::Bad,
        TicketStanding::Open => ChipTone::Good,
        TicketStanding::Merged => ChipTone::Merged,
        TicketStanding::Closed | TicketStanding::Done => ChipTone::Plain,
    };
    render_chip(tone, describe_standing(standing))
}

/// Renders the status of a pull request.
pub(crate) fn render_pull_request_chip(status: Option<PullRequestStatus>) -> Markup {
    match status {
        Some(PullRequestStatus::Open) => render_chip(ChipTone::Good, "open"),
        Some(PullRequestStatus::Merged) => render_chip(ChipTone::Merged, "merged"),
        Some(PullRequestStatus::Closed) => render_chip(ChipTone::Plain, "closed"),
        None => render_chip(ChipTone::Plain, "status unknown"),
    }
}

/// Renders pull requests with their links and statuses, as lists show them.
pub(crate) fn render_pull_request_lines(lines: &[PullRequestLine]) -> Markup {
    html! {
        @for line in lines {
            div {
                (render_external_link(&line.url, &format!("#{}", line.number))) " "
                (render_pull_request_chip(line.status))
            }
        }
    }
}

/// Renders a link to another site, marked as such. An address that a browser must not follow stays text.
pub(crate) fn render_external_link(url: &str, words: &str) -> Markup {
    html! {
        @match web_address(url) {
            Some(address) => a href=(address) rel="noreferrer" {
                (make_visible(words)) span aria-hidden="true" { " ↗" } span.hidden-text { " (another site)" }
            },
            None => (make_visible(words)),
        }
    }
}

/// Describes the strength of evidence in lists, which do not explain names such as `E3`.
pub(crate) fn describe_evidence_level(level: &str) -> &'static str {
    EvidenceLevel::parse(level).map_or("unknown", EvidenceLevel::label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tone_has_own_icon_and_class() {
        let tones = [
            ChipTone::Plain,
            ChipTone::Work,
            ChipTone::Good,
            ChipTone::Warm,
            ChipTone::Bad,
            ChipTone::Merged,
        ];
        for (at, tone) in tones.iter().enumerate() {
            for other in tones.iter().skip(at + 1) {
                assert_ne!(tone.icon(), other.icon(), "{tone:?} {other:?}");
                assert_ne!(tone.class(), other.class(), "{tone:?} {other:?}");
            }
        }
    }

    #[test]
    fn chip_text_does_not_depend_on_color() {
        let chip = render_standing_chip(TicketStanding::Failed).into_string();
        assert!(
            chip.contains("aria-hidden=\"true\"") && chip.contains(">failed<"),
            "{chip}"
        );
    }

    #[test]
    fn only_web_addresses_become_external_links() {
        let link = render_external_link("https://github.com/acme/shop/pull/7", "#7").into_string();
        assert!(
            link.contains("rel=\"noreferrer\"") && link.contains("(another site)"),
            "{link}"
        );
        assert_eq!(
            render_external_link("javascript:alert(1)", "#7").into_string(),
            "#7"
        );
    }
}
