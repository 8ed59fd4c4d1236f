//! `journeyman completions`: completion scripts for shells.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::print_line;

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
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

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

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
