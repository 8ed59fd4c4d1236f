//! Repositories with branch names whose characters URLs and Markdown reserve, and with commits that git itself would not
//! write.

use e2e::{Options, TestWorld};
use testkit::fixture;

use crate::{happy, only_pull_request, start_default_world};

/// Base branch of the repository, named by its rules and by the ticket.
const BASE: &str = "feature/#12|a+b%20";
const RULES: &str = "repo:\n  owner: acme\n  name: shop\n  default_branch: 'feature/#12|a+b%20'\n\
                     jira:\n  project_key: ENG\n\
                     branching:\n  pattern: '{type}/#{ticket_key}|a+b%20-{description}'\n";

#[tokio::test(flavor = "multi_thread")]
async fn odd_branch_names_reach_merge() {
    let world = TestWorld::start(Options {
        more_rules: vec![("shop.yaml", RULES.to_owned())],
        ..Options::default()
    });
    let world = world.await.unwrap();
    let files = [("docs/feature.md", "Totals count every piece.\n")];
    let begun = world
        .github
        .commit(fixture::REPOSITORY, BASE, "Begin the feature", &files);
    begun.unwrap();
    let (summary, description) = fixture::describe_shop_ticket();
    let description = format!("{description}\n\nThe change belongs on the branch {BASE}.");
    let key = world
        .jira
        .create_issue(fixture::PROJECT, summary, &description, "Bug", &[]);
    world.ask_for_work(&key).unwrap();
    happy::to_the_merge(&world, &key).await;
    let pull = only_pull_request(&world);
    assert_eq!(pull.base, BASE);
    assert_eq!(
        pull.head,
        format!("fix/#{key}|a+b%20-count-every-piece-in-the-carts-total")
    );
    let file = |branch: &str, path: &str| world.github.file(fixture::REPOSITORY, branch, path);
    let merged = file(BASE, "shop/cart.py").unwrap();
    assert!(merged.contains("line.price * line.quantity"), "{merged}");
    assert!(
        file(BASE, "docs/feature.md").is_some(),
        "the work began at the base"
    );
    let main = file("main", "shop/cart.py").unwrap();
    assert!(!main.contains("line.price * line.quantity"), "{main}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_commit_of_other_branch_blocks_no_ticket() {
    const AUTHOR: &str = "A <a@b.example> 1243040974 +051800";
    let world = start_default_world().await;
    let main = world.github.branches(fixture::REPOSITORY)["main"].clone();
    let (tree, _) = world.github.tree_and_parents(fixture::REPOSITORY, &main).unwrap();
    let text = format!(
        "tree {tree}\nparent {main}\nauthor {AUTHOR}\ncommitter {AUTHOR}\n\nRelease the first shop\n"
    );
    let odd = world
        .github
        .store_commit(fixture::REPOSITORY, "old-release", &text)
        .unwrap();
    let key = world.ask().unwrap();
    happy::to_the_merge(&world, &key).await;
    assert_eq!(world.github.branches(fixture::REPOSITORY)["old-release"], odd);
    world.stop().await.unwrap();
}
