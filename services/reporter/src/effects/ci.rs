//! Detection of CI that checks a pull request.

use domain::{CommitId, PullRequestRef};
use git::BareRepository;

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

/// Returns the CI file of the commit, or the check that the target branch requires. `None` without CI.
pub(super) async fn find_configured_ci(
    outside: &OutboundClients,
    draft: &PullRequestRef,
    head: &CommitId,
) -> Result<Option<String>, EffectError> {
    let mirror = outside.mirrors.with_commit(&draft.repository, head).await?;
    let commit = head.clone();
    let file = run_blocking(move || ci_file(&BareRepository::open(&mirror)?, &commit)).await?;
    // Files of the commit come first: reading them needs no permission at GitHub.
    match file {
        Some(file) => Ok(Some(file)),
        None => required_check(outside, draft).await,
    }
}

fn ci_file(mirror: &BareRepository, head: &CommitId) -> Result<Option<String>, git::Error> {
    for (folder, names) in PLACES {
        let files = mirror.files_in(head, folder)?;
        let found = files.into_iter().find(|file| is_ci_file(file, names));
        if let Some(file) = found {
            return Ok(Some(
                format!("{folder}/{file}").trim_start_matches('/').to_owned(),
            ));
        }
    }
    Ok(None)
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
) -> Result<Option<String>, EffectError> {
    let now = outside
        .github
        .pull_requests()
        .pull_request(&draft.repository, draft.number)
        .await?;
    let read = outside
        .github
        .checks()
        .required_checks(&draft.repository, &now.base_branch);
    match read.await {
        Ok(required) => Ok(required.into_iter().next()),
        Err(github::Error::Forbidden { detail, .. }) => {
            tracing::info!(repository = %draft.repository, detail, "required checks cannot be read");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
