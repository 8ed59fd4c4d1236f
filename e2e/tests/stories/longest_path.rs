//! One ticket from the request to the merge on its longest path, with services as processes.

use e2e::{
    Options, ServiceMode, TestWorld, longest_path,
    longest_path::{RULES, StoryTicketSource},
};
use testkit::{fixture::REPOSITORY, github::ReactedObject};

async fn goes_the_whole_way(source: StoryTicketSource) {
    let world = TestWorld::start(Options {
        mode: ServiceMode::Processes,
        rules: RULES.to_owned(),
        ..Options::default()
    });
    let world = world.await.unwrap();
    let ticket = longest_path::play_longest_path(&world, source).await.unwrap();
    let pull = ticket.pull().unwrap();
    assert!(pull.merged && !pull.draft, "{pull:#?}");
    let subjects = &ticket.subjects;
    assert_eq!(
        subjects.len(),
        4,
        "work, repair, the person's and the review's: {subjects:#?}"
    );
    assert_eq!(subjects[2], "Add a note of mine", "in its place: {subjects:#?}");
    for file in [
        "notes/rounding.md",
        "notes/person.md",
        "notes/taxes.md",
        "shop/cart.py",
    ] {
        assert!(world.github.file(REPOSITORY, "main", file).is_some(), "{file}");
    }
    let threads = world.github.threads(REPOSITORY, pull.number).unwrap();
    for &thread in &threads {
        let replies = world.github.replies(REPOSITORY, pull.number, thread).unwrap();
        assert_eq!(replies.len(), 1, "{replies:#?}");
    }
    let resolved = world.github.resolved(REPOSITORY, pull.number).unwrap();
    assert_eq!(resolved, threads[..1], "only what was done is over");
    let is_done = async || {
        let read = world
            .github
            .reactions(REPOSITORY, ReactedObject::LineComment(threads[0]));
        (read == ["eyes", "rocket"]).then_some(())
    };
    world.until("the review seen, and done", is_done).await.unwrap();
    match source {
        StoryTicketSource::Jira => {
            let statuses = world.jira.status_history(&ticket.key);
            assert_eq!(statuses, ["To Do", "Ready for Agent", "In Progress", "Done"]);
            assert!(pull.body.contains(&ticket.key), "{}", pull.body);
        }
        StoryTicketSource::GitHub => {
            let issue = ReactedObject::Issue(ticket.key.parse().unwrap());
            assert_eq!(world.github.reactions(REPOSITORY, issue), ["eyes"]);
            let closes = format!("Fixes #{}", ticket.key);
            assert!(pull.body.contains(&closes), "{}", pull.body);
        }
    }
    let said = ticket.said();
    assert_eq!(said.len(), 1, "one status comment: {said:#?}");
    let name = ticket.ticket().parse().unwrap();
    let runs = world.client.runs().recent(Some(&name)).await.unwrap();
    for run in &runs {
        let id = run.id.parse().unwrap();
        let (_, reason) = world.finished(&id).await.unwrap();
        assert_eq!(reason, domain::StopReason::Completed, "{id}");
    }
    assert_rounds(&world, &pull.head_sha);
    world.stop().await.unwrap();
}

/// Checks that the last commit's check run lists each round's start and the result of its checks.
fn assert_rounds(world: &TestWorld, head: &str) {
    let runs = world.github.check_runs(REPOSITORY, head).unwrap();
    let ours = runs.iter().filter(|name| *name == "Journeyman");
    assert_eq!(ours.count(), 1, "{runs:?}");
    let (title, summary, conclusion) = world.github.check_run(REPOSITORY, head, "Journeyman").unwrap();
    assert!(title.starts_with("4 rounds of work"), "{title}");
    assert_eq!(conclusion, "success", "{title}");
    let rows = summary
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rounds: Vec<(&str, &str)> = rows
        .filter(|(number, _)| number.parse::<u32>().is_ok())
        .map(|(_, rest)| {
            let mut cells = rest.split(" | ");
            let (began, checks) = (cells.next().unwrap(), cells.nth(1).unwrap());
            // A verdict is a link to its run.
            let checks = checks.trim_start_matches('[').split("](").next().unwrap();
            (began, checks)
        })
        .collect();
    assert_eq!(
        rounds,
        [
            ("a review by `rita`", "passed"),
            ("a push by `rita`", "passed"),
            ("failed checks", "passed"),
            ("the ticket", "failed"),
        ],
        "the last first: {summary}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn jira_ticket_takes_longest_path_to_done() {
    goes_the_whole_way(StoryTicketSource::Jira).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn github_issue_takes_longest_path_to_closed() {
    goes_the_whole_way(StoryTicketSource::GitHub).await;
}
