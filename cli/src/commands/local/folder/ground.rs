//! What the services start with when they work on a folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bootstrap::rules::{Connections, RulesBook};
use domain::TicketKey;
use git::{Folder, FolderHead};
use serde_json::json;
use tempfile::TempDir;

use super::{super::alone::refuse_problems, model::Settings, state::State};
use crate::local::Plan;

/// A folder's state, rules and settings, for one ticket.
pub(in super::super) struct Ground {
    state: State,
    // Goes with the ground.
    _rules: TempDir,
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

impl Ground {
    /// Takes the folder's next number. `defaults`: rules without `repo`; `setup`: commands in the place of theirs.
    ///
    /// # Errors
    /// Another Journeyman that works on the folder, or rules with a problem.
    pub(in super::super) fn new(
        folder: &Folder,
        data: Option<&Path>,
        settings: &Settings,
        defaults: Option<&Path>,
        setup: &[String],
        write_branch: bool,
    ) -> anyhow::Result<Self> {
        let head = folder.head()?;
        let state = State::open(&folder.path(), data)?;
        let rules = rules(&state, &head, defaults, setup)?;
        let environment = state.environment(settings.environment.clone(), rules.path(), write_branch);
        Ok(Self {
            state,
            _rules: rules,
            file: settings.file(),
            environment,
        })
    }

    /// The ticket.
    pub(in super::super) fn ticket(&self) -> &TicketKey {
        &self.state.ticket
    }

    /// The start of the services.
    pub(in super::super) fn plan(&self) -> Plan {
        Plan {
            file: self.file.clone(),
            environment: self.environment.clone(),
            data: self.state.data(),
            free_ports: true,
            ..Plan::default()
        }
    }
}

/// The rules of this folder alone: what a file of defaults says, and where the folder's work starts.
fn rules(
    state: &State,
    head: &FolderHead,
    defaults: Option<&Path>,
    setup: &[String],
) -> anyhow::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let mut own = json!({"repo": {"folder": state.name, "default_branch": head.branch}});
    if let (false, Some(own)) = (setup.is_empty(), own.as_object_mut()) {
        own.insert("executor".to_owned(), json!({ "setup": setup }));
    }
    std::fs::write(folder.path().join("folder.yaml"), own.to_string())?;
    let Some(defaults) = defaults else {
        return Ok(folder);
    };
    std::fs::copy(defaults, folder.path().join("defaults.yaml"))
        .with_context(|| format!("cannot read {}", defaults.display()))?;
    let connections = Connections {
        folders: [state.name.clone()].into(),
        ..Connections::default()
    };
    refuse_problems(folder.path(), defaults, &connections)?;
    let book = RulesBook::read(folder.path(), &connections)?;
    if book.repositories().count() > 1 {
        bail!(
            "{}: rules for a folder are without repo: the folder is the repository",
            defaults.display()
        );
    }
    Ok(folder)
}
