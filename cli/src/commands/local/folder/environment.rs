//! Environment of the services for work on a folder.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use bootstrap::rules::ConfiguredInstances;
use domain::{RepositoryRules, TicketKey};
use git::{FolderHead, FolderRepository};
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::{
        branch_folders::{describe_obstacle, list_branch_folders},
        one_shot::read_valid_rules,
    },
    model::FolderRunSettings,
    setup_plan::FolderSetup,
    state::FolderState,
};
use crate::local::StartPlan;

/// State, rules and settings of a folder, for one ticket.
pub(in super::super) struct FolderEnvironment {
    state: FolderState,
    // Removed with the environment.
    _rules: TempDir,
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
    has_setup: bool,
    /// Branches of the folder with the name of a folder of ours.
    obstacles: Vec<String>,
}

impl FolderEnvironment {
    /// Reserves the folder's next number. `defaults` are rules without `repo`; `setup` replaces the setup of the
    /// rules.
    ///
    /// # Errors
    /// Another Journeyman works on the folder, or the rules have a problem.
    pub(in super::super) fn new(
        folder: &FolderRepository,
        data: Option<&Path>,
        settings: &FolderRunSettings,
        defaults: Option<&Path>,
        setup: &FolderSetup,
        write_branch: bool,
    ) -> anyhow::Result<Self> {
        let head = folder.head()?;
        // Opening the state locks the folder against another process.
        let state = FolderState::open(&folder.path(), data)?;
        let FolderRules {
            folder: rules,
            has_setup,
            branch_folders,
        } = write_folder_rules(&state, &head, defaults, setup)?;
        let hidden = settings.hidden_paths()?;
        let environment =
            state.environment(settings.environment.clone(), &hidden, rules.path(), write_branch);
        let mut obstacles = folder.branches()?;
        obstacles.retain(|branch| write_branch && branch_folders.contains(branch));
        Ok(Self {
            state,
            _rules: rules,
            file: settings.file(),
            environment,
            has_setup,
            obstacles,
        })
    }

    /// Describes the branches that give ours another name.
    pub(super) fn describe_obstacles(&self) -> impl Iterator<Item = String> {
        self.obstacles.iter().map(|branch| describe_obstacle(branch))
    }

    /// True when commands run before the work.
    pub(super) fn has_setup(&self) -> bool {
        self.has_setup
    }

    /// Ticket of this work.
    pub(in super::super) fn ticket(&self) -> &TicketKey {
        &self.state.ticket
    }

    /// Plan for the start of the services.
    pub(in super::super) fn plan(&self) -> StartPlan {
        StartPlan {
            file: self.file.clone(),
            environment: self.environment.clone(),
            data: self.state.data(),
            free_ports: true,
            ..StartPlan::default()
        }
    }
}

/// Rules directory of a folder.
struct FolderRules {
    folder: TempDir,
    has_setup: bool,
    /// Folders of our branches.
    branch_folders: BTreeSet<String>,
}

/// Rules directory of this folder: the file of defaults, and the base branch of the work.
fn write_folder_rules(
    state: &FolderState,
    head: &FolderHead,
    defaults: Option<&Path>,
    setup: &FolderSetup,
) -> anyhow::Result<FolderRules> {
    let folder = tempfile::tempdir()?;
    let mut rules = json!({"repo": {"folder": state.name, "default_branch": head.branch}});
    // The defaults replace an absent part.
    if !setup.commands.is_empty() {
        rules["executor"]["setup"] = json!(setup.commands);
    }
    if !setup.hosts.is_empty() {
        rules["executor"]["network"] = json!(setup.hosts);
    }
    // Every JSON document is also valid YAML.
    std::fs::write(folder.path().join("folder.yaml"), rules.to_string())?;
    let Some(defaults) = defaults else {
        return Ok(FolderRules {
            folder,
            has_setup: !setup.commands.is_empty(),
            branch_folders: list_branch_folders(&RepositoryRules::default()),
        });
    };
    std::fs::copy(defaults, folder.path().join("defaults.yaml"))
        .with_context(|| format!("cannot read {}", defaults.display()))?;
    let connections = ConfiguredInstances {
        folders: [state.name.clone()].into(),
        ..ConfiguredInstances::default()
    };
    let book = read_valid_rules(folder.path(), defaults, &connections)?;
    if book.repositories().count() > 1 {
        bail!(
            "{}: rules for a folder are without repo: the folder is the repository",
            defaults.display()
        );
    }
    let has_setup = book.repositories().any(|rules| !rules.executor.setup.is_empty());
    let branch_folders = book.repositories().flat_map(list_branch_folders).collect();
    Ok(FolderRules {
        folder,
        has_setup,
        branch_folders,
    })
}
