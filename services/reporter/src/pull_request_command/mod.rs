//! Pull requests that a person or a caller of the API requests, without a run: preconditions, plan and answer.
//!
//! Writes are effects in the same cycle as those of reports, with rows in memory. Each effect searches for its
//! result first, so a repeated request repeats nothing.

mod call_effects;
mod calls;
mod plan_execution;
mod preconditions;
mod tries;

use std::collections::BTreeMap;

use bootstrap::settings::{self, TextList};
use domain::{InstanceName, TicketKey, cause::format_error_chain};
use pullrequest::{
    CallProblem, DryRunAnswer, ProblemContext, ProblemKind, ProtocolAnswer, ValidatedRequest, WritePlan,
};
use serde::Deserialize;
use tokio::time::Instant;

use crate::{effect_error::EffectError, scan};

pub(crate) use calls::CallWorker;
use preconditions::RequestPreconditions;
use tries::GaveUp;

/// Sections of the settings that `journeyman pr` reads: the accounts that write.
#[derive(Debug, Deserialize)]
pub struct PullRequestSettings {
    /// The section `[github_writer]`.
    #[serde(default)]
    github_writer: github::Settings,
    /// The section `[jira_writer]`; absent if no ticket lives on Jira.
    #[serde(default)]
    jira_writer: Option<jira::Settings>,
    /// The sections `[github.<instance>]`.
    #[serde(default, deserialize_with = "github::deserialize_writers")]
    github: BTreeMap<InstanceName, github::Settings>,
    /// The section `[cli]`.
    #[serde(default)]
    cli: CliSettings,
}

/// The section `[cli]`, as far as pull requests need it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CliSettings {
    /// Short names of transitions and statuses that mean code review, e.g. `CR`.
    pub(crate) review_acronyms: TextList,
}

/// Result of a request.
#[derive(Debug)]
pub enum PullRequestResult {
    /// The answer to a request that wrote something, or that failed.
    Answered(ProtocolAnswer),
    /// The answer to a dry run.
    Planned(DryRunAnswer),
}

impl PullRequestResult {
    fn failed(problem: CallProblem) -> Self {
        Self::Answered(ProtocolAnswer::failed(vec![problem]))
    }
}

/// Opener of pull requests, with the accounts that write.
pub struct PullRequestOpener {
    github: github::GitHubWriter,
    /// Absent if the settings have no Jira.
    jira: Option<jira::JiraWriter>,
    /// Git URL of each GitHub server.
    servers: Vec<(Option<InstanceName>, String)>,
    acronyms: Vec<String>,
}

impl PullRequestOpener {
    /// Builds the clients. Opens no connection.
    ///
    /// # Errors
    /// The first wrong setting, by key.
    pub fn new(settings: PullRequestSettings) -> Result<Self, settings::Error> {
        let PullRequestSettings {
            github_writer,
            jira_writer,
            github,
            cli,
        } = settings.checked()?;
        let wrong = |key: &str, problem: String| settings::Error::new(key, problem);
        // The credentials must be known to the scanner before the first text is written.
        let servers = github
            .values()
            .chain([&github_writer])
            .flat_map(github::Settings::secrets);
        scan::add_configured(servers.chain(jira_writer.iter().map(|jira| &jira.api_token)));
        let default = (!github_writer.is_without_account()).then_some(&github_writer);
        let named = github.iter().map(|(name, server)| (Some(name.clone()), server));
        let servers = default.iter().map(|server| (None, *server)).chain(named);
        let jira = jira_writer.as_ref().map(jira::JiraWriter::new).transpose();
        Ok(Self {
            servers: servers
                .map(|(name, server)| (name, server.git_url.clone()))
                .collect(),
            github: github::GitHubWriter::with_instances(default, &github, None)
                .map_err(|error| wrong("github_writer", format_error_chain(&error)))?,
            jira: jira.map_err(|error| wrong("jira_writer", format_error_chain(&error)))?,
            acronyms: cli.review_acronyms.0,
        })
    }

    /// Builds it from the accounts of the reporter.
    pub(crate) fn with(
        github: github::GitHubWriter,
        jira: Option<jira::JiraWriter>,
        acronyms: &[String],
    ) -> Self {
        Self {
            github,
            jira,
            // A call names its repository, so no remote has to be matched to a server.
            servers: Vec::new(),
            acronyms: acronyms.to_vec(),
        }
    }

    /// Reads the current state, plans the writes, and performs them unless the request is a dry run.
    ///
    /// `issue` is the issue of the request's key on its Jira, absent if the key is of no issue. `choose_transition` gets
    /// the problem of several matching transitions; without a choice, the issue is not moved.
    pub async fn perform(
        &self,
        request: &ValidatedRequest,
        issue: Option<TicketKey>,
        choose_transition: impl FnOnce(&CallProblem) -> Option<String>,
    ) -> PullRequestResult {
        let preconditions = match self.read_preconditions(request, issue).await {
            Ok(preconditions) => preconditions,
            Err(problem) => return PullRequestResult::failed(problem),
        };
        match self.plan(request, &preconditions, choose_transition) {
            Ok(plan) if request.dry_run => PullRequestResult::Planned(build_dry_run_answer(plan)),
            Ok(plan) => PullRequestResult::Answered(self.write(request, &preconditions, &plan).await),
            Err(problem) => PullRequestResult::failed(problem),
        }
    }

    /// Returns the steps to perform.
    fn plan(
        &self,
        request: &ValidatedRequest,
        preconditions: &RequestPreconditions,
        choose_transition: impl FnOnce(&CallProblem) -> Option<String>,
    ) -> Result<WritePlan, CallProblem> {
        let plan_with = |choice: Option<&str>| {
            pullrequest::plan_writes(request, &preconditions.seen, &self.acronyms, choice)
        };
        let plan = plan_with(request.transition.as_deref())?;
        let ambiguous = plan
            .problems
            .iter()
            .find(|problem| problem.kind == ProblemKind::JiraTransitionAmbiguous);
        match ambiguous.and_then(choose_transition) {
            Some(choice) => plan_with(Some(&choice)),
            None => Ok(plan),
        }
    }
}

impl PullRequestSettings {
    /// Drops an empty Jira section, and requires every named account to be complete.
    fn checked(mut self) -> Result<Self, settings::Error> {
        let wrong = |(key, problem): (String, String)| settings::Error::new(key, problem);
        self.jira_writer = self.jira_writer.filter(|jira| !jira.is_empty());
        if self.github.is_empty() || !self.github_writer.is_without_account() {
            self.github_writer.check("github_writer").map_err(wrong)?;
        }
        if let Some(jira) = &self.jira_writer {
            jira.check("jira_writer").map_err(wrong)?;
        }
        for (name, server) in &self.github {
            server.check(&format!("github.{name}.writer")).map_err(wrong)?;
        }
        Ok(self)
    }
}

/// Builds the problem of a step that failed after all retries.
fn build_problem(kind: ProblemKind, message: String, gave_up: &GaveUp) -> CallProblem {
    CallProblem::new(kind, message)
        .with_error_output(gave_up.trouble.to_string())
        .after(gave_up.retries)
}

/// Builds the problem of a Jira step. Wrong credentials have a kind that callers can distinguish.
fn jira_problem(kind: ProblemKind, issue: &TicketKey, message: String, gave_up: &GaveUp) -> CallProblem {
    let (kind, message) = if let EffectError::Credentials { .. } = gave_up.trouble {
        (
            ProblemKind::JiraAuthenticationFailed,
            format!("Jira refused the credentials of [{}]", writer_section(issue)),
        )
    } else {
        (kind, message)
    };
    build_problem(kind, message, gave_up).about_issue(&issue.short())
}

/// Section of the settings with the account that writes to an issue.
fn writer_section(issue: &TicketKey) -> String {
    issue
        .instance()
        .map_or_else(|| "jira_writer".to_owned(), |instance| format!("jira.{instance}"))
}

/// Completes an answer with the duration of its call, and removes credentials.
pub fn complete_answer(answer: ProtocolAnswer, started: Instant) -> ProtocolAnswer {
    ProtocolAnswer {
        execution_time_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..without_credentials(answer)
    }
}

/// Removes credentials from an answer, because it quotes errors of GitHub, Jira and git.
fn without_credentials(mut answer: ProtocolAnswer) -> ProtocolAnswer {
    clean_problems(&mut answer.errors);
    answer.jira_status.error.iter_mut().for_each(redact_text);
    answer
}

/// Builds the answer to a dry run, without credentials.
fn build_dry_run_answer(plan: WritePlan) -> DryRunAnswer {
    let mut answer = DryRunAnswer::from(plan);
    clean_problems(&mut answer.errors);
    answer
}

fn clean_problems(errors: &mut [CallProblem]) {
    for CallProblem { message, context, .. } in errors {
        redact_text(message);
        let ProblemContext {
            branch, error_output, ..
        } = context;
        [branch, error_output].into_iter().flatten().for_each(redact_text);
    }
}

fn redact_text(text: &mut String) {
    *text = scan::without_logins(&scan::redact_credentials(text));
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn answer_contains_no_login_or_configured_secret() {
        let configured = SecretString::from("plain-words-of-a-token");
        scan::add_configured([&configured]);
        let said = "remote: https://x-access-token:ghs_SECRETSECRET@host/acme/shop and https://deploy:hunter@host:8443/x, \
                    plain-words-of-a-token at https://host/a@b";
        let mut answer = ProtocolAnswer::failed(Vec::new());
        answer.without_jira(
            CallProblem::new(ProblemKind::GitPushFailed, said.to_owned()).with_error_output(said.to_owned()),
        );
        let json = serde_json::to_string(&without_credentials(answer)).unwrap();
        for secret in ["SECRETSECRET", "hunter", "x-access-token", "plain-words"] {
            assert!(!json.contains(secret), "{secret} in {json}");
        }
        assert!(
            json.contains("https://[credentials removed]@host:8443/x") && json.contains("https://host/a@b"),
            "{json}"
        );
    }

    #[test]
    fn an_answer_quotes_no_credential() {
        let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
        let said = CallProblem::new(ProblemKind::GitPushFailed, format!("cannot push {token}"))
            .about_branch(&token)
            .with_error_output(format!("remote: {token}"));
        let mut answer = ProtocolAnswer::failed(Vec::new());
        answer.without_jira(said);
        let json = serde_json::to_string(&without_credentials(answer)).unwrap();
        assert!(
            !json.contains(&token) && json.contains("GitHub token removed"),
            "{json}"
        );
    }
}
