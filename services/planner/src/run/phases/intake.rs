//! Triages a ticket before the work: its kind, its size, and whether the work can begin. The model replies
//! in a fixed form.

use domain::{
    AcceptanceCriterion, GiveUp, IntakeDecision, JobRequest, ModelReply, ModelRole, ModuleNote,
    OutboundAction, OutboundOutcome, PhaseOutput, RunPhase, StopReason, TicketBackground, TicketIntake,
    TicketKind, TicketQuestion, TicketText, WaitCondition, WorkClass, acceptance_criteria, report,
    text::normalize_text,
};
use serde::Deserialize;

use super::conversation_loop::{ConversationProgress, advance_conversation, postpone_run};
use crate::run::machine::{
    ArgumentProblem, DialogSpec, PhaseResult, PhaseSpec, PlannerRunState, ReplyForm, RunStep, await_report,
    park_run, record_turn, request_report,
};
use crate::run::tools::{self, LINES, exits, is_about};
use crate::transcript::read_structured;

// Attempts of the model: one reply, and one correction.
const TRIES: usize = 2;
const LINE_CHARS: usize = 300;
const REASON_CHARS: std::ops::RangeInclusive<usize> = 10..=2_000;

const DIALOG: DialogSpec = DialogSpec {
    output: Some(ReplyForm {
        name: "intake",
        problem: intake_problem,
    }),
    ..DialogSpec::new(RunPhase::Intake, ModelRole::Fast, &[])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let is_wanted = state.request().is_some_and(|request| request.rules.agent.intake);
    match state.outputs().intake() {
        PhaseResult::Present(intake) => follow_decision(state, &intake.decision),
        PhaseResult::Missing => RunStep::Over,
        // A former release began the work without a triage.
        PhaseResult::Pending if !is_wanted || state.conversation().is_at_work() => RunStep::Over,
        PhaseResult::Pending => request_intake(state),
    }
}

fn request_intake(state: &PlannerRunState) -> RunStep {
    match advance_conversation(state, &DIALOG) {
        ConversationProgress::Step(step) => return step,
        ConversationProgress::Refused(reason) => return postpone_run(reason),
        ConversationProgress::Full => return finish_phase(None),
        ConversationProgress::Answered | ConversationProgress::Silent(_) => {}
    }
    let turns = DIALOG.turns(state);
    let reply = turns.last().and_then(|turn| turn.reply.as_ref());
    match reply.map(|reply| read_reply(state, reply)) {
        Some(Ok(intake)) => finish_phase(Some(intake)),
        Some(Err(_)) if turns.len() < TRIES => record_turn(state, &DIALOG).into(),
        Some(Err(_)) | None => finish_phase(None),
    }
}

/// Finishes the phase. After two unusable replies the work begins without a triage.
fn finish_phase(intake: Option<TicketIntake>) -> RunStep {
    PhaseOutput::Intake {
        intake: intake.map(Box::new),
    }
    .into()
}

fn read_reply(state: &PlannerRunState, reply: &ModelReply) -> Result<TicketIntake, ArgumentProblem> {
    let request = state.request().ok_or(ArgumentProblem::Decline)?;
    read_intake(reply, request)
}

fn intake_problem(state: &PlannerRunState, reply: &ModelReply) -> Option<ArgumentProblem> {
    read_reply(state, reply).err()
}

fn follow_decision(state: &PlannerRunState, decision: &IntakeDecision) -> RunStep {
    match decision {
        IntakeDecision::Go => RunStep::Over,
        IntakeDecision::Ask { questions } => ask_questions(state, questions),
        IntakeDecision::Decline { kind, reason } => decline_ticket(*kind, reason),
    }
}

fn decline_ticket(kind: GiveUp, reason: &str) -> RunStep {
    RunStep::Close(StopReason::GivenUp {
        kind,
        evidence: reason.to_owned(),
    })
}

/// Posts the questions on the ticket and waits for an answer.
fn ask_questions(state: &PlannerRunState, questions: &[TicketQuestion]) -> RunStep {
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::QuestionAsked(_));
    let Some(asked) = state.delivery().last_report(is_it) else {
        let questions = questions.to_vec();
        return request_report(
            state,
            OutboundAction::QuestionAsked(report::QuestionAsked { questions }),
            None,
        )
        .into();
    };
    // Only an answer after the triage's last turn belongs to the questions.
    let looks = DIALOG.turns(state).last().map_or(0, |turn| turn.after + 1);
    match &asked.outcome {
        Some(OutboundOutcome::Done(_)) if state.conversation().news().has_answer_since(looks) => {
            RunStep::Over
        }
        Some(OutboundOutcome::Done(_)) => park_run(state, WaitCondition::Answer).into(),
        // The work continues with the known facts.
        Some(OutboundOutcome::Refused(_)) => RunStep::Over,
        Some(OutboundOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitCondition::Report),
    }
}

/// Fields that the model fills in.
#[derive(Deserialize)]
struct IntakeForm {
    kind: TicketKind,
    one_liner: String,
    #[serde(default)]
    root_cause: String,
    #[serde(default)]
    criteria: Vec<AcceptanceCriterion>,
    #[serde(default)]
    components: Vec<String>,
    #[serde(default)]
    modules: Vec<ModuleNote>,
    #[serde(default)]
    files: Vec<String>,
    class: WorkClass,
    #[serde(default)]
    assumptions: Vec<String>,
    decision: DecisionWord,
    #[serde(default)]
    questions: Vec<TicketQuestion>,
    #[serde(default)]
    decline_kind: Option<GiveUp>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    repeats: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecisionWord {
    Go,
    Ask,
    Decline,
}

/// Reads a triage reply. The ticket's own criteria are added, even if the model omits them.
fn read_intake(reply: &ModelReply, request: &JobRequest) -> Result<TicketIntake, ArgumentProblem> {
    let text = &request.text;
    let form: IntakeForm = read_structured(reply).map_err(ArgumentProblem::Malformed)?;
    let one_liner = form.one_liner.trim();
    if !(5..=LINE_CHARS).contains(&one_liner.chars().count()) || one_liner.contains('\n') {
        return Err(ArgumentProblem::OneLiner);
    }
    let decision = match form.decision {
        DecisionWord::Go => IntakeDecision::Go,
        DecisionWord::Ask => IntakeDecision::Ask {
            questions: exits::check_questions(form.questions)?,
        },
        DecisionWord::Decline => check_decline(
            form.decline_kind,
            &form.reason,
            &form.repeats,
            &request.background,
        )?,
    };
    Ok(TicketIntake {
        kind: form.kind,
        one_liner: one_liner.to_owned(),
        root_cause: Some(truncate_line(&form.root_cause)).filter(|cause| !cause.is_empty()),
        criteria: merge_criteria(form.criteria, text)?,
        components: truncate_lines(form.components),
        modules: resolve_modules(form.modules, request)?,
        files: truncate_lines(form.files)
            .into_iter()
            .filter(|path| is_inside(path))
            .collect(),
        class: form.class,
        assumptions: truncate_lines(form.assumptions),
        decision,
    })
}

/// Resolves modules by their names in the rules; without rules for modules, they are folders.
fn resolve_modules(found: Vec<ModuleNote>, request: &JobRequest) -> Result<Vec<ModuleNote>, ArgumentProblem> {
    let known = &request.rules.modules;
    let is_known = |note: &ModuleNote| {
        if known.is_empty() {
            is_inside(&note.name)
        } else {
            known.iter().any(|module| module.name == note.name)
        }
    };
    // Refused only if the rules name modules; otherwise a folder outside of the repository is dropped
    // silently.
    if !known.is_empty() && !found.iter().all(is_known) {
        let known = known.iter().map(|module| module.name.clone()).collect();
        return Err(ArgumentProblem::UnknownModule { known });
    }
    let kept = found.into_iter().filter(is_known).take(LINES);
    let noted = kept.map(|note| ModuleNote {
        name: truncate_line(&note.name),
        why: truncate_line(&note.why).replace('\n', " "),
    });
    Ok(noted.collect())
}

fn check_decline(
    kind: Option<GiveUp>,
    reason: &str,
    repeats: &str,
    known: &TicketBackground,
) -> Result<IntakeDecision, ArgumentProblem> {
    let (reason, repeats) = (reason.trim(), repeats.trim());
    let is_fit = REASON_CHARS.contains(&reason.chars().count());
    let kind = kind.filter(|_| is_fit).ok_or(ArgumentProblem::Decline)?;
    let known = match kind {
        GiveUp::Duplicate => known.tickets().into_iter().map(str::to_owned).collect(),
        // The code is not checked yet, so only merged work counts.
        GiveUp::AlreadyDone => known.merged(),
        GiveUp::SpecContradictsTests
        | GiveUp::CannotReproduce
        | GiveUp::OutOfScope
        | GiveUp::Blocked
        | GiveUp::TooLarge => {
            let reason = reason.to_owned();
            return Ok(IntakeDecision::Decline { kind, reason });
        }
    };
    if known.iter().any(|name| name == repeats) {
        Ok(IntakeDecision::Decline {
            kind,
            reason: format!("{repeats}: {reason}"),
        })
    } else {
        Err(ArgumentProblem::Citation(known))
    }
}

/// Returns the ticket's own list first, then additional criteria from its text.
fn merge_criteria(
    found: Vec<AcceptanceCriterion>,
    text: &TicketText,
) -> Result<Vec<AcceptanceCriterion>, ArgumentProblem> {
    // A quotation proves that the criterion comes from the ticket, not from the model.
    let said = normalize_text(&instructing_text(text));
    if let Some(foreign) = found
        .iter()
        .find(|one| !said.contains(&normalize_text(&one.quote)))
    {
        return Err(ArgumentProblem::Quote(truncate_line(&foreign.quote)));
    }
    let listed = acceptance_criteria(&text.description);
    let is_testable = |quote: &str| {
        found
            .iter()
            .any(|one| one.testable && is_about(&one.quote, quote))
    };
    let mut all: Vec<AcceptanceCriterion> = listed
        .iter()
        .map(|quote| AcceptanceCriterion {
            testable: is_testable(quote),
            quote: quote.clone(),
        })
        .collect();
    let is_new = |one: &AcceptanceCriterion| !listed.iter().any(|quote| is_about(&one.quote, quote));
    all.extend(
        found
            .into_iter()
            .filter(|one| !normalize_text(&one.quote).is_empty() && is_new(one)),
    );
    all.truncate(LINES);
    Ok(all)
}

/// Returns the text of authors who may request work.
pub(super) fn instructing_text(text: &TicketText) -> String {
    let mut words = format!("{}\n{}", text.summary, text.description);
    for comment in text.comments.iter().filter(|comment| comment.may_instruct) {
        words.push('\n');
        words.push_str(&comment.text);
    }
    words
}

/// Returns true if a path is inside the repository, judged by its text alone.
fn is_inside(path: &str) -> bool {
    !path.starts_with('/')
        && !path.contains('\\')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn truncate_line(text: &str) -> String {
    tools::truncate_text(text, LINE_CHARS)
}

fn truncate_lines(all: Vec<String>) -> Vec<String> {
    tools::truncate_lines(all, LINE_CHARS)
}
