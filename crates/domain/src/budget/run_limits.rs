//! Limits on what a run may spend.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    text::numbers::{format_count, group_digits},
    work::model::ModelRole,
};

/// An amount of money, stored in millionths of a dollar and serialized as a number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(u64);

impl Dollars {
    /// Creates an amount from millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The amount in millionths of a dollar.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Adds two amounts; the sum saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Formats the amount in dollars and cents, rounded up.
impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounding up keeps a small cost from being displayed as nothing.
        let cents = self.0.div_ceil(10_000);
        write!(f, "${}.{:02}", cents / 100, cents % 100)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An `f64` holds 2^53 exact integers, so the value is exact to a millionth below nine billion
        // dollars.
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        // NaN and infinities are outside of the range as well.
        if (0.0..=1e9).contains(&dollars) {
            Ok(Self((dollars * 1e6).round() as u64))
        } else {
            Err(D::Error::custom("must be a number of dollars, 0 or more"))
        }
    }
}

/// Limits of one run; an absent field is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Maximum cost of model calls, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// Maximum number of tokens that models read and write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Maximum minutes in which models, tools and checks run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
    /// Tokens of one conversation above which the planner shortens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// The same limit per role of the model, used when `context` is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context_by_role: BTreeMap<ModelRole, u64>,
}

impl RunLimits {
    /// Returns the tokens above which the planner shortens a conversation with a model of this role.
    #[must_use]
    pub fn context_of(&self, role: ModelRole) -> Option<u64> {
        self.context.or_else(|| self.context_by_role.get(&role).copied())
    }
}

/// A limit of a run that is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// Money for models, in millionths of a dollar.
    Cost,
    /// Tokens that models read and write.
    Tokens,
    /// Minutes in which models, tools and checks run.
    Minutes,
}

impl BudgetUnit {
    /// Formats an amount of this unit for people: `$1.82`, `2,000 tokens`, `1 minute`.
    pub fn format_amount(self, amount: u64) -> String {
        match self {
            Self::Cost => Dollars::from_micros(amount).to_string(),
            Self::Tokens => format_count(amount, "token"),
            Self::Minutes => format_count(amount, "minute"),
        }
    }

    /// Formats the used part of a limit for people: `910 of 1,000 tokens`.
    pub fn format_spent(self, spent: u64, limit: u64) -> String {
        let spent = match self {
            Self::Cost => self.format_amount(spent),
            Self::Tokens | Self::Minutes => group_digits(spent),
        };
        format!("{spent} of {}", self.format_amount(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollar_amount_round_trips_through_json() {
        let read = |text: &str| serde_json::from_str::<Dollars>(text);
        for (text, micros) in [
            ("2", 2_000_000),
            ("0.35", 350_000),
            ("1000000.01", 1_000_000_010_000),
        ] {
            let amount = read(text).unwrap();
            assert_eq!(amount.micros(), micros);
            assert_eq!(read(&serde_json::to_string(&amount).unwrap()).unwrap(), amount);
        }
        for wrong in ["-1", "1e300", "\"2\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Dollars::from_micros(2_004_000).to_string(), "$2.01");
    }

    #[test]
    fn amounts_have_units_of_their_budget() {
        let spent = |unit: BudgetUnit, spent, limit| unit.format_spent(spent, limit);
        assert_eq!(spent(BudgetUnit::Cost, 1_812_345, 2_000_000), "$1.82 of $2.00");
        assert_eq!(spent(BudgetUnit::Tokens, 910, 1_000), "910 of 1,000 tokens");
        assert_eq!(spent(BudgetUnit::Minutes, 1, 1), "1 of 1 minute");
    }
}
