//! Manual pages and completion scripts, generated from the arguments: `journeyman man` and `journeyman completions`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::print_line;

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) async fn run_completions(asked: CompletionsArguments) -> anyhow::Result<ExitCode> {
    let script = render_script(asked.shell)?;
    // The script contains no text of other people, so it is printed unchanged.
    print_line(script.strip_suffix('\n').unwrap_or(&script));
    Ok(ExitCode::SUCCESS)
}

fn render_script(shell: Shell) -> anyhow::Result<String> {
    let mut script = Vec::new();
    let mut command = super::Arguments::command();
    clap_complete::generate(shell, &mut command, "journeyman", &mut script);
    Ok(String::from_utf8(script)?)
}

/// Write the manual pages of all commands into a folder, which is created if missing
#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// The folder, e.g. ~/.local/share/man/man1
    folder: PathBuf,
}

pub(super) async fn run_man(asked: ManArguments) -> anyhow::Result<ExitCode> {
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
    use clap::ValueEnum as _;

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

    #[test]
    fn scripts_complete_every_command_per_shell() {
        for &shell in Shell::value_variants() {
            let script = render_script(shell).unwrap();
            for command in super::super::Arguments::command().get_subcommands() {
                assert!(
                    script.contains(command.get_name()),
                    "{shell}: {}",
                    command.get_name()
                );
            }
        }
    }
}
