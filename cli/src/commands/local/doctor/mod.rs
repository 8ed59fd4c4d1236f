//! `journeyman doctor`: prints one line per check, with a remedy for each failure.

mod accounts;
mod certificates;
mod clock;
mod declared_setups;
mod instances;
mod mcp_servers;
mod projects;
mod remedy;
mod repositories;
mod requesters;
mod routes;

use std::{
    collections::BTreeMap,
    future::Future,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use bootstrap::{
    ServiceConfig,
    rules::{ConfiguredInstances, RulesBook},
    settings,
};
use clap::Args;
use domain::{InstanceName, NewerRecord, RepositoryRules, Timestamp, cause::format_error_chain};
use serde::Deserialize;

use projects::ProjectRequirements;
use remedy::Remedy;
use repositories::FolderSection;
pub(super) use requesters::{EVERYBODY, GroupState, inspect_group, list_groups};

use super::{commit_signing::SigningSections, find_settings_file, print_result};
use crate::{args::SettingsArguments, exit_codes::derive_exit_code, local};

/// Check versions, connections, credentials, rules files and tools
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    pub(super) settings: SettingsArguments,
    /// Check this machine only, without requests to servers, accounts or models
    #[arg(long)]
    pub(super) offline: bool,
    /// Check only the settings, accounts and connections of ingest, as in its pod
    #[arg(long)]
    pub(super) ingest_only: bool,
}

// NATS user of the check: `nats.nkey_seed` must be the key of this user.
const DOCTOR: &str = "ingest";
// Programs that are installed next to the command.
const OWN_PROGRAMS: [&str; 3] = ["launcher", "parser", "inspector"];
// Reason to skip a check with `--ingest-only`.
const OTHER_SERVICES: &str = "the other services have what it needs: --ingest-only";
// A silent server must not hold up the other checks.
const CHECK_LIMIT: Duration = Duration::from_secs(15);
// Time limit of the model with retries, for a provider that asks for a pause or answers slowly.
const MODEL_LIMIT: Duration = Duration::from_secs(30);
// Time for which a record of a newer release is reported. Services meet such records repeatedly until they
// are handled.
const NEWER_SHOWN: Duration = Duration::from_secs(10 * 60);

/// Result of a check, with its text.
enum DoctorFinding {
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
struct DoctorReport {
    failed: usize,
    /// True when only the secrets of ingest are here.
    is_ingest_only: bool,
}

impl DoctorReport {
    fn add(&mut self, name: &str, finding: DoctorFinding) {
        let (verdict, detail) = match finding {
            DoctorFinding::Ok(detail) => ("ok", detail),
            DoctorFinding::Warn(detail) => ("warn", detail),
            DoctorFinding::Skipped(detail) => ("skip", detail),
            DoctorFinding::Failed(detail, remedy) => {
                self.failed += 1;
                ("FAIL", format!("{detail} {remedy}"))
            }
        };
        print_result(&format!("{verdict:<5} {name:<22} {detail}"));
    }
}

/// Settings of `[ingest]` about authorization on Jira.
#[derive(Default, Deserialize)]
#[serde(default)]
struct JiraAuthority {
    jira_trigger_group: String,
    jira_trigger_role: String,
}

/// Optional sections, so that a missing one hides no other.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DoctorSections {
    nats: Option<queue::Settings>,
    redis: Option<lease::Settings>,
    tls: Option<bootstrap::tls::Settings>,
    rules: bootstrap::rules::Settings,
    ingest: JiraAuthority,
    github_reader: Option<github::Settings>,
    github_writer: Option<github::Settings>,
    jira_reader: Option<jira::Settings>,
    jira_writer: Option<jira::Settings>,
    reporter: SigningSections,
    folder: BTreeMap<InstanceName, FolderSection>,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let file = find_settings_file(asked.settings.settings);
    let file = file.as_deref();
    let mut findings = DoctorReport {
        is_ingest_only: asked.ingest_only,
        ..DoctorReport::default()
    };
    let mut sections: DoctorSections = settings::load_process_settings(file)?;
    // The variable of an empty secret makes a section without an account, which ingest and the reporter ignore.
    sections.jira_reader = sections.jira_reader.filter(|jira| !jira.is_empty());
    sections.jira_writer = sections.jira_writer.filter(|jira| !jira.is_empty());
    bootstrap::install_process_proxy(file)?;
    findings.add("settings file", report_settings_file(file));
    // With `up`, the settings may lack NATS and Redis, because `up` starts both and generates their
    // credentials.
    let one_machine = sections.nats.is_none() && sections.redis.is_none();
    if asked.ingest_only {
        findings.add("programs", DoctorFinding::Skipped(OTHER_SERVICES.to_owned()));
    } else {
        check_programs(&mut findings, one_machine);
    }
    let mut environment = settings::read_environment()?;
    if one_machine {
        environment = local::complete_settings(file, environment).await?;
    }
    check_service_settings(&mut findings, file, &environment);
    certificates::check_certificates(&mut findings, &sections, bootstrap::read_wall_clock());
    let instances = instances::load_instances(&mut findings, file);
    let book = check_rules(&mut findings, &sections.rules.dir, &instances.connections());
    let projects = list_projects(&book, &sections);
    repositories::check_folders(&mut findings, &sections.folder);
    let current = std::env::current_dir().ok();
    Box::pin(declared_setups::check_declared_setups(
        &mut findings,
        &sections,
        &instances,
        &book,
        current,
    ))
    .await;
    let is_online = !asked.offline;
    let (default_jira, authority) = (sections.jira_reader.as_ref(), &sections.ingest);
    Box::pin(requesters::check_requesters(
        &mut findings,
        None,
        default_jira,
        authority,
        is_online,
    ))
    .await;
    for (name, reader) in instances.jira_readers() {
        Box::pin(requesters::check_requesters(
            &mut findings,
            Some(name),
            Some(reader),
            authority,
            is_online,
        ))
        .await;
    }
    if is_online {
        check_connections(&mut findings, &sections).await;
        routes::check_routes(&mut findings, file, &sections, &instances).await;
        clock::check_clocks(&mut findings, &sections, &instances).await;
        accounts::check_default_accounts(&mut findings, &sections, &projects.of(None)).await;
        instances.check(&mut findings, &projects).await;
        if asked.ingest_only {
            findings.add("repositories", DoctorFinding::Skipped(OTHER_SERVICES.to_owned()));
            findings.add("model", DoctorFinding::Skipped(OTHER_SERVICES.to_owned()));
        } else {
            repositories::check_repositories(&mut findings, &sections, &instances, &book).await;
            repositories::check_github_projects(&mut findings, &sections, &instances, &book).await;
            Box::pin(check_model(&mut findings, file, &environment)).await;
            let loaded = (file, environment.as_slice());
            Box::pin(mcp_servers::check_mcp_servers(&mut findings, &book, loaded)).await;
        }
    } else {
        let asked = "NATS, Redis, clocks, accounts, repositories, the model, MCP servers and pools are not asked: --offline";
        findings.add("network", DoctorFinding::Skipped(asked.to_owned()));
    }
    if one_machine {
        let own = "`up` has an executor of its own";
        findings.add("pools", DoctorFinding::Skipped(own.to_owned()));
    } else if asked.ingest_only {
        findings.add("pools", DoctorFinding::Skipped(OTHER_SERVICES.to_owned()));
    } else if is_online {
        check_pools(&mut findings, file).await;
    }
    print_result(&format!("{} failed", findings.failed));
    Ok(derive_exit_code(findings.failed == 0))
}

fn report_settings_file(file: Option<&Path>) -> DoctorFinding {
    match file {
        Some(path) => DoctorFinding::Ok(path.display().to_string()),
        None => DoctorFinding::Skipped("there is none; variables and defaults count".to_owned()),
    }
}

fn check_programs(findings: &mut DoctorReport, one_machine: bool) {
    findings.add(
        "git",
        match git::check_git_version() {
            Ok(version) => DoctorFinding::Ok(format!("git version {version}")),
            Err(unusable) => DoctorFinding::Failed(
                format!("{unusable}: reporter and executor need it"),
                Remedy::Install,
            ),
        },
    );
    let own = if one_machine {
        check_own_programs(bootstrap::own_program)
    } else {
        DoctorFinding::Skipped("those of executor and reporter are with them".to_owned())
    };
    findings.add("own programs", own);
    findings.add("nats-server", report_server_version(servers::nats_version(None)));
    findings.add(
        "redis-server",
        report_server_version(servers::redis_version(None)),
    );
}

fn report_server_version(found: Result<impl ToString, servers::Error>) -> DoctorFinding {
    match found {
        Ok(version) => DoctorFinding::Ok(version.to_string()),
        Err(error) => DoctorFinding::Skipped(format!("only `up` and `process-ticket` need it: {error}")),
    }
}

/// Finding about the helper programs. They confine input of other people, and without them executor and
/// reporter do not start.
fn check_own_programs(find: impl Fn(&str) -> Option<PathBuf>) -> DoctorFinding {
    let missing: Vec<&str> = OWN_PROGRAMS
        .into_iter()
        .filter(|name| find(name).is_none())
        .collect();
    if missing.is_empty() {
        DoctorFinding::Ok(OWN_PROGRAMS.join(", "))
    } else {
        DoctorFinding::Failed(
            format!("missing beside this program: {}", missing.join(", ")),
            Remedy::Install,
        )
    }
}

fn check_service_settings(
    findings: &mut DoctorReport,
    file: Option<&Path>,
    environment: &[(String, String)],
) {
    findings.add(
        "ingest settings",
        check_service_config::<ingest::Config>(file, environment),
    );
    if findings.is_ingest_only {
        findings.add(
            "other settings",
            DoctorFinding::Skipped(OTHER_SERVICES.to_owned()),
        );
        return;
    }
    findings.add(
        "planner settings",
        check_service_config::<planner::Config>(file, environment),
    );
    findings.add(
        "executor settings",
        check_service_config::<executor::Config>(file, environment),
    );
    findings.add(
        "reporter settings",
        check_service_config::<reporter::Config>(file, environment),
    );
    findings.add(
        "egress settings",
        check_service_config::<egress::Config>(file, environment),
    );
}

fn check_service_config<C: ServiceConfig>(
    file: Option<&Path>,
    environment: &[(String, String)],
) -> DoctorFinding {
    let loaded = settings::load_settings::<C>(file, environment.iter().cloned());
    match loaded.and_then(|config| config.check()) {
        Ok(()) => DoctorFinding::Ok("complete".to_owned()),
        Err(error) => {
            let problem = format_error_chain(&error);
            let remedy = Remedy::of_setting(&problem);
            DoctorFinding::Failed(problem, remedy)
        }
    }
}

async fn check_connections(findings: &mut DoctorReport, sections: &DoctorSections) {
    let nats = match &sections.nats {
        Some(settings) => {
            find_within_limit(Remedy::Nats, async {
                let queue = queue::Queue::connect(settings, DOCTOR)
                    .await
                    .map_err(|error| format_error_chain(&error))?;
                queue.ping().await.map_err(|error| format_error_chain(&error))?;
                let met = queue
                    .newer_records()
                    .await
                    .map_err(|error| format_error_chain(&error))?;
                Ok(match check_newer_records(&met, bootstrap::read_wall_clock()) {
                    Ok(()) => DoctorFinding::Ok(settings.addresses()),
                    Err(problem) => DoctorFinding::Failed(problem, Remedy::OtherRelease),
                })
            })
            .await
        }
        None => DoctorFinding::Skipped("[nats] is not set; `up` starts its own".to_owned()),
    };
    findings.add("nats", nats);
    let redis = match &sections.redis {
        Some(settings) => {
            check_within_limit(Remedy::Redis, async {
                let leases = lease::TicketLeases::connect(settings)
                    .await
                    .map_err(|error| format_error_chain(&error))?;
                leases.ping().await.map_err(|error| format_error_chain(&error))?;
                Ok(settings.address())
            })
            .await
        }
        None => DoctorFinding::Skipped("[redis] is not set; `up` starts its own".to_owned()),
    };
    findings.add("redis", redis);
}

/// Error when the services recently met records of a newer release and left them unchanged.
fn check_newer_records(met: &[NewerRecord], now: Timestamp) -> Result<(), String> {
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
struct RulesProjects(Vec<(Option<InstanceName>, ProjectRequirements)>);

impl RulesProjects {
    /// Projects of one site.
    fn of(&self, instance: Option<&InstanceName>) -> Vec<ProjectRequirements> {
        let on_it = self.0.iter().filter(|(site, _)| site.as_ref() == instance);
        on_it.map(|(_, project)| project.clone()).collect()
    }
}

/// Reads the rules for all checks and adds findings about them. Unreadable rules count as none.
fn check_rules(findings: &mut DoctorReport, dir: &Path, connections: &ConfiguredInstances) -> RulesBook {
    let book = match RulesBook::read(dir, connections) {
        Ok(book) => book,
        Err(error) => {
            findings.add(
                "rules",
                DoctorFinding::Failed(
                    format!("cannot read {}: {error}", dir.display()),
                    Remedy::AddRules,
                ),
            );
            return RulesBook::default();
        }
    };
    for rules in book.repositories() {
        let path = || format!("{}/{}", rules.repo.owner, rules.repo.name);
        let name = rules
            .repository()
            .map_or_else(|_| path(), |name| name.to_string());
        findings.add(
            "rules",
            DoctorFinding::Ok(format!("{name} (Jira project {:?})", rules.jira.project_key)),
        );
    }
    for problem in book.problems() {
        findings.add("rules", DoctorFinding::Failed(problem.to_string(), Remedy::Rules));
    }
    if book.repositories().next().is_none() && book.problems().is_empty() {
        findings.add(
            "rules",
            DoctorFinding::Failed(format!("{} holds no repository", dir.display()), Remedy::AddRules),
        );
    }
    book
}

/// Returns the Jira projects that the rules name.
fn list_projects(book: &RulesBook, sections: &DoctorSections) -> RulesProjects {
    let with_project = |rules: &&RepositoryRules| !rules.jira.project_key.is_empty();
    let mut named: Vec<(Option<InstanceName>, ProjectRequirements)> = Vec::new();
    for rules in book.repositories().filter(with_project) {
        let project = ProjectRequirements {
            key: rules.jira.project_key.clone(),
            status: rules.agent.status.clone(),
            role: sections.ingest.jira_trigger_role.trim().to_owned(),
            rules: sections.rules.dir.clone(),
            repository: rules.repository().ok(),
        };
        // Repositories may share a project, which is checked once for each status.
        let is_known = |(instance, known): &(Option<InstanceName>, ProjectRequirements)| {
            *instance == rules.jira.instance && known.key == project.key && known.status == project.status
        };
        if !named.iter().any(is_known) {
            named.push((rules.jira.instance.clone(), project));
        }
    }
    RulesProjects(named)
}

/// Sends one short question to the model.
async fn check_model(findings: &mut DoctorReport, file: Option<&Path>, environment: &[(String, String)]) {
    let loaded = settings::load_settings::<planner::Config>(file, environment.iter().cloned());
    let finding = match loaded.and_then(|config| config.check().map(|()| config.model)) {
        // The check of the planner's settings reports their problems.
        Err(_) => {
            DoctorFinding::Skipped("not asked: the settings of the planner are not complete".to_owned())
        }
        Ok(model) => match tokio::time::timeout(MODEL_LIMIT, planner::try_configured_model(&model)).await {
            Ok(Ok(tried)) => DoctorFinding::Ok(format!(
                "{} at {} answers to {}",
                tried.model, tried.host, tried.credential
            )),
            Ok(Err(failure)) => {
                let remedy = if failure.is_unavailable {
                    Remedy::Network
                } else {
                    Remedy::SetUpModel
                };
                DoctorFinding::Failed(failure.to_string(), remedy)
            }
            Err(_) => DoctorFinding::Failed(
                format!("{} gave no answer within {} s", model.name, MODEL_LIMIT.as_secs()),
                Remedy::Network,
            ),
        },
    };
    findings.add("model", finding);
}

async fn check_pools(findings: &mut DoctorReport, file: Option<&Path>) {
    match settings::load_process_settings::<planner::Config>(file) {
        Err(error) => findings.add("pools", DoctorFinding::Skipped(format_error_chain(&error))),
        Ok(config) => {
            for (address, tools) in planner::inspect_pools(&config, CHECK_LIMIT).await {
                findings.add(
                    "pool",
                    match tools {
                        Ok(tools) => DoctorFinding::Ok(format!("{address}: {}", tools.join(", "))),
                        Err(problem) => DoctorFinding::Failed(format!("{address}: {problem}"), Remedy::Pools),
                    },
                );
            }
        }
    }
}

async fn check_within_limit(
    remedy: Remedy,
    check: impl Future<Output = Result<String, String>>,
) -> DoctorFinding {
    let check = Box::pin(check);
    find_within_limit(remedy, async { check.await.map(DoctorFinding::Ok) }).await
}

/// Variant of [`check_within_limit`] for a check that returns a finding.
async fn find_within_limit(
    remedy: Remedy,
    check: impl Future<Output = Result<DoctorFinding, String>>,
) -> DoctorFinding {
    match tokio::time::timeout(CHECK_LIMIT, Box::pin(check)).await {
        Ok(Ok(finding)) => finding,
        Ok(Err(problem)) => DoctorFinding::Failed(problem, remedy),
        Err(_) => {
            let late = format!("no answer within {} s", CHECK_LIMIT.as_secs());
            DoctorFinding::Failed(late, remedy.of_silence())
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::RecordKind;

    use super::*;

    #[test]
    fn programs_that_are_missing_are_named() {
        assert!(matches!(
            check_own_programs(|_| Some(PathBuf::new())),
            DoctorFinding::Ok(_)
        ));
        let some = check_own_programs(|name| (name == "launcher").then(PathBuf::new));
        let DoctorFinding::Failed(problem, Remedy::Install) = some else {
            panic!("two are missing")
        };
        assert!(
            problem.starts_with("missing beside this program: parser, inspector"),
            "{problem}"
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
        let at = |seconds: i64| check_newer_records(&records, Timestamp::from_unix_ms(seconds * 1000));
        let problem = at(200).unwrap_err();
        assert!(problem.contains("a row of jira:ENG-12 of format 2"), "{problem}");
        assert_eq!(at(761), Ok(()), "they were taken up meanwhile");
    }
}
