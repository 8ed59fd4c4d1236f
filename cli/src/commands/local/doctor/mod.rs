//! `journeyman doctor`: prints one line per check, with a remedy for each failure.

mod accounts;
mod boards;
mod certificates;
mod clock;
mod instances;
mod model;
mod remedy;
mod repositories;
mod requesters;

use std::{
    collections::BTreeMap,
    future::Future,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use bootstrap::{
    ServiceConfig,
    rules::{Connections, RulesBook},
    settings,
};
use clap::Args;
use domain::{Instance, NewerRecord, Rules, Timestamp, cause::chain};
use serde::{Deserialize, de::IgnoredAny};

use accounts::Project;
use remedy::Remedy;

use super::{say, settings_file};
use crate::{args::Settings, local};

/// Check versions, connections, credentials, rules files and tools
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Check this machine only, without requests to servers, accounts or models
    #[arg(long)]
    pub(super) offline: bool,
}

// NATS user of the check: `nats.nkey_seed` must be the key of this user.
const DOCTOR: &str = "ingest";
// Programs that are installed next to the command.
const OWN_PROGRAMS: [&str; 3] = ["launcher", "parser", "inspector"];
const CHECK_LIMIT: Duration = Duration::from_secs(15);
// Time for which a record of a newer release is reported. Services meet such records repeatedly until they
// are handled.
const NEWER_SHOWN: Duration = Duration::from_secs(10 * 60);

/// Result of a check, with its text.
enum Finding {
    /// The checked object is correct.
    Ok(String),
    /// It works, but should be changed.
    Warn(String),
    /// It failed; the remedy repairs it.
    Failed(String, Remedy),
    /// It was not checked, for this reason.
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
            Finding::Failed(detail, remedy) => {
                self.failed += 1;
                ("FAIL", format!("{detail} {remedy}"))
            }
        };
        say(&format!("{verdict:<5} {name:<22} {detail}"));
    }
}

/// Settings of `[ingest]` about authorization on Jira.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Authority {
    jira_trigger_group: String,
    jira_trigger_role: String,
}

/// Optional sections, so that a missing one hides no other.
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
    let sections: Sections = settings::load(file, std::env::vars())?;
    findings.add("settings file", settings_read(file));
    // With `up`, the settings may lack NATS and Redis, because `up` starts both and generates their
    // credentials.
    let one_machine = sections.nats.is_none() && sections.redis.is_none();
    programs(&mut findings, one_machine);
    let mut environment: Vec<_> = std::env::vars().collect();
    if one_machine {
        environment = local::completed(file, environment).await?;
    }
    services(&mut findings, file, &environment);
    certificates::check(&mut findings, &sections, bootstrap::now());
    let instances = instances::load(&mut findings, file);
    let projects = rules(&mut findings, &sections, &instances.connections());
    let is_online = !asked.offline;
    let (default_jira, authority) = (sections.jira_reader.as_ref(), &sections.ingest);
    Box::pin(requesters::check(
        &mut findings,
        None,
        default_jira,
        authority,
        is_online,
    ))
    .await;
    for (name, reader) in instances.jira_readers() {
        Box::pin(requesters::check(
            &mut findings,
            Some(name),
            Some(reader),
            authority,
            is_online,
        ))
        .await;
    }
    if is_online {
        connections(&mut findings, &sections).await;
        clock::check_clocks(&mut findings, &sections, &instances).await;
        accounts::check(&mut findings, &sections, &projects.of(None)).await;
        instances.check(&mut findings, &projects).await;
        repositories::check(&mut findings, &sections, &instances).await;
        boards::check(&mut findings, &sections, &instances).await;
        Box::pin(model::check(&mut findings, file, &environment)).await;
    } else {
        let asked =
            "NATS, Redis, clocks, accounts, repositories, the model and pools are not asked: --offline";
        findings.add("network", Finding::Skipped(asked.to_owned()));
    }
    if one_machine {
        let own = "`up` has an executor of its own";
        findings.add("pools", Finding::Skipped(own.to_owned()));
    } else if is_online {
        pools(&mut findings, file).await;
    }
    say(&format!("{} failed", findings.failed));
    Ok(if findings.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn settings_read(file: Option<&Path>) -> Finding {
    match file {
        Some(path) => Finding::Ok(path.display().to_string()),
        None => Finding::Skipped("there is none; variables and defaults count".to_owned()),
    }
}

fn programs(findings: &mut Findings, one_machine: bool) {
    findings.add(
        "git",
        match git::check_git_version() {
            Ok(version) => Finding::Ok(format!("git version {version}")),
            Err(unusable) => Finding::Failed(
                format!("{unusable}: reporter and executor need it"),
                Remedy::Install,
            ),
        },
    );
    let own = match one_machine {
        true => own_programs(bootstrap::own_program),
        false => Finding::Skipped("those of executor and reporter are with them".to_owned()),
    };
    findings.add("own programs", own);
    let version = |found: Result<(u32, u32, u32), servers::Error>| match found {
        Ok((major, minor, patch)) => Finding::Ok(format!("{major}.{minor}.{patch}")),
        Err(error) => Finding::Skipped(format!("only `up` and `process-ticket` need it: {error}")),
    };
    findings.add("nats-server", version(servers::nats_version(None)));
    findings.add("redis-server", version(servers::redis_version(None)));
}

/// Finding about the helper programs. They confine input of other people, and without them executor and
/// reporter do not start.
fn own_programs(find: impl Fn(&str) -> Option<PathBuf>) -> Finding {
    let missing: Vec<&str> = OWN_PROGRAMS
        .into_iter()
        .filter(|name| find(name).is_none())
        .collect();
    match missing.is_empty() {
        true => Finding::Ok(OWN_PROGRAMS.join(", ")),
        false => Finding::Failed(
            format!("missing beside this program: {}", missing.join(", ")),
            Remedy::Install,
        ),
    }
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
        Err(error) => {
            let told = chain(&error);
            let remedy = Remedy::of_setting(&told);
            Finding::Failed(told, remedy)
        }
    }
}

async fn connections(findings: &mut Findings, sections: &Sections) {
    let nats = match &sections.nats {
        Some(settings) => {
            found_within(Remedy::Nats, async {
                let queue = queue::Queue::connect(settings, DOCTOR)
                    .await
                    .map_err(|error| chain(&error))?;
                queue.ping().await.map_err(|error| chain(&error))?;
                let met = queue.newer_records().await.map_err(|error| chain(&error))?;
                Ok(match newer_records(&met, bootstrap::now()) {
                    Ok(()) => Finding::Ok(settings.addresses()),
                    Err(problem) => Finding::Failed(problem, Remedy::OtherRelease),
                })
            })
            .await
        }
        None => Finding::Skipped("[nats] is not set; `up` starts its own".to_owned()),
    };
    findings.add("nats", nats);
    let redis = match &sections.redis {
        Some(settings) => {
            within(Remedy::Redis, async {
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

/// Error when the services recently met records of a newer release and left them unchanged.
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

/// Jira projects of the rules.
#[derive(Default)]
struct Projects(Vec<(Option<Instance>, Project)>);

impl Projects {
    /// Projects of one site.
    fn of(&self, instance: Option<&Instance>) -> Vec<Project> {
        let on_it = self.0.iter().filter(|(site, _)| site.as_ref() == instance);
        on_it.map(|(_, project)| project.clone()).collect()
    }
}

/// Adds findings about the rules, and returns the Jira projects that they name.
fn rules(findings: &mut Findings, sections: &Sections, connections: &Connections) -> Projects {
    let settings = &sections.rules;
    let book = match RulesBook::read(&settings.dir, connections) {
        Ok(book) => book,
        Err(error) => {
            findings.add(
                "rules",
                Finding::Failed(
                    format!("cannot read {}: {error}", settings.dir.display()),
                    Remedy::AddRules,
                ),
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
        findings.add("rules", Finding::Failed(place, Remedy::Rules));
    }
    if book.repositories().next().is_none() && book.problems().is_empty() {
        findings.add(
            "rules",
            Finding::Failed(
                format!("{} holds no repository", settings.dir.display()),
                Remedy::AddRules,
            ),
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
                        Err(problem) => Finding::Failed(format!("{address}: {problem}"), Remedy::Pools),
                    },
                );
            }
        }
    }
}

async fn within(remedy: Remedy, check: impl Future<Output = Result<String, String>>) -> Finding {
    let check = Box::pin(check);
    found_within(remedy, async { check.await.map(Finding::Ok) }).await
}

/// Variant of [`within`] for a check that returns a finding.
async fn found_within(remedy: Remedy, check: impl Future<Output = Result<Finding, String>>) -> Finding {
    match tokio::time::timeout(CHECK_LIMIT, Box::pin(check)).await {
        Ok(Ok(finding)) => finding,
        Ok(Err(problem)) => Finding::Failed(problem, remedy),
        Err(_) => {
            let late = format!("no answer within {} s", CHECK_LIMIT.as_secs());
            Finding::Failed(late, remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::RecordKind;

    use super::*;

    #[test]
    fn programs_that_are_missing_are_named() {
        assert!(matches!(own_programs(|_| Some(PathBuf::new())), Finding::Ok(_)));
        let some = own_programs(|name| (name == "launcher").then(PathBuf::new));
        let Finding::Failed(told, Remedy::Install) = some else {
            panic!("two are missing")
        };
        assert!(
            told.starts_with("missing beside this program: parser, inspector"),
            "{told}"
        );
    }

    #[test]
    fn newer_records_fail_while_recent() {
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
