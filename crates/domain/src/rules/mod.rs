//! Repository rules: the YAML settings of a team for one repository, or for all of them.

pub(crate) mod agent;
pub(crate) mod ci;
pub(crate) mod commits;
pub(crate) mod glob;
pub(crate) mod host;
pub(crate) mod jira;
pub(crate) mod naming;
pub(crate) mod reviews;
pub(crate) mod scope;
pub(crate) mod sections;
pub(crate) mod triage;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    budget::run_limits::Dollars,
    identity::{repository::RepositoryName, ticket::TicketKey},
    journal::record_format::is_default,
    rules::{
        agent::{AgentRules, ClassTurns, MOST_REVIEW_ROUNDS, MOST_TURNS},
        ci::CiRules,
        commits::CommitRules,
        jira::{JiraField, JiraRules},
        reviews::ReviewRules,
        sections::{
            BranchingRules, DbtRules, DiscussionRules, ExecutorRules, ExternalContentRules, IssueRules,
            LfsRule, LocationRules, ModuleRules, PullRequestRules, SkipRules,
        },
        triage::TriageRules,
    },
    work::mcp::is_mcp_server_name,
};

/// The rules of one repository. A file without `repo` contains defaults for every repository of its
/// directory.
///
/// Triggers and journals contain the rules, too. Unknown keys are therefore ignored here; the loader of the
/// files rejects them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepositoryRules {
    /// Location of the repository.
    pub repo: LocationRules,
    /// Its content outside of its commits.
    #[serde(skip_serializing_if = "is_default")]
    pub repository: ExternalContentRules,
    /// Its Jira project.
    pub jira: JiraRules,
    /// Its issues on GitHub.
    #[serde(skip_serializing_if = "is_default")]
    pub issues: IssueRules,
    /// Its discussions on GitHub.
    #[serde(skip_serializing_if = "is_default")]
    pub discussions: DiscussionRules,
    /// Names of branches.
    pub branching: BranchingRules,
    /// Settings of pull requests.
    pub pull_request: PullRequestRules,
    /// Reviews of our pull requests by people.
    #[serde(skip_serializing_if = "is_default")]
    pub review: ReviewRules,
    /// Messages and authors of commits.
    pub commits: CommitRules,
    /// Conditions under which Journeyman skips a ticket.
    pub skip: SkipRules,
    /// dbt projects, which the prompt contains.
    pub dbt: DbtRules,
    /// Values that a triage may set on new tickets.
    pub triage: TriageRules,
    /// Ticket statuses and limits of the agent.
    pub agent: AgentRules,
    /// Continuous integration of the repository.
    pub ci: CiRules,
    /// Pool, setup and network of commands.
    pub executor: ExecutorRules,
    /// Parts of the repository, with the tickets that may change them. The first module with a matching path
    /// contains a file.
    pub modules: Vec<ModuleRules>,
}

// Maximum of `discussions.threads`.
const MOST_THREADS: usize = 10;
// Maximum of `issues.most_planned`.
const MOST_PLANNED: usize = 10;
// Maximum of `pull_request.resolutions_per_pull_request`: a base that conflicts more often needs a person.
const MOST_RESOLUTIONS: u32 = 20;
// Maximum of `pull_request.touched_authors`: the more people are asked, the less each of them feels
// addressed.
const MOST_TOUCHED_AUTHORS: usize = 5;
// Maximum number of patterns in `agent.reports`.
const MAX_REPORTS: usize = 20;

// Maximum of `agent.mcp`: every conversation contains the descriptions of their tools.
const MAX_MCP_SERVERS: usize = 10;

/// Returns true when a pattern stays inside of the repository.
fn is_inside(pattern: &str) -> bool {
    let is_step_out = pattern.split('/').any(|part| part == "..");
    !pattern.trim().is_empty() && !pattern.starts_with('/') && !is_step_out
}

// Maximum number of hosts. Every grant for the egress proxy contains them.
const MAX_HOSTS: usize = 50;
// Maximum number of modules. The prompt contains all of them.
const MAX_MODULES: usize = 50;
// Maximum number of checks of one module.
const MAX_MODULE_CHECKS: usize = 5;

/// Returns true for a valid program name: letters, digits, `.`, `_`, `+` and `-`, at most 100, no leading
/// `-`.
pub fn is_program_name(text: &str) -> bool {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "._+-".contains(letter);
    (1..=100).contains(&text.len()) && text.chars().all(legal) && !text.starts_with('-')
}

/// A problem in the rules of a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct RulesProblem {
    /// The dotted key of the wrong value.
    pub key: &'static str,
    /// Instruction for the correction.
    pub problem: String,
}

fn refuse_rule(key: &'static str, problem: impl Into<String>) -> Result<(), RulesProblem> {
    let problem = problem.into();
    Err(RulesProblem { key, problem })
}

impl RepositoryRules {
    /// Returns the name of the repository.
    ///
    /// # Errors
    /// [`RulesProblem`] when owner or name is invalid.
    pub fn repository(&self) -> Result<RepositoryName, RulesProblem> {
        if let Some(folder) = &self.repo.folder {
            return Ok(RepositoryName::in_folder(folder));
        }
        let named =
            RepositoryName::new(&self.repo.owner, &self.repo.name).map_err(|invalid| RulesProblem {
                key: "repo.name",
                problem: invalid.to_string(),
            })?;
        Ok(named.on(self.repo.instance.clone()))
    }

    /// Returns true when the ticket belongs to the repository: it is in its Jira project, or an issue,
    /// discussion or folder ticket of it.
    pub fn cover(&self, ticket: &TicketKey) -> bool {
        match ticket {
            TicketKey::Jira {
                instance, project, ..
            } => self.jira.project_key == *project && self.jira.instance == *instance,
            TicketKey::GitHub { repository, .. } | TicketKey::Discussion { repository, .. } => {
                self.repository().is_ok_and(|own| own == *repository)
            }
            TicketKey::Folder { folder, .. } => self.repo.folder.as_ref() == Some(folder),
        }
    }

    /// Rejects a second location next to `repo.folder`, because the two could contradict each other.
    fn check_folder(&self) -> Result<(), RulesProblem> {
        let repo = &self.repo;
        let elsewhere = !repo.owner.is_empty() || !repo.name.is_empty() || repo.instance.is_some();
        if repo.folder.is_some() && elsewhere {
            return refuse_rule("repo.folder", "must be set without owner, name and instance");
        }
        if repo.folder.is_some() && !self.jira.project_key.is_empty() {
            return refuse_rule(
                "jira.project_key",
                "must not be set where repo.folder is: a folder has tickets of its own",
            );
        }
        Ok(())
    }

    /// Returns true when workspaces have the contents of files in Git LFS. A local folder has no server for them.
    pub fn reads_lfs(&self) -> bool {
        self.repository.lfs == LfsRule::Read && self.repo.folder.is_none()
    }

    /// Returns the target branch of pull requests.
    pub fn target_branch(&self) -> &str {
        let target = &self.repo.pr_target_branch;
        if target.is_empty() {
            &self.repo.default_branch
        } else {
            target
        }
    }

    /// Returns the commands that repair a change before its commit.
    pub fn repairs(&self) -> Vec<String> {
        self.named_repairs()
            .into_iter()
            .flat_map(|(_, commands)| commands)
            .collect()
    }

    /// Returns the entries of `ci.auto_fix`, each with its name and its commands.
    pub fn named_repairs(&self) -> Vec<(String, Vec<String>)> {
        let named = |entry: &String| match entry.as_str() {
            // Both spellings are accepted: the name of the tool, and the form of the other keys.
            "pre-commit" | "pre_commit" => (
                "pre-commit".to_owned(),
                vec!["pre-commit run --all-files".to_owned()],
            ),
            "dbt_compile" => (entry.clone(), self.dbt.compile()),
            command => (command.to_owned(), vec![command.to_owned()]),
        };
        self.ci.auto_fix.iter().map(named).collect()
    }

    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// [`RulesProblem`] for the first violation.
    pub fn check(&self) -> Result<(), RulesProblem> {
        self.repository()?;
        self.check_folder()?;
        if !(1..=MOST_TURNS).contains(&self.agent.max_turns) {
            return refuse_rule("agent.max_turns", "must be between 1 and 150");
        }
        let ClassTurns {
            trivial,
            normal,
            large,
        } = self.agent.class_turns;
        if [trivial, normal, large]
            .iter()
            .any(|turns| !(1..=MOST_TURNS).contains(turns))
        {
            return refuse_rule("agent.class_turns", "must be between 1 and 150 each");
        }
        if !self.agent.models.values().all(|model| is_model(model)) {
            return refuse_rule("agent.models", "must be names of models, without spaces");
        }
        if self.agent.review_rounds > MOST_REVIEW_ROUNDS {
            return refuse_rule("agent.review_rounds", "must be at most 3");
        }
        if self.agent.max_retries.is_some_and(|most| most > 100) {
            return refuse_rule("agent.max_retries", "must be at most 100");
        }
        let budget = &self.agent.budget;
        let amounts = [
            budget.cost_usd.map(Dollars::micros),
            budget.tokens,
            budget.minutes,
            budget.ticket.cost_usd.map(Dollars::micros),
            budget.ticket.tokens,
        ];
        if amounts.contains(&Some(0)) {
            return refuse_rule(
                "agent.budget",
                "must be more than 0; without a key the planner's setting holds",
            );
        }
        if self.agent.status.is_empty() {
            return refuse_rule("agent.status", "must name the status that asks for work");
        }
        if let Some((key, wrong)) = self.ci.problem().or_else(|| self.review.problem()) {
            return refuse_rule(key, wrong);
        }
        self.check_labels()?;
        if !self.branching.pattern.contains("{ticket_key}") {
            return refuse_rule(
                "branching.pattern",
                "must contain {ticket_key}, so that branches map back to tickets",
            );
        }
        if !self.executor.programs.iter().all(|name| is_program_name(name)) {
            return refuse_rule("executor.programs", "must be names of programs, such as node");
        }
        if self
            .discussions
            .categories
            .iter()
            .any(|name| name.trim().is_empty())
        {
            return refuse_rule("discussions.categories", "must be names of categories");
        }
        if self.agent.reports.len() > MAX_REPORTS || !self.agent.reports.iter().all(|one| is_inside(one)) {
            return refuse_rule(
                "agent.reports",
                "must be at most 20 patterns of files, relative to the root",
            );
        }
        self.check_mcp()?;
        if self.executor.network.len() > MAX_HOSTS {
            return refuse_rule("executor.network", "must be at most 50 hosts");
        }
        self.check_modules()?;
        if !self.commits.has_legal_authors() {
            return refuse_rule("commits.co_authors", "must be at most 5, each `Name <address>`");
        }
        if !self.commits.has_legal_requesters() {
            return refuse_rule(
                "commits.requesters",
                "must be at most 200 accounts, each with an id",
            );
        }
        self.check_jira()
    }

    fn check_mcp(&self) -> Result<(), RulesProblem> {
        let servers = &self.agent.mcp;
        let is_repeated = |(place, name): (usize, &String)| servers[..place].contains(name);
        let is_legal = servers.len() <= MAX_MCP_SERVERS
            && servers.iter().all(|name| is_mcp_server_name(name))
            && !servers.iter().enumerate().any(is_repeated);
        if !is_legal {
            return refuse_rule("agent.mcp", "must be at most 10 different names of MCP servers");
        }
        let commands = &self.agent.mcp_commands;
        if commands.len() > MAX_MCP_SERVERS || !commands.keys().all(|name| is_mcp_server_name(name)) {
            return refuse_rule(
                "agent.mcp_commands",
                "must be at most 10 MCP servers, by names like those of agent.mcp",
            );
        }
        for (name, command) in commands {
            if let Err(found) = command.check() {
                let problem = format!("{name}.{} {}", found.key, found.problem);
                return refuse_rule("agent.mcp_commands", problem);
            }
        }
        Ok(())
    }

    fn check_jira(&self) -> Result<(), RulesProblem> {
        if !jira::is_condition(&self.jira.jql) {
            return refuse_rule(
                "jira.jql",
                "must be one condition on one line, without ORDER BY and with brackets and quotes closed",
            );
        }
        let is_whole = |field: &JiraField| {
            let is_filled = |text: &String| !text.trim().is_empty();
            is_filled(&field.name) && !field.values.is_empty() && field.values.iter().all(is_filled)
        };
        if !self.jira.field.as_ref().is_none_or(is_whole) {
            return refuse_rule("jira.field", "must have the name of a field, and values");
        }
        let mut fields = self.jira.transition_fields.iter();
        if fields.any(|(name, value)| name.trim().is_empty() || value.trim().is_empty()) {
            return refuse_rule(
                "jira.transition_fields",
                "must be names of fields, each with a value",
            );
        }
        // The parser of ticket keys is the only definition of a valid project key.
        let key = &self.jira.project_key;
        if !key.is_empty() && TicketKey::jira(&format!("{key}-1")).is_err() {
            return refuse_rule("jira.project_key", "must be a Jira project key such as ENG");
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<(), RulesProblem> {
        let (key, problem) = if let Some(wrong) = self.triage.problem() {
            wrong
        } else if self.issues.labels.iter().any(|label| label.trim().is_empty()) {
            ("issues.labels", "must be names of labels")
        } else if self.discussions.threads > MOST_THREADS {
            ("discussions.threads", "must be at most 10")
        } else if self.issues.most_planned > MOST_PLANNED {
            ("issues.most_planned", "must be at most 10")
        } else if self
            .pull_request
            .labels
            .iter()
            .any(|label| label.trim().is_empty())
        {
            ("pull_request.labels", "must be names of labels")
        } else if self
            .pull_request
            .reviewers
            .iter()
            .any(|login| login.trim().is_empty())
        {
            ("pull_request.reviewers", "must be logins of people")
        } else if self.pull_request.touched_authors > MOST_TOUCHED_AUTHORS {
            ("pull_request.touched_authors", "must be at most 5")
        } else if !(1..=MOST_RESOLUTIONS).contains(&self.pull_request.resolutions_per_pull_request) {
            (
                "pull_request.resolutions_per_pull_request",
                "must be between 1 and 20; `pull_request.resolve_conflicts: false` resolves nothing",
            )
        } else if self.pull_request.self_review && self.pull_request.reviewer.is_empty() {
            (
                "pull_request.self_review",
                "needs pull_request.reviewer, the account that is asked",
            )
        } else {
            return Ok(());
        };
        refuse_rule(key, problem)
    }

    fn check_modules(&self) -> Result<(), RulesProblem> {
        let names: BTreeSet<&str> = self.modules.iter().map(|module| module.name.as_str()).collect();
        let is_whole = |module: &ModuleRules| {
            let is_path = |path: &String| !path.trim_matches('/').is_empty();
            !module.name.trim().is_empty() && !module.paths.is_empty() && module.paths.iter().all(is_path)
        };
        let has_checks = |module: &ModuleRules| {
            module.checks.len() <= MAX_MODULE_CHECKS
                && module.checks.iter().all(|command| !command.trim().is_empty())
        };
        let is_login = |login: &String| {
            !login.is_empty() && !login.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '@'))
        };
        let problem = if self.modules.len() > MAX_MODULES {
            "must be at most 50 modules"
        } else if names.len() < self.modules.len() {
            "must have names of their own"
        } else if !self.modules.iter().all(is_whole) {
            "must each have a name and paths"
        } else if !self.modules.iter().all(has_checks) {
            "must each have at most 5 checks, none of them empty"
        } else if !self
            .modules
            .iter()
            .all(|module| module.owners.iter().all(is_login))
        {
            "must have logins of people as owners, without @"
        } else {
            return Ok(());
        };
        refuse_rule("modules", problem)
    }
}

// Maximum length of a model's name, in bytes.
const MAX_MODEL: usize = 200;

fn is_model(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_MODEL && name.bytes().all(|byte| byte.is_ascii_graphic())
}
