//! Rules for continuous integration.

use serde::{Deserialize, Serialize};

use crate::{journal::record_format::is_true, rules::glob::is_name_covered};

/// Rules for continuous integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CiRules {
    /// Name of the CI system, which the prompt contains.
    pub system: String,
    /// Repairs before each commit: `pre-commit`, `dbt_compile`, or a command for the shell.
    pub auto_fix: Vec<String>,
    /// Controls whether a pull request without any reported check stays a draft.
    #[serde(skip_serializing_if = "CiRequired::is_auto")]
    pub required: CiRequired,
    /// Controls whether Journeyman repairs failed checks of its pull requests.
    #[serde(skip_serializing_if = "is_true")]
    pub repair: bool,
    /// Maximum number of repairs per commit, from 1 to 20.
    #[serde(skip_serializing_if = "is_default_per_commit")]
    pub repairs_per_commit: u32,
    /// Maximum number of repairs per pull request, from 1 to 20.
    #[serde(skip_serializing_if = "is_default_per_pull_request")]
    pub repairs_per_pull_request: u32,
    /// Program with arguments that prints the log of a failed check that is not a GitHub Actions job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs_command: Vec<String>,
    /// Controls whether failed jobs run again, once per commit, if the change caused none of the failures.
    #[serde(skip_serializing_if = "is_true")]
    pub rerun: bool,
    /// Names of checks, commit statuses and workflows that do not count, with `*` and `?` as in patterns; at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_checks: Vec<String>,
}

impl Default for CiRules {
    fn default() -> Self {
        Self {
            system: String::new(),
            auto_fix: Vec::new(),
            required: CiRequired::default(),
            repair: true,
            repairs_per_commit: REPAIRS_PER_COMMIT,
            repairs_per_pull_request: REPAIRS_PER_PULL_REQUEST,
            logs_command: Vec::new(),
            rerun: true,
            ignore_checks: Vec::new(),
        }
    }
}

const REPAIRS_PER_COMMIT: u32 = 3;
const REPAIRS_PER_PULL_REQUEST: u32 = 6;
// More repairs than this cost money without effect: a model that did not fix the checks by then is unlikely
// to do so.
const MOST_REPAIRS: u32 = 20;
const MOST_IGNORED: usize = 50;

impl CiRules {
    /// Returns the invalid key and the instruction for its correction.
    pub(crate) fn problem(&self) -> Option<(&'static str, &'static str)> {
        let wrong = "must be between 1 and 20; `ci.repair: false` repairs nothing";
        if !(1..=MOST_REPAIRS).contains(&self.repairs_per_commit) {
            Some(("ci.repairs_per_commit", wrong))
        } else if !(1..=MOST_REPAIRS).contains(&self.repairs_per_pull_request) {
            Some(("ci.repairs_per_pull_request", wrong))
        } else if self.ignore_checks.len() > MOST_IGNORED
            || self.ignore_checks.iter().any(|name| name.trim().is_empty())
        {
            Some(("ci.ignore_checks", "must be at most 50 names, none of them empty"))
        } else {
            None
        }
    }

    /// Returns true when the check, commit status or workflow of this name does not count.
    pub fn is_check_ignored(&self, name: &str) -> bool {
        self.ignore_checks
            .iter()
            .any(|pattern| is_name_covered(pattern, name))
    }
}

// Defaults are omitted, so that pinned rules keep the form that earlier releases wrote.
const fn is_default_per_commit(value: &u32) -> bool {
    *value == REPAIRS_PER_COMMIT
}

const fn is_default_per_pull_request(value: &u32) -> bool {
    *value == REPAIRS_PER_PULL_REQUEST
}

/// Draft policy for pull requests without any reported check. In YAML `auto`, `true` or `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CiRequiredValue", into = "CiRequiredValue")]
pub enum CiRequired {
    /// The pull request stays a draft if the repository has a configuration that should report.
    #[default]
    Auto,
    /// The pull request stays a draft.
    Always,
    /// The pull request becomes ready.
    Never,
}

impl CiRequired {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The form in YAML: a boolean or the word `auto`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum CiRequiredValue {
    Said(bool),
    Word(String),
}

impl TryFrom<CiRequiredValue> for CiRequired {
    type Error = &'static str;

    fn try_from(written: CiRequiredValue) -> Result<Self, Self::Error> {
        match written {
            CiRequiredValue::Said(true) => Ok(Self::Always),
            CiRequiredValue::Said(false) => Ok(Self::Never),
            CiRequiredValue::Word(word) if word == "auto" => Ok(Self::Auto),
            CiRequiredValue::Word(_) => Err("must be auto, true or false"),
        }
    }
}

impl From<CiRequired> for CiRequiredValue {
    fn from(required: CiRequired) -> Self {
        match required {
            CiRequired::Auto => Self::Word("auto".to_owned()),
            CiRequired::Always => Self::Said(true),
            CiRequired::Never => Self::Said(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_checks_match_whole_names() {
        let rules: CiRules =
            serde_json::from_str(r#"{"ignore_checks": ["WIP", "codecov/*", "e2e (?)"]}"#).unwrap();
        for (name, is_ignored) in [
            ("WIP", true),
            ("wip", false),
            ("WIP 2", false),
            ("codecov/patch/api", true),
            ("my codecov/patch", false),
            ("e2e (1)", true),
            ("e2e (12)", false),
        ] {
            assert_eq!(rules.is_check_ignored(name), is_ignored, "{name}");
        }
        assert_eq!(rules.problem(), None);
        assert!(!CiRules::default().is_check_ignored("WIP"));
        let plain = serde_json::to_string(&CiRules::default()).unwrap();
        assert!(!plain.contains("ignore"), "older releases read it: {plain}");
        let all = vec!["a".to_owned(); 51];
        for ignore_checks in [vec![" ".to_owned()], all] {
            let wrong = CiRules {
                ignore_checks,
                ..CiRules::default()
            };
            assert_eq!(wrong.problem().map(|(key, _)| key), Some("ci.ignore_checks"));
        }
    }

    #[test]
    fn ci_required_accepts_auto_or_boolean() {
        let read = |json: &str| serde_json::from_str::<CiRules>(json);
        for (json, required) in [
            ("{}", CiRequired::Auto),
            (r#"{"required": "auto"}"#, CiRequired::Auto),
            (r#"{"required": true}"#, CiRequired::Always),
            (r#"{"required": false}"#, CiRequired::Never),
        ] {
            let rules = read(json).unwrap();
            assert_eq!(rules.required, required, "{json}");
            let again = serde_json::to_string(&rules).unwrap();
            assert_eq!(read(&again).unwrap(), rules);
        }
        let wrong = read(r#"{"required": "maybe"}"#).unwrap_err().to_string();
        assert!(wrong.contains("auto, true or false"), "{wrong}");
        let plain = serde_json::to_string(&CiRules::default()).unwrap();
        assert!(!plain.contains("required"), "older releases read it: {plain}");
    }
}
