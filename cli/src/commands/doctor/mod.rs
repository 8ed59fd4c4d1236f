//! `journeyman doctor`: one line a check, with what to do about what fails.

mod accounts;
mod boards;
mod certificates;
mod instances;

use std::{collections::BTreeMap, future::Future, path::Path, process::ExitCode, time::Duration};

use bootstrap::{
    ServiceConfig,
    rules::{Connections, RulesBook},
    settings,
};
use clap::Args;
use domain::{Instance, NewerRecord, Rules, Timestamp, cause::chain};
use serde::{Deserialize, de::IgnoredAny};

use accounts::Project;

use super::{say, settings_file};
use crate::{args::Settings, local};

/// Check versions, connections, credentials, rules files and tools
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) settings: Settings,
}

/// The user whose key `nats.nkey_seed` must be for the check of NATS.
const DOCTOR: &str = "ingest";
/// What to do where there are no rules.
const ADD: &str = "`journeyman repo add OWNER/NAME` writes the rules of one";
const CHECK_LIMIT: Duration = Duration::from_secs(15);
/// Records of a newer release are met again and again as long as they are left alone.
const NEWER_SHOWN: Duration = Duration::from_secs(10 * 60);

/// How a check went, and what to say about it.
enum Finding {
    Ok(String),
    /// It works, and should be otherwise.
    Warn(String),
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
            Finding::Warn(detail) => ("warn", detail),
            Finding::Skipped(detail) => ("skip", detail),
            Finding::Failed(detail) => {
                self.failed += 1;
                ("FAIL", detail)
            }
        };
        say(&format!("{verdict:<5} {name:<22} {detail}"));
    }
}

/// What `[ingest]` says of who may ask for work.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Authority {
    jira_trigger_role: String,
}

/// Each section on its own, so that one that is missing hides no other.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Sections {
    nats: Option<queue::Settings>,
    redis: Option<lease::Settings>,
    tls: Option<bootstrap::tls::Settings>,
    rules: bootstrap::rules::Settings,
    ingest: Authority,
    github_reader: Option<github::Settings>,
    github_writer: Option<github::Settings>,
    jira_reader: Option<jira::Settings>,
    jira_writer: Option<jira::Settings>,
    folder: BTreeMap<Instance, IgnoredAny>,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let file = settings_file(asked.settings.settings);
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
    certificates::check(&mut findings, &sections, bootstrap::now());
    let instances = instances::load(&mut findings, file);
    let projects = rules(&mut findings, &sections, &instances.connections());
    accounts::check(&mut findings, &sections, &projects.of(None)).await;
    instances.check(&mut findings, &projects).await;
    boards::check(&mut findings, &sections, &instances).await;
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
        Err(error) => Finding::Failed(chain(&error)),
    }
}

async fn connections(findings: &mut Findings, sections: &Sections) {
    let nats = match &sections.nats {
        Some(settings) => {
            within(async {
                let queue = queue::Queue::connect(settings, DOCTOR)
                    .await
                    .map_err(|error| chain(&error))?;
                queue.ping().await.map_err(|error| chain(&error))?;
                let met = queue.newer_records().await.map_err(|error| chain(&error))?;
                newer_records(&met, bootstrap::now())?;
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
                    .map_err(|error| chain(&error))?;
                leases.ping().await.map_err(|error| chain(&error))?;
                Ok(settings.address())
            })
            .await
        }
        None => Finding::Skipped("[redis] is not set; `up` starts its own".to_owned()),
    };
    findings.add("redis", redis);
}

/// Whether the services left records of a newer release alone a moment ago.
fn newer_records(met: &[NewerRecord], now: Timestamp) -> Result<(), String> {
    let Some(last) = met
        .iter()
        .filter(|record| record.at.plus(NEWER_SHOWN) >= now)
        .max_by_key(|record| record.at)
    else {
        return Ok(());
    };
    let ticket = last
        .ticket
        .as_ref()
        .map(|ticket| format!(" of {ticket}"))
        .unwrap_or_default();
    Err(format!(
        "a newer release wrote records that the running one cannot read, the last at {}: a {}{ticket} of format {}. They are \
         kept; run the newer release again",
        last.at, last.kind, last.format
    ))
}

/// The Jira projects that the rules name.
#[derive(Default)]
struct Projects(Vec<(Option<Instance>, Project)>);

impl Projects {
    /// Those of one site.
    fn of(&self, instance: Option<&Instance>) -> Vec<Project> {
        let on_it = self.0.iter().filter(|(site, _)| site.as_ref() == instance);
        on_it.map(|(_, project)| project.clone()).collect()
    }
}

/// Shows what the rules say and what is wrong with them; gives the Jira projects that they name.
fn rules(findings: &mut Findings, sections: &Sections, connections: &Connections) -> Projects {
    let settings = &sections.rules;
    let book = match RulesBook::read(&settings.dir, connections) {
        Ok(book) => book,
        Err(error) => {
            findings.add(
                "rules",
                Finding::Failed(format!("cannot read {}: {error}; {ADD}", settings.dir.display())),
            );
            return Projects::default();
        }
    };
    for rules in book.repositories() {
        let path = || format!("{}/{}", rules.repo.owner, rules.repo.name);
        let name = rules
            .repository()
            .map_or_else(|_| path(), |name| name.to_string());
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
            Finding::Failed(format!("{} holds no repository; {ADD}", settings.dir.display())),
        );
    }
    let with_project = |rules: &&Rules| !rules.jira.project_key.is_empty();
    let named = book.repositories().filter(with_project).map(|rules| {
        let project = Project {
            key: rules.jira.project_key.clone(),
            status: rules.agent.status.clone(),
            role: sections.ingest.jira_trigger_role.trim().to_owned(),
        };
        (rules.jira.instance.clone(), project)
    });
    Projects(named.collect())
}

async fn pools(findings: &mut Findings, file: Option<&Path>) {
    match settings::load::<planner::Config>(file, std::env::vars()) {
        Err(error) => findings.add("pools", Finding::Skipped(chain(&error))),
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
    let check = Box::pin(check);
    found_within(async { check.await.map(Finding::Ok) }).await
}

/// The same for a check that has more to say.
async fn found_within(check: impl Future<Output = Result<Finding, String>>) -> Finding {
    match tokio::time::timeout(CHECK_LIMIT, Box::pin(check)).await {
        Ok(Ok(finding)) => finding,
        Ok(Err(problem)) => Finding::Failed(problem),
        Err(_) => Finding::Failed(format!("no answer within {} s", CHECK_LIMIT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use domain::RecordKind;

    use super::*;

    #[test]
    fn records_of_a_newer_release_are_shown_as_long_as_they_are_met() {
        let met = |seconds: i64, kind| NewerRecord {
            kind,
            format: 2,
            ticket: Some("jira:ENG-12".parse().unwrap()),
            at: Timestamp::from_unix_ms(seconds * 1000),
        };
        let records = [met(100, RecordKind::Entry), met(160, RecordKind::Row)];
        let at = |seconds: i64| newer_records(&records, Timestamp::from_unix_ms(seconds * 1000));
        let problem = at(200).unwrap_err();
        assert!(problem.contains("a row of jira:ENG-12 of format 2"), "{problem}");
        assert_eq!(at(761), Ok(()), "they were taken up meanwhile");
    }
}
