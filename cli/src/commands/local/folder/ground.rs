//! Environment of the services for work on a folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bootstrap::rules::{Connections, RulesBook};
use domain::TicketKey;
use git::{Folder, FolderHead};
use serde_json::json;
use tempfile::TempDir;

use super::{super::alone::refuse_problems, model::Settings, state::State};
use crate::local::Plan;

/// State, rules and settings of a folder, for one ticket.
pub(in super::super) struct Ground {
    state: State,
    // Removed with the ground.
    _rules: TempDir,
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

impl Ground {
    /// Reserves the folder's next number. `defaults` are rules without `repo`; `setup` are commands that replace
    /// those of the rules.
    ///
    /// # Errors
    /// Another Journeyman works on the folder, or the rules have a problem.
    pub(in super::super) fn new(
        folder: &Folder,
        data: Option<&Path>,
        settings: &Settings,
        defaults: Option<&Path>,
        setup: &[String],
        write_branch: bool,
    ) -> anyhow::Result<Self> {
        let head = folder.head()?;
        // Opening the state locks the folder against another process.
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

    /// Ticket of this work.
    pub(in super::super) fn ticket(&self) -> &TicketKey {
        &self.state.ticket
    }

    /// Plan for the start of the services.
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

/// Rules directory of this folder: the file of defaults, and the base branch of the work.
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
