//! Fold of journals that sums what the replies of models cost.

use std::collections::BTreeMap;

use crate::{
    budget::{
        amounts::{ModelSpend, RunCost, SpendSum, TicketCost},
        shared_budget::BudgetPeriod,
    },
    identity::{ids::RunId, repository::RepositoryName, time::Timestamp},
    journal::fact::{Fact, JournalEntry},
    trigger::job::Job,
};

// The status comment lists at most this many runs; earlier ones count in the total only.
const MOST_RUNS: usize = 20;

/// Repository and job of a run, as far as its first entry contains them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunSource {
    /// Repository of the work; absent: unknown.
    pub repository: Option<RepositoryName>,
    /// The kind of work; absent: unknown.
    pub job: Option<Job>,
}

impl RunSource {
    /// Returns the source from the first fact of a journal; `None` for every other fact.
    pub fn of(fact: &Fact) -> Option<Self> {
        let Fact::RunStarted { trigger } = fact else {
            return None;
        };
        Some(Self {
            repository: trigger.reason.repository().cloned(),
            job: trigger.reason.job(),
        })
    }
}

/// Period whose replies are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendWindow {
    /// Start of the period.
    pub since: Timestamp,
    /// End of the period, exclusive.
    pub until: Timestamp,
}

impl SpendWindow {
    /// Tolerance for clock differences, in milliseconds: an entry may be stored a little before or after its
    /// timestamp.
    pub const CLOCKS_MS: i64 = 60_000;

    /// Creates a period without an end.
    pub const fn starting_at(since: Timestamp) -> Self {
        Self {
            since,
            until: Timestamp::from_unix_ms(i64::MAX),
        }
    }

    /// Returns true for an instant within the period.
    pub fn contains(self, at: Timestamp) -> bool {
        at >= self.since && at < self.until
    }

    /// Returns the earliest time at which an entry of the period may have been stored.
    pub const fn first_stored(self) -> Timestamp {
        self.since.plus_ms(-Self::CLOCKS_MS)
    }

    /// Returns true for an entry's time after which no entry of the period is stored.
    pub fn is_over(self, at: Timestamp) -> bool {
        at > self.until.plus_ms(Self::CLOCKS_MS)
    }
}

/// Properties by which replies of models are summed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpendKey {
    /// Start of the day of the replies, in UTC.
    pub day: Timestamp,
    /// The run that called the model.
    pub run: RunId,
    /// Repository and job of the run.
    pub source: RunSource,
    /// The provider by its name in the settings; empty in records of earlier releases.
    pub provider: String,
    /// The model by its provider's name for it.
    pub model: String,
}

/// Spend of runs by day, run, provider and model. Every answer about cost is a view of these sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    sums: BTreeMap<SpendKey, SpendSum>,
}

impl Spend {
    /// Returns true for a fact that [`Self::add_journal`] reads.
    pub const fn is_affected_by(fact: &Fact) -> bool {
        matches!(fact, Fact::RunStarted { .. }) || fact.charge().is_some()
    }

    /// Adds a journal from its first entry on.
    pub fn add_journal<'a>(&mut self, run: &RunId, entries: impl IntoIterator<Item = &'a JournalEntry>) {
        let mut source = RunSource::default();
        for entry in entries {
            source = RunSource::of(&entry.fact).unwrap_or(source);
            self.add_entry(run, &source, entry);
        }
    }

    /// Adds an entry. An entry without a reply of a model changes nothing.
    pub fn add_entry(&mut self, run: &RunId, source: &RunSource, entry: &JournalEntry) {
        let Some(charge) = entry.fact.charge() else {
            return;
        };
        let key = SpendKey {
            day: BudgetPeriod::Day.around(entry.at).0,
            run: run.clone(),
            source: source.clone(),
            provider: charge.reply.provider.clone(),
            model: charge.reply.model.clone(),
        };
        self.sums.entry(key).or_default().add(charge.reply);
    }

    /// Sums all replies.
    pub fn total(&self) -> SpendSum {
        self.sums
            .values()
            .copied()
            .fold(SpendSum::default(), SpendSum::plus)
    }

    /// Sums the replies by a property, in its order.
    pub fn sum_by<K: Ord>(&self, property: impl Fn(&SpendKey) -> K) -> BTreeMap<K, SpendSum> {
        let mut sums = BTreeMap::new();
        for (key, sum) in &self.sums {
            let group: &mut SpendSum = sums.entry(property(key)).or_default();
            *group = group.plus(*sum);
        }
        sums
    }

    /// Returns the cost of the ticket whose runs were added. A run without any tokens is not listed.
    pub fn ticket_cost(&self) -> TicketCost {
        let by_run = self.sum_by(|key| (key.run.clone(), key.source.job));
        let listed = by_run.into_iter().filter_map(|((run, job), sum)| {
            let ModelSpend { cost_usd, tokens, .. } = sum.spend;
            let job = job.filter(|_| tokens > 0)?;
            Some(RunCost {
                run,
                job,
                cost_usd,
                tokens,
            })
        });
        let mut runs: Vec<RunCost> = listed.collect();
        runs.drain(..runs.len().saturating_sub(MOST_RUNS));
        let total = self.total().spend;
        TicketCost {
            runs,
            cost_usd: total.cost_usd,
            tokens: total.tokens,
            // One reply without a known price makes the whole sum incomplete.
            is_priced: total.known_cost().is_some(),
        }
    }
}
