use domain::{Conclusion, SkipPlace, TicketKey};
use github::{CheckConclusion, CheckKind, CheckStatus};

use super::*;

fn rules() -> Rules {
    let mut rules = Rules::default();
    rules.repo.owner = "acme".to_owned();
    rules.repo.name = "shop".to_owned();
    rules
}

fn issue() -> Issue {
    Issue {
        summary: "Fix the cart".to_owned(),
        description: "It rounds".to_owned(),
        ..Issue::default()
    }
}

fn comment(text: &str) -> Comment {
    Comment {
        author: "Ada".to_owned(),
        author_id: "a1".to_owned(),
        created: Timestamp::from_unix_ms(99),
        updated: Timestamp::from_unix_ms(99),
        text: text.to_owned(),
    }
}

const AT: Timestamp = Timestamp::from_unix_ms(50);

fn person(id: &str) -> jira::Account {
    jira::Account {
        id: id.to_owned(),
        display_name: id.to_uppercase(),
    }
}

fn approval(changelog: Option<&str>) -> Approval {
    Approval {
        changelog: changelog.map(str::to_owned),
        at: AT,
        by: Some(person("told")),
    }
}

fn instructors() -> BTreeSet<String> {
    BTreeSet::from(["a1".to_owned()])
}

fn judge(issue: &Issue, rules: &Rules, open: &[PullRequest]) -> Reason {
    implement(issue, &approval(None), rules, open, &instructors()).expect("rules name a repository")
}

fn moved(id: &str, to: &str, at: i64) -> jira::StatusChange {
    jira::StatusChange {
        id: jira::ChangelogId(id.to_owned()),
        to: to.to_owned(),
        at: Some(Timestamp::from_unix_ms(at)),
        by: Some(person("read")),
    }
}

fn edited(id: &str, at: i64, by: &str) -> jira::TextEdit {
    jira::TextEdit {
        id: jira::ChangelogId(id.to_owned()),
        at: Timestamp::from_unix_ms(at),
        by: Some(person(by)),
        before: vec![(jira::TextField::Summary, "As it was".to_owned())],
    }
}

#[test]
fn a_ticket_asks_for_work_by_its_last_move_into_the_status_and_only_while_it_is_there() {
    let rules = rules();
    let ready = "Ready for Agent";
    let at = |status: &str, moves: Vec<jira::StatusChange>| Issue {
        status: status.to_owned(),
        moves,
        creator: Some(person("maker")),
        created: Some(Timestamp::from_unix_ms(3)),
        ..issue()
    };
    let standing = |issue: &Issue, changelog| standing(issue, approval(changelog), &rules);
    let by = |standing: Standing| match standing {
        Standing::Asks(approval) => approval.by.map(|by| by.id),
        Standing::Left { .. } | Standing::Repeated => None,
    };
    let once = vec![moved("1", ready, 5)];
    assert_eq!(
        by(standing(&at(ready, once.clone()), Some("1"))).as_deref(),
        Some("read")
    );
    let twice = vec![moved("1", ready, 5), moved("2", "To Do", 6), moved("3", ready, 7)];
    assert_eq!(standing(&at(ready, twice.clone()), Some("1")), Standing::Repeated);
    assert_eq!(standing(&at(ready, twice.clone()), None), Standing::Repeated);
    assert_eq!(
        by(standing(&at(ready, twice), Some("3"))).as_deref(),
        Some("read")
    );
    let left = Standing::Left {
        status: "Done".to_owned(),
    };
    assert_eq!(standing(&at("Done", once), Some("1")), left);
    // Jira's changelog may lag behind its webhook.
    assert_eq!(
        by(standing(&at(ready, Vec::new()), Some("1"))).as_deref(),
        Some("told")
    );
    assert_eq!(
        by(standing(&at(ready, Vec::new()), None)).as_deref(),
        Some("maker")
    );
}

#[test]
fn a_text_changed_after_the_approval_counts_only_from_those_who_may_instruct() {
    let with = |edit: jira::TextEdit| {
        let issue = Issue {
            edits: vec![edit],
            ..issue()
        };
        implement(&issue, &approval(Some("7")), &rules(), &[], &instructors()).expect("rules")
    };
    let is_job = |reason: &Reason| matches!(reason, Reason::JobRequested(_));
    assert!(is_job(&with(edited("6", 49, "eve"))), "before");
    assert!(is_job(&with(edited("7", 50, "eve"))), "by the move itself");
    assert!(is_job(&with(edited("8", 51, "a1"))), "by an instructor");
    let refused = Reason::Skipped(SkipReason::TextChanged { by: "EVE".to_owned() });
    assert_eq!(with(edited("8", 51, "eve")), refused);
    assert_eq!(with(edited("8", 50, "eve")), refused);
}

fn commit(digit: char) -> CommitId {
    digit.to_string().repeat(40).parse().expect("commit")
}

fn pull_request() -> PullRequest {
    PullRequest {
        number: 7,
        node_id: String::new(),
        title: String::new(),
        body: String::new(),
        branch: "feat/ENG-1-x".to_owned(),
        head: commit('a'),
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
    }
}

fn ours() -> PullRequestRef {
    pull_request().to_ref(&"acme/shop".parse().expect("repository"))
}

#[test]
fn a_ticket_without_obstacles_asks_for_a_job_with_its_text_pinned() {
    let Reason::JobRequested(request) = judge(&issue(), &rules(), &[]) else {
        panic!("no job")
    };
    assert_eq!(request.job, Job::Implement);
    assert_eq!(request.repository.to_string(), "acme/shop");
    assert_eq!(
        (request.text.summary.as_str(), request.text.description.as_str()),
        ("Fix the cart", "It rounds")
    );
    assert_eq!(request.text.sha256.len(), 64);
}

#[test]
fn each_skip_rule_names_its_place() {
    let phrase = |place: SkipPlace| {
        let phrase = "[AGENT-SKIP]".to_owned();
        Reason::Skipped(SkipReason::Phrase { phrase, place })
    };
    let with = |change: fn(&mut Issue)| {
        let mut issue = issue();
        change(&mut issue);
        judge(&issue, &rules(), &[])
    };
    assert_eq!(
        with(|issue| issue.summary = "x [AGENT-SKIP]".to_owned()),
        phrase(SkipPlace::Summary)
    );
    assert_eq!(
        with(|issue| issue.description = "[AGENT-SKIP] y".to_owned()),
        phrase(SkipPlace::Description)
    );
    assert_eq!(
        with(|issue| issue.comments = vec![comment("no: [AGENT-SKIP]")]),
        phrase(SkipPlace::Comment {
            author: "Ada".to_owned()
        })
    );
    let label = Reason::Skipped(SkipReason::Label {
        label: "skip-dispatch".to_owned(),
    });
    assert_eq!(
        with(|issue| issue.labels = vec!["skip-dispatch".to_owned()]),
        label
    );
    let exists = SkipReason::PullRequestExists {
        url: pull_request().url,
        author: "sam".to_owned(),
    };
    assert_eq!(
        judge(&issue(), &rules(), &[pull_request()]),
        Reason::Skipped(exists)
    );
}

#[test]
fn an_empty_skip_phrase_skips_nothing() {
    let mut rules = rules();
    rules.skip.comment_phrase.clear();
    assert!(matches!(judge(&issue(), &rules, &[]), Reason::JobRequested(_)));
}

#[test]
fn rules_without_a_repository_are_a_problem() {
    assert!(implement(&issue(), &approval(None), &Rules::default(), &[], &instructors()).is_err());
}

#[test]
fn a_status_asks_for_work_whatever_its_case() {
    assert!(asks_for_work("ready for AGENT", &rules()));
    assert!(!asks_for_work("In Progress", &rules()));
}

fn check(id: u64, end: Option<CheckConclusion>) -> Check {
    Check {
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

fn complete(list: &[Check]) -> (TriggerKey, ChecksSummary) {
    match checks(&ours(), &commit('a'), list) {
        ChecksVerdict::Complete { key, summary, .. } => (key, *summary),
        ChecksVerdict::None | ChecksVerdict::Incomplete => panic!("not complete"),
    }
}

#[test]
fn checks_count_only_when_all_are_complete() {
    use CheckConclusion::Success;
    assert_eq!(checks(&ours(), &commit('a'), &[]), ChecksVerdict::None);
    let list = [check(1, Some(Success)), check(2, None)];
    assert_eq!(checks(&ours(), &commit('a'), &list), ChecksVerdict::Incomplete);
}

#[test]
fn one_bad_end_makes_a_failure_that_names_it_and_keeps_the_end_of_its_log() {
    use CheckConclusion::{Cancelled, Neutral, Skipped, Success, TimedOut};
    assert_eq!(
        complete(&[
            check(1, Some(Success)),
            check(2, Some(Skipped)),
            check(3, Some(Neutral))
        ])
        .1
        .conclusion,
        Conclusion::Success
    );
    let (_, summary) = complete(&[
        check(1, Some(Success)),
        check(2, Some(TimedOut)),
        check(3, Some(Cancelled)),
    ]);
    assert_eq!(summary.conclusion, Conclusion::Failure);
    let names: Vec<_> = summary.failed.iter().map(|failed| failed.name.as_str()).collect();
    assert_eq!(names, ["test 2", "test 3"]);
    assert!(
        summary
            .failed
            .iter()
            .all(|failed| failed.log_tail.len() <= LOG_TAIL_BYTES)
    );
}

#[test]
fn the_key_of_checks_ignores_their_order_and_changes_with_a_new_attempt() {
    use CheckConclusion::{Failure, Success};
    let (one, two) = (check(1, Some(Success)), check(2, Some(Failure)));
    let key = complete(&[one.clone(), two.clone()]).0;
    assert_eq!(key, complete(&[two, one.clone()]).0);
    assert_ne!(key, complete(&[one, check(3, Some(Failure))]).0);
    assert!(
        key.as_str()
            .starts_with(&format!("checks:acme/shop:{}:", commit('a')))
    );
}

#[test]
fn both_doors_give_a_closed_pull_request_the_same_key() {
    let hook = Closing {
        merged: false,
        by: "sam".to_owned(),
        at: Timestamp::from_unix_ms(1_000),
    };
    let mut listed = pull_request();
    listed.closed_at = Some(Timestamp::from_unix_ms(1_000));
    let poll = closing(&listed).expect("closed");
    assert_eq!(closed(&ours(), &hook).0, closed(&ours(), &poll).0);
    let merged = Closing { merged: true, ..hook };
    assert_eq!(closed(&ours(), &merged).0, TriggerKey::new("merged:acme/shop#7"));
    assert!(closing(&pull_request()).is_none());
}

#[test]
fn another_pull_request_of_the_branch_is_not_the_record_s() {
    let ticket = TicketKey::jira("ENG-1").expect("ticket");
    let record = BranchRecord {
        repository: ours().repository,
        branch: ours().branch,
        run: domain::RunId::new(ticket.clone(), 1),
        ticket,
        head: commit('a'),
        pull_request: Some(ours()),
    };
    assert!(same_pull_request(&record, 7).is_some());
    assert!(same_pull_request(&record, 8).is_none());
}
