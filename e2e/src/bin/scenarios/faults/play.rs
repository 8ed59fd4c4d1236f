//! Play: tickets arrive, strikes hit and users act until every ticket is done or the time is over.

use std::{collections::BTreeMap, time::Duration};

use e2e::findings::TicketProblem;
use testkit::fixture;
use tokio::time::Instant;

use crate::faults::{
    check,
    people::FaultTicket,
    schedule::{FaultSchedule, IN_FLIGHT, ScheduledStrike},
    stage::FaultStage,
    summary::PlaySummary,
};
use crate::output::print_line;

/// Interval between two checks of all tickets.
const TICK: Duration = Duration::from_millis(100);
/// Interval between two progress lines.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Longest delay of a strike that would hit a spared ticket.
const SPARED: Duration = Duration::from_secs(20);
/// Time without a step of any ticket, after which the unfinished tickets count as lost.
const QUIET: Duration = Duration::from_secs(90);
/// Time limit of the play: a base, and an addition for each ticket.
const LIMIT: Duration = Duration::from_secs(300);
const LIMIT_PER_TICKET: Duration = Duration::from_secs(8);
/// Time for the reporter to delete duplicates after lists are up to date.
const TIDY: Duration = Duration::from_secs(50);

/// Plays a schedule. Returns true if nothing was lost or duplicated.
pub(crate) async fn play_schedule(schedule: FaultSchedule) -> anyhow::Result<bool> {
    print_line(&format!(
        "faults: seed {}, {} tickets, {} strikes within {} s",
        schedule.seed,
        schedule.arrivals.len(),
        schedule.strikes.len(),
        schedule.end().as_secs()
    ));
    let mut stage = Box::pin(FaultStage::start(&schedule)).await?;
    stage.world.keep_logs();
    print_line(&format!("logs: {}", stage.world.logs().display()));
    let mut tickets = Vec::new();
    let mut summary = PlaySummary::default();
    Box::pin(run_play(&schedule, &mut stage, &mut tickets, &mut summary)).await?;
    // The invariants hold only while all processes run.
    stage.mend_all().await?;
    let problems = settle_problems(&stage, &tickets).await;
    summary.print(&stage, &schedule, &tickets, &problems).await;
    let logs = stage.world.logs().to_owned();
    let stopped = stage.stop().await;
    if !problems.is_empty() {
        print_line(&format!("logs: {}", logs.display()));
        return Ok(false);
    }
    stopped?;
    std::fs::remove_dir_all(logs)?;
    Ok(true)
}

/// State of the play.
struct FaultPlay<'a> {
    start: Instant,
    stage: &'a mut FaultStage,
    tickets: &'a mut Vec<FaultTicket>,
    summary: &'a mut PlaySummary,
    last_strike: Instant,
    last_step: Instant,
}

async fn run_play(
    schedule: &FaultSchedule,
    stage: &mut FaultStage,
    tickets: &mut Vec<FaultTicket>,
    summary: &mut PlaySummary,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut strikes = schedule.strikes.iter().peekable();
    let mut arrivals = schedule.arrivals.iter().peekable();
    let count = u32::try_from(schedule.arrivals.len())?;
    let end = start + LIMIT + LIMIT_PER_TICKET * count;
    let mut next_line = start;
    let mut play = FaultPlay {
        start,
        stage,
        tickets,
        summary,
        last_strike: start,
        last_step: start,
    };
    loop {
        play.stage.mend().await?;
        if let Some(strike) = strikes.next_if(|strike| play.may_strike(strike)) {
            play.strike(strike).await?;
        }
        if let Some(arrival) = arrivals.next_if(|arrival| play.may_arrive(arrival.at)) {
            let ticket = FaultTicket::ask(&play.stage.world, play.tickets.len() + 1, arrival.course)?;
            play.tickets.push(ticket);
        }
        play.check_tickets()?;
        let now = Instant::now();
        if now >= next_line {
            play.summary.print_progress(start, play.tickets);
            next_line = now + LINE_EVERY;
        }
        let is_over = strikes.peek().is_none() && arrivals.peek().is_none() && play.under_way() == 0;
        if is_over || now >= end || play.last_step + QUIET <= now {
            return Ok(());
        }
        tokio::time::sleep(TICK).await;
    }
}

impl FaultPlay<'_> {
    fn under_way(&self) -> usize {
        self.tickets
            .iter()
            .filter(|ticket| ticket.note.done.is_none())
            .count()
    }

    fn may_arrive(&self, at: Duration) -> bool {
        self.start.elapsed() >= at && self.under_way() < IN_FLIGHT
    }

    /// True if a strike may hit now. Five takeovers without a step quarantine a ticket, which is correct
    /// behavior; a slow machine must not cause it here.
    fn may_strike(&self, strike: &ScheduledStrike) -> bool {
        let is_spared = self.tickets.iter().any(FaultTicket::is_hard_hit);
        self.start.elapsed() >= strike.at && (!is_spared || self.last_strike.elapsed() >= SPARED)
    }

    async fn strike(&mut self, strike: &ScheduledStrike) -> anyhow::Result<()> {
        self.stage.strike(strike).await?;
        self.last_strike = Instant::now();
        self.summary.strikes += 1;
        for ticket in self.tickets.iter_mut() {
            ticket.struck(self.last_strike);
        }
        Ok(())
    }

    fn check_tickets(&mut self) -> anyhow::Result<()> {
        let world = &self.stage.world;
        let pulls = world.github.pull_requests(fixture::REPOSITORY).into_iter();
        let pulls: BTreeMap<_, _> = pulls.map(|pull| (pull.head.clone(), pull)).collect();
        let calls = world.model.call_counts();
        for ticket in self
            .tickets
            .iter_mut()
            .filter(|ticket| ticket.note.done.is_none())
        {
            if let Some(strikes) = ticket.act(world, &pulls, &calls)? {
                self.last_step = Instant::now();
                let recovered = strikes.into_iter().map(|struck| struck.elapsed());
                self.summary.recoveries.extend(recovered);
            }
        }
        Ok(())
    }
}

/// Returns the problems at the end, after duplicates have been deleted and runs have ended.
async fn settle_problems(stage: &FaultStage, tickets: &[FaultTicket]) -> Vec<TicketProblem> {
    let end = Instant::now() + TIDY;
    loop {
        let problems = check::check_invariants(&stage.world, tickets).await;
        if problems.is_empty() || Instant::now() >= end {
            return problems;
        }
        tokio::time::sleep(TICK * 10).await;
    }
}
