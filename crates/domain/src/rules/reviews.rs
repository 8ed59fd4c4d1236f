//! Rules about reviews of pull requests.

use serde::{Deserialize, Serialize};

/// How often a thread is worked on.
const ROUNDS: u32 = 2;
/// More rounds than this convince nobody.
const MOST_ROUNDS: u32 = 10;
/// Reminders of one pull request.
const REMINDERS: u32 = 2;
const MOST_REMINDERS: u32 = 10;
const MOST_DAYS: u32 = 90;

/// Reviews of our pull requests by people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewRules {
    /// How often the same thread is worked on before it is left to people; 1 to 10.
    pub max_rounds: u32,
    /// Days after which a review that is waited for is reminded of; 0: never. At most 90.
    pub remind_after_days: u32,
    /// How often a pull request is reminded of; at most 10.
    pub reminders: u32,
    /// Accounts of programs that are listened to like people who may not give orders: logins of GitHub, ids or names of
    /// Jira. A review of our pull request by one of them is worked on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}

impl Default for ReviewRules {
    fn default() -> Self {
        Self {
            max_rounds: ROUNDS,
            remind_after_days: 0,
            reminders: REMINDERS,
            agents: Vec::new(),
        }
    }
}

impl ReviewRules {
    /// Whether anybody is ever reminded.
    pub const fn reminds(&self) -> bool {
        self.remind_after_days > 0 && self.reminders > 0
    }

    /// Whether it is the account of a program that the rules name. GitHub compares logins without case.
    pub fn is_agent(&self, account: &str) -> bool {
        !account.is_empty()
            && self
                .agents
                .iter()
                .any(|known| known.eq_ignore_ascii_case(account))
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The key that is wrong and what to change.
    pub(crate) fn problem(&self) -> Option<(&'static str, &'static str)> {
        if !(1..=MOST_ROUNDS).contains(&self.max_rounds) {
            Some(("review.max_rounds", "must be between 1 and 10"))
        } else if self.remind_after_days > MOST_DAYS {
            Some(("review.remind_after_days", "must be at most 90; 0 is never"))
        } else if self.reminders > MOST_REMINDERS {
            Some(("review.reminders", "must be at most 10"))
        } else if self.agents.iter().any(|agent| agent.trim().is_empty()) {
            Some((
                "review.agents",
                "must be logins of programs, such as reviewer[bot]",
            ))
        } else {
            None
        }
    }
}
