//! Pools: executors, their builds, and the reasons why some accept no work.

use api::types::{ExecutorView, MakeView, PoolView, PoolsView};
use domain::{ExecutorState, PoolFreshness, address::percent_encode};
use maud::{Markup, html};

use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_instant, make_visible},
};

pub(super) async fn show_pools(SignedInPerson(client): SignedInPerson) -> Result<ConsolePage, PageProblem> {
    let pools = client.pools().await?;
    Ok(ConsolePage::new(
        NavigationEntry::Pools,
        "Pools",
        render_pools(&pools),
    ))
}

pub(super) fn render_pools(pools: &PoolsView) -> Markup {
    html! {
        @if pools.pools.is_empty() {
            p {
                "No pool is known: no planner has reported one within a day, and no rules name one. Start a planner that has "
                code { "planner.pools" }
                " in its settings, and an executor at one of the addresses there; "
                code { "journeyman up" }
                " starts both."
            }
        } @else { (render_pool_table(&pools.pools)) }
        @for pool in &pools.pools { (render_pool(pool)) }
    }
}

fn render_pool_table(pools: &[PoolView]) -> Markup {
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
                        td data-name="Last heard of" { (render_moment(pool.seen_at.as_deref())) }
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
            PoolFreshness::Unknown => span.bad { "not known" },
            PoolFreshness::Old => span.bad { "not heard of" },
            PoolFreshness::Current if pool.ready == 0 => span.bad { "takes no work" },
            PoolFreshness::Current if is_full => span.warm { "full" },
            PoolFreshness::Current if pool.is_mixed() => span.warm { "mixed" },
            PoolFreshness::Current => span.good { "takes work" },
        }
    }
}

fn render_moment(at: Option<&str>) -> Markup {
    html! { @match at { Some(at) => (format_instant(at)), None => "never" } }
}

fn render_pool(pool: &PoolView) -> Markup {
    html! {
        h2 id={ "pool-" (percent_encode(&pool.name)) } { (make_visible(&pool.name)) }
        @if pool.news == PoolFreshness::Old {
            p { "Nothing is known of it now. What the last planner saw:" }
        }
        @if !pool.problems.is_empty() {
            ul { @for problem in &pool.problems { li { span.bad { (make_visible(problem)) } } } }
        }
        @if let Some(since) = &pool.waiting_since {
            p { (pool.waiting) " runs wait for a slot, the first since " (format_instant(since)) ". " a href="/runs?waits_for=slot" { "Runs that wait for a slot" } }
        }
        @if !pool.makes.is_empty() { (render_makes(pool)) }
        @if !pool.members.is_empty() { (render_members(pool)) }
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

fn render_members(pool: &PoolView) -> Markup {
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
                        td data-name="Last heard of" { (render_moment(member.heard_at.as_deref())) }
                        td data-name="Started" { @match &member.started_at { Some(at) => (format_instant(at)), None => "not known" } }
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
            ExecutorState::Ready => span.good { (word) },
            ExecutorState::Draining => span.soft { (word) },
            ExecutorState::Unready | ExecutorState::Silent => span.bad { (word) },
        }
        @if !member.why.is_empty() { ": " (make_visible(&member.why)) }
    }
}
