//! GitHub's webhook payloads.

use domain::{CommitId, Instance, RepositoryName, Source, TicketKey, Timestamp};
use serde::Deserialize;

use super::{Unreadable, read};
use crate::{
    detect::Closing,
    said::{Command, Order, comment_key},
};

/// What GitHub said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A check of a commit completed, or its status changed.
    ChecksChanged {
        repository: RepositoryName,
        head: CommitId,
        branches: Vec<String>,
    },
    /// A pull request was merged or closed.
    Closed {
        repository: RepositoryName,
        number: u64,
        branch: String,
        closing: Closing,
    },
    /// A comment gives an order.
    Ordered {
        command: Command,
        repository: RepositoryName,
        number: u64,
        order: Order,
    },
    /// Nothing that a job follows from; what it was.
    Other(String),
}

impl Event {
    /// The same event of the repository of that name on an instance.
    pub(crate) fn on(mut self, instance: Option<&Instance>) -> Self {
        match &mut self {
            Self::ChecksChanged { repository, .. } | Self::Closed { repository, .. } => {
                *repository = repository.clone().on(instance.cloned());
            }
            Self::Ordered {
                repository, order, ..
            } => {
                *repository = repository.clone().on(instance.cloned());
                order.ticket = order.ticket.clone().on(instance);
            }
            Self::Other(_) => {}
        }
        self
    }
}

#[derive(Deserialize)]
struct Repository {
    full_name: RepositoryName,
}

#[derive(Deserialize)]
struct CheckRunPayload {
    action: String,
    check_run: CheckRun,
    repository: Repository,
}

#[derive(Deserialize)]
struct CheckRun {
    head_sha: CommitId,
    check_suite: Suite,
}

#[derive(Deserialize)]
struct Suite {
    head_branch: Option<String>,
}

#[derive(Deserialize)]
struct CheckSuitePayload {
    action: String,
    check_suite: CheckSuite,
    repository: Repository,
}

#[derive(Deserialize)]
struct CheckSuite {
    head_sha: CommitId,
    head_branch: Option<String>,
}

#[derive(Deserialize)]
struct StatusPayload {
    sha: CommitId,
    state: String,
    branches: Vec<Branch>,
    repository: Repository,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
}

#[derive(Deserialize)]
struct PullRequestPayload {
    action: String,
    pull_request: PullRequest,
    repository: Repository,
    sender: User,
}

#[derive(Deserialize)]
struct PullRequest {
    number: u64,
    head: Head,
    /// May be null.
    merged: Option<bool>,
    merged_by: Option<User>,
    closed_at: Option<String>,
}

#[derive(Deserialize)]
struct Head {
    r#ref: String,
    repo: Option<Repository>,
}

#[derive(Deserialize)]
struct CommentPayload {
    action: String,
    issue: Issue,
    comment: Comment,
    repository: Repository,
}

#[derive(Deserialize)]
struct Issue {
    number: u64,
}

#[derive(Deserialize)]
struct Comment {
    id: u64,
    body: String,
    user: User,
    created_at: String,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

/// Reads one delivery; `event` is its `X-GitHub-Event`.
pub(crate) fn parse(event: &str, body: &[u8]) -> Result<Event, Unreadable> {
    match event {
        "issue_comment" => read(event, body).map(|payload| ordered(event, payload)),
        "check_run" => {
            let payload: CheckRunPayload = read(event, body)?;
            let CheckRun {
                head_sha,
                check_suite,
            } = payload.check_run;
            let branches = Vec::from_iter(check_suite.head_branch);
            Ok(completed(
                event,
                &payload.action,
                payload.repository,
                head_sha,
                branches,
            ))
        }
        "check_suite" => {
            let payload: CheckSuitePayload = read(event, body)?;
            let CheckSuite {
                head_sha,
                head_branch,
            } = payload.check_suite;
            let branches = Vec::from_iter(head_branch);
            Ok(completed(
                event,
                &payload.action,
                payload.repository,
                head_sha,
                branches,
            ))
        }
        "status" => {
            let payload: StatusPayload = read(event, body)?;
            let action = if payload.state == "pending" {
                "pending"
            } else {
                "completed"
            };
            let branches = payload.branches.into_iter().map(|branch| branch.name).collect();
            Ok(completed(
                event,
                action,
                payload.repository,
                payload.sha,
                branches,
            ))
        }
        "pull_request" => pull_request(event, body),
        other => Ok(Event::Other(other.chars().take(60).collect())),
    }
}

fn completed(
    event: &str,
    action: &str,
    repository: Repository,
    head: CommitId,
    branches: Vec<String>,
) -> Event {
    if action == "completed" {
        Event::ChecksChanged {
            repository: repository.full_name,
            head,
            branches,
        }
    } else {
        Event::Other(format!("{event} {action}"))
    }
}

fn pull_request(event: &str, body: &[u8]) -> Result<Event, Unreadable> {
    let PullRequestPayload {
        action,
        pull_request,
        repository: Repository {
            full_name: repository,
        },
        sender,
    } = read(event, body)?;
    let from_here = pull_request
        .head
        .repo
        .is_none_or(|head| head.full_name == repository);
    if action != "closed" || !from_here {
        return Ok(Event::Other(format!("{event} {action}")));
    }
    let unreadable = || Unreadable {
        event: event.to_owned(),
        problem: "closed_at is not a time".to_owned(),
    };
    let at = pull_request
        .closed_at
        .as_deref()
        .and_then(Timestamp::parse)
        .ok_or_else(unreadable)?;
    let is_merged = pull_request.merged.unwrap_or(false);
    let by = pull_request
        .merged_by
        .filter(|_| is_merged)
        .unwrap_or(sender)
        .login;
    let closing = Closing {
        merged: is_merged,
        by,
        at,
    };
    Ok(Event::Closed {
        repository,
        number: pull_request.number,
        branch: pull_request.head.r#ref,
        closing,
    })
}

/// The order in a new comment, when it gives one.
fn ordered(event: &str, payload: CommentPayload) -> Event {
    let CommentPayload {
        action,
        issue,
        comment,
        repository,
    } = payload;
    let repository = repository.full_name;
    let command = Command::of(&comment.body).filter(|_| action == "created");
    let at = Timestamp::parse(&comment.created_at);
    let (Some(command), Some(at)) = (command, at) else {
        return Event::Other(format!("{event} {action}"));
    };
    let ticket = TicketKey::GitHub {
        repository: repository.clone(),
        number: issue.number,
    };
    let order = Order {
        ticket,
        key: comment_key(comment.id),
        at,
        actor: comment.user.login,
        source: Source::Webhook,
    };
    Event::Ordered {
        command,
        repository,
        number: issue.number,
        order,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

    fn event(name: &str, payload: &Value) -> Result<Event, Unreadable> {
        parse(name, payload.to_string().as_bytes())
    }

    fn changed() -> Event {
        Event::ChecksChanged {
            repository: "acme/shop".parse().expect("repository"),
            head: SHA.parse().expect("commit"),
            branches: vec!["feat/ENG-1-x".to_owned()],
        }
    }

    #[test]
    fn the_three_kinds_of_ci_events_say_the_same() {
        let repository = json!({"full_name": "acme/shop"});
        let run = json!({"action": "completed", "repository": repository,
            "check_run": {"head_sha": SHA, "check_suite": {"head_branch": "feat/ENG-1-x"}}});
        let suite = json!({"action": "completed", "repository": repository,
            "check_suite": {"head_sha": SHA, "head_branch": "feat/ENG-1-x"}});
        let status = json!({"sha": SHA, "state": "failure", "branches": [{"name": "feat/ENG-1-x"}],
            "repository": repository});
        assert_eq!(event("check_run", &run), Ok(changed()));
        assert_eq!(event("check_suite", &suite), Ok(changed()));
        assert_eq!(event("status", &status), Ok(changed()));
    }

    #[test]
    fn a_check_that_only_starts_is_of_no_interest() {
        let run = json!({"action": "created", "repository": {"full_name": "acme/shop"},
            "check_run": {"head_sha": SHA, "check_suite": {"head_branch": null}}});
        assert_eq!(
            event("check_run", &run),
            Ok(Event::Other("check_run created".to_owned()))
        );
    }

    fn closing(merged: impl Into<Value>, head: &str) -> Value {
        json!({"action": "closed", "repository": {"full_name": "acme/shop"}, "sender": {"login": "sam"},
            "pull_request": {"number": 7, "head": {"ref": "feat/ENG-1-x", "repo": {"full_name": head}},
                "merged": merged.into(), "merged_by": {"login": "mia"}, "closed_at": "2026-11-21T10:00:00Z"}})
    }

    #[test]
    fn a_closed_pull_request_says_whether_it_was_merged_and_by_whom() {
        for (merged, expected) in [(Some(true), "mia"), (Some(false), "sam"), (None, "sam")] {
            let Ok(Event::Closed {
                number,
                branch,
                closing,
                ..
            }) = event("pull_request", &closing(merged, "acme/shop"))
            else {
                panic!("not closed");
            };
            assert_eq!((number, branch.as_str()), (7, "feat/ENG-1-x"));
            assert_eq!(
                (closing.merged, closing.by.as_str()),
                (merged == Some(true), expected)
            );
        }
    }

    #[test]
    fn a_pull_request_from_a_fork_is_never_ours() {
        assert!(matches!(
            event("pull_request", &closing(true, "evil/shop")),
            Ok(Event::Other(_))
        ));
    }

    #[test]
    fn a_payload_of_another_shape_is_unreadable_and_the_error_does_not_quote_it() {
        for (name, payload) in [
            ("check_run", json!({})),
            ("check_suite", json!([1, 2])),
            ("status", json!({"sha": "x", "state": 1})),
            ("pull_request", json!({"action": "closed"})),
        ] {
            assert!(event(name, &payload).is_err(), "{name}");
        }
        let told = event("status", &json!({"sha": "secret", "state": 1}))
            .unwrap_err()
            .to_string();
        assert!(!told.contains("secret"), "{told}");
        let pull = json!({"action": "closed", "pull_request": {"number": "seven"}});
        let told = event("pull_request", &pull).unwrap_err().to_string();
        assert!(
            told.contains("at pull_request") && !told.contains("seven"),
            "{told}"
        );
        assert_eq!(event("ping", &json!({})), Ok(Event::Other("ping".to_owned())));
    }
}
