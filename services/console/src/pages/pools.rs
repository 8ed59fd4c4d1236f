//! Pools: executors, their builds, and the reasons why some accept no work.

use api::types::{ExecutorView, MakeView, PoolView, PoolsView};
use domain::{ExecutorState, PoolFreshness, Timestamp, address::percent_encode, text::format_count};
use maud::{Markup, html};

use crate::{
    chips::{ChipTone, render_chip},
    layout::{ConsolePage, NavigationEntry},
    moments::render_moment,
    person::SignedInPerson,
    problem::PageProblem,
    words::make_visible,
};

pub(super) async fn show_pools(SignedInPerson(client): SignedInPerson) -> Result<ConsolePage, PageProblem> {
    let pools = client.installation().pools().await?;
    Ok(ConsolePage::new(
        NavigationEntry::Pools,
        "Pools",
        render_pools(&pools, bootstrap::read_wall_clock()),
    ))
}

pub(super) fn render_pools(pools: &PoolsView, now: Timestamp) -> Markup {
    html! {
        @if pools.pools.is_empty() {
            div.empty {
                strong { "No pool is known." }
                "No planner has reported one within a day, and no rules name one. Start a planner that has "
                code { "planner.pools" }
                " in its settings, and an executor at one of the addresses there; "
                code { "journeyman up" }
                " starts both."
            }
        } @else { div.card { (render_pool_table(&pools.pools, now)) } }
        @for pool in &pools.pools { (render_pool(pool, now)) }
    }
}

fn render_pool_table(pools: &[PoolView], now: Timestamp) -> Markup {
    html! {
        table.stack {
            caption { "Pools of executors" }
            thead {
                tr {
                    th scope="col" { "Pool" }
                    th scope="col" { "State" }
                    th.number scope="col" { "Executors ready" }
                    th.number scope="col" { "Slots free" }
                    th.number scope="col" { "Held" }
                    th.number scope="col" { "Waiting" }
                    th scope="col" { "Last heard of" }
                }
            }
            tbody {
                @for pool in pools {
                    tr {
                        th scope="row" { a href={ "#pool-" (percent_encode(&pool.name)) } { (make_visible(&pool.name)) } }
                        td data-name="State" { (render_pool_state(pool)) }
                        td.number data-name="Executors ready" { (pool.ready) " of " (pool.executors) }
                        td.number data-name="Slots free" { (pool.free) " of " (pool.total) }
                        td.number data-name="Held" { (pool.held) }
                        td.number data-name="Waiting" { (pool.waiting) }
                        td data-name="Last heard of" { (render_report_time(pool.seen_at.as_deref(), now)) }
                    }
                }
            }
        }
    }
}

/// Renders the state of a pool in one or two words.
fn render_pool_state(pool: &PoolView) -> Markup {
    let is_full = pool.free == 0 && pool.waiting > 0;
    html! {
        @match pool.news {
            PoolFreshness::Unknown => (render_chip(ChipTone::Bad, "not known")),
            PoolFreshness::Old => (render_chip(ChipTone::Bad, "not heard of")),
            PoolFreshness::Current if pool.ready == 0 => (render_chip(ChipTone::Bad, "takes no work")),
            PoolFreshness::Current if is_full => (render_chip(ChipTone::Warm, "full")),
            PoolFreshness::Current if pool.is_mixed() => (render_chip(ChipTone::Warm, "mixed")),
            PoolFreshness::Current => (render_chip(ChipTone::Good, "takes work")),
        }
    }
}

fn render_report_time(at: Option<&str>, now: Timestamp) -> Markup {
    html! { @match at { Some(at) => (render_moment(at, now)), None => "never" } }
}

fn render_pool(pool: &PoolView, now: Timestamp) -> Markup {
    html! {
        section.card id={ "pool-" (percent_encode(&pool.name)) } aria-label={ "Pool " (make_visible(&pool.name)) } {
            h2 { (make_visible(&pool.name)) }
            @if pool.news == PoolFreshness::Old {
                p { "Nothing is known of it now. What the last planner saw:" }
            }
            @if !pool.problems.is_empty() {
                ul { @for problem in &pool.problems { li { span.bad { (make_visible(problem)) } } } }
            }
            @if let Some(since) = &pool.waiting_since {
                p { (format_count(pool.waiting.into(), "run")) " in the queue for a slot, the first since " (render_moment(since, now)) ". " a href="/runs?waits_for=slot" { "Runs that wait for a slot" } }
            }
            @if !pool.makes.is_empty() { (render_makes(pool)) }
            @if !pool.members.is_empty() { (render_members(pool, now)) }
        }
    }
}

fn render_makes(pool: &PoolView) -> Markup {
    html! {
        @if pool.is_mixed() { p { "A mixed pool: a run may come to any of these kinds, and end differently." } }
        dl.facts {
            @for (number, make) in (1..).zip(&pool.makes) {
                dt { @if pool.is_mixed() { "Kind " (number) } @else { "Made of" } }
                dd { (made_of(make)) }
            }
        }
    }
}

fn made_of(make: &MakeView) -> Markup {
    html! {
        (make.executors) @if make.executors == 1 { " executor of " } @else { " executors of " }
        @if make.version.is_empty() { "an earlier release" } @else { "release " (make_visible(&make.version)) }
        ", sandbox " (make_visible(&make.sandbox))
        @if !make.system.is_empty() { ", " (make_visible(&make.system)) }
        @if !make.programs.is_empty() { ", with " (make_visible(&make.programs.join(", "))) }
    }
}

fn render_members(pool: &PoolView, now: Timestamp) -> Markup {
    html! {
        table.stack {
            caption { "Executors of " (make_visible(&pool.name)) }
            thead {
                tr {
                    th scope="col" { "Executor" }
                    th scope="col" { "State" }
                    @if pool.is_mixed() { th scope="col" { "Kind" } }
                    th.number scope="col" { "Slots free" }
                    th.number scope="col" { "Held" }
                    th scope="col" { "Last heard of" }
                    th scope="col" { "Started" }
                }
            }
            tbody {
                @for member in &pool.members {
                    tr {
                        th scope="row" { code { (make_visible(&member.address)) } }
                        td data-name="State" { (render_executor_state(member)) }
                        @if pool.is_mixed() {
                            td data-name="Kind" { @match member.make { Some(make) => (make.saturating_add(1)), None => "not known" } }
                        }
                        td.number data-name="Slots free" { (member.free) " of " (member.total) }
                        td.number data-name="Held" { (member.held) }
                        td data-name="Last heard of" { (render_report_time(member.heard_at.as_deref(), now)) }
                        td data-name="Started" { @match &member.started_at { Some(at) => (render_moment(at, now)), None => "not known" } }
                    }
                }
            }
        }
    }
}

fn render_executor_state(member: &ExecutorView) -> Markup {
    let word = member.state.as_str();
    html! {
        @match member.state {
            ExecutorState::Ready => (render_chip(ChipTone::Good, word)),
            ExecutorState::Draining => (render_chip(ChipTone::Plain, word)),
            ExecutorState::Unready | ExecutorState::Silent => (render_chip(ChipTone::Bad, word)),
        }
        @if !member.why.is_empty() { ": " (make_visible(&member.why)) }
    }
}
