//! Tickets whose facts are in attached files: logs, images, files at a limit, and files of GitHub issues.

use domain::{AttachmentContent, Fact, StopReason, TriggerReason};
use e2e::{Options, ProviderDialect, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture, fixture::REPOSITORY};

use crate::{
    comment_with, data_center::build_release_options, end_of, start_world_with_script,
    transcripts::first_of_work,
};

/// Fact that only the attachment has.
const FACT: &str = "quantity of line 2 was ignored, expected 37.50";

/// Log of about 200 kB with the fact in the middle.
fn build_log() -> String {
    let line = |number: u32| match number {
        2_000 => format!("2026-11-21T10:00:00Z ERROR cart: {FACT}\n"),
        _ => format!("2026-11-21T10:00:00Z INFO request {number} answered with 200\n"),
    };
    (1..=4_000).map(line).collect()
}

/// Image of 40 x 30 pixels, as far as its header says.
fn build_png() -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x28\x00\x00\x00\x1e".to_vec();
    png.extend(b"\x08\x02\x00\x00\x00\x00\x00\x00\x00");
    png.extend(b"\x00\x00\x00\x00IDAT\x00\x00\x00\x00\x00\x00\x00\x00IEND\xaeB`\x82");
    png
}

/// Script that searches a log before the usual work, and requires what it found.
fn build_log_script(name: &str) -> Vec<ScriptStep> {
    let search = json!({"name": name, "search": "error"});
    let mut script = fixture::build_shop_script();
    script[0].expect = Some(FACT.to_owned());
    script.insert(
        0,
        ScriptStep::call("read_attachment", search).expecting("are left out; read"),
    );
    script
}

/// Usual script whose first step requires a text of the prompt.
fn build_script_expecting(text: &str) -> Vec<ScriptStep> {
    let mut script = fixture::build_shop_script();
    script[0].expect = Some(text.to_owned());
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn fact_in_log_is_found_by_search() {
    let world = start_world_with_script(build_log_script("trace.log")).await;
    let key = world.file_ticket();
    let log = build_log();
    world
        .jira
        .attach(&key, "trace.log", log.as_bytes(), "ada")
        .unwrap();
    world.ask_for_work(&key).unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let prompt = first_of_work(&world);
    assert!(
        prompt.contains("request 1 answered") && prompt.contains("request 4000 answered"),
        "{prompt}"
    );
    assert!(!prompt.contains(FACT), "the middle is not in the prompt");
    // The journal names the content by its hash.
    let (journal, _) = world.finished(&world.run(&key, 0).await.unwrap()).await.unwrap();
    let pinned = journal.iter().find_map(|entry| match &entry.fact {
        Fact::RunStarted { trigger } => match &trigger.reason {
            TriggerReason::JobRequested(job) => job.text.attachments.first().cloned(),
            _ => None,
        },
        _ => None,
    });
    let pinned = pinned.expect("an attachment");
    assert!(
        matches!(&pinned.content, AttachmentContent::Text { lines: 4_000, object, .. } if object.size_bytes == log.len() as u64),
        "{pinned:?}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn data_center_serves_log_itself() {
    let world = TestWorld::start(Options {
        script: Some(build_log_script("trace 1.log")),
        ..build_release_options(10)
    });
    let world = world.await.unwrap();
    world.jira.set_groups("ada", &[testkit::jira::USERS]);
    let key = world.file_ticket();
    world
        .jira
        .attach(&key, "trace 1.log", build_log().as_bytes(), "ada")
        .unwrap();
    world.ask_for_work(&key).unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn image_is_shown_to_models_that_accept_it() {
    for (dialect, images, expected) in [
        (ProviderDialect::Anthropic, "true", "[image/png of "),
        (ProviderDialect::OpenAi, "true", "[image/png of "),
        (ProviderDialect::Responses, "true", "[image/png of "),
        (
            ProviderDialect::Anthropic,
            "false",
            "(image `shot.png`, not shown)",
        ),
    ] {
        let world = TestWorld::start(Options {
            dialect,
            settings: vec![("MODEL__IMAGES", images.to_owned())],
            script: Some(build_script_expecting(expected)),
            ..Options::default()
        });
        let world = world.await.unwrap();
        let key = world.file_ticket();
        world.jira.attach(&key, "shot.png", &build_png(), "ada").unwrap();
        world.ask_for_work(&key).unwrap();
        assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed, "{expected}");
        world.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn omitted_file_is_named_to_model_and_requester() {
    let world = TestWorld::start(Options {
        settings: vec![("INGEST__ATTACHMENTS__FILE_MIB", "1".to_owned())],
        script: Some(build_script_expecting(
            "it is larger than the limit of 1,048,576 bytes",
        )),
        ..Options::default()
    });
    let world = world.await.unwrap();
    let key = world.file_ticket();
    let large = "x".repeat((1 << 20) + 1);
    world
        .jira
        .attach(&key, "dump.log", large.as_bytes(), "ada")
        .unwrap();
    // The name has no say: it is an archive.
    world
        .jira
        .attach(&key, "notes.txt", b"PK\x03\x04rest", "ada")
        .unwrap();
    world.ask_for_work(&key).unwrap();
    let said = comment_with(&world, &key, "does without these attachments").await;
    for text in ["dump.log", "larger than 1 MiB", "notes.txt", "an archive"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let prompt = first_of_work(&world);
    assert!(
        prompt.contains("it is an archive, which is not opened"),
        "{prompt}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_private_github_issue_reach_model() {
    let mut script = build_log_script("trace.log");
    script[0].expect = Some("[image/png of ".to_owned());
    let world = TestWorld::start(Options {
        rules: "issues:\n  labels: [for the agent]\n".to_owned(),
        settings: vec![("MODEL__IMAGES", "true".to_owned())],
        script: Some(script),
        ..Options::default()
    });
    let world = world.await.unwrap();
    let image = world.github.attach_image(&build_png());
    let log = world.github.attach_file("trace.log", build_log().as_bytes());
    let (title, body) = fixture::describe_shop_ticket();
    let body = format!(
        "{body}\n\n![the wrong total]({image})\n\nSee [trace.log]({log}) and ![logo](https://a.example/logo.svg)."
    );
    let number = world
        .github
        .open_issue_as(REPOSITORY, "ada", title, &body)
        .unwrap();
    world
        .github
        .label_issue(REPOSITORY, number, "for the agent", "rita")
        .unwrap();
    let ticket = format!("github:{REPOSITORY}#{number}");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let prompt = first_of_work(&world);
    for text in [
        "Alternative text: the wrong total",
        "![the wrong total](",
        "it is at an address outside of the tracker",
    ] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    world.stop().await.unwrap();
}
