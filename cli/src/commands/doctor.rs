//! `journeyman doctor`: one line a check, with what to do about what fails.

use std::{future::Future, path::Path, process::ExitCode, time::Duration};

use bootstrap::{ServiceConfig, rules::RulesBook, settings};
use secrecy::ExposeSecret;
use serde::Deserialize;

use super::say;
use crate::local;

/// The user whose key `nats.nkey_seed` must be for the check of NATS.
const DOCTOR: &str = "ingest";
const CHECK_LIMIT: Duration = Duration::from_secs(15);
/// What the two GitHub Apps need; docs/permissions.md tells why.
const READER_NEEDS: [&str; 5] = [
    "checks:read",
    "contents:read",
    "issues:read",
    "metadata:read",
    "pull_requests:read",
];
const WRITER_NEEDS: [&str; 3] = ["contents:write", "issues:write", "pull_requests:write"];

/// How a check went, and what to say about it.
enum Finding {
    Ok(String),
    Failed(String),
    Skipped(String),
}

#[derive(Default)]
struct Findings {
    failed: usize,
}

impl Findings {
    fn add(&mut self, name: &str, finding: Finding) {
        let (verdict, detail) = match finding {
            Finding::Ok(detail) => ("ok", detail),
            Finding::Skipped(detail) => ("skip", detail),
            Finding::Failed(detail) => {
                self.failed += 1;
                ("FAIL", detail)
            }
        };
        say(&format!("{verdict:<5} {name:<22} {detail}"));
    }
}

/// Each section on its own, so that one that is missing hides no other.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Sections {
    nats: Option<queue::Settings>,
    redis: Option<lease::Settings>,
    rules: bootstrap::rules::Settings,
    github_reader: Option<github::Settings>,
    github_writer: Option<github::Settings>,
    jira_reader: Option<jira::Settings>,
    jira_writer: Option<jira::Settings>,
}

pub(super) async fn run(file: Option<std::path::PathBuf>) -> anyhow::Result<ExitCode> {
    let file = file.as_deref();
    let mut findings = Findings::default();
    findings.add(
        "settings file",
        Finding::Ok(file.map_or_else(|| "none".to_owned(), |path| path.display().to_string())),
    );
    programs(&mut findings).await;
    let sections: Sections = settings::load(file, std::env::vars())?;
    let mut environment: Vec<_> = std::env::vars().collect();
    // What `up` makes afresh at each start need not be in the settings of one machine.
    let one_machine = sections.nats.is_none() && sections.redis.is_none();
    if one_machine {
        environment = local::completed(file, environment).await?;
    }
    services(&mut findings, file, &environment);
    connections(&mut findings, &sections).await;
    credentials(&mut findings, &sections).await;
    rules(&mut findings, &sections.rules);
    if one_machine {
        let own = "`up` has an executor of its own";
        findings.add("pools", Finding::Skipped(own.to_owned()));
    } else {
        pools(&mut findings, file).await;
    }
    say(&format!("{} failed", findings.failed));
    Ok(if findings.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn programs(findings: &mut Findings) {
    let git = tokio::process::Command::new("git")
        .arg("--version")
        .output()
        .await;
    findings.add(
        "git",
        match git {
            Ok(output) if output.status.success() => {
                Finding::Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            }
            Ok(_) | Err(_) => Finding::Failed("install git: reporter and executor need it".to_owned()),
        },
    );
    let version = |found: Result<(u32, u32, u32), servers::Error>| match found {
        Ok((major, minor, patch)) => Finding::Ok(format!("{major}.{minor}.{patch}")),
        Err(error) => Finding::Skipped(format!("only `up` and `process-ticket` need it: {error}")),
    };
    findings.add("nats-server", version(servers::nats_version(None)));
    findings.add("redis-server", version(servers::redis_version(None)));
}

fn services(findings: &mut Findings, file: Option<&Path>, environment: &[(String, String)]) {
    findings.add("ingest settings", check::<ingest::Config>(file, environment));
    findings.add("planner settings", check::<planner::Config>(file, environment));
    findings.add("executor settings", check::<executor::Config>(file, environment));
    findings.add("reporter settings", check::<reporter::Config>(file, environment));
    findings.add("egress settings", check::<egress::Config>(file, environment));
}

fn check<C: ServiceConfig>(file: Option<&Path>, environment: &[(String, String)]) -> Finding {
    let loaded = settings::load::<C>(file, environment.iter().cloned());
    match loaded.and_then(|config| config.check()) {
        Ok(()) => Finding::Ok("complete".to_owned()),
        Err(error) => Finding::Failed(error.to_string()),
    }
}

async fn connections(findings: &mut Findings, sections: &Sections) {
    let nats = match &sections.nats {
        Some(settings) => {
            within(async {
                let queue = queue::Queue::connect(settings, DOCTOR)
                    .await
                    .map_err(|error| error.to_string())?;
                queue.ping().await.map_err(|error| error.to_string())?;
                Ok(settings.addresses())
            })
            .await
        }
        None => Finding::Skipped("[nats] is not set; `up` starts its own".to_owned()),
    };
    findings.add("nats", nats);
    let redis = match &sections.redis {
        Some(settings) => {
            within(async {
                let leases = lease::Leases::connect(settings)
                    .await
                    .map_err(|error| error.to_string())?;
                leases.ping().await.map_err(|error| error.to_string())?;
                Ok(settings.address())
            })
            .await
        }
        None => Finding::Skipped("[redis] is not set; `up` starts its own".to_owned()),
    };
    findings.add("redis", redis);
}

async fn credentials(findings: &mut Findings, sections: &Sections) {
    let missing = || Finding::Failed("the section is missing".to_owned());
    findings.add(
        "github reader",
        match &sections.github_reader {
            Some(settings) => within(github_reader(settings)).await,
            None => missing(),
        },
    );
    findings.add(
        "github writer",
        match &sections.github_writer {
            Some(settings) => within(github_writer(settings)).await,
            None => missing(),
        },
    );
    findings.add(
        "jira reader",
        match &sections.jira_reader {
            Some(settings) => {
                within(async {
                    let reader = jira::Reader::new(settings).map_err(|error| error.to_string())?;
                    reader
                        .myself()
                        .await
                        .map(|account| account.display_name)
                        .map_err(|error| error.to_string())
                })
                .await
            }
            None => missing(),
        },
    );
    findings.add(
        "jira writer",
        match &sections.jira_writer {
            Some(settings) => {
                within(async {
                    let writer = jira::Writer::new(settings).map_err(|error| error.to_string())?;
                    writer
                        .myself()
                        .await
                        .map(|account| account.display_name)
                        .map_err(|error| error.to_string())
                })
                .await
            }
            None => missing(),
        },
    );
    findings.add("two accounts", two_accounts(sections));
}

/// One shared credential would let ingest write.
fn two_accounts(sections: &Sections) -> Finding {
    let same_jira = match (&sections.jira_reader, &sections.jira_writer) {
        (Some(reader), Some(writer)) => reader.api_token.expose_secret() == writer.api_token.expose_secret(),
        _ => false,
    };
    let same_github = match (&sections.github_reader, &sections.github_writer) {
        (Some(reader), Some(writer)) => {
            let token = |settings: &github::Settings| {
                settings
                    .token
                    .as_ref()
                    .map(|token| token.expose_secret().to_owned())
            };
            (reader.app_id.is_some() && reader.app_id == writer.app_id)
                || (token(reader).is_some() && token(reader) == token(writer))
        }
        _ => false,
    };
    match (same_jira, same_github) {
        (false, false) => Finding::Ok("reader and writer differ".to_owned()),
        (true, _) => Finding::Failed("jira_reader and jira_writer must be two accounts".to_owned()),
        (false, true) => {
            Finding::Failed("github_reader and github_writer must be two Apps or tokens".to_owned())
        }
    }
}

async fn github_reader(settings: &github::Settings) -> Result<String, String> {
    let reader = github::Reader::new(settings).map_err(|error| error.to_string())?;
    let identity = reader.whoami().await.map_err(|error| error.to_string())?;
    let writes: Vec<_> = identity
        .permissions
        .iter()
        .filter(|permission| permission.ends_with(":write"))
        .collect();
    if identity.is_app && !writes.is_empty() {
        return Err(format!(
            "{} may write ({writes:?}): take that away",
            identity.login
        ));
    }
    scopes(&identity, &READER_NEEDS)
}

async fn github_writer(settings: &github::Settings) -> Result<String, String> {
    let writer = github::Writer::new(settings).map_err(|error| error.to_string())?;
    let identity = writer.whoami().await.map_err(|error| error.to_string())?;
    let forbidden = ["workflows:write", "administration:write"];
    match identity
        .permissions
        .iter()
        .find(|permission| forbidden.contains(&permission.as_str()))
    {
        Some(permission) if identity.is_app => {
            Err(format!("{} holds {permission}: take that away", identity.login))
        }
        Some(_) | None => scopes(&identity, &WRITER_NEEDS),
    }
}

fn scopes(identity: &github::Identity, needs: &[&str]) -> Result<String, String> {
    if !identity.is_app {
        return Ok(format!(
            "{} (a token; its permissions cannot be read)",
            identity.login
        ));
    }
    let grants = |need: &&&str| {
        let write = need.replace(":read", ":write");
        identity
            .permissions
            .iter()
            .any(|has| has == **need || *has == write)
    };
    let missing: Vec<_> = needs.iter().filter(|need| !grants(need)).collect();
    if missing.is_empty() {
        Ok(format!("{} with {}", identity.login, needs.join(", ")))
    } else {
        Err(format!(
            "{} lacks {missing:?}; see docs/permissions.md",
            identity.login
        ))
    }
}

fn rules(findings: &mut Findings, settings: &bootstrap::rules::Settings) {
    let book = match RulesBook::read(&settings.dir) {
        Ok(book) => book,
        Err(error) => {
            return findings.add(
                "rules",
                Finding::Failed(format!("cannot read {}: {error}", settings.dir.display())),
            );
        }
    };
    for rules in book.repositories() {
        let name = format!("{}/{}", rules.repo.owner, rules.repo.name);
        findings.add(
            "rules",
            Finding::Ok(format!("{name} (Jira project {:?})", rules.jira.project_key)),
        );
    }
    for problem in book.problems() {
        let place = format!(
            "{}:{} {}: {}",
            problem.file, problem.line, problem.key, problem.problem
        );
        findings.add("rules", Finding::Failed(place));
    }
    if book.repositories().next().is_none() && book.problems().is_empty() {
        findings.add(
            "rules",
            Finding::Failed(format!("{} holds no repository", settings.dir.display())),
        );
    }
}

async fn pools(findings: &mut Findings, file: Option<&Path>) {
    match settings::load::<planner::Config>(file, std::env::vars()) {
        Err(error) => findings.add("pools", Finding::Skipped(error.to_string())),
        Ok(config) => {
            for (address, tools) in planner::inspect_pools(&config, CHECK_LIMIT).await {
                findings.add(
                    "pool",
                    match tools {
                        Ok(tools) => Finding::Ok(format!("{address}: {}", tools.join(", "))),
                        Err(problem) => Finding::Failed(format!("{address}: {problem}")),
                    },
                );
            }
        }
    }
}

async fn within(check: impl Future<Output = Result<String, String>>) -> Finding {
    match tokio::time::timeout(CHECK_LIMIT, check).await {
        Ok(Ok(detail)) => Finding::Ok(detail),
        Ok(Err(problem)) => Finding::Failed(problem),
        Err(_) => Finding::Failed(format!("no answer within {} s", CHECK_LIMIT.as_secs())),
    }
}
