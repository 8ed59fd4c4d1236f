//! Parsing of one rules file, with the lines of its keys.

use domain::{InstanceName, RepositoryName, RepositoryRules};
use serde_json::Value;

use super::{FileProblem, keys::KeyPositions};
use crate::suggestion::find_nearest;

/// Rules file that is valid on its own. Its values are checked together with the defaults.
pub(super) struct RulesFile {
    pub(super) name: String,
    pub(super) value: Value,
    keys: KeyPositions,
}

impl RulesFile {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, FileProblem> {
        let keys = KeyPositions::of(text);
        let value: Result<Value, _> = serde_saphyr::from_str(text);
        let repository = value.as_ref().ok().and_then(repository_of);
        let value = match (serde_saphyr::from_str::<RepositoryRules>(text), value) {
            // An empty file is valid and sets no rule.
            (Ok(_), Ok(Value::Null)) => Value::Object(serde_json::Map::new()),
            (Ok(_), Ok(value)) => value,
            (Err(error), _) | (Ok(_), Err(error)) => {
                return Err(locate_problem(name, text, &keys, &error, repository));
            }
        };
        let file = Self {
            name: name.to_owned(),
            value,
            keys,
        };
        match unknown_key(&file.value) {
            None => Ok(file),
            Some(key) => Err(file.refuses(key)),
        }
    }

    pub(super) fn is_defaults(&self) -> bool {
        self.value.get("repo").is_none()
    }

    pub(super) fn repository(&self) -> Option<RepositoryName> {
        repository_of(&self.value)
    }

    /// Line of a key such as `agent.max_turns`, from 1.
    pub(super) fn line(&self, key: &str) -> Option<u64> {
        self.keys.line(key)
    }

    fn refuses(&self, unknown: String) -> FileProblem {
        FileProblem {
            file: self.name.clone(),
            line: self.line(&unknown).unwrap_or_default(),
            problem: match suggest_key(&unknown) {
                Some(key) => format!("unknown key; did you mean {key}? docs/rules.md lists the keys"),
                None => "unknown key; docs/rules.md lists the keys".to_owned(),
            },
            repository: self.repository(),
            key: unknown,
        }
    }

    /// Problem of a repository's file whose defaults are broken: it stays disabled, because its complete
    /// rules are unknown.
    pub(super) fn inherits_from_broken(&self, defaults: &str) -> FileProblem {
        FileProblem {
            file: self.name.clone(),
            line: self.line("repo").unwrap_or_default(),
            key: "repo".to_owned(),
            problem: format!("disabled until the defaults in {defaults} are repaired"),
            repository: self.repository(),
        }
    }
}

/// First unknown key. [`RepositoryRules`] itself ignores unknown keys, because triggers carry rules from one release to
/// another.
fn unknown_key(value: &Value) -> Option<String> {
    let mut unknown = None;
    // Other errors were reported before.
    let _ = serde_ignored::deserialize::<_, _, RepositoryRules>(value, |path| {
        unknown.get_or_insert_with(|| path.to_string());
    });
    unknown
}

/// Known key beside the unknown one that resembles it.
fn suggest_key(unknown: &str) -> Option<String> {
    // The default rules contain every key that is always set.
    let all = serde_json::to_value(RepositoryRules::default()).ok()?;
    let (parent, name) = unknown.rsplit_once('.').unwrap_or(("", unknown));
    let mut section = &all;
    for part in parent.split('.').filter(|part| !part.is_empty()) {
        section = section.get(part)?;
    }
    let known = section.as_object()?.keys().map(String::as_str);
    let nearest = find_nearest(name, known)?;
    Some(unknown.strip_suffix(name)?.to_owned() + nearest)
}

/// True when an unreadable file may be one of defaults: it has no `repo` key at the left edge.
pub(super) fn may_be_defaults(text: &str) -> bool {
    let is_repo = |line: &str| {
        let key = line.split(':').next().unwrap_or_default();
        line.contains(':') && key.trim_end().trim_matches(['"', '\'']) == "repo"
    };
    !text.trim_start_matches('\u{feff}').lines().any(is_repo)
}

fn locate_problem(
    name: &str,
    text: &str,
    keys: &KeyPositions,
    error: &serde_saphyr::Error,
    repository: Option<RepositoryName>,
) -> FileProblem {
    let (line, column) = error
        .location()
        .map_or((0, 0), |location| (location.line(), location.column()));
    let written = usize::try_from(line)
        .ok()
        .and_then(|line| text.lines().nth(line.checked_sub(1)?))
        .and_then(|source| source.split_once(':'))
        .map(|(key, _)| key.trim().trim_start_matches("- "));
    let key = keys.at(line, column).or(written).unwrap_or_default();
    let rendered = error.without_snippet().to_string();
    let problem = rendered.split_whitespace().collect::<Vec<_>>().join(" ");
    FileProblem {
        file: name.to_owned(),
        line,
        key: key.to_owned(),
        problem,
        repository,
    }
}

fn repository_of(value: &Value) -> Option<RepositoryName> {
    let repo = value.get("repo")?;
    if let Some(folder) = repo.get("folder") {
        return Some(RepositoryName::in_folder(&folder.as_str()?.parse().ok()?));
    }
    let instance = match repo.get("instance") {
        Some(name) => Some(name.as_str()?.parse::<InstanceName>().ok()?),
        None => None,
    };
    let named = RepositoryName::new(repo.get("owner")?.as_str()?, repo.get("name")?.as_str()?);
    Some(named.ok()?.on(instance))
}

/// Merges an overlay into a base: maps key by key, any other value replaces.
pub(super) fn merge_values(base: &mut Value, overlay: Value) {
    match (base, overlay) {
        (Value::Object(base), Value::Object(overlay)) => {
            for (key, value) in overlay {
                merge_values(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, overlay) => *base = overlay,
    }
}
