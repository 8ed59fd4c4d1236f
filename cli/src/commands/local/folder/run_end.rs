//! Ends of a run that is not completed: the whole reason and one next step, for standard error.

use domain::{GiveUp, StopReason};

// Next step when the model did not answer.
const TRY_AGAIN: &str = "when the model answers, give the same command again; --base-url and --model, or [model] in the \
                         settings file, name another one";
const ADD_DETAILS: &str = "add details to the text, and give the command again";
const SMALLER_TASK: &str = "give a smaller task, or one part of this one";
const REPORT_IT: &str =
    "give the command again; if it ends in the same way, report the last lines of `--verbose`";

/// Lines about the end of a run: its cause with the name for programs, the details, and the next step.
///
/// `switch` is the command that checks the change so far out.
pub(super) fn explain_end(reason: &StopReason, switch: Option<&str>) -> Vec<String> {
    let (cause, next) = describe_end(reason);
    let detail = reason.detail().unwrap_or_default();
    let mut details = detail.trim().lines();
    let mut lines = vec![match details.next() {
        None | Some("") => format!("{cause} ({})", reason.as_str()),
        Some(first) => format!("{cause} ({}): {}", reason.as_str(), first.trim()),
    }];
    lines.extend(details.map(|line| format!("  {}", line.trim_end())));
    lines.push(match switch {
        Some(switch) if keeps_change(reason) => format!("next: continue with the change so far: {switch}"),
        Some(_) | None => format!("next: {next}"),
    });
    lines
}

/// Lines about a question without an answer: the input of the terminal ended, or there is no terminal.
pub(super) fn explain_open_question(question: &[String], has_input_ended: bool) -> Vec<String> {
    let (reason, remedy) = if has_input_ended {
        ("the input ended before the answer", "give the command again")
    } else {
        (
            "there is no terminal to answer at",
            "give the command at a terminal",
        )
    };
    let mut lines = vec![format!("the run asked a question, and {reason}")];
    lines.extend(question.iter().map(|line| format!("  {line}")));
    lines.push(format!("next: write the answer into the text, or {remedy}"));
    lines
}

/// True for an end after which the branch has a change that a person can continue.
const fn keeps_change(reason: &StopReason) -> bool {
    match reason {
        StopReason::ChecksFail { .. }
        | StopReason::TurnLimit { .. }
        | StopReason::Stuck(_)
        | StopReason::BudgetSpent { .. }
        | StopReason::SharedBudgetSpent(_)
        | StopReason::ContextTooLong => true,
        StopReason::Completed
        | StopReason::NoChange { .. }
        | StopReason::Unfinished { .. }
        | StopReason::PriceUnknown { .. }
        | StopReason::NoPlan
        | StopReason::Stopped { .. }
        | StopReason::Rejected { .. }
        | StopReason::GivenUp { .. }
        | StopReason::ConflictLeft { .. }
        | StopReason::RevisionLimit { .. }
        | StopReason::ModelRefused
        | StopReason::ModelFailed { .. }
        | StopReason::WorkspaceUnavailable { .. }
        | StopReason::SetupFailed { .. }
        | StopReason::ReportRefused(_)
        | StopReason::ReportFailed { .. }
        | StopReason::UnsupportedJob
        | StopReason::JournalUnreadable
        | StopReason::JournalLost
        | StopReason::Superseded
        | StopReason::Withdrawn { .. }
        | StopReason::TicketLeft(_) => false,
    }
}

/// Cause of the end, and the next step.
const fn describe_end(reason: &StopReason) -> (&'static str, &'static str) {
    match reason {
        StopReason::Completed => ("the run is completed", "read the change"),
        StopReason::NoChange { .. } => ("the model made no change", ADD_DETAILS),
        StopReason::Unfinished { .. } => (
            "the model ended its work before the change was complete",
            SMALLER_TASK,
        ),
        StopReason::ChecksFail { .. } => ("checks do not pass with the change", ADD_DETAILS),
        StopReason::TurnLimit { .. } => ("the model reached its limit of turns", SMALLER_TASK),
        StopReason::Stuck(_) => ("the model repeated itself", ADD_DETAILS),
        StopReason::BudgetSpent { .. } => (
            "the run spent its budget",
            "raise --max-cost, or agent.budget in the file of --config, and give the command again",
        ),
        StopReason::SharedBudgetSpent(_) => (
            "a budget beyond this run is spent",
            "wait for the next period, or raise [planner.budget] in the settings file",
        ),
        StopReason::PriceUnknown { .. } => (
            "the run has a limit in dollars, and the price of the model is unknown",
            "omit --max-cost, or add the price to [model.prices] in the settings file",
        ),
        StopReason::NoPlan => ("the model made no plan to decide about", ADD_DETAILS),
        StopReason::Stopped { .. } => ("the run was stopped", "give the command again to start over"),
        StopReason::Rejected { .. } => (
            "you rejected the change",
            "say in the text what to do differently, and give the command again",
        ),
        StopReason::GivenUp { kind, .. } => describe_give_up(*kind),
        StopReason::ConflictLeft { .. } => ("the conflict is left to people", REPORT_IT),
        StopReason::RevisionLimit { .. } => (
            "the change was revised as often as allowed",
            "say in the text what to do differently, and give the command again",
        ),
        StopReason::ModelRefused => (
            "the model refuses the task",
            "word the task differently, or name another model with --model",
        ),
        StopReason::ContextTooLong => (
            "the conversation became too long for the model",
            "give a smaller task, or name a model with a larger window with --model",
        ),
        StopReason::ModelFailed { .. } => ("the model did not answer", TRY_AGAIN),
        StopReason::WorkspaceUnavailable { .. } => (
            "no workspace could be opened",
            "remove the cause that the reason names; `journeyman docs sandbox` lists what a machine needs",
        ),
        StopReason::SetupFailed { .. } => (
            "the setup commands failed",
            "correct the command of --setup or executor.setup, and allow the hosts that it needs with --allow",
        ),
        StopReason::ReportRefused(_) => (
            "the change was refused",
            "say in the text what the reason asks for, and give the command again",
        ),
        StopReason::ReportFailed { .. } => (
            "the result could not be written",
            "remove the cause that the reason names, and give the command again",
        ),
        StopReason::UnsupportedJob => ("this release does not support the job", REPORT_IT),
        StopReason::JournalUnreadable => ("the journal of the run cannot be read", REPORT_IT),
        StopReason::JournalLost => ("the journal of the run is lost", REPORT_IT),
        StopReason::Superseded => ("a newer request replaced the run", REPORT_IT),
        StopReason::Withdrawn { .. } => ("the request was withdrawn", REPORT_IT),
        StopReason::TicketLeft(_) => ("the ticket left its place", REPORT_IT),
    }
}

const fn describe_give_up(kind: GiveUp) -> (&'static str, &'static str) {
    match kind {
        GiveUp::SpecContradictsTests => (
            "the model made no change, because the task contradicts tests",
            "say in the text whether the task or the tests are right, and give the command again",
        ),
        GiveUp::CannotReproduce => (
            "the model made no change, because it cannot reproduce the problem",
            "add the steps that show the problem to the text, and give the command again",
        ),
        GiveUp::AlreadyDone => (
            "the model made no change, because the repository has it already",
            "say in the text what is still missing, if anything is",
        ),
        GiveUp::OutOfScope => (
            "the model made no change, because the task is outside of this repository",
            "give the command in the repository that the task is about",
        ),
        GiveUp::Blocked => (
            "the model made no change, because something that it needs is missing",
            "provide what the reason names, and give the command again",
        ),
        GiveUp::TooLarge => (
            "the model made no change, because the task is too large for one change",
            SMALLER_TASK,
        ),
        GiveUp::Duplicate => (
            "the model made no change, because another ticket has the same request",
            ADD_DETAILS,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_has_whole_reason_and_one_step() {
        let reason = StopReason::ModelFailed {
            detail: "401 for the key in ANTHROPIC_API_KEY\nit says: no".to_owned(),
        };
        let lines = explain_end(&reason, None);
        assert_eq!(
            lines[..2],
            [
                "the model did not answer (model_failed): 401 for the key in ANTHROPIC_API_KEY",
                "  it says: no"
            ]
        );
        assert!(lines[2].starts_with("next: when the model answers, give the same command again"));
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn kept_change_is_next_step() {
        let reason = StopReason::TurnLimit { turns: 60 };
        assert_eq!(
            explain_end(&reason, Some("git switch fix/shop-1")),
            [
                "the model reached its limit of turns (turn_limit): 60 turns",
                "next: continue with the change so far: git switch fix/shop-1"
            ]
        );
        assert!(explain_end(&reason, None)[1].starts_with("next: give a smaller task"));
        let gave_up = StopReason::GivenUp {
            kind: GiveUp::CannotReproduce,
            evidence: "It passes.".to_owned(),
        };
        let lines = explain_end(&gave_up, Some("git switch fix/shop-1"));
        assert!(lines[1].starts_with("next: add the steps"), "{lines:?}");
    }

    #[test]
    fn open_question_is_quoted() {
        let question = ["question: Gross or net?".to_owned(), "  1. Gross.".to_owned()];
        assert_eq!(
            explain_open_question(&question, false)[1..3],
            ["  question: Gross or net?", "    1. Gross."]
        );
        let ended = explain_open_question(&question, true);
        assert_eq!(
            (ended[0].as_str(), ended[3].as_str()),
            (
                "the run asked a question, and the input ended before the answer",
                "next: write the answer into the text, or give the command again"
            )
        );
    }
}
