//! Day of tickets on a virtual clock: requests, the queue for slots, and the load on all services.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use domain::{RunId, SlotQueue, Timestamp, limits::WriteBucket};
use fastrand::Rng;
use ingest::TrackedPullRequest;
use tokio::time::Instant;

use crate::scale_sim::{
    ScaleArguments,
    polls::{SimulatedPolls, SimulatedPullRequest},
    shares::{LoadShares, MinuteLoad},
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Mean time for which a pull request is open.
const OPEN_FOR: f64 = (3 * DAY) as f64;
/// Mean time until a review.
const REVIEW_AFTER: f64 = (10 * HOUR) as f64;
/// Slot time of the work, of a repair and of an answer to a review: 40, 15 and 20 turns of half a minute.
const WORK: [u64; 3] = [20 * MINUTE, 8 * MINUTE, 10 * MINUTE];
const CHECKS: u64 = 8 * MINUTE;
/// Office hours, in which nine of ten tickets arrive.
const OFFICE: std::ops::Range<u64> = 8..18;
const IN_OFFICE: f64 = 0.9;
/// Webhooks of a repository per office hour without Journeyman: pushes, checks and pull requests of users.
const OTHERS: f64 = 12.0;
/// One of this many webhooks changes a pull request.
const CHANGES: u64 = 4;
/// Webhooks that a ticket itself causes.
const OWN_WEBHOOKS: u64 = 40;

/// Next event of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TicketEvent {
    Asked,
    WantsSlot { stage: usize },
    Worked { stage: usize },
    Reviewed,
    Merged,
}

/// Simulated day and its load.
pub(crate) struct SimulatedDay {
    pub(crate) minutes: Vec<MinuteLoad>,
    pub(crate) tickets: u64,
    /// Largest number of concurrent runs, and of runs that wait for a slot.
    pub(crate) busiest_slots: usize,
    pub(crate) longest_queue: usize,
    pub(crate) longest_wait: Duration,
    /// Longest delay of a poll of checks whose webhook was missing.
    pub(crate) latest_look: Duration,
    /// Longest delay of a write by the pace that GitHub permits.
    pub(crate) latest_write: Duration,
}

struct DaySimulation<'a> {
    shares: &'a LoadShares,
    start: Instant,
    rng: Rng,
    events: BinaryHeap<Reverse<(u64, u64, TicketEvent)>>,
    polls: SimulatedPolls,
    open: Vec<SimulatedPullRequest>,
    /// Ticket of each entry of `open`.
    owners: Vec<u64>,
    queue: SlotQueue,
    free: u32,
    repositories: usize,
    slots: usize,
    /// Time in seconds up to which each bucket of writes is filled.
    buckets: Vec<(WriteBucket, f64)>,
    day: SimulatedDay,
}

/// Simulates one day of tickets.
pub(crate) fn simulate_day(scale: &ScaleArguments, shares: &LoadShares) -> SimulatedDay {
    let start = Instant::now();
    let mut simulation = DaySimulation {
        shares,
        start,
        rng: Rng::with_seed(scale.seed),
        events: BinaryHeap::new(),
        polls: SimulatedPolls::new(
            Duration::from_secs(scale.poll_interval_s),
            scale.repositories as usize,
            scale.repositories.div_ceil(10).into(),
            start,
        ),
        open: Vec::new(),
        owners: Vec::new(),
        queue: SlotQueue::default(),
        free: scale.executors,
        repositories: scale.repositories as usize,
        slots: scale.executors as usize,
        buckets: github::WRITES.buckets().map(|bucket| (bucket, 0.0)).collect(),
        day: SimulatedDay {
            minutes: vec![MinuteLoad::default(); (DAY / MINUTE) as usize],
            tickets: 0,
            busiest_slots: 0,
            longest_queue: 0,
            longest_wait: Duration::ZERO,
            latest_look: Duration::ZERO,
            latest_write: Duration::ZERO,
        },
    };
    simulation.begin(scale);
    simulation.run(scale.poll_interval_s);
    simulation.day
}

impl DaySimulation<'_> {
    /// Adds the pull requests that are open at midnight, and as many tickets as keep their number constant.
    fn begin(&mut self, scale: &ScaleArguments) {
        for number in 0..scale.pull_requests {
            self.opened(number, 0, true);
            let merged = self.after(OPEN_FOR);
            self.events.push(Reverse((merged, number, TicketEvent::Merged)));
        }
        let tickets = (scale.pull_requests as f64 * DAY as f64 / OPEN_FOR).round() as u64;
        for number in 0..tickets {
            let hour = if self.rng.f64() < IN_OFFICE {
                self.rng.u64(OFFICE)
            } else {
                self.rng.u64(0..24)
            };
            let at = hour * HOUR + self.rng.u64(0..HOUR);
            self.events
                .push(Reverse((at, scale.pull_requests + number, TicketEvent::Asked)));
        }
    }

    fn run(&mut self, poll_interval_s: u64) {
        let mut next_poll = 0;
        for second in 0..DAY {
            while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= second) {
                if let Some(Reverse((_, ticket, event))) = self.events.pop() {
                    self.happen(second, ticket, event);
                }
            }
            self.others(second);
            if second >= next_poll {
                next_poll = second + poll_interval_s;
                self.poll(second);
            }
            if second % MINUTE == 0 {
                self.hold(second);
            }
        }
    }

    fn happen(&mut self, second: u64, ticket: u64, event: TicketEvent) {
        let at = |seconds: u64| second + seconds;
        match event {
            TicketEvent::Asked => {
                self.day.tickets += 1;
                self.part(second);
                self.happen(second, ticket, TicketEvent::WantsSlot { stage: 0 });
            }
            TicketEvent::WantsSlot { stage } => self.wants_slot(second, ticket, stage),
            TicketEvent::Worked { stage } => {
                self.free += 1;
                self.part(second);
                self.webhooks(second, OWN_WEBHOOKS / WORK.len() as u64);
                self.pushed(second, ticket);
                let next = match stage {
                    0 => (at(CHECKS), TicketEvent::WantsSlot { stage: 1 }),
                    1 => (at(CHECKS + self.after(REVIEW_AFTER)), TicketEvent::Reviewed),
                    _ => (at(self.after(OPEN_FOR)), TicketEvent::Merged),
                };
                self.events.push(Reverse((next.0, ticket, next.1)));
                self.next_in_queue(second);
            }
            TicketEvent::Reviewed => self.happen(second, ticket, TicketEvent::WantsSlot { stage: 2 }),
            TicketEvent::Merged => {
                if let Some(place) = self.owners.iter().position(|owner| *owner == ticket) {
                    self.polls.changed(self.open[place].repository, true);
                    drop((self.open.swap_remove(place), self.owners.swap_remove(place)));
                    self.part(second);
                }
            }
        }
    }

    /// Takes a slot for the ticket's run if it is next in the planners' queue; otherwise the run joins the
    /// queue.
    fn wants_slot(&mut self, second: u64, ticket: u64, stage: usize) {
        let run = run_id(ticket, stage);
        if self.queue.is_turn(&run, self.free) {
            self.take_slot(second, ticket, stage);
        } else if self
            .queue
            .join(&run, Timestamp::from_unix_ms((second * 1000).cast_signed()))
        {
            self.minute(second).stored += 1.0;
            self.day.longest_queue = self.day.longest_queue.max(self.queue.waiting.len());
        }
    }

    fn take_slot(&mut self, second: u64, ticket: u64, stage: usize) {
        self.free -= 1;
        let used = self.slots - self.free as usize;
        self.day.busiest_slots = self.day.busiest_slots.max(used);
        let end = second + WORK[stage];
        self.events
            .push(Reverse((end, ticket, TicketEvent::Worked { stage })));
    }

    fn next_in_queue(&mut self, second: u64) {
        let Some(first) = self.queue.waiting.first().cloned() else {
            return;
        };
        if self.queue.is_turn(&first.run, self.free) && self.queue.leave(&first.run) {
            // One write for the queue's record, one for the wake-up.
            self.minute(second).stored += 2.0;
            let waited = Timestamp::from_unix_ms((second * 1000).cast_signed()).since(first.since);
            self.day.longest_wait = self.day.longest_wait.max(waited);
            // The run id encodes ticket and stage, see `run_id`.
            let (ticket, stage) = (first.run.sequence() / 10, (first.run.sequence() % 10) as usize);
            self.take_slot(second, ticket, stage);
        }
    }

    /// Adds a fifth of the measured ticket. Its path has five parts of similar cost.
    fn part(&mut self, second: u64) {
        let shares = self.shares;
        self.minute(second).add_part(shares);
        self.write(second, shares.writes_a_part());
    }

    /// Spreads writes by the pace of the buckets.
    fn write(&mut self, second: u64, writes: f64) {
        let now = second as f64;
        for (bucket, ahead) in &mut self.buckets {
            *ahead = ahead.max(now) + writes * bucket.interval.as_secs_f64();
            let wait = bucket.wait(Duration::from_secs_f64(*ahead - now));
            self.day.latest_write = self.day.latest_write.max(wait);
        }
    }

    fn opened(&mut self, ticket: u64, second: u64, is_checked: bool) {
        let now = self.at(second);
        let head = format!("{ticket:040x}").parse().ok();
        let checks = if is_checked { 0 } else { CHECKS };
        self.open.push(SimulatedPullRequest {
            repository: self.rng.usize(0..self.repositories),
            tracked: TrackedPullRequest::new(head, self.polls.interval, now),
            checked: now + Duration::from_secs(checks),
        });
        self.owners.push(ticket);
    }

    /// Records a new head, or opens a pull request.
    fn pushed(&mut self, second: u64, ticket: u64) {
        let now = self.at(second);
        let Some(place) = self.owners.iter().position(|owner| *owner == ticket) else {
            return self.opened(ticket, second, false);
        };
        let (head, open) = (format!("{:040x}", self.rng.u128(..)), &mut self.open[place]);
        if let Ok(head) = head.parse() {
            open.tracked.update_head(&head, now);
        }
        open.checked = now + Duration::from_secs(CHECKS);
        self.polls.changed(open.repository, true);
    }

    /// Adds the activity of users in the same repositories.
    fn others(&mut self, second: u64) {
        let share = if OFFICE.contains(&(second / HOUR)) {
            1.0
        } else {
            0.1
        };
        let a_second = OTHERS * self.repositories as f64 / HOUR as f64 * share;
        // The fraction of a webhook becomes a probability.
        let count = a_second.floor() as u64 + u64::from(self.rng.f64() < a_second.fract());
        self.webhooks(second, count);
        for _ in 0..count {
            if self.rng.u64(0..CHANGES) == 0 {
                let repository = self.rng.usize(0..self.repositories);
                self.polls.changed(repository, false);
            }
        }
    }

    fn webhooks(&mut self, second: u64, count: u64) {
        let now = self.at(second);
        (0..count).for_each(|_| self.polls.delivered(now));
        let minute = self.minute(second);
        minute.webhooks += count as f64;
        // A delivery is one stored message, one pull request to the consumer and one acknowledgment.
        minute.stored += count as f64;
        minute.acknowledged += count as f64;
        minute.asked += count as f64;
    }

    fn poll(&mut self, second: u64) {
        let now = self.at(second);
        let round = self.polls.round(&mut self.open, now);
        self.day.latest_look = self.day.latest_look.max(round.latest);
        let minute = self.minute(second);
        minute.reader_unchanged += round.unchanged as f64;
        minute.reader_counted += round.counted as f64;
        minute.jira_reader += round.jira as f64;
    }

    /// Adds the minute's load of runs with a slot, and of idle services.
    fn hold(&mut self, second: u64) {
        let (shares, active) = (self.shares, self.slots - self.free as usize);
        self.minute(second).add_minute(shares, active as f64);
    }

    fn minute(&mut self, second: u64) -> &mut MinuteLoad {
        &mut self.day.minutes[(second / MINUTE) as usize]
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    /// Draws an exponentially distributed time.
    fn after(&mut self, mean: f64) -> u64 {
        // The logarithm of 0 would be infinite.
        (-self.rng.f64().max(f64::EPSILON).ln() * mean) as u64
    }
}

/// Returns a run id that encodes ticket and stage.
#[expect(clippy::unwrap_used, reason = "the name is well formed")]
fn run_id(ticket: u64, stage: usize) -> RunId {
    let sequence = ticket * 10 + stage as u64;
    format!("jira:SIM-{}@{sequence}", ticket + 1).parse().unwrap()
}
