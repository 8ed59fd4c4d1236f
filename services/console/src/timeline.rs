//! A run's journal as a list for people: stages, turns of the model, and one item for each entry.

use api::view::{EntryView, Tone, describe_tree, format_dollars};
use domain::{Fact, JournalEntry, Timestamp};
use maud::{Markup, html};

use crate::{
    markdown::render_markdown,
    stages::{CheckAttempts, EntryPlace, RunStage, StageKind, StagePart, TurnEntries},
    words::{format_elapsed, make_visible, run_path, shorten_text},
};

// Longest text of the model in the line of a turn without tools.
const SAID_CHARS: usize = 100;

/// Rendering of one run's entries.
#[derive(Clone, Copy)]
pub(crate) struct RunTimeline<'a> {
    pub(crate) run: &'a str,
    /// Time of the first entry. The times of all entries are relative to it.
    pub(crate) start: Timestamp,
    /// True if the run continues; then its last turn is open.
    pub(crate) is_live: bool,
}

impl RunTimeline<'_> {
    /// Renders the list of stages. A stage or turn with a failure is open.
    pub(crate) fn render_stages(self, stages: &[RunStage<'_>]) -> Markup {
        html! {
            ol.stages id="timeline" aria-labelledby="timeline-name" {
                @for (index, stage) in stages.iter().enumerate() {
                    @let is_last = index + 1 == stages.len();
                    @if (self.is_live && is_last) || !stage.parts.is_empty() { (self.render_stage(stage, is_last)) }
                }
            }
        }
    }

    fn render_stage(self, stage: &RunStage<'_>, is_last: bool) -> Markup {
        let count = stage.parts.len();
        let length = format_elapsed(stage.start, stage.end);
        self.render_stage_frame(
            (stage.number, stage.kind),
            &length,
            html! {
                @for (index, part) in stage.parts.iter().enumerate() {
                    @let is_current = self.is_live && is_last && index + 1 == count;
                    @match part {
                        StagePart::Entry(entry) => (self.render_entry(entry)),
                        StagePart::Turn(turn) => (self.render_turn(turn, is_current)),
                        StagePart::Check(attempts) => (self.render_check(attempts, is_current)),
                    }
                }
            },
        )
    }

    fn render_stage_frame(self, (number, kind): (u32, StageKind), length: &str, entries: Markup) -> Markup {
        html! {
            li.stage id={ "stage-" (number) } {
                h3 { span class={ "mark " (kind.name()) } aria-hidden="true" {} (kind.title()) span.soft { " " (length) } }
                ol.timeline id={ "stage-" (number) "-entries" } { (entries) }
            }
        }
    }

    fn render_turn(self, turn: &TurnEntries<'_>, is_current: bool) -> Markup {
        let views: Vec<EntryView> = turn.entries.iter().copied().map(EntryView::from).collect();
        let is_open = is_current || views.iter().any(|view| view.tone == Tone::Bad);
        self.render_turn_frame(
            turn.start,
            is_open,
            &describe_turn(&turn.entries),
            html! {
                @for (entry, view) in turn.entries.iter().zip(&views) { (self.render_entry_view(entry, view)) }
            },
        )
    }

    fn render_turn_frame(self, start: u64, is_open: bool, words: &str, entries: Markup) -> Markup {
        html! {
            li.group id={ "turn-" (start) } {
                details open[is_open] {
                    summary { (words) }
                    ol.timeline id={ "turn-" (start) "-entries" } { (entries) }
                }
            }
        }
    }

    fn render_check(self, attempts: &CheckAttempts<'_>, is_current: bool) -> Markup {
        html! { li.group id=(attempts.anchor()) { (self.render_attempts(attempts, is_current)) } }
    }

    fn render_attempts(self, attempts: &CheckAttempts<'_>, is_current: bool) -> Markup {
        let is_open = is_current || attempts.entries.last().is_some_and(|last| is_failure(last));
        html! {
            details open[is_open] {
                summary { (render_check_line(attempts)) }
                ol.timeline { @for entry in &attempts.entries { (self.render_entry(entry)) } }
            }
        }
    }

    /// Renders one entry. Its time is relative to the start of the run.
    fn render_entry(self, entry: &JournalEntry) -> Markup {
        self.render_entry_view(entry, &EntryView::from(entry))
    }

    fn render_entry_view(self, entry: &JournalEntry, view: &EntryView) -> Markup {
        let (position, class) = (view.position, tone_class(view.tone));
        let head = make_visible(&view.head);
        html! {
            li id={ "entry-" (position) } {
                span.when title=(view.at) { (format_elapsed(self.start, entry.at)) }
                span.who { (view.who.as_str()) }
                div.what {
                    @match &view.more {
                        Some(more) => details { summary class=(class) { (head) } (render_more(&entry.fact, more)) },
                        None => span class=(class) { (head) },
                    }
                }
                a href={ (run_path(self.run)) "/entries/" (position) } aria-label={ "Entry " (position) } { "#" (position) }
            }
        }
    }

    /// Renders a new entry for a page that follows the run: the entry, and the list that it is added to. A later entry of
    /// a check replaces the content of the check's row.
    pub(crate) fn render_new_entry(
        self,
        entry: &JournalEntry,
        place: EntryPlace,
        attempts: Option<&CheckAttempts<'_>>,
    ) -> Markup {
        let item = match attempts {
            Some(known) if known.entries.len() > 1 => {
                let row = self.render_attempts(known, true);
                return html! { div id=(known.anchor()) hx-swap-oob="innerHTML" { (row) } };
            }
            Some(begun) => self.render_check(begun, true),
            None => self.render_entry(entry),
        };
        let begun_turn = place.turn.filter(|turn| *turn == entry.position);
        let item = match begun_turn {
            Some(turn) => self.render_turn_frame(turn, true, &describe_turn(&[entry]), item),
            None => item,
        };
        let (list, item) = match place.turn {
            _ if place.begins_stage => {
                let stage = self.render_stage_frame((place.stage, place.kind), "", item);
                ("timeline".to_owned(), stage)
            }
            Some(turn) if begun_turn.is_none() => (format!("turn-{turn}-entries"), item),
            Some(_) | None => (format!("stage-{}-entries", place.stage), item),
        };
        html! { div hx-swap-oob={ "beforeend:#" (list) } { (item) } }
    }
}

/// Renders the folded text of an entry: Markdown of models and people, and other text as it is.
fn render_more(fact: &Fact, text: &str) -> Markup {
    let is_prose = matches!(
        fact,
        Fact::ModelReplied { .. }
            | Fact::Summarized { .. }
            | Fact::PhaseFinished { .. }
            | Fact::NewsArrived { .. }
            | Fact::Decided { .. }
            | Fact::Returned { .. }
    );
    if is_prose {
        render_markdown(text)
    } else {
        html! { pre { (make_visible(text)) } }
    }
}

fn is_failure(entry: &JournalEntry) -> bool {
    EntryView::from(entry).tone == Tone::Bad
}

/// Describes a turn in one line: its number, tools, time and cost.
fn describe_turn(entries: &[&JournalEntry]) -> String {
    let mut words = "Turn".to_owned();
    let mut tools: Vec<(&str, usize)> = Vec::new();
    let (mut said, mut cost) = (String::new(), None);
    for entry in entries {
        if let Fact::ModelRequested { turn, .. } = &entry.fact {
            words = format!("Turn {turn}");
        } else if let Fact::ModelReplied { reply, .. } = &entry.fact {
            said = shorten_text(&reply.text(), SAID_CHARS);
            cost = reply.cost_micros;
        } else if let Fact::ToolRequested { call, .. } = &entry.fact {
            match tools.iter_mut().find(|(name, _)| *name == call.name) {
                Some((_, count)) => *count += 1,
                None => tools.push((&call.name, 1)),
            }
        }
    }
    let tools = tools.into_iter().map(|(name, count)| match count {
        1 => make_visible(name),
        count => format!("{} ×{count}", make_visible(name)),
    });
    let mut parts = vec![tools.collect::<Vec<_>>().join(", ")];
    if parts.concat().is_empty() {
        parts = vec![said];
    }
    if let [first, .., last] = entries {
        parts.push(format_elapsed(first.at, last.at));
    }
    parts.extend(cost.map(format_dollars));
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        words
    } else {
        format!("{words}: {}", parts.join(" · "))
    }
}

/// Describes a check in one line: its command, its files, and the outcome of every attempt.
fn render_check_line(attempts: &CheckAttempts<'_>) -> Markup {
    let results = attempts.entries.iter().filter_map(|entry| {
        let Fact::CheckRan { run, .. } = &entry.fact else {
            return None;
        };
        Some((run.outcome.as_str(), tone_class(EntryView::from(*entry).tone)))
    });
    let results: Vec<_> = results.collect();
    html! {
        "Check " code { (make_visible(&attempts.check.command)) } " (" (describe_tree(&attempts.check.tree)) "): "
        @for (index, (outcome, class)) in results.iter().enumerate() {
            @if index > 0 { " → " }
            span class=(class) { (outcome) }
        }
        @if results.is_empty() { "runs" }
        @if results.len() > 1 { ", " (results.len()) " attempts" }
        @if let [first, .., last] = attempts.entries.as_slice() { " · " (format_elapsed(first.at, last.at)) }
    }
}

/// Returns the style class of a tone; most tones have none.
const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Quiet | Tone::Soft => "soft",
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Warm => "warm",
        Tone::Bad => "bad",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sample_journal::{RUN, build_check_run, build_entry, build_run_journal},
        stages::{StageChecks, TimelineCursor, list_stages},
    };

    const TIMELINE: RunTimeline<'static> = RunTimeline {
        run: RUN,
        start: Timestamp::from_unix_ms(0),
        is_live: false,
    };

    fn render_listed_fact(fact: Fact) -> String {
        TIMELINE.render_entry(&build_entry(62, fact)).into_string()
    }

    #[test]
    fn timeline_entry_has_time_actor_and_link() {
        let text = render_listed_fact(Fact::StopRequested { by: "ada".to_owned() });
        for part in [
            "id=\"entry-62\"",
            "1 min 2 s",
            "person",
            "ada asked to stop",
            "href=\"/runs/jira%3AENG-1%403/entries/62\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn timeline_escapes_markup_and_hidden_text() {
        let by = "<img src=x onerror=alert(1)>\" hx-get=\"/\r\n\u{202e}".to_owned();
        let text = render_listed_fact(Fact::StopRequested { by });
        assert!(
            text.contains("&lt;img src=x") && text.contains("&lt;U+202E&gt;"),
            "{text}"
        );
        assert!(
            !text.contains("<img") && !text.contains('\r') && !text.contains("\u{202e}"),
            "{text}"
        );
    }

    #[test]
    fn words_of_model_are_markdown_and_output_is_not() {
        let handover = domain::WorkHandover {
            summary: "It *counts*.\n\nAll of it.".to_owned(),
            ..domain::WorkHandover::default()
        };
        let exit = domain::WorkExit::Finished(Box::new(handover));
        let output = domain::PhaseOutput::Work { exit };
        let text = render_listed_fact(Fact::PhaseFinished { output });
        assert!(
            text.contains("<p>It <em>counts</em>.</p><p>All of it.</p>"),
            "{text}"
        );
        let id = crate::sample_journal::build_run_id().call(3);
        let result = domain::ToolResult::ok("*.py\nb.py");
        let text = render_listed_fact(Fact::ToolFinished { id, result });
        assert!(text.contains("<pre>*.py\nb.py</pre>"), "{text}");
    }

    #[test]
    fn turns_are_folded_unless_they_failed() {
        let journal = build_run_journal();
        let (stages, _) = list_stages(&journal, ..);
        let page = TIMELINE.render_stages(&stages).into_string();
        assert!(
            page.contains(
                "<li class=\"group\" id=\"turn-1\"><details><summary>Turn 1: read_file · 3.0 s · $0.0120</summary>"
            ),
            "{page}"
        );
        assert!(
            page.contains("id=\"turn-5\"><details open><summary>Turn 2: run_command"),
            "{page}"
        );
        assert_eq!(page.matches("<h3>").count(), 4, "{page}");
    }

    #[test]
    fn repeated_check_is_one_row() {
        let journal = build_run_journal();
        let (stages, _) = list_stages(&journal, ..);
        let page = TIMELINE.render_stages(&stages).into_string();
        assert_eq!(
            page.matches("Check <code>pytest</code> (change): ").count(),
            1,
            "{page}"
        );
        assert!(
            page.contains(
                "<span class=\"bad\">red</span> → <span class=\"good\">green</span>, 2 attempts · 3.0 s"
            ),
            "{page}"
        );
    }

    #[test]
    fn check_that_fails_at_last_is_open() {
        let journal = build_check_run(&[
            domain::check::CheckOutcome::Green,
            domain::check::CheckOutcome::Red,
        ]);
        let (stages, _) = list_stages(&journal, ..);
        let page = TIMELINE.render_stages(&stages).into_string();
        assert!(page.contains("<details open><summary>Check "), "{page}");
    }

    #[test]
    fn new_entries_reach_their_lists() {
        let journal = build_run_journal();
        let (mut cursor, mut checks) = (TimelineCursor::default(), StageChecks::default());
        let lists = journal.iter().map(|entry| {
            let place = cursor.place(entry);
            checks.push(entry, place);
            let attempts = checks.find_attempts(entry.position);
            let item = TIMELINE.render_new_entry(entry, place, attempts.as_ref());
            let item = item.into_string();
            let list = item.split_once("beforeend:#");
            let (_, list) = list.unwrap_or_else(|| item.split_once("<div id=\"").unwrap());
            list.split_once('"').unwrap().0.to_owned()
        });
        let lists: Vec<String> = lists.collect();
        let expected = [
            "timeline",
            "timeline",
            "turn-1-entries",
            "turn-1-entries",
            "turn-1-entries",
            "stage-2-entries",
            "turn-5-entries",
            "turn-5-entries",
            "turn-5-entries",
            "stage-2-entries",
            "timeline",
            "check-10",
            "check-10",
            "check-10",
            "stage-3-entries",
        ];
        assert_eq!(lists[..expected.len()], expected);
    }

    #[test]
    fn new_attempt_replaces_row_like_reload() {
        let journal = build_check_run(&[
            domain::check::CheckOutcome::Red,
            domain::check::CheckOutcome::Green,
        ]);
        let checks = StageChecks::of(&journal);
        let mut cursor = TimelineCursor::default();
        let places: Vec<_> = journal.iter().map(|entry| cursor.place(entry)).collect();
        let attempts = checks.find_attempts(3).unwrap();
        let new = TIMELINE.render_new_entry(&journal[3], places[3], Some(&attempts));
        let row = TIMELINE.render_attempts(&attempts, true).into_string();
        assert_eq!(
            new.into_string(),
            format!("<div id=\"check-0\" hx-swap-oob=\"innerHTML\">{row}</div>")
        );
        let live = RunTimeline {
            is_live: true,
            ..TIMELINE
        };
        let (stages, _) = list_stages(&journal, ..);
        let page = live.render_stages(&stages).into_string();
        assert!(
            page.contains(&format!("<li class=\"group\" id=\"check-0\">{row}</li>")),
            "{page}"
        );
    }
}
