//! Suggestions for mistyped commands that clap has none for: it compares no names that are as short as `try`.

use std::ffi::OsString;

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Adds the nearest commands to an error about an unknown one, unless clap has found some.
pub(super) fn suggest_commands(
    error: &mut clap::Error,
    root: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) {
    if error.kind() != ErrorKind::InvalidSubcommand || error.get(ContextKind::SuggestedSubcommand).is_some() {
        return;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let near = find_nearest_commands(typed, find_parent(root, typed, arguments));
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
}

/// Command whose subcommand is unknown, by the arguments before it.
fn find_parent<'a>(
    root: &'a Command,
    typed: &str,
    arguments: impl IntoIterator<Item = OsString>,
) -> &'a Command {
    let before = arguments.into_iter().take_while(|argument| argument != typed);
    before.fold(root, |parent, argument| {
        parent.find_subcommand(&argument).unwrap_or(parent)
    })
}

/// Subcommands with the fewest typing errors, if these are few enough for the length of the word.
fn find_nearest_commands(typed: &str, parent: &Command) -> Vec<String> {
    let most = match typed.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let names = parent.get_subcommands().filter(|command| !command.is_hide_set());
    let distances: Vec<(usize, &str)> = names
        .flat_map(Command::get_name_and_visible_aliases)
        .map(|name| (strsim::osa_distance(typed, name), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    let least = distances.iter().map(|(distance, _)| *distance).min();
    let nearest = distances.iter().filter(|(distance, _)| Some(*distance) == least);
    nearest.map(|(_, name)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_root() -> Command {
        let dead = Command::new("dead").subcommands([Command::new("list"), Command::new("drop")]);
        Command::new("journeyman").subcommand_required(true).subcommands([
            Command::new("try"),
            Command::new("runs"),
            Command::new("up"),
            dead,
        ])
    }

    fn parse_error(words: &[&str]) -> String {
        let line: Vec<OsString> = ["journeyman"].iter().chain(words).map(OsString::from).collect();
        let mut error = build_root().try_get_matches_from(&line).unwrap_err();
        suggest_commands(&mut error, &build_root(), line);
        error.to_string()
    }

    #[test]
    fn transposed_letters_have_suggestion() {
        let text = parse_error(&["tyr"]);
        assert!(text.contains("tip: a similar subcommand exists: 'try'"), "{text}");
    }

    #[test]
    fn nested_command_is_compared_with_its_siblings() {
        let text = parse_error(&["dead", "lst"]);
        assert!(text.contains("'list'") && !text.contains("'runs'"), "{text}");
    }

    #[test]
    fn distant_word_has_no_suggestion() {
        for words in [["Fix the cart"], ["x"], ["deploy"]] {
            let text = parse_error(&words);
            assert!(!text.contains("tip:"), "{text}");
        }
    }
}
