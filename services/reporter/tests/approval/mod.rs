//! Tests of pushes that need a person's approval.

use domain::{
    BranchPush, CommitId, DecisionVerdict, GateDecision, OutboundAction, OutboundOutcome, OutboundReceipt,
    PushProposal, ScopeInputs, Trigger, TriggerChannel, TriggerKey, TriggerReason, WidenedModule,
};

use crate::{
    read_refusal,
    rig::{Rig, RigOptions},
};

fn decision_needed(push: BranchPush) -> OutboundAction {
    OutboundAction::DecisionNeeded(PushProposal {
        push,
        description: None,
    })
}

async fn start_gated_rig() -> Rig {
    Rig::start_with(RigOptions {
        agent: "  approval: before_push\n",
        ..RigOptions::default()
    })
    .await
}

/// Appends the trigger that ingest writes for a decision.
async fn append_decision(rig: &Rig, run: domain::RunId, head: &CommitId, verdict: DecisionVerdict) {
    let decision = GateDecision {
        run,
        head: head.clone(),
        verdict,
        feedback: String::new(),
    };
    let trigger = Trigger {
        ticket: rig.ticket.clone(),
        key: TriggerKey::new(format!("decision:{}:{verdict:?}:{head}", decision.run)),
        at: bootstrap::read_wall_clock(),
        source: TriggerChannel::Api,
        actor: Some("ann".to_owned()),
        seen: None,
        reason: TriggerReason::Decided(decision),
    };
    rig.queue.triggers().append(&trigger).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn push_without_approval_of_commit_is_refused() {
    let mut rig = start_gated_rig().await;
    let push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    let (head, base) = (push.head.clone(), push.base.clone());
    let mut position = 2;
    let mut pushed = async |rig: &Rig, push: &BranchPush| {
        position += 2;
        let report = rig.report(position, OutboundAction::PushBranch(push.clone()));
        rig.settled(&report).await
    };
    assert!(read_refusal(&pushed(&rig, &push).await).contains("nobody approved"));
    append_decision(&rig, rig.run(), &base, DecisionVerdict::Approve).await;
    append_decision(&rig, rig.run(), &head, DecisionVerdict::Reject).await;
    let other = domain::RunId::new(rig.ticket.clone(), 99);
    append_decision(&rig, other, &head, DecisionVerdict::Approve).await;
    let outcome = pushed(&rig, &push).await;
    assert!(
        read_refusal(&outcome).contains("nobody approved"),
        "another commit, verdict and run: {outcome:?}"
    );
    assert_eq!(rig.github.branches("acme/shop").len(), 1);

    append_decision(&rig, rig.run(), &head, DecisionVerdict::Approve).await;
    let outcome = pushed(&rig, &push).await;
    assert!(
        matches!(&outcome, OutboundOutcome::Done(OutboundReceipt::Pushed { head: there, .. }) if *there == head),
        "{outcome:?}"
    );

    let mut second = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 3\n")])
        .await;
    second.expected = Some(head.clone());
    let outcome = pushed(&rig, &second).await;
    assert!(read_refusal(&outcome).contains("nobody approved"), "{outcome:?}");
    assert_eq!(
        rig.github.branches("acme/shop")["fix/ENG-1-totals"],
        head.to_string()
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn approved_plan_does_not_approve_commit() {
    let mut rig = start_gated_rig().await;
    let push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    let plan = OutboundAction::PlanProposed(domain::report::PlanProposed {
        repository: push.repository.clone(),
        id: push.head.clone(),
        plan: Box::default(),
    });
    rig.settled(&rig.report(2, plan)).await;
    append_decision(&rig, rig.run(), &push.head, DecisionVerdict::Approve).await;
    let asked = rig.report(4, OutboundAction::PushBranch(push));
    let outcome = rig.settled(&asked).await;
    assert!(read_refusal(&outcome).contains("nobody approved"), "{outcome:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decision_shows_commits_as_reporter_reads_them() {
    let mut rig = start_gated_rig().await;
    let long: String = (0..1_000).map(|line| format!("line {line}\n")).collect();
    let files = [("cart.py", "total = 2  # \u{202e}0002\n"), ("long.txt", &long)];
    let push = rig.change("fix/ENG-1-totals", &files).await;
    let asked = rig.report(4, decision_needed(push.clone()));
    let OutboundOutcome::Done(OutboundReceipt::DecisionAsked { head, diff }) = rig.settled(&asked).await
    else {
        panic!("nobody is asked")
    };
    assert_eq!(head, push.head);
    let whole = rig.queue.objects().get(&diff).await.unwrap();
    let whole = String::from_utf8(whole.to_vec()).unwrap();
    assert!(whole.contains("+total = 2  # <U+202E>0002"), "{whole}");
    assert!(whole.contains("+line 999\n"));
    let comment = rig.jira.comments("ENG-1").pop().unwrap().text;
    assert!(
        comment.contains("<U+202E>") && !comment.contains('\u{202e}'),
        "{comment}"
    );
    assert!(
        comment.contains("not shown here") && comment.contains("journeyman diff"),
        "{comment}"
    );
    assert!(comment.contains(&format!("--head {}", head.short())), "{comment}");
    assert_eq!(rig.github.branches("acme/shop").len(), 1, "nothing is pushed");

    rig.deliver_everything_again(&[&asked]).await;
    assert_eq!(rig.jira.comments("ENG-1").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forbidden_change_asks_for_no_decision() {
    let mut rig = start_gated_rig().await;
    let push = rig
        .change("fix/ENG-1-ci", &[(".github/workflows/ci.yml", "on: push\n")])
        .await;
    let asked = rig.report(4, decision_needed(push));
    let outcome = rig.settled(&asked).await;
    assert!(read_refusal(&outcome).contains("protected"), "{outcome:?}");
    assert_eq!(rig.jira.comments("ENG-1").len(), 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_beyond_scope_need_approval_or_reason() {
    let mut rig = Rig::start_with(RigOptions {
        agent: "modules:\n  - {name: core, paths: [cart.py]}\n  - {name: api, paths: [api], kinds: [Story]}\n",
        ..RigOptions::default()
    })
    .await;
    let files = [("cart.py", "total = 2\n"), ("api/v1.py", "total = 2\n")];
    let plain = rig.change("fix/ENG-1-totals", &files).await;
    let of = |kind: &str, widened: &[&str]| BranchPush {
        scope: Some(ScopeInputs {
            kind: kind.to_owned(),
            widened: widened
                .iter()
                .map(|module| WidenedModule {
                    module: (*module).to_owned(),
                    reason: "It needs the field.".to_owned(),
                })
                .collect(),
        }),
        ..plain.clone()
    };
    let asked = rig.report(4, OutboundAction::PushBranch(of("Bug", &["core"])));
    let outcome = rig.settled(&asked).await;
    let refused = read_refusal(&outcome);
    assert!(refused.contains("`api/v1.py` (module `api`)"), "{refused}");
    assert!(!refused.contains("cart.py"), "{refused}");
    assert_eq!(rig.github.branches("acme/shop").len(), 1);
    let asked = rig.report(6, OutboundAction::PushBranch(of("Bug", &["api"])));
    assert!(matches!(rig.settled(&asked).await, OutboundOutcome::Done(_)));

    let next = [("cart.py", "total = 3\n"), ("api/v1.py", "total = 3\n")];
    let mut second = rig.change("fix/ENG-1-totals", &next).await;
    second.expected = Some(plain.head.clone());
    second.scope = of("Bug", &[]).scope;
    append_decision(&rig, rig.run(), &second.head, DecisionVerdict::Approve).await;
    let asked = rig.report(8, OutboundAction::PushBranch(second));
    let outcome = rig.settled(&asked).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    rig.stop().await;
}
