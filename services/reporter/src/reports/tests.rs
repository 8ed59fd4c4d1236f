//! Which effects each report has.

use domain::{
    CommitId, Job, ObjectRef, Proposal, PullRequestRef, PushBranch, RepositoryName, RunFence, RunId,
    SkipReason, Timestamp, report,
};

use super::*;

fn report(ticket: &str, request: ReportRequest) -> Report {
    let ticket: TicketKey = ticket.parse().unwrap();
    let run = RunId::new(ticket.clone(), 7);
    Report {
        id: run.call(3).into(),
        ticket,
        run: Some(run),
        fence: RunFence::default(),
        at: Timestamp::default(),
        progress: None,
        request,
    }
}

fn names(ticket: &str, rules: &Rules, request: ReportRequest) -> Vec<&'static str> {
    plan(&report(ticket, request), rules)
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

fn commit() -> CommitId {
    "a".repeat(40).parse().unwrap()
}

fn push(repository: RepositoryName) -> PushBranch {
    PushBranch {
        scope: None,
        repository,
        branch: "feat/ENG-12-x".to_owned(),
        base: commit(),
        head: commit(),
        pack: ObjectRef {
            sha256: "0".repeat(64),
            size_bytes: 1,
        },
        expected: None,
    }
}

#[test]
fn every_request_on_a_jira_ticket_has_its_effects_in_order() {
    let rules = Rules::default();
    let repository: RepositoryName = "acme/shop".parse().unwrap();
    let of = |request| names("jira:ENG-12", &rules, request);
    assert_eq!(
        of(ReportRequest::WorkStarted(report::WorkStarted {
            job: Job::Implement,
            repository: repository.clone()
        })),
        ["transition", "comment"]
    );
    assert_eq!(
        of(ReportRequest::OpenPullRequest(report::OpenPullRequest {
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
        of(ReportRequest::WorkDelivered(report::WorkDelivered {
            push: push(repository.clone()),
            description: Box::default(),
        })),
        ["show_change", "push_branch", "transition", "comment"]
    );
    assert_eq!(
        of(ReportRequest::ChecksPassed(report::ChecksPassed {
            pull_request: pull_request(),
            head: commit()
        })),
        ["mark_ready", "request_review", "check_run", "comment"]
    );
    assert_eq!(
        of(ReportRequest::ChecksFailed(report::ChecksFailed {
            pull_request: pull_request(),
            head: commit(),
            failed: vec![],
            unrepaired: None,
        })),
        ["check_run", "comment"]
    );
    assert_eq!(
        of(ReportRequest::RerunChecks(report::RerunChecks {
            pull_request: pull_request(),
            head: commit(),
            failed: vec![],
            runs: vec![1, 2],
        })),
        ["rerun_checks", "check_run", "comment"]
    );
    assert_eq!(
        of(ReportRequest::Merged(report::Merged {
            pull_request: pull_request(),
            by: "ann".into()
        })),
        ["record_end", "transition", "comment"]
    );
    assert_eq!(
        of(ReportRequest::Closed(report::Closed {
            pull_request: pull_request(),
            by: "ann".into()
        })),
        ["record_end", "comment"]
    );
    assert_eq!(
        of(ReportRequest::DecisionNeeded(Proposal {
            push: push(repository),
            description: None
        })),
        ["show_change", "comment"]
    );
    assert_eq!(
        of(ReportRequest::Skipped(SkipReason::Label { label: "skip".into() })),
        ["comment"]
    );
}

#[test]
fn issues_of_a_plan_are_opened_before_they_are_linked() {
    let planned = |title: &str| domain::PlannedIssue {
        title: title.to_owned(),
        text: String::new(),
        checklist: Vec::new(),
    };
    let request = |parent| {
        ReportRequest::OpenIssues(report::OpenIssues {
            repository: "acme/shop".parse().unwrap(),
            parent,
            issues: vec![planned("All"), planned("One")],
        })
    };
    let of = |parent| names("github:acme/shop#7", &Rules::default(), request(parent));
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
fn two_effects_of_one_kind_have_two_names() {
    let issue = || TicketKey::jira("ENG-1").unwrap();
    let comment = || Comment {
        thread: Thread::of(&issue()),
    };
    let unassign = crate::effects::Unassign { ticket: issue() };
    let effects: Effects = vec![
        Box::new(comment()),
        Box::new(unassign),
        Box::new(comment()),
        Box::new(comment()),
    ];
    let names: Vec<String> = named(&effects).map(|(name, _)| name).collect();
    assert_eq!(names, ["comment", "unassign", "comment.2", "comment.3"]);
}

#[test]
fn a_review_status_moves_the_ticket_at_hand_over() {
    let mut rules = Rules::default();
    rules.agent.review_status = "In Review".to_owned();
    let request = ReportRequest::ChecksPassed(report::ChecksPassed {
        pull_request: pull_request(),
        head: commit(),
    });
    assert_eq!(
        names("jira:ENG-12", &rules, request),
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
fn a_github_ticket_is_closed_and_neither_moved_nor_linked() {
    let rules = Rules::default();
    let request = ReportRequest::Merged(report::Merged {
        pull_request: pull_request(),
        by: "ann".into(),
    });
    assert_eq!(
        names("github:acme/shop#7", &rules, request),
        ["record_end", "close_issue", "comment"]
    );
}

#[test]
fn the_configured_done_status_is_tried_first() {
    let mut rules = Rules::default();
    rules.agent.done_status = "Shipped".to_owned();
    let request = ReportRequest::Merged(report::Merged {
        pull_request: pull_request(),
        by: "ann".into(),
    });
    let effects = plan(&report("jira:ENG-12", request), &rules);
    let goals = format!("{:?}", effects[1]);
    assert!(
        goals.contains(r#"goals: ["Shipped", "done""#) && goals.contains("resolved"),
        "{goals}"
    );
}

#[test]
fn a_rehearsal_has_no_effects_and_gives_back_those_of_other_requests_under_the_rules() {
    let rules = Rules::default();
    let repository: RepositoryName = "acme/shop".parse().unwrap();
    let started = report::WorkStarted {
        job: Job::Implement,
        repository: repository.clone(),
    };
    let rehearse = report::Rehearse {
        job: Job::Implement,
        repository: repository.clone(),
        requests: vec![started.into(), push(repository).into()],
    };
    for ticket in ["jira:ENG-12", "github:acme/shop#7", "folder:shop#1"] {
        let effects = names(ticket, &rules, rehearse.clone().into());
        assert_eq!(effects, Vec::<&str>::new(), "{ticket}");
    }
    let report = report("jira:ENG-12", rehearse.into());
    let Receipt::Rehearsed { would } = receipt(&report, &rules, Made::default()) else {
        panic!("no rehearsal")
    };
    let [started, push] = would.as_slice() else {
        panic!("{would:?}")
    };
    assert_eq!(started.effects, ["transition", "comment"]);
    assert_eq!(
        started.words,
        "Journeyman has started to work on this ticket in `acme/shop`."
    );
    assert_eq!(
        (push.effects.as_slice(), push.words.as_str()),
        (&["push_branch".to_owned(), "check_run".to_owned()][..], "")
    );
}
