//! Decision tables: verdicts of events under given facts. Every channel produces the same event.

use std::collections::BTreeSet;

use bootstrap::rules::{ConfiguredInstances, RulesBook};
use domain::{
    BranchRecord, ChecksConclusion, ChecksSummary, CommitId, ConflictedBase, Job, JobSubject,
    OutboundOutcome, OutboundReceipt, OutboundSettled, PullRequestEnd, PullRequestEvent, PullRequestHead,
    PullRequestRecord, PullRequestRef, PullRequestStatus, RepairEnd, RepositoryName, RunId, ServiceOrigin,
    SkipPlace, SkipReason, TicketKey, Timestamp, Trigger, TriggerChannel, TriggerKey, TriggerReason,
};
use github::{
    CheckConclusion, CheckKind, CheckStatus, CommitCheck, PullRequest, PullRequestReview, ReviewVerdict,
};
use queue::WebhookDelivery;
use serde_json::{Value, json};

use super::{
    EventKind, EventVerdict, NewTrigger,
    checks::{ChecksAbsent, ChecksChanged},
    closed::CloseEvent,
    comment::CommentEvent,
    competing_close::CompetingMergeEvent,
    from_webhook,
    pushed::PushEvent,
    reopened::ReopenEvent,
    reviewed::ReviewEvent,
    text::TextEditEvent,
    work::WorkRequestEvent,
};
use crate::{
    facts::{
        DecisionFacts, EventActor, Need, RunProgress,
        gates::DecisionGate,
        tracker_reader::{TrackerEdit, TrackerIssue},
    },
    policy::status_check::WorkApproval,
    webhook::payload::{UnreadablePayload, WebhookPayload},
};

pub(super) const SHA: &str = "0123456789abcdef0123456789abcdef01234567";
pub(super) const READY: &str = "Ready for Agent";

pub(super) fn facts_with(rules: &str, source: TriggerChannel) -> DecisionFacts {
    let file = ("shop.yaml".to_owned(), rules.to_owned());
    let book = RulesBook::parse(&[file], &ConfiguredInstances::default());
    assert!(book.problems().is_empty(), "{:?}", book.problems());
    let ours = BTreeSet::from(["journeyman[bot]".to_owned()]);
    DecisionFacts::new(source, book.into(), ours.into(), "agents".to_owned())
}

pub(super) fn build_decision_facts() -> DecisionFacts {
    let rules =
        "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\ntriage:\n  labels: [bug, question]\n";
    facts_with(rules, TriggerChannel::Webhook)
}

/// Progress with a run that accepts news.
pub(super) fn build_live_progress() -> RunProgress {
    RunProgress {
        is_live: true,
        is_behind: false,
    }
}

/// Progress with an unhandled trigger.
pub(super) fn build_behind_progress() -> RunProgress {
    RunProgress {
        is_live: false,
        is_behind: true,
    }
}

pub(super) fn build_repository_name() -> RepositoryName {
    "acme/shop".parse().expect("repository")
}

/// User of GitHub. Each login has a separate id; an empty one has none.
pub(super) fn build_github_user(login: &str) -> github::GitHubUser {
    github::GitHubUser {
        is_bot: false,
        id: (!login.is_empty()).then(|| login.bytes().map(u64::from).sum()),
        login: login.to_owned(),
    }
}

pub(super) fn build_ticket_key() -> TicketKey {
    TicketKey::jira("ENG-12").expect("ticket")
}

pub(super) fn build_commit_id() -> CommitId {
    SHA.parse().expect("commit")
}

fn parse_webhook_events(
    source: &ServiceOrigin,
    event: &str,
    body: &Value,
) -> Result<Vec<Box<dyn EventKind>>, UnreadablePayload> {
    let delivery = WebhookDelivery {
        source: source.clone(),
        id: "d".to_owned(),
        event: event.to_owned(),
        received_at: Timestamp::default(),
        body: body.to_string().into(),
    };
    let payload = WebhookPayload::open(&delivery)?;
    // A body without an event has to name the ticket that it is about.
    payload.requested_ticket()?;
    from_webhook(&payload)
}

pub(super) fn parse_github_events(event: &str, body: &Value) -> Vec<Box<dyn EventKind>> {
    parse_webhook_events(&ServiceOrigin::GitHub(None), event, body).expect("readable")
}

pub(super) fn parse_jira_events(body: &Value) -> Vec<Box<dyn EventKind>> {
    parse_webhook_events(&ServiceOrigin::Jira(None), "jira", body).expect("readable")
}

/// Verdict of an event. Known keys, logs, the target branch and the history are empty unless a test sets
/// them.
pub(super) fn decide_event(event: &dyn EventKind, facts: &DecisionFacts) -> EventVerdict {
    let mut facts = facts.clone();
    loop {
        match event.decide(&facts) {
            Ok(EventVerdict::Becomes(other)) => return decide_event(&*other, &facts),
            Ok(verdict) => return verdict,
            Err(Need::Known(ticket, key)) => facts.put_known(ticket, key, None),
            Err(Need::Log(repository, check)) => facts.put_log(repository, check, None),
            Err(Need::BranchChecks(repository, branch)) => {
                facts.put_branch_checks(repository, branch, vec![])
            }
            Err(Need::History(ticket)) => facts.put_history(ticket, vec![asked_before()]),
            Err(Need::Named(ticket)) => facts.put_named(ticket, None),
            Err(Need::WorkflowRuns(repository, head)) => facts.put_workflow_runs(repository, head, vec![]),
            Err(Need::Identity(ticket)) => facts.put_identity(ticket, None),
            Err(Need::Row(ticket)) => facts.put_row(ticket, domain::TicketRow::default()),
            Err(Need::ChangedFiles(repository, number)) => facts.put_files(repository, number, vec![]),
            Err(need) => panic!("{need:?} is missing"),
        }
    }
}

/// Request that our pull request comes from.
pub(super) fn asked_before() -> Trigger {
    expect_trigger(
        &*parse_jira_events(&build_moved_payload())[0],
        &build_work_facts(|_, _| {}),
    )
    .into_trigger(TriggerChannel::Webhook)
}

pub(super) fn expect_trigger(event: &dyn EventKind, facts: &DecisionFacts) -> NewTrigger {
    match decide_event(event, facts) {
        EventVerdict::Follows(follows) => *follows,
        other => panic!("nothing follows: {other:?}"),
    }
}

pub(super) fn expect_nothing(event: &dyn EventKind, facts: &DecisionFacts) -> String {
    match decide_event(event, facts) {
        EventVerdict::Nothing(why) => why,
        other => panic!("something follows: {other:?}"),
    }
}

pub(super) fn build_ada_account() -> domain::TrackerAccount {
    domain::TrackerAccount {
        id: "a1".to_owned(),
        display_name: "Ada".to_owned(),
        is_bot: false,
    }
}

pub(super) fn jira_person(account: domain::TrackerAccount) -> EventActor {
    EventActor::Jira {
        instance: None,
        project: "ENG".to_owned(),
        account,
    }
}

pub(super) fn build_moved_payload() -> Value {
    json!({"webhookEvent": "jira:issue_updated", "timestamp": 50, "user": {"accountId": "a1", "displayName": "Ada"},
        "issue": {"id": "1", "key": "ENG-12", "fields": {"summary": "Fix it"}},
        "changelog": {"id": "7", "items": [{"field": "assignee", "toString": "Bob"},
            {"field": "status", "fromString": "To Do", "toString": READY}]}})
}

pub(super) fn build_tracker_issue() -> TrackerIssue {
    TrackerIssue {
        summary: "Fix the cart".to_owned(),
        description: "It rounds".to_owned(),
        status: READY.to_owned(),
        moves: vec![jira::StatusChange {
            id: jira::ChangelogId("7".to_owned()),
            to: READY.to_owned(),
            at: Some(Timestamp::from_unix_ms(50)),
            by: Some(build_ada_account()),
        }],
        ..TrackerIssue::default()
    }
}

/// All facts for work on the ticket; `change` modifies them.
pub(super) fn build_work_facts(
    change: impl FnOnce(&mut TrackerIssue, &mut Vec<PullRequest>),
) -> DecisionFacts {
    let (mut facts, mut issue, mut open) = (build_decision_facts(), build_tracker_issue(), Vec::new());
    change(&mut issue, &mut open);
    facts.put_known(build_ticket_key(), TriggerKey::new("changelog:7"), None);
    facts.put_issue(build_ticket_key(), Ok(issue));
    facts.put_authority(jira_person(build_ada_account()), true);
    let nameless = |id: &str| {
        jira_person(domain::TrackerAccount {
            id: id.to_owned(),
            display_name: String::new(),
            is_bot: false,
        })
    };
    facts.put_authority(nameless("a1"), true);
    facts.put_authority(nameless("eve"), false);
    facts.put_open(build_repository_name(), build_ticket_key(), open);
    facts
}

#[test]
fn status_change_is_equal_in_both_channels() {
    let delivered = parse_jira_events(&build_moved_payload());
    let facts = build_work_facts(|_, _| {});
    let polled = WorkRequestEvent::from_poll(
        build_ticket_key(),
        READY.to_owned(),
        build_tracker_issue().moves.pop(),
        Timestamp::default(),
    );
    let both = [
        expect_trigger(&*delivered[0], &facts),
        expect_trigger(&polled, &facts),
    ];
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0].key, TriggerKey::new("changelog:7"));
    let assigned = expect_nothing(&*delivered[1], &facts);
    assert_eq!(
        assigned, "no rules select tickets by assignment or label",
        "it was assigned as well"
    );
    assert_eq!(both[0].actor.as_deref(), Some("Ada"));
    let TriggerReason::JobRequested(job) = &both[0].reason else {
        panic!("no job")
    };
    assert_eq!(
        (job.job, job.repository.to_string()),
        (Job::Implement, "acme/shop".to_owned())
    );
    assert_eq!(job.text.summary, "Fix the cart");
    assert_eq!(job.text.sha256.len(), 64);
}

#[test]
fn created_issue_requests_work_or_triage() {
    let created = |status: &str| {
        json!({"webhookEvent": "jira:issue_created", "timestamp": 5, "user": {"accountId": "a1", "displayName": "Ada"},
            "issue": {"key": "ENG-12", "fields": {"status": {"name": status}}}})
    };
    let mut facts = build_work_facts(|issue, _| issue.moves.clear());
    facts.put_known(build_ticket_key(), TriggerKey::new("created:jira:ENG-12"), None);
    facts.put_known(build_ticket_key(), TriggerKey::new("triage:created"), None);
    let reasons = |status: &str| -> Vec<Option<Job>> {
        let verdicts = parse_jira_events(&created(status))
            .into_iter()
            .map(|event| decide_event(&*event, &facts));
        let follows = verdicts.filter_map(|verdict| match verdict {
            EventVerdict::Follows(follows) => Some(follows.reason.job()),
            _ => None,
        });
        follows.collect()
    };
    assert_eq!(reasons(READY), [Some(Job::Implement)]);
    assert_eq!(reasons("To Do"), [Some(Job::Triage)]);
}

#[test]
fn uninteresting_status_needs_no_reads() {
    let mut elsewhere = build_moved_payload();
    elsewhere["changelog"]["items"][1]["toString"] = json!("Done");
    assert_eq!(
        expect_nothing(&*parse_jira_events(&elsewhere)[0], &build_decision_facts()),
        "status \"Done\" asks for nothing"
    );
    let mut ours = build_moved_payload();
    ours["user"] = json!({"accountId": "j", "displayName": "journeyman[bot]"});
    assert_eq!(
        expect_nothing(&*parse_jira_events(&ours)[0], &build_decision_facts()),
        "our own account did it"
    );
    let known = facts_with("repo:\n  owner: acme\n  name: shop\n", TriggerChannel::Webhook);
    assert!(matches!(
        decide_event(&*parse_jira_events(&build_moved_payload())[0], &known),
        EventVerdict::Unruled(_)
    ));
    assert_eq!(
        expect_nothing(&*parse_jira_events(&elsewhere)[0], &known),
        "no rules for the project"
    );
}

#[test]
fn what_the_log_knows_costs_no_reads() {
    let mut facts = build_decision_facts();
    let event = &parse_jira_events(&build_moved_payload())[0];
    let key = TriggerKey::new("changelog:7");
    assert_eq!(
        event.decide(&facts).unwrap_err(),
        Need::Known(build_ticket_key(), key.clone())
    );
    facts.put_known(build_ticket_key(), key, Some(5));
    assert!(matches!(decide_event(&**event, &facts), EventVerdict::Known(5)));
}

#[test]
fn forbidden_work_names_its_skip_rule() {
    let reason = |change: fn(&mut TrackerIssue, &mut Vec<PullRequest>)| match expect_trigger(
        &*parse_jira_events(&build_moved_payload())[0],
        &build_work_facts(change),
    )
    .reason
    {
        TriggerReason::Skipped(reason) => reason,
        other => panic!("not skipped: {other:?}"),
    };
    let phrase = |place| SkipReason::Phrase {
        phrase: "[AGENT-SKIP]".to_owned(),
        place,
    };
    let edit = |id: &str, at: i64, by: &str| TrackerEdit {
        id: id.to_owned(),
        at: Timestamp::from_unix_ms(at),
        by: Some(domain::TrackerAccount {
            id: by.to_owned(),
            display_name: by.to_uppercase(),
            is_bot: false,
        }),
    };
    let comment = crate::facts::tracker_reader::TrackerComment {
        author: "Ada".to_owned(),
        author_id: "a1".to_owned(),
        by_bot: false,
        created: Timestamp::from_unix_ms(9),
        updated: Timestamp::from_unix_ms(9),
        text: "no: [AGENT-SKIP]".to_owned(),
    };
    assert_eq!(
        reason(|issue, _| issue.summary = "x [AGENT-SKIP]".to_owned()),
        phrase(SkipPlace::Summary)
    );
    assert_eq!(
        reason(|issue, _| issue.description = "[AGENT-SKIP] y".to_owned()),
        phrase(SkipPlace::Description)
    );
    let labeled = reason(|issue, _| issue.labels = vec!["skip-dispatch".to_owned()]);
    let label = "skip-dispatch".to_owned();
    assert_eq!(labeled, SkipReason::Label { label });
    let exists = reason(|_, open| open.push(pull_request()));
    assert!(matches!(exists, SkipReason::PullRequestExists { author, .. } if author == "sam"));
    let verdict = |edits, comments| {
        let facts = build_work_facts(|issue, _| (issue.edits, issue.comments) = (edits, comments));
        expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &facts).reason
    };
    let said = phrase(SkipPlace::Comment {
        author: "Ada".to_owned(),
    });
    assert_eq!(verdict(vec![], vec![comment]), TriggerReason::Skipped(said));
    let is_job = |reason: &TriggerReason| matches!(reason, TriggerReason::JobRequested(_));
    assert!(is_job(&verdict(vec![edit("6", 49, "eve")], vec![])), "before");
    assert!(
        is_job(&verdict(vec![edit("7", 50, "eve")], vec![])),
        "by the move itself"
    );
    assert!(
        is_job(&verdict(vec![edit("8", 51, "a1")], vec![])),
        "by an instructor"
    );
    let changed = TriggerReason::Skipped(SkipReason::TextChanged { by: "EVE".to_owned() });
    assert_eq!(verdict(vec![edit("8", 51, "eve")], vec![]), changed);
    assert_eq!(verdict(vec![edit("8", 50, "eve")], vec![]), changed);
}

#[test]
fn left_status_notifies_after_webhook_only() {
    let facts = build_work_facts(|issue, _| issue.status = "Done".to_owned());
    let left = expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &facts).reason;
    assert!(
        matches!(left, TriggerReason::Skipped(SkipReason::StatusLeft { status, .. }) if status == "Done")
    );
    let mut polled = facts;
    polled.source = TriggerChannel::Poll;
    assert_eq!(
        expect_nothing(&*parse_jira_events(&build_moved_payload())[0], &polled),
        "the ticket has left the status"
    );
}

#[test]
fn unreadable_or_unauthorized_ticket_is_reported() {
    let mut unreadable = build_decision_facts();
    unreadable.put_known(build_ticket_key(), TriggerKey::new("changelog:7"), None);
    unreadable.put_issue(build_ticket_key(), Err("too deep".to_owned()));
    let reason = expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &unreadable).reason;
    assert_eq!(reason, TriggerReason::Skipped(SkipReason::Unreadable));
    let mut refused = build_decision_facts();
    refused.put_known(build_ticket_key(), TriggerKey::new("changelog:7"), None);
    refused.put_issue(build_ticket_key(), Ok(build_tracker_issue()));
    refused.put_authority(jira_person(build_ada_account()), false);
    let reason = expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &refused).reason;
    let (actor, group) = ("Ada".to_owned(), "agents".to_owned());
    assert_eq!(
        reason,
        TriggerReason::Skipped(SkipReason::NotAllowed {
            actor,
            group,
            role: String::new()
        })
    );
}

/// Edit of a description: the events of its webhook, its entry, and the issue in a search.
pub(super) fn build_text_edit() -> (Vec<Box<dyn EventKind>>, TrackerEdit, jira::ChangedIssue) {
    let delivered = parse_jira_events(&json!({"webhookEvent": "jira:issue_updated", "timestamp": 60,
        "user": {"accountId": "a1", "displayName": "Ada"}, "issue": {"key": "ENG-12"},
        "changelog": {"id": "9", "items": [{"field": "description"}]}}));
    let edit = TrackerEdit {
        id: "9".to_owned(),
        at: Timestamp::from_unix_ms(60),
        by: Some(build_ada_account()),
    };
    let changed = jira::ChangedIssue {
        id: None,
        key: build_ticket_key(),
        status: "To Do".to_owned(),
        created: Timestamp::default(),
        updated: Timestamp::from_unix_ms(60),
        creator: Some(build_ada_account()),
        assignee: None,
    };
    (delivered, edit, changed)
}

#[test]
fn last_text_edit_is_triaged_once() {
    let (delivered, edit, changed) = build_text_edit();
    let polled =
        TextEditEvent::from_poll(&changed, Some(edit.clone()), Timestamp::from_unix_ms(55)).expect("edited");
    let with = |edits: Vec<TrackerEdit>, labels: Vec<String>| {
        let mut facts = build_work_facts(|issue, _| (issue.edits, issue.labels) = (edits, labels));
        facts.put_known(build_ticket_key(), TriggerKey::new("triage:9"), None);
        facts
    };
    let facts = with(vec![edit.clone()], vec![]);
    assert_eq!(
        expect_trigger(&*delivered[0], &facts),
        expect_trigger(&polled, &facts)
    );
    assert_eq!(expect_trigger(&polled, &facts).reason.job(), Some(Job::Triage));
    let later = TrackerEdit {
        id: "10".to_owned(),
        at: Timestamp::from_unix_ms(61),
        ..edit
    };
    assert_eq!(
        expect_nothing(&polled, &with(vec![later], vec![])),
        "a later edit of the text stands for it"
    );
    assert_eq!(
        expect_nothing(&polled, &with(vec![], vec!["triaged".to_owned()])),
        "the ticket is triaged"
    );
    assert!(TextEditEvent::from_poll(&changed, None, Timestamp::from_unix_ms(55)).is_none());
}

pub(super) fn build_comment_events(text: &str) -> Vec<Box<dyn EventKind>> {
    parse_github_events(
        "issue_comment",
        &json!({"action": "created", "issue": {"number": 7}, "repository": {"full_name": "acme/shop"},
            "comment": {"id": 31, "body": text, "user": {"login": "rita", "id": 8}, "created_at": "2026-11-21T10:00:00Z"}}),
    )
}

/// The comment `/stop` of Rita, from a poll.
pub(super) fn build_polled_stop() -> CommentEvent {
    let at = Timestamp::parse("2026-11-21T10:00:00Z");
    let comment = github::GitHubComment {
        id: github::GitHubCommentId(31),
        author: "rita".to_owned(),
        author_id: Some(8),
        created_at: at,
        body: "/stop".to_owned(),
        updated_at: at,
        by_us: false,
        by_bot: false,
    };
    CommentEvent::from_github_poll(&build_repository_name(), 7, comment, Timestamp::default())
}

pub(super) fn build_rita_actor() -> EventActor {
    EventActor::GitHub {
        repository: build_repository_name(),
        login: "rita".to_owned(),
        id: Some(8),
        is_bot: false,
    }
}

#[test]
fn command_needs_write_permission_and_finds_ticket() {
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    let mut refused = facts.clone();
    facts.put_authority(build_rita_actor(), true);
    refused.put_authority(build_rita_actor(), false);
    let stop = expect_trigger(&*build_comment_events("/stop")[0], &facts);
    assert_eq!(
        (stop.ticket, stop.key),
        (build_ticket_key(), TriggerKey::new("comment:31"))
    );
    assert_eq!(stop.reason, TriggerReason::StopRequested { run: None });
    assert_eq!(
        expect_nothing(&*build_comment_events("/stop")[0], &refused),
        "the author is not allowed to give orders"
    );
    assert_eq!(
        expect_trigger(&build_polled_stop(), &facts),
        expect_trigger(&*build_comment_events("/stop")[0], &facts)
    );
}

#[test]
fn help_is_given_where_journeyman_works() {
    let mut facts = build_decision_facts();
    facts.put_authority(build_rita_actor(), true);
    let mut ours = facts.clone();
    ours.put_record(build_repository_name(), 7, Some(build_pull_record()));
    let help = expect_trigger(&*build_comment_events("/help")[0], &ours);
    let on = Some(build_pull_record().pull_request);
    assert_eq!(help.reason, TriggerReason::HelpAsked { on, meant: None });
    facts.put_record(build_repository_name(), 7, None);
    assert_eq!(
        expect_nothing(&*build_comment_events("/help")[0], &facts),
        "no run of the ticket has begun"
    );
}

#[test]
fn near_miss_is_answered_where_orders_count() {
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_progress(build_ticket_key(), build_live_progress());
    let mut stranger = facts.clone();
    facts.put_authority(build_rita_actor(), true);
    stranger.put_authority(build_rita_actor(), false);
    let answered = expect_trigger(&*build_comment_events("/stpo")[0], &facts);
    assert_eq!(
        answered.reason,
        TriggerReason::HelpAsked {
            on: Some(build_pull_reference()),
            meant: Some("/stop".to_owned())
        }
    );
    // The words of others are information, whatever they look like.
    let passed_on = expect_trigger(&*build_comment_events("/stpo")[0], &stranger);
    assert!(
        matches!(passed_on.reason, TriggerReason::NewsArrived(_)),
        "{passed_on:?}"
    );
}

#[test]
fn words_become_news_for_runs_that_listen() {
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(build_rita_actor(), false);
    let mut alone = facts.clone();
    facts.put_progress(build_ticket_key(), build_live_progress());
    alone.put_progress(build_ticket_key(), RunProgress::default());
    let TriggerReason::NewsArrived(domain::TicketNews::Comment {
        comment,
        pull_request,
        ..
    }) = expect_trigger(&*build_comment_events("Round up, please.")[0], &facts).reason
    else {
        panic!("no news")
    };
    assert_eq!(
        (comment.text.as_str(), comment.may_instruct),
        ("Round up, please.", false)
    );
    assert_eq!(pull_request, Some(build_pull_reference()));
    let why = expect_nothing(&*build_comment_events("Round up, please.")[0], &alone);
    assert_eq!(why, "no run is under way that could read it");
}

#[test]
fn comment_with_our_marker_is_ours() {
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(build_rita_actor(), true);
    facts.put_progress(build_ticket_key(), build_live_progress());
    let marker = "<!-- journeyman:effect=jira:ENG-12@57/3 -->";
    for ours in [
        format!("Which totals are meant?\n\n{marker}"),
        format!("/stop\n\n{marker}\n"),
    ] {
        assert_eq!(
            expect_nothing(&*build_comment_events(&ours)[0], &facts),
            "our own account said it"
        );
    }
    // A quotation of our text is the text of the quoting user.
    let theirs = [
        format!("> Which totals?\n> {marker}\n\nAll of them."),
        format!("{marker}\nAll of them."),
    ];
    for theirs in theirs {
        assert!(matches!(
            expect_trigger(&*build_comment_events(&theirs)[0], &facts).reason,
            TriggerReason::NewsArrived(_)
        ));
    }
}

/// Comment of a user on the Jira ticket from a webhook and from a poll.
fn said_on_ticket(body: &Value) -> [CommentEvent; 2] {
    build_comments_by("atlassian", body)
}

/// Comment of an account of this type on the Jira ticket from a webhook and from a poll.
fn build_comments_by(account_type: &str, body: &Value) -> [CommentEvent; 2] {
    let author = json!({"accountId": "a1", "displayName": "Ada", "accountType": account_type});
    let payload = json!({"webhookEvent": "comment_created", "timestamp": 90, "issue": {"key": "ENG-12"},
        "comment": {"id": "31", "author": author, "body": body}});
    let delivered = parse_jira_events(&payload)
        .into_iter()
        .find(|event| format!("{event:?}").starts_with("CommentEvent"));
    assert!(delivered.is_some(), "{body}");
    let author = domain::TrackerAccount {
        id: "a1".to_owned(),
        display_name: "Ada".to_owned(),
        is_bot: false,
    };
    let at = Timestamp::from_unix_ms(90);
    let comment = jira::JiraComment {
        id: jira::JiraCommentId("31".to_owned()),
        author: author.display_name,
        author_account_id: author.id,
        by_bot: false,
        by_customer: account_type == "customer",
        created: at,
        updated: at,
        text: crate::webhook::payload::jira::convert_to_markdown(body).unwrap_or_default(),
        mentioned: jira::adf::mentioned_accounts(body),
        marker: String::new(),
        by_us: false,
    };
    let polled = CommentEvent::from_jira_poll(&build_ticket_key(), &comment);
    let delivered = super::comment::from_webhook(&WebhookPayload::Jira {
        instance: None,
        payload: Box::new(serde_json::from_value(payload).expect("payload")),
    });
    [delivered.expect("readable").expect("a comment"), polled]
}

#[test]
fn customer_comment_is_information_never_order() {
    let mut facts = build_decision_facts();
    facts.put_authority(jira_person(build_ada_account()), true);
    facts.put_progress(build_ticket_key(), build_live_progress());
    for text in ["/stop", "/retry", "/cost", "/approve 000000000abc"] {
        for event in build_comments_by("customer", &json!(text)) {
            assert_eq!(
                expect_nothing(&event, &facts),
                "a customer of the service desk gives no orders",
                "{text}"
            );
        }
    }
    for (account_type, may_instruct) in [("customer", false), ("atlassian", true)] {
        for event in build_comments_by(account_type, &json!("Round up, please.")) {
            let TriggerReason::NewsArrived(domain::TicketNews::Comment { comment, .. }) =
                expect_trigger(&event, &facts).reason
            else {
                panic!("no news")
            };
            assert_eq!(comment.may_instruct, may_instruct, "{account_type}");
        }
    }
}

/// Facts with account ids alone, as the setup command writes them.
fn facts_after_setup() -> DecisionFacts {
    let mut facts = build_decision_facts();
    let own = ["712020:journeyman-reader", "712020:journeyman-writer"];
    facts.own_accounts = BTreeSet::from(own.map(str::to_owned)).into();
    facts.put_progress(build_ticket_key(), RunProgress::default());
    facts
}

fn mention_node(id: &str) -> Value {
    json!({"type": "mention", "attrs": {"id": id, "text": "@Renamed Since"}})
}

fn build_document(nodes: &[Value]) -> Value {
    json!({"type": "doc", "version": 1, "content": nodes})
}

#[test]
fn account_id_mention_asks_both_channels() {
    let facts = facts_after_setup();
    let node = || mention_node("712020:journeyman-writer");
    let paragraph =
        |node: Value| json!({"type": "paragraph", "content": [node, {"type": "text", "text": " why?"}]});
    let item = json!({"type": "listItem", "content": [paragraph(node())]});
    let bodies = [
        build_document(&[paragraph(node())]),
        build_document(&[json!({"type": "bulletList", "content": [item]})]),
        build_document(&[json!({"type": "panel", "content": [paragraph(node())]})]),
        json!("[~accountid:712020:journeyman-writer] why?"),
        json!("h2. Question\n\n* Hi [~accountid:712020:journeyman-writer], why?"),
    ];
    for body in bodies {
        for event in said_on_ticket(&body) {
            let verdict = event.decide(&facts).expect("decided");
            let asks = matches!(&verdict, EventVerdict::Becomes(question) if format!("{question:?}").starts_with("QuestionEvent"));
            assert!(asks, "{body}: {verdict:?}");
        }
    }
    let text = json!({"type": "text", "text": "@journeyman-writer"});
    for body in [
        build_document(&[json!({"type": "blockquote", "content": [paragraph(node())]})]),
        build_document(&[paragraph(mention_node("712020:somebody"))]),
        build_document(&[json!({"type": "codeBlock", "content": [text]})]),
        json!("{quote}[~accountid:712020:journeyman-writer] why?{quote}\nThanks, that helps!"),
        json!("bq. [~accountid:712020:journeyman-writer] why?"),
        json!("{code}\n[~accountid:712020:journeyman-writer]\n{code}"),
        json!("{noformat}[~accountid:712020:journeyman-writer]{noformat}"),
        json!("{{[~accountid:712020:journeyman-writer]}}"),
        json!("[~accountid:712020:somebody] why?"),
    ] {
        for event in said_on_ticket(&body) {
            assert_eq!(
                expect_nothing(&event, &facts),
                "no run is under way that could read it",
                "{body}"
            );
        }
    }
}

#[test]
fn data_center_mention_uses_user_name() {
    let mut facts = facts_after_setup();
    facts.own_accounts = BTreeSet::from(["journeyman.writer".to_owned()]).into();
    for (body, asks) in [
        ("[~journeyman.writer] why?", true),
        ("See [~Journeyman.Writer].", true),
        ("[~journeyman.writer2] why?", false),
        ("{quote}[~journeyman.writer] why?{quote}", false),
    ] {
        for event in said_on_ticket(&json!(body)) {
            let verdict = event.decide(&facts).expect("decided");
            assert_eq!(matches!(verdict, EventVerdict::Becomes(_)), asks, "{body}");
        }
    }
}

#[test]
fn question_waits_for_late_planner() {
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(build_rita_actor(), true);
    facts.put_progress(build_ticket_key(), build_behind_progress());
    let early = decide_event(
        &*build_comment_events("@journeyman why does the total ignore it?")[0],
        &facts,
    );
    assert!(matches!(early, EventVerdict::Unsettled { .. }), "{early:?}");
    let words = expect_trigger(&*build_comment_events("Round up, please.")[0], &facts).reason;
    assert!(matches!(words, TriggerReason::NewsArrived(_)), "{words:?}");
    let mut both = facts_with(
        "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n",
        TriggerChannel::Webhook,
    );
    both.put_record(build_repository_name(), 7, Some(build_pull_record()));
    both.put_authority(build_rita_actor(), true);
    both.put_progress(
        build_ticket_key(),
        RunProgress {
            is_live: true,
            is_behind: true,
        },
    );
    let heard = expect_trigger(&*build_comment_events("@journeyman why?")[0], &both).reason;
    assert!(matches!(heard, TriggerReason::NewsArrived(_)), "{heard:?}");
}

pub(super) fn build_pull_reference() -> PullRequestRef {
    PullRequestRef {
        repository: build_repository_name(),
        number: 7,
        url: "https://forge.example/acme/shop/pull/7".to_owned(),
        branch: "feat/ENG-12-x".to_owned(),
    }
}

pub(super) fn build_pull_record() -> PullRequestRecord {
    PullRequestRecord {
        pull_request: build_pull_reference(),
        ticket: build_ticket_key(),
        head: Some(build_commit_id()),
        status: PullRequestStatus::Open,
    }
}

pub(super) fn build_branch_record() -> BranchRecord {
    BranchRecord {
        repository: build_repository_name(),
        branch: "feat/ENG-12-x".to_owned(),
        ticket: build_ticket_key(),
        run: RunId::new(build_ticket_key(), 1),
        head: build_commit_id(),
        pull_request: Some(build_pull_reference()),
        signed: Vec::new(),
    }
}

pub(super) fn pull_request() -> PullRequest {
    PullRequest {
        number: 7,
        node_id: String::new(),
        title: String::new(),
        body: String::new(),
        branch: "feat/ENG-12-x".to_owned(),
        head: build_commit_id(),
        head_repository: "acme/shop".to_owned(),
        base_branch: "main".to_owned(),
        author: "sam".to_owned(),
        url: "https://forge.example/acme/shop/pull/7".to_owned(),
        draft: true,
        merged: false,
        merged_by: None,
        state: github::PullRequestState::Open,
        updated_at: None,
        closed_at: None,
        requested_reviewers: Vec::new(),
        requested_teams: Vec::new(),
        labels: Vec::new(),
        lock: None,
        merge: github::PullRequestMerge::default(),
    }
}

pub(super) fn build_commit_check(id: u64, end: Option<CheckConclusion>) -> CommitCheck {
    CommitCheck {
        kind: CheckKind::Run,
        id,
        name: format!("test {id}"),
        suite: 1,
        status: if end.is_some() {
            CheckStatus::Completed
        } else {
            CheckStatus::InProgress
        },
        conclusion: end,
        completed_at: end.map(|_| Timestamp::from_unix_ms(1_000)),
        url: String::new(),
        output_tail: "é".repeat(5_000),
    }
}

pub(super) fn build_checked_facts(now: PullRequest, checks: Vec<CommitCheck>) -> DecisionFacts {
    let mut facts = build_decision_facts();
    facts.put_branch(
        build_repository_name(),
        "feat/ENG-12-x".to_owned(),
        Some(build_branch_record()),
    );
    facts.put_pull_request(build_repository_name(), 7, now);
    facts.put_checks(build_repository_name(), build_commit_id(), checks);
    facts
}

pub(super) fn check_run() -> Vec<Box<dyn EventKind>> {
    parse_github_events(
        "check_run",
        &json!({"action": "completed", "repository": {"full_name": "acme/shop"},
            "check_run": {"head_sha": SHA, "check_suite": {"head_branch": "feat/ENG-12-x"}}}),
    )
}

#[test]
fn ci_event_kinds_and_poll_agree() {
    let repository = json!({"full_name": "acme/shop"});
    let suite = json!({"action": "completed", "repository": repository,
        "check_suite": {"head_sha": SHA, "head_branch": "feat/ENG-12-x"}});
    let status = json!({"sha": SHA, "state": "failure", "branches": [{"name": "feat/ENG-12-x"}],
        "repository": repository});
    let facts = build_checked_facts(
        pull_request(),
        vec![build_commit_check(1, Some(CheckConclusion::Failure))],
    );
    let run = expect_trigger(&*check_run()[0], &facts);
    assert_eq!(
        expect_trigger(&*parse_github_events("check_suite", &suite)[0], &facts),
        run
    );
    assert_eq!(
        expect_trigger(&*parse_github_events("status", &status)[0], &facts),
        run
    );
    let workflow = json!({"action": "completed", "repository": repository,
        "workflow_run": {"head_sha": SHA, "head_branch": "feat/ENG-12-x"}});
    assert_eq!(
        expect_trigger(&*parse_github_events("workflow_run", &workflow)[0], &facts),
        run
    );
    assert_eq!(
        expect_trigger(
            &ChecksChanged::from_poll(&build_pull_record(), build_commit_id()),
            &facts
        ),
        run
    );
    assert_eq!(
        (run.ticket, run.reason.job()),
        (build_ticket_key(), Some(Job::FixCi))
    );
    let started = json!({"action": "created", "repository": repository,
        "check_run": {"head_sha": SHA, "check_suite": {"head_branch": null}}});
    assert!(
        parse_github_events("check_run", &started).is_empty(),
        "a check that only starts"
    );
    let own = |external_id: &str| {
        json!({"action": "completed", "repository": repository, "check_run": {"name": "Journeyman",
            "external_id": external_id, "head_sha": SHA, "check_suite": {"head_branch": "feat/ENG-12-x"}}})
    };
    assert!(
        parse_github_events("check_run", &own("journeyman:1")).is_empty(),
        "what we say ourselves"
    );
    let mut of_action = own("ci-7");
    of_action["check_run"]["name"] = json!("Journeyman reviews");
    assert!(
        parse_github_events("check_run", &of_action).is_empty(),
        "a job of our action"
    );
    assert_eq!(
        parse_github_events("check_run", &own("ci-7")).len(),
        1,
        "a check of somebody with the same name"
    );
}

#[test]
fn checks_count_when_complete_on_open_head() {
    let verdict =
        |now: PullRequest, checks| decide_event(&*check_run()[0], &build_checked_facts(now, checks));
    assert!(matches!(verdict(pull_request(), vec![]), EventVerdict::NoChecks));
    let running = vec![
        build_commit_check(1, Some(CheckConclusion::Success)),
        build_commit_check(2, None),
    ];
    assert!(
        matches!(verdict(pull_request(), running), EventVerdict::Nothing(why) if why == "checks are not complete")
    );
    let old = PullRequest {
        head: "a".repeat(40).parse().expect("commit"),
        ..pull_request()
    };
    let over = PullRequest {
        closed_at: Some(Timestamp::default()),
        ..pull_request()
    };
    for now in [old, over] {
        let verdict = verdict(now, vec![]);
        assert!(
            matches!(verdict, EventVerdict::Nothing(why) if why == "not the open head of the pull request")
        );
    }
    let mut early = build_decision_facts();
    let unrecorded = BranchRecord {
        pull_request: None,
        ..build_branch_record()
    };
    early.put_branch(
        build_repository_name(),
        "feat/ENG-12-x".to_owned(),
        Some(unrecorded),
    );
    assert!(matches!(
        decide_event(&*check_run()[0], &early),
        EventVerdict::Early(_)
    ));
    let mut foreign = build_decision_facts();
    foreign.put_branch(build_repository_name(), "feat/ENG-12-x".to_owned(), None);
    assert_eq!(expect_nothing(&*check_run()[0], &foreign), "not a branch of ours");
}

#[test]
fn failed_check_is_named_with_log_end() {
    use CheckConclusion::{Cancelled, Neutral, Skipped, Success, TimedOut};
    let summary = |ends: &[CheckConclusion]| {
        let checks = (1..)
            .zip(ends)
            .map(|(id, end)| build_commit_check(id, Some(*end)))
            .collect();
        match expect_trigger(&*check_run()[0], &build_checked_facts(pull_request(), checks)).reason {
            TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(summary)) => summary,
            TriggerReason::JobRequested(request) => match request.about {
                JobSubject::Checks(summary) => *summary,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        summary(&[Success, Skipped, Neutral]).conclusion,
        ChecksConclusion::Success
    );
    let failed = summary(&[Success, TimedOut, Cancelled]);
    assert_eq!(failed.conclusion, ChecksConclusion::Failure);
    let names: Vec<_> = failed.failed.iter().map(|failed| failed.name.as_str()).collect();
    assert_eq!(names, ["test 2", "test 3"]);
    assert!(
        failed
            .failed
            .iter()
            .all(|failed| failed.log_tail.len() <= 8 * 1024)
    );
}

#[test]
fn checks_key_ignores_order_changes_per_attempt() {
    use CheckConclusion::{Failure, Success};
    let key = |checks: Vec<CommitCheck>| {
        expect_trigger(&*check_run()[0], &build_checked_facts(pull_request(), checks)).key
    };
    let (one, two) = (
        build_commit_check(1, Some(Success)),
        build_commit_check(2, Some(Failure)),
    );
    let first = key(vec![one.clone(), two.clone()]);
    assert_eq!(first, key(vec![two, one.clone()]));
    assert_ne!(first, key(vec![one, build_commit_check(3, Some(Failure))]));
    assert!(first.as_str().starts_with(&format!("checks:acme/shop:{SHA}:")));
    let silent = build_checked_facts(pull_request(), vec![]);
    let absent = expect_trigger(
        &ChecksAbsent::from_poll(&build_pull_record(), build_commit_id()),
        &silent,
    );
    assert_eq!(
        absent.key,
        TriggerKey::new(format!("checks:acme/shop:{SHA}:absent"))
    );
}

pub(super) fn build_closed_payload(merged: &Value, head: &str) -> Value {
    json!({"action": "closed", "repository": {"full_name": "acme/shop"}, "sender": {"login": "sam"},
        "pull_request": {"number": 7, "head": {"ref": "feat/ENG-12-x", "repo": {"full_name": head}},
            "merged": merged, "merged_by": {"login": "mia"}, "closed_at": "2026-11-21T10:00:00Z"}})
}

#[test]
fn closed_pull_request_has_one_key() {
    let over = |merged: bool| PullRequest {
        merged,
        merged_by: merged.then(|| "mia".to_owned()),
        closed_at: Some(Timestamp::from_unix_ms(1_700_000_000_500)),
        ..pull_request()
    };
    for (merged, by, key) in [
        (true, "mia", "merged:acme/shop#7"),
        (false, "sam", "closed:acme/shop#7:1700000000"),
    ] {
        let facts = build_checked_facts(over(merged), vec![]);
        let delivered = expect_trigger(
            &*parse_github_events("pull_request", &build_closed_payload(&json!(merged), "acme/shop"))[0],
            &facts,
        );
        let polled = expect_trigger(&CloseEvent::from_poll(&build_pull_record()), &facts);
        assert_eq!((&delivered.key, &delivered.ticket), (&polled.key, &polled.ticket));
        assert_eq!(
            (delivered.key, delivered.actor.as_deref()),
            (TriggerKey::new(key), Some(by))
        );
    }
    let open = build_checked_facts(pull_request(), vec![]);
    let why = expect_nothing(
        &*parse_github_events("pull_request", &build_closed_payload(&json!(null), "acme/shop"))[0],
        &open,
    );
    assert_eq!(why, "the pull request is open again");
    let fork = parse_github_events("pull_request", &build_closed_payload(&json!(false), "evil/shop"));
    let is_closed = fork
        .iter()
        .any(|event| format!("{event:?}").starts_with("CloseEvent"));
    assert!(!is_closed, "a pull request from a fork is never ours");
}

#[test]
fn other_branch_pull_request_is_not_ours() {
    let mut facts = build_decision_facts();
    let other = BranchRecord {
        pull_request: Some(PullRequestRef {
            number: 8,
            ..build_pull_reference()
        }),
        ..build_branch_record()
    };
    facts.put_branch(build_repository_name(), "feat/ENG-12-x".to_owned(), Some(other));
    let why = expect_nothing(
        &*parse_github_events("pull_request", &build_closed_payload(&json!(true), "acme/shop"))[0],
        &facts,
    );
    assert_eq!(why, "another pull request of the branch");
}

#[test]
fn uninteresting_updates_make_no_events() {
    for payload in [
        json!({"webhookEvent": "jira:issue_updated", "issue": {"key": "ENG-1"}}),
        json!({"webhookEvent": "comment_created"}),
        json!({"webhookEvent": "jira:issue_updated", "changelog": {"id": "1", "items": []}}),
    ] {
        assert!(parse_jira_events(&payload).is_empty(), "{payload}");
    }
    assert!(parse_github_events("ping", &json!({})).is_empty());
}

#[test]
fn unreadable_payload_error_quotes_nothing() {
    let github = |event: &str, body: &Value| parse_webhook_events(&ServiceOrigin::GitHub(None), event, body);
    for (name, payload) in [
        ("check_run", json!({})),
        ("check_suite", json!([1, 2])),
        ("status", json!({"sha": "x", "state": 1})),
        ("pull_request", json!({"action": "closed"})),
        ("issue_comment", json!({"action": "created"})),
    ] {
        assert!(github(name, &payload).is_err(), "{name}");
    }
    let delivered = github("status", &json!({"sha": "secret", "state": 1}))
        .unwrap_err()
        .to_string();
    assert!(!delivered.contains("secret"), "{delivered}");
    let pull = json!({"action": "closed", "pull_request": {"number": "seven"}});
    let delivered = github("pull_request", &pull).unwrap_err().to_string();
    assert!(
        delivered.contains("at pull_request") && !delivered.contains("seven"),
        "{delivered}"
    );
    let without = |path: &str, value: Value| {
        let mut payload = build_moved_payload();
        *payload.pointer_mut(path).expect("there") = value;
        payload
    };
    for payload in [
        json!({}),
        json!([]),
        json!("x"),
        json!({"webhookEvent": 5}),
        without("/issue/key", json!("../../etc")),
        without("/issue", Value::Null),
        without("/timestamp", Value::Null),
    ] {
        assert!(
            parse_webhook_events(&ServiceOrigin::Jira(None), "jira", &payload).is_err(),
            "{payload}"
        );
    }
}

#[test]
fn reopening_is_followed_once_per_close() {
    let payload = json!({"action": "reopened", "sender": {"login": "grace"}, "repository": {"full_name": "acme/shop"},
        "pull_request": {"number": 7, "head": {"ref": "feat/ENG-12-x", "repo": {"full_name": "acme/shop"}}}});
    let mut delivered = parse_github_events("pull_request", &payload).into_iter();
    let delivered = delivered.find(|event| format!("{event:?}").starts_with("ReopenEvent"));
    let delivered = delivered.expect("an event");
    let closed = PullRequestRecord {
        status: PullRequestStatus::Closed,
        ..build_pull_record()
    };
    let ended = NewTrigger {
        ticket: build_ticket_key(),
        key: TriggerKey::new("closed"),
        at: Timestamp::default(),
        actor: None,
        reason: TriggerReason::from(PullRequestEvent::Closed(PullRequestEnd {
            pull_request: closed.pull_request.clone(),
            by: "grace".to_owned(),
            moved_to: None,
        })),
    };
    let with = |record: &PullRequestRecord, ends: usize| {
        let mut facts = build_decision_facts();
        facts.put_record(build_repository_name(), 7, Some(record.clone()));
        facts.put_pull_request(build_repository_name(), 7, pull_request());
        let history = vec![ended.clone().into_trigger(TriggerChannel::Webhook); ends];
        facts.put_history(build_ticket_key(), history);
        facts
    };
    let polled = ReopenEvent::from_poll(&closed);
    let key = |event: &dyn EventKind, ends| expect_trigger(event, &with(&closed, ends)).key;
    assert_eq!(key(&*delivered, 1), TriggerKey::new("reopened:acme/shop#7:1"));
    assert_eq!(key(&*delivered, 2), TriggerKey::new("reopened:acme/shop#7:2"));
    assert_eq!(key(&polled, 1), key(&*delivered, 1));
    assert_eq!(
        expect_nothing(&*delivered, &with(&build_pull_record(), 0)),
        "no closed pull request"
    );
    assert_eq!(
        expect_trigger(&*delivered, &with(&build_pull_record(), 1))
            .reason
            .job(),
        Some(Job::Reopen),
        "its record comes later"
    );
}

#[test]
fn same_number_elsewhere_is_another_pull_request() {
    let ours = build_pull_record();
    let elsewhere = PullRequestRef {
        repository: "acme/web".parse().expect("repository"),
        ..ours.pull_request.clone()
    };
    let log = |pull_requests: &[&PullRequestRef]| -> Vec<Trigger> {
        let closed = pull_requests.iter().map(|pull_request| NewTrigger {
            ticket: build_ticket_key(),
            key: TriggerKey::new("closed"),
            at: Timestamp::default(),
            actor: None,
            reason: PullRequestEvent::Closed(PullRequestEnd {
                pull_request: (*pull_request).clone(),
                by: "grace".to_owned(),
                moved_to: None,
            })
            .into(),
        });
        closed
            .map(|closed| closed.into_trigger(TriggerChannel::Webhook))
            .collect()
    };
    let facts = |history: Vec<Trigger>| {
        let mut facts = build_decision_facts();
        facts.put_record(build_repository_name(), 7, Some(ours.clone()));
        facts.put_pull_request(build_repository_name(), 7, pull_request());
        facts.put_history(build_ticket_key(), history);
        facts
    };
    let polled = ReopenEvent::from_poll(&ours);
    assert_eq!(
        expect_nothing(&polled, &facts(log(&[&elsewhere]))),
        "no closed pull request"
    );
    let both = facts(log(&[&elsewhere, &ours.pull_request, &elsewhere]));
    assert_eq!(
        expect_trigger(&polled, &both).key,
        TriggerKey::new("reopened:acme/shop#7:1"),
        "the key counts its own closes"
    );
    let mut reopened = log(&[&ours.pull_request, &elsewhere]);
    reopened[1].reason = PullRequestEvent::Reopened(PullRequestHead {
        pull_request: elsewhere.clone(),
        head: pull_request().head,
        by: "grace".to_owned(),
    })
    .into();
    assert_eq!(
        expect_trigger(&polled, &facts(reopened)).key,
        TriggerKey::new("reopened:acme/shop#7:1"),
        "the other one is open again, not this one"
    );
    let mut taken = log(&[&ours.pull_request, &ours.pull_request, &ours.pull_request]);
    taken[1].key = TriggerKey::new("reopened:acme/shop#7:2");
    taken[1].reason = PullRequestEvent::Reopened(PullRequestHead {
        pull_request: ours.pull_request.clone(),
        head: pull_request().head,
        by: "grace".to_owned(),
    })
    .into();
    assert_eq!(
        expect_trigger(&polled, &facts(taken)).key,
        TriggerKey::new("reopened:acme/shop#7:3"),
        "an earlier release counted the closes of both"
    );
}

#[test]
fn jira_changelog_id_may_be_number() {
    let mut payload = build_moved_payload();
    payload["changelog"]["id"] = json!(7);
    let approval = WorkApproval {
        changelog: Some("7".to_owned()),
        at: Timestamp::from_unix_ms(50),
        by: Some(build_ada_account()),
    };
    let same = WorkRequestEvent::entered(build_ticket_key(), READY.to_owned(), approval);
    assert_eq!(
        format!("{:?}", parse_jira_events(&payload)[0]),
        format!("{same:?}")
    );
}

/// Verdict on red checks after repairs of earlier heads that failed with one of three mugs.
fn decide_after_repairs(heads: &[char], log: &str) -> EventVerdict {
    let heads: Vec<(char, &str)> = heads.iter().map(|head| (*head, "error: 1 of 3")).collect();
    repaired_with(&heads, log)
}

/// Verdict on red checks after repairs of earlier heads, each with its failure.
fn repaired_with(heads: &[(char, &str)], log: &str) -> EventVerdict {
    repaired_and(heads, log, Vec::new())
}

/// Variant of [`repaired_with`] with later events.
fn repaired_and(heads: &[(char, &str)], log: &str, after: Vec<Trigger>) -> EventVerdict {
    repaired_under("", heads, log, after)
}

/// Variant of [`repaired_and`] with rules for CI.
fn repaired_under(ci: &str, heads: &[(char, &str)], log: &str, after: Vec<Trigger>) -> EventVerdict {
    let red = |log: &str| CommitCheck {
        output_tail: log.to_owned(),
        ..build_commit_check(1, Some(CheckConclusion::Failure))
    };
    let mut facts = build_checked_facts(pull_request(), vec![red(log)]);
    let rules = format!("repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n{ci}");
    facts.book = facts_with(&rules, TriggerChannel::Webhook).book;
    let mut history = vec![asked_before()];
    for (head, earlier) in heads {
        let mut trigger = asked_before();
        let TriggerReason::JobRequested(request) = &mut trigger.reason else {
            panic!("no job")
        };
        request.job = Job::FixCi;
        request.about = JobSubject::Checks(Box::new(ChecksSummary {
            failed: vec![domain::FailedCheck {
                name: "test 1".to_owned(),
                url: String::new(),
                log_tail: (*earlier).to_owned(),
                class: domain::FailureClass::Real,
                step: String::new(),
                command: String::new(),
                log: String::new(),
            }],
            ..ChecksSummary::new(
                build_pull_reference(),
                head.to_string().repeat(40).parse().expect("commit"),
                ChecksConclusion::Failure,
            )
        }));
        history.push(trigger);
    }
    history.extend(after);
    facts.put_history(build_ticket_key(), history);
    decide_event(&*check_run()[0], &facts)
}

fn pushed_by_ann() -> Trigger {
    let reason = TriggerReason::from(PullRequestEvent::PushedByOthers(PullRequestHead {
        pull_request: build_pull_reference(),
        head: "9".repeat(40).parse().expect("commit"),
        by: "ann".to_owned(),
    }));
    Trigger {
        reason,
        ..asked_before()
    }
}

fn pushed_by_us() -> Trigger {
    let run = RunId::new(build_ticket_key(), 2);
    let receipt = OutboundReceipt::Pushed {
        branch: build_pull_reference().branch,
        head: "8".repeat(40).parse().expect("commit"),
        diff: None,
    };
    let settled = OutboundSettled {
        report: run.call(9).into(),
        run,
        outcome: OutboundOutcome::Done(receipt),
    };
    Trigger {
        reason: TriggerReason::ReportSettled(settled),
        ..asked_before()
    }
}

#[test]
fn repair_interrupted_by_push_does_not_count() {
    let cut = repaired_and(&[('a', "error: 1 of 3")], "error: 1 of 3", vec![pushed_by_ann()]);
    assert_eq!(read_repair_end(cut), None);
    let after = vec![pushed_by_us(), pushed_by_ann()];
    let in_vain = repaired_and(&[('a', "error: 1 of 3")], "error: 1 of 3", after);
    assert_eq!(read_repair_end(in_vain), Some(RepairEnd::Repeated));
}

/// Reason against a repair of red checks.
fn read_repair_end(verdict: EventVerdict) -> Option<RepairEnd> {
    match verdict {
        EventVerdict::Follows(follows) => match follows.reason {
            TriggerReason::JobRequested(request) if request.job == Job::FixCi => None,
            TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) => checks.unrepaired,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn repairs_end_at_limit_of_rules() {
    let under = |ci: &str| {
        read_repair_end(repaired_under(
            ci,
            &[('a', "error: 1 of 3")],
            "error: no mug",
            vec![],
        ))
    };
    assert_eq!(under(""), None);
    assert_eq!(under("ci:\n  repairs_per_pull_request: 2\n"), None);
    assert_eq!(
        under("ci:\n  repairs_per_pull_request: 1\n"),
        Some(RepairEnd::PerPullRequest)
    );
}

#[test]
fn red_checks_are_repaired_until_useless() {
    assert_eq!(read_repair_end(decide_after_repairs(&[], "error: 2")), None);
    assert_eq!(
        read_repair_end(decide_after_repairs(&['a'], "error: no mug")),
        None,
        "another failure"
    );
    assert_eq!(
        read_repair_end(decide_after_repairs(&['a'], "error: 2 of 5")),
        Some(RepairEnd::Repeated)
    );
    let back_and_forth = [('a', "error: 1 of 3"), ('b', "error: no mug")];
    assert_eq!(
        read_repair_end(repaired_with(&back_and_forth, "error: 2 of 5")),
        Some(RepairEnd::Repeated),
        "what the first repair mended is back"
    );
    assert_eq!(
        read_repair_end(repaired_with(&back_and_forth, "error: no cup")),
        None
    );
    assert_eq!(
        read_repair_end(decide_after_repairs(
            &['a', 'b', 'c', 'd', 'e', 'f'],
            "error: no mug"
        )),
        Some(RepairEnd::PerPullRequest)
    );
    let not_ours = decide_after_repairs(&[], "write: No space left on device");
    assert_eq!(read_repair_end(not_ours), Some(RepairEnd::NotOurs));
}

#[test]
fn failed_jobs_rerun_once_per_commit() {
    let of_run = |id: u64, log: &str| CommitCheck {
        url: format!("https://github.example/acme/shop/actions/runs/{id}/job/9"),
        output_tail: log.to_owned(),
        ..build_commit_check(id, Some(CheckConclusion::Failure))
    };
    let full = "write: No space left on device";
    let summary = |checks: Vec<CommitCheck>, before: Option<Trigger>| {
        let mut facts = build_checked_facts(pull_request(), checks);
        facts.put_history(
            build_ticket_key(),
            [asked_before()].into_iter().chain(before).collect(),
        );
        let follows = expect_trigger(&*check_run()[0], &facts);
        let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(summary)) = follows.reason.clone()
        else {
            panic!("{follows:?}")
        };
        (summary, follows.into_trigger(TriggerChannel::Webhook))
    };
    let (first, trigger) = summary(vec![of_run(1, full), of_run(2, "command not found")], None);
    assert_eq!(first.rerun, [1], "what does not exist fails each time");
    assert_eq!(first.unrepaired, None);
    let (second, _) = summary(vec![of_run(1, full)], Some(trigger));
    assert_eq!(second.rerun, Vec::<u64>::new());
    assert_eq!(second.unrepaired, Some(RepairEnd::FailedAgain));
    let elsewhere = CommitCheck {
        url: "https://ci.example/42".to_owned(),
        ..of_run(1, full)
    };
    let (other, _) = summary(vec![elsewhere], None);
    assert_eq!(other.unrepaired, Some(RepairEnd::NotOurs), "no run of Actions");
}

#[test]
fn ended_repairs_notify_deciders_and_restart_later() {
    let mut facts = build_checked_facts(
        pull_request(),
        vec![build_commit_check(1, Some(CheckConclusion::Failure))],
    );
    let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\npull_request:\n  reviewers: [grace]\n";
    facts.book = facts_with(rules, TriggerChannel::Webhook).book;
    let first = expect_trigger(&*check_run()[0], &facts).into_trigger(TriggerChannel::Webhook);
    let after = |history: Vec<Trigger>| {
        let mut facts = facts.clone();
        facts.put_history(build_ticket_key(), history);
        expect_trigger(&*check_run()[0], &facts).reason
    };
    let mut history = vec![asked_before(), first.clone(), first.clone(), first];
    let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) = after(history.clone()) else {
        panic!("repaired again")
    };
    assert_eq!(checks.asked, ["grace"]);
    history.push(asked_before());
    assert!(matches!(after(history), TriggerReason::JobRequested(request) if request.job == Job::FixCi));
}

#[test]
fn one_commit_gets_three_repairs_at_most() {
    let mut facts = build_checked_facts(
        pull_request(),
        vec![build_commit_check(1, Some(CheckConclusion::Failure))],
    );
    let first = expect_trigger(&*check_run()[0], &facts).into_trigger(TriggerChannel::Webhook);
    facts.put_history(
        build_ticket_key(),
        vec![asked_before(), first.clone(), first.clone(), first],
    );
    let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) =
        expect_trigger(&*check_run()[0], &facts).reason
    else {
        panic!("repaired again")
    };
    assert_eq!(checks.unrepaired, Some(RepairEnd::PerHead));
}

pub(super) fn pushed_by(login: &str, after: &str) -> Vec<Box<dyn EventKind>> {
    parse_github_events(
        "push",
        &json!({"ref": "refs/heads/feat/ENG-12-x", "after": after, "deleted": false,
            "repository": {"full_name": "acme/shop"}, "sender": {"login": login}}),
    )
}

#[test]
fn unrecorded_head_of_base_update_is_ours_for_a_time() {
    let new: CommitId = "c".repeat(40).parse().expect("commit");
    let now = PullRequest {
        head: new.clone(),
        ..pull_request()
    };
    let mut facts = build_checked_facts(now, vec![]);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    let update = Trigger {
        at: facts.now,
        reason: PullRequestEvent::Outdated(domain::OutdatedBase {
            pull_request: build_pull_reference(),
            head: build_branch_record().head,
            base_branch: "main".to_owned(),
            way: domain::UpdateWay::Merge,
        })
        .into(),
        ..asked_before()
    };
    let key = update.key.clone();
    facts.put_history(build_ticket_key(), vec![update]);
    let polled = PushEvent::from_poll(&build_pull_record(), new);
    assert_eq!(expect_nothing(&polled, &facts), "an update of its base by us");
    facts.now = facts.now.plus_ms(60 * 60 * 1000);
    // The run of the update has not begun: no planner or reporter works.
    let mut waiting = facts.clone();
    waiting.put_known(build_ticket_key(), key, Some(3));
    waiting.put_row(build_ticket_key(), domain::TicketRow::default());
    assert_eq!(expect_nothing(&polled, &waiting), "an update of its base by us");
    assert_eq!(
        expect_trigger(&polled, &facts).reason.job(),
        Some(Job::BackToDraft)
    );
}

#[test]
fn foreign_push_returns_pull_request_to_draft() {
    let theirs: CommitId = "c".repeat(40).parse().expect("commit");
    let now = PullRequest {
        head: theirs.clone(),
        ..pull_request()
    };
    let mut facts = build_checked_facts(now, vec![]);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    let delivered = expect_trigger(&*pushed_by("rita", theirs.as_str())[0], &facts);
    let polled = expect_trigger(
        &PushEvent::from_poll(&build_pull_record(), theirs.clone()),
        &facts,
    );
    assert_eq!((&delivered.key, &delivered.ticket), (&polled.key, &polled.ticket));
    assert_eq!(delivered.reason.job(), Some(Job::BackToDraft));
    assert_eq!(
        expect_nothing(&*pushed_by("rita", SHA)[0], &facts),
        "we pushed it"
    );
    let ours = pushed_by("journeyman[bot]", theirs.as_str());
    assert_eq!(expect_nothing(&*ours[0], &facts), "our own account pushed it");
    let continued = [
        JobSubject::Checks(Box::new(ChecksSummary::new(
            self::build_pull_reference(),
            theirs.clone(),
            ChecksConclusion::Failure,
        ))),
        JobSubject::Conflict(Box::new(ConflictedBase::new(
            self::build_pull_reference(),
            theirs.clone(),
            "d".repeat(40).parse().expect("commit"),
            "main".to_owned(),
        ))),
    ];
    for subject in continued {
        let mut lagging = facts.clone();
        let mut job = asked_before();
        if let TriggerReason::JobRequested(request) = &mut job.reason {
            request.about = subject;
        }
        lagging.put_history(build_ticket_key(), vec![job]);
        let earlier = PushEvent::from_poll(&build_pull_record(), theirs.clone());
        assert_eq!(expect_nothing(&earlier, &lagging), "an earlier head of ours");
    }
    let deleted = json!({"ref": "refs/heads/feat/ENG-12-x", "after": "0".repeat(40), "deleted": true,
        "repository": {"full_name": "acme/shop"}, "sender": {"login": "rita"}});
    assert!(parse_github_events("push", &deleted).is_empty());
}

pub(super) fn build_review(
    id: u64,
    state: ReviewVerdict,
    body: &str,
    lines: &[(u64, Option<u64>)],
) -> PullRequestReview {
    let comment = |&(id, in_reply_to): &(u64, Option<u64>)| github::ReviewLineComment {
        id,
        author: "rita".to_owned(),
        author_id: Some(8),
        by_bot: false,
        path: "shop/cart.py".to_owned(),
        line: Some(3),
        body: format!("Comment {id}"),
        in_reply_to,
        hunk: "@@ -1 +3 @@\n+x".to_owned(),
    };
    PullRequestReview {
        id,
        author: "rita".to_owned(),
        author_id: Some(8),
        by_bot: false,
        state,
        body: body.to_owned(),
        at: Some(Timestamp::from_unix_ms(70)),
        comments: lines.iter().map(comment).collect(),
        commit: None,
    }
}

pub(super) fn prepare_review(
    review: PullRequestReview,
) -> (Vec<Box<dyn EventKind>>, ReviewEvent, DecisionFacts) {
    let delivered = parse_github_events(
        "pull_request_review",
        &json!({"action": "submitted", "review": {"id": review.id, "user": {"login": "rita", "id": 8}},
            "pull_request": {"number": 7}, "repository": {"full_name": "acme/shop"}}),
    );
    let polled = ReviewEvent::from_poll(&build_pull_record(), &review);
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(build_rita_actor(), true);
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts.put_reviews(build_repository_name(), 7, vec![review]);
    (delivered, polled, facts)
}

#[test]
fn review_is_equal_in_both_channels() {
    let lines = [(41, None), (42, None), (43, Some(30)), (44, Some(30))];
    let (delivered, polled, facts) =
        prepare_review(build_review(9, ReviewVerdict::ChangesRequested, "No.", &lines));
    let delivered = expect_trigger(&*delivered[0], &facts);
    assert_eq!(delivered, expect_trigger(&polled, &facts));
    assert_eq!(delivered.key, TriggerKey::new("review:9"));
    let TriggerReason::JobRequested(request) = delivered.reason else {
        panic!("no job")
    };
    assert_eq!(
        (request.job, request.text.summary.as_str()),
        (Job::AddressReview, "Fix the cart")
    );
    let threads: Vec<(u64, &str)> = request
        .about
        .threads()
        .iter()
        .map(|thread| (thread.id, thread.text.as_str()))
        .collect();
    let expected = [
        (41, "Comment 41"),
        (42, "Comment 42"),
        (30, "Comment 43\n\nComment 44"),
    ];
    assert_eq!(
        threads, expected,
        "replies are said in the thread that they belong to"
    );
}

#[test]
fn repeated_thread_is_left_to_people_once() {
    let mut history = vec![asked_before()];
    let mut next = |id: u64, lines: &[(u64, Option<u64>)], body: &str| {
        let (delivered, _, mut facts) =
            prepare_review(build_review(id, ReviewVerdict::Commented, body, lines));
        facts.put_history(build_ticket_key(), history.clone());
        let verdict = decide_event(&*delivered[0], &facts);
        let EventVerdict::Follows(follows) = verdict else {
            return None;
        };
        history.push((*follows).clone().into_trigger(TriggerChannel::Webhook));
        let TriggerReason::JobRequested(request) = follows.reason else {
            panic!("no job")
        };
        let round = request.about.round().expect("a review").clone();
        let threads: Vec<u64> = round.threads.iter().map(|thread| thread.id).collect();
        let left = round.left.map(|left| (left.threads, left.rounds, left.asked));
        Some((threads, left))
    };
    assert_eq!(next(1, &[(30, None)], ""), Some((vec![30], None)));
    assert_eq!(next(2, &[(31, Some(30))], ""), Some((vec![30], None)));
    let rita = vec!["rita".to_owned()];
    let both = next(3, &[(32, Some(30)), (50, None)], "");
    assert_eq!(both, Some((vec![50], Some((vec![30], 2, rita)))));
    assert_eq!(next(4, &[(33, Some(30))], ""), None, "people have been notified");
    assert_eq!(next(5, &[(34, Some(30))], "And the tests?"), Some((vec![], None)));
}

#[test]
fn empty_or_unauthorized_review_is_ignored() {
    use ReviewVerdict::{Approved, ChangesRequested, Commented, Dismissed};
    let why = |state, body: &str, lines: &[(u64, Option<u64>)]| {
        let (delivered, _, facts) = prepare_review(build_review(9, state, body, lines));
        expect_nothing(&*delivered[0], &facts)
    };
    assert_eq!(why(Approved, "Nice.", &[]), "the review asks for nothing");
    assert_eq!(why(Commented, " ", &[]), "the review asks for nothing");
    assert_eq!(why(Dismissed, "x", &[(1, None)]), "the review asks for nothing");
    let author = pull_request().author;
    let mut by_author = build_review(9, Commented, "", &[(43, Some(41))]);
    by_author.author.clone_from(&author);
    let own = ReviewEvent::from_poll(&build_pull_record(), &by_author);
    let (_, _, mut facts) = prepare_review(by_author);
    let person = EventActor::GitHub {
        repository: build_repository_name(),
        login: author,
        id: Some(8),
        is_bot: false,
    };
    facts.put_authority(person, true);
    assert_eq!(
        expect_nothing(&own, &facts),
        "the author of the pull request said it"
    );
    let (delivered, _, facts) = prepare_review(build_review(9, Approved, "", &[(1, None)]));
    assert_eq!(
        expect_trigger(&*delivered[0], &facts).reason.job(),
        Some(Job::AddressReview)
    );
    let (delivered, _, _) = prepare_review(build_review(9, ChangesRequested, "No.", &[]));
    let mut facts = self::build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(build_rita_actor(), false);
    assert_eq!(
        expect_nothing(&*delivered[0], &facts),
        "the reviewer is not allowed to give orders"
    );
}

#[test]
fn comment_decides_about_named_commit() {
    let gate = |digit: &str| DecisionGate {
        position: 9,
        head: digit.repeat(40).parse().expect("commit"),
        report: RunId::new(build_ticket_key(), 3).call(2).into(),
        is_plan: false,
    };
    let run = |sequence| RunId::new(build_ticket_key(), sequence);
    let with = |gates: Vec<(RunId, DecisionGate)>| {
        let mut facts = build_decision_facts();
        facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
        facts.put_authority(build_rita_actor(), true);
        facts.put_gates(build_ticket_key(), gates);
        facts
    };
    let one = with(vec![(run(3), gate("a"))]);
    let two = with(vec![(run(3), gate("a")), (run(4), gate("b"))]);
    let decided =
        |text: &str, facts: &DecisionFacts| match expect_trigger(&*build_comment_events(text)[0], facts) {
            NewTrigger {
                reason: TriggerReason::Decided(decision),
                key,
                ..
            } => Some((key.as_str().to_owned(), decision.verdict, decision.feedback)),
            NewTrigger {
                reason: TriggerReason::Skipped(SkipReason::UnclearDecision { heads }),
                key,
                ..
            } => {
                assert_eq!(key.as_str(), "comment:31");
                assert!(heads[0].starts_with("aaaaaaa"), "{heads:?}");
                None
            }
            other => panic!("{other:?}"),
        };
    let first = |verdict, feedback: &str| {
        let key = format!("decision:{}:9", run(3));
        Some((key, verdict, feedback.to_owned()))
    };
    use domain::DecisionVerdict::{Approve, Reject, Revise};
    assert_eq!(decided("/approve aaaaaaaaaaaa", &one), first(Approve, ""));
    assert_eq!(decided("/approve aaaaaaaaaaaa", &two), first(Approve, ""));
    assert_eq!(decided("/approve", &one), None, "it has to name the commit");
    assert_eq!(
        decided("/approve aaaaaaaaaaa", &one),
        None,
        "by 12 characters at least"
    );
    assert_eq!(
        decided("/approve cccccccccccc", &one),
        None,
        "it is about another commit"
    );
    assert_eq!(decided("/reject", &one), first(Reject, ""));
    assert_eq!(decided("/reject", &two), None, "it is not clear which");
    assert_eq!(decided("/feedback Use cents.", &one), first(Revise, "Use cents."));
    assert_eq!(
        expect_nothing(&*build_comment_events("/approve aaaaaaaaaaaa")[0], &with(vec![])),
        "no run waits for a decision"
    );
}

#[test]
fn competing_merge_finishes_named_ticket() {
    let merged = |title: &str, branch: &str, base: &str| PullRequest {
        number: 9,
        title: title.to_owned(),
        branch: branch.to_owned(),
        base_branch: base.to_owned(),
        merged: true,
        merged_by: Some("mia".to_owned()),
        closed_at: Some(Timestamp::from_unix_ms(5)),
        ..pull_request()
    };
    let with = |now: PullRequest, cursor: u64| {
        let mut facts = build_decision_facts();
        facts.put_record(build_repository_name(), 9, None);
        facts.put_pull_request(build_repository_name(), 9, now);
        let row = domain::TicketRow {
            cursor,
            ..domain::TicketRow::default()
        };
        facts.put_row(build_ticket_key(), row);
        facts
    };
    let mut delivered = build_closed_payload(&json!(true), "acme/shop");
    delivered["pull_request"]["number"] = json!(9);
    for (title, branch) in [("ENG-12: Round", "x"), ("Round", "mia/eng-12-round")] {
        let facts = with(merged(title, branch, "main"), 4);
        let polled = CompetingMergeEvent::from_poll(&build_repository_name(), &merged(title, branch, "main"));
        delivered["pull_request"]["title"] = json!(title);
        delivered["pull_request"]["head"]["ref"] = json!(branch);
        let delivered = parse_github_events("pull_request", &delivered);
        let found = expect_trigger(&polled, &facts);
        assert_eq!(
            expect_trigger(&**delivered.last().expect("an event"), &facts),
            found,
            "{title}"
        );
        assert_eq!(
            (found.ticket, found.reason.job()),
            (build_ticket_key(), Some(Job::Finish))
        );
        assert_eq!(found.key, TriggerKey::new("merged:acme/shop#9"));
    }
    let why = |now: PullRequest, cursor| {
        let polled = CompetingMergeEvent::from_poll(&build_repository_name(), &now);
        expect_nothing(&polled, &with(now, cursor))
    };
    assert_eq!(
        why(merged("ENG-12", "x", "main"), 0),
        "no work was requested on the ticket that it names"
    );
    assert_eq!(
        why(merged("XENG-12", "x", "main"), 4),
        "it names no ticket of the project"
    );
    assert_eq!(
        why(merged("ENG-12", "x", "dev"), 4),
        "it was merged into another branch"
    );
}

#[test]
fn subscribed_app_events_have_a_kind() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/events");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let kinds = files.filter(|path| !path.to_string_lossy().ends_with("tests.rs"));
    let code: String = kinds.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for event in github::permissions::EVENTS {
        assert!(code.contains(&format!("\"{}\"", event.name)), "{}", event.name);
    }
}
