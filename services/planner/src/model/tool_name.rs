//! Normalizes the name of a tool as a model writes it: removes what chat templates leave around it.

use std::sync::Arc;

use domain::ToolSpec;

use super::failure::AttemptFailure;

// Prefixes that chat templates and gateways put before a name.
const PREFIXES: [&str; 6] = [
    "functions.",
    "function.",
    "tools.",
    "tool.",
    "default_api.",
    "default_api:",
];
// Maximum length of a name that providers accept.
const MOST_CHARS: usize = 64;

/// Names of the tools that a request offers.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolNames(Arc<[String]>);

impl ToolNames {
    pub(super) fn of(tools: &[ToolSpec]) -> Self {
        Self(tools.iter().map(|tool| tool.name.clone()).collect())
    }

    /// Returns true if a name is one of these tools.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Returns true if the name of a tool starts with this text.
    pub(super) fn begins(&self, name: &str) -> bool {
        self.0.iter().any(|known| known.starts_with(name))
    }

    /// Returns the tool that a call names.
    ///
    /// # Errors
    /// [`AttemptFailure::Garbage`] when the name consists of decoration alone.
    pub(super) fn called(&self, name: &str) -> Result<String, AttemptFailure> {
        let name = self.meant(name);
        if name.is_empty() {
            return Err(AttemptFailure::Garbage("a tool call without a name"));
        }
        Ok(name)
    }

    /// Returns the tool that a name means: `functions.read_file<|channel|>commentary` is `read_file`. An
    /// ambiguous name stays, so that the model gets the list of tools.
    pub(super) fn meant(&self, name: &str) -> String {
        if self.has(name) {
            return name.to_owned();
        }
        let bare = strip_decoration(name);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let unnumbered = bare
            .rsplit_once([':', '#'])
            .filter(|(_, number)| is_number(number));
        let last = bare.rsplit(['.', '/', ':']).next().unwrap_or(bare);
        let repeated = self
            .0
            .iter()
            .find(|known| is_repeated(bare, known))
            .map(String::as_str);
        // From the most literal reading to the least, so that a tool whose name has a dot or number stays
        // reachable.
        let readings = [Some(bare), unnumbered.map(|(name, _)| name), Some(last), repeated];
        let known = readings.into_iter().flatten().find(|reading| self.has(reading));
        known.unwrap_or(bare).to_owned()
    }
}

/// Returns a name without prefixes and without special tokens after it.
fn strip_decoration(name: &str) -> &str {
    let name = name.rsplit_once("to=").map_or(name, |(_, rest)| rest);
    let name = name.trim_start_matches("<|").trim();
    let end = name.find("<|").unwrap_or(name.len());
    let end = name.find(char::is_whitespace).map_or(end, |space| space.min(end));
    let mut name = name[..end].trim_matches(['"', '\'', '`']);
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        name = rest;
    }
    name
}

/// Returns true if a name is a repetition of another one.
fn is_repeated(name: &str, other: &str) -> bool {
    !other.is_empty()
        && name.len() > other.len()
        && name.len().is_multiple_of(other.len())
        && name.replace(other, "").is_empty()
}

/// Returns a name in the form that every provider accepts.
pub(super) fn wire_name(name: &str) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let legal: String = name
        .chars()
        .map(|c| if is_legal(c) { c } else { '_' })
        .take(MOST_CHARS)
        .collect();
    if legal.is_empty() {
        "unnamed".to_owned()
    } else {
        legal
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn build_tool_names() -> ToolNames {
        ToolNames(Arc::from(["read_file".to_owned(), "finish".to_owned()]))
    }

    #[test]
    fn decorated_name_resolves_to_known_tool() {
        for name in [
            "read_file",
            "functions.read_file",
            "functions.functions.read_file",
            "read_file<|channel|>commentary",
            "read_file<|constrain|>json",
            "functions.read_file<|channel|>commentary json",
            "assistant<|channel|>commentary to=functions.read_file",
            "functions.read_file:0",
            "read_file:12",
            "default_api.read_file",
            "default_api:read_file",
            "read_file commentary",
            " read_file ",
            "`read_file`",
            "mcp/read_file",
            "read_fileread_file",
            "read_fileread_fileread_file",
        ] {
            assert_eq!(build_tool_names().meant(name), "read_file", "{name}");
        }
    }

    #[test]
    fn unknown_tool_name_loses_only_decoration() {
        for (name, meant) in [
            ("functions.open_file", "open_file"),
            ("open_file<|channel|>x", "open_file"),
            ("read_filefinish", "read_filefinish"),
            ("", ""),
            ("<|", ""),
        ] {
            assert_eq!(build_tool_names().meant(name), meant, "{name}");
        }
    }

    #[test]
    fn illegal_tool_name_is_sent_legal() {
        assert_eq!(wire_name("functions.read file"), "functions_read_file");
        assert_eq!(wire_name(""), "unnamed");
        assert_eq!(wire_name(&"é".repeat(100)), "_".repeat(64));
    }

    proptest! {
        #[test]
        fn every_name_is_read_without_a_panic(name in "(functions\\.|<\\|||to=|:|[a-z]|é| |\\.){0,8}") {
            let _ = build_tool_names().meant(&name);
            prop_assert!(!wire_name(&name).is_empty());
        }
    }
}
