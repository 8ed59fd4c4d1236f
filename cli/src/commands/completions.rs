//! `journeyman completions`: completion scripts for shells.

use std::{
    io::{Write as _, stdout},
    process::ExitCode,
};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    stdout().write_all(&render_script(asked.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn render_script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = super::Arguments::command();
    clap_complete::generate(shell, &mut command, "journeyman", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn scripts_complete_every_command_per_shell() {
        for &shell in Shell::value_variants() {
            let script = String::from_utf8(render_script(shell)).unwrap();
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
