//! Groups of the commands in `journeyman --help`, by the task of the user.

use clap::{Command, builder::Styles};

/// Headings with their commands, in the order of the help. A client without local commands omits those.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Start work",
        &[
            "try",
            "demo",
            "process-ticket",
            "list-tickets",
            "dispatch",
            "up",
            "serve",
            "watch",
            "pr",
            "eval",
        ],
    ),
    (
        "Follow work",
        &[
            "runs",
            "follow",
            "journal",
            "show-ticket",
            "open",
            "console",
            "spend",
            "pools",
        ],
    ),
    (
        "Decide and answer",
        &[
            "pending", "diff", "decide", "approve", "reject", "feedback", "say",
        ],
    ),
    (
        "Operate",
        &["stop", "retry", "stop-all", "dead", "purge", "backup", "restore"],
    ),
    (
        "Set up",
        &[
            "setup",
            "repo",
            "doctor",
            "login",
            "docs",
            "completions",
            "man",
            "help",
        ],
    ),
    (
        "Make keys",
        &["token", "grant-key", "service-keys", "certs", "nats-users"],
    ),
];

/// Template of the help of `root`, with its commands in groups. The options follow as usual.
pub(super) fn render_help_template(root: &Command) -> String {
    let styles = Styles::styled();
    let header = styles.get_header();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for (heading, names) in GROUPS {
        let commands = render_group(root, names);
        if !commands.is_empty() {
            template.push_str(&format!("{header}{heading}:{header:#}\n{commands}\n\n"));
        }
    }
    template.push_str(&format!("{header}Options:{header:#}\n{{options}}{{after-help}}"));
    template
}

/// Lines of these commands, in the form in which clap lists subcommands.
fn render_group(root: &Command, names: &[&str]) -> String {
    // clap adds this command itself when it parses a command line.
    let help = Command::new("help").about("Print this message or the help of the given subcommand(s)");
    let find = |name: &&str| match *name {
        "help" => Some(help.clone()),
        name => root.find_subcommand(name).cloned(),
    };
    let commands: Vec<Command> = names.iter().filter_map(find).collect();
    if commands.is_empty() {
        return String::new();
    }
    let ordered = commands
        .into_iter()
        .enumerate()
        .map(|(place, command)| command.display_order(place));
    let mut group = Command::new("journeyman")
        .disable_help_subcommand(true)
        .help_template("{subcommands}")
        .subcommands(ordered);
    let lines = group.render_help().ansi().to_string();
    lines.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::{super::Arguments, *};

    #[test]
    fn every_command_is_in_one_group() {
        let root = Arguments::command();
        let named: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let unique: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!(named.len(), unique.len(), "{named:?}");
        let known: BTreeSet<&str> = root.get_subcommands().map(Command::get_name).collect();
        let missing: Vec<&&str> = known.difference(&unique).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn help_has_headings_commands_and_options() {
        let help = Arguments::command().render_help().to_string();
        let start = help.find("Start work:\n  try ").unwrap();
        let keys = help.find("Make keys:\n  token ").unwrap();
        let options = help.find("Options:\n  -h, --help ").unwrap();
        assert!(start < keys && keys < options, "{help}");
        assert!(
            !help.contains("\nCommands:") && help.contains("Exit codes: 0 done"),
            "{help}"
        );
    }
}
