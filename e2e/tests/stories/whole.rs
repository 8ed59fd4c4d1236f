//! One ticket from the request to the merge, with all that happens on the way, on services as processes.

use e2e::{
    Mode, Options, World, whole,
    whole::{RULES, Source},
};
use testkit::fixture::REPOSITORY;

async fn goes_the_whole_way(source: Source) {
    let world = World::start(Options {
        mode: Mode::Processes,
        rules: RULES.to_owned(),
        ..Options::default()
    });
    let world = world.await.unwrap();
    let ticket = whole::play(&world, source).await.unwrap();
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
    for thread in threads {
        let replies = world.github.replies(REPOSITORY, pull.number, thread).unwrap();
        assert_eq!(replies.len(), 1, "{replies:#?}");
    }
    let said = ticket.said();
    assert_eq!(said.len(), 1, "one status comment: {said:#?}");
    let name = ticket.ticket().parse().unwrap();
    let runs = world.client.runs(Some(&name)).await.unwrap();
    for run in &runs {
        let id = run.id.parse().unwrap();
        let (_, reason) = world.finished(&id).await.unwrap();
        assert_eq!(reason, domain::StopReason::Completed, "{id}");
    }
    assert_eq!(world.github.violations(), Vec::<String>::new());
    assert_eq!(world.model.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jira_ticket_goes_from_the_request_over_repair_push_and_review_to_done() {
    goes_the_whole_way(Source::Jira).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_github_issue_goes_from_the_request_over_repair_push_and_review_to_closed() {
    goes_the_whole_way(Source::GitHub).await;
}
