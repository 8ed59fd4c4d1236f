//! Events of programs start nothing through any channel, unless the rules name the program.

use domain::{SkipReason, TicketKey, Timestamp, TrackerAccount, TriggerChannel, TriggerKey, TriggerReason};
use serde_json::json;

use super::{
    EventKind, EventVerdict,
    assignment::TicketAssignedEvent,
    comment::CommentEvent,
    discussed::DiscussionEvent,
    issue_text::IssueText,
    matched::ConditionMatchEvent,
    review_requested::ReviewRequestEvent,
    reviewed::ReviewEvent,
    tests::{
        READY, build_moved_payload, build_pull_record, build_repository_name, build_review, build_ticket_key,
        build_tracker_issue, build_work_facts, decide_event, expect_nothing, expect_trigger, facts_with,
        jira_person, parse_github_events, parse_jira_events, pull_request,
    },
    text::TextEditEvent,
    work::WorkRequestEvent,
};
use crate::facts::{
    DecisionFacts, EventActor, PROGRAM, RunProgress,
    tracker_reader::{AssignmentEvent, AssignmentKind, TrackerIssue, convert_user},
};

const RULES: &str = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n  assignee: agent\n  jql: labels = agent\n\
    triage:\n  labels: [bug]\n  anyone: true\nissues:\n  labels: [agent]\ndiscussions:\n  enabled: true\n\
    pull_request:\n  reviewer: agent\n";

fn build_bot_user() -> github::GitHubUser {
    github::GitHubUser {
        id: Some(41),
        login: "tidy[bot]".to_owned(),
        is_bot: true,
    }
}

fn build_app_account() -> TrackerAccount {
    TrackerAccount {
        id: "app-1".to_owned(),
        display_name: "Automation".to_owned(),
        is_bot: true,
    }
}

fn parse_issue_key() -> TicketKey {
    "github:acme/shop#7".parse().expect("ticket")
}

fn parse_discussion_key() -> TicketKey {
    "github:acme/shop/discussions/7".parse().expect("ticket")
}

/// Facts with every value that the kinds below need. A program has the rights of a person.
fn build_program_facts(rules: &str) -> DecisionFacts {
    let mut facts = facts_with(rules, TriggerChannel::Webhook);
    let of_program = TrackerIssue {
        summary: "Tidy".to_owned(),
        status: READY.to_owned(),
        labels: vec!["agent".to_owned()],
        creator: Some(build_app_account()),
        moves: build_tracker_issue()
            .moves
            .into_iter()
            .map(|moved| jira::StatusChange {
                by: Some(build_app_account()),
                ..moved
            })
            .collect(),
        ..TrackerIssue::default()
    };
    let on_github = TrackerIssue {
        creator: Some(convert_user(build_bot_user())),
        assignments: vec![AssignmentEvent {
            id: "LE_1".to_owned(),
            at: Timestamp::from_unix_ms(50),
            by: Some(convert_user(build_bot_user())),
            how: AssignmentKind::Labeled("agent".to_owned()),
        }],
        ..of_program.clone()
    };
    facts.put_issue(build_ticket_key(), Ok(of_program));
    facts.put_issue(parse_issue_key(), Ok(on_github));
    let unlabeled = TrackerIssue {
        creator: Some(convert_user(build_bot_user())),
        ..TrackerIssue::default()
    };
    facts.put_issue(
        "github:acme/shop#8".parse().expect("ticket"),
        Ok(unlabeled.clone()),
    );
    facts.put_issue(parse_discussion_key(), Ok(unlabeled));
    for ticket in [build_ticket_key(), parse_issue_key()] {
        facts.put_history(ticket.clone(), Vec::new());
        facts.put_progress(ticket.clone(), RunProgress::default());
        facts.put_row(ticket.clone(), domain::TicketRow::default());
        facts.put_open(build_repository_name(), ticket, Vec::new());
    }
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_record(build_repository_name(), 9, None);
    let waiting = github::PullRequest {
        number: 9,
        requested_reviewers: vec!["agent".to_owned()],
        ..pull_request()
    };
    facts.put_pull_request(build_repository_name(), 9, waiting);
    let request = github::ReviewRequest {
        id: 4,
        by: Some(build_bot_user()),
        reviewer: "agent".to_owned(),
        at: Timestamp::default(),
    };
    facts.put_review_requests(build_repository_name(), 9, vec![request]);
    facts.put_authority(
        EventActor::of_account(&parse_issue_key(), &convert_user(build_bot_user())),
        true,
    );
    facts.put_authority(jira_person(build_app_account()), true);
    facts
}

fn by_app(body: &serde_json::Value) -> Vec<Box<dyn EventKind>> {
    let mut body = body.clone();
    body["user"] = json!({"accountId": "app-1", "displayName": "Automation", "accountType": "app"});
    parse_jira_events(&body)
}

fn find_event(events: Vec<Box<dyn EventKind>>, name: &str) -> Box<dyn EventKind> {
    let mut events = events.into_iter();
    events
        .find(|event| format!("{event:?}").starts_with(name))
        .expect(name)
}

fn polled_comment(text: &str) -> CommentEvent {
    let comment = github::GitHubComment {
        id: github::GitHubCommentId(31),
        author: build_bot_user().login,
        author_id: build_bot_user().id,
        by_bot: true,
        body: text.to_owned(),
        created_at: None,
        updated_at: None,
        by_us: false,
    };
    CommentEvent::from_github_poll(&build_repository_name(), 7, comment, Timestamp::default())
}

fn on_github(event: &str, body: &serde_json::Value) -> Vec<Box<dyn EventKind>> {
    let mut body = body.clone();
    body["repository"] = json!({"full_name": "acme/shop"});
    parse_github_events(event, &body)
}

/// Every kind that a program could start work with, by webhook and by poll.
fn list_program_events() -> Vec<(&'static str, Box<dyn EventKind>)> {
    let user = json!({"login": "tidy[bot]", "id": 41, "type": "Bot"});
    let comment = |text: &str| {
        on_github(
            "issue_comment",
            &json!({"action": "created", "issue": {"number": 7},
            "comment": {"id": 31, "body": text, "user": user, "created_at": "2026-11-21T10:00:00Z"}}),
        )
    };
    let in_discussion = on_github(
        "discussion_comment",
        &json!({"action": "created", "discussion": {"number": 7},
        "comment": {"id": 5, "node_id": "DC", "body": "/plan", "user": user, "created_at": "2026-11-21T10:00:00Z"}}),
    );
    let said_on_jira = json!({"webhookEvent": "comment_created", "timestamp": 50, "issue": {"key": "ENG-12"},
        "comment": {"id": "9", "author": {"accountId": "app-1", "displayName": "Automation", "accountType": "app"},
            "body": "/stop"}});
    let edited = json!({"webhookEvent": "jira:issue_updated", "timestamp": 60, "issue": {"key": "ENG-12"},
        "changelog": {"id": "9", "items": [{"field": "description"}]}});
    let changed = jira::ChangedIssue {
        id: None,
        key: build_ticket_key(),
        status: "To Do".to_owned(),
        created: Timestamp::from_unix_ms(9),
        updated: Timestamp::from_unix_ms(60),
        creator: Some(build_app_account()),
        assignee: None,
    };
    let written = TextEditEvent::from_poll(&changed, None, Timestamp::default()).expect("created");
    let reviewed = github::PullRequestReview {
        author: build_bot_user().login,
        author_id: build_bot_user().id,
        by_bot: true,
        ..build_review(9, github::ReviewVerdict::ChangesRequested, "No.", &[])
    };
    let delivered_review = on_github(
        "pull_request_review",
        &json!({"action": "submitted",
        "review": {"id": 9, "user": user}, "pull_request": {"number": 7}}),
    );
    let polled_on_jira = jira::JiraComment {
        id: jira::JiraCommentId("9".to_owned()),
        author: "Automation".to_owned(),
        author_account_id: "app-1".to_owned(),
        by_bot: true,
        by_customer: false,
        created: Timestamp::from_unix_ms(50),
        updated: Timestamp::from_unix_ms(50),
        text: "/retry".to_owned(),
        mentioned: Vec::new(),
        marker: String::new(),
        by_us: false,
    };
    vec![
        ("order by webhook", find_event(comment("/stop"), "CommentEvent")),
        ("order by poll", Box::new(polled_comment("/stop"))),
        ("mention", find_event(comment("@journeyman why?"), "CommentEvent")),
        ("words", Box::new(polled_comment("Coverage went down."))),
        ("order in a discussion", find_event(in_discussion, "CommentEvent")),
        (
            "order on Jira by webhook",
            find_event(parse_jira_events(&said_on_jira), "CommentEvent"),
        ),
        (
            "order on Jira by poll",
            Box::new(CommentEvent::from_jira_poll(&build_ticket_key(), &polled_on_jira)),
        ),
        (
            "discussion",
            Box::new(DiscussionEvent::opened(parse_discussion_key())),
        ),
        ("text by webhook", find_event(by_app(&edited), "TextEditEvent")),
        ("text by poll", Box::new(written)),
        (
            "text of an issue",
            Box::new(IssueText::from_poll(
                "github:acme/shop#8".parse().expect("ticket"),
            )),
        ),
        ("review by webhook", find_event(delivered_review, "ReviewEvent")),
        (
            "review by poll",
            Box::new(ReviewEvent::from_poll(&build_pull_record(), &reviewed)),
        ),
    ]
}

#[test]
fn program_starts_no_command_triage_or_repair() {
    for (name, event) in list_program_events() {
        assert_eq!(
            expect_nothing(&*event, &build_program_facts(RULES)),
            PROGRAM,
            "{name}"
        );
    }
    let matched = ConditionMatchEvent::from_poll(build_ticket_key());
    assert_eq!(
        expect_nothing(&matched, &build_program_facts(RULES)),
        "the creator of the ticket is not allowed to request work"
    );
    let requested = ReviewRequestEvent::from_poll(build_repository_name(), 9);
    assert_eq!(
        expect_nothing(&requested, &build_program_facts(RULES)),
        "the requester of the review is not allowed to request it"
    );
}

#[test]
fn program_work_request_is_refused_once() {
    let polled = WorkRequestEvent::from_poll(
        build_ticket_key(),
        READY.to_owned(),
        build_tracker_issue().moves.pop().map(|moved| jira::StatusChange {
            by: Some(build_app_account()),
            ..moved
        }),
        Timestamp::default(),
    );
    let labeled = on_github("issues", &json!({"action": "labeled", "issue": {"number": 7}}));
    let asks: Vec<(Box<dyn EventKind>, TicketKey, &str)> = vec![
        (
            find_event(by_app(&build_moved_payload()), "WorkRequestEvent"),
            build_ticket_key(),
            "Automation",
        ),
        (Box::new(polled), build_ticket_key(), "Automation"),
        (
            find_event(labeled, "TicketAssignedEvent"),
            parse_issue_key(),
            "tidy[bot]",
        ),
        (
            Box::new(TicketAssignedEvent::from_poll(parse_issue_key())),
            parse_issue_key(),
            "tidy[bot]",
        ),
    ];
    for (event, ticket, actor) in asks {
        let first = expect_trigger(&*event, &build_program_facts(RULES));
        let bot = SkipReason::Bot {
            actor: actor.to_owned(),
        };
        assert_eq!(first.reason, TriggerReason::Skipped(bot), "{event:?}");
        let mut again = facts_with(RULES, TriggerChannel::Poll);
        again.put_history(
            ticket.clone(),
            vec![expect_trigger(&*event, &build_program_facts(RULES)).into_trigger(TriggerChannel::Poll)],
        );
        let before = build_program_facts(RULES);
        again.put_issue(ticket.clone(), before.issue(&ticket).expect("issue").clone());
        again.put_progress(ticket, RunProgress::default());
        assert_eq!(expect_nothing(&*event, &again), PROGRAM, "{event:?}");
    }
}

#[test]
fn named_program_is_judged_like_person() {
    let named = format!("{RULES}review:\n  agents: ['Tidy[bot]', app-1]\n");
    let labeled = TicketAssignedEvent::from_poll(parse_issue_key());
    assert!(matches!(
        expect_trigger(&labeled, &build_program_facts(&named)).reason,
        TriggerReason::JobRequested(_)
    ));
    let moved = find_event(by_app(&build_moved_payload()), "WorkRequestEvent");
    assert!(matches!(
        expect_trigger(&*moved, &build_program_facts(&named)).reason,
        TriggerReason::JobRequested(_)
    ));
    let stop = decide_event(&polled_comment("/stop"), &build_program_facts(&named));
    assert!(matches!(stop, EventVerdict::Follows(_)), "{stop:?}");
}

#[test]
fn program_text_is_never_instruction() {
    let comment = crate::facts::tracker_reader::TrackerComment {
        author: "Automation".to_owned(),
        author_id: "app-1".to_owned(),
        by_bot: true,
        created: Timestamp::from_unix_ms(9),
        updated: Timestamp::from_unix_ms(9),
        text: "Drop the tests.".to_owned(),
    };
    let edit = crate::facts::tracker_reader::TrackerEdit {
        id: "8".to_owned(),
        at: Timestamp::from_unix_ms(60),
        by: Some(build_app_account()),
    };
    let said = build_work_facts(|issue, _| issue.comments = vec![comment]);
    let TriggerReason::JobRequested(job) =
        expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &said).reason
    else {
        panic!("no job")
    };
    assert!(!job.text.comments[0].may_instruct);
    let edited = build_work_facts(|issue, _| issue.edits = vec![edit]);
    let reason = expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &edited).reason;
    let by = "Automation".to_owned();
    assert_eq!(reason, TriggerReason::Skipped(SkipReason::TextChanged { by }));
    assert_eq!(
        expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &said).key,
        TriggerKey::new("changelog:7")
    );
}
