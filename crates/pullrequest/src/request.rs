//! Request for a pull request, with its validation.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use domain::RepositoryName;
use serde_json::{Map, Value};

use crate::{CallProblem, ProblemKind};

// Longer values are not repeated in a problem: they may be texts, or a token in the wrong field.
const SHOWN_CHARACTERS: usize = 20;

/// Validated request for a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatedRequest {
    /// Branch with the change.
    pub branch: String,
    /// Branch that it should be merged into.
    pub base_branch: String,
    /// Title of at least 5 characters.
    pub title: String,
    /// Description in Markdown, at least 10 characters.
    pub description: String,
    /// Key of the Jira issue, e.g. `ENG-12`.
    pub jira_key: Option<String>,
    /// True when the pull request should be ready for review at the end.
    pub mark_ready: bool,
    /// True when it is opened as a draft.
    pub draft: bool,
    /// Transition to code review, for workflows in which several match.
    pub transition: Option<String>,
    /// Values for the screen of that transition, by the names of its fields.
    pub transition_fields: BTreeMap<String, String>,
    /// True for a dry run, which writes nothing.
    pub dry_run: bool,
    /// Location of the branch.
    pub place: BranchLocation,
}

/// Location of a request's branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchLocation {
    /// Folder of the repository on this machine, from `working_directory`.
    Folder(PathBuf),
    /// Repository at GitHub, from `repository`.
    GitHub(RepositoryName),
}

/// Parses a request about a folder and collects all of its problems. `is_directory` checks a path.
///
/// # Errors
/// One problem for each invalid field.
pub fn parse_request(
    input: &Value,
    is_directory: impl Fn(&Path) -> bool,
) -> Result<ValidatedRequest, Vec<CallProblem>> {
    validate_fields(input, |fields| {
        Some(BranchLocation::Folder(fields.directory(is_directory)))
    })
}

/// Parses a request about a branch at GitHub: like [`parse_request`], with `repository` instead of
/// `working_directory`.
///
/// # Errors
/// One problem for each invalid field.
pub fn parse_github_request(input: &Value) -> Result<ValidatedRequest, Vec<CallProblem>> {
    validate_fields(input, |fields| fields.repository().map(BranchLocation::GitHub))
}

fn validate_fields(
    input: &Value,
    place: impl FnOnce(&mut RequestReader<'_>) -> Option<BranchLocation>,
) -> Result<ValidatedRequest, Vec<CallProblem>> {
    let Value::Object(fields) = input else {
        return Err(vec![CallProblem::new(
            ProblemKind::ValidationError,
            "the request must be one JSON object",
        )]);
    };
    let mut read = RequestReader {
        fields,
        problems: Vec::new(),
    };
    // The base branch comes first, because the branch is compared with it.
    let base_branch = read.base_branch();
    let branch = read.branch(&base_branch);
    let title = read.text_of("title", 5, "PR title must be at least 5 characters");
    let description = read.text_of("description", 10, "PR description must be at least 10 characters");
    let jira_key = read.jira_key();
    let mark_ready = read.flag("mark_ready", false, "mark_ready must be true or false");
    let draft = read.flag("draft", true, "draft must be true or false");
    let transition = read.transition();
    let transition_fields = read.transition_fields();
    let dry_run = read.flag("dry_run", false, "dry_run must be true or false");
    match place(&mut read) {
        Some(place) if read.problems.is_empty() => Ok(ValidatedRequest {
            branch,
            base_branch,
            title,
            description,
            jira_key,
            mark_ready,
            draft,
            transition,
            transition_fields,
            dry_run,
            place,
        }),
        // All fields were read by now, so the caller receives all problems at once.
        Some(_) | None => Err(read.problems),
    }
}

/// Finds the key of a Jira issue in a branch's name, e.g. `ENG-12` in `feature/ENG-12-login`.
pub fn find_issue_key(branch: &str) -> Option<String> {
    let words = branch.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words
        .filter_map(|word| {
            let mut parts = word.split('-');
            let key = format!("{}-{}", parts.next()?, parts.next()?);
            is_issue_key(&key).then_some(key)
        })
        .next()
}

/// True for a text that matches `^[A-Z]+-[0-9]+$`.
fn is_issue_key(text: &str) -> bool {
    let is_all = |part: &str, is: fn(&u8) -> bool| !part.is_empty() && part.as_bytes().iter().all(is);
    let parts = text.split_once('-');
    parts.is_some_and(|(project, number)| {
        is_all(project, u8::is_ascii_uppercase) && is_all(number, u8::is_ascii_digit)
    })
}

struct RequestReader<'a> {
    fields: &'a Map<String, Value>,
    problems: Vec<CallProblem>,
}

impl RequestReader<'_> {
    fn text(&self, field: &str) -> Option<String> {
        self.fields.get(field)?.as_str().map(str::to_owned)
    }

    fn refuse(&mut self, field: &str, message: &str) {
        let mut problem = CallProblem::new(ProblemKind::ValidationError, message).about_field(field);
        problem.context.value = self.fields.get(field).filter(|value| is_short(value)).cloned();
        self.problems.push(problem);
    }

    fn branch(&mut self, base_branch: &str) -> String {
        let branch = self.text("branch").unwrap_or_default();
        if branch.trim().is_empty() || branch == base_branch {
            self.refuse(
                "branch",
                "Branch name is required and must differ from base branch",
            );
        }
        branch
    }

    fn base_branch(&mut self) -> String {
        // Only a missing field gets the default: null or another type is a mistake of the caller.
        if !self.fields.contains_key("base_branch") {
            return "main".to_owned();
        }
        let base = self.text("base_branch").unwrap_or_default();
        if base.trim().is_empty() {
            self.refuse("base_branch", "Base branch name is required");
        }
        base
    }

    fn text_of(&mut self, field: &str, least: usize, message: &str) -> String {
        let text = self.text(field).unwrap_or_default();
        if text.trim().chars().count() < least {
            self.refuse(field, message);
        }
        text
    }

    fn jira_key(&mut self) -> Option<String> {
        match self.fields.get("jira_key") {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) if is_issue_key(key) => Some(key.clone()),
            Some(_) => {
                self.refuse("jira_key", "Jira key must match format: PROJECT-123");
                None
            }
        }
    }

    fn flag(&mut self, field: &str, usual: bool, message: &str) -> bool {
        match self.fields.get(field) {
            None => usual,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.refuse(field, message);
                usual
            }
        }
    }

    fn transition(&mut self) -> Option<String> {
        let named = self.text("transition").filter(|name| !name.trim().is_empty());
        if named.is_none() && self.fields.contains_key("transition") {
            self.refuse(
                "transition",
                "transition must be the name of a transition or of a status",
            );
        }
        named
    }

    fn transition_fields(&mut self) -> BTreeMap<String, String> {
        let Some(given) = self.fields.get("transition_fields") else {
            return BTreeMap::new();
        };
        let text = |(name, value): (&String, &Value)| {
            let value = value.as_str().filter(|value| !value.trim().is_empty())?;
            (!name.trim().is_empty()).then(|| (name.clone(), value.to_owned()))
        };
        let read = given
            .as_object()
            .and_then(|given| given.iter().map(text).collect());
        read.unwrap_or_else(|| {
            self.refuse(
                "transition_fields",
                "transition_fields must be names of fields, each with a text",
            );
            BTreeMap::new()
        })
    }

    fn directory(&mut self, is_directory: impl Fn(&Path) -> bool) -> PathBuf {
        let path = PathBuf::from(self.text("working_directory").unwrap_or_default());
        if !path.is_absolute() || !is_directory(&path) {
            self.refuse(
                "working_directory",
                "Working directory must be valid absolute path",
            );
        }
        path
    }

    fn repository(&mut self) -> Option<RepositoryName> {
        // The reporter runs on another machine, where the folder means nothing.
        if self.fields.contains_key("working_directory") {
            self.refuse(
                "working_directory",
                "the service has no working directory: push the branch and name the repository",
            );
        }
        let named: Option<RepositoryName> = self.text("repository").and_then(|name| name.parse().ok());
        if named.is_none() {
            self.refuse("repository", "repository must be a name such as acme/shop");
        }
        named
    }
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.chars().count() <= SHOWN_CHARACTERS,
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build_valid_input() -> Value {
        json!({
            "branch": "feature/login",
            "title": "Add a login",
            "description": "## Summary\nA login form",
            "working_directory": "/work/shop",
        })
    }

    fn build_changed_input(field: &str, value: Value) -> Value {
        let mut input = build_valid_input();
        input[field] = value;
        input
    }

    fn parse_input(input: &Value) -> Result<ValidatedRequest, Vec<CallProblem>> {
        parse_request(input, |path| path == Path::new("/work/shop"))
    }

    #[test]
    fn missing_fields_have_default_values() {
        let request = parse_input(&build_valid_input()).unwrap();
        assert_eq!(request.base_branch, "main");
        assert_eq!(request.jira_key, None);
        assert!(request.draft && !request.mark_ready);
        let null = parse_input(&build_changed_input("jira_key", Value::Null)).unwrap();
        assert_eq!(null, request);
    }

    #[test]
    fn github_branch_requires_repository_without_folder() {
        let asked = |place: Value| {
            let mut input = build_valid_input();
            let fields = input.as_object_mut().unwrap();
            fields.remove("working_directory");
            fields.extend(place.as_object().unwrap().clone());
            parse_github_request(&input)
        };
        let found = asked(json!({"repository": "ghe:acme/shop"})).unwrap();
        assert_eq!(
            found.place,
            BranchLocation::GitHub("ghe:acme/shop".parse().unwrap())
        );
        for (place, field) in [
            (json!({}), "repository"),
            (json!({"repository": "shop"}), "repository"),
            (
                json!({"repository": "acme/shop", "working_directory": "/work/shop"}),
                "working_directory",
            ),
        ] {
            let problems = asked(place).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].context.field.as_deref(), Some(field));
        }
    }

    #[test]
    fn each_rule_has_its_message() {
        let branch = "Branch name is required and must differ from base branch";
        let base = "Base branch name is required";
        let title = "PR title must be at least 5 characters";
        let description = "PR description must be at least 10 characters";
        let key = "Jira key must match format: PROJECT-123";
        let directory = "Working directory must be valid absolute path";
        let table = [
            ("branch", json!(""), branch),
            ("branch", json!("  "), branch),
            ("branch", json!("main"), branch),
            ("branch", json!(7), branch),
            ("base_branch", json!(""), base),
            ("base_branch", Value::Null, base),
            ("title", json!("Fix"), title),
            ("title", json!("Fix  "), title),
            ("title", json!(["Fix it now"]), title),
            ("description", json!("too short"), description),
            ("jira_key", json!("eng-12"), key),
            ("jira_key", json!("ENG12"), key),
            ("jira_key", json!("ENG-12x"), key),
            ("jira_key", json!("-12"), key),
            ("jira_key", json!(12), key),
            ("mark_ready", json!("yes"), "mark_ready must be true or false"),
            ("mark_ready", Value::Null, "mark_ready must be true or false"),
            ("draft", json!(1), "draft must be true or false"),
            ("working_directory", json!("shop"), directory),
            ("working_directory", json!("/nowhere"), directory),
            ("working_directory", json!(""), directory),
        ];
        for (field, value, message) in table {
            let problems = parse_input(&build_changed_input(field, value.clone())).unwrap_err();
            let [problem] = problems.as_slice() else {
                panic!("{field} {value}: {problems:?}")
            };
            assert_eq!(problem.kind, ProblemKind::ValidationError);
            assert_eq!(problem.message, message, "{field} {value}");
            assert_eq!(problem.context.field.as_deref(), Some(field));
        }
        assert!(parse_input(&build_changed_input("title", json!("Größe"))).is_ok());
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let fields = |input: &Value| -> Vec<String> {
            let problems = parse_input(input).unwrap_err();
            problems
                .into_iter()
                .filter_map(|problem| problem.context.field)
                .collect()
        };
        assert_eq!(
            fields(&json!({})),
            ["branch", "title", "description", "working_directory"]
        );
        assert_eq!(parse_input(&json!([])).unwrap_err().len(), 1);
    }

    #[test]
    fn only_short_values_appear_in_problems() {
        let value = |value: Value| {
            parse_input(&build_changed_input("jira_key", value)).unwrap_err()[0]
                .context
                .value
                .clone()
        };
        assert_eq!(value(json!("eng-12")), Some(json!("eng-12")));
        assert_eq!(value(json!("ghp_a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3")), None);
    }

    #[test]
    fn long_markdown_description_stays_unchanged() {
        let long = format!(
            "## Summary\n\n![Login](./login.png)\n\n```bash\nmake\n```\n{}",
            "- one more\n".repeat(900)
        );
        assert_eq!(
            parse_input(&build_changed_input("description", json!(long)))
                .unwrap()
                .description,
            long
        );
    }

    #[test]
    fn issue_key_is_found_in_branch() {
        for (branch, key) in [
            ("feature/ENG-12-login", Some("ENG-12")),
            ("ENG-12", Some("ENG-12")),
            ("fix_ENG-7_total", Some("ENG-7")),
            ("feature/login", None),
            ("feature/eng-12", None),
            ("feature/ENG-login", None),
        ] {
            assert_eq!(find_issue_key(branch).as_deref(), key, "{branch}");
        }
    }
}
