//! Checks of the accounts, two per service: identity, permissions, and that both differ.

use domain::{CredentialEnd, Instance, Timestamp, cause::chain};
use github::permissions as app;

use super::{Finding, Findings, Remedy, Sections, found_within};

/// Result of the check of an account, with its identity.
struct Seen {
    finding: Finding,
    identity: Option<String>,
    /// Finding about the webhook events of an App.
    events: Option<Finding>,
}

impl Seen {
    fn missing(remedy: Remedy) -> Self {
        Self {
            finding: Finding::Failed("the section is missing".to_owned(), remedy),
            identity: None,
            events: None,
        }
    }
}

/// Identity of an account and the finding about it.
struct Answer {
    identity: String,
    finding: Finding,
    events: Option<Finding>,
}

/// Jira project of the rules, with the status and role that request work.
#[derive(Clone)]
pub(super) struct Project {
    pub(super) key: String,
    pub(super) status: String,
    /// Role whose members may request work; empty: none.
    pub(super) role: String,
}

pub(super) async fn check(findings: &mut Findings, sections: &Sections, projects: &[Project]) {
    let (reader, writer) = (sections.github_reader.as_ref(), sections.github_writer.as_ref());
    if is_off(sections, reader.is_none() && writer.is_none()) {
        findings.add("GitHub", off());
    } else {
        github(findings, None, reader, writer).await;
    }
    let (reader, writer) = (sections.jira_reader.as_ref(), sections.jira_writer.as_ref());
    let has_github = sections.github_reader.is_some() && sections.github_writer.is_some();
    let is_without = reader.is_none() && writer.is_none();
    if is_off(sections, is_without) || (is_without && has_github && projects.is_empty()) {
        findings.add("Jira", off());
    } else {
        jira(findings, None, reader, writer, projects).await;
    }
}

/// True for a setup with folders only, which needs no account.
fn is_off(sections: &Sections, is_without: bool) -> bool {
    is_without && !sections.folder.is_empty()
}

fn off() -> Finding {
    Finding::Skipped("off: there is no account, and tickets are elsewhere".to_owned())
}

/// Checks both accounts of one GitHub.
pub(super) async fn github(
    findings: &mut Findings,
    instance: Option<&Instance>,
    reader: Option<&github::Settings>,
    writer: Option<&github::Settings>,
) {
    let broken = instance.map_or(Remedy::GithubApps, |_| Remedy::Instances);
    let reader = match reader {
        Some(settings) => seen(broken, github_reader(settings)).await,
        None => Seen::missing(Remedy::github(instance)),
    };
    let writer = match writer {
        Some(settings) => seen(broken, github_writer(settings)).await,
        None => Seen::missing(Remedy::github(instance)),
    };
    tell(findings, "GitHub", instance, reader, writer);
}

/// Checks both accounts of one Jira.
pub(super) async fn jira(
    findings: &mut Findings,
    instance: Option<&Instance>,
    reader: Option<&jira::Settings>,
    writer: Option<&jira::Settings>,
    projects: &[Project],
) {
    let broken = |token: Remedy| instance.map_or(token, |_| Remedy::Instances);
    for (role, token, settings) in [
        ("reader", Remedy::JiraReaderToken, reader),
        ("writer", Remedy::JiraWriterToken, writer),
    ] {
        if let Some(end) = settings.and_then(jira::Settings::ends) {
            let place = instance.map(|name| format!(" {name}")).unwrap_or_default();
            let finding = lasts(end, bootstrap::now(), broken(token));
            findings.add(&format!("jira{place} {role} token"), finding);
        }
    }
    let reader = match reader {
        Some(settings) => seen(broken(Remedy::JiraReaderToken), jira_reader(settings, projects)).await,
        None => Seen::missing(Remedy::jira(instance)),
    };
    let writer = match writer {
        Some(settings) => seen(broken(Remedy::JiraWriterToken), jira_writer(settings, projects)).await,
        None => Seen::missing(Remedy::jira(instance)),
    };
    tell(findings, "Jira", instance, reader, writer);
}

/// Finding about the expiry of a token.
fn lasts(end: Timestamp, now: Timestamp, remedy: Remedy) -> Finding {
    let day = end.to_string();
    let day = day.get(..10).unwrap_or(&day);
    if end <= now {
        return Finding::Failed(format!("it ended on {day}"), remedy);
    }
    let days = end.since(now).as_secs() / 86_400;
    let told = format!("it ends on {day}, in {days} days");
    match days < CredentialEnd::SOON_DAYS {
        true => Finding::Warn(format!("{told} {remedy}")),
        false => Finding::Ok(told),
    }
}

fn tell(findings: &mut Findings, service: &str, instance: Option<&Instance>, reader: Seen, writer: Seen) {
    let apart = match service {
        "GitHub" => Remedy::GithubApps,
        _ => Remedy::JiraAccounts,
    };
    let two = two_accounts(apart, &reader, &writer);
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

/// Runs a check of an account within the time limit.
async fn seen(remedy: Remedy, ask: impl Future<Output = Result<Answer, String>>) -> Seen {
    let (mut identity, mut events) = (None, None);
    let finding = found_within(remedy, async {
        let answer = ask.await?;
        identity = Some(answer.identity);
        events = answer.events;
        Ok(answer.finding)
    })
    .await;
    Seen {
        finding,
        identity,
        events,
    }
}

/// Finding about the difference of both accounts. With one shared account ingest could write. The
/// comparison needs both identities.
fn two_accounts(remedy: Remedy, reader: &Seen, writer: &Seen) -> Finding {
    match (&reader.identity, &writer.identity) {
        (Some(reader), Some(writer)) if reader == writer => Finding::Failed(
            format!("reader and writer are both {reader}; they must be two accounts"),
            remedy,
        ),
        (Some(reader), Some(writer)) => Finding::Ok(format!("{reader} reads, {writer} writes")),
        (None, _) | (_, None) => {
            Finding::Skipped("not both accounts answered, so they cannot be compared".to_owned())
        }
    }
}

async fn github_reader(settings: &github::Settings) -> Result<Answer, String> {
    let reader = github::Reader::new(settings).map_err(|error| chain(&error))?;
    let identity = reader.whoami().await.map_err(|error| chain(&error))?;
    let may_write = |held: &&str| held.ends_with(":write") || held.ends_with(":admin");
    let all = identity.permissions.iter().map(String::as_str);
    let forbidden: Vec<&str> = all.filter(may_write).collect();
    let finding = app_finding(&identity, &app::READER, &forbidden, Remedy::ReaderApp);
    let events = identity.is_app.then(|| reader_events(&identity.events));
    Ok(Answer {
        identity: identity.login,
        finding,
        events,
    })
}

async fn github_writer(settings: &github::Settings) -> Result<Answer, String> {
    let writer = github::Writer::new(settings).map_err(|error| chain(&error))?;
    let identity = writer.whoami().await.map_err(|error| chain(&error))?;
    // A forbidden permission that is not lacking is held.
    let lacking = app::lacking(&app::WRITER_MUST_NOT, &identity.permissions);
    let held = app::WRITER_MUST_NOT
        .iter()
        .filter(|forbidden| !lacking.contains(forbidden));
    let forbidden: Vec<&str> = held.map(|forbidden| forbidden.name).collect();
    let finding = app_finding(&identity, &app::WRITER, &forbidden, Remedy::WriterApp);
    let events = (!identity.events.is_empty()).then(|| {
        let subscribed = identity.events.join(", ");
        Finding::Warn(format!("subscribed to {subscribed}: the writer needs no webhook"))
    });
    Ok(Answer {
        identity: identity.login,
        finding,
        events,
    })
}

/// Finding about the permissions of an App. GitHub does not report the permissions of a personal
/// token, so the finding leaves them out.
fn app_finding(
    identity: &github::Identity,
    needed: &[app::Needed],
    forbidden: &[&str],
    remedy: Remedy,
) -> Finding {
    let login = &identity.login;
    if !identity.is_app {
        return Finding::Ok(format!("{login} (a token; what it may do cannot be read)"));
    }
    if !forbidden.is_empty() {
        let forbidden = forbidden.join(", ");
        return Finding::Failed(format!("{login} may change {forbidden}: take that away"), remedy);
    }
    let missing = listed(&app::lacking(needed, &identity.permissions));
    if !missing.is_empty() {
        return Finding::Failed(format!("{login} lacks {missing}"), remedy);
    }
    let held = listed(needed);
    match app::excess(needed, &identity.permissions).as_slice() {
        [] => Finding::Ok(format!("{login} with {held}")),
        excess => Finding::Warn(format!(
            "{login} with {held}, and without need {}: take that away",
            excess.join(", ")
        )),
    }
}

fn listed(permissions: &[app::Needed]) -> String {
    let names: Vec<String> = permissions.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// Finding about subscribed events. Polls find the events that the App is not subscribed to.
fn reader_events(subscribed: &[String]) -> Finding {
    let (in_vain, missing) = app::events(subscribed);
    let mut told = Vec::new();
    if !missing.is_empty() {
        told.push(format!(
            "not subscribed to {}: found by polls alone",
            missing.join(", ")
        ));
    }
    if !in_vain.is_empty() {
        told.push(format!("subscribed in vain to {}", in_vain.join(", ")));
    }
    match told.is_empty() {
        true => Finding::Ok(format!("subscribed to all {}", app::EVENTS.len())),
        false => Finding::Warn(format!("{}; see docs/permissions.md", told.join("; "))),
    }
}

/// Findings about a Jira account in the projects.
#[derive(Default)]
struct Told {
    problems: Vec<String>,
    /// Problems of the rules.
    of_rules: Vec<String>,
    excess: Vec<String>,
}

/// Account with these credentials. If the request fails, the site may be the other kind of Jira, so
/// the error names the detected one.
async fn of_this_jira(
    settings: &jira::Settings,
    found: Result<domain::Account, jira::Error>,
) -> Result<domain::Account, String> {
    let error = match found {
        Ok(account) => return Ok(account),
        Err(error) => chain(&error),
    };
    match jira::hook::site(settings).await {
        Ok(site) if site.dialect != settings.deployment => Err(format!(
            "{error}; {} is a {site}: set deployment = \"{}\"",
            settings.base_url,
            site.dialect.as_str()
        )),
        Ok(_) | Err(_) => Err(error),
    }
}

async fn jira_reader(settings: &jira::Settings, projects: &[Project]) -> Result<Answer, String> {
    let reader = jira::Reader::new(settings).map_err(|error| chain(&error))?;
    let account = of_this_jira(settings, reader.myself().await).await?;
    let mut told = Told::default();
    for Project { key, status, role } in projects {
        told.problems.extend(role_problem(&reader, key, role).await);
        told.add(key, reader.permissions(key).await);
        let statuses = reader.project_statuses(key).await.unwrap_or_default();
        // Jira compares status names case-insensitively.
        let is_known = statuses.iter().any(|known| known.eq_ignore_ascii_case(status));
        // An unreadable project has its finding from the permission check above.
        if !statuses.is_empty() && !is_known {
            let known: Vec<&str> = statuses.iter().map(String::as_str).collect();
            told.of_rules.push(format!(
                "{key} has no status {status:?} (agent.status in the rules); it has {}",
                known.join(", ")
            ));
        }
    }
    Ok(jira_answer(account, projects, &told))
}

/// Problem with the role. With an unreadable role no user may request work.
async fn role_problem(reader: &jira::Reader, project: &str, role: &str) -> Option<String> {
    if role.is_empty() {
        return None;
    }
    match reader.role(project, role).await {
        Ok(Some(_)) => None,
        Ok(None) => Some(format!(
            "{project} has no role {role:?} (ingest.jira_trigger_role)"
        )),
        Err(error) => Some(format!(
            "who has the role {role:?} in {project} cannot be read: {}",
            chain(&error)
        )),
    }
}

async fn jira_writer(settings: &jira::Settings, projects: &[Project]) -> Result<Answer, String> {
    let writer = jira::Writer::new(settings).map_err(|error| chain(&error))?;
    let account = of_this_jira(settings, writer.myself().await).await?;
    let mut told = Told::default();
    for Project { key, .. } in projects {
        told.add(key, writer.permissions(key).await);
    }
    Ok(jira_answer(account, projects, &told))
}

impl Told {
    fn add(&mut self, project: &str, compared: Result<jira::permissions::Compared, jira::Error>) {
        let titles = |list: &[jira::permissions::Needed]| {
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
            Err(jira::Error::NotFound { .. }) => self.of_rules.push(format!(
                "Jira has no project {project} (jira.project_key in the rules), or this account cannot see it"
            )),
            Err(error) => self.problems.push(format!("{project}: {}", chain(&error))),
        }
    }
}

fn jira_answer(account: domain::Account, projects: &[Project], told: &Told) -> Answer {
    let name = account.display_name;
    let keys: Vec<&str> = projects.iter().map(|project| project.key.as_str()).collect();
    let with_all = format!("{name} with every permission in {}", keys.join(", "));
    let all: Vec<&str> = told
        .problems
        .iter()
        .chain(&told.of_rules)
        .map(String::as_str)
        .collect();
    let finding = if !all.is_empty() {
        let remedy = match told.problems.is_empty() {
            true => Remedy::Rules,
            false => Remedy::JiraAccounts,
        };
        Finding::Failed(format!("{name}: {}", all.join("; ")), remedy)
    } else if projects.is_empty() {
        Finding::Ok(format!(
            "{name} (the rules name no project, so no permission was checked)"
        ))
    } else if told.excess.is_empty() {
        Finding::Ok(with_all)
    } else {
        let excess = told.excess.join("; ");
        Finding::Warn(format!("{with_all}, and without need {excess}"))
    };
    Answer {
        identity: account.id,
        finding,
        events: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_expiry_changes_finding_over_time() {
        let end = Timestamp::parse("2027-01-31T00:00:00Z").unwrap();
        let at = |text: &str| lasts(end, Timestamp::parse(text).unwrap(), Remedy::JiraReaderToken);
        let Finding::Ok(well) = at("2026-11-25T12:00:00Z") else {
            panic!("it is well")
        };
        assert_eq!(well, "it ends on 2027-01-31, in 66 days");
        let Finding::Warn(soon) = at("2027-01-20T12:00:00Z") else {
            panic!("it ends soon")
        };
        assert_eq!(
            soon,
            "it ends on 2027-01-31, in 10 days -> `journeyman setup jira --reader-email EMAIL`"
        );
        let Finding::Failed(over, _) = at("2027-01-31T00:00:00Z") else {
            panic!("it has ended")
        };
        assert_eq!(over, "it ended on 2027-01-31");
    }
}
