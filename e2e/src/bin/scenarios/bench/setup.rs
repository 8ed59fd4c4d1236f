//! Time from an empty folder to the first pull request: accounts, model, rules and ticket. A stand-in browser
//! replaces the user's clicks, and flags replace the user's answers.

use std::{os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use anyhow::{Context, ensure};
use tempfile::TempDir;
use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraOptions, ScriptStep, ScriptedModel, fixture, jira, model,
};
use tokio::{process::Command, time::Instant};

use crate::bench::{folder::create_shop_checkout, measure::print_figure};

/// Prints the time until `doctor` succeeds, and the time until the pull request is open.
pub(crate) async fn first_ticket() -> anyhow::Result<()> {
    let home = SetupFolder::start().await?;
    let start = Instant::now();
    home.set_up().await?;
    home.ends_well(&["doctor"]).await?;
    print_figure("setup_to_doctor_ok", start.elapsed().as_secs_f64(), "s");
    let (summary, description) = fixture::describe_shop_ticket();
    let key = home
        .jira
        .create_issue(fixture::PROJECT, summary, description, "Bug", &[]);
    home.ends_well(&["process-ticket", &key, "--config", "configs/acme-shop.yaml"])
        .await?;
    print_figure(
        "setup_to_first_ticket_seconds",
        start.elapsed().as_secs_f64(),
        "s",
    );
    let opened = home.github.pull_requests(fixture::REPOSITORY).len();
    ensure!(opened == 1, "{opened} pull requests");
    Ok(())
}

/// Empty folder with the stand-ins of all external services.
struct SetupFolder {
    github: FakeGitHub,
    jira: FakeJira,
    model: ScriptedModel,
    folder: TempDir,
}

impl SetupFolder {
    async fn start() -> anyhow::Result<Self> {
        let github = FakeGitHub::start(GitHubOptions::default()).await?;
        github.create_repository(fixture::REPOSITORY, &fixture::list_shop_files())?;
        let model = ScriptedModel::start(fixture::build_shop_script()).await?;
        // `setup model` tests the key with this prompt.
        model.set_script("Reply with the one word", vec![ScriptStep::reply("ok")]);
        let home = Self {
            github,
            jira: FakeJira::start(JiraOptions::default()).await?,
            model,
            folder: tempfile::tempdir()?,
        };
        home.write("browser", e2e::BROWSER, 0o700)?;
        for (name, secret) in [
            ("reader.token", jira::READER_API_TOKEN),
            ("writer.token", jira::WRITER_API_TOKEN),
            ("model.key", model::MODEL_API_KEY),
        ] {
            home.write(name, secret, 0o600)?;
        }
        Ok(home)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(std::fs::set_permissions(
            path,
            std::fs::Permissions::from_mode(mode),
        )?)
    }

    /// Runs the setup commands. Each ends with a `doctor` report that only the last one passes, so the
    /// others' status is ignored.
    async fn set_up(&self) -> anyhow::Result<()> {
        self.runs(&["setup", "github", "--org", "acme"]).await?;
        let (site, model) = (self.jira.url(), self.model.url());
        let jira = [
            &["setup", "jira", "--site", &site][..],
            &[
                "--reader-email",
                jira::READER_EMAIL,
                "--reader-token-file",
                "reader.token",
            ],
            &[
                "--writer-email",
                jira::WRITER_EMAIL,
                "--writer-token-file",
                "writer.token",
            ],
            &["--requesters", jira::USERS],
        ];
        self.runs(&jira.concat()).await?;
        let model = [
            &[
                "setup",
                "model",
                "--dialect",
                "anthropic",
                "--name",
                "scripted-model",
            ][..],
            &["--base-url", &model, "--api-key-file", "model.key"],
        ];
        self.runs(&model.concat()).await?;
        create_shop_checkout(&self.folder.path().join("checkout")).await?;
        let project = fixture::PROJECT;
        self.ends_well(&[
            "repo",
            "add",
            fixture::REPOSITORY,
            "--from",
            "checkout",
            "--project",
            project,
        ])
        .await
    }

    async fn ends_well(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let (is_well, said) = self.runs(arguments).await?;
        ensure!(is_well, "journeyman {}: {said}", arguments.join(" "));
        Ok(())
    }

    /// Runs a command and returns its success and output.
    async fn runs(&self, arguments: &[&str]) -> anyhow::Result<(bool, String)> {
        let folder = self.folder.path();
        // A clean environment proves that the commands need nothing else.
        let kept = std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "JOURNEYMAN_NATS_SERVER");
        let ran = Command::new(e2e::find_binary("journeyman")?)
            .args(arguments)
            .env_clear()
            .envs(kept)
            .envs(self.environment(folder))
            .current_dir(folder)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .context("journeyman")?;
        let said = [ran.stdout, ran.stderr].concat();
        Ok((ran.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// Environment with the addresses of the GitHub stand-in, for which no certificate exists.
    fn environment(&self, folder: &Path) -> Vec<(String, String)> {
        let (api, git) = (self.github.api_url(), self.github.git_url());
        let mut set = vec![
            ("HOME".to_owned(), folder.display().to_string()),
            ("BROWSER".to_owned(), folder.join("browser").display().to_string()),
        ];
        for section in ["GITHUB_READER", "GITHUB_WRITER"] {
            for (key, value) in [("API_URL", &api), ("GIT_URL", &git)] {
                set.push((format!("JOURNEYMAN__{section}__{key}"), value.clone()));
            }
        }
        set
    }
}
