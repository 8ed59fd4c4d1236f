//! Discussions over GraphQL. GitHub offers them in no REST route.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::auth::Caller;
use super::graphql::failed;
use super::hub::{Hub, World};
use super::reactions::Reacted;
use super::shape::actor;
use super::state::{Discussion, Repo, Talk};
use crate::http::{answer, iso_now};

/// Category names with their `isAnswerable` flag.
pub(super) const CATEGORIES: [(&str, bool); 3] = [("General", false), ("Ideas", false), ("Q&A", true)];
const MAX_BODY: usize = 65_536;
const NO_NODE: &str = "Could not resolve to a node with the global id of that id.";

/// Mutation handler. It returns the payload, or GitHub's error type with a message.
type Change = fn(&Hub, &Caller, &Value) -> Result<Value, (&'static str, String)>;
const MUTATIONS: [(&str, Change); 6] = [
    ("addDiscussionComment", add),
    ("updateDiscussionComment", update),
    ("deleteDiscussionComment", delete),
    ("markDiscussionCommentAsAnswer", mark),
    ("closeDiscussion", close),
    ("addReaction", react),
];

/// Answers queries and mutations of discussions; returns nothing for other queries.
pub(super) fn handle(hub: &Hub, caller: &Caller, query: &str, variables: &Value) -> Option<Response> {
    // Our client sends fixed queries, so that a name in the text identifies each of them.
    if let Some((name, change)) = MUTATIONS.iter().find(|(name, _)| query.contains(name)) {
        if !caller.writes {
            hub.log.violation(format!("the reader called {name}"));
            return Some(failed("FORBIDDEN", "Resource not accessible by integration"));
        }
        return Some(match change(hub, caller, variables) {
            Ok(said) => answer(StatusCode::OK, json!({"data": {*name: said}})),
            Err((kind, why)) => failed(kind, &why),
        });
    }
    let is_one = query.contains("discussion(number");
    if !is_one && !query.contains("discussions(first") {
        return None;
    }
    let text = |name: &str| variables[name].as_str().unwrap_or_default();
    let name = format!("{}/{}", text("owner"), text("name"));
    if caller.token.may(Some(&name), &[("discussions", "read")]).is_err() {
        return Some(failed("FORBIDDEN", "Resource not accessible by integration"));
    }
    let world = hub.world();
    let Some(repo) = world.repos.get(&name) else {
        return Some(failed("NOT_FOUND", "Could not resolve to a Repository"));
    };
    let found = match is_one {
        true => {
            let number = variables["number"].as_u64().unwrap_or_default();
            let Some(discussion) = repo.discussions.get(&number) else {
                let message = format!("Could not resolve to a Discussion with the number of {number}.");
                return Some(failed("NOT_FOUND", &message));
            };
            json!({"discussion": repo.discussion_node(discussion, hub)})
        }
        false => {
            let mut all: Vec<&Discussion> = repo.discussions.values().collect();
            all.sort_by(|left, right| right.updated.cmp(&left.updated));
            let nodes = all.iter().take(50);
            let nodes = nodes.map(|found| json!({"number": found.number, "updatedAt": found.updated}));
            json!({"discussions": {"nodes": nodes.collect::<Vec<_>>()}})
        }
    };
    Some(answer(StatusCode::OK, json!({"data": {"repository": found}})))
}

impl Repo {
    /// Returns every field that our query selects.
    fn discussion_node(&self, discussion: &Discussion, hub: &Hub) -> Value {
        let talk = |said: &Talk| {
            let edited = (said.updated != said.created).then_some(&said.updated);
            json!({"id": said.node_id(), "databaseId": said.id, "body": said.body, "author": actor(&said.author),
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
            "createdAt": discussion.created, "author": actor(&discussion.author),
            "category": {"name": discussion.category, "isAnswerable": discussion.is_answerable()},
            "labels": {"nodes": []}, "answer": answered, "comments": {"nodes": comments},
        })
    }
}

fn refused<T>(kind: &'static str, why: &str) -> Result<T, (&'static str, String)> {
    Err((kind, why.to_owned()))
}

/// Returns the repository and number of the discussion that has this node id or contains a comment with it.
fn find(world: &World, id: &str) -> Option<(String, u64)> {
    let all = world.repos.values().flat_map(|repo| {
        repo.discussions
            .values()
            .map(move |discussion| (repo, discussion))
    });
    let is_it =
        |found: &Discussion| found.node_id() == id || found.comments.iter().any(|said| said.node_id() == id);
    let mut found = all.filter(|(_, discussion)| is_it(discussion));
    found
        .next()
        .map(|(repo, found)| (repo.name.clone(), found.number))
}

/// Returns the discussion of a node id if the caller may write to it.
fn changeable(hub: &Hub, caller: &Caller, id: &str) -> Result<(String, u64), (&'static str, String)> {
    let Some((name, number)) = find(&hub.world(), id) else {
        return refused("NOT_FOUND", NO_NODE);
    };
    let needed = [("discussions", "write")];
    match caller.token.may(Some(&name), &needed) {
        Ok(()) => Ok((name, number)),
        Err(_) => refused("FORBIDDEN", "Resource not accessible by integration"),
    }
}

fn text<'a>(variables: &'a Value, name: &str) -> &'a str {
    variables[name].as_str().unwrap_or_default()
}

fn body_of(variables: &Value) -> Result<&str, (&'static str, String)> {
    let body = text(variables, "body");
    match body.trim().is_empty() || body.chars().count() > MAX_BODY {
        true => refused("UNPROCESSABLE", "Body can't be blank"),
        false => Ok(body),
    }
}

fn add(hub: &Hub, caller: &Caller, variables: &Value) -> Result<Value, (&'static str, String)> {
    let (name, number) = changeable(hub, caller, text(variables, "discussion"))?;
    let body = body_of(variables)?;
    let reply_to = match &variables["thread"] {
        Value::Null => None,
        // A node id has the comment's number as its suffix.
        id => id
            .as_str()
            .and_then(|id| id.strip_prefix("DC_kwDO")?.parse().ok()),
    };
    let said = hub.talk(&name, number, caller.login(), body, reply_to);
    let said = said.map_err(|error| ("UNPROCESSABLE", error.to_string()))?;
    Ok(json!({"comment": {"id": said.node_id()}}))
}

/// Returns the comment of a node id if the caller wrote it.
fn own<'a>(
    hub: &Hub,
    caller: &Caller,
    discussion: &'a mut Discussion,
    id: &str,
) -> Result<&'a mut Talk, (&'static str, String)> {
    let found = discussion.comments.iter_mut().find(|said| said.node_id() == id);
    let Some(said) = found else {
        return refused("NOT_FOUND", NO_NODE);
    };
    if said.author != caller.login() {
        hub.log
            .violation(format!("{} changed a comment of {}", caller.login(), said.author));
        return refused("FORBIDDEN", "Must be the author of the comment");
    }
    Ok(said)
}

fn in_discussion<T>(
    hub: &Hub,
    caller: &Caller,
    id: &str,
    change: impl FnOnce(&mut Discussion) -> Result<T, (&'static str, String)>,
) -> Result<T, (&'static str, String)> {
    let (name, number) = changeable(hub, caller, id)?;
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

fn update(hub: &Hub, caller: &Caller, variables: &Value) -> Result<Value, (&'static str, String)> {
    let (id, body) = (text(variables, "id"), body_of(variables)?);
    in_discussion(hub, caller, id, |found| {
        let said = own(hub, caller, found, id)?;
        said.body = body.to_owned();
        said.updated = iso_now();
        Ok(json!({"comment": {"id": id}}))
    })
}

fn delete(hub: &Hub, caller: &Caller, variables: &Value) -> Result<Value, (&'static str, String)> {
    let id = text(variables, "id");
    in_discussion(hub, caller, id, |found| {
        let deleted = own(hub, caller, found, id)?.id;
        found.comments.retain(|said| said.id != deleted);
        Ok(json!({"comment": {"id": id}}))
    })
}

fn mark(hub: &Hub, caller: &Caller, variables: &Value) -> Result<Value, (&'static str, String)> {
    let id = text(variables, "id");
    in_discussion(hub, caller, id, |found| {
        let said = found.comments.iter().find(|said| said.node_id() == id);
        let Some(said) = said else {
            return refused("NOT_FOUND", NO_NODE);
        };
        if !found.is_answerable() || said.reply_to.is_some() {
            return refused("UNPROCESSABLE", "Comment cannot be marked as the answer");
        }
        found.answer = Some(said.id);
        Ok(json!({"discussion": {"id": found.node_id()}}))
    })
}

fn close(hub: &Hub, caller: &Caller, variables: &Value) -> Result<Value, (&'static str, String)> {
    in_discussion(hub, caller, text(variables, "id"), |found| {
        if found.closed_as.is_some() {
            return refused("UNPROCESSABLE", "Discussion is already closed");
        }
        found.closed_as = Some("resolved".to_owned());
        Ok(json!({"discussion": {"id": found.node_id(), "closed": true}}))
    })
}

fn react(hub: &Hub, caller: &Caller, variables: &Value) -> Result<Value, (&'static str, String)> {
    let (id, content) = (text(variables, "id"), text(variables, "content"));
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
        return refused(
            "INVALID",
            "Variable $content of type ReactionContent! was provided invalid value",
        );
    }
    let (name, number) = changeable(hub, caller, id)?;
    let mut world = hub.world();
    let repo = world
        .repo(&name)
        .map_err(|error| ("NOT_FOUND", error.to_string()))?;
    let talk = id.strip_prefix("DC_kwDO").and_then(|id| id.parse().ok());
    let to = talk.map_or(Reacted::Discussion(number), Reacted::DiscussionComment);
    let reaction = (to, caller.login().to_owned(), content.to_lowercase());
    // A repeated reaction changes nothing, as on GitHub.
    if !repo.reactions.contains(&reaction) {
        repo.reactions.push(reaction);
    }
    Ok(json!({"reaction": {"content": content}}))
}
