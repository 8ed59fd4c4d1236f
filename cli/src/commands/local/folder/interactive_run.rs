//! Follows a run in a folder, and lets the user at the terminal answer its questions.

use std::{
    io::{BufRead, IsTerminal},
    path::PathBuf,
    pin::pin,
    time::Duration,
};

use api::{Client, types::TextBody};
use domain::{
    ChangePlan, CheckRow, CommitId, DecisionVerdict, Fact, JournalEntry, OutboundAction, OutboundOutcome,
    OutboundReceipt, PhaseOutput, RunId, SpendSum, StopReason, TicketKey, TicketQuestion, Timestamp,
    WaitCondition, report,
};
use futures::{Stream, TryStreamExt};
use tokio_util::sync::CancellationToken;

use super::super::{print_error, print_result, progress::ProgressDisplay};
use crate::timeline;

// Time limit for a stopped run to end.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Result of a run.
#[derive(Debug, Default)]
pub(super) struct AttendedRun {
    /// Stop reason; absent after an interruption.
    pub(super) reason: Option<StopReason>,
    /// True when the run asked a question and there was no terminal.
    pub(super) is_unanswered: bool,
    /// Branch with the change.
    pub(super) branch: Option<String>,
    /// Path of the patch.
    pub(super) patch: Option<PathBuf>,
    /// Number and cost of the model's replies.
    pub(super) replies: SpendSum,
    /// Last results of the checks.
    pub(super) checks: Vec<CheckRow>,
}

/// Last question of the run to its user.
enum UserQuestion {
    Questions(Vec<TicketQuestion>),
    Change(CommitId),
    Plan(CommitId, Box<ChangePlan>),
}

/// Starts the run and follows it to its end. An interruption stops it.
pub(super) async fn work_on_text(
    client: &Client,
    ticket: &TicketKey,
    text: TextBody,
    shutdown: CancellationToken,
) -> anyhow::Result<AttendedRun> {
    let run: RunId = client.dispatch_text(ticket, &text).await?.run.parse()?;
    print_result(&format!("run {run}"));
    let mut events = pin!(client.follow(&run).await?);
    let mut visit = InteractiveVisit::new(client, run);
    let followed = visit.follow(&mut events);
    if let Some(followed) = shutdown.run_until_cancelled(Box::pin(followed)).await {
        followed?;
        return Ok(visit.outcome);
    }
    print_error("stopping");
    client.stop_run(&visit.run).await?;
    let rest = tokio::time::timeout(STOP_LIMIT, Box::pin(visit.follow(&mut events))).await;
    if rest.is_err() {
        print_error(&format!(
            "the run did not end within {} s: its services stop without it",
            STOP_LIMIT.as_secs()
        ));
    }
    // An interrupted run has no result, whatever its journal contains by now.
    visit.outcome.reason = None;
    Ok(visit.outcome)
}

struct InteractiveVisit<'a> {
    client: &'a Client,
    run: RunId,
    start: Option<Timestamp>,
    asked: Option<UserQuestion>,
    outcome: AttendedRun,
    /// Absent while the user types, because the display would overwrite the input.
    progress: Option<ProgressDisplay>,
}

impl<'a> InteractiveVisit<'a> {
    fn new(client: &'a Client, run: RunId) -> Self {
        Self {
            client,
            run,
            start: None,
            asked: None,
            outcome: AttendedRun::default(),
            progress: Some(ProgressDisplay::spinner()),
        }
    }

    /// Prints the journal live, up to the end of the run.
    async fn follow(
        &mut self,
        events: &mut (impl Stream<Item = Result<JournalEntry, api::Error>> + Unpin),
    ) -> anyhow::Result<()> {
        while let Some(entry) = events.try_next().await? {
            let start = *self.start.get_or_insert(entry.at);
            if let Some(line) = timeline::render_entry_line(&entry, start) {
                print_result(&line);
            }
            self.show(&entry.fact);
            if let Fact::Parked { waits_for } = entry.fact {
                self.attend(waits_for).await?;
            } else {
                self.note(entry.fact);
            }
            if self.outcome.reason.is_some() {
                return Ok(());
            }
        }
        anyhow::bail!("the live journal ended before the run did")
    }

    /// Shows the current activity of the run, and its cost so far.
    fn show(&self, fact: &Fact) {
        if let (Some(doing), Some(progress)) = (name_operation(fact), &self.progress) {
            let cost = timeline::format_dollars(self.outcome.replies.spend.cost_usd.micros());
            progress.now(&format!("{cost}  {doing}"));
        }
    }

    fn note(&mut self, fact: Fact) {
        if let Some(charge) = fact.charge() {
            self.outcome.replies.add(charge.reply);
        } else if let Fact::ReportRequested { request, .. } = fact {
            self.note_request(request);
        } else if let Fact::ReportSettled {
            outcome: OutboundOutcome::Done(receipt),
            ..
        } = fact
        {
            match receipt {
                OutboundReceipt::Pushed { branch, .. } => self.outcome.branch = Some(branch),
                OutboundReceipt::PullRequestOpened(opened) => self.outcome.patch = Some(opened.url.into()),
                OutboundReceipt::DecisionAsked { .. }
                | OutboundReceipt::Told
                | OutboundReceipt::Rehearsed { .. } => {}
            }
        } else if let Fact::PhaseFinished {
            output: PhaseOutput::Prove { proof },
        } = fact
        {
            self.outcome.checks = proof.rows;
        } else if let Fact::RunFinished { reason } = fact {
            self.outcome.reason = Some(reason);
        }
    }

    fn note_request(&mut self, request: OutboundAction) {
        if let OutboundAction::QuestionAsked(report::QuestionAsked { questions }) = request {
            self.asked = Some(UserQuestion::Questions(questions));
        } else if let OutboundAction::DecisionNeeded(proposal) = request {
            self.asked = Some(UserQuestion::Change(proposal.push.head));
        } else if let OutboundAction::PlanProposed(report::PlanProposed { id, plan, .. }) = request {
            self.asked = Some(UserQuestion::Plan(id, plan));
        }
    }

    /// Gives the run the input that it waits for, or stops it without a terminal.
    async fn attend(&mut self, waits_for: WaitCondition) -> anyhow::Result<()> {
        let asked = match waits_for {
            WaitCondition::Decision | WaitCondition::Answer => self.asked.take(),
            WaitCondition::Report | WaitCondition::Retry | WaitCondition::Slot => None,
        };
        // A run that waits for a report, a retry or a slot continues without the user.
        let Some(asked) = asked else { return Ok(()) };
        self.progress = None;
        let is_answered = match asked {
            UserQuestion::Questions(questions) => self.answer(&questions).await?,
            UserQuestion::Change(head) => {
                print_result(&self.client.diff(&self.run).await?);
                self.decide("change", &head).await?
            }
            UserQuestion::Plan(id, plan) => {
                print_result(&timeline::render_plan(&plan));
                self.decide("plan", &id).await?
            }
        };
        if !is_answered {
            self.outcome.is_unanswered = true;
            // The services end with this command, so no later answer can reach the run.
            self.client.stop_run(&self.run).await?;
        }
        self.progress = Some(ProgressDisplay::spinner());
        Ok(())
    }

    async fn answer(&self, questions: &[TicketQuestion]) -> anyhow::Result<bool> {
        let mut answers = Vec::new();
        for question in questions {
            print_result(&format!("question: {}", question.text));
            for (number, option) in (1..).zip(&question.options) {
                print_result(&format!("  {number}. {option}"));
            }
            let wanted = match question.options.is_empty() {
                true => "your answer:",
                false => "your answer, or the number of an option:",
            };
            print_result(wanted);
            let Some(line) = read_user_line().await? else {
                print_error("nobody is there to answer: use a terminal, or write the answer into the text");
                return Ok(false);
            };
            answers.push(format!("{}\n{}", question.text, resolve_option(question, &line)));
        }
        self.client
            .comment(self.run.ticket(), &answers.join("\n\n"))
            .await?;
        Ok(true)
    }

    async fn decide(&self, what: &str, head: &CommitId) -> anyhow::Result<bool> {
        print_result(&format!(
            "this {what} needs your approval: yes, no, or what to do differently"
        ));
        let Some(line) = read_user_line().await? else {
            print_error(&format!("nobody is there to approve the {what}: use a terminal"));
            return Ok(false);
        };
        let (verdict, feedback) = match line.to_lowercase().as_str() {
            "yes" | "y" => (DecisionVerdict::Approve, ""),
            // An empty line rejects, because an approval must be explicit.
            "no" | "n" | "" => (DecisionVerdict::Reject, ""),
            _ => (DecisionVerdict::Revise, line.as_str()),
        };
        let head = head.as_str();
        self.client.decide(&self.run, verdict, head, feedback).await?;
        Ok(true)
    }
}

/// Names the operation that a fact starts; `None` when it starts none.
fn name_operation(fact: &Fact) -> Option<&str> {
    match fact {
        Fact::ModelRequested { .. } | Fact::SummaryRequested { .. } => Some("the model"),
        Fact::ToolRequested { call, .. } => Some(&call.name),
        Fact::CheckRequested { check, .. } => Some(&check.command),
        Fact::WorkspaceRequested { .. } => Some("the workspace"),
        Fact::RunStarted { .. }
        | Fact::TakenOver { .. }
        | Fact::WorkspaceOpened { .. }
        | Fact::WorkspaceFailed { .. }
        | Fact::WorkspaceRestored { .. }
        | Fact::WentBack { .. }
        | Fact::LimitsSet { .. }
        | Fact::ModelReplied { .. }
        | Fact::ModelFailed { .. }
        | Fact::BudgetRefused { .. }
        | Fact::ToolFinished { .. }
        | Fact::CodeFound { .. }
        | Fact::EffortForecast { .. }
        | Fact::ChecksFound { .. }
        | Fact::CheckRan { .. }
        | Fact::ChangeInspected { .. }
        | Fact::PhaseFinished { .. }
        | Fact::ContextCleared { .. }
        | Fact::Summarized { .. }
        | Fact::SummaryFailed { .. }
        | Fact::ClassRaised { .. }
        | Fact::Returned { .. }
        | Fact::HeadMoved { .. }
        | Fact::SnapshotTaken { .. }
        | Fact::SnapshotFailed { .. }
        | Fact::ReportRequested { .. }
        | Fact::ReportSettled { .. }
        | Fact::Parked { .. }
        | Fact::RetryScheduled { .. }
        | Fact::Retried { .. }
        | Fact::Decided { .. }
        | Fact::StopRequested { .. }
        | Fact::NewsArrived { .. }
        | Fact::Hinted { .. }
        | Fact::RunFinished { .. } => None,
    }
}

/// Option of this number, or the text itself.
fn resolve_option<'a>(question: &'a TicketQuestion, line: &'a str) -> &'a str {
    let number: Option<usize> = line.parse().ok();
    let option = number.and_then(|number| question.options.get(number.checked_sub(1)?));
    option.map_or(line, String::as_str)
}

/// Line from the user; `None` without a terminal or at the end of the input. The reading thread may outlive the work: it
/// ends with the process.
async fn read_user_line() -> anyhow::Result<Option<String>> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        let bytes = stdin.lock().read_line(&mut line)?;
        Ok::<_, std::io::Error>((bytes > 0).then(|| line.trim().to_owned()))
    });
    Ok(read.await??)
}
