//! Checks of the accounts, two per service: identity, permissions, and that both differ.

use domain::{CredentialEnd, InstanceName, Timestamp, cause::format_error_chain};
use github::permissions as app;

use super::{
    CHECK_LIMIT, DoctorFinding, DoctorReport, DoctorSections, OTHER_SERVICES, Remedy,
    projects::{ProjectRequirements, describe_missing_role},
};

/// Result of the check of an account, with its identity.
struct AccountCheck {
    finding: DoctorFinding,
    identity: Option<String>,
    /// Finding about the webhook events of an App.
    events: Option<DoctorFinding>,
}

impl AccountCheck {
    fn missing(remedy: Remedy) -> Self {
        Self {
            finding: DoctorFinding::Failed("the section is missing".to_owned(), remedy),
            identity: None,
            events: None,
        }
    }

    /// Account whose secret another service has.
    fn of_other_service() -> Self {
        Self {
            finding: DoctorFinding::Skipped(OTHER_SERVICES.to_owned()),
            identity: None,
            events: None,
        }
    }
}

/// Identity of an account and the finding about it.
struct AccountAnswer {
    identity: String,
    finding: DoctorFinding,
    events: Option<DoctorFinding>,
}

/// Failure of an account's check.
pub(super) enum AccountFailure {
    /// The server was not reached or failed itself, so that the credentials may be right.
    Unreachable(String),
    /// The server refused the account or the request.
    Refused(String),
}

impl AccountFailure {
    pub(super) fn of_github(settings: &github::Settings, error: &github::Error) -> Self {
        use github::Error;
        // For an unknown id GitHub answers that the App is not found.
        if !matches!(error, Error::Unauthorized { .. } | Error::NotFound { .. }) {
            return Self::of_github_object(settings, error);
        }
        let problem = format_error_chain(error);
        Self::Refused(match settings.app_id {
            Some(id) => format!("the App with the id {id} at {}: {problem}", settings.api_url),
            None => format!("the token at {}: {problem}", settings.api_url),
        })
    }

    /// Failure of a request for an object of GitHub, whose absence says nothing about the account.
    pub(super) fn of_github_object(settings: &github::Settings, error: &github::Error) -> Self {
        use github::Error;
        let problem = format_error_chain(error);
        match error {
            Error::Unavailable { .. } | Error::Unknown { .. } => {
                Self::Unreachable(format!("{}: {problem}", settings.api_url))
            }
            Error::Unauthorized { .. }
            | Error::NotFound { .. }
            | Error::Forbidden { .. }
            | Error::Locked { .. }
            | Error::Archived { .. }
            | Error::Transferred(_)
            | Error::Deleted { .. }
            | Error::UnknownInstance { .. }
            | Error::Moved { .. }
            | Error::Conflict { .. }
            | Error::Rejected { .. }
            | Error::RateLimited { .. }
            | Error::HeldBack { .. }
            | Error::Malformed { .. } => Self::Refused(problem),
        }
    }

    /// Finding with the remedy for the account, or for the network.
    pub(super) fn into_finding(self, remedy: Remedy) -> DoctorFinding {
        match self {
            Self::Unreachable(problem) => DoctorFinding::Failed(problem, Remedy::Network),
            Self::Refused(problem) => DoctorFinding::Failed(problem, remedy),
        }
    }

    fn of_jira(settings: &jira::Settings, error: &jira::Error) -> Self {
        use jira::Error;
        let problem = format_error_chain(error);
        match error {
            Error::Unavailable { .. } | Error::Unknown { .. } => {
                Self::Unreachable(format!("{}: {problem}", settings.base_url))
            }
            Error::Unauthorized { .. } => {
                // A personal access token of a Data Center has no address.
                let name = Some(settings.email.as_str()).filter(|email| !email.is_empty());
                let name = name.unwrap_or("the token");
                Self::Refused(format!("{name} at {}: {problem}", settings.base_url))
            }
            Error::NotFound { .. }
            | Error::Forbidden { .. }
            | Error::Conflict { .. }
            | Error::Rejected { .. }
            | Error::RateLimited { .. }
            | Error::HeldBack { .. }
            | Error::UnknownInstance { .. }
            | Error::TooDeep { .. }
            | Error::Malformed { .. } => Self::Refused(problem),
        }
    }
}

pub(super) async fn check_default_accounts(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    projects: &[ProjectRequirements],
) {
    let (reader, writer) = (sections.github_reader.as_ref(), sections.github_writer.as_ref());
    if is_off(sections, reader.is_none() && writer.is_none()) {
        findings.add("GitHub", report_disabled_service());
    } else {
        check_github_accounts(findings, None, reader, writer).await;
    }
    let (reader, writer) = (sections.jira_reader.as_ref(), sections.jira_writer.as_ref());
    let has_github = sections.github_reader.is_some() && sections.github_writer.is_some();
    let is_without = reader.is_none() && writer.is_none();
    if is_off(sections, is_without) || (is_without && has_github && projects.is_empty()) {
        findings.add("Jira", report_disabled_service());
    } else {
        check_jira_accounts(findings, None, reader, writer, projects).await;
    }
}

/// True for a setup with folders only, which needs no account.
fn is_off(sections: &DoctorSections, is_without: bool) -> bool {
    is_without && !sections.folder.is_empty()
}

fn report_disabled_service() -> DoctorFinding {
    DoctorFinding::Skipped("off: there is no account, and tickets are elsewhere".to_owned())
}

/// Checks both accounts of one GitHub.
pub(super) async fn check_github_accounts(
    findings: &mut DoctorReport,
    instance: Option<&InstanceName>,
    reader: Option<&github::Settings>,
    writer: Option<&github::Settings>,
) {
    let broken = instance.map_or(Remedy::GithubApps, |_| Remedy::Instances);
    let reader = match reader {
        Some(settings) => check_account(broken, &settings.api_url, check_github_reader(settings)).await,
        None => AccountCheck::missing(Remedy::github(instance)),
    };
    let writer = match writer {
        _ if findings.is_ingest_only => AccountCheck::of_other_service(),
        Some(settings) => check_account(broken, &settings.api_url, check_github_writer(settings)).await,
        None => AccountCheck::missing(Remedy::github(instance)),
    };
    add_account_findings(findings, "GitHub", instance, reader, writer);
}

/// Checks both accounts of one Jira.
pub(super) async fn check_jira_accounts(
    findings: &mut DoctorReport,
    instance: Option<&InstanceName>,
    reader: Option<&jira::Settings>,
    writer: Option<&jira::Settings>,
    projects: &[ProjectRequirements],
) {
    let broken = |token: Remedy| instance.map_or(token, |_| Remedy::Instances);
    for (role, token, settings) in [
        ("reader", Remedy::JiraReaderToken, reader),
        ("writer", Remedy::JiraWriterToken, writer),
    ] {
        if let Some(end) = settings.and_then(jira::Settings::ends) {
            let place = instance.map(|name| format!(" {name}")).unwrap_or_default();
            let finding = judge_token_expiry(end, bootstrap::read_wall_clock(), broken(token));
            findings.add(&format!("jira{place} {role} token"), finding);
        }
    }
    let reader = match reader {
        Some(settings) => {
            check_account(
                broken(Remedy::JiraReaderToken),
                &settings.base_url,
                check_jira_reader(settings, projects),
            )
            .await
        }
        None => AccountCheck::missing(Remedy::jira(instance)),
    };
    let writer = match writer {
        _ if findings.is_ingest_only => AccountCheck::of_other_service(),
        Some(settings) => {
            check_account(
                broken(Remedy::JiraWriterToken),
                &settings.base_url,
                check_jira_writer(settings, projects),
            )
            .await
        }
        None => AccountCheck::missing(Remedy::jira(instance)),
    };
    add_account_findings(findings, "Jira", instance, reader, writer);
}

/// Finding about the expiry of a token.
fn judge_token_expiry(end: Timestamp, now: Timestamp, remedy: Remedy) -> DoctorFinding {
    let day = end.to_string();
    let day = day.get(..10).unwrap_or(&day);
    if end <= now {
        return DoctorFinding::Failed(format!("it ended on {day}"), remedy);
    }
    let days = end.since(now).as_secs() / 86_400;
    let detail = format!("it ends on {day}, in {days} days");
    if days < CredentialEnd::SOON_DAYS {
        DoctorFinding::Warn(format!("{detail} {remedy}"))
    } else {
        DoctorFinding::Ok(detail)
    }
}

fn add_account_findings(
    findings: &mut DoctorReport,
    service: &str,
    instance: Option<&InstanceName>,
    reader: AccountCheck,
    writer: AccountCheck,
) {
    let apart = match service {
        "GitHub" => Remedy::GithubApps,
        _ => Remedy::JiraAccounts,
    };
    let two = compare_accounts(apart, &reader, &writer);
    let place = instance.map(|name| format!(" {name}")).unwrap_or_default();
    let key = service.to_lowercase();
    for (role, seen) in [("reader", reader), ("writer", writer)] {
        findings.add(&format!("{key}{place} {role}"), seen.finding);
        if let Some(events) = seen.events {
            findings.add(&format!("{key}{place} {role} events"), events);
        }
    }
    findings.add(&format!("two {service} accounts{place}"), two);
}

/// Runs a check of an account at this address within the time limit.
async fn check_account(
    remedy: Remedy,
    address: &str,
    ask: impl Future<Output = Result<AccountAnswer, AccountFailure>>,
) -> AccountCheck {
    let finding = match tokio::time::timeout(CHECK_LIMIT, Box::pin(ask)).await {
        Ok(Ok(answer)) => {
            return AccountCheck {
                finding: answer.finding,
                identity: Some(answer.identity),
                events: answer.events,
            };
        }
        Ok(Err(failure)) => failure.into_finding(remedy),
        Err(_) => {
            let late = format!("{address}: no answer within {} s", CHECK_LIMIT.as_secs());
            DoctorFinding::Failed(late, Remedy::Network)
        }
    };
    AccountCheck {
        finding,
        identity: None,
        events: None,
    }
}

/// Finding about the difference of both accounts. With one shared account ingest could write. The
/// comparison needs both identities.
fn compare_accounts(remedy: Remedy, reader: &AccountCheck, writer: &AccountCheck) -> DoctorFinding {
    match (&reader.identity, &writer.identity) {
        (Some(reader), Some(writer)) if reader == writer => DoctorFinding::Failed(
            format!("reader and writer are both {reader}; they must be two accounts"),
            remedy,
        ),
        (Some(reader), Some(writer)) => DoctorFinding::Ok(format!("{reader} reads, {writer} writes")),
        (None, _) | (_, None) => {
            DoctorFinding::Skipped("not both accounts answered, so they cannot be compared".to_owned())
        }
    }
}

async fn check_github_reader(settings: &github::Settings) -> Result<AccountAnswer, AccountFailure> {
    let failed = |error| AccountFailure::of_github(settings, &error);
    let reader = github::GitHubReader::new(settings).map_err(failed)?;
    let identity = reader.whoami().await.map_err(failed)?;
    let may_write = |held: &&str| held.ends_with(":write") || held.ends_with(":admin");
    let all = identity.permissions.iter().map(String::as_str);
    let forbidden: Vec<&str> = all.filter(may_write).collect();
    let finding = judge_app_permissions(&identity, &app::READER, &forbidden, Remedy::ReaderApp);
    let events = identity.is_app.then(|| judge_app_events(&identity.events));
    Ok(AccountAnswer {
        identity: identity.login,
        finding,
        events,
    })
}

async fn check_github_writer(settings: &github::Settings) -> Result<AccountAnswer, AccountFailure> {
    let failed = |error| AccountFailure::of_github(settings, &error);
    let writer = github::GitHubWriter::new(settings).map_err(failed)?;
    let identity = writer.whoami().await.map_err(failed)?;
    // A forbidden permission that is not lacking is held.
    let lacking = app::find_missing_permissions(&app::WRITER_MUST_NOT, &identity.permissions);
    let held = app::WRITER_MUST_NOT
        .iter()
        .filter(|forbidden| !lacking.contains(forbidden));
    let forbidden: Vec<&str> = held.map(|forbidden| forbidden.name).collect();
    let finding = judge_app_permissions(&identity, &app::WRITER, &forbidden, Remedy::WriterApp);
    let events = (!identity.events.is_empty()).then(|| {
        let subscribed = identity.events.join(", ");
        DoctorFinding::Warn(format!("subscribed to {subscribed}: the writer needs no webhook"))
    });
    Ok(AccountAnswer {
        identity: identity.login,
        finding,
        events,
    })
}

/// Finding about the permissions of an App. GitHub does not report the permissions of a personal
/// token, so the finding leaves them out.
fn judge_app_permissions(
    identity: &github::AccountIdentity,
    needed: &[app::RequiredAppPermission],
    forbidden: &[&str],
    remedy: Remedy,
) -> DoctorFinding {
    let login = &identity.login;
    if !identity.is_app {
        return DoctorFinding::Ok(format!("{login} (a token; what it may do cannot be read)"));
    }
    if !forbidden.is_empty() {
        let forbidden = forbidden.join(", ");
        return DoctorFinding::Failed(format!("{login} may change {forbidden}: take that away"), remedy);
    }
    let missing = join_permissions(&app::find_missing_permissions(needed, &identity.permissions));
    if !missing.is_empty() {
        return DoctorFinding::Failed(format!("{login} lacks {missing}"), remedy);
    }
    let held = join_permissions(needed);
    match app::find_excess_permissions(needed, &identity.permissions).as_slice() {
        [] => DoctorFinding::Ok(format!("{login} with {held}")),
        excess => DoctorFinding::Warn(format!(
            "{login} with {held}, and without need {}: take that away",
            excess.join(", ")
        )),
    }
}

fn join_permissions(permissions: &[app::RequiredAppPermission]) -> String {
    let names: Vec<String> = permissions.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// Finding about subscribed events. Polls find the events that the App is not subscribed to.
fn judge_app_events(subscribed: &[String]) -> DoctorFinding {
    let (in_vain, missing) = app::compare_events(subscribed);
    let mut problems = Vec::new();
    if !missing.is_empty() {
        problems.push(format!(
            "not subscribed to {}: found by polls alone",
            missing.join(", ")
        ));
    }
    if !in_vain.is_empty() {
        problems.push(format!("subscribed in vain to {}", in_vain.join(", ")));
    }
    if problems.is_empty() {
        DoctorFinding::Ok(format!("subscribed to all {}", app::EVENTS.len()))
    } else {
        DoctorFinding::Warn(format!("{} {}", problems.join("; "), Remedy::ReaderApp))
    }
}

/// Findings about a Jira account in the projects.
#[derive(Default)]
struct ProjectFindings {
    problems: Vec<String>,
    /// Problems of the rules.
    of_rules: Vec<String>,
    excess: Vec<String>,
}

/// Account with these credentials. If the request fails, the site may be the other kind of Jira, so
/// the error names the detected one.
async fn detect_jira_account(
    settings: &jira::Settings,
    found: Result<domain::TrackerAccount, jira::Error>,
) -> Result<domain::TrackerAccount, AccountFailure> {
    let error = match found {
        Ok(account) => return Ok(account),
        Err(error) => error,
    };
    Err(match jira::hook::fetch_site(settings).await {
        Ok(site) if site.dialect != settings.deployment => AccountFailure::Refused(format!(
            "{}; {} is a {site}: set deployment = \"{}\"",
            format_error_chain(&error),
            settings.base_url,
            site.dialect.as_str()
        )),
        Ok(_) | Err(_) => AccountFailure::of_jira(settings, &error),
    })
}

async fn check_jira_reader(
    settings: &jira::Settings,
    projects: &[ProjectRequirements],
) -> Result<AccountAnswer, AccountFailure> {
    let reader =
        jira::JiraReader::new(settings).map_err(|error| AccountFailure::of_jira(settings, &error))?;
    let account = detect_jira_account(settings, reader.myself().await).await?;
    let mut found = ProjectFindings::default();
    for project in projects {
        let ProjectRequirements {
            key, status, role, ..
        } = project;
        found.problems.extend(find_role_problem(&reader, key, role).await);
        match reader.permissions(key).await {
            Err(jira::Error::NotFound { .. }) => {
                let listed = reader.projects().await;
                found.of_rules.push(project.describe_missing(listed));
            }
            compared => found.add(key, compared),
        }
        let statuses = reader.project_statuses(key).await.unwrap_or_default();
        // Jira compares status names case-insensitively.
        let wanted = status.to_lowercase();
        let is_known = statuses.iter().any(|known| known.to_lowercase() == wanted);
        // An unreadable project has its finding from the permission check above.
        if !statuses.is_empty() && !is_known {
            let statuses: Vec<String> = statuses.into_iter().collect();
            found.of_rules.push(project.describe_missing_status(&statuses));
        }
    }
    Ok(summarize_jira_account(account, projects, &found))
}

/// Problem with the role. With an unreadable role no user may request work.
async fn find_role_problem(reader: &jira::JiraReader, project: &str, role: &str) -> Option<String> {
    if role.is_empty() {
        return None;
    }
    match reader.role(project, role).await {
        Ok(Some(_)) => None,
        Ok(None) => {
            let listed = reader.role_names(project).await;
            Some(describe_missing_role(project, role, listed))
        }
        Err(error) => Some(format!(
            "who has the role {role:?} in {project} cannot be read: {}",
            format_error_chain(&error)
        )),
    }
}

async fn check_jira_writer(
    settings: &jira::Settings,
    projects: &[ProjectRequirements],
) -> Result<AccountAnswer, AccountFailure> {
    let writer =
        jira::JiraWriter::new(settings).map_err(|error| AccountFailure::of_jira(settings, &error))?;
    let account = detect_jira_account(settings, writer.myself().await).await?;
    let mut found = ProjectFindings::default();
    for project in projects {
        match writer.permissions(&project.key).await {
            Err(jira::Error::NotFound { .. }) => {
                let listed = writer.projects().await;
                found.of_rules.push(project.describe_missing(listed));
            }
            compared => found.add(&project.key, compared),
        }
    }
    Ok(summarize_jira_account(account, projects, &found))
}

impl ProjectFindings {
    fn add(&mut self, project: &str, compared: Result<jira::permissions::PermissionComparison, jira::Error>) {
        let titles = |list: &[jira::permissions::RequiredJiraPermission]| {
            let titles: Vec<&str> = list.iter().map(|permission| permission.title).collect();
            titles.join(", ")
        };
        match compared {
            Ok(found) => {
                if !found.lacking.is_empty() {
                    let lacking = titles(&found.lacking);
                    self.problems.push(format!("lacks {lacking} in {project}"));
                }
                if !found.excess.is_empty() {
                    let excess = titles(&found.excess);
                    self.excess.push(format!("{excess} in {project}"));
                }
            }
            Err(error) => self
                .problems
                .push(format!("{project}: {}", format_error_chain(&error))),
        }
    }
}

fn summarize_jira_account(
    account: domain::TrackerAccount,
    projects: &[ProjectRequirements],
    found: &ProjectFindings,
) -> AccountAnswer {
    let name = account.display_name;
    let keys: Vec<&str> = projects.iter().map(|project| project.key.as_str()).collect();
    let with_all = format!("{name} with every permission in {}", keys.join(", "));
    let all: Vec<&str> = found
        .problems
        .iter()
        .chain(&found.of_rules)
        .map(String::as_str)
        .collect();
    let finding = if !all.is_empty() {
        let remedy = if found.problems.is_empty() {
            Remedy::Rules
        } else {
            Remedy::JiraAccounts
        };
        DoctorFinding::Failed(format!("{name}: {}", all.join("; ")), remedy)
    } else if projects.is_empty() {
        DoctorFinding::Ok(format!(
            "{name} (the rules name no project, so no permission was checked)"
        ))
    } else if found.excess.is_empty() {
        DoctorFinding::Ok(with_all)
    } else {
        let excess = found.excess.join("; ");
        DoctorFinding::Warn(format!("{with_all}, and without need {excess}"))
    };
    AccountAnswer {
        identity: account.id,
        finding,
        events: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_server_is_no_problem_of_account() {
        let remedy = |failure: AccountFailure| match failure.into_finding(Remedy::GithubProjects) {
            DoctorFinding::Failed(_, remedy) => Some(remedy),
            DoctorFinding::Ok(_) | DoctorFinding::Warn(_) | DoctorFinding::Skipped(_) => None,
        };
        let unreachable = AccountFailure::Unreachable("no route".to_owned());
        assert_eq!(remedy(unreachable), Some(Remedy::Network));
        let refused = AccountFailure::Refused("forbidden".to_owned());
        assert_eq!(remedy(refused), Some(Remedy::GithubProjects));
    }

    #[test]
    fn token_expiry_changes_finding_over_time() {
        let end = Timestamp::parse("2027-01-31T00:00:00Z").unwrap();
        let at =
            |text: &str| judge_token_expiry(end, Timestamp::parse(text).unwrap(), Remedy::JiraReaderToken);
        let DoctorFinding::Ok(well) = at("2026-11-25T12:00:00Z") else {
            panic!("it is well")
        };
        assert_eq!(well, "it ends on 2027-01-31, in 66 days");
        let DoctorFinding::Warn(soon) = at("2027-01-20T12:00:00Z") else {
            panic!("it ends soon")
        };
        assert_eq!(
            soon,
            "it ends on 2027-01-31, in 10 days -> `journeyman setup jira --reader-email EMAIL`"
        );
        let DoctorFinding::Failed(over, _) = at("2027-01-31T00:00:00Z") else {
            panic!("it has ended")
        };
        assert_eq!(over, "it ended on 2027-01-31");
    }
}
