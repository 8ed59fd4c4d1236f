//! Discussions over GraphQL. GitHub offers them in no REST route.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::auth::GitHubCaller;
use super::graphql::{
    find_readable_repository, refuse_access, refuse_unknown_repository, render_graphql_error,
};
use super::hub::{GitHubRecords, GitHubState};
use super::reactions::ReactedObject;
use super::shape::render_actor;
use super::state::{DiscussionCommentRecord, DiscussionRecord, RepositoryRecord};
use crate::http::{iso_now, render_json_answer};

/// Category names with their `isAnswerable` flag.
pub(super) const CATEGORIES: [(&str, bool); 3] = [("General", false), ("Ideas", false), ("Q&A", true)];
const MAX_BODY: usize = 65_536;
// Discussions in a page of our query.
const DISCUSSIONS_PAGE: usize = 50;
const NO_NODE: &str = "Could not resolve to a node with the global id of that id.";

/// Mutation handler. It returns the payload, or GitHub's error type with a message.
type DiscussionMutation = fn(&GitHubState, &GitHubCaller, &Value) -> Result<Value, (&'static str, String)>;
const MUTATIONS: [(&str, DiscussionMutation); 6] = [
    ("addDiscussionComment", add_discussion_comment),
    ("updateDiscussionComment", update_discussion_comment),
    ("deleteDiscussionComment", delete_discussion_comment),
    ("markDiscussionCommentAsAnswer", mark_answer),
    ("closeDiscussion", close_discussion),
    ("addReaction", add_discussion_reaction),
];

/// Answers queries and mutations of discussions; returns nothing for other queries.
pub(super) fn answer_discussion_query(
    hub: &GitHubState,
    caller: &GitHubCaller,
    query: &str,
    variables: &Value,
) -> Option<Response> {
    // Our client sends fixed queries, so that a name in the text identifies each of them.
    if let Some((name, change)) = MUTATIONS.iter().find(|(name, _)| query.contains(name)) {
        if !caller.writes {
            hub.log.violation(format!("the reader called {name}"));
            return Some(refuse_access());
        }
        return Some(match change(hub, caller, variables) {
            Ok(said) => render_json_answer(StatusCode::OK, json!({"data": {*name: said}})),
            Err((kind, why)) => render_graphql_error(kind, &why),
        });
    }
    let is_one = query.contains("discussion(number");
    if !is_one && !query.contains("discussions(first") {
        return None;
    }
    let name = match find_readable_repository(caller, variables, &["discussions"]) {
        Ok(name) => name,
        Err(refused) => return Some(refused),
    };
    let world = hub.world();
    let Some(repo) = world.repos.get(&name) else {
        return Some(refuse_unknown_repository());
    };
    let found = if is_one {
        let number = variables["number"].as_u64().unwrap_or_default();
        let Some(discussion) = repo.discussions.get(&number) else {
            let message = format!("Could not resolve to a Discussion with the number of {number}.");
            return Some(render_graphql_error("NOT_FOUND", &message));
        };
        json!({"discussion": repo.discussion_node(discussion, hub)})
    } else {
        let mut all: Vec<&DiscussionRecord> = repo.discussions.values().collect();
        all.sort_by(|left, right| right.updated.cmp(&left.updated));
        let after = variables["after"].as_str();
        let start: usize = after.and_then(|after| after.parse().ok()).unwrap_or_default();
        let page = all.iter().skip(start).take(DISCUSSIONS_PAGE);
        let nodes: Vec<Value> = page
            .map(|found| json!({"number": found.number, "updatedAt": found.updated}))
            .collect();
        let end = start + nodes.len();
        let pages = json!({"hasNextPage": end < all.len(), "endCursor": end.to_string()});
        json!({"discussions": {"pageInfo": pages, "nodes": nodes}})
    };
    Some(render_json_answer(
        StatusCode::OK,
        json!({"data": {"repository": found}}),
    ))
}

impl RepositoryRecord {
    /// Returns every field that our query selects.
    fn discussion_node(&self, discussion: &DiscussionRecord, hub: &GitHubState) -> Value {
        let talk = |said: &DiscussionCommentRecord| {
            let edited = (said.updated != said.created).then_some(&said.updated);
            json!({"id": said.node_id(), "databaseId": said.id, "body": said.body, "author": render_actor(&said.author),
                "createdAt": said.created, "lastEditedAt": edited})
        };
        let listed = || discussion.comments.iter().filter(|said| hub.log.lists(said.made));
        let first = listed().filter(|said| said.reply_to.is_none());
        let comments: Vec<Value> = first
            .map(|said| {
                let replies = listed().filter(|reply| reply.reply_to == Some(said.id)).map(talk);
                let mut node = talk(said);
                node["replies"] = json!({"nodes": replies.collect::<Vec<_>>()});
                node
            })
            .collect();
        let answered = discussion
            .answer
            .map(|id| json!({"id": format!("DC_kwDO{id:06}")}));
        json!({
            "id": discussion.node_id(), "title": discussion.title, "body": discussion.body,
            "url": self.discussion_url(discussion.number, &hub.url), "closed": discussion.closed_as.is_some(),
            "locked": self.locks.contains_key(&discussion.number),
            "activeLockReason": self.graphql_lock_reason(discussion.number),
            "createdAt": discussion.created, "author": render_actor(&discussion.author),
            "category": {"name": discussion.category, "isAnswerable": discussion.is_answerable()},
            "labels": {"nodes": []}, "answer": answered, "comments": {"nodes": comments},
        })
    }
}

fn refuse_mutation<T>(kind: &'static str, why: &str) -> Result<T, (&'static str, String)> {
    Err((kind, why.to_owned()))
}

/// Returns the repository and number of the discussion that has this node id or contains a comment with it.
fn find_discussion(world: &GitHubRecords, id: &str) -> Option<(String, u64)> {
    let all = world.repos.values().flat_map(|repo| {
        repo.discussions
            .values()
            .map(move |discussion| (repo, discussion))
    });
    let is_it = |found: &DiscussionRecord| {
        found.node_id() == id || found.comments.iter().any(|said| said.node_id() == id)
    };
    let mut found = all.filter(|(_, discussion)| is_it(discussion));
    found
        .next()
        .map(|(repo, found)| (repo.name.clone(), found.number))
}

/// Returns the discussion of a node id if the caller may write to it.
fn find_writable_discussion(
    hub: &GitHubState,
    caller: &GitHubCaller,
    id: &str,
) -> Result<(String, u64), (&'static str, String)> {
    let Some((name, number)) = find_discussion(&hub.world(), id) else {
        return refuse_mutation("NOT_FOUND", NO_NODE);
    };
    let needed = [("discussions", "write")];
    match caller.token.may(Some(&name), &needed) {
        Ok(()) => Ok((name, number)),
        Err(_) => refuse_mutation("FORBIDDEN", "Resource not accessible by integration"),
    }
}

/// Refuses a write in a locked discussion.
fn check_discussion_lock(
    hub: &GitHubState,
    caller: &GitHubCaller,
    name: &str,
    number: u64,
) -> Result<(), (&'static str, String)> {
    let world = hub.world();
    let is_locked = |repo: &RepositoryRecord| repo.is_locked_for(number, caller.login());
    if world.repos.get(name).is_some_and(is_locked) {
        refuse_mutation(
            "FORBIDDEN",
            "Unable to create comment because discussion is locked",
        )
    } else {
        Ok(())
    }
}

fn read_text_variable<'a>(variables: &'a Value, name: &str) -> &'a str {
    variables[name].as_str().unwrap_or_default()
}

fn body_of(variables: &Value) -> Result<&str, (&'static str, String)> {
    let body = read_text_variable(variables, "body");
    if body.trim().is_empty() || body.chars().count() > MAX_BODY {
        refuse_mutation("UNPROCESSABLE", "Body can't be blank")
    } else {
        Ok(body)
    }
}

fn add_discussion_comment(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
) -> Result<Value, (&'static str, String)> {
    let (name, number) = find_writable_discussion(hub, caller, read_text_variable(variables, "discussion"))?;
    let body = body_of(variables)?;
    let reply_to = match &variables["thread"] {
        Value::Null => None,
        // A node id has the comment's number as its suffix.
        id => id
            .as_str()
            .and_then(|id| id.strip_prefix("DC_kwDO")?.parse().ok()),
    };
    check_discussion_lock(hub, caller, &name, number)?;
    let said = hub.talk(&name, number, caller.login(), body, reply_to);
    let said = said.map_err(|error| ("UNPROCESSABLE", error.to_string()))?;
    Ok(json!({"comment": {"id": said.node_id()}}))
}

/// Returns the comment of a node id if the caller wrote it.
fn find_own_comment<'a>(
    hub: &GitHubState,
    caller: &GitHubCaller,
    discussion: &'a mut DiscussionRecord,
    id: &str,
) -> Result<&'a mut DiscussionCommentRecord, (&'static str, String)> {
    let found = discussion.comments.iter_mut().find(|said| said.node_id() == id);
    let Some(said) = found else {
        return refuse_mutation("NOT_FOUND", NO_NODE);
    };
    if said.author != caller.login() {
        hub.log
            .violation(format!("{} changed a comment of {}", caller.login(), said.author));
        return refuse_mutation("FORBIDDEN", "Must be the author of the comment");
    }
    Ok(said)
}

fn in_discussion<T>(
    hub: &GitHubState,
    caller: &GitHubCaller,
    id: &str,
    change: impl FnOnce(&mut DiscussionRecord) -> Result<T, (&'static str, String)>,
) -> Result<T, (&'static str, String)> {
    let (name, number) = find_writable_discussion(hub, caller, id)?;
    let mut world = hub.world();
    let repo = world
        .repo(&name)
        .map_err(|error| ("NOT_FOUND", error.to_string()))?;
    let found = repo
        .discussion(number)
        .map_err(|error| ("NOT_FOUND", error.to_string()))?;
    found.updated = iso_now();
    change(found)
}

fn update_discussion_comment(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
) -> Result<Value, (&'static str, String)> {
    let (id, body) = (read_text_variable(variables, "id"), body_of(variables)?);
    let (name, number) = find_writable_discussion(hub, caller, id)?;
    check_discussion_lock(hub, caller, &name, number)?;
    in_discussion(hub, caller, id, |found| {
        let said = find_own_comment(hub, caller, found, id)?;
        said.body = body.to_owned();
        said.updated = iso_now();
        Ok(json!({"comment": {"id": id}}))
    })
}

fn delete_discussion_comment(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
) -> Result<Value, (&'static str, String)> {
    let id = read_text_variable(variables, "id");
    in_discussion(hub, caller, id, |found| {
        let deleted = find_own_comment(hub, caller, found, id)?.id;
        found.comments.retain(|said| said.id != deleted);
        Ok(json!({"comment": {"id": id}}))
    })
}

fn mark_answer(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
) -> Result<Value, (&'static str, String)> {
    let id = read_text_variable(variables, "id");
    in_discussion(hub, caller, id, |found| {
        let said = found.comments.iter().find(|said| said.node_id() == id);
        let Some(said) = said else {
            return refuse_mutation("NOT_FOUND", NO_NODE);
        };
        if !found.is_answerable() || said.reply_to.is_some() {
            return refuse_mutation("UNPROCESSABLE", "Comment cannot be marked as the answer");
        }
        found.answer = Some(said.id);
        Ok(json!({"discussion": {"id": found.node_id()}}))
    })
}

fn close_discussion(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
) -> Result<Value, (&'static str, String)> {
    in_discussion(hub, caller, read_text_variable(variables, "id"), |found| {
        if found.closed_as.is_some() {
            return refuse_mutation("UNPROCESSABLE", "Discussion is already closed");
        }
        found.closed_as = Some("resolved".to_owned());
        Ok(json!({"discussion": {"id": found.node_id(), "closed": true}}))
    })
}

fn add_discussion_reaction(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
) -> Result<Value, (&'static str, String)> {
    let (id, content) = (
        read_text_variable(variables, "id"),
        read_text_variable(variables, "content"),
    );
    if ![
        "EYES",
        "ROCKET",
        "HEART",
        "HOORAY",
        "LAUGH",
        "CONFUSED",
        "THUMBS_UP",
        "THUMBS_DOWN",
    ]
    .contains(&content)
    {
        return refuse_mutation(
            "INVALID",
            "Variable $content of type ReactionContent! was provided invalid value",
        );
    }
    let (name, number) = find_writable_discussion(hub, caller, id)?;
    check_discussion_lock(hub, caller, &name, number)?;
    let mut world = hub.world();
    let repo = world
        .repo(&name)
        .map_err(|error| ("NOT_FOUND", error.to_string()))?;
    let talk = id.strip_prefix("DC_kwDO").and_then(|id| id.parse().ok());
    let to = talk.map_or(
        ReactedObject::Discussion(number),
        ReactedObject::DiscussionComment,
    );
    let reaction = (to, caller.login().to_owned(), content.to_lowercase());
    // A repeated reaction changes nothing, as on GitHub.
    if !repo.reactions.contains(&reaction) {
        repo.reactions.push(reaction);
    }
    Ok(json!({"reaction": {"content": content}}))
}
