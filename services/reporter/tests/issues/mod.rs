//! Tests of planned issues: opened once, linked, and within the limit of the rules.

use domain::{OutboundAction, OutboundOutcome, OutboundReceipt, report};
use testkit::ServiceFault;

use crate::{
    read_refusal,
    rig::{Rig, RigOptions},
};

/// Starts a rig whose rules permit three issues.
async fn start_rig() -> Rig {
    Rig::start_with(RigOptions {
        agent: "issues:\n  most_planned: 3\n",
        ..RigOptions::default()
    })
    .await
}

fn build_open_issues(titles: &[&str]) -> OutboundAction {
    let planned = |title: &&str| domain::PlannedIssue {
        title: (*title).to_owned(),
        text: format!("What {title} needs."),
        checklist: vec!["Test it".to_owned()],
    };
    OutboundAction::OpenIssues(report::OpenIssues {
        repository: "acme/shop".parse().unwrap(),
        parent: None,
        issues: titles.iter().map(planned).collect(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn planned_issues_open_once_despite_lost_answer() {
    let mut rig = start_rig().await;
    rig.github
        .fail_next(ServiceFault::new("/issues", 1, 502).on("POST").after_effect());
    let report = rig.report(2, build_open_issues(&["Totals", "Round", "Show"]));
    assert_eq!(
        rig.settled(&report).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    rig.deliver_everything_again(&[&report]).await;

    let issues = rig.github.issues("acme/shop");
    let titles: Vec<&str> = issues.iter().map(|issue| issue.title.as_str()).collect();
    assert_eq!(titles, ["Totals", "Round", "Show"]);
    assert!(
        issues.iter().all(|issue| issue.body.contains("- [ ] Test it")),
        "{issues:?}"
    );
    let parts = rig.github.sub_issues("acme/shop", issues[0].number).unwrap();
    assert_eq!(parts, [issues[1].number, issues[2].number]);
    let comments = rig.jira.comments("ENG-1");
    assert_eq!(comments.len(), 1);
    assert!(comments[0].text.contains("#3"), "{}", comments[0].text);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_issues_are_refused_before_first() {
    let mut rig = start_rig().await;
    let outcome = rig
        .settled(&rig.report(2, build_open_issues(&["a", "b", "c", "d"])))
        .await;
    assert!(read_refusal(&outcome).contains("allow 3"), "{outcome:?}");
    assert!(rig.github.issues("acme/shop").is_empty());
    rig.stop().await;

    let mut rig = Rig::start().await;
    let outcome = rig.settled(&rig.report(2, build_open_issues(&["a"]))).await;
    assert!(
        read_refusal(&outcome).contains("issues.most_planned"),
        "{outcome:?}"
    );
    assert!(rig.github.issues("acme/shop").is_empty());
    rig.stop().await;
}
