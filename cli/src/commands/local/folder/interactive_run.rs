//! Follows a run in a folder, and lets the user at the terminal answer its questions.

use std::{path::PathBuf, pin::pin, time::Duration};

use api::{Client, types::TextBody};
use domain::{
    ChangePlan, ChangeProof, ChangedFileSize, CheckRow, CommitId, Fact, JournalEntry, OutboundAction,
    OutboundOutcome, OutboundReceipt, PhaseOutput, RunId, SpendSum, StopReason, TicketKey, TicketQuestion,
    Timestamp, WaitCondition, report,
};
use futures::{Stream, TryStreamExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    super::{print_error, print_json, print_result, print_styled, progress::ProgressDisplay, prompt},
    brief_view::{BriefView, describe_activity},
    questions::{UserAnswer, UserQuestion},
};
use crate::timeline;

// Time limit for a stopped run to end.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Form in which a run is shown while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunViewForm {
    /// A line for each event that matters to the user.
    Brief,
    /// The timeline of the whole journal.
    Timeline,
    /// The entries of the journal as JSON; standard output has nothing else.
    Entries,
}

impl RunViewForm {
    /// Prints a line for people.
    pub(super) fn print_note(self, line: &str) {
        match self {
            Self::Brief | Self::Timeline => print_result(line),
            Self::Entries => print_error(line),
        }
    }
}

/// Result of a run.
#[derive(Debug, Default)]
pub(super) struct AttendedRun {
    /// Stop reason; absent after an interruption.
    pub(super) reason: Option<StopReason>,
    /// Lines of the question that the user did not answer; empty: the run asked none.
    pub(super) unanswered: Vec<String>,
    /// True when the input of the terminal ended at this question.
    pub(super) has_input_ended: bool,
    /// Title of the change.
    pub(super) title: Option<String>,
    /// Files of the change with their lines.
    pub(super) changed: Vec<ChangedFileSize>,
    /// Last evidence for the change.
    pub(super) proof: Option<Box<ChangeProof>>,
    /// Branch with the change.
    pub(super) branch: Option<String>,
    /// Path of the patch.
    pub(super) patch: Option<PathBuf>,
    /// Number and cost of the model's replies.
    pub(super) replies: SpendSum,
    /// Time from the first to the last entry of the journal, in milliseconds.
    pub(super) duration_ms: u64,
}

impl AttendedRun {
    /// Last results of the checks.
    pub(super) fn checks(&self) -> &[CheckRow] {
        self.proof.as_ref().map_or(&[][..], |proof| proof.rows.as_slice())
    }
}

/// Last request of the run to its user.
enum PendingRequest {
    /// Answers to questions of the model.
    Questions(Vec<TicketQuestion>),
    /// Approval of the change up to a head.
    Change(CommitId),
    /// Approval of a plan by its id.
    Plan(CommitId, Box<ChangePlan>),
}

/// Starts the run and follows it to its end. An interruption stops it.
pub(super) async fn work_on_text(
    client: &Client,
    ticket: &TicketKey,
    text: TextBody,
    form: RunViewForm,
    shutdown: CancellationToken,
) -> anyhow::Result<AttendedRun> {
    let run: RunId = client.jobs().dispatch_text(ticket, &text).await?.run.parse()?;
    if form == RunViewForm::Timeline {
        print_result(&format!("run {run}"));
    }
    let mut events = pin!(client.runs().follow(&run).await?);
    let mut follower = InteractiveFollower::new(client, run, form);
    let followed = follower.follow(&mut events);
    if let Some(followed) = shutdown.run_until_cancelled(Box::pin(followed)).await {
        followed?;
        return Ok(follower.outcome);
    }
    print_error("stopping");
    client.runs().stop(&follower.run).await?;
    let rest = tokio::time::timeout(STOP_LIMIT, Box::pin(follower.follow(&mut events))).await;
    if rest.is_err() {
        print_error(&format!(
            "the run did not end within {} s: its services stop without it",
            STOP_LIMIT.as_secs()
        ));
    }
    // An interrupted run has no result, whatever its journal contains by now.
    follower.outcome.reason = None;
    Ok(follower.outcome)
}

/// Follows a run, prints it and answers its requests with the user.
struct InteractiveFollower<'a> {
    client: &'a Client,
    run: RunId,
    form: RunViewForm,
    brief: BriefView,
    /// Start of the display, by the clock of this process.
    begun: Instant,
    /// Time of the first entry.
    start: Option<Timestamp>,
    /// Last request of the run that is not answered yet.
    pending: Option<PendingRequest>,
    outcome: AttendedRun,
    /// Absent while the user types, because the display would overwrite the input.
    progress: Option<ProgressDisplay>,
}

impl<'a> InteractiveFollower<'a> {
    fn new(client: &'a Client, run: RunId, form: RunViewForm) -> Self {
        Self {
            client,
            run,
            form,
            brief: BriefView::default(),
            begun: Instant::now(),
            start: None,
            pending: None,
            outcome: AttendedRun::default(),
            progress: Some(ProgressDisplay::spinner(Duration::ZERO)),
        }
    }

    /// Prints the journal live, up to the end of the run.
    async fn follow(
        &mut self,
        events: &mut (impl Stream<Item = Result<JournalEntry, api::Error>> + Unpin),
    ) -> anyhow::Result<()> {
        while let Some(entry) = events.try_next().await? {
            self.print_entry(&entry)?;
            self.show_activity(&entry.fact);
            if let Fact::Parked { waits_for } = entry.fact {
                self.answer_wait(waits_for).await?;
            } else {
                self.record_fact(entry.fact);
            }
            if self.outcome.reason.is_some() {
                return Ok(());
            }
        }
        anyhow::bail!("the live journal ended before the run did")
    }

    fn print_entry(&mut self, entry: &JournalEntry) -> anyhow::Result<()> {
        let start = *self.start.get_or_insert(entry.at);
        let elapsed_ms = entry.at.unix_ms() - start.unix_ms();
        self.outcome.duration_ms = u64::try_from(elapsed_ms).unwrap_or_default();
        match self.form {
            RunViewForm::Brief => self.brief.next_lines(entry).iter().for_each(print_styled),
            RunViewForm::Timeline => timeline::render_entry_line(entry, start)
                .iter()
                .for_each(|line| print_result(line)),
            RunViewForm::Entries => print_json(entry)?,
        }
        Ok(())
    }

    /// Shows the current activity of the run, and its cost so far.
    fn show_activity(&self, fact: &Fact) {
        if let (Some(doing), Some(progress)) = (describe_activity(fact), &self.progress) {
            let cost = timeline::format_dollars(self.outcome.replies.spend.cost_usd.micros());
            progress.show_activity(&format!("{cost}  {doing}"));
        }
    }

    fn record_fact(&mut self, fact: Fact) {
        if let Some(charge) = fact.charge() {
            self.outcome.replies.add(charge.reply);
        } else if let Fact::ReportRequested { request, .. } = fact {
            self.record_request(request);
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
                | OutboundReceipt::Started { .. }
                | OutboundReceipt::Rehearsed { .. } => {}
            }
        } else if let Fact::ChangeInspected { report: Some(report) } = fact {
            self.outcome.changed = report.changed;
        } else if let Fact::PhaseFinished {
            output: PhaseOutput::Prove { proof },
        } = fact
        {
            self.outcome.proof = Some(proof);
        } else if let Fact::RunFinished { reason } = fact {
            self.outcome.reason = Some(reason);
        }
    }

    fn record_request(&mut self, request: OutboundAction) {
        if let OutboundAction::QuestionAsked(report::QuestionAsked { questions }) = request {
            self.pending = Some(PendingRequest::Questions(questions));
        } else if let OutboundAction::DecisionNeeded(proposal) = request {
            self.pending = Some(PendingRequest::Change(proposal.push.head));
        } else if let OutboundAction::PlanProposed(report::PlanProposed { id, plan, .. }) = request {
            self.pending = Some(PendingRequest::Plan(id, plan));
        } else if let OutboundAction::OpenPullRequest(opening) = request {
            self.outcome.title = Some(opening.title);
        }
    }

    /// Gives the run the input that it waits for, or stops it without a terminal.
    async fn answer_wait(&mut self, waits_for: WaitCondition) -> anyhow::Result<()> {
        let pending = match waits_for {
            WaitCondition::Decision | WaitCondition::Answer => self.pending.take(),
            WaitCondition::Report | WaitCondition::Retry | WaitCondition::Slot => None,
        };
        // A run that waits for a report, a retry or a slot continues without the user.
        let Some(pending) = pending else { return Ok(()) };
        self.progress = None;
        let question = match pending {
            PendingRequest::Questions(questions) => UserQuestion::Questions(questions),
            PendingRequest::Change(head) => {
                UserQuestion::Change(head, self.client.runs().diff_text(&self.run).await?)
            }
            PendingRequest::Plan(id, plan) => UserQuestion::Plan(id, plan),
        };
        let answer = question.ask().await?;
        self.outcome.has_input_ended = answer.is_none() && prompt::can_ask();
        match answer {
            Some(UserAnswer::Comment(text)) => {
                self.client.tickets().comment(self.run.ticket(), &text).await?;
            }
            Some(UserAnswer::Decision(head, verdict, feedback)) => {
                let head = head.as_str();
                self.client
                    .runs()
                    .decide(&self.run, verdict, head, &feedback)
                    .await?;
            }
            None => {
                self.outcome.unanswered = question.lines();
                // The services end with this command, so no later answer can reach the run.
                self.client.runs().stop(&self.run).await?;
            }
        }
        self.progress = Some(ProgressDisplay::spinner(self.begun.elapsed()));
        Ok(())
    }
}
