//! Setup that a check lacked on its executor.

use serde::{Deserialize, Serialize};

/// A missing prerequisite of a check with the commands that provide it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupHint {
    /// The missing package, toolchain or program, for people.
    pub missing: String,
    /// Commands for `executor.setup` of the repository's rules; empty: a person must decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The package registry that the commands need and that `executor.network` must allow, e.g. `npm`; empty:
    /// unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub registry: String,
}

impl SetupHint {
    /// Returns one sentence for the person who can change the repository's rules.
    pub fn sentence(&self) -> String {
        let mut text = format!("{} is missing here", self.missing);
        if !self.commands.is_empty() {
            let commands: Vec<String> = self
                .commands
                .iter()
                .map(|command| format!("`{command}`"))
                .collect();
            text.push_str(&format!("; setup with {} would help", commands.join(", then ")));
            if !self.registry.is_empty() {
                text.push_str(&format!(", with the {} registry allowed", self.registry));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_names_commands_with_their_registry() {
        let hint = SetupHint {
            missing: "the package `express`".to_owned(),
            commands: vec!["npm ci".to_owned()],
            registry: "npm".to_owned(),
        };
        assert_eq!(
            hint.sentence(),
            "the package `express` is missing here; setup with `npm ci` would help, with the npm registry allowed"
        );
        let bare = SetupHint {
            missing: "a Java compiler".to_owned(),
            ..SetupHint::default()
        };
        assert_eq!(bare.sentence(), "a Java compiler is missing here");
    }
}
