//! Setup of the copy that a run works on: commands that install dependencies, and the hosts that they may reach.

use std::collections::BTreeSet;

use clap::Args;
use domain::{HostPattern, InvalidId, SetupHint};
use executor::{SETUP_FOLDERS, is_setup_source, propose_setup};
use git::{BareRepository, FolderHead, FolderRepository};

use super::{super::prompt, interactive_run::RunViewForm, shell_words::quote_for_shell};

/// Package registries with their names for `--allow` and their hosts.
const REGISTRIES: [(&str, &[&str]); 9] = [
    ("npm", &["registry.npmjs.org", "registry.yarnpkg.com"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
    ("cargo", &["index.crates.io", "static.crates.io"]),
    ("go", &["proxy.golang.org", "sum.golang.org"]),
    ("rubygems", &["rubygems.org", "index.rubygems.org"]),
    (
        "packagist",
        &[
            "packagist.org",
            "repo.packagist.org",
            "api.github.com",
            "codeload.github.com",
        ],
    ),
    (
        "maven",
        &[
            "repo.maven.apache.org",
            "repo1.maven.org",
            "plugins.gradle.org",
            "services.gradle.org",
        ],
    ),
    ("hex", &["repo.hex.pm", "builds.hex.pm"]),
    ("nuget", &["api.nuget.org"]),
];

/// Note for `--allow` without commands that could use it: the model's commands have no network.
pub(super) const ALLOW_WITHOUT_SETUP: &str =
    "--allow has no effect: this run has no setup, and other commands reach no host; add --setup COMMAND";

/// Options for the setup of a run in a folder.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SetupOptions {
    /// Command that installs dependencies in the copy before the work, in place of `executor.setup`; can be repeated
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// Host that the setup may reach, or a registry (npm, pypi, cargo, go, rubygems, packagist, maven, hex,
    /// nuget), in place of `executor.network`; can be repeated
    #[arg(long, value_name = "HOST", value_parser = parse_allowed_hosts)]
    allow: Vec<AllowedHosts>,
    /// Propose no setup
    #[arg(long, conflicts_with = "setup")]
    no_setup: bool,
}

impl SetupOptions {
    /// True when no option is given.
    pub(super) const fn is_default(&self) -> bool {
        self.setup.is_empty() && self.allow.is_empty() && !self.no_setup
    }

    fn hosts(&self) -> Vec<HostPattern> {
        self.allow.iter().flat_map(|allowed| allowed.0.clone()).collect()
    }
}

/// Hosts of one `--allow`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHosts(Vec<HostPattern>);

/// Setup of a run in a folder. Empty parts are those of the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct FolderSetup {
    /// Commands in place of `executor.setup`.
    pub(in super::super) commands: Vec<String>,
    /// Hosts in place of `executor.network`.
    pub(in super::super) hosts: Vec<HostPattern>,
}

/// Parses a registry or a host.
fn parse_allowed_hosts(text: &str) -> Result<AllowedHosts, InvalidId> {
    let hosts = find_registry_hosts(text).unwrap_or(std::slice::from_ref(&text));
    let hosts: Result<Vec<HostPattern>, _> = hosts.iter().map(|host| host.parse::<HostPattern>()).collect();
    hosts.map(AllowedHosts)
}

/// Hosts of a registry by its name for `--allow`.
pub(in super::super) fn find_registry_hosts(name: &str) -> Option<&'static [&'static str]> {
    let name = name.to_lowercase();
    let found = REGISTRIES.iter().find(|(known, _)| *known == name);
    found.map(|(_, hosts)| *hosts)
}

/// Name for `--allow` of a registry that a hint names, such as `Go module`.
pub(in super::super) fn name_registry(registry: &str) -> String {
    let first = registry.split_whitespace().next().unwrap_or_default();
    first.to_lowercase()
}

/// Setup by the options; without them the proposal for the repository, if the user at the terminal accepts it.
///
/// `has_rules` is true when a rules file decides about the setup.
pub(super) async fn plan_setup(
    folder: &FolderRepository,
    head: &FolderHead,
    options: &SetupOptions,
    has_rules: bool,
    form: RunViewForm,
) -> anyhow::Result<FolderSetup> {
    let given = FolderSetup {
        commands: options.setup.clone(),
        hosts: options.hosts(),
    };
    if !given.commands.is_empty() || options.no_setup || has_rules {
        return Ok(given);
    }
    let Some(mut hint) = find_proposal(&folder.view()?.open()?, head)? else {
        return Ok(given);
    };
    // The sandbox shows an active environment to every command.
    if hint.registry == "PyPI" && std::env::var_os("VIRTUAL_ENV").is_some_and(|path| !path.is_empty()) {
        return Ok(given);
    }
    form.print_note(&format!(
        "the run works in a copy of the commit, and {} is not in it: checks may not run",
        hint.missing
    ));
    adapt_commands(&mut hint.commands, is_program_installed);
    if let Some(program) = find_missing_program(&hint.commands, is_program_installed) {
        form.print_note(&format!(
            "to install it there, `{program}` must be installed on this machine"
        ));
        return Ok(given);
    }
    if hint.registry == "PyPI" && folder.path().join(".venv/pyvenv.cfg").is_file() {
        form.print_note(
            "the environment .venv of this folder is not active: after `source .venv/bin/activate` the run finds its packages",
        );
    }
    if !prompt::can_ask() {
        form.print_note(&format!("to install it there, add {}", render_flags(&hint)));
        return Ok(given);
    }
    let hosts = if given.hosts.is_empty() {
        parse_allowed_hosts(&name_registry(&hint.registry))?.0
    } else {
        given.hosts.clone()
    };
    let question = format!(
        "install it there with `{}`? The command may reach {} and no other host",
        hint.commands.join("`, then `"),
        hosts
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    );
    if prompt::ask_confirmation(&question, true).await? {
        Ok(FolderSetup {
            commands: hint.commands,
            hosts,
        })
    } else {
        Ok(given)
    }
}

/// Proposal for the commit; `None` when nothing is missing.
fn find_proposal(repository: &BareRepository, head: &FolderHead) -> anyhow::Result<Option<SetupHint>> {
    let (mut paths, mut texts) = (BTreeSet::new(), Vec::new());
    for folder in SETUP_FOLDERS {
        for name in repository.files_in(&head.commit, folder)? {
            let path = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            if is_setup_source(&path)
                && let Some(bytes) = repository.read_file(&head.commit, &path)?
            {
                texts.push((path.clone(), String::from_utf8_lossy(&bytes).into_owned()));
            }
            paths.insert(path);
        }
    }
    Ok(propose_setup(paths, &texts).filter(|hint| !hint.commands.is_empty()))
}

/// Options that a user adds to get this setup: `--setup 'npm ci' --allow npm`.
pub(super) fn render_flags(hint: &SetupHint) -> String {
    let commands = hint.commands.iter();
    let mut flags: Vec<String> = commands
        .map(|command| format!("--setup {}", quote_for_shell(command)))
        .collect();
    flags.push(if hint.registry.is_empty() {
        "--allow HOST".to_owned()
    } else {
        format!("--allow {}", name_registry(&hint.registry))
    });
    flags.join(" ")
}

/// Replaces `python` where the machine has only `python3`.
fn adapt_commands(commands: &mut [String], has: impl Fn(&str) -> bool) {
    if has("python") || !has("python3") {
        return;
    }
    for command in commands {
        if let Some(rest) = command.strip_prefix("python ") {
            *command = format!("python3 {rest}");
        }
    }
}

/// First program of these commands that the machine lacks. A program with a path is part of the copy.
fn find_missing_program(commands: &[String], has: impl Fn(&str) -> bool) -> Option<&str> {
    let programs = commands
        .iter()
        .filter_map(|command| command.split_whitespace().next());
    programs
        .filter(|program| !program.contains('/'))
        .find(|program| !has(program))
}

fn is_program_installed(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_names_stand_for_their_hosts() {
        let hosts = |text: &str| {
            let allowed = parse_allowed_hosts(text)?;
            Ok::<_, InvalidId>(allowed.0.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(hosts("PyPI").unwrap(), ["pypi.org", "files.pythonhosted.org"]);
        assert_eq!(hosts("*.acme.example:8443").unwrap(), ["*.acme.example:8443"]);
        assert!(hosts("https://registry.npmjs.org").is_err());
        for (name, _) in REGISTRIES {
            assert!(!hosts(name).unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn every_registry_of_hints_has_name() {
        for registry in [
            "npm",
            "PyPI",
            "Cargo",
            "Go module",
            "RubyGems",
            "Packagist",
            "Maven",
            "Hex",
            "NuGet",
        ] {
            assert!(
                find_registry_hosts(&name_registry(registry)).is_some(),
                "{registry}"
            );
        }
    }

    #[test]
    fn flags_are_words_of_shell() {
        let mut hint = SetupHint {
            missing: "`node_modules`".to_owned(),
            commands: vec!["npm ci".to_owned()],
            registry: "npm".to_owned(),
        };
        assert_eq!(render_flags(&hint), "--setup 'npm ci' --allow npm");
        hint.registry = String::new();
        assert_eq!(render_flags(&hint), "--setup 'npm ci' --allow HOST");
    }

    #[test]
    fn commands_fit_programs_of_machine() {
        let mut commands = vec![
            "python -m venv .venv".to_owned(),
            ".venv/bin/pip install x".to_owned(),
        ];
        adapt_commands(&mut commands, |name| name == "python3");
        assert_eq!(commands[0], "python3 -m venv .venv");
        assert_eq!(find_missing_program(&commands, |name| name == "python3"), None);
        assert_eq!(find_missing_program(&commands, |_| false), Some("python3"));
    }

    #[test]
    fn options_and_rules_need_no_proposal() {
        assert!(SetupOptions::default().is_default());
        let asked = SetupOptions {
            allow: vec![parse_allowed_hosts("npm").unwrap()],
            ..SetupOptions::default()
        };
        assert!(!asked.is_default());
        assert_eq!(asked.hosts().len(), 2);
    }
}
