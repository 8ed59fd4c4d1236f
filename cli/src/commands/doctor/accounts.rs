//! The accounts, two of each service: who they are, what they may do, and that no two are one.

use domain::{Instance, cause::chain};
use github::permissions as app;

use super::{Finding, Findings, Sections, within};

/// Whether an account answered, and as whom.
struct Seen {
    finding: Finding,
    identity: Option<String>,
}

impl Seen {
    fn missing() -> Self {
        Self {
            finding: Finding::Failed("the section is missing".to_owned()),
            identity: None,
        }
    }
}

/// An answer that an account gave: who it is, and what to say about it.
struct Answer {
    identity: String,
    verdict: Result<String, String>,
}

/// A Jira project that the rules name, and the status that asks for work there.
#[derive(Clone)]
pub(super) struct Project {
    pub(super) key: String,
    pub(super) status: String,
}

pub(super) async fn check(findings: &mut Findings, sections: &Sections, projects: &[Project]) {
    let (reader, writer) = (sections.github_reader.as_ref(), sections.github_writer.as_ref());
    if is_off(sections, reader.is_none() && writer.is_none()) {
        findings.add("GitHub", off());
    } else {
        github(findings, None, reader, writer).await;
    }
    let (reader, writer) = (sections.jira_reader.as_ref(), sections.jira_writer.as_ref());
    if is_off(sections, reader.is_none() && writer.is_none()) {
        findings.add("Jira", off());
    } else {
        jira(findings, None, reader, writer, projects).await;
    }
}

/// Who works on folders alone needs no account.
fn is_off(sections: &Sections, is_without: bool) -> bool {
    is_without && !sections.folder.is_empty()
}

fn off() -> Finding {
    Finding::Skipped("off: there is no account, and there are folders".to_owned())
}

/// The two accounts of one GitHub.
pub(super) async fn github(
    findings: &mut Findings,
    instance: Option<&Instance>,
    reader: Option<&github::Settings>,
    writer: Option<&github::Settings>,
) {
    let reader = match reader {
        Some(settings) => seen(github_reader(settings)).await,
        None => Seen::missing(),
    };
    let writer = match writer {
        Some(settings) => seen(github_writer(settings)).await,
        None => Seen::missing(),
    };
    tell(findings, "GitHub", instance, reader, writer);
}

/// The two accounts of one Jira.
pub(super) async fn jira(
    findings: &mut Findings,
    instance: Option<&Instance>,
    reader: Option<&jira::Settings>,
    writer: Option<&jira::Settings>,
    projects: &[Project],
) {
    let reader = match reader {
        Some(settings) => seen(jira_reader(settings, projects)).await,
        None => Seen::missing(),
    };
    let writer = match writer {
        Some(settings) => seen(jira_writer(settings, projects)).await,
        None => Seen::missing(),
    };
    tell(findings, "Jira", instance, reader, writer);
}

fn tell(findings: &mut Findings, service: &str, instance: Option<&Instance>, reader: Seen, writer: Seen) {
    let two = two_accounts(&reader, &writer);
    let place = instance.map(|name| format!(" {name}")).unwrap_or_default();
    let key = service.to_lowercase();
    findings.add(&format!("{key}{place} reader"), reader.finding);
    findings.add(&format!("{key}{place} writer"), writer.finding);
    findings.add(&format!("two {service} accounts{place}"), two);
}

/// Within the time of one check.
async fn seen(ask: impl Future<Output = Result<Answer, String>>) -> Seen {
    let mut identity = None;
    let finding = within(async {
        let answer = ask.await?;
        identity = Some(answer.identity);
        answer.verdict
    })
    .await;
    Seen { finding, identity }
}

/// One shared account would let ingest write. Only two accounts that both answered can be told apart.
fn two_accounts(reader: &Seen, writer: &Seen) -> Finding {
    match (&reader.identity, &writer.identity) {
        (Some(reader), Some(writer)) if reader == writer => Finding::Failed(format!(
            "reader and writer are both {reader}; they must be two accounts"
        )),
        (Some(reader), Some(writer)) => Finding::Ok(format!("{reader} reads, {writer} writes")),
        (None, _) | (_, None) => {
            Finding::Skipped("not both accounts answered, so they cannot be compared".to_owned())
        }
    }
}

async fn github_reader(settings: &github::Settings) -> Result<Answer, String> {
    let reader = github::Reader::new(settings).map_err(|error| chain(&error))?;
    let identity = reader.whoami().await.map_err(|error| chain(&error))?;
    let may_write = |held: &&String| held.ends_with(":write") || held.ends_with(":admin");
    let excess: Vec<&str> = identity
        .permissions
        .iter()
        .filter(may_write)
        .map(String::as_str)
        .collect();
    let verdict = app_verdict(&identity, &app::READER, &excess);
    Ok(Answer {
        identity: identity.login,
        verdict,
    })
}

async fn github_writer(settings: &github::Settings) -> Result<Answer, String> {
    let writer = github::Writer::new(settings).map_err(|error| chain(&error))?;
    let identity = writer.whoami().await.map_err(|error| chain(&error))?;
    let lacking = app::lacking(&app::WRITER_MUST_NOT, &identity.permissions);
    let held = app::WRITER_MUST_NOT
        .iter()
        .filter(|forbidden| !lacking.contains(forbidden));
    let excess: Vec<&str> = held.map(|forbidden| forbidden.name).collect();
    let verdict = app_verdict(&identity, &app::WRITER, &excess);
    Ok(Answer {
        identity: identity.login,
        verdict,
    })
}

/// A token does not tell what it may do, so nothing is said about that.
fn app_verdict(
    identity: &github::Identity,
    needed: &[app::Needed],
    excess: &[&str],
) -> Result<String, String> {
    let login = &identity.login;
    if !identity.is_app {
        return Ok(format!("{login} (a token; what it may do cannot be read)"));
    }
    let missing: Vec<String> = app::lacking(needed, &identity.permissions)
        .iter()
        .map(ToString::to_string)
        .collect();
    if !excess.is_empty() {
        Err(format!(
            "{login} may change {}: take that away",
            excess.join(", ")
        ))
    } else if missing.is_empty() {
        let held: Vec<String> = needed.iter().map(ToString::to_string).collect();
        Ok(format!("{login} with {}", held.join(", ")))
    } else {
        Err(format!(
            "{login} lacks {}; see docs/permissions.md",
            missing.join(", ")
        ))
    }
}

async fn jira_reader(settings: &jira::Settings, projects: &[Project]) -> Result<Answer, String> {
    let reader = jira::Reader::new(settings).map_err(|error| chain(&error))?;
    let account = reader.myself().await.map_err(|error| chain(&error))?;
    let mut problems = Vec::new();
    for Project { key, status } in projects {
        problems.extend(project_problem(key, reader.lacking(key).await));
        let statuses = reader.project_statuses(key).await.unwrap_or_default();
        let is_known = statuses.iter().any(|known| known.eq_ignore_ascii_case(status));
        // A project that cannot be read is told above.
        if !statuses.is_empty() && !is_known {
            problems.push(format!(
                "{key} has no status {status:?} (agent.status in the rules)"
            ));
        }
    }
    Ok(jira_answer(account, projects, &problems))
}

async fn jira_writer(settings: &jira::Settings, projects: &[Project]) -> Result<Answer, String> {
    let writer = jira::Writer::new(settings).map_err(|error| chain(&error))?;
    let account = writer.myself().await.map_err(|error| chain(&error))?;
    let mut problems = Vec::new();
    for Project { key: project, .. } in projects {
        problems.extend(project_problem(project, writer.lacking(project).await));
    }
    Ok(jira_answer(account, projects, &problems))
}

fn project_problem(
    project: &str,
    lacking: Result<Vec<jira::permissions::Needed>, jira::Error>,
) -> Option<String> {
    match lacking {
        Ok(lacking) if lacking.is_empty() => None,
        Ok(lacking) => {
            let titles: Vec<&str> = lacking.iter().map(|needed| needed.title).collect();
            Some(format!("lacks {} in {project}", titles.join(", ")))
        }
        Err(error) => Some(format!("{project}: {}", chain(&error))),
    }
}

fn jira_answer(account: domain::Account, projects: &[Project], problems: &[String]) -> Answer {
    let name = account.display_name;
    let verdict = if !problems.is_empty() {
        Err(format!(
            "{name}: {}; see docs/permissions.md",
            problems.join("; ")
        ))
    } else if projects.is_empty() {
        Ok(format!(
            "{name} (the rules name no project, so no permission was checked)"
        ))
    } else {
        let keys: Vec<&str> = projects.iter().map(|project| project.key.as_str()).collect();
        Ok(format!("{name} with every permission in {}", keys.join(", ")))
    };
    Answer {
        identity: account.id,
        verdict,
    }
}
