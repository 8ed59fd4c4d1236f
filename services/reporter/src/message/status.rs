//! The status comment of a ticket, as a pure function of its board.

use domain::{RunId, RunPhase};

use super::{
    transition::not_moved,
    words::{format_code, format_minute, format_seconds, is_web_link, one_line},
};
use crate::board::{BoardEntry, BoardProgress, StatusBoard, WorkEnd};

/// Renders the status comment: the newest entry in full, and one line for each earlier one.
///
/// `run_url` is the address of a run's page, with `{run}` for the run's id.
pub(crate) fn render_status(board: &StatusBoard, run_url: Option<&str>) -> String {
    let Some((latest, earlier)) = board.entries.split_first() else {
        return String::new();
    };
    let mut paragraphs = vec![mark_entry(latest)];
    paragraphs.extend(board.unmoved.as_ref().and_then(not_moved));
    paragraphs.push(render_signature(latest, board, run_url));
    let lasting = [&board.lasting.done, &board.lasting.changed]
        .into_iter()
        .flatten();
    paragraphs.extend(lasting.filter(|text| !text.is_empty()).cloned());
    if !earlier.is_empty() {
        paragraphs.push("Before that:".to_owned());
        let lines: Vec<String> = earlier.iter().map(earlier_line).collect();
        paragraphs.push(lines.join("\n"));
    }
    paragraphs.join("\n\n")
}

/// Renders the signature: run and phase, time, duration, cost, and the link to the run's page. Phase and cost are
/// those of the run that the newest entry is from.
fn render_signature(latest: &BoardEntry, board: &StatusBoard, run_url: Option<&str>) -> String {
    let at = board
        .standing
        .map_or(latest.at, |standing| standing.at.max(latest.at));
    let standing = board.standing.filter(|standing| latest.job == Some(standing.job));
    let run = latest.run.as_ref();
    let work = standing
        .map(describe_work)
        .or_else(|| latest.job.map(|job| job.to_string()));
    let work = work.map_or_else(String::new, |work| format!(" ({work})"));
    let named = run.map(|run| format!("run {}{work}", format_code(&run.to_string())));
    let elapsed = board.started_at.map(|start| at.unix_s() - start.unix_s());
    // The first text of the work has no duration yet.
    let elapsed = elapsed.and_then(|seconds| u64::try_from(seconds).ok().filter(|seconds| *seconds > 0));
    let cost = standing.and_then(|standing| standing.cost);
    let parts = [
        Some("Journeyman".to_owned()),
        named,
        Some(format_minute(at)),
        elapsed.map(|seconds| format!("{} after the start", format_seconds(seconds))),
        cost.filter(|cost| cost.micros() > 0)
            .map(|cost| format!("{cost} spent")),
        run.zip(run_url)
            .and_then(|(run, url)| run_page(run, url))
            .map(|url| format!("[follow it](<{url}>)")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn describe_work(standing: BoardProgress) -> String {
    match (standing.phase, standing.clone_percent) {
        (Some(phase), _) => format!("{}: {}", standing.job, describe_phase(phase)),
        (None, Some(percent)) => format!("{}: first clone of the repository, {percent} %", standing.job),
        (None, None) => standing.job.to_string(),
    }
}

const fn describe_phase(phase: RunPhase) -> &'static str {
    match phase {
        RunPhase::Work => "making the change",
        RunPhase::Triage => "choosing labels",
        RunPhase::Intake => "reading the ticket",
        RunPhase::Plan => "planning",
        RunPhase::Review => "reviewing the change",
        RunPhase::Answer => "answering",
        RunPhase::Discuss => "reading the code",
        RunPhase::PullRequest => "reviewing the pull request",
    }
}

/// Returns the address of a run's page. The run's id contains characters that need encoding.
pub(super) fn run_page(run: &RunId, run_url: &str) -> Option<String> {
    let run = run.to_string();
    let url = run_url.replace("{run}", &domain::address::percent_encode(&run));
    is_web_link(&url).then_some(url)
}

fn mark_entry(entry: &BoardEntry) -> String {
    match entry.mark {
        Some(WorkEnd::Done) => format!("✅ {}", entry.text),
        Some(WorkEnd::Failed) => format!("❌ {}", entry.text),
        Some(WorkEnd::Stopped) => format!("⏹ {}", entry.text),
        None => entry.text.clone(),
    }
}

fn earlier_line(entry: &BoardEntry) -> String {
    let text = mark_entry(entry);
    let first = text.split("\n\n").next().unwrap_or_default();
    format!("- {}: {}", format_minute(entry.at), one_line(first))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
