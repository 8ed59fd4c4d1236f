//! Jobs by hand, which no event would start.

use api::types::{JobBody, JobStarted};
use domain::{Job, StopReason};
use e2e::TestWorld;
use serde_json::{Value, json};
use testkit::{ScriptStep, fixture, github::RunConclusion};

use crate::{
    comment_with, complete_check, complete_ticket, end_of, list_commit_subjects, only_pull_request,
    open_issue, start_default_world,
};

const REPAIR: &str = "Checks failed on the pull request";

fn fail_note_check(world: &TestWorld, log: &str) {
    complete_check(world, "notes", RunConclusion::Failure, log);
}

/// Starts the job and returns the reason of its run's end.
async fn dispatch_manual_job(world: &TestWorld, ticket: String, job: Job, context: Value) -> StopReason {
    let Value::Object(context) = context else {
        panic!("an object")
    };
    let body = JobBody {
        ticket,
        job,
        repository: None,
        text: None,
        context: Some(context),
        dry_run: false,
        mock: false,
    };
    let accepted = world.client.jobs().dispatch_with(&body, None).await.unwrap();
    world.finished(&accepted.run.parse().unwrap()).await.unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_repair_resumes_with_instructions() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    world.model.set_script_of(
        REPAIR,
        "",
        fixture::build_repair_script("notes/rounding.md", "no note on rounding"),
    );
    fail_note_check(&world, "AssertionError: no note on rounding at 12:31");
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    fail_note_check(&world, "AssertionError: no note on rounding at 12:55");
    comment_with(&world, &key, "The same failure came again").await;
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    assert_eq!(list_commit_subjects(&world).len(), 2);

    world.model.set_script_of(
        REPAIR,
        "",
        fixture::build_repair_script("docs/rounding.md", "It looks for it in docs."),
    );
    let context = json!({"instructions": "It looks for it in docs."});
    let end = dispatch_manual_job(&world, key.clone(), Job::FixCi, context).await;
    assert_eq!(end, StopReason::Completed);
    assert_eq!(list_commit_subjects(&world).len(), 3);
    let note = world
        .github
        .file(fixture::REPOSITORY, fixture::BRANCH, "docs/rounding.md");
    assert_eq!(note.as_deref(), Some("Rounded.\n"));
    // With green checks nothing remains to do, which counts as success.
    let head = only_pull_request(&world).head_sha;
    world
        .github
        .run_checks(
            fixture::REPOSITORY,
            &head,
            &[("notes", RunConclusion::Success, "")],
        )
        .unwrap();
    assert_eq!(end_of(&world, &key, 4).await, StopReason::Completed);
    let again = JobBody {
        ticket: key.clone(),
        job: Job::FixCi,
        repository: None,
        text: None,
        context: None,
        dry_run: false,
        mock: false,
    };
    let JobStarted::Needless(result) = world.client.jobs().start(&again, None).await.unwrap() else {
        panic!("a run was started")
    };
    assert_eq!(
        serde_json::to_value(result).unwrap(),
        json!({"fixed": true, "strategy": null, "commit_sha": null, "error": null, "message": "No failed checks"})
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unassigned_issue_is_worked_on_manually() {
    let world = start_default_world().await;
    let (number, ticket) = open_issue(&world, "sam");
    world.model.set_script_of(
        "Answer this question",
        "",
        vec![
            ScriptStep::call(
                "submit_answer",
                json!({"answer": "It forgets the quantity.", "citations": []}),
            )
            .expecting("What is wrong?"),
        ],
    );
    let question = json!({"question": "What is wrong?", "issue_number": number});
    let end = dispatch_manual_job(&world, ticket.clone(), Job::Answer, question).await;
    assert_eq!(end, StopReason::Completed);
    let said = world.github.comments(fixture::REPOSITORY, number);
    assert!(
        said.iter()
            .any(|comment| comment.body.contains("It forgets the quantity.")),
        "{said:#?}"
    );
    let end = dispatch_manual_job(&world, ticket, Job::Implement, json!({})).await;
    assert_eq!(end, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert!(pull.body.contains(&format!("#{number}")), "{pull:#?}");
    world.stop().await.unwrap();
}
