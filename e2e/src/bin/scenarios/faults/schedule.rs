//! The schedule: which ticket arrives when and what fails when. It follows from the seed and the number of tickets.

use std::{fmt, time::Duration};

use fastrand::Rng;

/// How many processes there are of each service.
pub(crate) const REPLICAS: usize = 2;
/// How long a message's holder may be silent.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(3);
/// How long a planner's lease lasts without renewal.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// Frozen for twice the longer of the two, a process has lost what it held.
const FROZEN: Duration = Duration::from_secs(6);
/// Nothing fails before the first tickets are under way.
const FIRST_STRIKE_MS: u64 = 4_000;
/// Between two strikes at least.
const GAP_MS: std::ops::Range<u64> = 3_500..4_500;
/// How much of the schedule there is for each ticket.
const MS_PER_TICKET: u64 = 1_500;
/// More tickets than these are not under way at once.
pub(crate) const IN_FLIGHT: usize = 12;
/// From so many tickets on, the outside is as slow as the real one; below, its lags and our windows are shorter.
const FULL: u32 = 100;

/// What fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL; started again after a while.
    Kill { process: String, down: Duration },
    /// SIGSTOP, later SIGCONT.
    Freeze { process: String, lasts: Duration },
    /// NATS ends, politely or killed, and comes back over the same data.
    RestartNats { is_polite: bool, down: Duration },
    /// Redis ends and comes back empty.
    RestartRedis { down: Duration },
    /// Redis forgets everything.
    FlushRedis,
}

impl Fault {
    /// Its kind, to count it by.
    pub(crate) fn kind(&self) -> String {
        let service = |process: &str| process.split('-').next().unwrap_or_default().to_owned();
        match self {
            Self::Kill { process, .. } => format!("kill {}", service(process)),
            Self::Freeze { process, .. } => format!("freeze {}", service(process)),
            Self::RestartNats { .. } => "restart nats".to_owned(),
            Self::RestartRedis { .. } => "restart redis".to_owned(),
            Self::FlushRedis => "flush redis".to_owned(),
        }
    }

    /// How long it lasts.
    pub(crate) fn lasts(&self) -> Duration {
        match self {
            Self::Kill { down, .. } | Self::RestartNats { down, .. } | Self::RestartRedis { down } => *down,
            Self::Freeze { lasts, .. } => *lasts,
            Self::FlushRedis => Duration::ZERO,
        }
    }
}

/// One fault at its earliest time after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
}

/// What happens when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    /// When each ticket is asked for at the earliest, in order.
    pub(crate) arrivals: Vec<Duration>,
    /// In order of time.
    pub(crate) strikes: Vec<Strike>,
    /// How far lists lag behind.
    pub(crate) list_lag: Duration,
    /// How long the outside is silent where it applies a write and does not answer.
    pub(crate) silence: Duration,
}

impl Schedule {
    pub(crate) fn new(seed: u64, tickets: u32) -> Self {
        let mut draw = Rng::with_seed(seed);
        let wanted_ms = u64::from(tickets) * MS_PER_TICKET;
        let mut at = FIRST_STRIKE_MS;
        let mut strikes = Vec::new();
        // Whole rounds, so that every kind of fault has its turn.
        while strikes.is_empty() || at < wanted_ms {
            for fault in round(&mut draw) {
                strikes.push(Strike {
                    at: Duration::from_millis(at),
                    fault,
                });
                at += draw.u64(GAP_MS);
            }
        }
        let apart = Duration::from_millis(at) * 8 / 10 / tickets;
        let is_full = tickets >= FULL;
        Self {
            seed,
            arrivals: (0..tickets).map(|number| apart * number).collect(),
            strikes,
            list_lag: Duration::from_secs(if is_full { 5 } else { 1 }),
            silence: Duration::from_secs(if is_full { 21 } else { 3 }),
        }
    }

    /// When the last strike is over.
    pub(crate) fn end(&self) -> Duration {
        let ends = self.strikes.iter().map(|strike| strike.at + strike.fault.lasts());
        ends.max().unwrap_or_default()
    }
}

/// Each kind of fault once, in an order of its own.
fn round(draw: &mut Rng) -> Vec<Fault> {
    let down = |draw: &mut Rng| Duration::from_millis(draw.u64(200..1_500));
    let process = |draw: &mut Rng, service: &str| match draw.usize(1..=REPLICAS) {
        1 => service.to_owned(),
        number => format!("{service}-{number}"),
    };
    let mut faults: Vec<Fault> = Vec::new();
    for service in ["ingest", "planner", "executor", "reporter"] {
        faults.push(Fault::Kill {
            process: process(draw, service),
            down: down(draw),
        });
    }
    for service in ["planner", "reporter"] {
        faults.push(Fault::Freeze {
            process: process(draw, service),
            lasts: FROZEN,
        });
    }
    faults.push(Fault::RestartNats {
        is_polite: draw.bool(),
        down: down(draw),
    });
    faults.push(Fault::RestartRedis { down: down(draw) });
    faults.push(Fault::FlushRedis);
    draw.shuffle(&mut faults);
    faults
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.arrivals.last().copied().unwrap_or_default();
        writeln!(
            f,
            "seed {}: {} tickets within {:.1} s, lists lag {} s",
            self.seed,
            self.arrivals.len(),
            last.as_secs_f64(),
            self.list_lag.as_secs()
        )?;
        for Strike { at, fault } in &self.strikes {
            let whom = match fault {
                Fault::Kill { process, .. } | Fault::Freeze { process, .. } => process.as_str(),
                Fault::RestartNats { is_polite: true, .. } => "politely",
                Fault::RestartNats { .. } | Fault::RestartRedis { .. } | Fault::FlushRedis => "",
            };
            let (at, lasts) = (at.as_secs_f64(), fault.lasts().as_secs_f64());
            writeln!(f, "{at:>7.1} s  {:<16} {whom:<11} for {lasts:.1} s", fault.kind())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_seed_repeats_its_schedule_and_another_one_differs() {
        assert_eq!(Schedule::new(7, 40), Schedule::new(7, 40));
        assert_ne!(Schedule::new(7, 40).strikes, Schedule::new(8, 40).strikes);
    }

    #[test]
    fn every_kind_of_fault_strikes_as_often_as_every_other() {
        let schedule = Schedule::new(1, 200);
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for strike in &schedule.strikes {
            *kinds.entry(strike.fault.kind()).or_default() += 1;
        }
        assert_eq!(kinds.len(), 9, "{kinds:?}");
        assert!(
            kinds.values().all(|count| *count == schedule.strikes.len() / 9),
            "{kinds:?}"
        );
    }

    #[test]
    fn tickets_arrive_while_things_fail() {
        for tickets in [1, 20, 200] {
            let schedule = Schedule::new(3, tickets);
            assert_eq!(schedule.arrivals.len(), tickets as usize);
            assert!(schedule.arrivals.iter().all(|at| *at < schedule.end()));
            assert!(schedule.strikes.is_sorted_by_key(|strike| strike.at));
        }
    }
}
