//! Settings of the reporter, section by section.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use bootstrap::{
    ServiceConfig, rules,
    settings::{self, TextList},
    telemetry, tls,
};
use domain::{InstanceName, cause::format_error_chain};
use serde::Deserialize;

use crate::{large_files::LfsSettings, policy::LimitSettings, signing::SigningSettings};

/// Settings of the reporter: its own section and those of the components it uses.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// The section `[nats]`.
    #[serde(default)]
    pub nats: queue::Settings,
    /// The section `[redis]`.
    #[serde(default)]
    pub redis: lease::Settings,
    /// The section `[telemetry]`.
    #[serde(default)]
    pub telemetry: telemetry::Settings,
    /// The section `[tls]`. Without it, connections are plain.
    #[serde(default)]
    pub tls: Option<tls::Settings>,
    /// The section `[rules]`.
    #[serde(default)]
    pub rules: rules::Settings,
    /// The section `[git]`.
    #[serde(default)]
    pub git: git::FetchSettings,
    /// The section `[reporter]`.
    #[serde(default)]
    pub reporter: Settings,
    /// The section `[github_writer]`.
    #[serde(default)]
    pub github_writer: github::Settings,
    /// The section `[jira_writer]`; absent if no ticket lives on Jira.
    #[serde(default)]
    pub jira_writer: Option<jira::Settings>,
    /// The sections `[github.<instance>]`: GitHub servers in addition to the default one.
    #[serde(default, deserialize_with = "github::deserialize_writers")]
    pub github: BTreeMap<InstanceName, github::Settings>,
    /// The sections `[jira.<instance>]`: Jira sites in addition to the default one.
    #[serde(default, deserialize_with = "jira::deserialize_writers")]
    pub jira: BTreeMap<InstanceName, jira::Settings>,
    /// The sections `[folder.<name>]`: local folders with a repository.
    #[serde(default)]
    pub folder: BTreeMap<InstanceName, FolderSettings>,
    /// The keys of `[ingest]` that the reporter uses.
    #[serde(default)]
    pub ingest: RetentionSettings,
}

/// Keys of `[ingest]` for the retention of records. They are in this section because ingest enforced them in earlier
/// releases.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
pub struct RetentionSettings {
    /// Days for which the journal of a run is kept after its end; 0: forever.
    pub journal_days: u32,
    /// Hours for which an unreferenced object is kept after it was stored last; 0: forever.
    pub object_grace_h: u32,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            journal_days: 90,
            object_grace_h: 24,
        }
    }
}

/// The section `[folder.<name>]`: a repository on this machine. Changes become branches of it, and patches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderSettings {
    /// Path of the folder.
    pub path: PathBuf,
    /// Folder for patches and descriptions, with one subfolder per ticket; absent: `results/<name>` in
    /// `reporter.data_dir`.
    #[serde(default)]
    pub results: Option<PathBuf>,
    /// If true, branches are written into the repository. If false, only patches are written.
    #[serde(default = "default_true")]
    pub write_branch: bool,
}

const fn default_true() -> bool {
    true
}

impl Config {
    /// Returns the default GitHub; absent if Journeyman works on folders only.
    pub(crate) fn default_github(&self) -> Option<&github::Settings> {
        let is_off = !self.folder.is_empty() && self.github_writer.is_without_account();
        (!is_off).then_some(&self.github_writer)
    }
}

/// The section `[reporter]`: git gate, mirrors, checks of changes, and texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address of the listener for the git gate and for health checks.
    pub listen: SocketAddr,
    /// Folder of the mirrors. Only the reporter writes to it.
    pub data_dir: PathBuf,
    /// Number of tickets that are reported concurrently.
    pub slots: usize,
    /// The section `[reporter.signing]`: signatures of commits.
    pub signing: SigningSettings,
    /// The section `[reporter.lfs]`: contents of Git LFS.
    pub lfs: LfsSettings,
    /// Public keys of the planners (base64) by key id. The git gate verifies grants with them.
    pub grant_keys: BTreeMap<String, String>,
    /// Paths that no change may touch (globs, case-insensitive). A glob that ends in `/**` also protects the folder's
    /// name.
    pub protected_paths: Vec<String>,
    /// Longest time of one clone or fetch through the git gate, in seconds, 1 to 3,600.
    pub clone_limit_s: u64,
    /// Largest pack that is imported, in bytes.
    pub max_pack_bytes: u64,
    /// Largest file that a change may add, in bytes.
    pub max_file_bytes: u64,
    /// Path of the inspector; absent: in the folder of this program.
    pub inspector: Option<PathBuf>,
    /// If true, changes are inspected even if the kernel cannot confine the inspector. Then a process with all rights
    /// of the reporter's user reads hostile objects.
    pub allow_unconfined: bool,
    /// Free disk space, in MiB, below which unused mirrors are removed.
    pub disk_floor_mib: u64,
    /// Seconds for which a write of unknown outcome is searched for before it is repeated.
    pub unknown_window_s: u64,
    /// Address of the page of a run, e.g. `https://journeyman.example/runs/{run}`. The status comment and the pull
    /// request link to it. Absent: no link.
    pub run_url: Option<String>,
    /// Address of the page for reviewers, e.g. `https://journeyman.example/reviewers`. The pull request links to it.
    /// Absent: no link.
    pub guide_url: Option<String>,
    /// Short names of transitions and statuses that mean code review, e.g. `CR`, for pull requests that callers of
    /// the API request.
    pub review_acronyms: TextList,
    /// Words of further bots that no line of a text by the model may begin with, e.g. `deploybot`. `@deploybot` and entries
    /// that begin with a slash, such as `/deploy-it`, are broken anywhere in a text.
    pub bot_words: TextList,
    /// Seconds by which lists of GitHub and Jira may lag behind a write. After that time, comments are checked for
    /// duplicates.
    pub list_lag_s: u64,
    /// Writes of a GitHub account in any minute, summed over all reporters; 0: unlimited. Absent: 80 at github.com,
    /// which is GitHub's limit for content creation, and unlimited elsewhere.
    pub github_writes_per_minute: Option<u32>,
    /// Writes of a GitHub account in any hour, summed over all reporters; 0: unlimited. Absent: 500 at github.com.
    pub github_writes_per_hour: Option<u32>,
}

// Paths whose content runs, publishes, assigns owners or rewrites when it is on a branch.
//
// These are pipelines and their actions, owners, configuration of git, package managers and bots that merge or change
// settings, and code that runs when a person checks the branch out, opens it in an editor or builds it. Wrappers such as
// `gradlew` are programs that reviewers rarely read. `AGENTS.md`, `CLAUDE.md` and `GEMINI.md` are missing on purpose: tickets ask
// for changes to them.
const PROTECTED_PATHS: [&str; 84] = [
    ".github/workflows/**",
    ".github/actions/**",
    "**/action.yml",
    "**/action.yaml",
    ".github/dependabot.yml",
    ".github/dependabot.yaml",
    "**/CODEOWNERS",
    "**/.gitlab-ci.yml",
    "**/.gitlab-ci.yaml",
    ".gitlab/ci/**",
    ".circleci/**",
    ".buildkite/**",
    "**/Jenkinsfile",
    "**/azure-pipelines*.{yml,yaml}",
    "azure-pipelines/**",
    ".azure-pipelines/**",
    "**/bitbucket-pipelines.yml",
    "**/.travis.yml",
    "**/appveyor.yml",
    "**/.appveyor.yml",
    "**/.drone.{yml,yaml}",
    "**/.cirrus.yml",
    "**/.woodpecker.{yml,yaml}",
    ".woodpecker/**",
    ".teamcity/**",
    ".semaphore/**",
    ".gitea/workflows/**",
    ".forgejo/workflows/**",
    "**/cloudbuild.{yml,yaml}",
    ".mergify.yml",
    ".mergify/**",
    ".github/mergify.yml",
    "bors.toml",
    ".github/bors.toml",
    ".github/settings.yml",
    "renovate.json*",
    ".renovaterc*",
    ".github/renovate.json*",
    ".gitlab/renovate.json*",
    "**/.gitmodules",
    "**/.gitattributes",
    "**/.npmrc",
    "**/.yarnrc",
    "**/.yarnrc.yml",
    "**/.pypirc",
    "**/.pre-commit-config.yaml",
    "**/.vscode/**",
    "**/.idea/**",
    "**/.zed/**",
    "**/.exrc",
    "**/.nvimrc",
    "**/.nvim.lua",
    "**/.devcontainer/**",
    "**/.devcontainer.json",
    "**/.gitpod.yml",
    "**/.husky/**",
    "**/.githooks/**",
    "**/lefthook.{yml,yaml,toml,json}",
    "**/.lefthook.{yml,yaml,toml,json}",
    "**/lefthook-local.{yml,yaml,toml,json}",
    "**/.lefthook-local.{yml,yaml,toml,json}",
    "**/.envrc",
    "**/.mcp.json",
    "**/.claude/**",
    "**/.cursor/**",
    "**/.cursorrules",
    "**/.windsurfrules",
    ".github/copilot-instructions.md",
    ".github/instructions/**",
    "**/.cargo/config.toml",
    "**/.cargo/config",
    "**/gradle/wrapper/**",
    "**/gradlew",
    "**/gradlew.bat",
    "**/.mvn/**",
    "**/mvnw",
    "**/mvnw.cmd",
    "**/.yarn/releases/**",
    "**/.yarn/plugins/**",
    "**/.pnp.cjs",
    "**/.pnp.loader.mjs",
    "**/.pnpmfile.cjs",
    "**/.bazelrc",
    "**/tools/bazel",
];

impl Settings {
    /// Returns the limits that apply to every change.
    pub(crate) fn limits(&self) -> LimitSettings {
        LimitSettings {
            protected_paths: self.protected_paths.clone(),
            max_file_bytes: self.max_file_bytes,
            max_pack_bytes: self.max_pack_bytes,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7404)),
            data_dir: PathBuf::from(".journeyman/reporter"),
            slots: 8,
            signing: SigningSettings::default(),
            lfs: LfsSettings::default(),
            grant_keys: BTreeMap::new(),
            protected_paths: PROTECTED_PATHS.map(str::to_owned).into(),
            clone_limit_s: 600,
            max_pack_bytes: 50 * 1024 * 1024,
            max_file_bytes: 10 * 1024 * 1024,
            inspector: None,
            allow_unconfined: false,
            disk_floor_mib: 2048,
            unknown_window_s: 30,
            run_url: None,
            guide_url: None,
            review_acronyms: TextList::default(),
            bot_words: TextList::default(),
            list_lag_s: 6,
            github_writes_per_minute: None,
            github_writes_per_hour: None,
        }
    }
}

impl ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.reporter.listen
    }

    fn telemetry(&self) -> &telemetry::Settings {
        &self.telemetry
    }

    fn check(&self) -> Result<(), settings::Error> {
        let wrong =
            |key: &str, problem: String| Err(settings::Error::new(format!("reporter.{key}"), problem));
        if let Err((key, problem)) = self.git.check() {
            return Err(settings::Error::new(key.to_owned(), problem));
        }
        if self.reporter.slots == 0 {
            return wrong("slots", "must be at least 1".to_owned());
        }
        if !(1..=3_600).contains(&self.reporter.clone_limit_s) {
            return wrong("clone_limit_s", "must be between 1 and 3600".to_owned());
        }
        if self.reporter.grant_keys.is_empty() {
            return wrong(
                "grant_keys",
                "must name the planner's public key by its key id".to_owned(),
            );
        }
        if let Err(refused) = grant::GrantVerifier::new(&self.reporter.grant_keys) {
            return wrong("grant_keys", refused.to_string());
        }
        if let Err(refused) = self.reporter.signing.parse_key() {
            return wrong("signing.private_key", format_error_chain(&refused));
        }
        if let Err((key, problem)) = self.reporter.lfs.check() {
            return wrong(key, problem);
        }
        if let Err(error) = crate::policy::ChangeLimits::new(&self.reporter.limits()) {
            return wrong("protected_paths", error.to_string());
        }
        let sections = [
            self.default_github()
                .map_or(Ok(()), |github| github.check("github_writer")),
            self.jira_writer
                .as_ref()
                .map_or(Ok(()), |jira| jira.check("jira_writer")),
        ];
        let servers = self.github.iter();
        let servers = servers.map(|(name, settings)| settings.check(&format!("github.{name}")));
        let sites = self.jira.iter();
        let sites = sites.map(|(name, settings)| settings.check(&format!("jira.{name}")));
        sections
            .into_iter()
            .chain(servers)
            .chain(sites)
            .collect::<Result<(), _>>()
            .map_err(|(key, problem)| settings::Error::new(key, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_with(extra: &[(&str, &str)]) -> Option<String> {
        let key = grant::generate_key_pair().public_key;
        let good = [
            ("JOURNEYMAN__REPORTER__GRANT_KEYS__FIRST", key.as_str()),
            ("JOURNEYMAN__GITHUB_WRITER__TOKEN", "secret"),
            ("JOURNEYMAN__JIRA_WRITER__BASE_URL", "https://acme.example"),
            ("JOURNEYMAN__JIRA_WRITER__API_TOKEN", "secret"),
        ];
        let env = good
            .iter()
            .chain(extra)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let checked = settings::load_settings::<Config>(None, env).and_then(|config| config.check());
        checked.err().map(|error| error.key)
    }

    #[test]
    fn each_wrong_setting_is_named() {
        assert_eq!(problem_with(&[]), None);
        for (name, value, key) in [
            (
                "JOURNEYMAN__REPORTER__GRANT_KEYS__SECOND",
                "short",
                "reporter.grant_keys",
            ),
            ("JOURNEYMAN__REPORTER__SLOTS", "0", "reporter.slots"),
            (
                "JOURNEYMAN__REPORTER__CLONE_LIMIT_S",
                "0",
                "reporter.clone_limit_s",
            ),
            (
                "JOURNEYMAN__REPORTER__SIGNING__PRIVATE_KEY",
                "-----BEGIN PGP PRIVATE KEY BLOCK-----",
                "reporter.signing.private_key",
            ),
            (
                "JOURNEYMAN__REPORTER__LFS__MAX_FILE_MIB",
                "65",
                "reporter.lfs.max_file_mib",
            ),
            (
                "JOURNEYMAN__REPORTER__LFS__MAX_COMMIT_MIB",
                "63",
                "reporter.lfs.max_commit_mib",
            ),
            (
                "JOURNEYMAN__REPORTER__LFS__CACHE_MIB",
                "511",
                "reporter.lfs.cache_mib",
            ),
            (
                "JOURNEYMAN__REPORTER__LFS__PRIVATE_NETWORKS",
                "10.0.0.1",
                "reporter.lfs.private_networks",
            ),
            ("JOURNEYMAN__GITHUB_WRITER__TOKEN", "", "github_writer.token"),
            ("JOURNEYMAN__JIRA_WRITER__API_TOKEN", "", "jira_writer.api_token"),
        ] {
            assert_eq!(problem_with(&[(name, value)]).as_deref(), Some(key));
        }
        // The burst of a small limit is one write.
        assert_eq!(
            problem_with(&[("JOURNEYMAN__REPORTER__GITHUB_WRITES_PER_HOUR", "1")]),
            None
        );
        let nothing: [(String, String); 0] = [];
        let missing = settings::load_settings::<Config>(None, nothing)
            .and_then(|config| config.check())
            .unwrap_err();
        assert_eq!(missing.key, "reporter.grant_keys");
    }
}
