//! Invariants of the domain types: one spelling per id, fences that only grow, rows that keep every pending
//! run.

use std::time::Duration;

use domain::{
    CommitId, FenceStamp, InstanceName, Job, Lane, PendingRun, ReporterFence, RepositoryName, RunFence,
    RunId, RunStatus, StopReason, TicketComment, TicketKey, TicketNews, TicketRow, Timestamp, TriggerReason,
};
use proptest::prelude::*;

fn any_instance() -> impl Strategy<Value = Option<InstanceName>> {
    prop::option::of("[a-z][a-z0-9-]{0,8}".prop_filter_map("legal instance", |name| name.parse().ok()))
}

fn any_repository() -> impl Strategy<Value = RepositoryName> {
    let part = || "[A-Za-z0-9_.-]{1,20}";
    let on_servers = (any_instance(), part(), part())
        .prop_filter_map("legal repository", |(instance, owner, name)| {
            Some(RepositoryName::new(&owner, &name).ok()?.on(instance))
        });
    prop_oneof![
        3 => on_servers,
        1 => any_folder_name().prop_map(|folder| RepositoryName::in_folder(&folder)),
    ]
}

fn any_folder_name() -> impl Strategy<Value = InstanceName> {
    any_instance().prop_filter_map("a folder has a name", |name| name)
}

fn ticket_keys() -> impl Strategy<Value = TicketKey> {
    prop_oneof![
        (any_instance(), "[A-Z][A-Z0-9_]{0,9}", 1..u64::MAX).prop_map(|(instance, project, number)| {
            TicketKey::Jira {
                instance,
                project,
                number,
            }
        }),
        (any_repository(), 1..u64::MAX).prop_filter_map("on a server", |(repository, number)| {
            let is_local = repository.local_folder().is_some();
            (!is_local).then_some(TicketKey::GitHub { repository, number })
        }),
        (any_folder_name(), 1..u64::MAX).prop_map(|(folder, number)| TicketKey::Folder { folder, number }),
    ]
}

proptest! {
    #[test]
    fn ticket_keys_decode_back_exactly(key in ticket_keys()) {
        prop_assert_eq!(key.to_string().parse::<TicketKey>().unwrap(), key.clone());
        let json = serde_json::to_string(&key).unwrap();
        prop_assert_eq!(serde_json::from_str::<TicketKey>(&json).unwrap(), key);
    }

    #[test]
    fn repository_names_round_trip(repository in any_repository()) {
        prop_assert_eq!(repository.to_string().parse::<RepositoryName>().unwrap(), repository.clone());
        let folder = repository.folder();
        let (owner, name) = folder.split_once('/').unwrap();
        prop_assert_eq!(RepositoryName::of_folder(owner, name), Some(repository));
    }

    #[test]
    fn instances_share_no_name_or_folder(a in any_repository(), b in any_repository(), number in 1..9u64) {
        let same_path = b.clone().on(a.instance().cloned());
        for other in [b, same_path, a.clone().on(None), a.clone().on(Some("ghe".parse().unwrap()))] {
            let is_same = a == other;
            prop_assert_eq!(a.folder() == other.folder(), is_same);
            let ticket = |repository: &RepositoryName| TicketKey::GitHub { repository: repository.clone(), number };
            prop_assert_eq!(ticket(&a).to_string() == ticket(&other).to_string(), is_same);
        }
    }

    #[test]
    fn run_ids_decode_back_exactly(key in ticket_keys(), sequence: u64) {
        let run = RunId::new(key, sequence);
        prop_assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
    }

    #[test]
    fn any_text_is_parsed_without_a_panic(text: String) {
        let _ = text.parse::<TicketKey>();
        let _ = text.parse::<RunId>();
        let _ = text.parse::<CommitId>();
        let _ = text.parse::<RepositoryName>();
        let _ = text.parse::<InstanceName>();
        let _ = Timestamp::parse(&text);
    }

    #[test]
    fn fences_compare_epoch_before_sequence(a: (u64, u64, u64), b: (u64, u64, u64)) {
        let fence = |(epoch, sequence, delivered)| RunFence::new(epoch, sequence, delivered);
        prop_assert_eq!(fence(a).cmp(&fence(b)), a.cmp(&b));
    }
}

#[test]
fn a_key_has_one_spelling() {
    for text in [
        "jira:ENG-012",
        "jira:eng-1",
        "jira:ENG-0",
        "ENG-1",
        "jira:-1",
        "github:acme#7",
        "github:a/b#07",
        "jira:ENG-+1",
        "jira+:ENG-1",
        "jira+DC:ENG-1",
        "jira+dc+dc:ENG-1",
        "jira+github:ENG-1",
        "dc+jira:ENG-1",
        "github:ghe:acme/shop#7",
        "github+ghe:ghe:acme/shop#7",
        "folder:shop",
        "folder:shop#0",
        "folder:shop#01",
        "folder:Shop#1",
        "folder:folder#1",
        "folder:local/shop#1",
        "folder+shop:x#1",
        "github:folder:local/shop#1",
        "github+folder:local/shop#1",
    ] {
        assert!(text.parse::<TicketKey>().is_err(), "{text}");
    }
    assert_eq!(
        "github:acme/shop#7".parse::<TicketKey>().unwrap().short(),
        "acme/shop#7"
    );
}

#[test]
fn default_instance_is_omitted_in_keys() {
    for text in [
        "jira:ENG-12",
        "jira+dc:ENG-12",
        "github:acme/shop#7",
        "github+ghe:acme/shop#7",
        "folder:shop#3",
    ] {
        let ticket: TicketKey = text.parse().unwrap();
        assert_eq!(ticket.to_string(), text);
        assert_eq!(RunId::new(ticket, 57).to_string(), format!("{text}@57"));
    }
    let ticket: TicketKey = "github+ghe:acme/shop#7".parse().unwrap();
    assert_eq!(ticket.short(), "acme/shop#7");
    assert_eq!(ticket.instance().unwrap().as_str(), "ghe");
    let repository: RepositoryName = "ghe:acme/shop".parse().unwrap();
    assert_eq!(
        (repository.path(), repository.folder()),
        ("acme/shop".to_owned(), "ghe+acme/shop".to_owned())
    );
}

#[test]
fn reserved_instance_names_are_rejected() {
    for name in [
        "jira", "github", "folder", "", "1a", "a_b", "A", "a-", "-a", "a.b", "a+b",
    ] {
        assert!(name.parse::<InstanceName>().is_err(), "{name}");
        assert!(
            format!("{name}:acme/shop").parse::<RepositoryName>().is_err(),
            "{name}"
        );
    }
    for text in ["folder:acme/shop", "folder:local/Shop", "folder:local/jira"] {
        assert!(text.parse::<RepositoryName>().is_err(), "{text}");
    }
    let shop: InstanceName = "shop".parse().unwrap();
    let repository: RepositoryName = "folder:local/shop".parse().unwrap();
    assert_eq!(repository, RepositoryName::in_folder(&shop));
    assert_eq!(repository.local_folder(), Some(shop));
    for text in ["local/shop", "ghe:local/shop"] {
        assert_eq!(text.parse::<RepositoryName>().unwrap().local_folder(), None);
    }
    let ticket: TicketKey = "folder:shop#3".parse().unwrap();
    assert_eq!((ticket.short().as_str(), ticket.instance()), ("shop-3", None));
}

#[test]
fn folder_rules_cover_their_tickets_only() {
    let rules = |repo: serde_json::Value| -> domain::RepositoryRules {
        serde_json::from_value(serde_json::json!({ "repo": repo })).unwrap()
    };
    let shop = rules(serde_json::json!({"folder": "shop"}));
    shop.check().unwrap();
    assert!(shop.cover(&"folder:shop#1".parse().unwrap()));
    for other in ["folder:cart#1", "github:local/shop#1", "jira:SHOP-1"] {
        assert!(!shop.cover(&other.parse().unwrap()), "{other}");
    }
    let both = rules(serde_json::json!({"folder": "shop", "owner": "acme", "name": "shop"}));
    assert_eq!(both.check().unwrap_err().key, "repo.folder");
}

#[test]
fn co_authors_need_name_and_address() {
    let checked = |who: &[&str]| {
        let mut rules = domain::RepositoryRules::default();
        rules.repo.owner = "acme".to_owned();
        rules.repo.name = "shop".to_owned();
        rules.commits.co_authors = who.iter().map(|who| (*who).to_owned()).collect();
        rules.check().map_err(|problem| problem.key)
    };
    assert_eq!(checked(&["Ada Lovelace <ada@acme.example>"]), Ok(()));
    let many = ["A <a@b.example>"; 6];
    let wrong: [&[&str]; 5] = [
        &["ada@acme.example"],
        &["Ada <ada>"],
        &["Ada <a@b>\nSigned-off-by: Eve <e@f>"],
        &["Ada <a@b> <c@d>"],
        &many,
    ];
    for who in wrong {
        assert_eq!(checked(who), Err("commits.co_authors"), "{who:?}");
    }
}

#[test]
fn linked_requesters_need_id_and_limited_count() {
    let ada: domain::CommitAuthor = "Ada <ada@acme.example>".parse().unwrap();
    let checked = |ids: Vec<String>| {
        let mut rules = domain::RepositoryRules::default();
        rules.repo.owner = "acme".to_owned();
        rules.repo.name = "shop".to_owned();
        rules.commits.requesters = ids.into_iter().map(|id| (id, ada.clone())).collect();
        rules.check().map_err(|problem| problem.key)
    };
    assert_eq!(checked((0..200).map(|id| id.to_string()).collect()), Ok(()));
    assert_eq!(
        checked((0..201).map(|id| id.to_string()).collect()),
        Err("commits.requesters")
    );
    assert_eq!(checked(vec![" ".to_owned()]), Err("commits.requesters"));
}

#[test]
fn rule_modules_need_unique_name_and_paths() {
    let check = |modules: serde_json::Value| {
        let repo = serde_json::json!({"owner": "acme", "name": "shop"});
        let rules = serde_json::json!({"repo": repo, "modules": modules});
        let rules: domain::RepositoryRules = serde_json::from_value(rules).unwrap();
        rules.check().map_err(|problem| problem.to_string())
    };
    let core = serde_json::json!({"name": "core", "paths": ["core", "lib/*"]});
    assert_eq!(check(serde_json::json!([core])), Ok(()));
    let twice = check(serde_json::json!([core, core])).unwrap_err();
    assert_eq!(twice, "modules: must have names of their own");
    for broken in [
        serde_json::json!([{"name": "core"}]),
        serde_json::json!([{"name": " ", "paths": ["core"]}]),
        serde_json::json!([{"name": "core", "paths": ["/"]}]),
    ] {
        let problem = check(broken).unwrap_err();
        assert_eq!(problem, "modules: must each have a name and paths");
    }
    let with = |key: &str, value: serde_json::Value| {
        let mut module = core.clone();
        module[key] = value;
        check(serde_json::json!([module]))
    };
    assert_eq!(with("checks", serde_json::json!(["make a", "make b"])), Ok(()));
    for broken in [serde_json::json!([" "]), serde_json::json!(vec!["a"; 6])] {
        let problem = with("checks", broken).unwrap_err();
        assert_eq!(
            problem,
            "modules: must each have at most 5 checks, none of them empty"
        );
    }
    assert_eq!(with("owners", serde_json::json!(["ann", "bob"])), Ok(()));
    for broken in ["@ann", "acme/team", "", "a b"] {
        let problem = with("owners", serde_json::json!([broken])).unwrap_err();
        assert_eq!(
            problem,
            "modules: must have logins of people as owners, without @"
        );
    }
}

#[test]
fn rules_cover_tickets_of_their_instance() {
    let rules: domain::RepositoryRules = serde_json::from_value(serde_json::json!({
        "repo": {"owner": "acme", "name": "shop", "instance": "ghe"},
        "jira": {"project_key": "ENG", "instance": "dc"},
    }))
    .unwrap();
    let covered = |text: &str| rules.cover(&text.parse().unwrap());
    assert!(covered("jira+dc:ENG-1") && covered("github+ghe:acme/shop#7"));
    assert!(!covered("jira:ENG-1") && !covered("github:acme/shop#7") && !covered("jira+dc:OPS-1"));
    assert_eq!(rules.repository().unwrap().to_string(), "ghe:acme/shop");
}

#[test]
fn repositories_cannot_climb_out_of_a_folder() {
    for (owner, name) in [
        ("..", "x"),
        ("x", ".."),
        ("a/b", "c"),
        ("", "x"),
        ("x", "a b"),
        ("x", "a\n"),
    ] {
        assert!(RepositoryName::new(owner, name).is_err(), "{owner}/{name}");
    }
}

#[test]
fn jira_timestamps_are_read() {
    let expected = Timestamp::parse("2026-11-21T10:00:00.123Z").unwrap();
    assert_eq!(Timestamp::parse("2026-11-21T12:00:00.123+0200"), Some(expected));
    assert_eq!(expected.to_string(), "2026-11-21T10:00:00.123Z");
}

#[test]
fn timestamp_arithmetic_saturates_without_overflow() {
    let early = Timestamp::from_unix_ms(-5);
    let late = early.plus(Duration::from_millis(1_500));
    assert_eq!(late, Timestamp::from_unix_ms(1_495));
    assert_eq!(late.since(early), Duration::from_millis(1_500));
    assert_eq!(early.since(late), Duration::ZERO);
    let last = Timestamp::from_unix_ms(i64::MAX);
    assert_eq!(early.plus(Duration::MAX), last.plus_ms(-5));
    assert_eq!(last.plus(Duration::MAX), last);
    assert_eq!(
        last.since(Timestamp::from_unix_ms(i64::MIN)),
        Duration::from_millis(i64::MAX as u64)
    );
}

#[test]
fn run_and_report_fences_keep_their_parts() {
    let stamp = FenceStamp {
        epoch: 1,
        sequence: 2,
        delivered: 3,
    };
    assert_eq!(
        (RunFence::from(stamp).stamp(), ReporterFence::from(stamp).stamp()),
        (stamp, stamp)
    );
    assert_eq!(RunFence::new(1, 2, 3).to_string(), "1.2.3");
}

#[test]
fn trigger_opens_run_once_until_finished() {
    let ticket = TicketKey::jira("ENG-1").unwrap();
    let run = RunId::new(ticket, 7);
    let mut row = TicketRow::default();
    let asked = PendingRun::new(run.clone(), Job::Implement, Lane::Talk);
    row.open(asked.clone(), Timestamp::from_unix_ms(1));
    row.open(asked, Timestamp::from_unix_ms(2));
    assert_eq!((row.pending.len(), row.runs.len()), (1, 1));
    row.finish(&run, StopReason::Completed, Timestamp::from_unix_ms(3));
    assert!(row.pending.is_empty());
    assert!(matches!(
        row.run(&run).unwrap().status,
        RunStatus::Finished {
            reason: StopReason::Completed
        }
    ));
}

#[test]
fn row_keeps_active_and_last_finished_runs() {
    let ticket = TicketKey::jira("ENG-1").unwrap();
    let mut row = TicketRow::default();
    let live = PendingRun::new(RunId::new(ticket.clone(), 1), Job::Implement, Lane::Talk);
    row.open(live, Timestamp::default());
    for sequence in 2..40 {
        let run = RunId::new(ticket.clone(), sequence);
        let asked = PendingRun::new(run.clone(), Job::MarkReady, Lane::Upkeep);
        row.open(asked, Timestamp::default());
        row.finish(&run, StopReason::Completed, Timestamp::default());
    }
    assert_eq!(row.runs.len(), TicketRow::KEPT_RUNS + 1);
    assert_eq!(row.runs[0].id.sequence(), 1);
    assert_eq!(row.runs.last().unwrap().id.sequence(), 39);
}

#[test]
fn every_job_has_one_name() {
    for job in Job::ALL {
        assert_eq!(serde_json::to_value(job).unwrap(), job.as_str());
    }
}

#[test]
fn news_decode_back_exactly() {
    let news = TicketNews::Comment {
        comment: TicketComment {
            author: "ada".to_owned(),
            at: Timestamp::from_unix_ms(1),
            text: "Mind the tax.".to_owned(),
            may_instruct: true,
            is_new: false,
        },
        pull_request: None,
        attachments: Vec::new(),
    };
    let reason = TriggerReason::NewsArrived(news);
    let json = serde_json::to_string(&reason).unwrap();
    assert_eq!(
        serde_json::from_str::<TriggerReason>(&json).unwrap(),
        reason,
        "{json}"
    );
}
