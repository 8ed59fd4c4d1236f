//! A pull request that a person asks for, from a folder on the person's machine: no run, no ledger. What is written goes
//! through the same checks and calls as the effects, and each write looks first, so that asking again repeats nothing.

mod calls;
mod look;
mod tries;
mod write;

use std::collections::BTreeMap;

use bootstrap::settings::{self, TextList};
use domain::{Instance, cause::chain};
use pullrequest::{Answer, Context, DryRun, Kind, Plan, Problem, Request};
use serde::Deserialize;

use crate::{scan, trouble::Trouble};

pub(crate) use calls::Calls;
pub use look::Ground;
use tries::GaveUp;

/// The parts of the settings that it needs: the accounts that write.
#[derive(Debug, Deserialize)]
pub struct DirectSettings {
    /// `[github_writer]`.
    #[serde(default)]
    github_writer: github::Settings,
    /// `[jira_writer]`; absent where no ticket lives on Jira.
    #[serde(default)]
    jira_writer: Option<jira::Settings>,
    /// `[github.<instance>]`.
    #[serde(default, deserialize_with = "github::writers")]
    github: BTreeMap<Instance, github::Settings>,
    /// `[cli]`.
    #[serde(default)]
    cli: CliSettings,
}

/// `[cli]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CliSettings {
    /// Short names of transitions and statuses that mean code review, e.g. `CR`.
    pub(crate) review_acronyms: TextList,
}

/// Opens pull requests with the accounts that write.
pub struct Direct {
    github: github::Writer,
    /// Absent where the settings have no Jira.
    jira: Option<jira::Writer>,
    /// Where each GitHub has its repositories.
    servers: Vec<(Option<Instance>, String)>,
    acronyms: Vec<String>,
}

impl Direct {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// A wrong setting, by key.
    pub fn new(settings: DirectSettings) -> Result<Self, settings::Error> {
        let DirectSettings {
            github_writer,
            jira_writer,
            github,
            cli,
        } = settings.checked()?;
        let wrong = |key: &str, problem: String| settings::Error::new(key, problem);
        let servers = github
            .values()
            .chain([&github_writer])
            .flat_map(github::Settings::secrets);
        scan::add_configured(servers.chain(jira_writer.iter().map(|jira| &jira.api_token)));
        let default = (!github_writer.is_without_account()).then_some(&github_writer);
        let named = github.iter().map(|(name, server)| (Some(name.clone()), server));
        let servers = default.iter().map(|server| (None, *server)).chain(named);
        let jira = jira_writer.as_ref().map(jira::Writer::new).transpose();
        Ok(Self {
            servers: servers
                .map(|(name, server)| (name, server.git_url.clone()))
                .collect(),
            github: github::Writer::with_instances(default, &github)
                .map_err(|error| wrong("github_writer", chain(&error)))?,
            jira: jira.map_err(|error| wrong("jira_writer", chain(&error)))?,
            acronyms: cli.review_acronyms.0,
        })
    }

    /// With the accounts of the reporter.
    pub(crate) fn with(github: github::Writer, jira: Option<jira::Writer>, acronyms: &[String]) -> Self {
        Self {
            github,
            jira,
            // A request names its repository.
            servers: Vec::new(),
            acronyms: acronyms.to_vec(),
        }
    }

    /// What has to be written; `choice` names a transition in the place of the request's.
    ///
    /// # Errors
    /// Why there will be no pull request.
    pub fn plan(&self, request: &Request, ground: &Ground, choice: Option<&str>) -> Result<Plan, Problem> {
        let choice = choice.or(request.transition.as_deref());
        pullrequest::plan(request, &ground.seen, &self.acronyms, choice)
    }
}

impl DirectSettings {
    /// Without a Jira that is not filled in, and with every account that is named complete.
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

/// What was not done after all tries.
fn problem(kind: Kind, message: String, gave_up: &GaveUp) -> Problem {
    Problem::new(kind, message)
        .saying(gave_up.trouble.to_string())
        .after(gave_up.retries)
}

/// The same for Jira, where credentials and a missing issue are types of their own.
fn jira_problem(kind: Kind, key: &str, message: String, gave_up: &GaveUp) -> Problem {
    let (kind, message) = match &gave_up.trouble {
        Trouble::Credentials { .. } => (
            Kind::JiraAuthenticationFailed,
            "Jira refused the credentials of [jira_writer]".to_owned(),
        ),
        _ => (kind, message),
    };
    problem(kind, message, gave_up).about_issue(key)
}

/// The answer without anything that looks like a credential: it quotes what others said.
pub fn without_credentials(mut answer: Answer) -> Answer {
    clean(&mut answer.errors);
    answer.jira_status.error.iter_mut().for_each(redact);
    answer
}

/// The answer to who only wants to see, in the same way.
pub fn only_looked(plan: Plan) -> DryRun {
    let mut look = DryRun::from(plan);
    clean(&mut look.errors);
    look
}

fn clean(errors: &mut [Problem]) {
    for Problem { message, context, .. } in errors {
        redact(message);
        let Context {
            branch, error_output, ..
        } = context;
        [branch, error_output].into_iter().flatten().for_each(redact);
    }
}

fn redact(text: &mut String) {
    *text = scan::without_logins(&scan::redact(text));
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn an_answer_repeats_no_login_of_an_address_and_no_configured_secret() {
        let configured = SecretString::from("plain-words-of-a-token");
        scan::add_configured([&configured]);
        let said = "remote: https://x-access-token:ghs_SECRETSECRET@host/acme/shop and https://deploy:hunter@host:8443/x, \
                    plain-words-of-a-token at https://host/a@b";
        let mut answer = Answer::failed(Vec::new());
        answer.without_jira(Problem::new(Kind::GitPushFailed, said.to_owned()).saying(said.to_owned()));
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
        let said = Problem::new(Kind::GitPushFailed, format!("cannot push {token}"))
            .about_branch(&token)
            .saying(format!("remote: {token}"));
        let mut answer = Answer::failed(Vec::new());
        answer.without_jira(said);
        let json = serde_json::to_string(&without_credentials(answer)).unwrap();
        assert!(
            !json.contains(&token) && json.contains("GitHub token removed"),
            "{json}"
        );
    }
}
