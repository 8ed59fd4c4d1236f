//! Budgets beyond one run: of a ticket, and of a repository and an organization in a period.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::{Date, Month, OffsetDateTime, Time};

use crate::{Budget, Dollars, Job, RunId, Timestamp};

/// What models took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Millionths of a dollar.
    pub cost_micros: u64,
    /// Tokens read and written.
    pub tokens: u64,
}

impl Amount {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

/// What the runs of a ticket have taken so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketCost {
    /// The latest runs that asked a model, oldest first; at most 20.
    pub runs: Vec<RunCost>,
    /// Of all runs.
    pub cost_usd: Dollars,
    /// Of all runs, read and written.
    pub tokens: u64,
    /// Whether the price of every model is known; otherwise it is more money than that.
    pub is_priced: bool,
}

/// What one run has taken so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCost {
    /// The run.
    pub run: RunId,
    /// Its kind of work.
    pub job: Job,
    /// Money, as far as prices are known.
    pub cost_usd: Dollars,
    /// Tokens read and written.
    pub tokens: u64,
}

/// What a ticket may take in all its runs, and what the others of them had taken when this run's limits were set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketLimits {
    /// Money for models; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// Tokens that models read and write; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money that the other runs took.
    #[serde(default)]
    pub spent_usd: Dollars,
    /// Tokens that they took.
    #[serde(default)]
    pub spent_tokens: u64,
}

/// Whose a budget beyond one run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetOf {
    /// A ticket's, for all its runs.
    Ticket,
    /// A repository's, in a period.
    Repository,
    /// That of all repositories of one owner, in a period.
    Organization,
}

impl BudgetOf {
    /// The name in settings, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Repository => "repository",
            Self::Organization => "organization",
        }
    }
}

/// How long a budget lasts; UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the next.
    Month,
}

impl Period {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// The name in settings, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The first instant of the period that an instant lies in, and the first one after it.
    pub fn around(self, at: Timestamp) -> (Timestamp, Timestamp) {
        let (first, next) = self.dates(at);
        (midnight(first), next.map_or(at, midnight))
    }

    /// The period that an instant lies in: `2026-11-23`, `2026-11`.
    pub fn name(self, at: Timestamp) -> String {
        let (first, _) = self.dates(at);
        let (year, month) = (first.year(), u8::from(first.month()));
        match self {
            Self::Day => format!("{year:04}-{month:02}-{:02}", first.day()),
            Self::Month => format!("{year:04}-{month:02}"),
        }
    }

    fn dates(self, at: Timestamp) -> (Date, Option<Date>) {
        let instant = OffsetDateTime::from_unix_timestamp(at.unix_s());
        let date = instant.unwrap_or(OffsetDateTime::UNIX_EPOCH).date();
        match self {
            Self::Day => (date, date.next_day()),
            Self::Month => {
                let first = date.replace_day(1).unwrap_or(date);
                let year = first.year() + i32::from(first.month() == Month::December);
                (
                    first,
                    Date::from_calendar_date(year, first.month().next(), 1).ok(),
                )
            }
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn midnight(date: Date) -> Timestamp {
    let instant = date.with_time(Time::MIDNIGHT).assume_utc();
    Timestamp::from_unix_ms(instant.unix_timestamp().saturating_mul(1000))
}

/// A budget beyond one run that has no room for a call of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedBudget {
    /// Whose it is.
    pub of: BudgetOf,
    /// The name of the ticket, repository or organization.
    pub name: String,
    /// How long it lasts; absent: for all time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// What there is too little of: money or tokens.
    pub budget: Budget,
    /// What was taken, and what calls under way may take, in the unit of the budget.
    pub spent: u64,
    /// What may be taken.
    pub limit: u64,
    /// What the call may take at most.
    pub needs: u64,
    /// When there is room again; absent: waiting brings none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn days_and_months_begin_at_midnight_utc() {
        for (period, when, name, first, next) in [
            (
                Period::Day,
                "2026-11-23T23:59:59.999Z",
                "2026-11-23",
                "2026-11-23T00:00:00Z",
                "2026-11-24T00:00:00Z",
            ),
            (
                Period::Day,
                "2026-11-24T01:00:00+02:00",
                "2026-11-23",
                "2026-11-23T00:00:00Z",
                "2026-11-24T00:00:00Z",
            ),
            (
                Period::Day,
                "2028-02-28T00:00:00Z",
                "2028-02-28",
                "2028-02-28T00:00:00Z",
                "2028-02-29T00:00:00Z",
            ),
            (
                Period::Month,
                "2026-12-31T12:00:00Z",
                "2026-12",
                "2026-12-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                Period::Month,
                "2026-11-01T00:00:00Z",
                "2026-11",
                "2026-11-01T00:00:00Z",
                "2026-12-01T00:00:00Z",
            ),
        ] {
            assert_eq!(period.name(at(when)), name);
            assert_eq!(period.around(at(when)), (at(first), at(next)), "{when}");
        }
    }
}
