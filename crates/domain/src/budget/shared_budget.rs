//! Budgets beyond one run: of a ticket, and of a repository or organization in a period.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use time::{Date, Month, OffsetDateTime, Time};

use crate::{
    budget::run_limits::{BudgetUnit, Dollars},
    identity::time::Timestamp,
};

/// Limits of a ticket over all its runs, with the amounts that its other runs had used when this run started.
// The journals of a ticket are available to its planner, so this budget needs no shared counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketLimits {
    /// Maximum cost of model calls; absent: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// Maximum tokens that models read and write; absent: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost of the other runs, in dollars.
    #[serde(default)]
    pub spent_usd: Dollars,
    /// Tokens of the other runs.
    #[serde(default)]
    pub spent_tokens: u64,
}

/// Owner of a budget beyond one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// A ticket, for all its runs.
    Ticket,
    /// A repository, in a period.
    Repository,
    /// All repositories of one owner together, in a period.
    Organization,
}

impl BudgetScope {
    /// The name in settings, metrics and logs.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Period of a budget, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    /// From midnight to midnight.
    Day,
    /// From the first day of a month to the first day of the next.
    Month,
}

impl BudgetPeriod {
    /// Both periods, the shorter one first.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// The name in settings, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns the start of the period that contains an instant, and the start of the next one.
    pub fn around(self, at: Timestamp) -> (Timestamp, Timestamp) {
        let (first, next) = self.dates(at);
        (find_midnight(first), next.map_or(at, find_midnight))
    }

    /// Returns the name of the period that contains an instant: `2026-11-23`, `2026-11`.
    pub fn name(self, at: Timestamp) -> String {
        let (first, _) = self.dates(at);
        let (year, month) = (first.year(), u8::from(first.month()));
        match self {
            Self::Day => format!("{year:04}-{month:02}-{:02}", first.day()),
            Self::Month => format!("{year:04}-{month:02}"),
        }
    }

    // A time outside of the calendar's range counts as the epoch, which keeps the function total.
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

impl fmt::Display for BudgetPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn find_midnight(date: Date) -> Timestamp {
    let instant = date.with_time(Time::MIDNIGHT).assume_utc();
    Timestamp::from_unix_ms(instant.unix_timestamp().saturating_mul(1000))
}

/// A budget beyond one run whose remainder is too small for a model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedBudget {
    /// Kind of its owner.
    pub of: BudgetScope,
    /// The name of the ticket, repository or organization.
    pub name: String,
    /// Period of the budget; absent: unlimited in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<BudgetPeriod>,
    /// The exhausted unit: money or tokens.
    pub budget: BudgetUnit,
    /// Used amount with the reservations of active calls, in the unit of the budget.
    pub spent: u64,
    /// The limit, in the unit of the budget.
    pub limit: u64,
    /// Maximum amount of the call, in the unit of the budget.
    pub needs: u64,
    /// Time of the next period; absent: the budget does not renew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_timestamp(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn days_and_months_begin_at_midnight_utc() {
        for (period, when, name, first, next) in [
            (
                BudgetPeriod::Day,
                "2026-11-23T23:59:59.999Z",
                "2026-11-23",
                "2026-11-23T00:00:00Z",
                "2026-11-24T00:00:00Z",
            ),
            (
                BudgetPeriod::Day,
                "2026-11-24T01:00:00+02:00",
                "2026-11-23",
                "2026-11-23T00:00:00Z",
                "2026-11-24T00:00:00Z",
            ),
            (
                BudgetPeriod::Day,
                "2028-02-28T00:00:00Z",
                "2028-02-28",
                "2028-02-28T00:00:00Z",
                "2028-02-29T00:00:00Z",
            ),
            (
                BudgetPeriod::Month,
                "2026-12-31T12:00:00Z",
                "2026-12",
                "2026-12-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                BudgetPeriod::Month,
                "2026-11-01T00:00:00Z",
                "2026-11",
                "2026-11-01T00:00:00Z",
                "2026-12-01T00:00:00Z",
            ),
        ] {
            assert_eq!(period.name(parse_timestamp(when)), name);
            assert_eq!(
                period.around(parse_timestamp(when)),
                (parse_timestamp(first), parse_timestamp(next)),
                "{when}"
            );
        }
    }
}
