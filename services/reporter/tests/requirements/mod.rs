//! Requirements of a repository that are read before the work.

use domain::{OutboundOutcome, OutboundRefusal, RunId, TicketKey};
use testkit::github::WRITER_APP_ID;

use crate::{
    build_work_started,
    rig::{Rig, RigOptions},
};

async fn start_as_app() -> Rig {
    Rig::start_with(RigOptions {
        as_app: true,
        ..RigOptions::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permission_ends_work_before_announcement() {
    let mut rig = start_as_app().await;
    let lacking = [("contents", "write"), ("metadata", "read"), ("checks", "write")];
    rig.github.set_app_permissions(WRITER_APP_ID, &lacking);
    let outcome = rig.settled(&rig.report(2, build_work_started())).await;
    let OutboundOutcome::Refused(refusal) = outcome else {
        panic!("{outcome:?}")
    };
    let OutboundRefusal::MissingRights { rights, section, .. } = &refusal else {
        panic!("{refusal:?}")
    };
    assert_eq!(rights, &["pull_requests:write"]);
    assert_eq!(section, "github_writer");
    assert!(refusal.words().contains("`[github_writer]`"), "{}", refusal.words());
    assert_eq!(rig.jira.status_history("ENG-1"), ["To Do"]);
    assert!(rig.jira.comments("ENG-1").is_empty());
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_ticket_needs_permission_for_issues() {
    let mut rig = start_as_app().await;
    let number = rig
        .github
        .open_issue_as("acme/shop", "rita", "Totals", "They are wrong")
        .unwrap();
    let lacking = [("contents", "write"), ("metadata", "read"), ("pull_requests", "write")];
    rig.github.set_app_permissions(WRITER_APP_ID, &lacking);
    // A ticket at Jira gets its comments there.
    let outcome = rig.settled(&rig.report(2, build_work_started())).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    let ticket: TicketKey = format!("github:acme/shop#{number}").parse().unwrap();
    let run = RunId::new(ticket.clone(), 1);
    let report = domain::OutboundRequest {
        id: run.call(2).into(),
        ticket,
        run: Some(run),
        ..rig.report(2, build_work_started())
    };
    let outcome = rig.settled(&report).await;
    assert!(
        matches!(&outcome, OutboundOutcome::Refused(OutboundRefusal::MissingRights { rights, .. })
            if rights == &["issues:write"]),
        "{outcome:?}"
    );
    rig.stop().await;
}
