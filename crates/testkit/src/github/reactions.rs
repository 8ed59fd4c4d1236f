//! Reactions to issues, pull requests, comments and discussions.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    FakeGitHub,
    auth::{GitHubCaller, not_found},
    hub::GitHubState,
    rest::{JsonBody, NumberPath, RestAnswer, render_validation_failure, with_repo},
    shape::render_user,
    state::RepositoryRecord,
};
use crate::http::{iso_now, render_json_answer};

const KINDS: [&str; 8] = [
    "+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes",
];

/// Target of a reaction, by the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReactedObject {
    /// Issue or pull request, by number.
    Issue(u64),
    /// Comment on an issue or pull request, by id.
    Comment(u64),
    /// Review comment on a line, by id.
    LineComment(u64),
    /// Discussion, by its number in the repository.
    Discussion(u64),
    /// Comment in a discussion, by id.
    DiscussionComment(u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReactionBody {
    content: String,
}

impl RepositoryRecord {
    fn has(&self, what: ReactedObject) -> bool {
        match what {
            ReactedObject::Issue(number) => self.has_thread(number),
            ReactedObject::Comment(id) => self.comments.iter().any(|comment| comment.id == id),
            ReactedObject::LineComment(id) => {
                let mut reviews = self.pulls.values().flat_map(|pull| &pull.reviews);
                reviews.any(|review| review.lines.iter().any(|line| line.id == id))
            }
            // GraphQL alone handles these.
            ReactedObject::Discussion(_) | ReactedObject::DiscussionComment(_) => false,
        }
    }
}

/// Returns the handler of reactions to what `target` makes of the number in the path.
pub(super) fn react_to(
    target: fn(u64) -> ReactedObject,
) -> impl Fn(State<Arc<GitHubState>>, GitHubCaller, NumberPath, JsonBody<ReactionBody>) -> Ready<RestAnswer> + Clone
{
    move |State(hub), caller, Path((owner, name, number)), JsonBody(wanted)| {
        ready(add_reaction(
            &hub,
            &caller,
            (&owner, &name),
            target(number),
            &wanted,
        ))
    }
}

/// Adds a reaction. A repeated reaction of the same account is answered with the existing one and status 200.
fn add_reaction(
    hub: &GitHubState,
    caller: &GitHubCaller,
    (owner, name): (&str, &str),
    what: ReactedObject,
    wanted: &ReactionBody,
) -> RestAnswer {
    if !KINDS.contains(&wanted.content.as_str()) {
        return Err(render_validation_failure(
            &json!([{"resource": "Reaction", "code": "invalid", "field": "content"}]),
        ));
    }
    with_repo(hub, owner, name, |repo| {
        repo.has(what).then_some(()).ok_or_else(not_found)?;
        repo.check_reaction_lock(what, caller)?;
        let reactions = &mut repo.reactions;
        let reaction = (what, caller.login().to_owned(), wanted.content.clone());
        let known = reactions.iter().position(|known| *known == reaction);
        let at = known.unwrap_or(reactions.len());
        if known.is_none() {
            reactions.push(reaction);
        }
        let status = known.map_or(StatusCode::CREATED, |_| StatusCode::OK);
        // Positions are stable, because reactions are never removed.
        let id = repo.id * 1_000 + at as u64;
        let reaction = json!({
            "id": id, "node_id": format!("REA_{id}"), "user": render_user(caller.login()), "content": wanted.content,
            "created_at": iso_now(),
        });
        Ok(render_json_answer(status, reaction))
    })
}

impl FakeGitHub {
    /// Content of all reactions to a target, oldest first (`eyes` and so on).
    #[must_use]
    pub fn reactions(&self, repository: &str, to: ReactedObject) -> Vec<String> {
        let world = self.hub.world();
        let reactions = world
            .repos
            .get(repository)
            .map_or(&[][..], |repo| &repo.reactions);
        let of_it = reactions.iter().filter(|(what, ..)| *what == to);
        of_it.map(|(.., content)| content.clone()).collect()
    }
}
