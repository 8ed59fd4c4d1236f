//! Detection of CI that checks a pull request.

use std::collections::BTreeMap;

use domain::{CiRules, CommitId, PullRequestRef};
use git::BareRepository;
use serde::Deserialize;

use super::OutboundClients;
use crate::{effect_error::EffectError, mirror::run_blocking};

// Folders and file names of common CI systems. An empty list of names stands for any YAML file of the folder.
const PLACES: [(&str, &[&str]); 10] = [
    (
        "",
        &[
            ".gitlab-ci.yml",
            ".gitlab-ci.yaml",
            ".travis.yml",
            ".drone.yml",
            ".woodpecker.yml",
            ".woodpecker.yaml",
            ".cirrus.yml",
            "appveyor.yml",
            ".appveyor.yml",
            "azure-pipelines.yml",
            "azure-pipelines.yaml",
            "bitbucket-pipelines.yml",
            "buildspec.yml",
            "cloudbuild.yaml",
            "Jenkinsfile",
        ],
    ),
    (".github/workflows", &[]),
    (".gitea/workflows", &[]),
    (".forgejo/workflows", &[]),
    (".circleci", &[]),
    (".buildkite", &[]),
    (".woodpecker", &[]),
    (".semaphore", &[]),
    (".azure-pipelines", &[]),
    (".teamcity", &["settings.kts", "pom.xml"]),
];

/// Returns the CI file of the commit, or a check that the target branch requires and the rules count. `None` without CI.
pub(super) async fn find_configured_ci(
    outside: &OutboundClients,
    draft: &PullRequestRef,
    head: &CommitId,
    rules: &CiRules,
) -> Result<Option<String>, EffectError> {
    let mirror = outside.mirrors.with_commit(&draft.repository, head).await?;
    let commit = head.clone();
    let file = run_blocking(move || ci_file(&BareRepository::open(&mirror)?, &commit)).await?;
    // Files of the commit come first: reading them needs no permission at GitHub.
    match file {
        Some(file) => Ok(Some(file)),
        None => required_check(outside, draft, rules).await,
    }
}

fn ci_file(mirror: &BareRepository, head: &CommitId) -> Result<Option<String>, git::Error> {
    for (folder, names) in PLACES {
        let files = mirror.files_in(head, folder)?;
        for file in files.into_iter().filter(|file| is_ci_file(file, names)) {
            let path = format!("{folder}/{file}").trim_start_matches('/').to_owned();
            let is_of_action =
                folder.ends_with("/workflows") && has_action_only(mirror.read_file(head, &path)?.as_deref());
            if !is_of_action {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// Part of a workflow file that shows whose jobs it has.
#[derive(Deserialize)]
struct WorkflowFile {
    jobs: BTreeMap<String, WorkflowJob>,
}

#[derive(Deserialize)]
struct WorkflowJob {
    name: Option<String>,
    #[serde(default)]
    steps: Vec<WorkflowStep>,
}

#[derive(Deserialize)]
struct WorkflowStep {
    uses: Option<String>,
}

impl WorkflowJob {
    fn is_of_action(&self) -> bool {
        self.name.as_deref().is_some_and(github::is_action_job)
            || self.steps.iter().any(WorkflowStep::uses_action)
    }
}

impl WorkflowStep {
    /// True for `OWNER/journeyman@VERSION`. GitHub ignores the case of owners and names.
    fn uses_action(&self) -> bool {
        let action = self.uses.as_deref().and_then(|uses| uses.split_once('@'));
        let name = action.and_then(|(action, _)| action.split_once('/'));
        name.is_some_and(|(_, name)| name.eq_ignore_ascii_case("journeyman"))
    }
}

/// Returns true if every job of a workflow file is one of Journeyman's GitHub Action. A file that cannot be parsed counts
/// as CI.
fn has_action_only(content: Option<&[u8]>) -> bool {
    let text = content.and_then(|content| std::str::from_utf8(content).ok());
    let file = text.and_then(|text| serde_saphyr::from_str::<WorkflowFile>(text).ok());
    file.is_some_and(|file| !file.jobs.is_empty() && file.jobs.values().all(WorkflowJob::is_of_action))
}

fn is_ci_file(file: &str, names: &[&str]) -> bool {
    if names.is_empty() {
        file.ends_with(".yml") || file.ends_with(".yaml")
    } else {
        names.contains(&file)
    }
}

/// Returns a check that the branch requires. Without the permission to read them, the branch counts as one without
/// required checks.
async fn required_check(
    outside: &OutboundClients,
    draft: &PullRequestRef,
    rules: &CiRules,
) -> Result<Option<String>, EffectError> {
    let now = outside.read_pull_request(draft).await?;
    let read = outside
        .github
        .checks()
        .required_checks(&draft.repository, &now.base_branch);
    match read.await {
        Ok(required) => Ok(required.into_iter().find(|name| !rules.is_check_ignored(name))),
        Err(github::Error::Forbidden { detail, .. }) => {
            tracing::info!(repository = %draft.repository, detail, "required checks cannot be read");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of_action(text: &str) -> bool {
        has_action_only(Some(text.as_bytes()))
    }

    #[test]
    fn packaged_workflows_are_of_action() {
        for text in [
            include_str!("../../../../packaging/action/journeyman.yml"),
            include_str!("../../../../packaging/action/journeyman-reviews.yml"),
        ] {
            assert!(is_of_action(text), "{text}");
        }
    }

    #[test]
    fn one_other_job_makes_workflow_ci() {
        let action = "jobs:\n  work:\n    steps:\n      - uses: Acme/Journeyman@v1\n";
        assert!(is_of_action(action));
        let with_test = format!("{action}  test:\n    steps:\n      - run: make test\n");
        for text in [
            with_test.as_str(),
            "on: push\n",
            "jobs: {}\n",
            "jobs:\n  test:\n    steps:\n      - uses: acme/journeyman-tests@v1\n",
            "jobs:\n  test:\n    uses: acme/shop/.github/workflows/test.yml@v1\n",
            "jobs: [\n",
        ] {
            assert!(!is_of_action(text), "{text}");
        }
        assert!(!has_action_only(None));
        assert!(!has_action_only(Some(b"\xff")));
    }
}
