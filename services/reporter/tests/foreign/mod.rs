//! Tests of reports with foreign targets, as a compromised planner would send them: nothing is written.

use domain::{
    AwaitedReview, ChecksConclusion, ChecksSummary, CitedAnswer, CommentQuestion, CommitId, OutboundAction,
    OutboundOutcome, PlannedIssue, PullRequestEnd, PullRequestEvent, PullRequestHead, PullRequestRef,
    ReactionKind, ReactionSubject, RepairEnd, ReviewOfChange, ThreadDisposition, ThreadReply, TicketCost,
    TicketKey, report,
};

use crate::rig::Rig;

const SHOP: &str = "acme/shop";

/// Creates a pull request of a person. Returns it with its head and a comment on one of its lines.
fn open_foreign_change(rig: &Rig) -> (PullRequestRef, CommitId, u64) {
    let files = [("notes.md", "one\ntwo\n")];
    let head = rig.github.commit(SHOP, "theirs", "work", &files).unwrap();
    let opened = rig
        .github
        .open_pull_request_as(SHOP, "ann", "theirs", "Theirs", "Work.");
    let number = opened.unwrap();
    let comment = rig.github.next_id() + 1;
    let lines = [("notes.md", 1, "Why?")];
    let judged = ("changes_requested", "Not yet.");
    rig.github
        .review_lines(SHOP, number, "rita", judged, &lines)
        .unwrap();
    let named = PullRequestRef {
        repository: SHOP.parse().unwrap(),
        number,
        url: format!("https://github.example/acme/shop/pull/{number}"),
        branch: "theirs".to_owned(),
    };
    (named, head.parse().unwrap(), comment)
}

/// All kinds of reports with a pull request, thread, comment or repository, each with a foreign one.
fn build_foreign_reports(theirs: &PullRequestRef, head: &CommitId, comment: u64) -> Vec<OutboundAction> {
    let (pull_request, repository) = (theirs.clone(), theirs.repository.clone());
    let by = "ann".to_owned();
    let question = |pull_request, comment| CommentQuestion {
        author: "rita".to_owned(),
        text: "Why?".to_owned(),
        pull_request,
        head: None,
        comment,
        work: None,
    };
    let answered = |question| {
        OutboundAction::QuestionAnswered(report::QuestionAnswered {
            repository: repository.clone(),
            question,
            answer: CitedAnswer {
                answer: "Because.".to_owned(),
                ..CitedAnswer::default()
            },
        })
    };
    let react = |to| {
        OutboundAction::React(report::ReactionRequest {
            to,
            reaction: ReactionKind::Rocket,
        })
    };
    let issues = |repository: &str, parent| {
        OutboundAction::OpenIssues(report::OpenIssues {
            repository: repository.parse().unwrap(),
            parent,
            issues: vec![PlannedIssue {
                title: "A part".to_owned(),
                text: "Of it.".to_owned(),
                checklist: Vec::new(),
            }],
        })
    };
    let other_discussion = ReactionSubject::Discussion {
        repository: repository.clone(),
        number: 99,
        comment: Some("DC_1".to_owned()),
    };
    vec![
        OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
            pull_request.clone(),
            head.clone(),
            ChecksConclusion::Success,
        ))),
        OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
            pull_request.clone(),
            head.clone(),
            ChecksConclusion::Absent,
        ))),
        OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary {
            unrepaired: Some(RepairEnd::PerHead),
            asked: vec!["grace".to_owned()],
            ..ChecksSummary::new(pull_request.clone(), head.clone(), ChecksConclusion::Failure)
        })),
        OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary {
            rerun: vec![1],
            ..ChecksSummary::new(pull_request.clone(), head.clone(), ChecksConclusion::Failure)
        })),
        OutboundAction::ChecksRepaired(report::ChecksRepaired {
            pull_request: pull_request.clone(),
            commit: Some(head.clone()),
            strategy: report::RepairStrategy::Model,
            by: Vec::new(),
            summary: "Mended.".to_owned(),
        }),
        OutboundAction::ReviewAddressed(report::ReviewAddressed {
            pull_request: pull_request.clone(),
            reviewer: "rita".to_owned(),
            commit: Some(head.clone()),
            summary: "Done.".to_owned(),
            replies: vec![ThreadReply {
                id: comment,
                disposition: ThreadDisposition::Changed,
                reply: "Done.".to_owned(),
            }],
            left: None,
            deciders: Vec::new(),
        }),
        OutboundAction::PullRequestReviewed(report::PullRequestReviewed {
            pull_request: pull_request.clone(),
            head: head.clone(),
            review: ReviewOfChange {
                summary: "Change it.".to_owned(),
                ..ReviewOfChange::default()
            },
        }),
        OutboundAction::from(PullRequestEvent::ReviewAwaited(AwaitedReview {
            pull_request: pull_request.clone(),
            reviewers: vec!["rita".to_owned()],
            since: bootstrap::read_wall_clock(),
        })),
        OutboundAction::from(PullRequestEvent::PushedByOthers(PullRequestHead {
            pull_request: pull_request.clone(),
            head: head.clone(),
            by: by.clone(),
        })),
        OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
            pull_request: pull_request.clone(),
            by: by.clone(),
            moved_to: None,
        })),
        OutboundAction::from(PullRequestEvent::Closed(PullRequestEnd {
            pull_request: pull_request.clone(),
            by: by.clone(),
            moved_to: None,
        })),
        OutboundAction::from(PullRequestEvent::Reopened(PullRequestHead {
            pull_request: pull_request.clone(),
            head: head.clone(),
            by,
        })),
        OutboundAction::CostTold(report::CostReply {
            on: Some(pull_request.clone()),
            cost: TicketCost::default(),
        }),
        OutboundAction::HelpTold(report::HelpReply {
            on: Some(pull_request.clone()),
            is_review: false,
            meant: None,
        }),
        answered(question(Some(pull_request), None)),
        answered(question(None, Some(other_discussion))),
        react(ReactionSubject::issue(&repository, theirs.number)),
        react(ReactionSubject::LineComment {
            repository: repository.clone(),
            id: comment,
        }),
        react(ReactionSubject::Comment {
            repository: repository.clone(),
            id: comment,
        }),
        react(ReactionSubject::discussion(&repository, 99)),
        issues("acme/other", None),
        issues(SHOP, Some(theirs.number)),
    ]
}

fn list_writes(rig: &Rig) -> Vec<String> {
    let reads = ["GET", "HEAD"];
    let at_github = rig.github.requests().into_iter().chain(rig.jira.requests());
    at_github
        .filter(|request| !reads.contains(&request.method.as_str()))
        // GraphQL reads use POST, too.
        .filter(|request| {
            let query = request.body.as_ref().map(ToString::to_string).unwrap_or_default();
            !request.path.contains("/graphql") || query.contains("mutation")
        })
        .map(|request| format!("{} {}", request.method, request.path))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_about_foreign_pull_requests_write_nothing() {
    let mut rig = Rig::start().await;
    let (theirs, head, comment) = open_foreign_change(&rig);
    for (request, position) in build_foreign_reports(&theirs, &head, comment)
        .into_iter()
        .zip((2..).step_by(2))
    {
        let outcome = rig.settled(&rig.report(position, request.clone())).await;
        assert!(
            matches!(outcome, OutboundOutcome::Refused(_)),
            "{}: {outcome:?}",
            request.summary()
        );
        assert_eq!(list_writes(&rig), Vec::<String>::new(), "{}", request.summary());
    }
    let indexed = rig
        .queue
        .pull_requests()
        .get(&theirs.repository, theirs.number)
        .await;
    assert_eq!(indexed.unwrap(), None, "nor is it taken into our records");
    rig.stop().await;
}

/// Neither rules nor records nor triggers contain the ticket.
#[tokio::test(flavor = "multi_thread")]
async fn reports_about_unknown_tickets_write_nothing() {
    let mut rig = Rig::start().await;
    let key = rig
        .jira
        .create_issue("OPS", "Somebody else's", "Of another project.", "Bug", &[]);
    let ticket = TicketKey::jira(&key).unwrap();
    let run = domain::RunId::new(ticket.clone(), 1);
    let report = domain::OutboundRequest {
        id: run.call(2).into(),
        ticket,
        run: Some(run),
        ..rig.report(
            2,
            OutboundAction::Triaged(report::TicketTriaged {
                labels: vec!["bug".to_owned()],
                ..report::TicketTriaged::default()
            }),
        )
    };
    let outcome = rig.settled(&report).await;
    assert!(matches!(outcome, OutboundOutcome::Refused(_)), "{outcome:?}");
    assert_eq!(list_writes(&rig), Vec::<String>::new());
    rig.stop().await;
}
