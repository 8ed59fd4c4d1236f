//! Picture of a run: its stages as bars over time, with the time of each kind in words.

use std::ops::Range;

use domain::{Fact, JournalEntry, Timestamp, text::format_duration};
use maud::{Markup, html};

use super::run_pages::page_path;
use crate::stages::{StageKind, is_within_wait, list_stages};

// Width of the picture in its own units. The style sheet stretches it to the page.
const WIDTH: u64 = 1_000;
// Smallest width of a bar, so that a short stage stays visible.
const LEAST: u64 = 3;

/// Period of a run.
#[derive(Clone, Copy)]
struct RunPeriod {
    start: Timestamp,
    end: Timestamp,
}

impl RunPeriod {
    fn length_ms(self) -> u64 {
        u64::try_from(self.end.since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the left edge and the width of a part of this period.
    fn bar_of(self, part: Self) -> (u64, u64) {
        let whole = self.length_ms().max(1);
        let scale = |ms: u64| ms.saturating_mul(WIDTH) / whole;
        let before = Self {
            start: self.start,
            end: part.start,
        };
        let width = scale(part.length_ms()).max(LEAST);
        (scale(before.length_ms()).min(WIDTH - LEAST), width.min(WIDTH))
    }
}

/// Renders the stages of the run until its end, or until `now` while it continues. A stage links to its entries, which
/// are among `shown` or on another page.
pub(super) fn render_picture(
    run: &str,
    journal: &[JournalEntry],
    shown: &Range<usize>,
    now: Timestamp,
) -> Markup {
    let Some((whole, stages)) = divide_run(journal, now) else {
        return html! {};
    };
    let waits = find_waits(journal, whole.end);
    let waited_ms: u64 = waits.iter().map(|wait| wait.length_ms()).sum();
    let sums = sum_by_kind(&stages);
    let title = describe_picture(whole, &sums, waited_ms);
    html! {
        svg.picture viewBox={ "0 0 " (WIDTH) " 40" } preserveAspectRatio="none" role="img" aria-label=(title) {
            @for stage in &stages {
                @let (x, width) = whole.bar_of(stage.period);
                rect class=(stage.kind.name()) x=(x) y="0" width=(width) height="28" {
                    title { (stage.kind.title()) ", " (format_duration(stage.period.length_ms())) }
                }
            }
            @for wait in &waits {
                @let (x, width) = whole.bar_of(*wait);
                rect.wait x=(x) y="32" width=(width) height="8" { title { "Waiting, " (format_duration(wait.length_ms())) } }
            }
        }
        ul.legend {
            @for sum in &sums {
                li {
                    span class={ "mark " (sum.kind.name()) } aria-hidden="true" {}
                    a href=(stage_path(run, &sum.first, shown)) { (sum.kind.title()) } " " (format_duration(sum.ms))
                    @if sum.count > 1 { ", " (sum.count) " times" }
                }
            }
            @if waited_ms > 0 { li { span.mark.wait aria-hidden="true" {} "Waiting " (format_duration(waited_ms)) } }
        }
    }
}

/// Stage with its place in the journal.
#[derive(Clone)]
struct StagePeriod {
    kind: StageKind,
    number: u32,
    /// Indexes of its entries.
    entries: Range<usize>,
    period: RunPeriod,
}

/// Returns the address of a stage: on this page if one of its entries is shown, else on the page of its first one.
fn stage_path(run: &str, stage: &StagePeriod, shown: &Range<usize>) -> String {
    let StagePeriod { number, entries, .. } = stage;
    if entries.start < shown.end && shown.start < entries.end {
        return format!("#stage-{number}");
    }
    format!("{}#stage-{number}", page_path(run, entries.start))
}

/// Returns the period of the run and those of its stages; `None` without entries.
fn divide_run(journal: &[JournalEntry], now: Timestamp) -> Option<(RunPeriod, Vec<StagePeriod>)> {
    let (first, last) = (journal.first()?, journal.last()?);
    let is_over = matches!(last.fact, Fact::RunFinished { .. });
    let end = if is_over { last.at } else { now.max(last.at) };
    let (stages, _) = list_stages(journal, 0..0);
    let ends = stages.iter().skip(1).map(|next| next.start).chain([end]);
    let periods = stages.iter().zip(ends).map(|(stage, end)| {
        let start = stage.start;
        StagePeriod {
            kind: stage.kind,
            number: stage.number,
            entries: stage.entries.clone(),
            period: RunPeriod { start, end },
        }
    });
    let start = first.at;
    Some((RunPeriod { start, end }, periods.collect()))
}

/// Returns the periods in which the run was parked.
fn find_waits(journal: &[JournalEntry], end: Timestamp) -> Vec<RunPeriod> {
    let mut waits = Vec::new();
    let mut since = None;
    for entry in journal {
        if is_within_wait(&entry.fact) {
            continue;
        }
        if let Some(start) = since.take() {
            let end = entry.at;
            waits.push(RunPeriod { start, end });
        }
        if let Fact::Parked { .. } = entry.fact {
            since = Some(entry.at);
        }
    }
    waits.extend(since.map(|start| RunPeriod { start, end }));
    waits
}

/// Time of all stages of one kind.
struct KindSum {
    kind: StageKind,
    first: StagePeriod,
    count: usize,
    ms: u64,
}

/// Adds the times up by kind, in the order of their first stages.
fn sum_by_kind(stages: &[StagePeriod]) -> Vec<KindSum> {
    let mut sums: Vec<KindSum> = Vec::new();
    for stage in stages {
        let ms = stage.period.length_ms();
        match sums.iter_mut().find(|sum| sum.kind == stage.kind) {
            Some(sum) => {
                sum.count += 1;
                sum.ms = sum.ms.saturating_add(ms);
            }
            None => sums.push(KindSum {
                kind: stage.kind,
                first: stage.clone(),
                count: 1,
                ms,
            }),
        }
    }
    sums
}

fn describe_picture(whole: RunPeriod, sums: &[KindSum], waited_ms: u64) -> String {
    let parts = sums.iter().map(|sum| (sum.kind.title(), sum.ms));
    let waits = (waited_ms > 0).then_some(("Waiting", waited_ms));
    let parts = parts
        .chain(waits)
        .map(|(name, ms)| format!("{name} {}", format_duration(ms)));
    let parts: Vec<String> = parts.collect();
    format!(
        "Stages over {}: {}",
        format_duration(whole.length_ms()),
        parts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use domain::WaitCondition;

    use super::*;
    use crate::sample_journal::{RUN, build_run_journal, push_fact};

    fn render_whole_picture(journal: &[JournalEntry], now: Timestamp) -> String {
        render_picture(RUN, journal, &(0..journal.len()), now).into_string()
    }

    #[test]
    fn stages_are_bars_over_whole_time() {
        let picture = render_whole_picture(&build_run_journal(), Timestamp::from_unix_ms(99_000));
        // The run takes 17 s: start 0 to 1, work 1 to 10, checks 10 to 15, delivery 15 to 17.
        for part in [
            "aria-label=\"Stages over 17 s: Start 1.0 s, Work 9.0 s, Checks 5.0 s, Delivery 2.0 s\"",
            "<rect class=\"start\" x=\"0\" y=\"0\" width=\"58\" height=\"28\">",
            "<rect class=\"work\" x=\"58\" y=\"0\" width=\"529\" height=\"28\">",
            "<rect class=\"proof\" x=\"588\" y=\"0\" width=\"294\" height=\"28\">",
            "<rect class=\"delivery\" x=\"882\" y=\"0\" width=\"117\" height=\"28\">",
            "<a href=\"#stage-2\">Work</a> 9.0 s</li>",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        assert!(
            !picture.contains("style="),
            "the policy forbids inline styles: {picture}"
        );
    }

    #[test]
    fn live_run_and_wait_last_until_now() {
        let mut journal = build_run_journal();
        journal.truncate(15);
        let waits_for = WaitCondition::Decision;
        push_fact(&mut journal, Fact::Parked { waits_for });
        let picture = render_whole_picture(&journal, Timestamp::from_unix_ms(25_000));
        assert!(picture.contains("Stages over 25 s"), "{picture}");
        assert!(picture.contains("Waiting 10 s</li>"), "{picture}");
        assert!(
            picture.contains("<rect class=\"wait\" x=\"600\" y=\"32\" width=\"400\" height=\"8\">"),
            "{picture}"
        );
    }

    #[test]
    fn repeated_stages_are_added_up() {
        let mut journal = build_run_journal();
        journal.truncate(14);
        let again = build_run_journal().into_iter().skip(1).take(8);
        let facts: Vec<Fact> = again.map(|entry| entry.fact).collect();
        facts.into_iter().for_each(|fact| push_fact(&mut journal, fact));
        let picture = render_whole_picture(&journal, Timestamp::default());
        assert!(picture.contains(">Work</a> 16 s, 2 times</li>"), "{picture}");
    }

    #[test]
    fn stage_on_other_page_has_its_address() {
        let journal = build_run_journal();
        let picture = render_picture(RUN, &journal, &(11..14), Timestamp::default()).into_string();
        assert!(
            picture.contains("<a href=\"/runs/jira%3AENG-1%403?from=0#stage-2\">Work</a>"),
            "{picture}"
        );
        assert!(picture.contains("<a href=\"#stage-3\">Checks</a>"), "{picture}");
    }

    #[test]
    fn run_without_entries_has_no_picture() {
        assert_eq!(render_whole_picture(&[], Timestamp::default()), "");
    }
}
