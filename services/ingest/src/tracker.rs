//! Whether Jira knows what the rules name.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use domain::{Instance, JiraRules, Rules, cause::chain};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::outside::{Outside, ReadError};

/// How long an answer of Jira's counts.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How long somebody waits for the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The statuses of a project; absent when Jira knows no such project or shows us none.
type Statuses = Option<BTreeSet<String>>;

/// A site and the key of a project there.
type Project = (Option<Instance>, String);

/// What Jira said of projects.
#[derive(Default)]
pub(crate) struct Tracker {
    known: Mutex<HashMap<Project, (Instant, Statuses)>>,
}

impl Tracker {
    /// What is wrong with the project or the status of a repository's rules; absent as well while Jira does not answer.
    pub(crate) async fn problem(&self, outside: &Outside, rules: &Rules) -> Option<String> {
        let (project, status) = (&rules.jira.project_key, &rules.agent.status);
        if project.is_empty() {
            return None;
        }
        let Some(statuses) = self.statuses(outside, &rules.jira).await? else {
            let instance = rules.jira.instance.as_ref();
            let section = instance.map_or("jira_reader".to_owned(), |name| format!("jira.{name}"));
            return Some(format!(
                "Jira knows no project {project}, or the account of [{section}] may not see it"
            ));
        };
        let is_known = statuses.iter().any(|known| known.eq_ignore_ascii_case(status));
        (!is_known).then(|| format!("the project {project} has no status {status:?} (agent.status)"))
    }

    async fn statuses(&self, outside: &Outside, project: &JiraRules) -> Option<Statuses> {
        let key = (project.instance.clone(), project.project_key.clone());
        let mut known = self.known.lock().await;
        if let Some((at, statuses)) = known.get(&key)
            && at.elapsed() < REMEMBERED
        {
            return Some(statuses.clone());
        }
        let statuses = match timeout(PATIENCE, outside.statuses(project)).await {
            Ok(Ok(statuses)) => Some(statuses),
            Ok(Err(ReadError::NotFound(_))) => None,
            Ok(Err(error)) => {
                tracing::warn!(
                    project = key.1,
                    error = %chain(&error),
                    "the statuses of the project could not be read"
                );
                return None;
            }
            Err(_) => return None,
        };
        known.insert(key, (Instant::now(), statuses.clone()));
        Some(statuses)
    }
}
