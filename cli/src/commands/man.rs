//! `journeyman man`: the manual pages of the commands.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, CommandFactory};

/// Write the manual pages of all commands into a folder, which is created if missing
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The folder, e.g. ~/.local/share/man/man1
    folder: PathBuf,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    write_manual_pages(&asked.folder)
        .with_context(|| format!("cannot write into {}", asked.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn write_manual_pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(super::Arguments::command(), folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_describes_every_command() {
        let folder = tempfile::tempdir().unwrap();
        write_manual_pages(&folder.path().join("man1")).unwrap();
        for command in super::super::Arguments::command().get_subcommands() {
            let page = format!("man1/journeyman-{}.1", command.get_name());
            let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
            assert!(
                page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"),
                "{page}"
            );
        }
        assert!(folder.path().join("man1/journeyman.1").exists());
    }
}
