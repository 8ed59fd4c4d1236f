//! Rules for reviews of pull requests.

use serde::{Deserialize, Serialize};

// Default number of rounds for a thread.
const ROUNDS: u32 = 2;
// Maximum of `review.max_rounds`: further rounds do not convince a reviewer.
const MOST_ROUNDS: u32 = 10;
// Default number of reminders for a pull request.
const REMINDERS: u32 = 2;
const MOST_REMINDERS: u32 = 10;
const MOST_DAYS: u32 = 90;

/// Reviews of our pull requests by people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewRules {
    /// Maximum rounds of work on the same thread before it is left to people; 1 to 10.
    pub max_rounds: u32,
    /// Days after which Journeyman reminds of a pending review; 0: never. At most 90.
    pub remind_after_days: u32,
    /// Maximum number of reminders per pull request; at most 10.
    pub reminders: u32,
    /// Accounts of programs that Journeyman treats like people without the permission to give instructions:
    /// GitHub logins, or Jira ids or names. Their reviews of our pull requests start work.
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
    /// Returns true when the rules enable reminders.
    pub const fn reminds(&self) -> bool {
        self.remind_after_days > 0 && self.reminders > 0
    }

    /// Returns true when the rules list the account as a program. GitHub compares logins without case.
    pub fn is_agent(&self, account: &str) -> bool {
        !account.is_empty()
            && self
                .agents
                .iter()
                .any(|known| known.eq_ignore_ascii_case(account))
    }

    /// Returns the invalid key and the instruction for its correction.
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
