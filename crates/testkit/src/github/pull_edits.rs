//! Edits of pull requests over REST, with the refusals of GitHub.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::repository;
use super::state::{PullRecord, RepositoryRecord};
use crate::http::iso_now;

pub(super) fn render_custom_error(message: &str) -> Value {
    json!([{"resource": "PullRequest", "code": "custom", "message": message}])
}

pub(super) fn render_field_error(name: &str, code: &str) -> Value {
    json!([{"resource": "PullRequest", "code": code, "field": name}])
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct PullUpdateBody {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    base: Option<String>,
    #[serde(default, rename = "maintainer_can_modify")]
    _maintainer_can_modify: Option<bool>,
}

/// Webhook of an edit: its action, and the properties beside the pull request.
pub(super) struct PullEditEvent {
    pub(super) action: &'static str,
    pub(super) more: Value,
}

/// Change of the state that an edit requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StateChange {
    Nothing,
    Close,
    Reopen,
}

impl RepositoryRecord {
    /// Applies an edit to a pull request. It returns nothing when the edit changes nothing. An error is the list
    /// of GitHub's "Validation Failed", and leaves the pull request as it was.
    pub(super) fn edit_pull(
        &mut self,
        number: u64,
        edit: PullUpdateBody,
    ) -> Result<Option<PullEditEvent>, Value> {
        let pull = self.pulls.get(&number).cloned();
        let mut pull = pull.ok_or_else(|| render_field_error("number", "missing"))?;
        let state = self.check_state(&pull, edit.state.as_deref())?;
        if edit.title.as_ref().is_some_and(|title| title.trim().is_empty()) {
            return Err(render_field_error("title", "missing_field"));
        }
        let mut changes = Map::new();
        if let Some(base) = edit.base.filter(|base| *base != pull.base) {
            let is_open = state == StateChange::Reopen || (pull.open && state != StateChange::Close);
            let sha = self.check_base(&pull, &base, is_open)?;
            let from = json!({"ref": {"from": pull.base}, "sha": {"from": pull.base_sha}});
            changes.insert("base".to_owned(), from);
            (pull.base, pull.base_sha) = (base, sha);
        }
        let texts = [
            ("title", &mut pull.title, edit.title),
            ("body", &mut pull.body, edit.body),
        ];
        for (name, text, new) in texts {
            if let Some(new) = new.filter(|new| new != text) {
                let from = json!({"from": std::mem::replace(text, new)});
                changes.insert(name.to_owned(), from);
            }
        }
        let now = iso_now();
        // A change of the state is reported alone, even if a text changes too.
        let (action, more) = match state {
            StateChange::Close => {
                (pull.open, pull.closed) = (false, Some(now.clone()));
                ("closed", json!({}))
            }
            StateChange::Reopen => {
                (pull.open, pull.closed) = (true, None);
                ("reopened", json!({}))
            }
            StateChange::Nothing if changes.is_empty() => return Ok(None),
            StateChange::Nothing => ("edited", json!({"changes": changes})),
        };
        pull.updated = now;
        self.pulls.insert(number, pull);
        Ok(Some(PullEditEvent { action, more }))
    }

    fn check_state(&self, pull: &PullRecord, wanted: Option<&str>) -> Result<StateChange, Value> {
        match wanted {
            None => Ok(StateChange::Nothing),
            Some("open") if pull.open => Ok(StateChange::Nothing),
            Some("closed") if pull.open => Ok(StateChange::Close),
            Some("closed") => Ok(StateChange::Nothing),
            Some("open") => self.check_reopening(pull).map(|()| StateChange::Reopen),
            Some(_) => Err(render_field_error("state", "invalid")),
        }
    }

    /// Returns GitHub's errors for a pull request that cannot be reopened.
    pub(super) fn check_reopening(&self, pull: &PullRecord) -> Result<(), Value> {
        if pull.merged_by.is_some() {
            return Err(render_field_error("state", "invalid"));
        }
        let refuse = |reason: &str| {
            let message = format!("state cannot be changed. {reason}");
            Err(json!([{"resource": "PullRequest", "code": "invalid", "field": "state", "message": message}]))
        };
        if !repository::list_branches(&self.path).contains_key(&pull.head) {
            return refuse(&format!("The {} branch has been deleted.", pull.head));
        }
        if self.has_open_pull(pull, &pull.base) {
            refuse(&format!(
                "There is already an open pull request from {} to {}.",
                pull.head, pull.base
            ))
        } else {
            Ok(())
        }
    }

    /// Returns the head of a new base branch, or GitHub's errors.
    fn check_base(&self, pull: &PullRecord, base: &str, is_open: bool) -> Result<String, Value> {
        if !is_open {
            return Err(render_custom_error(
                "Cannot change the base branch of a closed pull request.",
            ));
        }
        let branches = repository::list_branches(&self.path);
        let sha = branches
            .get(base)
            .ok_or_else(|| render_field_error("base", "invalid"))?;
        if self.has_open_pull(pull, base) {
            return Err(render_custom_error(&format!(
                "A pull request already exists for base branch '{base}' and head branch '{}'",
                pull.head
            )));
        }
        match repository::count_commits_ahead(&self.path, sha, &pull.head_sha) {
            Ok(0) | Err(_) => Err(render_custom_error(&format!(
                "There are no new commits between base branch '{base}' and head branch '{}'",
                pull.head
            ))),
            Ok(_) => Ok(sha.clone()),
        }
    }

    /// True if another open pull request has the same head and this base.
    fn has_open_pull(&self, pull: &PullRecord, base: &str) -> bool {
        self.pulls.values().any(|other| {
            other.open && other.number != pull.number && other.head == pull.head && other.base == base
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FakeGitHub, GitHubOptions};

    const REPOSITORY: &str = "acme/shop";
    /// A time before every edit of a test.
    const EARLIER: &str = "2020-01-02T03:04:05Z";

    /// Starts a stand-in with a pull request from `fix`, and returns its number.
    async fn start_with_pull() -> (FakeGitHub, u64) {
        let github = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
        github.create_repository(REPOSITORY, &[("a", "a\n")]).unwrap();
        github
            .commit(REPOSITORY, "fix", "Fix a", &[("a", "b\n")])
            .unwrap();
        let number = github
            .open_pull_request_as(REPOSITORY, "ann", "fix", "Fix a", "Body")
            .unwrap();
        (github, number)
    }

    fn edit_with(
        github: &FakeGitHub,
        number: u64,
        edit: PullUpdateBody,
    ) -> Result<Option<&'static str>, Value> {
        let mut world = github.hub.world();
        let repo = world.repo(REPOSITORY).unwrap();
        let event = repo.edit_pull(number, edit)?;
        Ok(event.map(|event| event.action))
    }

    fn find_pull(github: &FakeGitHub, number: u64) -> PullRecord {
        github.hub.world().repo(REPOSITORY).unwrap().pulls[&number].clone()
    }

    fn build_title_edit(title: &str) -> PullUpdateBody {
        PullUpdateBody {
            title: Some(title.to_owned()),
            ..PullUpdateBody::default()
        }
    }

    fn build_state_edit(state: &str) -> PullUpdateBody {
        PullUpdateBody {
            state: Some(state.to_owned()),
            ..PullUpdateBody::default()
        }
    }

    fn build_base_edit(base: &str) -> PullUpdateBody {
        PullUpdateBody {
            base: Some(base.to_owned()),
            ..PullUpdateBody::default()
        }
    }

    #[tokio::test]
    async fn edit_of_closed_pull_keeps_its_end() {
        let (github, number) = start_with_pull().await;
        for is_merged in [false, true] {
            {
                let mut world = github.hub.world();
                let pull = world.repo(REPOSITORY).unwrap().pull(number).unwrap();
                (pull.open, pull.closed) = (false, Some(EARLIER.to_owned()));
                pull.merged_by = is_merged.then(|| "ann".to_owned());
            }
            let title = format!("Merged: {is_merged}");
            assert_eq!(
                edit_with(&github, number, build_title_edit(&title)),
                Ok(Some("edited"))
            );
            assert_eq!(edit_with(&github, number, build_state_edit("closed")), Ok(None));
            let pull = find_pull(&github, number);
            assert_eq!(pull.closed.as_deref(), Some(EARLIER));
            assert_eq!(pull.merged_at().is_some(), is_merged);
            assert_eq!(pull.title, title);
        }
        assert!(
            edit_with(&github, number, build_state_edit("open")).is_err(),
            "it is merged"
        );
    }

    #[tokio::test]
    async fn refused_edit_leaves_pull_unchanged() {
        let (github, number) = start_with_pull().await;
        let before = format!("{:?}", find_pull(&github, number));
        github
            .commit(REPOSITORY, "same", "Fix a", &[("b", "b\n")])
            .unwrap();
        for edit in [
            build_title_edit(" "),
            build_state_edit("merged"),
            build_base_edit("missing"),
            PullUpdateBody {
                title: Some("Other".to_owned()),
                ..build_base_edit("fix")
            },
            PullUpdateBody {
                title: Some("Other".to_owned()),
                ..build_state_edit("done")
            },
        ] {
            assert!(edit_with(&github, number, edit).is_err());
            assert_eq!(format!("{:?}", find_pull(&github, number)), before);
        }
        assert_eq!(edit_with(&github, number, build_title_edit("Fix a")), Ok(None));
        assert_eq!(
            edit_with(&github, number, build_base_edit("same")),
            Ok(Some("edited"))
        );
        assert_eq!(find_pull(&github, number).base, "same");
    }

    #[tokio::test]
    async fn reopening_needs_branch_and_free_place() {
        let (github, number) = start_with_pull().await;
        assert_eq!(
            edit_with(&github, number, build_state_edit("closed")),
            Ok(Some("closed"))
        );
        assert!(find_pull(&github, number).closed.is_some());
        assert!(
            edit_with(&github, number, build_base_edit("main")).is_ok(),
            "the same base"
        );
        github
            .commit(REPOSITORY, "other", "Fix c", &[("c", "b\n")])
            .unwrap();
        assert!(
            edit_with(&github, number, build_base_edit("other")).is_err(),
            "it is closed"
        );
        let second = github
            .open_pull_request_as(REPOSITORY, "ann", "fix", "Fix a again", "Body")
            .unwrap();
        assert!(edit_with(&github, number, build_state_edit("open")).is_err());
        assert_eq!(
            edit_with(&github, second, build_state_edit("closed")),
            Ok(Some("closed"))
        );
        assert_eq!(
            edit_with(&github, number, build_state_edit("open")),
            Ok(Some("reopened"))
        );
        assert_eq!(find_pull(&github, number).closed, None);
        assert_eq!(
            edit_with(&github, number, build_state_edit("closed")),
            Ok(Some("closed"))
        );
        let path = github.hub.world().repo(REPOSITORY).unwrap().path.clone();
        let git = git2::Repository::open_bare(path).unwrap();
        git.find_reference("refs/heads/fix").unwrap().delete().unwrap();
        assert!(
            edit_with(&github, number, build_state_edit("open")).is_err(),
            "no branch"
        );
    }
}
