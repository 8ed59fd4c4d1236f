//! Tests of the effects of each report.

use domain::{
    BranchPush, ChecksConclusion, ChecksSummary, CommitId, Job, ObjectRef, PullRequestEnd, PullRequestEvent,
    PullRequestRef, PushProposal, RepositoryName, RunFence, RunId, SkipReason, Timestamp, report,
};

use super::*;

fn build_report(ticket: &str, request: OutboundAction) -> OutboundRequest {
    let ticket: TicketKey = ticket.parse().unwrap();
    let run = RunId::new(ticket.clone(), 7);
    OutboundRequest {
        id: run.call(3).into(),
        ticket,
        run: Some(run),
        fence: RunFence::default(),
        at: Timestamp::default(),
        progress: None,
        request,
    }
}

fn list_effect_names(ticket: &str, rules: &RepositoryRules, request: OutboundAction) -> Vec<&'static str> {
    plan_effects(&build_report(ticket, request), rules)
        .iter()
        .map(|effect| effect.name())
        .collect()
}

fn pull_request() -> PullRequestRef {
    PullRequestRef {
        repository: "acme/shop".parse().unwrap(),
        number: 5,
        url: "https://github.example/acme/shop/pull/5".to_owned(),
        branch: "feat/ENG-12-x".to_owned(),
    }
}

fn build_commit_id() -> CommitId {
    "a".repeat(40).parse().unwrap()
}

fn build_branch_push(repository: RepositoryName) -> BranchPush {
    BranchPush {
        scope: None,
        merge: None,
        repository,
        branch: "feat/ENG-12-x".to_owned(),
        base: build_commit_id(),
        head: build_commit_id(),
        pack: ObjectRef {
            sha256: "0".repeat(64),
            size_bytes: 1,
        },
        expected: None,
    }
}

#[test]
fn jira_requests_have_their_effects_in_order() {
    let rules = RepositoryRules::default();
    let repository: RepositoryName = "acme/shop".parse().unwrap();
    let of = |request| list_effect_names("jira:ENG-12", &rules, request);
    assert_eq!(
        of(OutboundAction::WorkStarted(report::WorkStarted {
            job: Job::Implement,
            repository: repository.clone(),
            begun: report::WorkOrigin::default(),
        })),
        ["check_signing", "transition", "check_run", "comment"]
    );
    assert_eq!(
        of(OutboundAction::OpenPullRequest(report::PullRequestOpening {
            repository: repository.clone(),
            branch: "b".into(),
            base_branch: "main".into(),
            title: "t".into(),
            body: "b".into(),
            description: None,
        })),
        [
            "open_pull_request",
            "link_pull_request",
            "check_run",
            "show_files",
            "comment"
        ]
    );
    assert_eq!(
        of(OutboundAction::WorkDelivered(report::WorkDelivered {
            push: build_branch_push(repository.clone()),
            description: Box::default(),
        })),
        ["show_change", "push_branch", "transition", "comment"]
    );
    assert_eq!(
        of(OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary::new(pull_request(), build_commit_id(), ChecksConclusion::Success)
        ))),
        ["mark_ready", "request_review", "check_run", "comment"]
    );
    // Unfinished checks have no result to show.
    assert_eq!(
        of(OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary {
                unfinished: vec!["WIP".to_owned()],
                ..ChecksSummary::new(pull_request(), build_commit_id(), ChecksConclusion::Success)
            }
        ))),
        ["mark_ready", "request_review", "comment"]
    );
    assert_eq!(
        of(OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary::new(pull_request(), build_commit_id(), ChecksConclusion::Absent)
        ))),
        ["mark_ready_unchecked", "request_review", "check_run", "comment"]
    );
    assert_eq!(
        of(OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary::new(pull_request(), build_commit_id(), ChecksConclusion::Failure)
        ))),
        ["check_run", "comment"]
    );
    assert_eq!(
        of(OutboundAction::from(PullRequestEvent::ChecksCompleted(
            ChecksSummary {
                rerun: vec![1, 2],
                ..ChecksSummary::new(pull_request(), build_commit_id(), ChecksConclusion::Failure)
            }
        ))),
        ["rerun_checks", "check_run", "comment"]
    );
    assert_eq!(
        of(OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
            pull_request: pull_request(),
            by: "ann".into(),
            moved_to: None
        }))),
        ["record_end", "transition", "comment"]
    );
    assert_eq!(
        of(OutboundAction::from(PullRequestEvent::Closed(PullRequestEnd {
            pull_request: pull_request(),
            by: "ann".into(),
            moved_to: None
        }))),
        ["record_end", "comment"]
    );
    assert_eq!(
        of(OutboundAction::DecisionNeeded(PushProposal {
            push: build_branch_push(repository),
            description: None
        })),
        ["show_change", "comment"]
    );
    assert_eq!(
        of(OutboundAction::Skipped(SkipReason::Label {
            label: "skip".into()
        })),
        ["comment"]
    );
}

#[test]
fn exhausted_repairs_call_people_where_they_read() {
    use domain::RepairEnd::{Forgotten, NotOurs, Off, PerHead};
    let of = |ticket: &str, why, asked: &[&str]| {
        let red = ChecksSummary {
            unrepaired: Some(why),
            asked: asked.iter().map(|login| (*login).to_owned()).collect(),
            ..ChecksSummary::new(pull_request(), build_commit_id(), ChecksConclusion::Failure)
        };
        let effects = list_effect_names(
            ticket,
            &RepositoryRules::default(),
            OutboundAction::from(PullRequestEvent::ChecksCompleted(red)),
        );
        effects.iter().filter(|name| **name == "call").count()
    };
    assert_eq!(of("jira:ENG-12", PerHead, &["grace"]), 1);
    assert_eq!(of("jira:ENG-12", Forgotten, &[]), 2);
    assert_eq!(of("github:acme/shop#7", PerHead, &[]), 1);
    assert_eq!(of("jira:ENG-12", Off, &[]) + of("jira:ENG-12", NotOurs, &[]), 0);
}

#[test]
fn open_decision_calls_ticket_without_new_review() {
    use domain::ThreadDisposition::{Answered, Asked};
    let of = |dispositions: &[domain::ThreadDisposition], deciders: &[&str]| {
        let replies = dispositions
            .iter()
            .enumerate()
            .map(|(id, disposition)| domain::ThreadReply {
                id: id as u64,
                disposition: *disposition,
                reply: "Because.".to_owned(),
            });
        let addressed = report::ReviewAddressed {
            pull_request: pull_request(),
            reviewer: "rita".to_owned(),
            commit: None,
            summary: String::new(),
            replies: replies.collect(),
            left: None,
            deciders: deciders.iter().map(|login| (*login).to_owned()).collect(),
        };
        list_effect_names(
            "jira:ENG-12",
            &RepositoryRules::default(),
            OutboundAction::ReviewAddressed(addressed),
        )
    };
    assert_eq!(of(&[Answered], &[]), ["reply", "request_review", "comment"]);
    assert_eq!(of(&[Answered, Asked], &["grace"]), ["reply", "reply", "comment"]);
    assert_eq!(of(&[Asked], &[]), ["reply", "call", "comment"]);
}

#[test]
fn unfinished_work_gives_the_ticket_back() {
    use domain::{AssigneeRule, StopReason};
    let stopped = |ticket: &str, job, reason| {
        let stopped = report::RunStopped {
            job,
            reason,
            pull_request: None,
            branch: None,
        };
        list_effect_names(
            ticket,
            &RepositoryRules::default(),
            OutboundAction::RunStopped(stopped),
        )
    };
    let (back, kept) = (["check_run", "unassign", "comment"], ["check_run", "comment"]);
    let limit = || StopReason::TurnLimit { turns: 60 };
    assert_eq!(stopped("jira:ENG-12", Job::Implement, limit()), back);
    assert_eq!(stopped("github:acme/shop#7", Job::FixCi, limit()), back);
    assert_eq!(
        stopped("jira:ENG-12", Job::Answer, limit()),
        kept,
        "it is no work on the ticket"
    );
    let by_ann = StopReason::Stopped { by: "ann".to_owned() };
    assert_eq!(stopped("jira:ENG-12", Job::Implement, by_ann), kept);
    let mut rules = RepositoryRules::default();
    rules.agent.assign = AssigneeRule::Us;
    let started = |ticket: &str, job| {
        let repository = "acme/shop".parse().unwrap();
        let begun = report::WorkOrigin::default();
        let started = report::WorkStarted {
            job,
            repository,
            begun,
        };
        list_effect_names(ticket, &rules, OutboundAction::WorkStarted(started))
    };
    assert_eq!(
        started("jira:ENG-12", Job::Implement),
        ["check_signing", "assign", "transition", "check_run", "comment"]
    );
    assert_eq!(
        started("github:acme/shop#7", Job::Implement),
        ["check_signing", "assign", "check_run", "comment"]
    );
    assert_eq!(
        started("jira:ENG-12", Job::FixCi),
        ["check_signing", "check_run", "comment"]
    );
    assert_eq!(started("jira:ENG-12", Job::Answer), ["comment"]);
}

#[test]
fn planned_issues_open_before_they_are_linked() {
    let planned = |title: &str| domain::PlannedIssue {
        title: title.to_owned(),
        text: String::new(),
        checklist: Vec::new(),
    };
    let request = |parent| {
        OutboundAction::OpenIssues(report::OpenIssues {
            repository: "acme/shop".parse().unwrap(),
            parent,
            issues: vec![planned("All"), planned("One")],
        })
    };
    let of = |parent| list_effect_names("github:acme/shop#7", &RepositoryRules::default(), request(parent));
    assert_eq!(
        of(None),
        ["create_issue", "create_issue", "add_sub_issue", "comment"]
    );
    assert_eq!(
        of(Some(7)),
        [
            "create_issue",
            "create_issue",
            "add_sub_issue",
            "add_sub_issue",
            "comment"
        ]
    );
}

#[test]
fn equal_effects_get_distinct_ledger_names() {
    let issue = || TicketKey::jira("ENG-1").unwrap();
    let comment = || WriteComment {
        thread: CommentThread::of(&issue()),
    };
    let unassign = crate::effects::UnassignTicket {
        ticket: issue(),
        from_anybody: false,
    };
    let effects: EffectList = vec![
        Box::new(comment()),
        Box::new(unassign),
        Box::new(comment()),
        Box::new(comment()),
    ];
    let names: Vec<String> = name_effects(&effects).map(|(name, _)| name).collect();
    assert_eq!(names, ["comment", "unassign", "comment.2", "comment.3"]);
}

#[test]
fn review_status_moves_ticket_at_handover() {
    let mut rules = RepositoryRules::default();
    rules.agent.review_status = "In Review".to_owned();
    let request = OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
        pull_request(),
        build_commit_id(),
        ChecksConclusion::Success,
    )));
    assert_eq!(
        list_effect_names("jira:ENG-12", &rules, request),
        [
            "mark_ready",
            "transition",
            "request_review",
            "check_run",
            "comment"
        ]
    );
}

#[test]
fn github_ticket_closes_without_move_or_link() {
    let rules = RepositoryRules::default();
    let request = OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ann".into(),
        moved_to: None,
    }));
    assert_eq!(
        list_effect_names("github:acme/shop#7", &rules, request),
        ["record_end", "close_issue", "rocket", "comment"]
    );
}

#[test]
fn the_configured_done_status_is_tried_first() {
    let mut rules = RepositoryRules::default();
    rules.agent.done_status = "Shipped".to_owned();
    let request = OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ann".into(),
        moved_to: None,
    }));
    let effects = plan_effects(&build_report("jira:ENG-12", request), &rules);
    let goals = format!("{:?}", effects[1]);
    assert!(
        goals.contains(r#"goals: ["Shipped", "done""#) && goals.contains("resolved"),
        "{goals}"
    );
}

#[test]
fn rehearsal_returns_effects_of_other_requests() {
    let rules = RepositoryRules::default();
    let repository: RepositoryName = "acme/shop".parse().unwrap();
    let started = report::WorkStarted {
        job: Job::Implement,
        repository: repository.clone(),
        begun: report::WorkOrigin::default(),
    };
    let rehearse = report::RehearsalRequest {
        job: Job::Implement,
        repository: repository.clone(),
        requests: vec![started.into(), build_branch_push(repository).into()],
    };
    for ticket in ["jira:ENG-12", "github:acme/shop#7", "folder:shop#1"] {
        let effects = list_effect_names(ticket, &rules, rehearse.clone().into());
        assert_eq!(effects, Vec::<&str>::new(), "{ticket}");
    }
    let report = build_report("jira:ENG-12", rehearse.into());
    let OutboundReceipt::Rehearsed { would } = build_receipt(&report, &rules, &EffectReceipts::default())
    else {
        panic!("no rehearsal")
    };
    let [started, push] = would.as_slice() else {
        panic!("{would:?}")
    };
    assert_eq!(
        started.effects,
        ["check_signing", "transition", "check_run", "comment"]
    );
    assert_eq!(
        started.words,
        "Journeyman has started to work on this ticket in `acme/shop`."
    );
    assert_eq!(
        (push.effects.as_slice(), push.words.as_str()),
        (&["push_branch".to_owned(), "check_run".to_owned()][..], "")
    );
}
