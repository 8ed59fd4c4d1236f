//! Scope of changes by the kind of ticket.

use domain::{
    ChangedFileSize, DecisionVerdict, FileRole, Job, ModuleRules, OutOfScopeFile, OutboundAction,
    PushProposal, ToolStatus,
};
use serde_json::{Value, json};

use super::play::{Play, build_decision, build_finish_call, build_job_request, build_tool_reply};
use crate::run::RunAction;
use crate::transcript::TranscriptMessage;

/// Plays a bug in a repository whose API is open for stories only.
fn build_bug_play(calls: &[&[(&str, Value)]]) -> Play {
    let mut asked = build_job_request(Job::Implement);
    asked.text.kind = "Bug".to_owned();
    let module = |name: &str, kinds: &[&str]| ModuleRules {
        name: name.to_owned(),
        paths: vec![name.to_owned()],
        description: format!("What is in {name}."),
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        ..ModuleRules::default()
    };
    asked.rules.modules = vec![module("core", &[]), module("api", &["Story"])];
    Play::implement(asked, calls.iter().map(|calls| build_tool_reply(calls)))
}

fn build_edit_call(path: &str) -> (&'static str, Value) {
    ("edit_file", json!({ "path": path }))
}

fn build_widen_call() -> (&'static str, Value) {
    (
        "widen_scope",
        json!({"module": "api", "reason": "The field is part of the request."}),
    )
}

/// Sets the files that differ in the end.
fn set_changed_files(mut play: Play, paths: &[&str]) -> Play {
    play.checks.change.changed = paths
        .iter()
        .map(|path| ChangedFileSize {
            path: (*path).to_owned(),
            added: 1,
            removed: 0,
            role: FileRole::Product,
        })
        .collect();
    play
}

#[test]
fn foreign_module_write_requires_widened_scope() {
    let api = [build_edit_call("./api/Task.java")];
    let patch = [(
        "apply_patch",
        json!({"patch": "--- a/core/x\n+++ b/api/x\n@@ -1 +1 @@\n-a\n+b\n"}),
    )];
    let mut play = build_bug_play(&[&api, &patch, &[build_widen_call()], &api, &[build_finish_call()]]);
    play.workspace.tools.push(domain::ToolSpec {
        name: "apply_patch".to_owned(),
        ..play.workspace.tools[1].clone()
    });
    let mut play = set_changed_files(play, &["api/Task.java"]);
    let mut answers = Vec::new();
    for _ in 0..4 {
        play.until_model_call();
        let action = play.until(|action| matches!(action, RunAction::AskModel { .. }));
        play.perform(action);
        play.until_model_call();
        answers.push(play.last_result().clone());
    }
    for refused in &answers[..2] {
        assert_eq!(refused.status, ToolStatus::Error);
        assert!(refused.content.contains("call widen_scope"), "{refused:?}");
    }
    assert_eq!(answers[3].content, "edit_file did it");
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    play.pushed();
    assert_eq!(play.drive(), RunAction::Wait);
    let description = play.description();
    assert_eq!(description.widened[0].module, "api");
    assert_eq!(description.widened[0].reason, "The field is part of the request.");
    assert_eq!(description.change.as_ref().unwrap().modules, ["api"]);
}

#[test]
fn command_changes_outside_scope_need_approval() {
    let play = build_bug_play(&[
        &[build_edit_call("core/Task.java")],
        &[build_finish_call()],
        &[build_finish_call()],
    ]);
    let mut play = set_changed_files(play, &["core/Task.java", "api/gen/Client.java"]);
    assert_eq!(play.drive(), RunAction::Wait);
    let lists_outside_file = |message: &TranscriptMessage| matches!(message, TranscriptMessage::User(words) if words.contains("- api/gen/Client.java (module api)"));
    assert_eq!(
        play.transcript()
            .messages
            .iter()
            .filter(|message| lists_outside_file(message))
            .count(),
        1
    );
    let OutboundAction::DecisionNeeded(PushProposal {
        description: Some(description),
        ..
    }) = play.last_request()
    else {
        panic!("no rule asks for it: {:?}", play.last_request())
    };
    let outside = OutOfScopeFile {
        path: "api/gen/Client.java".to_owned(),
        module: "api".to_owned(),
    };
    assert_eq!(description.outside, [outside]);
    play.shown();
    play.drive();
    play.append(build_decision(DecisionVerdict::Approve));
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn scoped_and_widened_changes_need_no_approval() {
    let inside = build_bug_play(&[&[build_edit_call("core/Task.java")], &[build_finish_call()]]);
    let mut inside = set_changed_files(inside, &["core/Task.java", "README.md"]);
    assert_eq!(inside.drive(), RunAction::Wait);
    assert!(matches!(inside.last_request(), OutboundAction::PushBranch(_)));
    let late = build_bug_play(&[
        &[build_edit_call("core/Task.java")],
        &[build_finish_call()],
        &[build_widen_call(), build_finish_call()],
    ]);
    let mut late = set_changed_files(late, &["api/Client.java"]);
    assert_eq!(late.drive(), RunAction::Wait);
    assert!(matches!(late.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn widen_scope_requires_module_rules() {
    let mut play = build_bug_play(&[&[(
        "widen_scope",
        json!({"module": "web", "reason": "It looks better."}),
    )]]);
    play.until_model_call();
    let shown = play.transcript();
    let TranscriptMessage::User(task) = &shown.messages[0] else {
        panic!("no task")
    };
    assert!(task.contains("- core (core): What is in core.\n"), "{task}");
    assert!(
        task.contains("- api (api): What is in api. (not for this kind of ticket"),
        "{task}"
    );
    assert!(shown.tools.iter().any(|tool| tool.name == "widen_scope"));
    let action = play.until(|action| matches!(action, RunAction::AskModel { .. }));
    play.perform(action);
    play.until_model_call();
    assert!(play.last_result().content.contains("Choose from: core, api."));
    let mut free = Play::with([]);
    free.until_model_call();
    assert!(
        free.transcript()
            .tools
            .iter()
            .all(|tool| tool.name != "widen_scope")
    );
}
