//! Rules for the work of the agent on a ticket and for its budgets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    budget::run_limits::Dollars,
    journal::record_format::{is_default, is_true},
    rules::glob::is_path_covered,
    work::{intake::WorkClass, mcp::McpCommand, model::RunPhase},
};

/// Rules for ticket statuses and limits of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRules {
    /// The status that requests work.
    pub status: String,
    /// The status during the work.
    pub in_progress_status: String,
    /// The status at the hand-over for review; empty: the ticket keeps its status until the merge.
    pub review_status: String,
    /// The status after the merge. If it does not exist, the common names (done, closed, complete, resolved)
    /// are tried.
    pub done_status: String,
    /// Assignee of an unassigned ticket at the start of the work.
    #[serde(skip_serializing_if = "is_default")]
    pub assign: AssigneeRule,
    /// Result of a complete change.
    #[serde(skip_serializing_if = "is_default")]
    pub finish: FinishRule,
    /// Maximum turns of one run's work, 1 to 150, for any class.
    pub max_turns: u32,
    /// Maximum turns of the work, by the class of the ticket.
    pub class_turns: ClassTurns,
    /// True when the model assesses a ticket before the work begins.
    pub intake: bool,
    /// True when the planner may rank places of the code with its embeddings server, if it has one.
    pub embeddings: bool,
    /// Classes of changes that are planned first.
    pub plan: PlanningRule,
    /// True when a second model reviews the change.
    pub auto_review: bool,
    /// Maximum number of times that a review may send the change back; at most 3.
    pub review_rounds: u32,
    /// Maximum consecutive retries of a run, at most 100; absent: the planner's setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Budget of one run.
    pub budget: BudgetRules,
    /// Model per phase: a name, or a provider of the planner's settings with or without `:name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<RunPhase, String>,
    /// Approval that the rules require before a push.
    pub approval: ApprovalRule,
    /// Commands that check a change, of which two run; absent: the planner finds them in the repository;
    /// empty: no checks run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    /// Patterns of files that other files depend on; empty: API descriptions by their common names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contract: Vec<String>,
    /// Checks that run on the base before the work, so that the model knows which of them fail already.
    #[serde(skip_serializing_if = "is_default")]
    pub base_checks: BaseCheckRule,
    /// Additional commands that check a change to such a file, of which two run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub e2e_checks: Vec<String>,
    /// Attachments of tickets that are read for the model.
    #[serde(skip_serializing_if = "is_default")]
    pub attachments: AttachmentRule,
    /// Patterns of `JUnit` XML files that the checks write outside of the usual folders; at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<String>,
    /// Names of the MCP servers whose tools the model may call, of the planner's settings or of `mcp_commands`; at
    /// most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// MCP servers that are commands, by name; at most 10. A server of the settings with the same name comes
    /// first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_commands: BTreeMap<String, McpCommand>,
    /// True when a new file must have a name that Windows and macOS can hold.
    #[serde(skip_serializing_if = "is_true")]
    pub portable_names: bool,
}

// Common names of API descriptions.
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
    /// Returns true when other files depend on this one.
    pub fn is_contract(&self, path: &str) -> bool {
        if self.contract.is_empty() {
            CONTRACTS.iter().any(|pattern| is_path_covered(pattern, path))
        } else {
            self.contract.iter().any(|pattern| is_path_covered(pattern, path))
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
            assign: AssigneeRule::Nobody,
            finish: FinishRule::PullRequest,
            max_turns: MOST_TURNS,
            class_turns: ClassTurns::default(),
            intake: true,
            embeddings: true,
            plan: PlanningRule::Large,
            auto_review: true,
            review_rounds: 1,
            max_retries: None,
            budget: BudgetRules::default(),
            models: BTreeMap::new(),
            approval: ApprovalRule::None,
            checks: None,
            base_checks: BaseCheckRule::WhenKnown,
            contract: Vec::new(),
            e2e_checks: Vec::new(),
            attachments: AttachmentRule::All,
            reports: Vec::new(),
            portable_names: true,
            mcp: Vec::new(),
            mcp_commands: BTreeMap::new(),
        }
    }
}

// Maximum of `agent.review_rounds`: more reviews of one change bring more false alarms than findings.
pub(crate) const MOST_REVIEW_ROUNDS: u32 = 3;
// Maximum of `agent.max_turns`: a run with more turns is a loop rather than work.
pub(crate) const MOST_TURNS: u32 = 150;

/// Maximum turns of the work, by the class of the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassTurns {
    /// Turns for a trivial ticket.
    pub trivial: u32,
    /// Turns for a normal ticket.
    pub normal: u32,
    /// Turns for a large ticket.
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
    /// Returns the maximum turns of the work on a ticket of this class.
    pub fn turns(&self, class: WorkClass) -> u32 {
        let of_class = match class {
            WorkClass::Trivial => self.class_turns.trivial,
            WorkClass::Normal => self.class_turns.normal,
            WorkClass::Large => self.class_turns.large,
        };
        of_class.min(self.max_turns).clamp(1, MOST_TURNS)
    }
}

/// Result of a complete change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishRule {
    /// A draft pull request. The ticket is done when a person merges it.
    #[default]
    PullRequest,
    /// A branch. The ticket is done with the push. An incomplete change becomes a draft pull request in any
    /// case.
    Done,
}

/// Checks that run on the base before the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseCheckRule {
    /// None.
    Never,
    /// Those whose results the executor keeps from an earlier run, which take no time.
    #[default]
    WhenKnown,
    /// All. The work waits for them.
    Always,
}

/// Attachments of tickets that are read for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentRule {
    /// Texts and images.
    #[default]
    All,
    /// Texts alone.
    Text,
    /// None; their names are still in the prompt.
    None,
}

/// Assignee of an unassigned ticket at the start of the work. In YAML `true`, `false` or an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AssigneeValue", into = "AssigneeValue")]
pub enum AssigneeRule {
    /// The ticket stays unassigned.
    #[default]
    Nobody,
    /// On Jira the writing account, on GitHub the login of `issues.assignee`, otherwise the writing account.
    Us,
    /// An account by its id on Jira, or its login on GitHub.
    To(String),
}

/// The form in YAML: a boolean or an account.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AssigneeValue {
    Said(bool),
    Account(String),
}

impl TryFrom<AssigneeValue> for AssigneeRule {
    type Error = &'static str;

    fn try_from(written: AssigneeValue) -> Result<Self, Self::Error> {
        match written {
            AssigneeValue::Said(true) => Ok(Self::Us),
            AssigneeValue::Said(false) => Ok(Self::Nobody),
            AssigneeValue::Account(account) if is_account(&account) => Ok(Self::To(account)),
            AssigneeValue::Account(_) => Err("must be true, false, the id of an account or a login"),
        }
    }
}

impl From<AssigneeRule> for AssigneeValue {
    fn from(assign: AssigneeRule) -> Self {
        match assign {
            AssigneeRule::Nobody => Self::Said(false),
            AssigneeRule::Us => Self::Said(true),
            AssigneeRule::To(account) => Self::Account(account),
        }
    }
}

// Maximum length of an account, in bytes.
const MAX_ACCOUNT: usize = 128;

fn is_account(text: &str) -> bool {
    (1..=MAX_ACCOUNT).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Classes of changes that are planned before the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanningRule {
    /// The planner plans no change.
    Never,
    /// The planner plans the changes of large tickets.
    #[default]
    Large,
    /// The planner plans every change.
    Always,
}

/// Budget of one run. An absent limit is that of the planner's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetRules {
    /// Maximum cost of model calls, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// Maximum number of tokens that models read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Maximum minutes in which models, tools and checks run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
    /// Common budget of all runs of one ticket.
    #[serde(skip_serializing_if = "TicketBudgetRules::is_empty")]
    pub ticket: TicketBudgetRules,
}

/// Common budget of all runs of one ticket. An absent limit is that of the planner's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TicketBudgetRules {
    /// Maximum cost of model calls, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// Maximum number of tokens that models read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl TicketBudgetRules {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Approval that the rules require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalRule {
    /// The merge of the draft pull request is the only approval.
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
    fn assign_accepts_boolean_or_account() {
        let read = |json: &str| serde_json::from_str::<AgentRules>(json);
        for (json, assign) in [
            ("{}", AssigneeRule::Nobody),
            (r#"{"assign": false}"#, AssigneeRule::Nobody),
            (r#"{"assign": true}"#, AssigneeRule::Us),
            (
                r#"{"assign": "712020:f1"}"#,
                AssigneeRule::To("712020:f1".to_owned()),
            ),
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

    #[test]
    fn base_checks_are_read_by_name() {
        let read = |json: &str| serde_json::from_str::<AgentRules>(json);
        for (json, rule) in [
            ("{}", BaseCheckRule::WhenKnown),
            (r#"{"base_checks": "when_known"}"#, BaseCheckRule::WhenKnown),
            (r#"{"base_checks": "always"}"#, BaseCheckRule::Always),
            (r#"{"base_checks": "never"}"#, BaseCheckRule::Never),
        ] {
            let rules = read(json).expect("rules");
            assert_eq!(rules.base_checks, rule, "{json}");
            let again = serde_json::to_string(&rules).expect("json");
            assert_eq!(read(&again).expect("rules"), rules, "{json}");
        }
        assert!(read(r#"{"base_checks": true}"#).is_err());
    }

    #[test]
    fn empty_checks_differ_from_absent_ones() {
        let read = |json: &str| serde_json::from_str::<AgentRules>(json).expect("rules");
        for (json, checks) in [
            ("{}", None),
            (r#"{"checks": []}"#, Some(Vec::new())),
            (r#"{"checks": ["make test"]}"#, Some(vec!["make test".to_owned()])),
        ] {
            let rules = read(json);
            assert_eq!(rules.checks, checks, "{json}");
            // The rules of a run are pinned in its trigger.
            let again = serde_json::to_string(&rules).expect("json");
            assert_eq!(read(&again), rules, "{json}");
        }
        let plain = serde_json::to_string(&AgentRules::default()).expect("json");
        assert!(!plain.contains("checks"), "older releases read it: {plain}");
    }
}
