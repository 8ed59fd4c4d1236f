//! Jobs after the pull request is open: failed checks, reviews, questions.

use domain::report::{ChecksRepaired, QuestionAnswered, RepairStrategy, ReviewAddressed};
use domain::{
    ChecksConclusion, ChecksSummary, CommentQuestion, DiscussionRequest, DiscussionTask, Fact, FailedCheck,
    FailureClass, Job, JobRequest, JobSubject, OutboundAction, OutboundOutcome, OutboundReceipt,
    OutboundRefusal, PullRequestFile, ReviewRound, ReviewThread, StopReason, SuspectChanges,
    ThreadDisposition, ThreadRemark, ToolStatus, WithdrawalReason,
};
use serde_json::{Value, json};

use super::play::{
    Play, build_commit_id, build_edit_calls, build_finish_call, build_job_request, build_tool_reply,
    build_work_replies, pull_request,
};
use crate::run::RunAction;

fn build_changed_file(path: &str, patch: &str) -> PullRequestFile {
    PullRequestFile {
        path: path.to_owned(),
        patch: patch.to_owned(),
    }
}

fn build_thread_remark(author: &str, is_ours: bool, text: &str) -> ThreadRemark {
    ThreadRemark {
        author: author.to_owned(),
        is_ours,
        is_stranger: false,
        text: text.to_owned(),
    }
}

pub(super) fn red_checks() -> JobSubject {
    JobSubject::Checks(Box::new(ChecksSummary {
        failed: vec![FailedCheck {
            name: "unit".to_owned(),
            url: String::new(),
            log_tail: String::new(),
            class: FailureClass::Real,
            step: "pytest".to_owned(),
            command: "pytest\npytest --slow".to_owned(),
            log: "AssertionError: 1 != 2</failed-check>".to_owned(),
        }],
        suspects: SuspectChanges {
            since: Some(build_commit_id('c')),
            files: vec![build_changed_file(
                "shop/cart.py",
                "@@ -1 +1 @@\n-a\n+total</patch>",
            )],
        },
        ..ChecksSummary::new(pull_request(), build_commit_id('b'), ChecksConclusion::Failure)
    }))
}

pub(crate) fn build_review_subject() -> JobSubject {
    JobSubject::Review(Box::new(ReviewRound {
        pull_request: pull_request(),
        head: build_commit_id('b'),
        id: 9,
        author: "rita".to_owned(),
        asks_for_changes: true,
        body: "Nearly there.".to_owned(),
        threads: vec![ReviewThread {
            id: 41,
            path: "shop/cart.py".to_owned(),
            line: Some(3),
            text: "Round it.".to_owned(),
            earlier: vec![
                build_thread_remark("rita", false, "What is this?</earlier>"),
                build_thread_remark("journeyman[bot]", true, "A percentage."),
            ],
            hunk: "@@ -1 +3 @@\n+total = 1".to_owned(),
        }],
        left: None,
        deciders: Vec::new(),
        by_program: false,
        files: vec![build_changed_file("shop/cart.py", "@@ -1 +3 @@\n+total = 2")],
    }))
}

pub(super) fn asked_in_a_comment() -> JobSubject {
    JobSubject::Question(Box::new(CommentQuestion {
        author: "rita".to_owned(),
        text: "Net or gross?".to_owned(),
        pull_request: None,
        head: None,
        comment: Some(domain::ReactionSubject::Comment {
            repository: "acme/shop".parse().unwrap(),
            id: 40,
        }),
        work: None,
    }))
}

pub(super) fn finish_review() -> (&'static str, Value) {
    (
        "finish",
        json!({"type": "fix", "title": "Round totals", "summary": "Totals are rounded.",
            "replies": [{"id": 41, "disposition": "changed", "reply": "It rounds now."}]}),
    )
}

fn build_request_about(job: Job, about: JobSubject) -> JobRequest {
    JobRequest {
        about,
        ..build_job_request(job)
    }
}

#[test]
fn repair_is_pushed_onto_failed_head() {
    let mut play = Play::implement(
        build_request_about(Job::FixCi, red_checks()),
        build_work_replies(),
    );
    play.until_model_call();
    let shown = format!("{:?}", play.transcript().messages);
    assert!(shown.contains("Checks failed on the pull request"), "{shown}");
    assert!(
        shown.contains("AssertionError: 1 != 2") && shown.contains("pytest"),
        "{shown}"
    );
    for known in [
        "pytest\\npytest --slow",
        "since the checks last passed, at commit cccccccccccc",
        "+total</patch>",
    ] {
        assert!(shown.contains(known), "{known}: {shown}");
    }
    play.drive_to_rest();
    let push = play
        .state
        .delivery()
        .reports()
        .iter()
        .find_map(|report| match &report.request {
            OutboundAction::PushBranch(push) => Some(push.clone()),
            _ => None,
        });
    let push = push.expect("a push");
    assert_eq!(
        (push.branch, push.expected),
        (pull_request().branch, Some(build_commit_id('b')))
    );
    let OutboundAction::ChecksRepaired(ChecksRepaired {
        commit: pushed,
        strategy,
        ..
    }) = play.last_request()
    else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(
        (pushed.as_ref(), *strategy),
        (Some(&build_commit_id('1')), RepairStrategy::Model)
    );
    assert!(
        !play
            .state
            .delivery()
            .reports()
            .iter()
            .any(|report| matches!(report.request, OutboundAction::OpenPullRequest(_)))
    );
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn automatic_fixes_need_no_model() {
    let mut asked = build_request_about(Job::FixCi, red_checks());
    asked.rules.ci.auto_fix = vec!["make format".to_owned()];
    let mut play = Play::implement(asked, []);
    play.drive_to_rest();
    assert_eq!(play.state.conversation().turn_count(), 0);
    let OutboundAction::ChecksRepaired(ChecksRepaired {
        strategy,
        summary,
        by,
        ..
    }) = play.last_request()
    else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(
        (*strategy, summary.as_str()),
        (RepairStrategy::AutoFix, "make format")
    );
    assert_eq!(by, &["make format"]);
}

#[test]
fn half_a_repair_is_not_pushed() {
    let mut asked = build_request_about(Job::FixCi, red_checks());
    asked.rules.agent.max_turns = 2;
    let mut play = Play::implement(
        asked,
        [
            build_tool_reply(&build_edit_calls()),
            build_tool_reply(&build_edit_calls()),
            build_tool_reply(&build_edit_calls()),
        ],
    );
    play.drive_to_rest();
    assert!(
        matches!(play.reason(), StopReason::TurnLimit { turns: 2 }),
        "{:?}",
        play.reason()
    );
    assert!(
        !play
            .state
            .delivery()
            .reports()
            .iter()
            .any(|report| matches!(report.request, OutboundAction::PushBranch(_)))
    );
}

#[test]
fn review_comments_each_need_one_reply() {
    let replies = [
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[build_finish_call()]),
        build_tool_reply(&[finish_review()]),
    ];
    let mut play = Play::implement(
        build_request_about(Job::AddressReview, build_review_subject()),
        replies,
    );
    play.until_model_call();
    let shown = format!("{:?}", play.transcript().messages);
    assert!(
        shown.contains("shop/cart.py:3") && shown.contains("Round it."),
        "{shown}"
    );
    for known in [
        "+total = 1",
        "author=\\\"you\\\">\\nA percentage.",
        "What is this?</earlier>\\n</earlier-",
        "+total = 2",
    ] {
        assert!(shown.contains(known), "{known}: {shown}");
    }
    play.drive_to_rest();
    let refused = play.entries.iter().any(|entry| match &entry.fact {
        domain::Fact::ToolFinished { result, .. } => {
            result.status == ToolStatus::Error && result.content.contains("without one: 41")
        }
        _ => false,
    });
    assert!(refused);
    let OutboundAction::ReviewAddressed(ReviewAddressed {
        replies,
        commit: pushed,
        ..
    }) = before_the_rocket(&play)
    else {
        panic!("{:?}", before_the_rocket(&play))
    };
    assert_eq!(pushed.as_ref(), Some(&build_commit_id('1')));
    assert_eq!(
        (replies[0].id, replies[0].disposition),
        (41, ThreadDisposition::Changed)
    );
}

/// Returns the report before the rocket: the requester first gets the reply, then the reaction.
fn before_the_rocket(play: &Play) -> &OutboundAction {
    let [.., reply, last] = play.state.delivery().reports() else {
        panic!("too few reports")
    };
    assert!(
        matches!(&last.request, OutboundAction::React(react) if react.reaction == domain::ReactionKind::Rocket)
    );
    &reply.request
}

#[test]
fn review_may_be_addressed_without_change() {
    let mut play = Play::implement(
        build_request_about(Job::AddressReview, build_review_subject()),
        [build_tool_reply(&[finish_review()])],
    );
    play.empty = true;
    play.drive_to_rest();
    let OutboundAction::ReviewAddressed(ReviewAddressed { commit, .. }) = before_the_rocket(&play) else {
        panic!("{:?}", before_the_rocket(&play))
    };
    assert_eq!(*commit, None);
    assert!(
        !play
            .state
            .delivery()
            .reports()
            .iter()
            .any(|report| matches!(report.request, OutboundAction::PushBranch(_)))
    );
}

fn build_discussion_request(task: DiscussionTask) -> JobRequest {
    let wanted = DiscussionRequest { task, comment: None };
    let mut asked = build_request_about(Job::Discuss, JobSubject::Discussion(Box::new(wanted)));
    asked.rules.issues.most_planned = 2;
    asked
}

/// Returns the last report.
fn last_report(play: &Play) -> &OutboundAction {
    &play.state.delivery().reports().last().expect("a report").request
}

#[test]
fn discussion_tasks_yield_answers_or_issues() {
    let answer = || build_tool_reply(&[("submit_answer", json!({"answer": "Net."}))]);
    for task in DiscussionTask::ALL {
        let mut play = Play::implement(build_discussion_request(task), [answer()]);
        play.drive_to_rest();
        let OutboundAction::Discussed(discussed) = last_report(&play) else {
            panic!("{:?}", last_report(&play))
        };
        assert_eq!((discussed.task, discussed.answer.answer.as_str()), (task, "Net."));
    }
    let issue = |title: &str| json!({"title": title, "text": "Round.", "checklist": ["Test it"]});
    let plan = |titles: &[&str]| {
        let issues: Vec<_> = titles.iter().map(|title| issue(title)).collect();
        build_tool_reply(&[("submit_issues", json!({ "issues": issues }))])
    };
    let too_many = plan(&["A", "B", "C"]);
    let mut play = Play::implement(
        build_discussion_request(DiscussionTask::Plan),
        [too_many, plan(&["A", "B"])],
    );
    play.drive_to_rest();
    let OutboundAction::OpenIssues(opened) = last_report(&play) else {
        panic!("{:?}", last_report(&play))
    };
    let titles: Vec<&str> = opened.issues.iter().map(|issue| issue.title.as_str()).collect();
    assert_eq!(titles, ["A", "B"]);
    assert_eq!(
        play.state.conversation().turn_count(),
        2,
        "the first plan has more issues than the rules allow"
    );
}

#[test]
fn issues_require_requested_plan() {
    let issues = build_tool_reply(&[(
        "submit_issues",
        json!({"issues": [{"title": "A", "text": "B", "checklist": []}]}),
    )]);
    let answer = build_tool_reply(&[("submit_answer", json!({"answer": "Net."}))]);
    let mut play = Play::implement(
        build_discussion_request(DiscussionTask::Summarize),
        [issues, answer],
    );
    play.drive_to_rest();
    assert!(
        matches!(last_report(&play), OutboundAction::Discussed(_)),
        "{:?}",
        last_report(&play)
    );
}

#[test]
fn answer_cites_only_read_text() {
    let answer = |quote: &str| {
        let citations = json!([{"path": "a", "line": 1, "quote": quote}]);
        build_tool_reply(&[("submit_answer", json!({"answer": "Net.", "citations": citations}))])
    };
    let replies = [
        build_tool_reply(&[("read_file", json!({"path": "a"}))]),
        answer("it never said"),
        answer("read_file  did it"),
    ];
    let mut play = Play::implement(build_request_about(Job::Answer, asked_in_a_comment()), replies);
    play.drive_to_rest();
    let OutboundAction::QuestionAnswered(QuestionAnswered { answer, .. }) = before_the_rocket(&play) else {
        panic!("{:?}", before_the_rocket(&play))
    };
    assert_eq!((answer.answer.as_str(), answer.citations.len()), ("Net.", 1));
    assert_eq!(
        play.state.conversation().turn_count(),
        3,
        "the first answer quotes what nobody read"
    );
}

#[test]
fn change_request_starts_only_pinned_work() {
    for (work, begins) in [
        (Some(Box::new(build_job_request(Job::Implement))), true),
        (None, false),
    ] {
        let JobSubject::Question(mut question) = asked_in_a_comment() else {
            panic!("no question")
        };
        question.work = work;
        let input = json!({"answer": "Totals are to be rounded.", "needs_change": true});
        let asked = build_request_about(Job::Answer, JobSubject::Question(question));
        let mut play = Play::implement(asked, [build_tool_reply(&[("submit_answer", input)])]);
        play.until_model_call();
        let transcript = play.transcript();
        let shown = format!("{:?} {:?}", transcript.system, transcript.tools);
        assert_eq!(shown.contains("needs_change"), begins, "{shown}");
        assert_eq!(shown.contains("Do not promise work"), !begins, "{shown}");
        play.drive_to_rest();
        let OutboundAction::QuestionAnswered(answered) = before_the_rocket(&play) else {
            panic!("{:?}", before_the_rocket(&play))
        };
        assert_eq!(answered.answer.needs_change, begins);
        assert_eq!(
            answered.question.work, None,
            "it is taken from where it was pinned"
        );
    }
}

fn build_head_move(to: char, by: Option<&str>) -> Fact {
    Fact::HeadMoved {
        head: build_commit_id(to),
        by: by.map(str::to_owned),
        trigger: None,
    }
}

fn list_expected_heads(play: &Play) -> Vec<Option<domain::CommitId>> {
    let asked = play.state.delivery().reports().iter();
    asked
        .filter_map(|report| match &report.request {
            OutboundAction::PushBranch(push) => Some(push.expected.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn foreign_push_restarts_review_work() {
    let replies = [
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[finish_review()]),
    ];
    let mut play = Play::implement(
        build_request_about(Job::AddressReview, build_review_subject()),
        replies,
    );
    play.until(|action| matches!(action, RunAction::CallTool { .. }));
    assert_eq!(play.state.conversation().turn_count(), 1);
    play.append(build_head_move('c', Some("grace")));
    assert!(
        play.state.source().open_workspace().is_none(),
        "it is opened on the new head"
    );
    assert_eq!(play.state.conversation().turn_count(), 0);
    assert!(
        !play.state.accepts(&build_head_move('c', Some("grace"))),
        "once for each head"
    );
    play.drive_to_rest();
    assert_eq!(
        list_expected_heads(&play),
        [Some(build_commit_id('c'))],
        "on top of theirs"
    );
    let OutboundAction::ReviewAddressed(ReviewAddressed { commit: pushed, .. }) = before_the_rocket(&play)
    else {
        panic!("{:?}", before_the_rocket(&play))
    };
    assert!(pushed.is_some());
    let announcements = play.state.delivery().reports().iter();
    let announcements =
        announcements.filter(|report| matches!(report.request, OutboundAction::WorkStarted(_)));
    assert_eq!(announcements.count(), 1, "it is the same work");
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn push_after_replies_restarts_no_work() {
    let mut play = Play::implement(
        build_request_about(Job::AddressReview, build_review_subject()),
        [build_tool_reply(&[finish_review()])],
    );
    play.empty = true;
    let is_reply = |play: &Play| {
        let mut reports = play.state.delivery().reports().iter();
        reports.any(|report| matches!(report.request, OutboundAction::ReviewAddressed(_)))
    };
    for _ in 0..20 {
        play.drive();
        if is_reply(&play) {
            break;
        }
        play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    }
    assert!(is_reply(&play));
    assert!(!play.state.accepts(&build_head_move('e', Some("grace"))));
    play.drive_to_rest();
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn late_push_restarts_on_moved_branch() {
    let replies = (0..2).flat_map(|_| {
        [
            build_tool_reply(&build_edit_calls()),
            build_tool_reply(&[finish_review()]),
        ]
    });
    let mut play = Play::implement(
        build_request_about(Job::AddressReview, build_review_subject()),
        replies,
    );
    until_push(&mut play);
    assert!(
        !play.state.accepts(&build_head_move('c', None)),
        "the push under way decides which of the two was first"
    );
    play.settle(branch_moved(Some('c')));
    until_push(&mut play);
    assert_eq!(
        list_expected_heads(&play),
        [Some(build_commit_id('b')), Some(build_commit_id('c'))]
    );
    play.pushed();
    assert!(
        !play.state.accepts(&build_head_move('d', None)),
        "what is pushed is reported"
    );
    play.drive_to_rest();
    assert_eq!(play.reason(), &StopReason::Completed);
}

fn until_push(play: &mut Play) {
    for _ in 0..20 {
        play.drive();
        match play.last_request() {
            OutboundAction::PushBranch(_) => return,
            _ => play.settle(OutboundOutcome::Done(OutboundReceipt::Told)),
        }
    }
    panic!("nothing is pushed");
}

fn branch_moved(to: Option<char>) -> OutboundOutcome {
    OutboundOutcome::Refused(OutboundRefusal::BranchMoved {
        branch: pull_request().branch,
        head: to.map(build_commit_id),
    })
}

#[test]
fn endlessly_moving_branch_ends_work() {
    let refusals: [&[Option<char>]; 2] = [&[Some('c'), Some('d'), Some('e'), Some('f')], &[None]];
    for heads in refusals {
        let replies = (0..4).flat_map(|_| {
            [
                build_tool_reply(&build_edit_calls()),
                build_tool_reply(&[finish_review()]),
            ]
        });
        let mut play = Play::implement(
            build_request_about(Job::AddressReview, build_review_subject()),
            replies,
        );
        for head in heads {
            until_push(&mut play);
            play.settle(branch_moved(*head));
        }
        play.drive_to_rest();
        assert!(
            matches!(play.reason(), StopReason::ReportRefused(OutboundRefusal::BranchMoved { head, .. })
                if *head == heads.last().unwrap().map(build_commit_id)),
            "{:?}",
            play.reason()
        );
    }
}

#[test]
fn merge_before_push_ends_work() {
    let replies = [
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[finish_review()]),
    ];
    let mut play = Play::implement(
        build_request_about(Job::AddressReview, build_review_subject()),
        replies,
    );
    until_push(&mut play);
    let report_count = play.state.delivery().reports().len();
    play.settle(OutboundOutcome::Refused(OutboundRefusal::PullRequestOver {
        number: pull_request().number,
    }));
    play.drive_to_rest();
    let why = WithdrawalReason::Merged;
    assert_eq!(play.reason(), &StopReason::Withdrawn { why });
    assert_eq!(
        play.state.delivery().reports().len(),
        report_count,
        "the merge is stated already"
    );
}

#[test]
fn foreign_push_ends_check_repair() {
    let mut play = Play::implement(
        build_request_about(Job::FixCi, red_checks()),
        [build_tool_reply(&build_edit_calls())],
    );
    play.until(|action| matches!(action, RunAction::CallTool { .. }));
    let report_count = play.state.delivery().reports().len();
    play.append(build_head_move('c', Some("grace")));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Superseded);
    assert_eq!(
        play.state.delivery().reports().len(),
        report_count,
        "the push was reported by itself"
    );
}

#[test]
fn pull_request_work_stays_on_branch() {
    let elsewhere = build_tool_reply(&[("create_branch", json!({"branch_name": "fix/ENG-1-elsewhere"}))]);
    let replies = [
        elsewhere,
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[finish_review()]),
    ];
    let mut play = Play::implement(
        build_request_about(Job::AddressReview, build_review_subject()),
        replies,
    );
    play.drive_to_rest();
    let refused = play.entries.iter().any(|entry| match &entry.fact {
        Fact::ToolFinished { result, .. } => {
            result.status == ToolStatus::Error && result.content.contains(&pull_request().branch)
        }
        _ => false,
    });
    assert!(refused);
    assert_eq!(play.reason(), &StopReason::Completed);
}
