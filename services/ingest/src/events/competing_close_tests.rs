//! Verdicts after the end of a competing pull request that names a ticket.

use domain::{Job, SkipReason, TicketKey, Timestamp, Trigger, TriggerChannel, TriggerKey, TriggerReason};
use github::PullRequest;
use serde_json::json;

use super::{
    EventKind,
    competing_close::CompetingMergeEvent,
    given_up::CompetingCloseEvent,
    tests::{
        build_moved_payload, build_repository_name, build_ticket_key, build_work_facts, expect_nothing,
        expect_trigger, facts_with, parse_github_events, parse_jira_events, pull_request,
    },
};
use crate::facts::{
    DecisionFacts,
    tracker_reader::{AssignmentEvent, AssignmentKind, TrackerIssue},
};

pub(super) const URL: &str = "https://forge.example/acme/shop/pull/9";

pub(super) fn build_competitor(title: &str, body: &str, merged: bool) -> PullRequest {
    PullRequest {
        number: 9,
        url: URL.to_owned(),
        title: title.to_owned(),
        body: body.to_owned(),
        branch: "mia/round".to_owned(),
        merged,
        merged_by: merged.then(|| "mia".to_owned()),
        closed_at: Some(Timestamp::from_unix_ms(70_000)),
        ..pull_request()
    }
}

/// The event from a webhook and from a poll.
pub(super) fn build_channel_events(now: &PullRequest) -> [Box<dyn EventKind>; 2] {
    let payload = json!({"action": "closed", "repository": {"full_name": "acme/shop"}, "sender": {"login": "mia"},
        "pull_request": {"number": 9, "title": now.title, "body": now.body, "merged": now.merged,
            "head": {"ref": now.branch, "repo": {"full_name": "acme/shop"}}, "closed_at": "1970-01-01T00:01:10Z"}});
    let name = if now.merged {
        "CompetingMergeEvent"
    } else {
        "CompetingCloseEvent"
    };
    let mut delivered = parse_github_events("pull_request", &payload).into_iter();
    let delivered = delivered
        .find(|event| format!("{event:?}").starts_with(name))
        .expect(name);
    if now.merged {
        [
            delivered,
            Box::new(CompetingMergeEvent::from_poll(&build_repository_name(), now)),
        ]
    } else {
        [
            delivered,
            Box::new(CompetingCloseEvent::from_poll(&build_repository_name(), now)),
        ]
    }
}

/// Request that an open pull request blocked.
pub(super) fn kept_back(url: &str) -> Trigger {
    let open = PullRequest {
        url: url.to_owned(),
        ..pull_request()
    };
    let facts = build_work_facts(|_, all| all.push(open));
    let follows = expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &facts);
    assert!(matches!(
        follows.reason,
        TriggerReason::Skipped(SkipReason::PullRequestExists { .. })
    ));
    follows.into_trigger(TriggerChannel::Webhook)
}

pub(super) fn build_competing_facts(
    now: &PullRequest,
    history: Vec<Trigger>,
    change: impl FnOnce(&mut TrackerIssue, &mut Vec<PullRequest>),
) -> DecisionFacts {
    let mut facts = build_work_facts(change);
    facts.put_pull_request(build_repository_name(), 9, now.clone());
    facts.put_record(build_repository_name(), 9, None);
    facts.put_history(build_ticket_key(), history);
    facts
}

#[test]
fn blocked_request_repeats_after_competing_close() {
    let now = build_competitor("ENG-12: Round", "", false);
    for event in build_channel_events(&now) {
        let found = expect_trigger(
            &*event,
            &build_competing_facts(&now, vec![kept_back(URL)], |_, _| {}),
        );
        assert_eq!(found.reason.job(), Some(Job::Implement));
        assert_eq!(found.key, TriggerKey::new("asked_again:acme/shop#9:70"));
        assert_eq!(
            (found.at, found.actor.as_deref()),
            (Timestamp::from_unix_ms(50), Some("Ada"))
        );
        let another = build_competing_facts(&now, vec![kept_back(URL)], |_, open| open.push(pull_request()));
        let skipped = expect_trigger(&*event, &another).reason;
        assert!(
            matches!(skipped, TriggerReason::Skipped(SkipReason::PullRequestExists { url, .. }) if url != URL)
        );
        let why = |history, change: fn(&mut TrackerIssue, &mut Vec<PullRequest>)| {
            expect_nothing(&*event, &build_competing_facts(&now, history, change))
        };
        assert_eq!(
            why(vec![kept_back("https://other.example/1")], |_, _| {}),
            "it kept us from no work"
        );
        let mut since = vec![kept_back(URL)];
        since.push(
            expect_trigger(&*event, &build_competing_facts(&now, since.clone(), |_, _| {}))
                .into_trigger(TriggerChannel::Poll),
        );
        assert_eq!(
            why(since, |_, _| {}),
            "it kept us from no work",
            "it was asked for since"
        );
        let moved_on = why(vec![kept_back(URL)], |issue, _| issue.status = "Done".to_owned());
        assert_eq!(moved_on, "the ticket asks for no work any more");
        let stranger = why(Vec::new(), |_, _| {});
        assert_eq!(stranger, "no work was requested on the ticket that it names");
    }
}

#[test]
fn closing_own_pull_request_requests_nothing() {
    let now = build_competitor("ENG-12: Round", "", false);
    let mut facts = build_work_facts(|_, _| {});
    facts.put_pull_request(build_repository_name(), 9, now.clone());
    facts.put_record(
        build_repository_name(),
        9,
        Some(super::tests::build_pull_record()),
    );
    facts.put_history(build_ticket_key(), vec![kept_back(URL)]);
    for event in build_channel_events(&now) {
        assert_eq!(expect_nothing(&*event, &facts), "a pull request of ours");
    }
}

#[test]
fn reopened_pull_request_keeps_blocking() {
    let now = PullRequest {
        closed_at: None,
        ..build_competitor("ENG-12: Round", "", false)
    };
    let facts = build_competing_facts(&now, vec![kept_back(URL)], |_, _| {});
    for event in build_channel_events(&build_competitor("ENG-12: Round", "", false)) {
        assert_eq!(
            expect_nothing(&*event, &facts),
            "the pull request is open again, or merged"
        );
    }
}

fn on_github(now: &PullRequest, history: Vec<Trigger>) -> DecisionFacts {
    let rules = "repo:\n  owner: acme\n  name: shop\nissues:\n  labels: [agent]\n";
    let mut facts = facts_with(rules, TriggerChannel::Webhook);
    let issue: TicketKey = "github:acme/shop#12".parse().expect("ticket");
    let labeled = AssignmentEvent {
        id: "LE_1".to_owned(),
        at: Timestamp::from_unix_ms(50),
        by: None,
        how: AssignmentKind::Labeled("agent".to_owned()),
    };
    let read = TrackerIssue {
        summary: "Fix the cart".to_owned(),
        status: "open".to_owned(),
        labels: vec!["agent".to_owned()],
        assignments: vec![labeled],
        ..TrackerIssue::default()
    };
    facts.put_issue(issue.clone(), Ok(read));
    facts.put_open(build_repository_name(), issue.clone(), Vec::new());
    facts.put_record(build_repository_name(), 9, None);
    facts.put_pull_request(build_repository_name(), 9, now.clone());
    let row = domain::TicketRow {
        cursor: 4,
        ..domain::TicketRow::default()
    };
    facts.put_row(issue.clone(), row);
    facts.put_history(issue, history);
    facts
}

#[test]
fn github_issue_is_named_by_number() {
    for (title, body) in [("Round (#12)", ""), ("Round", "Fixes #12")] {
        let merged = build_competitor(title, body, true);
        for event in build_channel_events(&merged) {
            let found = expect_trigger(&*event, &on_github(&merged, Vec::new()));
            assert_eq!(found.ticket.to_string(), "github:acme/shop#12");
            assert_eq!(found.reason.job(), Some(Job::Finish), "{title}");
        }
        let closed = build_competitor(title, body, false);
        let mut before = kept_back(URL);
        before.key = TriggerKey::new("issue_event:LE_1");
        for event in build_channel_events(&closed) {
            let found = expect_trigger(&*event, &on_github(&closed, vec![before.clone()]));
            assert_eq!(found.reason.job(), Some(Job::Implement), "{title}");
        }
    }
    let spoken_of = build_competitor("Round", "See #12", true);
    for event in build_channel_events(&spoken_of) {
        let why = expect_nothing(&*event, &on_github(&spoken_of, Vec::new()));
        assert_eq!(why, "it names no ticket of the project");
    }
}
