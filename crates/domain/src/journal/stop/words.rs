//! Texts of stop reasons for people.

use super::StopReason;
use crate::text::numbers::{format_count, format_times};

impl StopReason {
    /// Returns the name for people: `turn limit`.
    pub fn words(&self) -> String {
        self.as_str().replace('_', " ")
    }

    /// Returns details of the reason, such as a user, an amount or the model's closing text. May have several
    /// lines.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::NoChange { summary } => Some(summary.clone()),
            Self::Unfinished { summary, unsaved } if unsaved.is_empty() => Some(summary.clone()),
            Self::Unfinished { summary, unsaved } => {
                Some(format!("{summary}\nNot saved: {}", unsaved.join("; ")))
            }
            Self::ChecksFail {
                commands,
                uncompared,
                failing,
                missing,
            } => Some(describe_failing_checks(commands, uncompared, failing, missing)),
            Self::TurnLimit { turns } => Some(format_count((*turns).into(), "turn")),
            Self::BudgetSpent { budget, spent, limit } => Some(budget.format_spent(*spent, *limit)),
            Self::SharedBudgetSpent(shared) => Some(format!(
                "the budget of {} {}: {}",
                shared.of.as_str(),
                shared.name,
                shared.budget.format_spent(shared.spent, shared.limit)
            )),
            Self::PriceUnknown { model } => Some(model.clone()),
            Self::Stopped { by } | Self::Rejected { by } => Some(format!("by {by}")),
            Self::GivenUp { kind, evidence } => {
                Some(format!("{}: {evidence}", kind.as_str().replace('_', " ")))
            }
            Self::ConflictLeft { files, .. } => Some(files.join(", ")),
            Self::RevisionLimit { revisions } => Some(format_times((*revisions).into())),
            Self::ModelFailed { detail }
            | Self::WorkspaceUnavailable { detail }
            | Self::ReportFailed { detail } => Some(detail.clone()),
            Self::SetupFailed { log_tail } => Some(log_tail.clone()),
            Self::ReportRefused(refusal) => Some(refusal.words()),
            Self::TicketLeft(departure) => Some(departure.words()),
            Self::Stuck(repetition) if repetition.tools.is_empty() => {
                Some(format_count(repetition.turns.into(), "turn"))
            }
            Self::Stuck(repetition) => Some(format!(
                "{} with {}",
                format_count(repetition.turns.into(), "turn"),
                repetition.tools.join(", ")
            )),
            Self::Completed
            | Self::NoPlan
            | Self::ModelRefused
            | Self::ContextTooLong
            | Self::UnsupportedJob
            | Self::JournalUnreadable
            | Self::JournalLost
            | Self::Superseded
            | Self::Withdrawn { .. } => None,
        }
    }
}

/// Lists the failing checks of a change and their tests, one per line.
fn describe_failing_checks(
    commands: &[String],
    uncompared: &[String],
    failing: &[String],
    missing: &[String],
) -> String {
    let mut lines = vec![commands.join("; ")];
    for (what, tests) in [
        ("no result before the change", uncompared),
        ("fails", failing),
        ("does not run any more", missing),
    ] {
        lines.extend(tests.iter().map(|test| format!("{what}: {test}")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::stop::TicketDeparture;

    #[test]
    fn departure_names_present_place() {
        let transferred = |to: Option<&str>| {
            let to = to.map(str::to_owned);
            StopReason::TicketLeft(TicketDeparture::Transferred { to })
        };
        for (reason, detail) in [
            (
                transferred(Some("acme/other#220")),
                "transferred to acme/other#220",
            ),
            (
                transferred(None),
                "transferred to a place that no account of ours sees",
            ),
            (StopReason::TicketLeft(TicketDeparture::Deleted), "deleted"),
        ] {
            assert_eq!(reason.words(), "ticket left");
            assert_eq!(reason.detail().as_deref(), Some(detail));
        }
    }

    #[test]
    fn checks_without_base_result_are_named() {
        let fails = |uncompared: &[&str]| StopReason::ChecksFail {
            commands: vec!["pytest".to_owned(), "ruff check".to_owned()],
            uncompared: uncompared.iter().map(ToString::to_string).collect(),
            failing: vec!["test_total".to_owned()],
            missing: Vec::new(),
        };
        assert_eq!(
            fails(&["pytest"]).detail().as_deref(),
            Some("pytest; ruff check\nno result before the change: pytest\nfails: test_total")
        );
        assert_eq!(
            fails(&[]).detail().as_deref(),
            Some("pytest; ruff check\nfails: test_total")
        );
    }
}
