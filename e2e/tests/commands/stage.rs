//! Stand-ins of the external services and a folder with rules, without any service.

use std::path::Path;

use e2e::{ProviderDialect, VendorAddresses};
use tempfile::TempDir;
use testkit::{FakeGitHub, FakeJira, GitHubOptions, JiraOptions, ScriptStep, ScriptedModel, fixture};

use crate::program::{Ran, run_program};

pub(crate) struct Stage {
    pub(crate) github: FakeGitHub,
    pub(crate) jira: FakeJira,
    pub(crate) model: ScriptedModel,
    pub(crate) folder: TempDir,
}

impl Stage {
    /// Starts the stand-ins with the fixture's repository; `rules` are additional keys of its rules file.
    pub(crate) async fn start(rules: &str) -> Self {
        Self::start_with(rules, JiraOptions::default()).await
    }

    /// Starts the stand-ins with other Jira options.
    pub(crate) async fn start_with(rules: &str, jira: JiraOptions) -> Self {
        bootstrap::install_tls_provider();
        let github = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
        github
            .create_repository(fixture::REPOSITORY, &fixture::list_shop_files())
            .unwrap();
        let jira = FakeJira::start(jira).await.unwrap();
        let model = ScriptedModel::start(fixture::build_shop_script()).await.unwrap();
        // `setup` and `doctor` send this prompt.
        model.set_script("Reply with the one word", vec![ScriptStep::say("ok")]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("configs")).unwrap();
        let text = format!("repo: {{owner: acme, name: shop}}\njira: {{project_key: ENG}}\n{rules}");
        std::fs::write(folder.path().join("configs/shop.yaml"), text).unwrap();
        Self {
            github,
            jira,
            model,
            folder,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the settings of the external services.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let outside = VendorAddresses {
            github_api: self.github.api_url(),
            github_git: self.github.git_url(),
            jira: self.jira.url(),
            model: self.model.url(),
        };
        outside.environment(ProviderDialect::Anthropic, &self.path().join("configs"))
    }

    /// Runs `journeyman` in the folder to its end.
    pub(crate) async fn run(&self, arguments: &[&str], environment: &[(String, String)]) -> Ran {
        run_program("journeyman", arguments, environment, self.path()).await
    }

    /// Creates the fixture's ticket, `ENG-1`.
    pub(crate) fn file_ticket(&self) -> String {
        let (summary, description) = fixture::describe_shop_ticket();
        self.jira
            .create_issue(fixture::PROJECT, summary, description, "Bug", &[])
    }

    /// Fails if the stand-ins recorded violations.
    pub(crate) fn assert_kept_protocols(&self) {
        let broken = [
            self.github.violations(),
            self.jira.violations(),
            self.model.violations(),
        ];
        assert!(broken.concat().is_empty(), "{broken:#?}");
    }
}

/// Returns the settings with one replaced or added, by its name without `JOURNEYMAN__`.
pub(crate) fn replace_setting(
    environment: &[(String, String)],
    key: &str,
    value: &str,
) -> Vec<(String, String)> {
    let mut changed = remove_setting(environment, key);
    changed.push((format!("JOURNEYMAN__{key}"), value.to_owned()));
    changed
}

/// Returns the settings without one.
pub(crate) fn remove_setting(environment: &[(String, String)], key: &str) -> Vec<(String, String)> {
    let name = format!("JOURNEYMAN__{key}");
    let others = environment.iter().filter(|(other, _)| *other != name);
    others.cloned().collect()
}
