//! Schedule of arrivals and faults. It depends on the seed and the number of tickets alone.

use std::{collections::BTreeMap, fmt, time::Duration};

use e2e::NoteCourse;
use fastrand::Rng;

/// Number of processes of each service.
pub(crate) const REPLICAS: usize = 2;
/// Time for which the holder of a message may be silent.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(3);
/// Duration of a planner's lease without renewal.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
// Freeze of a process: twice the longer of the two, so that it has certainly lost its message and lease.
const FROZEN: Duration = Duration::from_secs(6);
/// Start of the faults, after the first tickets are in progress.
const FIRST_STRIKE_MS: u64 = 4_000;
/// Gap between two strikes.
const GAP_MS: std::ops::Range<u64> = 3_500..4_500;
/// Length of the schedule for each ticket.
const MS_PER_TICKET: u64 = 1_500;
/// Maximum number of tickets in progress.
pub(crate) const IN_FLIGHT: usize = 12;
// Courses of ten tickets, in random order.
const COURSES: [NoteCourse; 10] = [
    NoteCourse::Signed,
    NoteCourse::Conflict,
    NoteCourse::QueueConflict,
    NoteCourse::Dequeued,
    NoteCourse::Plain,
    NoteCourse::Plain,
    NoteCourse::Plain,
    NoteCourse::Plain,
    NoteCourse::Plain,
    NoteCourse::Plain,
];
// Number of tickets from which the external services are as slow as the real ones. Below it, their lags and
// our windows are shorter.
const FULL: u32 = 100;

/// Fault of a process or server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessFault {
    /// SIGKILL, and a restart after a while.
    Kill { process: String, down: Duration },
    /// SIGSTOP, and later SIGCONT.
    Freeze { process: String, lasts: Duration },
    /// End of NATS, drained or killed, and a restart with the same data.
    RestartNats { is_polite: bool, down: Duration },
    /// End of Redis and a restart without data.
    RestartRedis { down: Duration },
    /// Removal of all data in Redis.
    FlushRedis,
}

impl ProcessFault {
    /// Returns the kind by which faults are counted.
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

    /// Returns the duration of the fault.
    pub(crate) fn lasts(&self) -> Duration {
        match self {
            Self::Kill { down, .. } | Self::RestartNats { down, .. } | Self::RestartRedis { down } => *down,
            Self::Freeze { lasts, .. } => *lasts,
            Self::FlushRedis => Duration::ZERO,
        }
    }
}

/// Fault with its earliest time after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScheduledStrike {
    pub(crate) at: Duration,
    pub(crate) fault: ProcessFault,
}

/// Ticket with the earliest time of its request after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScheduledArrival {
    pub(crate) at: Duration,
    pub(crate) course: NoteCourse,
}

/// Arrivals and strikes of a play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultSchedule {
    pub(crate) seed: u64,
    /// Tickets in order of time.
    pub(crate) arrivals: Vec<ScheduledArrival>,
    /// Strikes in order of time.
    pub(crate) strikes: Vec<ScheduledStrike>,
    /// Lag of GitHub's and Jira's lists.
    pub(crate) list_lag: Duration,
    /// Silence of an external service that applies a write without an answer.
    pub(crate) silence: Duration,
}

impl FaultSchedule {
    pub(crate) fn new(seed: u64, tickets: u32) -> Self {
        let mut draw = Rng::with_seed(seed);
        let wanted_ms = u64::from(tickets) * MS_PER_TICKET;
        let mut at = FIRST_STRIKE_MS;
        let mut strikes = Vec::new();
        // Whole rounds, so that every kind of fault occurs equally often.
        while strikes.is_empty() || at < wanted_ms {
            for fault in draw_round(&mut draw) {
                strikes.push(ScheduledStrike {
                    at: Duration::from_millis(at),
                    fault,
                });
                at += draw.u64(GAP_MS);
            }
        }
        // The last ticket arrives at 80 % of the schedule, so that it still meets faults.
        let apart = Duration::from_millis(at) * 8 / 10 / tickets;
        let is_full = tickets >= FULL;
        let arrivals = (0..tickets).zip(draw_courses(&mut draw));
        Self {
            seed,
            arrivals: arrivals
                .map(|(number, course)| ScheduledArrival {
                    at: apart * number,
                    course,
                })
                .collect(),
            strikes,
            list_lag: Duration::from_secs(if is_full { 5 } else { 1 }),
            // 21 s exceed the total timeout of our clients of GitHub and Jira, which is 20 s.
            silence: Duration::from_secs(if is_full { 21 } else { 3 }),
        }
    }

    /// Returns the numbers of the tickets whose branches require signed commits. The first ticket has number 1.
    pub(crate) fn signed_tickets(&self) -> Vec<usize> {
        let numbered = (1..).zip(&self.arrivals);
        let signed = numbered.filter(|(_, arrival)| arrival.course == NoteCourse::Signed);
        signed.map(|(number, _)| number).collect()
    }

    /// Returns the end of the last strike.
    pub(crate) fn end(&self) -> Duration {
        let ends = self.strikes.iter().map(|strike| strike.at + strike.fault.lasts());
        ends.max().unwrap_or_default()
    }
}

/// Returns the courses of all tickets: of ten tickets in a row, each has one of [`COURSES`].
fn draw_courses(draw: &mut Rng) -> impl Iterator<Item = NoteCourse> {
    std::iter::repeat_with(move || {
        let mut courses = COURSES;
        draw.shuffle(&mut courses);
        courses
    })
    .flatten()
}

/// Returns each kind of fault once, in random order.
fn draw_round(draw: &mut Rng) -> Vec<ProcessFault> {
    let down = |draw: &mut Rng| Duration::from_millis(draw.u64(200..1_500));
    let process = |draw: &mut Rng, service: &str| match draw.usize(1..=REPLICAS) {
        1 => service.to_owned(),
        number => format!("{service}-{number}"),
    };
    let mut faults: Vec<ProcessFault> = Vec::new();
    for service in ["ingest", "planner", "executor", "reporter"] {
        faults.push(ProcessFault::Kill {
            process: process(draw, service),
            down: down(draw),
        });
    }
    for service in ["planner", "reporter"] {
        faults.push(ProcessFault::Freeze {
            process: process(draw, service),
            lasts: FROZEN,
        });
    }
    faults.push(ProcessFault::RestartNats {
        is_polite: draw.bool(),
        down: down(draw),
    });
    faults.push(ProcessFault::RestartRedis { down: down(draw) });
    faults.push(ProcessFault::FlushRedis);
    draw.shuffle(&mut faults);
    faults
}

impl fmt::Display for FaultSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.arrivals.last().map_or(Duration::ZERO, |arrival| arrival.at);
        writeln!(
            f,
            "seed {}: {} tickets within {:.1} s, lists lag {} s",
            self.seed,
            self.arrivals.len(),
            last.as_secs_f64(),
            self.list_lag.as_secs()
        )?;
        let mut courses: BTreeMap<NoteCourse, usize> = BTreeMap::new();
        for arrival in &self.arrivals {
            *courses.entry(arrival.course).or_default() += 1;
        }
        for (course, count) in courses {
            writeln!(f, "{count:>7} {course}")?;
        }
        for ScheduledStrike { at, fault } in &self.strikes {
            let whom = match fault {
                ProcessFault::Kill { process, .. } | ProcessFault::Freeze { process, .. } => process.as_str(),
                ProcessFault::RestartNats { is_polite: true, .. } => "politely",
                ProcessFault::RestartNats { .. }
                | ProcessFault::RestartRedis { .. }
                | ProcessFault::FlushRedis => "",
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
    fn seed_determines_whole_schedule() {
        assert_eq!(FaultSchedule::new(7, 40), FaultSchedule::new(7, 40));
        assert_ne!(
            FaultSchedule::new(7, 40).strikes,
            FaultSchedule::new(8, 40).strikes
        );
    }

    #[test]
    fn fault_kinds_strike_equally_often() {
        let schedule = FaultSchedule::new(1, 200);
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
    fn ten_tickets_have_every_course() {
        let schedule = FaultSchedule::new(7, 20);
        for ten in schedule.arrivals.chunks(10) {
            for course in [
                NoteCourse::Signed,
                NoteCourse::Conflict,
                NoteCourse::QueueConflict,
                NoteCourse::Dequeued,
            ] {
                let count = ten.iter().filter(|arrival| arrival.course == course).count();
                assert_eq!(count, 1, "{course}");
            }
        }
        assert_eq!(schedule.signed_tickets().len(), 2);
    }

    #[test]
    fn tickets_arrive_while_things_fail() {
        for tickets in [1, 20, 200] {
            let schedule = FaultSchedule::new(3, tickets);
            assert_eq!(schedule.arrivals.len(), tickets as usize);
            assert!(
                schedule
                    .arrivals
                    .iter()
                    .all(|arrival| arrival.at < schedule.end())
            );
            assert!(schedule.strikes.is_sorted_by_key(|strike| strike.at));
        }
    }
}
