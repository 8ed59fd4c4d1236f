//! The sections of the rules, with what holds when a key is absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Dollars, Phase, glob::covers, host::HostPattern, instance::Instance, intake::Class};

/// The repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepoRules {
    /// The local folder that it is in, a name below `[folder]` in the settings; absent: it is on GitHub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Instance>,
    /// The GitHub server that it lives on, a name below `[github]` in the settings; absent: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// Account or organisation on GitHub.
    pub owner: String,
    /// Name without the owner.
    pub name: String,
    /// The branch that work starts from.
    pub default_branch: String,
    /// The branch that pull requests target; empty: the default branch.
    pub pr_target_branch: String,
}

impl Default for RepoRules {
    fn default() -> Self {
        Self {
            folder: None,
            instance: None,
            owner: String::new(),
            name: String::new(),
            default_branch: "main".to_owned(),
            pr_target_branch: String::new(),
        }
    }
}

/// The Jira project whose tickets belong to the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JiraRules {
    /// The Jira site of the project, a name below `[jira]` in the settings; absent: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// The site, for links; credentials belong to the services' settings.
    pub base_url: String,
    /// The project key; tickets of this project go to this repository.
    pub project_key: String,
    /// The board, for links.
    pub board_id: u64,
}

/// Branch names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BranchingRules {
    /// Placeholders `{type}`, `{ticket_key}` and `{description}`.
    pub pattern: String,
    /// Kind of work (`feature`, `bugfix`, `refactor`) to the `{type}` of branches, commits and titles.
    pub types: BTreeMap<String, String>,
}

impl Default for BranchingRules {
    fn default() -> Self {
        let types = [("feature", "feat"), ("bugfix", "fix"), ("refactor", "refactor")];
        Self {
            pattern: "{type}/{ticket_key}-{description}".to_owned(),
            types: types
                .map(|(kind, short)| (kind.to_owned(), short.to_owned()))
                .into(),
        }
    }
}

/// Pull requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullRequestRules {
    /// Placeholders `{type}`, `{scope}`, `{description}` and `{ticket_key}`.
    pub title_pattern: String,
    /// The template in the repository, shown to the model.
    pub template_path: String,
    /// The login whose requested review asks for a review of a pull request; empty: none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reviewer: String,
    /// Logins that are asked for a review of each pull request of ours that is ready, beside its code owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
    /// Labels of each pull request of ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

impl Default for PullRequestRules {
    fn default() -> Self {
        Self {
            title_pattern: "{type}({scope}): {description} ({ticket_key})".to_owned(),
            template_path: ".github/PULL_REQUEST_TEMPLATE.md".to_owned(),
            reviewer: String::new(),
            reviewers: Vec::new(),
            labels: Vec::new(),
        }
    }
}

/// When to leave a ticket alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkipRules {
    /// A ticket with this phrase in its text or a comment is left alone; empty: never.
    pub comment_phrase: String,
    /// A ticket with one of these labels is left alone.
    pub labels: Vec<String>,
}

impl Default for SkipRules {
    fn default() -> Self {
        Self {
            comment_phrase: "[AGENT-SKIP]".to_owned(),
            labels: vec!["skip-dispatch".to_owned()],
        }
    }
}

/// Labels for new tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriageRules {
    /// The labels that the model may choose from; empty: tickets are not triaged.
    pub labels: Vec<String>,
    /// The label that is put on every triaged ticket; one that has it is not triaged again.
    pub done_label: String,
    /// Whether tickets of people are triaged too who may not ask for work.
    pub anyone: bool,
}

impl Default for TriageRules {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            done_label: "triaged".to_owned(),
            anyone: false,
        }
    }
}

/// The issues of the repository on GitHub that ask for work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IssueRules {
    /// The login that asks for work when an issue is assigned to it; empty: no assignment does.
    pub assignee: String,
    /// Labels that ask for work when they are put on an issue.
    pub labels: Vec<String>,
}

impl IssueRules {
    /// True when no issue asks for work.
    pub fn is_empty(&self) -> bool {
        self.assignee.is_empty() && self.labels.is_empty()
    }

    /// Whether it is the login that issues are assigned to. GitHub compares logins without case.
    pub fn is_assignee(&self, login: &str) -> bool {
        !self.assignee.is_empty() && self.assignee.eq_ignore_ascii_case(login)
    }

    /// Whether the label asks for work. GitHub compares labels without case.
    pub fn is_label(&self, label: &str) -> bool {
        self.labels
            .iter()
            .any(|known| known.to_lowercase() == label.to_lowercase())
    }
}

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

/// Where and how commands run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorRules {
    /// The pool of executors, a key of the planner's `pools` setting.
    pub pool: String,
    /// Commands run once after each checkout.
    pub setup: Vec<String>,
    /// Programs that the work needs, by name; a run ends before its first model call when the pool lacks one.
    pub programs: Vec<String>,
    /// Hosts that the setup commands may reach, through the egress proxy; all other commands reach none.
    pub network: Vec<HostPattern>,
}

impl Default for ExecutorRules {
    fn default() -> Self {
        Self {
            pool: "default".to_owned(),
            setup: Vec::new(),
            programs: Vec::new(),
            network: Vec::new(),
        }
    }
}
