//! Pools: executors, their builds, and the reasons why some accept no work.

use api::types::{ExecutorView, MakeView, PoolView, PoolsView};
use domain::{ExecutorState, PoolNews, address::encode};
use maud::{Markup, html};

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{instant, shown},
};

pub(super) async fn show(Person(client): Person) -> Result<Page, Problem> {
    let pools = client.pools().await?;
    Ok(Page::new(Place::Pools, "Pools", body(&pools)))
}

pub(super) fn body(pools: &PoolsView) -> Markup {
    html! {
        @if pools.pools.is_empty() {
            p {
                "No pool is known: no planner has told of one within a day, and no rules name one. Start a planner that has "
                code { "planner.pools" }
                " in its settings, and an executor at one of the addresses there; "
                code { "journeyman up" }
                " starts both."
            }
        } @else { (overview(&pools.pools)) }
        @for pool in &pools.pools { (one(pool)) }
    }
}

fn overview(pools: &[PoolView]) -> Markup {
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
                        th scope="row" { a href={ "#pool-" (encode(&pool.name)) } { (shown(&pool.name)) } }
                        td data-name="State" { (state(pool)) }
                        td.number data-name="Executors ready" { (pool.ready) " of " (pool.executors) }
                        td.number data-name="Slots free" { (pool.free) " of " (pool.total) }
                        td.number data-name="Held" { (pool.held) }
                        td.number data-name="Waiting" { (pool.waiting) }
                        td data-name="Last heard of" { (moment(pool.seen_at.as_deref())) }
                    }
                }
            }
        }
    }
}

/// Renders the state of a pool in one or two words.
fn state(pool: &PoolView) -> Markup {
    let is_full = pool.free == 0 && pool.waiting > 0;
    html! {
        @match pool.news {
            PoolNews::Unknown => span.bad { "not known" },
            PoolNews::Old => span.bad { "not heard of" },
            PoolNews::Current if pool.ready == 0 => span.bad { "takes no work" },
            PoolNews::Current if is_full => span.warm { "full" },
            PoolNews::Current if pool.is_mixed() => span.warm { "mixed" },
            PoolNews::Current => span.good { "takes work" },
        }
    }
}

fn moment(at: Option<&str>) -> Markup {
    html! { @match at { Some(at) => (instant(at)), None => "never" } }
}

fn one(pool: &PoolView) -> Markup {
    html! {
        h2 id={ "pool-" (encode(&pool.name)) } { (shown(&pool.name)) }
        @if pool.news == PoolNews::Old {
            p { "Nothing is known of it now. What the last planner saw:" }
        }
        @if !pool.problems.is_empty() {
            ul { @for problem in &pool.problems { li { span.bad { (shown(problem)) } } } }
        }
        @if let Some(since) = &pool.waiting_since {
            p { (pool.waiting) " runs wait for a slot, the first since " (instant(since)) ". " a href="/runs?waits_for=slot" { "Runs that wait for a slot" } }
        }
        @if !pool.makes.is_empty() { (makes(pool)) }
        @if !pool.members.is_empty() { (members(pool)) }
    }
}

fn makes(pool: &PoolView) -> Markup {
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
        @if make.version.is_empty() { "an earlier release" } @else { "release " (shown(&make.version)) }
        ", sandbox " (shown(&make.sandbox))
        @if !make.system.is_empty() { ", " (shown(&make.system)) }
        @if !make.programs.is_empty() { ", with " (shown(&make.programs.join(", "))) }
    }
}

fn members(pool: &PoolView) -> Markup {
    html! {
        table.stack {
            caption { "Executors of " (shown(&pool.name)) }
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
                        th scope="row" { code { (shown(&member.address)) } }
                        td data-name="State" { (standing(member)) }
                        @if pool.is_mixed() {
                            td data-name="Kind" { @match member.make { Some(make) => (make.saturating_add(1)), None => "not known" } }
                        }
                        td.number data-name="Slots free" { (member.free) " of " (member.total) }
                        td.number data-name="Held" { (member.held) }
                        td data-name="Last heard of" { (moment(member.heard_at.as_deref())) }
                        td data-name="Started" { @match &member.started_at { Some(at) => (instant(at)), None => "not known" } }
                    }
                }
            }
        }
    }
}

fn standing(member: &ExecutorView) -> Markup {
    let word = member.state.as_str();
    html! {
        @match member.state {
            ExecutorState::Ready => span.good { (word) },
            ExecutorState::Draining => span.soft { (word) },
            ExecutorState::Unready | ExecutorState::Silent => span.bad { (word) },
        }
        @if !member.why.is_empty() { ": " (shown(&member.why)) }
    }
}
