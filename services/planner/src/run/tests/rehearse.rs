//! Rehearsals of all jobs.

use domain::{
    ApprovalRule, FinishRule, Job, JobRequest, JobSubject, OutboundAction, OutboundOutcome, OutboundReceipt,
    OutboundRefusal, RehearsedJob, StopReason,
};

use super::play::{Play, build_job_request};
use crate::run::RunAction;

fn build_rehearsal_play(change: impl FnOnce(&mut JobRequest)) -> Play {
    let mut asked = build_job_request(Job::Rehearse);
    change(&mut asked);
    asked.about = JobSubject::Rehearsal(Box::new(RehearsedJob {
        job: Job::Implement,
        about: JobSubject::Ticket,
    }));
    Play::implement(asked, [])
}

fn list_rehearsed_requests(play: &Play) -> Vec<String> {
    match play.last_request() {
        OutboundAction::Rehearse(rehearse) => rehearse.requests.iter().map(OutboundAction::summary).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rehearsal_is_one_report_without_model() {
    let mut play = build_rehearsal_play(|_| {});
    assert_eq!(play.drive(), RunAction::Wait);
    let requests = list_rehearsed_requests(&play);
    assert!(
        requests.len() == 3
            && requests[1].starts_with("push ")
            && requests[2].starts_with("open draft pull request"),
        "{requests:?}"
    );
    play.settle(OutboundOutcome::Done(OutboundReceipt::Rehearsed {
        would: Vec::new(),
    }));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Completed);
    assert_eq!(
        (
            play.state.conversation().turn_count(),
            play.state.delivery().reports().len()
        ),
        (0, 1)
    );
    assert!(play.state.source().open_workspace().is_none());
}

#[test]
fn rehearsal_follows_approval_and_finish_rules() {
    let rehearse_rules = |approval: ApprovalRule, finish: FinishRule| {
        let mut play = build_rehearsal_play(|asked| {
            asked.rules.agent.approval = approval;
            asked.rules.agent.finish = finish;
        });
        play.drive();
        list_rehearsed_requests(&play)
    };
    let before_push = rehearse_rules(ApprovalRule::BeforePush, FinishRule::default());
    assert!(
        before_push[1].starts_with("ask a person to decide about 0000"),
        "{before_push:?}"
    );
    let plan = rehearse_rules(ApprovalRule::Plan, FinishRule::default());
    assert!(
        plan[1].starts_with("ask a person to decide about plan"),
        "{plan:?}"
    );
    let done = rehearse_rules(ApprovalRule::None, FinishRule::Done);
    assert!(
        done.len() == 2 && done[1].ends_with("and close the ticket"),
        "{done:?}"
    );
}

#[test]
fn refused_rehearsal_ends_without_notice() {
    let mut play = build_rehearsal_play(|_| {});
    play.drive();
    let detail = "no".to_owned();
    play.settle(OutboundOutcome::Refused(OutboundRefusal::Outside {
        detail: detail.clone(),
    }));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(
        play.reason(),
        &StopReason::ReportRefused(OutboundRefusal::Outside { detail })
    );
    assert_eq!(play.state.delivery().reports().len(), 1);
}

#[test]
fn failed_rehearsal_is_requested_again() {
    let mut play = build_rehearsal_play(|_| {});
    play.drive();
    play.settle(OutboundOutcome::Failed {
        detail: "no answer".to_owned(),
    });
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.is_parked_for("retry"));
    play.retry();
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.is_parked_for("report"), "the retry requests it again");
    assert_eq!(play.state.delivery().reports().len(), 2);
    play.settle(OutboundOutcome::Done(OutboundReceipt::Rehearsed {
        would: Vec::new(),
    }));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Completed);
}
