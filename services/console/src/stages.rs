//! Stages of a run: consecutive entries of its journal that serve one purpose, with the turns of the model in them.
//!
//! One fold places every entry, on a loaded page as well as on a page that follows the run.

use std::{
    fmt,
    ops::{Range, RangeBounds},
    str::FromStr,
};

use api::view::EntryView;
use domain::{CallId, Fact, JournalEntry, OutboundAction, RunPhase, Timestamp, check::CheckSpec};

/// Purpose of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StageKind {
    /// The run begins, or begins again on another commit.
    Start,
    /// A conversation with the model.
    Model(RunPhase),
    /// Checks of the change.
    Proof,
    /// Push and pull request.
    Delivery,
}

impl StageKind {
    /// All kinds, in the usual order of a run.
    pub(crate) const ALL: [Self; 11] = [
        Self::Start,
        Self::Model(RunPhase::Triage),
        Self::Model(RunPhase::Intake),
        Self::Model(RunPhase::Plan),
        Self::Model(RunPhase::Work),
        Self::Proof,
        Self::Model(RunPhase::Review),
        Self::Model(RunPhase::Answer),
        Self::Model(RunPhase::Discuss),
        Self::Model(RunPhase::PullRequest),
        Self::Delivery,
    ];

    /// The name in style sheets and addresses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Model(phase) => phase.as_str(),
            Self::Proof => "proof",
            Self::Delivery => "delivery",
        }
    }

    /// The title for people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Start => "Start",
            Self::Model(RunPhase::Work) => "Work",
            Self::Model(RunPhase::Triage) => "Triage",
            Self::Model(RunPhase::Intake) => "Assessment",
            Self::Model(RunPhase::Plan) => "Plan",
            Self::Model(RunPhase::Review) => "Review",
            Self::Model(RunPhase::Answer) => "Answer",
            Self::Model(RunPhase::Discuss) => "Discussion",
            Self::Model(RunPhase::PullRequest) => "Review of the pull request",
            Self::Proof => "Checks",
            Self::Delivery => "Delivery",
        }
    }
}

/// Returns the stage that a fact begins. Other facts continue the current one.
fn begun_stage(fact: &Fact) -> Option<StageKind> {
    if let Fact::ModelRequested { phase, .. } = fact {
        return Some(StageKind::Model(*phase));
    }
    if let Fact::ReportRequested { request, .. } = fact {
        return is_delivery(request).then_some(StageKind::Delivery);
    }
    if matches!(fact, Fact::CheckRequested { .. } | Fact::ChangeInspected { .. }) {
        return Some(StageKind::Proof);
    }
    matches!(fact, Fact::RunStarted { .. } | Fact::HeadMoved { .. }).then_some(StageKind::Start)
}

fn is_delivery(request: &OutboundAction) -> bool {
    request.push().is_some() || matches!(request, OutboundAction::OpenPullRequest(_))
}

/// Returns true for a fact that is a part of the model's turn. Others, such as decisions of people, end the turn, so
/// that a folded turn never hides them.
const fn is_of_turn(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::ModelRequested { .. }
            | Fact::ModelReplied { .. }
            | Fact::ToolRequested { .. }
            | Fact::ToolFinished { .. }
            | Fact::Hinted { .. }
            | Fact::SnapshotTaken { .. }
            | Fact::McpToolsListed { .. }
            | Fact::CodeFound { .. }
    )
}

/// Place of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPlace {
    /// Number of its stage, from 1.
    pub(crate) stage: u32,
    /// Purpose of its stage.
    pub(crate) kind: StageKind,
    /// True if the stage begins with the entry.
    pub(crate) begins_stage: bool,
    /// Position of the entry that began its turn; absent: it is in no turn.
    pub(crate) turn: Option<u64>,
}

/// State of the fold after an entry. Its text form is an event's id, from which a browser continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimelineCursor {
    /// Position of the last entry; absent before the first one.
    pub(crate) last: Option<u64>,
    stage: u32,
    kind: StageKind,
    turn: Option<u64>,
    /// Position of the entry that began the current step; absent: none is known.
    pub(crate) step: Option<u64>,
}

impl Default for TimelineCursor {
    fn default() -> Self {
        Self {
            last: None,
            stage: 0,
            kind: StageKind::Start,
            turn: None,
            step: None,
        }
    }
}

impl TimelineCursor {
    /// Returns true if the last entry is in a stage of checks.
    pub(crate) fn is_in_checks(&self) -> bool {
        self.kind == StageKind::Proof
    }

    /// Returns the cursor with the current one of these steps.
    pub(crate) fn with_step(self, steps: &CurrentSteps) -> Self {
        let step = steps.current().map(|step| step.position);
        Self { step, ..self }
    }

    /// Places the next entry.
    pub(crate) fn place(&mut self, entry: &JournalEntry) -> EntryPlace {
        let begun = begun_stage(&entry.fact);
        let begins_stage =
            self.stage == 0 || begun.is_some_and(|kind| kind == StageKind::Start || kind != self.kind);
        if begins_stage {
            // The number may come from an address, so it may be any.
            self.stage = self.stage.saturating_add(1);
            self.kind = begun.unwrap_or(StageKind::Start);
            self.turn = None;
        }
        if let Fact::ModelRequested { .. } = entry.fact {
            self.turn = Some(entry.position);
        } else if !is_of_turn(&entry.fact) {
            self.turn = None;
        }
        self.last = Some(entry.position);
        EntryPlace {
            stage: self.stage,
            kind: self.kind,
            begins_stage,
            turn: self.turn,
        }
    }
}

impl fmt::Display for TimelineCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<u64>| value.map_or_else(|| "x".to_owned(), |value| value.to_string());
        let (last, turn, step) = (number(self.last), number(self.turn), number(self.step));
        write!(f, "{last}-{}-{}-{turn}-{step}", self.stage, self.kind.name())
    }
}

/// Error for a text that is not a cursor of this release.
#[derive(Debug)]
pub(crate) struct InvalidCursor;

impl FromStr for TimelineCursor {
    type Err = InvalidCursor;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| match text {
            "x" => Ok(None),
            number => number.parse().map(Some).map_err(|_| InvalidCursor),
        };
        let parts: Vec<&str> = text.split('-').collect();
        let [last, stage, kind, turn, step] = parts.as_slice() else {
            return Err(InvalidCursor);
        };
        let kind = StageKind::ALL.into_iter().find(|known| known.name() == *kind);
        Ok(Self {
            last: number(last)?,
            stage: stage.parse().map_err(|_| InvalidCursor)?,
            kind: kind.ok_or(InvalidCursor)?,
            turn: number(turn)?,
            step: number(step)?,
        })
    }
}

/// Stage with its listed entries.
#[derive(Debug)]
pub(crate) struct RunStage<'a> {
    pub(crate) number: u32,
    pub(crate) kind: StageKind,
    /// Time of its first entry.
    pub(crate) start: Timestamp,
    /// Time of its last entry.
    pub(crate) end: Timestamp,
    /// Indexes of all its entries, listed or not.
    pub(crate) entries: Range<usize>,
    pub(crate) parts: Vec<StagePart<'a>>,
}

/// Part of a stage, in the order of its first entries.
#[derive(Debug)]
pub(crate) enum StagePart<'a> {
    Entry(&'a JournalEntry),
    /// Turn of the model with its tools.
    Turn(TurnEntries<'a>),
    /// All attempts of one check in the stage.
    Check(CheckAttempts<'a>),
}

/// Listed entries of one turn.
#[derive(Debug)]
pub(crate) struct TurnEntries<'a> {
    /// Position of the entry that began the turn. The list lacks it if earlier entries are left out.
    pub(crate) start: u64,
    pub(crate) entries: Vec<&'a JournalEntry>,
}

/// Attempts of one check on one tree.
#[derive(Debug)]
pub(crate) struct CheckAttempts<'a> {
    pub(crate) check: &'a CheckSpec,
    /// Requests and results, in order.
    pub(crate) entries: Vec<&'a JournalEntry>,
}

impl CheckAttempts<'_> {
    fn is_about(&self, check: &CheckSpec) -> bool {
        let (known, other) = (self.check, check);
        known.command == other.command && known.directory == other.directory && known.tree == other.tree
    }

    /// Returns true if these attempts requested the check with this id.
    fn has_requested(&self, id: &CallId) -> bool {
        let is_request = |entry: &&JournalEntry| matches!(&entry.fact, Fact::CheckRequested { id: asked, .. } if asked == id);
        self.entries.iter().any(is_request)
    }

    fn has_entry(&self, position: u64) -> bool {
        self.entries.iter().any(|entry| entry.position == position)
    }

    /// The name of the row on the page: the position of its first entry.
    pub(crate) fn anchor(&self) -> String {
        let first = self.entries.first().map_or(0, |entry| entry.position);
        format!("check-{first}")
    }
}

/// Divides a journal into stages. All entries count for the division; those with the indexes `shown` are listed. The
/// cursor has no step.
pub(crate) fn list_stages(
    journal: &[JournalEntry],
    shown: impl RangeBounds<usize>,
) -> (Vec<RunStage<'_>>, TimelineCursor) {
    let mut cursor = TimelineCursor::default();
    let mut stages: Vec<RunStage<'_>> = Vec::new();
    for (index, entry) in journal.iter().enumerate() {
        let place = cursor.place(entry);
        if place.begins_stage {
            stages.push(RunStage {
                number: place.stage,
                kind: place.kind,
                start: entry.at,
                end: entry.at,
                entries: index..index,
                parts: Vec::new(),
            });
        }
        if let Some(stage) = stages.last_mut() {
            stage.end = entry.at;
            stage.entries.end = index + 1;
            if shown.contains(&index) {
                add_entry(&mut stage.parts, entry, place.turn);
            }
        }
    }
    (stages, cursor)
}

/// Adds an entry to the part of a stage that it continues, or as the next part.
fn add_entry<'a>(parts: &mut Vec<StagePart<'a>>, entry: &'a JournalEntry, turn: Option<u64>) {
    if let Fact::CheckRequested { check, .. } = &entry.fact {
        return add_check(parts, entry, check);
    }
    if let Fact::CheckRan { id, .. } = &entry.fact
        && let Some(attempts) = list_attempts(parts).find(|known| known.has_requested(id))
    {
        return attempts.entries.push(entry);
    }
    match (turn, parts.last_mut()) {
        (Some(start), Some(StagePart::Turn(turn))) if turn.start == start => turn.entries.push(entry),
        (Some(start), _) => {
            let entries = vec![entry];
            parts.push(StagePart::Turn(TurnEntries { start, entries }));
        }
        (None, _) => parts.push(StagePart::Entry(entry)),
    }
}

fn add_check<'a>(parts: &mut Vec<StagePart<'a>>, entry: &'a JournalEntry, check: &'a CheckSpec) {
    if let Some(attempts) = list_attempts(parts).find(|known| known.is_about(check)) {
        return attempts.entries.push(entry);
    }
    let entries = vec![entry];
    parts.push(StagePart::Check(CheckAttempts { check, entries }));
}

fn list_attempts<'p, 'a>(parts: &'p mut [StagePart<'a>]) -> impl Iterator<Item = &'p mut CheckAttempts<'a>> {
    parts.iter_mut().filter_map(|part| match part {
        StagePart::Check(attempts) => Some(attempts),
        StagePart::Entry(_) | StagePart::Turn(_) => None,
    })
}

/// Requests and results of the checks of the current stage, for a page that follows the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageChecks(Vec<JournalEntry>);

impl StageChecks {
    /// Takes the checks of the last stage from consecutive entries.
    pub(crate) fn of(entries: &[JournalEntry]) -> Self {
        let (mut cursor, mut checks) = (TimelineCursor::default(), Self::default());
        for entry in entries {
            checks.push(entry, cursor.place(entry));
        }
        checks
    }

    /// Adds the next entry.
    pub(crate) fn push(&mut self, entry: &JournalEntry, place: EntryPlace) {
        if place.begins_stage {
            self.0.clear();
        }
        if matches!(entry.fact, Fact::CheckRequested { .. } | Fact::CheckRan { .. }) {
            self.0.push(entry.clone());
        }
    }

    /// Returns the attempts of the check that the entry at this position belongs to; `None` for another entry.
    pub(crate) fn find_attempts(&self, position: u64) -> Option<CheckAttempts<'_>> {
        let mut parts = Vec::new();
        self.0.iter().for_each(|entry| add_entry(&mut parts, entry, None));
        parts.into_iter().find_map(|part| match part {
            StagePart::Check(attempts) if attempts.has_entry(position) => Some(attempts),
            StagePart::Check(_) | StagePart::Entry(_) | StagePart::Turn(_) => None,
        })
    }
}

/// Returns true for an event through which a parked run stays parked. Every other event ends the wait.
pub(crate) const fn is_within_wait(fact: &Fact) -> bool {
    matches!(fact, Fact::NewsArrived { .. } | Fact::TakenOver { .. })
}

/// Step that a run performs now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CurrentStep {
    /// Position of the entry that began it.
    pub(crate) position: u64,
    pub(crate) since: Timestamp,
    /// Id of its call; empty for a wait.
    pub(crate) call: String,
    pub(crate) words: String,
}

/// Steps of a run without a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentSteps(Vec<CurrentStep>);

impl CurrentSteps {
    /// Folds a journal.
    pub(crate) fn of(journal: &[JournalEntry]) -> Self {
        let mut steps = Self::default();
        journal.iter().for_each(|entry| steps.apply(entry));
        steps
    }

    /// Returns the step that began last.
    pub(crate) fn current(&self) -> Option<&CurrentStep> {
        self.0.last()
    }

    /// Folds the next entry.
    pub(crate) fn apply(&mut self, entry: &JournalEntry) {
        if let Some(done) = settled_call(&entry.fact) {
            self.0.retain(|step| step.call != done);
        }
        // A run that waits performs nothing else.
        if !is_within_wait(&entry.fact) {
            self.0.retain(|step| !step.call.is_empty());
        }
        if matches!(
            entry.fact,
            Fact::RunFinished { .. } | Fact::Parked { .. } | Fact::WorkspaceRestored { .. }
        ) {
            self.0.clear();
        }
        self.0.extend(begun_step(entry));
    }
}

/// Returns the step that an entry begins.
fn begun_step(entry: &JournalEntry) -> Option<CurrentStep> {
    let call = match requested_call(&entry.fact) {
        Some(call) => call,
        None if matches!(entry.fact, Fact::Parked { .. }) => "",
        None => return None,
    };
    let head = EntryView::from(entry).head;
    let is_model = matches!(entry.fact, Fact::ModelRequested { .. });
    Some(CurrentStep {
        position: entry.position,
        since: entry.at,
        call: call.to_owned(),
        words: if is_model {
            format!("the model, {head}")
        } else {
            head
        },
    })
}

/// Returns the id of the call that a fact requests.
fn requested_call(fact: &Fact) -> Option<&str> {
    if let Fact::ToolRequested { id, .. }
    | Fact::CheckRequested { id, .. }
    | Fact::ModelRequested { id, .. }
    | Fact::SummaryRequested { id, .. }
    | Fact::WorkspaceRequested { id, .. } = fact
    {
        return Some(id.as_str());
    }
    if let Fact::ReportRequested { id, .. } = fact {
        return Some(id.as_str());
    }
    None
}

/// Returns the id of the call that a fact settles.
fn settled_call(fact: &Fact) -> Option<&str> {
    if let Fact::ToolFinished { id, .. }
    | Fact::CheckRan { id, .. }
    | Fact::ModelReplied { id, .. }
    | Fact::ModelFailed { id, .. }
    | Fact::BudgetRefused { id, .. }
    | Fact::Summarized { id, .. }
    | Fact::SummaryFailed { id, .. }
    | Fact::WorkspaceOpened { id, .. }
    | Fact::WorkspaceFailed { id, .. } = fact
    {
        return Some(id.as_str());
    }
    if let Fact::ReportSettled { id, .. } = fact {
        return Some(id.as_str());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_journal::{build_entry, build_run_id, build_run_journal, push_fact, push_turn};

    #[test]
    fn stages_follow_phases_checks_and_delivery() {
        let journal = build_run_journal();
        let (stages, cursor) = list_stages(&journal, ..);
        let kinds: Vec<&str> = stages.iter().map(|stage| stage.kind.name()).collect();
        assert_eq!(kinds, ["start", "work", "proof", "delivery"]);
        let turns = stages[1].parts.iter();
        let turns = turns.filter(|part| matches!(part, StagePart::Turn(turn) if turn.entries.len() == 4));
        assert_eq!(turns.count(), 2);
        assert!(matches!(stages[1].parts.last(), Some(StagePart::Entry(_))));
        assert!(matches!(&stages[2].parts[0], StagePart::Check(check) if check.entries.len() == 4));
        let cursor = cursor.with_step(&CurrentSteps::of(&journal));
        assert_eq!((cursor.last, cursor.step), (Some(17), None));
    }

    #[test]
    fn returned_work_is_another_stage() {
        let mut journal = build_run_journal();
        journal.truncate(15);
        push_turn(&mut journal, 3, "edit_file", domain::ToolResult::ok("Edited"));
        let (stages, _) = list_stages(&journal, ..);
        let kinds: Vec<&str> = stages.iter().map(|stage| stage.kind.name()).collect();
        assert_eq!(kinds, ["start", "work", "proof", "work"]);
    }

    #[test]
    fn omitted_entries_still_count_as_stages() {
        let journal = build_run_journal();
        let (stages, _) = list_stages(&journal, 7..16);
        assert_eq!(stages.len(), 4);
        assert!(stages[0].parts.is_empty());
        let entries: Vec<_> = stages.iter().map(|stage| stage.entries.clone()).collect();
        assert_eq!(entries, [0..1, 1..10, 10..15, 15..18]);
        assert!(
            matches!(stages[3].parts.as_slice(), [StagePart::Entry(entry)] if entry.position == 15),
            "{:?}",
            stages[3]
        );
        let first = &stages[1].parts[0];
        assert!(
            matches!(first, StagePart::Turn(turn) if turn.start == 5 && turn.entries.len() == 2),
            "{first:?}"
        );
    }

    #[test]
    fn decision_ends_folded_turn() {
        let mut journal = build_run_journal();
        journal.truncate(4);
        push_fact(&mut journal, Fact::StopRequested { by: "ada".to_owned() });
        let (stages, _) = list_stages(&journal, ..);
        assert!(
            matches!(stages[1].parts.last(), Some(StagePart::Entry(_))),
            "{stages:?}"
        );
    }

    #[test]
    fn cursor_continues_like_whole_journal() {
        let journal = build_run_journal();
        for split in 0..journal.len() {
            let (_, cursor) = list_stages(&journal[..split], ..);
            let cursor = cursor.with_step(&CurrentSteps::of(&journal[..split]));
            let mut continued: TimelineCursor = cursor.to_string().parse().unwrap();
            assert_eq!(continued, cursor, "{split}");
            let mut whole = cursor;
            for entry in &journal[split..] {
                assert_eq!(continued.place(entry), whole.place(entry));
            }
        }
        let mut last: TimelineCursor = format!("1-{}-start-x-x", u32::MAX).parse().unwrap();
        assert_eq!(last.place(&journal[1]).stage, u32::MAX);
        for wrong in [
            "",
            "57",
            "1-2-work-x",
            "1-2-rest-x-x",
            "1-2-work-x-x-x",
            "a-2-work-x-x",
        ] {
            assert!(wrong.parse::<TimelineCursor>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn followed_checks_are_those_of_page() {
        let journal = build_run_journal();
        // The checks are the entries 10 to 13.
        let known = StageChecks::of(&journal[..12]);
        let found = |checks: &StageChecks, position| {
            let attempts = checks.find_attempts(position)?;
            let positions: Vec<u64> = attempts.entries.iter().map(|entry| entry.position).collect();
            Some((attempts.anchor(), positions))
        };
        assert_eq!(found(&known, 11), Some(("check-10".to_owned(), vec![10, 11])));
        assert_eq!(found(&known, 9), None);
        let mut cursor = list_stages(&journal[..12], ..).1;
        assert!(cursor.is_in_checks());
        let mut followed = known;
        followed.push(&journal[12], cursor.place(&journal[12]));
        followed.push(&journal[13], cursor.place(&journal[13]));
        assert_eq!(
            found(&followed, 13),
            Some(("check-10".to_owned(), vec![10, 11, 12, 13]))
        );
        // The request is on an earlier page, so the result has no row.
        assert_eq!(found(&StageChecks::of(&journal[11..12]), 11), None);
        let (_, cursor) = list_stages(&journal, ..);
        assert!(!cursor.is_in_checks() && StageChecks::of(&journal).0.is_empty());
    }

    #[test]
    fn current_step_is_request_without_result() {
        let journal = build_run_journal();
        let at = |count: usize| {
            let steps = CurrentSteps::of(&journal[..count]);
            steps.current().map(|step| step.position)
        };
        assert_eq!(at(1), Some(0));
        assert_eq!(at(2), Some(1));
        assert_eq!(at(3), Some(0), "the workspace is still missing");
        assert_eq!(at(4), Some(3));
        assert_eq!(at(18), None);
    }

    #[test]
    fn wait_lasts_until_next_event() {
        let mut steps = CurrentSteps::default();
        let waits_for = domain::WaitCondition::Decision;
        steps.apply(&build_entry(4, Fact::Parked { waits_for }));
        assert_eq!(steps.current().map(|step| step.position), Some(4));
        let by = "ada".to_owned();
        steps.apply(&build_entry(5, Fact::StopRequested { by }));
        assert_eq!(steps.current(), None);
        let id = build_run_id().call(6);
        let repository = None;
        steps.apply(&build_entry(6, Fact::WorkspaceRequested { id, repository }));
        assert_eq!(steps.current().map(|step| step.position), Some(6));
    }
}
