//! Table of all effects: each write meets each fault once, and exists once in the end.

use std::{collections::BTreeSet, path::Path, time::Duration};

use domain::{
    AnsweredQuestion, BranchPush, BranchRecord, ChecksConclusion, ChecksSummary, CitedAnswer, CommitId,
    DiscussionTask, Job, LineRemark, ObjectionWeight, OutboundAction, OutboundOutcome, OutboundRequest,
    OutdatedBase, PlannedIssue, PullRequestEnd, PullRequestEvent, PullRequestRef, ReactionKind,
    ReactionSubject, RepairEnd, ReviewOfChange, RunId, SkipReason, StopReason, ThreadDisposition,
    ThreadReply, TicketKey, UpdateWay, report,
};
use futures::future::join_all;
use serde_json::json;
use testkit::{
    ServiceFault,
    github::{READER_TOKEN, ReactedObject, RunConclusion, WRITER_LOGIN, WRITER_TOKEN},
    poll_until,
};

use crate::{
    build_work_started, draft_of,
    rig::{Rig, RigOptions},
};

const SHOP: &str = "acme/shop";
const BRANCH: &str = "fix/ENG-1-totals";
const DEADLINE: Duration = Duration::from_secs(30);
const PROJECT: (&str, u64) = ("acme", 3);
const RULES: &str = "  assign: agent\ntriage:\n  labels: [bug]\n  types: [Bug]\n  priorities: [High, Low]\n  \
                     priority_label: 'priority: {priority}'\n  project:\n    owner: acme\n    number: 3\n    fields:\n      Size: [S]\n\
                     issues:\n  assignee: agent\n  labels: [agent-ready]\n  most_planned: 3\n\
                     pull_request:\n  labels: [by-agent]\n";

/// Effects that this table plays.
const HERE: [&str; 29] = [
    "add_labels",
    "add_sub_issue",
    "assign",
    "back_to_draft",
    "call",
    "check_run",
    "close_discussion",
    "close_issue",
    "comment",
    "create_issue",
    "eyes",
    "label_pull_request",
    "link_issues",
    "link_threads",
    "mark_answer",
    "mark_ready_unchecked",
    "reply",
    "request_review",
    "rerun_checks",
    "research_thread",
    "resolve_thread",
    "rocket",
    "set_issue_type",
    "set_priority",
    "set_project_fields",
    "submit_review",
    "summary",
    "unassign",
    "update_base",
];

/// Effects that the story from start to merge plays.
const IN_THE_STORY: [&str; 5] = [
    "link_pull_request",
    "mark_ready",
    "open_pull_request",
    "push_branch",
    "transition",
];

/// Effects without an outbound write, and their actions.
const WITHOUT_A_WRITE: [(&str, &str); 6] = [
    (
        "begin_work",
        "writes into the ticket's own log, which is behind no fault of the outside",
    ),
    (
        "check_signing",
        "reads the permissions of the account and the rules of the branch",
    ),
    (
        "record_end",
        "writes into our own index, which is behind no fault of the outside",
    ),
    (
        "record_open",
        "writes into our own index, which is behind no fault of the outside",
    ),
    (
        "show_change",
        "reads the mirror, and keeps a text under the name of its content",
    ),
    ("show_files", "reads"),
];

/// Service that receives a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    GitHub,
    Jira,
}

/// Write that meets the fault: service, method, part of its path, and part of its body if the path is not unique.
type Write = (At, &'static str, String, &'static str);

/// Fault for a path; `None` if the service has no such fault.
type Strike = fn(&str, At) -> Option<ServiceFault>;

/// Final state: its description, the way to read it, and its expected value.
type End = (&'static str, Box<dyn Fn(&Rig) -> String + Send + Sync>, String);

/// Requests in order, the writes that fail, and the final states.
struct Case {
    effects: &'static [&'static str],
    writes: Vec<Write>,
    ticket: TicketKey,
    requests: Vec<OutboundAction>,
    ends: Vec<End>,
}

fn build_end(
    what: &'static str,
    look: impl Fn(&Rig) -> String + Send + Sync + 'static,
    expected: impl Into<String>,
) -> End {
    (what, Box::new(look), expected.into())
}

/// Objects that all cases use.
struct Stage<'a> {
    rig: &'a Rig,
    reader: ::github::GitHubReader,
    writer: ::github::GitHubWriter,
}

impl<'a> Stage<'a> {
    fn of(rig: &'a Rig) -> Self {
        let settings = |token: &str| ::github::Settings {
            api_url: rig.github.api_url(),
            git_url: rig.github.git_url(),
            token: Some(token.into()),
            ..::github::Settings::default()
        };
        Self {
            rig,
            reader: ::github::GitHubReader::new(&settings(READER_TOKEN)).unwrap(),
            writer: ::github::GitHubWriter::new(&settings(WRITER_TOKEN)).unwrap(),
        }
    }

    fn issue(&self, title: &str) -> (u64, TicketKey) {
        let number = self
            .rig
            .github
            .open_issue_as(SHOP, "rita", title, "It is.")
            .unwrap();
        (number, format!("github:{SHOP}#{number}").parse().unwrap())
    }

    fn jira_issue(&self) -> (String, TicketKey) {
        let key = self
            .rig
            .jira
            .create_issue("ENG", "Totals", "They are wrong.", "Bug", &[]);
        let ticket = TicketKey::jira(&key).unwrap();
        (key, ticket)
    }

    fn discussion(&self, category: &str) -> (u64, TicketKey) {
        let asked = ("Which rounding?", "Up or down?");
        let number = self
            .rig
            .github
            .start_discussion(SHOP, "rita", category, asked)
            .unwrap();
        (
            number,
            format!("github:{SHOP}/discussions/{number}").parse().unwrap(),
        )
    }

    /// Records a pull request as one of the ticket.
    async fn record(&self, ticket: &TicketKey, pull_request: &PullRequestRef, head: &CommitId) {
        let record = BranchRecord {
            repository: pull_request.repository.clone(),
            branch: pull_request.branch.clone(),
            run: RunId::new(ticket.clone(), 1),
            ticket: ticket.clone(),
            head: head.clone(),
            pull_request: Some(pull_request.clone()),
            signed: Vec::new(),
        };
        self.rig.queue.branches().put(&record, None).await.unwrap();
    }

    /// Creates a pull request of ours, and returns it with its head.
    async fn ours(&self, branch: &str, is_draft: bool) -> (PullRequestRef, CommitId) {
        let files = [("notes.md", "one\ntwo\n")];
        self.rig.github.commit(SHOP, branch, "work", &files).unwrap();
        let repository = SHOP.parse().unwrap();
        let opened = self
            .writer
            .pull_requests()
            .create_pull_request(&repository, branch, "main", branch, "Work.", is_draft)
            .await
            .unwrap();
        let (number, url) = (opened.number, opened.url);
        let branch = branch.to_owned();
        (
            PullRequestRef {
                repository,
                number,
                url,
                branch,
            },
            opened.head,
        )
    }

    /// Waits until GitHub's lists show all comments of a discussion.
    async fn wait_until_listed(&self, repository: &domain::RepositoryName, number: u64) {
        let is_listed = async || {
            let said = self.rig.github.discussion(SHOP, number).ok()?.comments.len();
            let listed = self
                .reader
                .discussions()
                .discussion(repository, number)
                .await
                .ok()?
                .comments
                .len();
            (listed == said).then_some(())
        };
        poll_until("everything is listed", DEADLINE, is_listed)
            .await
            .unwrap();
    }

    /// Creates a review that requests a change of one line, and returns the id of its comment.
    fn objection(&self, number: u64) -> u64 {
        let github = &self.rig.github;
        let comment = github.next_id() + 1;
        let judged = ("changes_requested", "Not yet.");
        let lines = [("notes.md", 1, "Why?")];
        github.review_lines(SHOP, number, "rita", judged, &lines).unwrap();
        comment
    }
}

fn build_label_cases(stage: &Stage<'_>) -> Vec<Case> {
    let request = || {
        OutboundAction::Triaged(report::TicketTriaged {
            repository: Some(SHOP.parse().unwrap()),
            labels: vec!["bug".to_owned()],
            ..report::TicketTriaged::default()
        })
    };
    let (number, ticket) = stage.issue("To be labeled");
    let at_github = Case {
        effects: &["add_labels"],
        writes: vec![(At::GitHub, "POST", format!("/issues/{number}/labels"), "")],
        ticket,
        requests: vec![request()],
        ends: vec![build_end(
            "labels of an issue",
            move |rig| rig.github.issue(SHOP, number).unwrap().labels.join(","),
            "bug",
        )],
    };
    let (key, ticket) = stage.jira_issue();
    let at_jira = Case {
        effects: &["add_labels"],
        writes: vec![(At::Jira, "PUT", format!("/issue/{key}"), "labels")],
        ticket,
        requests: vec![request()],
        ends: vec![build_end(
            "labels at Jira",
            move |rig| rig.jira.labels(&key).join(","),
            "bug",
        )],
    };
    vec![at_github, at_jira]
}

/// Choices of a triage in addition to labels.
fn build_choice_cases(stage: &Stage<'_>) -> Vec<Case> {
    let triaged = || report::TicketTriaged {
        repository: Some(SHOP.parse().unwrap()),
        priority: Some("High".to_owned()),
        ..report::TicketTriaged::default()
    };
    let (number, ticket) = stage.issue("To be chosen for");
    let at_github = Case {
        effects: &["set_issue_type", "set_priority", "set_project_fields"],
        writes: vec![
            (At::GitHub, "PATCH", format!("/issues/{number}"), "type"),
            (At::GitHub, "POST", format!("/issues/{number}/labels"), "priority"),
            (
                At::GitHub,
                "POST",
                "/graphql".to_owned(),
                "updateProjectV2ItemFieldValue",
            ),
        ],
        ticket,
        requests: vec![OutboundAction::Triaged(report::TicketTriaged {
            issue_type: Some("Bug".to_owned()),
            fields: [("Size".to_owned(), "S".to_owned())].into(),
            ..triaged()
        })],
        ends: vec![
            build_end(
                "type and priority of an issue",
                move |rig| {
                    let issue = rig.github.issue(SHOP, number).unwrap();
                    format!(
                        "{} {}",
                        issue.issue_type.unwrap_or_default(),
                        issue.labels.join(",")
                    )
                },
                "Bug priority: High",
            ),
            build_end(
                "fields of the project",
                move |rig| {
                    let values = rig.github.project_values(PROJECT, SHOP, number).unwrap();
                    format!("{:?}", values.unwrap_or_default())
                },
                r#"{"Size": "S"}"#,
            ),
        ],
    };
    let (key, ticket) = stage.jira_issue();
    let (other, _) = stage.jira_issue();
    let (looked, link) = (key.clone(), (key.clone(), "Duplicate".to_owned(), other.clone()));
    let at_jira = Case {
        effects: &["set_priority", "link_issues"],
        writes: vec![
            (At::Jira, "PUT", format!("/issue/{key}"), "priority"),
            (At::Jira, "POST", "/issueLink".to_owned(), ""),
        ],
        ticket,
        requests: vec![OutboundAction::Triaged(report::TicketTriaged {
            duplicate_of: Some(other),
            ..triaged()
        })],
        ends: vec![
            build_end(
                "priority at Jira",
                move |rig| rig.jira.priority(&looked).unwrap_or_default(),
                "High",
            ),
            build_end(
                "links of the issue",
                move |rig| {
                    rig.jira
                        .issue_links()
                        .iter()
                        .filter(|one| **one == link)
                        .count()
                        .to_string()
                },
                "1",
            ),
        ],
    };
    vec![at_github, at_jira]
}

/// Assignments and notifications of people.
async fn build_people_cases(stage: &Stage<'_>) -> Vec<Case> {
    let (number, ticket) = stage.issue("To be worked on");
    let assigned = Case {
        effects: &["assign"],
        writes: vec![(At::GitHub, "POST", format!("/issues/{number}/assignees"), "")],
        ticket,
        requests: vec![build_work_started()],
        ends: vec![build_end(
            "assignees",
            move |rig| rig.github.issue(SHOP, number).unwrap().assignees.join(","),
            "agent",
        )],
    };
    let (_, ticket) = stage.issue("With checks that stay red");
    let (pull_request, head) = stage.ours("fix/called", true).await;
    let number = pull_request.number;
    let called = Case {
        effects: &["call"],
        writes: vec![(At::GitHub, "POST", format!("/issues/{number}/comments"), "")],
        ticket,
        requests: vec![OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary {
                unrepaired: Some(RepairEnd::PerHead),
                asked: vec!["grace".to_owned()],
                ..ChecksSummary::new(pull_request, head, ChecksConclusion::Failure)
            },
        ))],
        ends: vec![build_end(
            "calls on the pull request",
            move |rig| {
                let said = rig.github.comments(SHOP, number).into_iter();
                said.filter(|said| said.body.contains("@grace"))
                    .count()
                    .to_string()
            },
            "1",
        )],
    };
    vec![assigned, called]
}

/// The pull request of the rig's ticket: its labels and its check run.
fn build_opened_case(stage: &Stage<'_>, push: &BranchPush) -> Case {
    let head = push.head.to_string();
    Case {
        effects: &["label_pull_request", "check_run"],
        writes: vec![
            (At::GitHub, "POST", "/labels".to_owned(), "by-agent"),
            (At::GitHub, "POST", "/check-runs".to_owned(), ""),
            (At::GitHub, "PATCH", "/check-runs/".to_owned(), ""),
        ],
        ticket: stage.rig.ticket.clone(),
        requests: vec![
            OutboundAction::PushBranch(push.clone()),
            draft_of(BRANCH),
            OutboundAction::RetryScheduled(report::RetryScheduled {
                job: Job::Implement,
                reason: StopReason::NoPlan,
                attempt: 1,
                most: 2,
                due: bootstrap::read_wall_clock(),
            }),
            // Only its repository matters here, because the rounds contain the pull request.
            OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
                PullRequestRef {
                    repository: SHOP.parse().unwrap(),
                    number: 1,
                    url: "https://github.example/acme/shop/pull/1".to_owned(),
                    branch: BRANCH.to_owned(),
                },
                push.head.clone(),
                ChecksConclusion::Failure,
            ))),
        ],
        ends: vec![
            build_end(
                "labels of the pull request",
                |rig| {
                    let opened = rig.github.pull_requests(SHOP);
                    let ours = opened.iter().filter(|pull| pull.head == BRANCH);
                    ours.flat_map(|pull| pull.labels.clone())
                        .collect::<Vec<_>>()
                        .join(",")
                },
                "by-agent",
            ),
            build_end(
                "check runs",
                move |rig| rig.github.check_runs(SHOP, &head).unwrap().join(","),
                "Journeyman",
            ),
        ],
    }
}

fn build_plan_case(stage: &Stage<'_>) -> Case {
    let (_, ticket) = stage.issue("To be planned");
    let issue = |title: &str| PlannedIssue {
        title: title.to_owned(),
        text: "What it needs.".to_owned(),
        checklist: Vec::new(),
    };
    Case {
        effects: &["create_issue", "add_sub_issue"],
        writes: vec![
            (At::GitHub, "POST", "/issues".to_owned(), "The whole"),
            (At::GitHub, "POST", "/issues".to_owned(), "The part"),
            (At::GitHub, "POST", "/sub_issues".to_owned(), ""),
        ],
        ticket,
        requests: vec![OutboundAction::OpenIssues(report::OpenIssues {
            repository: SHOP.parse().unwrap(),
            parent: None,
            issues: vec![issue("The whole"), issue("The part")],
        })],
        ends: vec![
            build_end(
                "planned issues",
                |rig| {
                    let issues = rig.github.issues(SHOP).into_iter();
                    let titles = issues
                        .map(|issue| issue.title)
                        .filter(|title| title.starts_with("The "));
                    titles.collect::<Vec<_>>().join(",")
                },
                "The whole,The part",
            ),
            build_end(
                "parts",
                |rig| {
                    let issues = rig.github.issues(SHOP);
                    let of = |title: &str| issues.iter().find(|issue| issue.title == title).unwrap().number;
                    let parts = rig.github.sub_issues(SHOP, of("The whole")).unwrap();
                    (parts == [of("The part")]).to_string()
                },
                "true",
            ),
        ],
    }
}

fn build_closing_cases(stage: &Stage<'_>) -> Vec<Case> {
    let (number, ticket) = stage.issue("To be closed");
    let closed = Case {
        effects: &["close_issue"],
        writes: vec![(At::GitHub, "PATCH", format!("/issues/{number}"), "closed")],
        ticket,
        requests: vec![OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
            pull_request: PullRequestRef {
                repository: SHOP.parse().unwrap(),
                number: 9_000,
                url: "https://github.example/acme/shop/pull/9000".to_owned(),
                branch: "fix/other".to_owned(),
            },
            by: "rita".to_owned(),
            moved_to: None,
        }))],
        ends: vec![build_end(
            "a closed issue",
            move |rig| {
                rig.github
                    .issue(SHOP, number)
                    .unwrap()
                    .closed_as
                    .unwrap_or_default()
            },
            "completed",
        )],
    };
    let stopped = || {
        OutboundAction::RunStopped(report::RunStopped {
            job: Job::Implement,
            reason: StopReason::ModelFailed {
                detail: "status 529".to_owned(),
            },
            pull_request: None,
            branch: None,
        })
    };
    let (number, ticket) = stage.issue("To be given back");
    stage
        .rig
        .github
        .assign_issue(SHOP, number, "agent", "rita")
        .unwrap();
    stage
        .rig
        .github
        .label_issue(SHOP, number, "agent-ready", "rita")
        .unwrap();
    let left = Case {
        effects: &["unassign"],
        writes: vec![
            (At::GitHub, "DELETE", format!("/issues/{number}/assignees"), ""),
            (At::GitHub, "DELETE", format!("/issues/{number}/labels/"), ""),
        ],
        ticket,
        requests: vec![stopped()],
        ends: vec![build_end(
            "who has the issue",
            move |rig| {
                let issue = rig.github.issue(SHOP, number).unwrap();
                format!("{:?} {:?}", issue.assignees, issue.labels)
            },
            "[] []",
        )],
    };
    let (key, ticket) = stage.jira_issue();
    stage.rig.jira.assign(&key, "agent").unwrap();
    let left_at_jira = Case {
        effects: &["unassign"],
        writes: vec![(At::Jira, "PUT", format!("/issue/{key}/assignee"), "")],
        ticket,
        requests: vec![stopped()],
        ends: vec![build_end(
            "who has it at Jira",
            move |rig| format!("{:?}", rig.jira.assignee(&key)),
            "None",
        )],
    };
    vec![closed, left, left_at_jira]
}

async fn build_rerun_case(stage: &Stage<'_>) -> Case {
    let (_, ticket) = stage.issue("With a runner that broke");
    let (pull_request, head) = stage.ours("fix/rerun", true).await;
    let red = [(
        "test",
        RunConclusion::Failure,
        "The runner has lost the connection.",
    )];
    stage.rig.github.run_checks(SHOP, head.as_str(), &red).unwrap();
    let checks = stage
        .reader
        .checks()
        .checks(&pull_request.repository, &head)
        .await
        .unwrap();
    let runs = checks
        .iter()
        .filter_map(|check| ::github::parse_run_id(&check.url));
    Case {
        effects: &["rerun_checks"],
        writes: vec![(At::GitHub, "POST", "/rerun-failed-jobs".to_owned(), "")],
        ticket,
        requests: vec![OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary {
                rerun: runs.collect(),
                ..ChecksSummary::new(pull_request, head, ChecksConclusion::Failure)
            },
        ))],
        ends: vec![build_end(
            "jobs that ran again",
            |rig| rig.github.reruns(SHOP).unwrap().to_string(),
            "1",
        )],
    }
}

/// A review by our account.
async fn build_review_case(stage: &Stage<'_>) -> Case {
    let github = &stage.rig.github;
    github
        .commit(SHOP, "theirs", "work", &[("notes.md", "one\ntwo\n")])
        .unwrap();
    let number = github
        .open_pull_request_as(SHOP, "ann", "theirs", "Notes", "Work.")
        .unwrap();
    let opened = stage
        .reader
        .pull_requests()
        .pull_request(&SHOP.parse().unwrap(), number)
        .await
        .unwrap();
    let remark = LineRemark {
        path: "notes.md".to_owned(),
        start_line: None,
        line: 2,
        trigger: "A second line".to_owned(),
        why: "it says nothing.".to_owned(),
        weight: ObjectionWeight::Advice,
        suggestion: None,
    };
    Case {
        effects: &["submit_review"],
        writes: vec![(At::GitHub, "POST", format!("/pulls/{number}/reviews"), "")],
        ticket: format!("github:{SHOP}#{number}").parse().unwrap(),
        requests: vec![OutboundAction::PullRequestReviewed(report::PullRequestReviewed {
            pull_request: PullRequestRef {
                repository: SHOP.parse().unwrap(),
                number,
                url: opened.url,
                branch: "theirs".to_owned(),
            },
            head: opened.head,
            review: ReviewOfChange {
                summary: "One remark.".to_owned(),
                comments: vec![remark],
                ..ReviewOfChange::default()
            },
        })],
        ends: vec![build_end(
            "our reviews and their comments",
            move |rig| {
                let reviews = rig.github.reviews(SHOP, number).unwrap().into_iter();
                let ours = reviews.filter(|review| review.author == WRITER_LOGIN);
                let counts = ours.map(|review| review.comments.len().to_string());
                counts.collect::<Vec<_>>().join(",")
            },
            "1",
        )],
    }
}

/// Effects after a review by others.
async fn build_addressed_cases(stage: &Stage<'_>) -> Vec<Case> {
    let (_, ticket) = stage.issue("With a review that was worked on");
    let (changed, head) = stage.ours("fix/changed", false).await;
    let (number, comment) = (changed.number, stage.objection(changed.number));
    stage.record(&ticket, &changed, &head).await;
    let thread = json!({"id": comment, "path": "notes.md", "line": 1, "text": "Why?"});
    let round = json!({"type": "review", "pull_request": changed, "head": stage.rig.github.branches(SHOP)["main"],
        "id": 1, "author": "rita", "asks_for_changes": true, "body": "Not yet.", "threads": [thread]});
    stage.rig.ask_for(&ticket, "address_review", round).await;
    let reply = |disposition| ThreadReply {
        id: comment,
        disposition,
        reply: "Done as you say.".to_owned(),
    };
    let of = |pull_request, commit, replies| {
        OutboundAction::ReviewAddressed(report::ReviewAddressed {
            pull_request,
            reviewer: "rita".to_owned(),
            commit,
            summary: "What was asked for.".to_owned(),
            replies,
            left: None,
            deciders: Vec::new(),
        })
    };
    let worked_on = Case {
        effects: &["back_to_draft", "reply", "resolve_thread"],
        writes: vec![
            (
                At::GitHub,
                "POST",
                "/graphql".to_owned(),
                "convertPullRequestToDraft",
            ),
            (At::GitHub, "POST", "/replies".to_owned(), ""),
            (At::GitHub, "POST", "/graphql".to_owned(), "resolveReviewThread"),
        ],
        ticket,
        requests: vec![of(changed, Some(head), vec![reply(ThreadDisposition::Changed)])],
        ends: vec![
            build_end(
                "a draft",
                |rig| {
                    let pulls = rig.github.pull_requests(SHOP);
                    let changed = pulls.iter().find(|pull| pull.head == "fix/changed").unwrap();
                    changed.draft.to_string()
                },
                "true",
            ),
            build_end(
                "replies",
                move |rig| {
                    rig.github
                        .replies(SHOP, number, comment)
                        .unwrap()
                        .len()
                        .to_string()
                },
                "1",
            ),
            build_end(
                "resolved threads",
                move |rig| (rig.github.resolved(SHOP, number).unwrap() == [comment]).to_string(),
                "true",
            ),
        ],
    };
    let (_, ticket) = stage.issue("With a review that was answered");
    let (answered, _) = stage.ours("fix/answered", false).await;
    let number = answered.number;
    stage
        .rig
        .github
        .review(SHOP, number, "rita", "changes_requested", "Why?")
        .unwrap();
    let asked_again = Case {
        effects: &["request_review"],
        writes: vec![(
            At::GitHub,
            "POST",
            format!("/pulls/{number}/requested_reviewers"),
            "",
        )],
        ticket,
        requests: vec![of(answered, None, Vec::new())],
        ends: vec![build_end(
            "whose review is asked for",
            move |rig| {
                let pulls = rig.github.pull_requests(SHOP);
                let answered = pulls.iter().find(|pull| pull.number == number).unwrap();
                answered.requested_reviewers.join(",")
            },
            "rita",
        )],
    };
    vec![worked_on, asked_again]
}

async fn build_unchecked_case(stage: &Stage<'_>) -> Case {
    let (_, ticket) = stage.issue("Without checks");
    let (pull_request, head) = stage.ours("fix/unchecked", true).await;
    stage.record(&ticket, &pull_request, &head).await;
    let number = pull_request.number;
    Case {
        effects: &["mark_ready_unchecked"],
        writes: vec![(
            At::GitHub,
            "POST",
            "/graphql".to_owned(),
            "markPullRequestReadyForReview",
        )],
        ticket,
        requests: vec![OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary::new(pull_request, head, ChecksConclusion::Absent),
        ))],
        ends: vec![build_end(
            "a draft",
            move |rig| {
                let pulls = rig.github.pull_requests(SHOP);
                pulls
                    .iter()
                    .find(|pull| pull.number == number)
                    .unwrap()
                    .draft
                    .to_string()
            },
            "false",
        )],
    }
}

async fn build_outdated_case(stage: &Stage<'_>) -> Case {
    let (_, ticket) = stage.issue("With a base that moved on");
    let (pull_request, head) = stage.ours("fix/outdated", false).await;
    let github = &stage.rig.github;
    github
        .commit(SHOP, "main", "Move on", &[("moved.md", "on\n")])
        .unwrap();
    stage.record(&ticket, &pull_request, &head).await;
    let number = pull_request.number;
    Case {
        effects: &["update_base"],
        writes: vec![(
            At::GitHub,
            "POST",
            "/graphql".to_owned(),
            "updatePullRequestBranch",
        )],
        ticket,
        requests: vec![OutboundAction::from(PullRequestEvent::Outdated(OutdatedBase {
            pull_request,
            head,
            base_branch: "main".to_owned(),
            way: UpdateWay::Merge,
        }))],
        ends: vec![build_end(
            "merges of the base",
            move |rig| {
                let subjects = rig.github.subjects(SHOP, number).unwrap();
                let merges = subjects
                    .iter()
                    .filter(|subject| subject.starts_with("Merge branch"));
                merges.count().to_string()
            },
            "1",
        )],
    }
}

fn build_reaction_cases(stage: &Stage<'_>) -> Vec<Case> {
    let react = |to, reaction| OutboundAction::React(report::ReactionRequest { to, reaction });
    let (number, ticket) = stage.issue("With an order");
    let id = stage
        .rig
        .github
        .comment_as(SHOP, number, "rita", "/stop")
        .unwrap();
    let seen = Case {
        effects: &["eyes"],
        writes: vec![(At::GitHub, "POST", format!("/issues/comments/{id}/reactions"), "")],
        ticket,
        requests: vec![react(
            ReactionSubject::Comment {
                repository: SHOP.parse().unwrap(),
                id,
            },
            ReactionKind::Eyes,
        )],
        ends: vec![build_end(
            "reactions to a comment",
            move |rig| rig.github.reactions(SHOP, ReactedObject::Comment(id)).join(","),
            "eyes",
        )],
    };
    let (number, ticket) = stage.discussion("Ideas");
    let done = Case {
        effects: &["rocket"],
        writes: vec![(At::GitHub, "POST", "/graphql".to_owned(), "addReaction")],
        ticket,
        requests: vec![react(
            ReactionSubject::discussion(&SHOP.parse().unwrap(), number),
            ReactionKind::Rocket,
        )],
        ends: vec![build_end(
            "reactions to a discussion",
            move |rig| {
                rig.github
                    .reactions(SHOP, ReactedObject::Discussion(number))
                    .join(",")
            },
            "rocket",
        )],
    };
    vec![seen, done]
}

/// The status comment at GitHub.
fn build_status_case(stage: &Stage<'_>) -> Case {
    let (number, ticket) = stage.issue("To be reported");
    Case {
        effects: &["comment"],
        writes: vec![
            (At::GitHub, "POST", format!("/issues/{number}/comments"), ""),
            (
                At::GitHub,
                "PATCH",
                "/issues/comments/".to_owned(),
                "later-please",
            ),
        ],
        ticket,
        requests: vec![
            build_work_started(),
            OutboundAction::Skipped(SkipReason::Label {
                label: "later-please".into(),
            }),
        ],
        ends: vec![build_end(
            "status comments",
            move |rig| {
                let comments = rig.github.comments(SHOP, number).into_iter();
                let says = |body: &str| body.contains("later-please") && body.contains("has started");
                comments
                    .map(|comment| says(&comment.body).to_string())
                    .collect::<Vec<_>>()
                    .join(",")
            },
            "true",
        )],
    }
}

fn build_discussion_cases(stage: &Stage<'_>) -> Vec<Case> {
    let request = |task, answer: &str| {
        OutboundAction::Discussed(report::DiscussionResult {
            repository: SHOP.parse().unwrap(),
            task,
            answer: CitedAnswer {
                answer: answer.to_owned(),
                citations: Vec::new(),
                needs_change: false,
                questions: Vec::new(),
            },
        })
    };
    let ours = |rig: &Rig, number| {
        let said = rig.github.discussion(SHOP, number).unwrap().comments;
        let ours = said.into_iter().filter(|said| said.author == WRITER_LOGIN);
        ours.collect::<Vec<_>>()
    };
    let (number, ticket) = stage.discussion("General");
    let summed_up = Case {
        effects: &["summary"],
        writes: vec![
            (At::GitHub, "POST", "/graphql".to_owned(), "The first summary"),
            (At::GitHub, "POST", "/graphql".to_owned(), "The second summary"),
        ],
        ticket,
        requests: vec![
            request(DiscussionTask::Summarize, "The first summary"),
            request(DiscussionTask::Summarize, "The second summary"),
        ],
        ends: vec![build_end(
            "summaries",
            move |rig| {
                let says = ours(rig, number).into_iter();
                says.map(|said| said.body.contains("The second summary").to_string())
                    .collect::<Vec<_>>()
                    .join(",")
            },
            "true",
        )],
    };
    let (number, ticket) = stage.discussion("Q&A");
    let over = Case {
        effects: &["comment", "mark_answer", "close_discussion"],
        writes: vec![
            (At::GitHub, "POST", "/graphql".to_owned(), "The last word"),
            (
                At::GitHub,
                "POST",
                "/graphql".to_owned(),
                "markDiscussionCommentAsAnswer",
            ),
            (At::GitHub, "POST", "/graphql".to_owned(), "closeDiscussion"),
        ],
        ticket,
        requests: vec![request(DiscussionTask::Complete, "The last word")],
        ends: vec![
            build_end(
                "last words, and whether it is the answer",
                move |rig| {
                    let answer = rig.github.discussion(SHOP, number).unwrap().answer;
                    let ours = ours(rig, number).into_iter();
                    ours.map(|said| (Some(said.id) == answer).to_string())
                        .collect::<Vec<_>>()
                        .join(",")
                },
                "true",
            ),
            build_end(
                "how the discussion is closed",
                move |rig| {
                    rig.github
                        .discussion(SHOP, number)
                        .unwrap()
                        .closed_as
                        .unwrap_or_default()
                },
                "resolved",
            ),
        ],
    };
    vec![summed_up, over, build_research_case(stage)]
}

/// A research with a thread for its one question, which its first comment links.
fn build_research_case(stage: &Stage<'_>) -> Case {
    let (number, ticket) = stage.discussion("General");
    let ours = move |rig: &Rig| {
        let said = rig.github.discussion(SHOP, number).unwrap().comments;
        let ours = said.into_iter().filter(|said| said.author == WRITER_LOGIN);
        ours.map(|said| said.body).collect::<Vec<_>>()
    };
    Case {
        effects: &["comment", "research_thread", "link_threads"],
        writes: vec![
            (At::GitHub, "POST", "/graphql".to_owned(), "What was found"),
            (At::GitHub, "POST", "/graphql".to_owned(), "It shards by tenant"),
            (At::GitHub, "POST", "/graphql".to_owned(), "discussioncomment-"),
        ],
        ticket,
        requests: vec![OutboundAction::Discussed(report::DiscussionResult {
            task: DiscussionTask::Research,
            repository: SHOP.parse().unwrap(),
            answer: CitedAnswer {
                answer: "What was found".to_owned(),
                citations: Vec::new(),
                needs_change: false,
                questions: vec![AnsweredQuestion {
                    question: "How does it scale?".to_owned(),
                    answer: "It shards by tenant".to_owned(),
                    citations: Vec::new(),
                }],
            },
        })],
        ends: vec![
            build_end(
                "comments of a research",
                move |rig| ours(rig).len().to_string(),
                "2",
            ),
            build_end(
                "whether the first one links the thread",
                move |rig| {
                    let all = ours(rig);
                    all.iter()
                        .filter(|said| said.contains("discussioncomment-"))
                        .count()
                        .to_string()
                },
                "1",
            ),
        ],
    }
}

async fn build_all_cases(stage: &Stage<'_>, push: &BranchPush) -> Vec<Case> {
    let mut cases = build_label_cases(stage);
    cases.extend(build_choice_cases(stage));
    cases.extend(build_people_cases(stage).await);
    cases.push(build_opened_case(stage, push));
    cases.push(build_plan_case(stage));
    cases.extend(build_closing_cases(stage));
    cases.push(build_rerun_case(stage).await);
    cases.push(build_review_case(stage).await);
    cases.extend(build_addressed_cases(stage).await);
    cases.push(build_unchecked_case(stage).await);
    cases.push(build_outdated_case(stage).await);
    cases.extend(build_reaction_cases(stage));
    cases.push(build_status_case(stage));
    cases.extend(build_discussion_cases(stage));
    cases
}

impl Case {
    /// Sends all requests in order. A second summary is requested only after the first one is listed.
    async fn play(&self, rig: &Rig, stage: &Stage<'_>, fault: &str) {
        for (request, position) in self.requests.iter().zip((2..).step_by(2)) {
            let run = RunId::new(self.ticket.clone(), 1);
            let report = OutboundRequest {
                id: run.call(position).into(),
                ticket: self.ticket.clone(),
                run: Some(run),
                progress: Some(report::JobProgress {
                    clone_percent: None,
                    job: Job::Implement,
                    phase: None,
                    cost: None,
                }),
                ..rig.report(position, request.clone())
            };
            if self.ticket != rig.ticket {
                rig.remember(&self.ticket, request).await;
            }
            let outcome = rig.settled(&report).await;
            assert!(
                matches!(outcome, OutboundOutcome::Done(_)),
                "{fault}: {:?}: {outcome:?}",
                self.effects
            );
            if let TicketKey::Discussion { repository, number } = &self.ticket {
                stage.wait_until_listed(repository, *number).await;
            }
        }
    }

    async fn assert_once(&self, rig: &Rig, fault: &str) {
        for (what, look, expected) in &self.ends {
            let is_so = async || (look(rig) == *expected).then_some(());
            let seen = poll_until(what, DEADLINE, is_so).await;
            assert!(seen.is_ok(), "{fault}: {what}: {} and not {expected}", look(rig));
        }
    }
}

/// Plays all cases; each write meets the fault once.
async fn all_effects_under(fault: &str, strike: Strike, list_lag: Duration) {
    let mut rig = Rig::start_with(RigOptions {
        slots: 24,
        agent: RULES,
        as_app: true,
        has_project_token: true,
        ..RigOptions::default()
    })
    .await;
    rig.github
        .create_project(PROJECT.0, PROJECT.1, &[("Size", "SINGLE_SELECT", &["S"])]);
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let stage = Stage::of(&rig);
    let cases = build_all_cases(&stage, &push).await;
    let played: BTreeSet<&str> = cases.iter().flat_map(|case| case.effects).copied().collect();
    assert_eq!(played, BTreeSet::from(HERE), "what the table says that it plays");
    rig.github.set_list_lag(list_lag);
    rig.jira.set_list_lag(list_lag);
    for (at, method, path, body) in cases.iter().flat_map(|case| &case.writes) {
        let Some(fault) = strike(path, *at).map(|fault| fault.on(method).with(body)) else {
            continue;
        };
        match at {
            At::GitHub => rig.github.fail_next(fault),
            At::Jira => rig.jira.fail_next(fault),
        }
    }
    join_all(cases.iter().map(|case| case.play(&rig, &stage, fault))).await;
    let left = (rig.github.faults_left(), rig.jira.faults_left());
    assert_eq!(left, (0, 0), "{fault}: every write met its fault");
    for case in &cases {
        case.assert_once(&rig, fault).await;
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_exist_once_after_502_without_effect() {
    let strike: Strike = |path, _| Some(ServiceFault::new(path, 1, 502));
    all_effects_under("502 before", strike, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_exist_once_after_502_with_effect() {
    let strike: Strike = |path, _| Some(ServiceFault::new(path, 1, 502).after_effect());
    all_effects_under("502 after", strike, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_exist_once_after_truncated_answer() {
    let strike: Strike = |path, _| Some(ServiceFault::new(path, 1, 200).after_effect().cut());
    all_effects_under("cut after", strike, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_exist_once_after_named_rate_limit() {
    let strike: Strike = |path, _| Some(ServiceFault::new(path, 1, 429).retry_after(1));
    all_effects_under("rate limit", strike, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_exist_once_after_secondary_rate_limit() {
    // Jira never limits by 403.
    let strike: Strike =
        |path, at| (at == At::GitHub).then(|| ServiceFault::new(path, 1, 403).retry_after(1));
    all_effects_under("secondary rate limit", strike, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_exist_once_with_lagging_lists() {
    let strike: Strike = |path, _| Some(ServiceFault::new(path, 1, 502).after_effect());
    all_effects_under("502 after, lists lag", strike, Duration::from_millis(1500)).await;
}

/// Returns the names of all effects from their source files.
fn list_effect_names() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/effects");
    let mut names = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for body in text.split("fn name(&self) -> &'static str {").skip(1) {
            match body.trim_start().split('"').collect::<Vec<_>>()[..] {
                ["", name, ..] => drop(names.insert(name.to_owned())),
                _ if body.trim_start().starts_with("self.reaction.as_str()") => {
                    names.extend(
                        [ReactionKind::Eyes, ReactionKind::Rocket].map(|one| one.as_str().to_owned()),
                    );
                }
                // Effects of any output are planned by one name.
                _ if body.trim_start().starts_with("OutboundEffect::name(self)") => {}
                _ => panic!("a name that is no literal: {}", &body[..60]),
            }
        }
    }
    names
}

#[test]
fn every_effect_is_in_a_fault_table() {
    let excused = WITHOUT_A_WRITE.map(|(name, why)| {
        assert!(!why.is_empty());
        name
    });
    let listed: Vec<&str> = [&HERE[..], &IN_THE_STORY, &excused].concat();
    let unique: BTreeSet<String> = listed.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(unique.len(), listed.len(), "each is listed once");
    assert_eq!(unique, list_effect_names());
    assert_eq!(
        failpoint::EFFECTS
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>(),
        list_effect_names(),
        "the list that the crash matrix is held to"
    );
}

#[test]
fn effects_page_has_row_for_every_effect() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/effects.md");
    let page = std::fs::read_to_string(page).unwrap();
    let first_cells = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let notice: BTreeSet<String> = first_cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    assert_eq!(notice, list_effect_names());
}
