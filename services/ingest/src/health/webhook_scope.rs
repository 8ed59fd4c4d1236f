//! Pull requests whose health a webhook may change.

use domain::RepositoryName;

use crate::webhook::payload::{UnreadablePayload, WebhookPayload, github as wire};

// Branches on which GitHub tests entries of a merge queue: `gh-readonly-queue/main/pr-7-<commit>`.
const QUEUE_BRANCHES: &str = "gh-readonly-queue/";

/// Membership of a pull request in a merge queue, as far as the cause of its assessment shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueMembership {
    /// The cause does not show it.
    Unknown,
    /// The pull request is or was in a queue, which has to be read.
    Reported,
}

/// Pull requests whose health may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AffectedPullRequests {
    /// One pull request.
    One {
        repository: RepositoryName,
        number: u64,
        queue: QueueMembership,
    },
    /// All pull requests with this base branch.
    OfBase {
        repository: RepositoryName,
        branch: String,
    },
}

/// Finds the pull requests that a webhook affects beyond its own events.
pub(crate) fn find_affected(
    hook: &WebhookPayload<'_>,
) -> Result<Option<AffectedPullRequests>, UnreadablePayload> {
    let WebhookPayload::GitHub { event, .. } = hook else {
        return Ok(None);
    };
    Ok(match *event {
        "pull_request" => {
            let payload: wire::PullRequestPayload = hook.read()?;
            let queue = match payload.action.as_str() {
                "enqueued" | "dequeued" => QueueMembership::Reported,
                "auto_merge_enabled" | "auto_merge_disabled" | "ready_for_review" => QueueMembership::Unknown,
                _ => return Ok(None),
            };
            Some(AffectedPullRequests::One {
                number: payload.pull_request.number,
                repository: hook.repository(payload.repository),
                queue,
            })
        }
        "merge_group" => {
            let payload: wire::MergeGroupPayload = hook.read()?;
            let branch = payload.merge_group.head_ref;
            let branch = branch.strip_prefix("refs/heads/").unwrap_or(&branch);
            find_queued(branch, || hook.repository(payload.repository))
        }
        "check_run" => {
            let payload: wire::CheckRunPayload = hook.read()?;
            let branch = payload.check_run.check_suite.head_branch.unwrap_or_default();
            find_queued(&branch, || hook.repository(payload.repository))
        }
        "check_suite" => {
            let payload: wire::CheckSuitePayload = hook.read()?;
            let branch = payload.check_suite.head_branch.unwrap_or_default();
            find_queued(&branch, || hook.repository(payload.repository))
        }
        "workflow_run" => {
            let payload: wire::WorkflowRunPayload = hook.read()?;
            let branch = payload.workflow_run.head_branch.unwrap_or_default();
            find_queued(&branch, || hook.repository(payload.repository))
        }
        "push" => {
            let payload: wire::PushPayload = hook.read()?;
            let branch = payload.r#ref.strip_prefix("refs/heads/");
            branch
                .filter(|branch| !payload.deleted && !branch.starts_with(QUEUE_BRANCHES))
                .map(str::to_owned)
                .map(|branch| AffectedPullRequests::OfBase {
                    repository: hook.repository(payload.repository),
                    branch,
                })
        }
        _ => None,
    })
}

/// Pull request that a branch of the merge queue tests.
fn find_queued(branch: &str, repository: impl FnOnce() -> RepositoryName) -> Option<AffectedPullRequests> {
    let number = parse_queue_branch(branch)?;
    Some(AffectedPullRequests::One {
        repository: repository(),
        number,
        queue: QueueMembership::Reported,
    })
}

/// Parses the number in `gh-readonly-queue/release/1.2/pr-7-0123abc`.
fn parse_queue_branch(branch: &str) -> Option<u64> {
    let (_, entry) = branch.strip_prefix(QUEUE_BRANCHES)?.rsplit_once('/')?;
    let (number, _) = entry.strip_prefix("pr-")?.split_once('-')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use domain::{ServiceOrigin, Timestamp};
    use queue::WebhookDelivery;
    use serde_json::{Value, json};

    use super::*;

    const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

    fn find_affected_by(event: &str, mut body: Value) -> Option<AffectedPullRequests> {
        body["repository"] = json!({"full_name": "acme/shop"});
        body["sender"] = json!({"login": "rita", "id": 1});
        let delivery = WebhookDelivery {
            source: ServiceOrigin::GitHub(None),
            id: "d".to_owned(),
            event: event.to_owned(),
            received_at: Timestamp::default(),
            body: body.to_string().into(),
        };
        find_affected(&WebhookPayload::open(&delivery).unwrap()).unwrap()
    }

    fn build_affected_pull(queue: QueueMembership) -> Option<AffectedPullRequests> {
        Some(AffectedPullRequests::One {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            queue,
        })
    }

    #[test]
    fn queue_branch_names_its_pull_request() {
        for (branch, number) in [
            ("gh-readonly-queue/main/pr-7-0123abc", Some(7)),
            ("gh-readonly-queue/release/1.2/pr-12-0123abc", Some(12)),
            ("gh-readonly-queue/main/pr-x-0123abc", None),
            ("gh-readonly-queue/main/pr-7", None),
            ("gh-readonly-queue/pr-7-0123abc", None),
            ("fix/gh-readonly-queue/main/pr-7-0123abc", None),
            ("main", None),
        ] {
            assert_eq!(parse_queue_branch(branch), number, "{branch}");
        }
    }

    #[test]
    fn pull_request_actions_affect_queue() {
        let body = |action: &str| json!({"action": action, "pull_request": {"number": 7, "head": {"ref": "fix/ENG-1"}}});
        for (action, affected) in [
            ("enqueued", build_affected_pull(QueueMembership::Reported)),
            ("dequeued", build_affected_pull(QueueMembership::Reported)),
            (
                "auto_merge_enabled",
                build_affected_pull(QueueMembership::Unknown),
            ),
            ("ready_for_review", build_affected_pull(QueueMembership::Unknown)),
            ("labeled", None),
        ] {
            assert_eq!(
                find_affected_by("pull_request", body(action)),
                affected,
                "{action}"
            );
        }
    }

    #[test]
    fn checks_of_queue_affect_its_pull_request() {
        let branch = format!("gh-readonly-queue/main/pr-7-{SHA}");
        let suite = json!({"head_sha": SHA, "head_branch": branch});
        let run = json!({"name": "test", "head_sha": SHA, "check_suite": {"head_branch": branch}});
        for (event, body) in [
            ("check_run", json!({"action": "completed", "check_run": run})),
            (
                "check_suite",
                json!({"action": "completed", "check_suite": suite}),
            ),
            (
                "workflow_run",
                json!({"action": "completed", "workflow_run": suite}),
            ),
            (
                "merge_group",
                json!({"action": "checks_requested", "merge_group": {"head_ref": format!("refs/heads/{branch}")}}),
            ),
        ] {
            assert_eq!(
                find_affected_by(event, body),
                build_affected_pull(QueueMembership::Reported),
                "{event}"
            );
        }
        let other = json!({"action": "completed", "check_suite": {"head_sha": SHA, "head_branch": "main"}});
        assert_eq!(find_affected_by("check_suite", other), None);
    }

    #[test]
    fn push_affects_pull_requests_of_base() {
        let body = |name: &str, deleted: bool| json!({"ref": name, "after": SHA, "deleted": deleted});
        assert_eq!(
            find_affected_by("push", body("refs/heads/main", false)),
            Some(AffectedPullRequests::OfBase {
                repository: "acme/shop".parse().unwrap(),
                branch: "main".to_owned(),
            })
        );
        assert_eq!(find_affected_by("push", body("refs/heads/main", true)), None);
        assert_eq!(find_affected_by("push", body("refs/tags/v1", false)), None);
        assert_eq!(
            find_affected_by("push", body("refs/heads/gh-readonly-queue/main/pr-7-0", false)),
            None
        );
    }
}
