//! Amounts that replies of models cost, and their sums.

use serde::{Deserialize, Serialize};

use crate::{
    budget::run_limits::Dollars,
    identity::ids::{CallId, RunId},
    trigger::job::Job,
    work::model::ModelReply,
};

/// Cost and tokens of model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendAmount {
    /// Cost in millionths of a dollar.
    pub cost_micros: u64,
    /// Number of tokens read and written.
    pub tokens: u64,
}

/// Reply of a model as an item of spend.
#[derive(Clone, Copy, Debug)]
pub struct ModelCharge<'a> {
    /// Id of the model call.
    pub call: &'a CallId,
    /// The reply with its tokens and cost.
    pub reply: &'a ModelReply,
}

/// Cost and tokens of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpend {
    /// Cost within the known prices.
    pub cost_usd: Dollars,
    /// Number of tokens read and written.
    pub tokens: u64,
    /// Tokens that models read, cached ones included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens that models read from the provider's cache, a part of `input_tokens`.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Tokens that models wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// Number of replies without a known price.
    pub unpriced: u32,
}

// The count of replies is apart, because stored overviews contain a `ModelSpend` without one.
/// Cost and tokens of models with the number of their replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendSum {
    /// Number of replies.
    pub replies: u64,
    /// Cost and tokens of these replies.
    pub spend: ModelSpend,
}

/// Cost of a ticket's runs so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketCost {
    /// The latest runs that called a model, oldest first; at most 20.
    pub runs: Vec<RunCost>,
    /// Cost of all runs, in dollars.
    pub cost_usd: Dollars,
    /// Tokens that all runs read and wrote.
    pub tokens: u64,
    /// True when the price of every model is known; otherwise the real cost is higher.
    pub is_priced: bool,
}

/// Cost of one run so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCost {
    /// Id of the run.
    pub run: RunId,
    /// The kind of work.
    pub job: Job,
    /// Cost within the known prices, in dollars.
    pub cost_usd: Dollars,
    /// Number of tokens read and written.
    pub tokens: u64,
}

impl SpendAmount {
    /// Adds two amounts; the sums saturate.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

impl ModelReply {
    /// Returns the cost and tokens of the reply. A reply without a price counts with its tokens only.
    pub fn spend_amount(&self) -> SpendAmount {
        SpendAmount {
            cost_micros: self.cost_micros.unwrap_or_default(),
            tokens: self.usage.input_tokens.saturating_add(self.usage.output_tokens),
        }
    }
}

impl ModelSpend {
    /// Adds a reply; the sums saturate.
    pub fn add(&mut self, reply: &ModelReply) {
        let SpendAmount { cost_micros, tokens } = reply.spend_amount();
        *self = self.plus(Self {
            cost_usd: Dollars::from_micros(cost_micros),
            tokens,
            input_tokens: reply.usage.input_tokens,
            cached_tokens: reply.usage.cache_read_tokens,
            output_tokens: reply.usage.output_tokens,
            unpriced: u32::from(reply.cost_micros.is_none()),
        });
    }

    /// Adds two sums; the result saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            cost_usd: self.cost_usd.plus(other.cost_usd),
            tokens: self.tokens.saturating_add(other.tokens),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }

    /// Returns the cost when the price of every reply is known.
    pub fn known_cost(self) -> Option<Dollars> {
        (self.unpriced == 0).then_some(self.cost_usd)
    }

    /// Returns the part that budgets limit.
    pub const fn amount(self) -> SpendAmount {
        SpendAmount {
            cost_micros: self.cost_usd.micros(),
            tokens: self.tokens,
        }
    }
}

impl SpendSum {
    /// Adds a reply; the sums saturate.
    pub fn add(&mut self, reply: &ModelReply) {
        self.replies = self.replies.saturating_add(1);
        self.spend.add(reply);
    }

    /// Adds two sums; the result saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            replies: self.replies.saturating_add(other.replies),
            spend: self.spend.plus(other.spend),
        }
    }
}
