//! What the agent does with a ticket, and what it may spend.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Dollars, Phase, glob::covers, intake::Class};

/// Ticket states and limits of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRules {
    /// The status that asks for work.
    pub status: String,
    /// The status while work goes on.
    pub in_progress_status: String,
    /// The status at hand-over for review; empty: the ticket keeps its status until the merge.
    pub review_status: String,
    /// The status after the merge; the usual names (done, closed, complete, resolved) are tried after it.
    pub done_status: String,
    /// Whether a ticket that nobody has is assigned when the work on it starts, and to whom.
    #[serde(skip_serializing_if = "Assign::is_default")]
    pub assign: Assign,
    /// What a complete change ends with.
    #[serde(skip_serializing_if = "Finish::is_default")]
    pub finish: Finish,
    /// Turns that the work of one run may take, 1 to 150, whatever its class allows.
    pub max_turns: u32,
    /// Turns that the work may take, by the class of the ticket.
    pub class_turns: ClassTurns,
    /// Whether a ticket is looked at by the model before the work begins.
    pub intake: bool,
    /// Whether places of the code may be ranked by a server for embeddings, where the planner has one.
    pub embeddings: bool,
    /// Which changes are planned first.
    pub plan: Planned,
    /// Whether a second model reviews the change.
    pub auto_review: bool,
    /// How often a review may send the change back, at most 3.
    pub review_rounds: u32,
    /// Retries in a row before a run gives up, at most 100; absent: as the planner is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// What one run may spend.
    pub budget: BudgetRules,
    /// The model of a conversation, by phase: a name, or a provider of the planner's settings with or without `:name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<Phase, String>,
    /// Whether a person must approve the change before it is pushed.
    pub approval: Approval,
    /// Commands that check a change, of which two run; empty: found in the repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Files that others rely on, as patterns; empty: descriptions of APIs by their usual names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contract: Vec<String>,
    /// Commands that also check a change to such a file, of which two run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub e2e_checks: Vec<String>,
    /// `JUnit` XML files that the checks write, as patterns beside the usual places; at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<String>,
}

/// The usual names of what describes an API.
const CONTRACTS: [&str; 8] = [
    "**/*.proto",
    "**/*.graphql",
    "**/*.graphqls",
    "**/*.gql",
    "**/openapi*.y*ml",
    "**/openapi*.json",
    "**/swagger*.y*ml",
    "**/swagger*.json",
];

impl AgentRules {
    /// Whether others rely on a file.
    pub fn is_contract(&self, path: &str) -> bool {
        match self.contract.is_empty() {
            true => CONTRACTS.iter().any(|pattern| covers(pattern, path)),
            false => self.contract.iter().any(|pattern| covers(pattern, path)),
        }
    }
}

impl Default for AgentRules {
    fn default() -> Self {
        Self {
            status: "Ready for Agent".to_owned(),
            in_progress_status: "In Progress".to_owned(),
            review_status: String::new(),
            done_status: "Done".to_owned(),
            assign: Assign::Nobody,
            finish: Finish::PullRequest,
            max_turns: MOST_TURNS,
            class_turns: ClassTurns::default(),
            intake: true,
            embeddings: true,
            plan: Planned::Large,
            auto_review: true,
            review_rounds: 1,
            max_retries: None,
            budget: BudgetRules::default(),
            models: BTreeMap::new(),
            approval: Approval::None,
            checks: Vec::new(),
            contract: Vec::new(),
            e2e_checks: Vec::new(),
            reports: Vec::new(),
        }
    }
}

/// More reviews of one change bring more false alarms than findings.
pub(crate) const MOST_REVIEW_ROUNDS: u32 = 3;
/// More turns than this are no work but a loop.
pub(crate) const MOST_TURNS: u32 = 150;

/// Turns that the work may take, by the class of the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassTurns {
    /// For a trivial ticket.
    pub trivial: u32,
    /// For most tickets.
    pub normal: u32,
    /// For a large one.
    pub large: u32,
}

impl Default for ClassTurns {
    fn default() -> Self {
        Self {
            trivial: 15,
            normal: 60,
            large: 150,
        }
    }
}

impl AgentRules {
    /// Turns that the work on a ticket of this class may take.
    pub fn turns(&self, class: Class) -> u32 {
        let of_class = match class {
            Class::Trivial => self.class_turns.trivial,
            Class::Normal => self.class_turns.normal,
            Class::Large => self.class_turns.large,
        };
        of_class.min(self.max_turns).clamp(1, MOST_TURNS)
    }
}

/// What a complete change ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// A draft pull request; the ticket is done when a person merges it.
    #[default]
    PullRequest,
    /// A branch; the ticket is done. What is not complete becomes a draft pull request all the same.
    Done,
}

impl Finish {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who gets a ticket that nobody has, when the work on it starts. In YAML `true`, `false` or an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Assignment", into = "Assignment")]
pub enum Assign {
    /// Nobody.
    #[default]
    Nobody,
    /// On Jira the account that writes, on GitHub the login of `issues.assignee`, else the account that writes.
    Us,
    /// An account by its id on Jira, or its login on GitHub.
    To(String),
}

impl Assign {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How people write it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Assignment {
    Said(bool),
    Account(String),
}

impl TryFrom<Assignment> for Assign {
    type Error = &'static str;

    fn try_from(written: Assignment) -> Result<Self, Self::Error> {
        match written {
            Assignment::Said(true) => Ok(Self::Us),
            Assignment::Said(false) => Ok(Self::Nobody),
            Assignment::Account(account) if is_account(&account) => Ok(Self::To(account)),
            Assignment::Account(_) => Err("must be true, false, the id of an account or a login"),
        }
    }
}

impl From<Assign> for Assignment {
    fn from(assign: Assign) -> Self {
        match assign {
            Assign::Nobody => Self::Said(false),
            Assign::Us => Self::Said(true),
            Assign::To(account) => Self::Account(account),
        }
    }
}

/// Longest account, in bytes.
const MAX_ACCOUNT: usize = 128;

fn is_account(text: &str) -> bool {
    (1..=MAX_ACCOUNT).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Which changes are planned before the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Planned {
    /// None.
    Never,
    /// Those of large tickets.
    #[default]
    Large,
    /// Every one.
    Always,
}

/// What one run may spend; what is absent is as the planner is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetRules {
    /// Dollars for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// Tokens that models read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Minutes in which models, tools and checks run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
    /// What all runs of one ticket may spend together.
    #[serde(skip_serializing_if = "TicketBudgetRules::is_empty")]
    pub ticket: TicketBudgetRules,
}

/// What all runs of one ticket may spend together; what is absent is as the planner is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TicketBudgetRules {
    /// Dollars for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// Tokens that models read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl TicketBudgetRules {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether a person must approve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// The draft pull request is the gate.
    #[default]
    None,
    /// The run waits for `approve`, `reject` or `revise` before the first push.
    BeforePush,
    /// Every change is planned, and the run waits for a decision about the plan before the work.
    Plan,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gets_a_ticket_is_yes_or_no_or_an_account_and_absent_when_it_is_nobody() {
        let read = |json: &str| serde_json::from_str::<AgentRules>(json);
        for (json, assign) in [
            ("{}", Assign::Nobody),
            (r#"{"assign": false}"#, Assign::Nobody),
            (r#"{"assign": true}"#, Assign::Us),
            (r#"{"assign": "712020:f1"}"#, Assign::To("712020:f1".to_owned())),
        ] {
            let rules = read(json).expect("rules");
            assert_eq!(rules.assign, assign, "{json}");
            let again = serde_json::to_string(&rules).expect("json");
            assert_eq!(read(&again).expect("rules"), rules);
        }
        let wrong = read(r#"{"assign": "two words"}"#)
            .expect_err("no account")
            .to_string();
        assert!(wrong.contains("id of an account or a login"), "{wrong}");
        let plain = serde_json::to_string(&AgentRules::default()).expect("json");
        assert!(!plain.contains("assign"), "older releases read it: {plain}");
    }
}
