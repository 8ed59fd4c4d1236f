//! Texts about the end or pause of a run, with the next action of the reader.

use domain::{
    BranchRef, BudgetPeriod, BudgetScope, BudgetUnit, ConflictLeft, GiveUp, Job, OutboundRefusal,
    PullRequestRef, RepetitionKind, SharedBudget, StopReason, TicketDeparture, Timestamp, TurnRepetition,
    WithdrawalReason, text::take_tail,
};

use super::words::{
    fence_text, format_code, format_count, format_minute, format_times, link_pull_request_name, name_person,
    quote_markdown, sanitize_line,
};

pub(crate) fn render_stop(
    job: Job,
    reason: &StopReason,
    pull_request: Option<&PullRequestRef>,
    branch: Option<&BranchRef>,
    retry: &str,
) -> Vec<String> {
    let mut paragraphs = stop_reason(job, reason);
    match (pull_request, branch, reason) {
        (Some(draft), _, _) => paragraphs.push(format!("The draft stays open: {}. {retry}", link_pull_request_name(draft))),
        (
            None,
            _,
            StopReason::Completed
            | StopReason::Superseded
            | StopReason::Withdrawn { .. }
            | StopReason::TicketLeft(_),
        ) => {}
        (None, Some(pushed), _) => paragraphs.push(format!(
            "The branch {} was pushed to `{}`, but it has no pull request. Open one yourself or delete the branch. {retry}",
            format_code(&pushed.branch),
            pushed.repository
        )),
        (None, None, _) => paragraphs.push(format!("Nothing was pushed. {retry}")),
    }
    paragraphs
}

pub(crate) fn retry_scheduled(
    job: Job,
    reason: &StopReason,
    count: (u32, u32),
    due: Timestamp,
) -> Vec<String> {
    let (attempt, most) = count;
    let due = format_minute(due);
    let (what, detail) = match reason {
        StopReason::SharedBudgetSpent(budget) => {
            return vec![
                format!("The {job} run pauses: {}.", shared_budget(budget)),
                format!("It continues at {due}. Comment `/retry` once there is more, or `/stop` to end it."),
                describe_budget_raise(budget),
            ];
        }
        StopReason::ModelFailed { detail } => ("the model provider failed", detail.as_str()),
        StopReason::WorkspaceUnavailable { detail } => ("no workspace could be opened", detail.as_str()),
        StopReason::ReportFailed { detail } => (
            "GitHub or Jira did not accept what it had to write there",
            detail.as_str(),
        ),
        StopReason::Completed
        | StopReason::NoChange { .. }
        | StopReason::Unfinished { .. }
        | StopReason::ChecksFail { .. }
        | StopReason::TurnLimit { .. }
        | StopReason::Stuck(_)
        | StopReason::BudgetSpent { .. }
        | StopReason::PriceUnknown { .. }
        | StopReason::NoPlan
        | StopReason::Stopped { .. }
        | StopReason::Rejected { .. }
        | StopReason::GivenUp { .. }
        | StopReason::ConflictLeft { .. }
        | StopReason::RevisionLimit { .. }
        | StopReason::ModelRefused
        | StopReason::ContextTooLong
        | StopReason::SetupFailed { .. }
        | StopReason::ReportRefused(_)
        | StopReason::UnsupportedJob
        | StopReason::JournalUnreadable
        | StopReason::JournalLost
        | StopReason::Superseded
        | StopReason::Withdrawn { .. }
        | StopReason::TicketLeft(_) => ("the run failed", reason.as_str()),
    };
    vec![
        format!("The {job} run pauses: {what} ({}).", format_code(detail)),
        format!(
            "It continues at {due} (retry {attempt} of {most}). Comment `/retry` to continue now, or `/stop` to end it."
        ),
    ]
}

const CONTEXT_TOO_LONG: &str = "Journeyman stopped: the conversation with the model became too long for it and could not be \
                                made shorter. A smaller ticket, or a model with a larger window, may help.";

fn stop_reason(job: Job, reason: &StopReason) -> Vec<String> {
    let say = |text: String| vec![text];
    match reason {
        StopReason::Completed => say(format!("The {job} run is complete.")),
        StopReason::NoChange { summary } => {
            let mut paragraphs = quote_after("Journeyman made no change", "The reason", summary);
            paragraphs.push("If a change is needed, add to the ticket what should be different.".to_owned());
            paragraphs
        }
        StopReason::Unfinished { summary, unsaved } => {
            let lead = if unsaved.is_empty() {
                "Journeyman stopped: the model did not hand over its change"
            } else {
                "Journeyman stopped: a part of the change could not be saved"
            };
            let mut paragraphs = quote_after(lead, "The last message of the model", summary);
            if !unsaved.is_empty() {
                paragraphs.push(format!("Not saved: {}.", sanitize_line(&unsaved.join("; "))));
            }
            paragraphs
        }
        StopReason::ChecksFail {
            commands,
            uncompared,
            failing,
            missing,
        } => checks_fail(commands, uncompared, [failing, missing]),
        StopReason::TurnLimit { turns } => say(format!(
            "Journeyman stopped: the limit of {} was reached before the work was done.",
            format_count((*turns).into(), "model turn")
        )),
        StopReason::Stuck(repetition) => say(describe_repetition(repetition)),
        StopReason::BudgetSpent { budget, spent, limit } => say(budget_spent(*budget, *spent, *limit)),
        StopReason::SharedBudgetSpent(budget) => shared_budget_spent(budget),
        StopReason::PriceUnknown { model } => say(price_unknown(model)),
        StopReason::NoPlan => {
            say("Journeyman stopped: the model made no plan that you could decide about.".to_owned())
        }
        StopReason::Stopped { by } => say(format!("{} stopped the run.", name_person(by))),
        StopReason::Rejected { by } => say(format!(
            "{} rejected the change, so it was not pushed.",
            name_person(by)
        )),
        StopReason::GivenUp { kind, evidence } => vec![gave_up(*kind).to_owned(), quote_markdown(evidence)],
        StopReason::ConflictLeft { why, files } => say(describe_conflict(*why, files)),
        StopReason::RevisionLimit { revisions } => say(format!(
            "Journeyman stopped: the change was revised {}, and more changes were asked for.",
            format_times((*revisions).into())
        )),
        StopReason::ModelRefused => {
            say("Journeyman stopped: the model refuses to work on this ticket.".to_owned())
        }
        StopReason::ContextTooLong => say(CONTEXT_TOO_LONG.to_owned()),
        StopReason::ModelFailed { detail } => say(format!(
            "Journeyman stopped: the model provider failed ({}). An operator must look into it.",
            format_code(detail)
        )),
        StopReason::WorkspaceUnavailable { detail } => say(format!(
            "Journeyman stopped: no workspace could be opened ({}).",
            format_code(detail)
        )),
        StopReason::SetupFailed { log_tail } => vec![
            "Journeyman stopped: the repository's setup commands failed. The end of their log:".to_owned(),
            fence_text("", &take_tail(log_tail, 4_000)),
        ],
        StopReason::ReportRefused(refusal) => {
            let is_early = matches!(
                refusal,
                OutboundRefusal::NoSigningKey { .. }
                    | OutboundRefusal::MissingRights { .. }
                    | OutboundRefusal::UnmetPattern { .. }
                    | OutboundRefusal::LinearHistory { .. }
            );
            let lead = if is_early {
                "Journeyman stopped before the work: a change could not be delivered."
            } else {
                "Journeyman stopped: the change was refused."
            };
            vec![lead.to_owned(), quote_markdown(&refusal.words())]
        }
        StopReason::ReportFailed { detail } => vec![
            "Journeyman stopped: GitHub or Jira did not accept what it had to write there.".to_owned(),
            quote_markdown(detail),
        ],
        StopReason::UnsupportedJob => say(format!(
            "Journeyman stopped: this version does not support {job} runs."
        )),
        StopReason::JournalUnreadable => say(
            "Journeyman stopped: the journal of this run cannot be read, so the run cannot be continued."
                .to_owned(),
        ),
        StopReason::JournalLost => say(
            "Journeyman stopped: the journal of this run is gone, so the run cannot be continued.".to_owned(),
        ),
        StopReason::Superseded => say("A newer request took this run's place.".to_owned()),
        StopReason::Withdrawn { why } => say(describe_withdrawal(*why).to_owned()),
        StopReason::TicketLeft(departure) => say(describe_departure(departure)),
    }
}

/// Renders a conflict that is left to people, with its files.
pub(crate) fn describe_conflict(why: ConflictLeft, files: &[String]) -> String {
    let why = match why {
        ConflictLeft::TooLarge => "it has more conflicts than can be resolved at once",
        ConflictLeft::Unreadable => "files are binary, links or submodules, which have no lines to merge",
        ConflictLeft::HunksLost => "the model's merge dropped changes without a reason",
    };
    let named: Vec<String> = files.iter().map(|file| format_code(file)).collect();
    format!(
        "The conflict with the base branch is not resolved: {why}. Conflicting files: {}. Please merge the base branch \
         into the branch yourself.",
        named.join(", ")
    )
}

/// Renders a sentence with a quotation behind it; the sentence alone without one.
fn quote_after(lead: &str, what: &str, quoted: &str) -> Vec<String> {
    match quoted.trim() {
        "" => vec![format!("{lead}.")],
        quoted => vec![format!("{lead}. {what}:"), quote_markdown(quoted)],
    }
}

/// Renders the failing checks of a change. Checks without a result of the base are named, because their failures may
/// be older than the change.
fn checks_fail(
    commands: &[String],
    uncompared: &[String],
    [failing, missing]: [&[String]; 2],
) -> Vec<String> {
    let list = |commands: &[String]| {
        let commands: Vec<String> = commands.iter().map(|command| format_code(command)).collect();
        commands.join(", ")
    };
    let mut paragraphs = vec![format!(
        "Journeyman ended its work, and the change is not ready. These checks do not pass with it: {}.",
        list(commands)
    )];
    if !uncompared.is_empty() {
        paragraphs.push(format!(
            "Without the change, {} gave no result, so what fails may be older than the change.",
            list(uncompared)
        ));
    }
    for (heading, tests) in [
        ("Fails with the change:", failing),
        ("Ran before and does not run with the change:", missing),
    ] {
        let tests: Vec<String> = tests
            .iter()
            .map(|test| format!("- {}", format_code(test)))
            .collect();
        if !tests.is_empty() {
            paragraphs.push(format!("{heading}\n\n{}", tests.join("\n")));
        }
    }
    paragraphs
}

/// Renders the departure of a ticket, which ended its work.
fn describe_departure(departure: &TicketDeparture) -> String {
    let event = match departure {
        TicketDeparture::Transferred { to: Some(to) } => {
            format!("The issue was transferred to {}", format_code(to))
        }
        TicketDeparture::Transferred { to: None } => {
            "The issue was transferred to a repository that Journeyman does not see".to_owned()
        }
        TicketDeparture::Deleted => "The issue was deleted".to_owned(),
    };
    format!("{event}, so Journeyman stopped its work on it.")
}

/// Renders the departure of a ticket for its pull request, with the ways to continue.
pub(crate) fn render_departure(departure: &TicketDeparture) -> Vec<String> {
    let next = match departure {
        TicketDeparture::Transferred { .. } => {
            "To have the work done in the new repository, ask for it there: add the label, or assign the issue. This \
             pull request is not part of that work, so close it when it is no longer wanted."
        }
        TicketDeparture::Deleted => {
            "If the change is no longer wanted, close this pull request. To ask for other work, open a new issue."
        }
    };
    vec![
        describe_departure(departure),
        "This pull request stays open. Journeyman still handles its checks and reviews.".to_owned(),
        next.to_owned(),
    ]
}

const fn describe_withdrawal(why: WithdrawalReason) -> &'static str {
    match why {
        WithdrawalReason::Merged => "The pull request was merged, so no review follows.",
        WithdrawalReason::Closed => "The pull request was closed, so no review follows.",
        WithdrawalReason::Unrequested => "The review is not asked for any more, so none follows.",
    }
}

fn describe_repetition(repetition: &TurnRepetition) -> String {
    let TurnRepetition { kind, turns, tools } = repetition;
    let tools: Vec<String> = tools.iter().map(|name| format_code(name)).collect();
    let tools = tools.join(", ");
    let how = match kind {
        RepetitionKind::Same => {
            format!("{turns} turns in a row made the same calls ({tools}) with the same results")
        }
        RepetitionKind::Alternating => {
            format!("{turns} turns in a row went back and forth between the same calls ({tools})")
        }
        RepetitionKind::Malformed => {
            format!("in {turns} turns in a row no tool could take its calls ({tools})")
        }
        RepetitionKind::Truncated => {
            format!("{turns} replies in a row reached the token limit and called no tool")
        }
        RepetitionKind::Summaries => {
            format!(
                "it read so much in {turns} turns that they would have to be summed up again, and changed no file"
            )
        }
    };
    format!(
        "Journeyman stopped: the model repeated itself: {how}. More detail in the ticket may help it, such as where to look \
         and how to see that the work is done."
    )
}

fn budget_spent(budget: BudgetUnit, spent: u64, limit: u64) -> String {
    let key = budget_key(budget);
    let what = budget.format_spent(spent, limit);
    format!(
        "Journeyman stopped: the run has used {what}, and a tenth is kept for what comes after the work. To give the next run \
         more, raise `agent.budget.{key}` in the repository's rules; an operator may have set a ceiling \
         (`planner.budget_ceiling.{key}`)."
    )
}

fn shared_budget_spent(budget: &SharedBudget) -> Vec<String> {
    let again = budget
        .resets
        .map(|resets| format!("There is room again from {} on.", format_minute(resets)));
    let mut paragraphs = vec![format!("Journeyman stopped: {}.", shared_budget(budget))];
    paragraphs.extend(again);
    paragraphs.push(describe_budget_raise(budget));
    paragraphs
}

fn price_unknown(model: &str) -> String {
    format!(
        "Journeyman stopped: the run may spend a certain amount of money, and the price of the model {} is not known. An \
         operator must set it (`model.prices`), or `agent.budget.cost_usd` be taken out of the repository's rules.",
        format_code(model)
    )
}

/// Renders a shared budget: its limit, its use, and the possible cost of the next model call.
fn shared_budget(shared: &SharedBudget) -> String {
    let whose = match shared.of {
        BudgetScope::Ticket => "this ticket".to_owned(),
        BudgetScope::Repository => format!("the repository {}", format_code(&shared.name)),
        BudgetScope::Organization => format!("the organization {}", format_code(&shared.name)),
    };
    let when = match shared.period {
        Some(BudgetPeriod::Day) => " a day (UTC)",
        Some(BudgetPeriod::Month) => " a month (UTC)",
        None => " in all its runs",
    };
    let amounts = [shared.spent, shared.limit, shared.needs];
    let [spent, limit, needs] = amounts.map(|amount| shared.budget.format_amount(amount));
    let kept = match shared.of {
        BudgetScope::Ticket => "; a tenth is kept for what comes after the work",
        BudgetScope::Repository | BudgetScope::Organization => "",
    };
    let next = match shared.needs {
        0 => String::new(),
        _ => format!("; the next call of the model may take up to {needs}"),
    };
    format!("{whose} may use {limit}{when}; used or set aside so far: {spent}{next}{kept}")
}

/// Returns the key of a budget in rules and settings.
const fn budget_key(budget: BudgetUnit) -> &'static str {
    match budget {
        BudgetUnit::Cost => "cost_usd",
        BudgetUnit::Tokens => "tokens",
        BudgetUnit::Minutes => "minutes",
    }
}

/// Renders the setting that raises the budget.
fn describe_budget_raise(shared: &SharedBudget) -> String {
    let key = budget_key(shared.budget);
    match (shared.of, shared.period) {
        (BudgetScope::Ticket, _) => format!(
            "To give the ticket more, raise `agent.budget.ticket.{key}` in the repository's rules; an operator may have set a \
             ceiling (`planner.budget_ceiling.ticket.{key}`)."
        ),
        (of, period) => {
            let period = period.unwrap_or(BudgetPeriod::Day);
            format!(
                "An operator can raise it (`planner.budget.{}.{period}.{key}`).",
                of.as_str()
            )
        }
    }
}

const fn gave_up(kind: GiveUp) -> &'static str {
    match kind {
        GiveUp::Duplicate => {
            "Not begun: another ticket asks for the same. If it does not, say what is different and ask again."
        }
        GiveUp::AlreadyDone => "Nothing has to be changed: the repository does what the ticket asks for.",
        GiveUp::SpecContradictsTests => {
            "Could not be done: what the ticket asks for contradicts tests of the repository. Say which of the two is right."
        }
        GiveUp::CannotReproduce => {
            "Could not be done: the problem does not show in the repository. Say how to reproduce it."
        }
        GiveUp::OutOfScope => {
            "Could not be done: the work lies outside this repository or outside what its rules allow."
        }
        GiveUp::Blocked => "Could not be done: something that is needed for it is missing.",
        GiveUp::TooLarge => {
            "Not begun: this is more than one pull request. Split the ticket, and ask for each part."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_checks_name_those_without_base_result() {
        let test = ["test_total".to_owned()];
        let pytest = ["pytest".to_owned()];
        let compared = checks_fail(&pytest, &[], [&test, &[]]).join("\n");
        assert!(!compared.contains("Without the change"), "{compared}");
        let uncompared = checks_fail(&pytest, &pytest, [&test, &[]]);
        assert_eq!(
            uncompared,
            [
                "Journeyman ended its work, and the change is not ready. These checks do not pass with it: `pytest`.",
                "Without the change, `pytest` gave no result, so what fails may be older than the change.",
                "Fails with the change:\n\n- `test_total`",
            ]
        );
    }
}
