//! Check of projects and statuses in the rules against Jira.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use domain::{InstanceName, JiraRules, RepositoryRules, cause::format_error_chain};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::facts::tracker_reader::{ReadError, TrackerReader};

// Lifetime of a cached answer of Jira.
const REMEMBERED: Duration = Duration::from_secs(60);
// Time limit for an API caller who waits for the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Statuses of a project; absent when the project does not exist or is not visible.
type ProjectStatuses = Option<BTreeSet<String>>;

/// Site and project key.
type ProjectKey = (Option<InstanceName>, String);

/// Cached answers of Jira about projects.
#[derive(Default)]
pub(crate) struct StatusCache {
    known: Mutex<HashMap<ProjectKey, (Instant, ProjectStatuses)>>,
}

impl StatusCache {
    /// Problem with the project or the status in a repository's rules; `None` also while Jira does not answer.
    pub(crate) async fn problem(&self, outside: &TrackerReader, rules: &RepositoryRules) -> Option<String> {
        let (project, status) = (&rules.jira.project_key, &rules.agent.status);
        if project.is_empty() {
            return None;
        }
        let Some(statuses) = self.statuses(outside, &rules.jira).await? else {
            let instance = rules.jira.instance.as_ref();
            let section = instance.map_or("jira_reader".to_owned(), |name| format!("jira.{name}"));
            return Some(format!(
                "Jira knows no project {project}, or the account of [{section}] cannot see it"
            ));
        };
        let wanted = status.to_lowercase();
        let is_known = statuses.iter().any(|known| known.to_lowercase() == wanted);
        (!is_known).then(|| format!("the project {project} has no status {status:?} (agent.status)"))
    }

    async fn statuses(&self, outside: &TrackerReader, project: &JiraRules) -> Option<ProjectStatuses> {
        let key = (project.instance.clone(), project.project_key.clone());
        // The lock is held across the request, so that concurrent callers share one request.
        let mut known = self.known.lock().await;
        if let Some((at, statuses)) = known.get(&key)
            && at.elapsed() < REMEMBERED
        {
            return Some(statuses.clone());
        }
        let statuses = match timeout(PATIENCE, outside.statuses(project)).await {
            Ok(Ok(statuses)) => Some(statuses),
            // A missing project is an answer and is cached. A failed read is not cached, so the next
            // caller asks again.
            Ok(Err(ReadError::NotFound(_))) => None,
            Ok(Err(error)) => {
                tracing::warn!(
                    project = key.1,
                    error = %format_error_chain(&error),
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
