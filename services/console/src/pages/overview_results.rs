//! Results of the last days on the overview: charts with their numbers.

use api::types::{ActivityDay, ActivityTotal, ActivityView};
use domain::{
    Timestamp,
    text::{format_duration, group_digits},
};
use maud::{Markup, html};

use crate::{
    charts::{BarPart, BarTone, DayBar, render_day_chart},
    moments::format_span,
    words::format_money,
};

/// Renders the results. Without an answer of the API, only the oldest wait is known.
pub(super) fn render_results(
    activity: Option<&ActivityView>,
    oldest_wait: Option<Timestamp>,
    now: Timestamp,
) -> Markup {
    let Some(activity) = activity else {
        return html! { div.tiles { (render_oldest_wait(oldest_wait, now)) } };
    };
    html! {
        h2 { "Last " (activity.days.len()) " days" }
        @if activity.total.runs == 0 && activity.total.ended() == 0 {
            div.empty {
                strong { "No run in these days." }
                "Merged pull requests, cost and lead time appear here after the first ticket."
            }
        } @else {
            div.tiles {
                (render_ended_work(activity))
                (render_cost(activity))
                (render_lead_time(activity))
                (render_oldest_wait(oldest_wait, now))
            }
        }
    }
}

fn render_ended_work(activity: &ActivityView) -> Markup {
    let total = &activity.total;
    let rate = total.merge_percent();
    html! {
        section.card aria-label="Ended work" {
            dl.figures {
                div { dt { "Merged" } dd { (group_digits(total.merged)) } }
                div { dt { "Closed" } dd { (group_digits(total.closed)) } }
                div { dt { "Failed" } dd { (group_digits(total.failed)) } }
                div { dt { "Merge rate" } dd { @match rate { Some(rate) => { (rate) " %" }, None => "none yet" } } }
            }
            (render_day_chart("Tickets that ended by day: merged, closed, failed", &build_bars(activity, build_ended_bar)))
        }
    }
}

fn render_cost(activity: &ActivityView) -> Markup {
    let total = &activity.total;
    html! {
        section.card aria-label="Cost" {
            dl.figures {
                div { dt { "Cost of models" } dd { (format_money(total.cost_usd, total.unpriced)) } }
                div { dt { "Runs" } dd { (group_digits(total.runs)) } }
            }
            (render_day_chart("Cost of the runs that began by day", &build_bars(activity, build_cost_bar)))
            p.small { a href="/costs" { "Costs by repository, model, job and ticket" } }
        }
    }
}

fn render_lead_time(activity: &ActivityView) -> Markup {
    html! {
        section.card aria-label="Lead time" {
            dl.figures {
                div {
                    dt { "Lead time, median from request to merge" }
                    dd { @match activity.total.lead_ms { Some(ms) => (format_duration(ms)), None => "none yet" } }
                }
            }
            (render_day_chart("Median lead time of the tickets merged by day", &build_bars(activity, build_lead_bar)))
        }
    }
}

fn render_oldest_wait(oldest_wait: Option<Timestamp>, now: Timestamp) -> Markup {
    html! {
        section.card aria-label="Oldest wait" {
            dl.figures {
                div {
                    dt { "Oldest wait for a person" }
                    dd { @match oldest_wait { Some(since) => (format_span(now.since(since).as_secs())), None => "none" } }
                }
            }
            @if oldest_wait.is_some() { p.small { a href="/runs?waits_for=person" { "Runs that wait for a person" } } }
        }
    }
}

fn build_bars(activity: &ActivityView, bar: fn(&ActivityTotal) -> (String, Vec<BarPart>)) -> Vec<DayBar> {
    let build = |ActivityDay { day, total }: &ActivityDay| {
        let (words, parts) = bar(total);
        DayBar {
            day: crate::words::make_visible(day),
            words,
            parts,
        }
    };
    activity.days.iter().map(build).collect()
}

fn build_ended_bar(total: &ActivityTotal) -> (String, Vec<BarPart>) {
    let parts = [
        (BarTone::Good, total.merged),
        (BarTone::Soft, total.closed),
        (BarTone::Bad, total.failed),
    ];
    let words = format!(
        "{} merged, {} closed, {} failed",
        total.merged, total.closed, total.failed
    );
    (words, parts.map(|(tone, value)| BarPart { tone, value }).to_vec())
}

fn build_cost_bar(total: &ActivityTotal) -> (String, Vec<BarPart>) {
    let value = total.cost_usd.micros();
    let part = BarPart {
        tone: BarTone::Plain,
        value,
    };
    (format_money(total.cost_usd, total.unpriced), vec![part])
}

fn build_lead_bar(total: &ActivityTotal) -> (String, Vec<BarPart>) {
    let part = BarPart {
        tone: BarTone::Plain,
        value: total.lead_ms.unwrap_or_default(),
    };
    let words = total
        .lead_ms
        .map_or_else(|| "none merged".to_owned(), format_duration);
    (words, vec![part])
}
