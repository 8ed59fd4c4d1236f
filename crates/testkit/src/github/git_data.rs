//! Git objects and references over REST, with the rules of branches that a push would meet.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use git2::{Index, IndexEntry, IndexTime, ObjectType, Oid, Repository, Signature};
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{GitHubCaller, not_found, refuse_request};
use super::hub::GitHubState;
use super::rest::{JsonBody, RepoPath, RestAnswer, render_validation_failure, with_repo};
use super::state::RepositoryRecord;
use super::{history, repository};
use crate::http::render_json_answer;

// GitHub's limit of a blob in bytes.
const MAX_BLOB_BYTES: usize = 100 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewBlob {
    content: String,
    encoding: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTree {
    base_tree: String,
    tree: Vec<NewEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewEntry {
    path: String,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: Option<String>,
    /// Id of an object. Null removes the path, so an absent field has another value.
    #[serde(default = "build_absent_sha")]
    sha: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCommit {
    message: String,
    tree: String,
    #[serde(default)]
    parents: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRef {
    r#ref: String,
    sha: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MovedRef {
    sha: String,
    #[serde(default)]
    force: bool,
}

const fn build_absent_sha() -> Value {
    Value::Bool(false)
}

fn refuse_object(message: &str) -> Response {
    refuse_request(StatusCode::UNPROCESSABLE_ENTITY, message)
}

pub(super) async fn create_blob(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    JsonBody(blob): JsonBody<NewBlob>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let content = match blob.encoding.as_str() {
            "base64" => STANDARD
                .decode(blob.content.as_bytes())
                .map_err(|_| refuse_object("invalid base64"))?,
            "utf-8" => blob.content.into_bytes(),
            _ => return Err(refuse_object("encoding is not supported")),
        };
        if content.len() > MAX_BLOB_BYTES {
            return Err(refuse_object("Blob is too large"));
        }
        let git = open_repository(repo)?;
        let id = git.blob(&content).map_err(|_| not_found())?;
        let url = format!("{}/git/blobs/{id}", repo.api_url(&hub.url));
        Ok(render_json_answer(
            StatusCode::CREATED,
            json!({"sha": id.to_string(), "url": url}),
        ))
    })
}

pub(super) async fn create_tree(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    JsonBody(new): JsonBody<NewTree>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let git = open_repository(repo)?;
        let mut index = Index::new().map_err(|_| not_found())?;
        let base = Oid::from_str(&new.base_tree).and_then(|id| git.find_tree(id));
        index
            .read_tree(&base.map_err(|_| refuse_object("base_tree is not a valid tree"))?)
            .map_err(|_| not_found())?;
        for entry in &new.tree {
            change_index(&git, &mut index, entry)?;
        }
        let id = index
            .write_tree_to(&git)
            .map_err(|_| refuse_object("GitRPC::BadObjectState"))?;
        let url = format!("{}/git/trees/{id}", repo.api_url(&hub.url));
        Ok(render_json_answer(
            StatusCode::CREATED,
            json!({"sha": id.to_string(), "url": url, "tree": [], "truncated": false}),
        ))
    })
}

fn change_index(git: &Repository, index: &mut Index, entry: &NewEntry) -> Result<(), Response> {
    let path = FilePath::new(&entry.path);
    if entry.path.starts_with('/') || entry.path.is_empty() {
        return Err(refuse_object("tree.path contains a malformed path component"));
    }
    let mode = match (entry.mode.as_str(), entry.kind.as_str()) {
        ("100644", "blob") => 0o100_644,
        ("100755", "blob") => 0o100_755,
        ("120000", "blob") => 0o120_000,
        ("160000", "commit") => 0o160_000,
        _ => return Err(refuse_object("tree.mode is not a valid mode")),
    };
    let id = match (&entry.content, &entry.sha) {
        (Some(content), Value::Bool(_)) => git.blob(content.as_bytes()).map_err(|_| not_found())?,
        (None, Value::Null) => {
            return index
                .remove_path(path)
                .map_err(|_| refuse_object("GitRPC::BadObjectState"));
        }
        (None, Value::String(id)) => {
            Oid::from_str(id).map_err(|_| refuse_object("tree.sha is not a valid SHA"))?
        }
        _ => return Err(refuse_object("Must supply either tree.sha or tree.content")),
    };
    if mode != 0o160_000 && git.find_blob(id).is_err() {
        return Err(refuse_object("tree.sha is not a valid blob"));
    }
    let zero = IndexTime::new(0, 0);
    let added = index.add(&IndexEntry {
        ctime: zero,
        mtime: zero,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: entry.path.as_bytes().to_vec(),
    });
    added.map_err(|_| refuse_object("GitRPC::BadObjectState"))
}

/// Creates a commit by the caller. That of an App is signed.
pub(super) async fn create_commit(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    JsonBody(new): JsonBody<NewCommit>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let is_signed = !caller.token.is_personal() && !repo.has_unsigned_api_commits;
        let id = {
            let git = open_repository(repo)?;
            write_commit(&git, &new, caller.login(), is_signed)?
        };
        let commit = history::read_commit(&repo.path, &id).map_err(|_| not_found())?;
        Ok(render_json_answer(
            StatusCode::CREATED,
            repo.git_commit_json(&commit, &hub.url),
        ))
    })
}

fn write_commit(git: &Repository, new: &NewCommit, login: &str, is_signed: bool) -> Result<String, Response> {
    let broken = |_| refuse_object("Tree SHA does not exist");
    let tree = Oid::from_str(&new.tree).and_then(|id| git.find_tree(id));
    let tree = tree.map_err(broken)?;
    let parents = new.parents.iter();
    let parents = parents.map(|id| Oid::from_str(id).and_then(|id| git.find_commit(id)));
    let parents: Vec<_> = parents
        .collect::<Result<_, _>>()
        .map_err(|_| refuse_object("Parent SHA does not exist or is not a commit object"))?;
    let parents: Vec<_> = parents.iter().collect();
    let address = format!("{login}@users.noreply.github.test");
    let who = |name: &str, address: &str| Signature::now(name, address).map_err(|_| not_found());
    let author = who(login, &address)?;
    let committer = if is_signed {
        who("GitHub", "noreply@github.test")?
    } else {
        who(login, &address)?
    };
    let content = git
        .commit_create_buffer(&author, &committer, &new.message, &tree, &parents)
        .map_err(broken)?;
    let id = if is_signed {
        let text = std::str::from_utf8(&content).map_err(|_| refuse_object("message is not UTF-8"))?;
        let signature = repository::sign_as_github(&content);
        git.commit_signed(text, &signature, None)
    } else {
        git.odb()
            .and_then(|objects| objects.write(ObjectType::Commit, &content))
    };
    Ok(id.map_err(broken)?.to_string())
}

pub(super) async fn get_commit(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, sha)): Path<(String, String, String)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let commit = history::read_commit(&repo.path, &sha).map_err(|_| not_found())?;
        Ok(render_json_answer(
            StatusCode::OK,
            repo.git_commit_json(&commit, &hub.url),
        ))
    })
}

pub(super) async fn create_ref(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    JsonBody(new): JsonBody<NewRef>,
) -> RestAnswer {
    let Some(branch) = new.r#ref.strip_prefix("refs/heads/") else {
        return Err(refuse_object("Reference name is not valid"));
    };
    let place = (owner.as_str(), name.as_str());
    set_branch(&hub, &caller, place, branch, &new.sha, |git, there| {
        if there.is_some() {
            return Err(refuse_object("Reference already exists"));
        }
        let id = Oid::from_str(&new.sha).map_err(|_| refuse_object("Object does not exist"))?;
        git.find_commit(id)
            .map_err(|_| refuse_object("Object does not exist"))?;
        let made = git.reference(&new.r#ref, id, false, "api");
        made.map(drop)
            .map_err(|_| refuse_object("Reference cannot be created"))
    })
    .await?;
    render_ref(&hub, place, branch, StatusCode::CREATED)
}

pub(super) async fn update_ref(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, reference)): Path<(String, String, String)>,
    JsonBody(moved): JsonBody<MovedRef>,
) -> RestAnswer {
    let branch = reference.strip_prefix("heads/").ok_or_else(not_found)?;
    if moved.force {
        hub.log
            .violation(format!("{} forced the branch {branch}", caller.login()));
    }
    let place = (owner.as_str(), name.as_str());
    set_branch(&hub, &caller, place, branch, &moved.sha, |git, there| {
        let there = there.ok_or_else(|| refuse_object("Reference does not exist"))?;
        let new = Oid::from_str(&moved.sha).map_err(|_| refuse_object("Object does not exist"))?;
        git.find_commit(new)
            .map_err(|_| refuse_object("Object does not exist"))?;
        let is_forward = there == new || git.graph_descendant_of(new, there).unwrap_or_default();
        if !is_forward && !moved.force {
            return Err(refuse_object("Update is not a fast forward"));
        }
        let set = git.reference(&format!("refs/heads/{branch}"), new, true, "api");
        set.map(drop).map_err(|_| not_found())
    })
    .await?;
    render_ref(&hub, place, branch, StatusCode::OK)
}

/// Moves a branch if its rules allow it, and sends the webhooks of a push.
async fn set_branch(
    hub: &Arc<GitHubState>,
    caller: &GitHubCaller,
    (owner, name): (&str, &str),
    branch: &str,
    sha: &str,
    set: impl FnOnce(&Repository, Option<Oid>) -> Result<(), Response> + Send,
) -> Result<(), Response> {
    let one_at_a_time = hub.pushes.lock().await;
    let before = with_repo(hub, owner, name, |repo| {
        let before = repository::list_branches(&repo.path);
        let there = before.get(branch).and_then(|id| Oid::from_str(id).ok());
        if let Some(rule) = repo.find_broken_rule(branch, there.is_none(), sha) {
            return Err(refuse_object(&format!(
                "Repository rule violations found\n\n{rule}\n\n"
            )));
        }
        set(&open_repository(repo)?, there)?;
        Ok(before)
    })?;
    let pushed = [branch.to_owned()].into();
    let followed = hub.after_push(&format!("{owner}/{name}"), &before, &pushed, caller.login());
    drop(one_at_a_time);
    followed.map_err(|error| refuse_request(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()))
}

fn render_ref(
    hub: &Arc<GitHubState>,
    (owner, name): (&str, &str),
    branch: &str,
    status: StatusCode,
) -> RestAnswer {
    with_repo(hub, owner, name, |repo| {
        let branches = repository::list_branches(&repo.path);
        let sha = branches.get(branch).ok_or_else(not_found)?;
        let reference = format!("heads/{branch}");
        Ok(render_json_answer(
            status,
            repo.ref_json(&reference, sha, &hub.url),
        ))
    })
}

pub(super) async fn list_matching_refs(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, prefix)): Path<(String, String, String)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let branches = repository::list_branches(&repo.path);
        let named = branches.iter().map(|(name, sha)| (format!("heads/{name}"), sha));
        let found = named.filter(|(name, _)| name.starts_with(&prefix));
        let found: Vec<Value> = found
            .map(|(name, sha)| repo.ref_json(&name, sha, &hub.url))
            .collect();
        Ok(render_json_answer(StatusCode::OK, Value::Array(found)))
    })
}

fn open_repository(repo: &RepositoryRecord) -> Result<Repository, Response> {
    Repository::open_bare(&repo.path)
        .map_err(|error| render_validation_failure(&json!([{"message": error.message()}])))
}
