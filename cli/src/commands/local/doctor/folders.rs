//! Checks of the local folders in the settings.

use std::{collections::BTreeMap, path::PathBuf};

use domain::{InstanceName, cause::format_error_chain};
use git::FolderRepository;
use serde::Deserialize;

use super::{DoctorFinding, DoctorReport, Remedy};

/// Key of a section `[folder.<name>]` that the check reads.
#[derive(Deserialize)]
pub(super) struct FolderSection {
    /// The reporter refuses a section without it.
    pub(super) path: Option<PathBuf>,
}

/// Checks that the folders on this machine are repositories that Journeyman can use. Blocks.
pub(super) fn check_folders(findings: &mut DoctorReport, folders: &BTreeMap<InstanceName, FolderSection>) {
    for (name, section) in folders {
        let Some(path) = &section.path else { continue };
        let place = path.display();
        let finding = if path.exists() {
            match FolderRepository::open(path).and_then(|folder| folder.head()) {
                Ok(head) => DoctorFinding::Ok(format!("{name}: {place}, at {}", head.branch)),
                Err(error) => {
                    let problem = format!("{name}: {place}: {}", format_error_chain(&error));
                    DoctorFinding::Failed(problem, Remedy::Folders)
                }
            }
        } else {
            DoctorFinding::Skipped(format!("{name}: {place} is not on this machine"))
        };
        findings.add("folder", finding);
    }
}
