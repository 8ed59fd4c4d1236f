//! Requirements of a repository's rules for every change.

use domain::{
    ChangedFileSize, Fact, FileRole, Job, JobRequest, MetadataPattern, OutboundAction, OutboundOutcome,
    OutboundReceipt, OutboundRefusal, PatternOperator, PatternSubject, PolicyViolation, ReturnReason,
    StopReason,
};

use super::play::{
    Play, build_edit_calls, build_finish_call, build_job_request, build_tool_reply, build_work_replies,
};
use crate::run::RunAction;
use crate::transcript::TranscriptMessage;

fn build_changed_request(change: impl FnOnce(&mut JobRequest)) -> JobRequest {
    let mut asked = build_job_request(Job::Implement);
    change(&mut asked);
    asked
}

/// Returns the planner's commands before the branch is created.
fn list_repair_commands(play: &Play) -> Vec<String> {
    let calls = play.entries.iter().filter_map(|entry| match &entry.fact {
        Fact::ToolRequested { call, own: true, .. } => Some(call),
        _ => None,
    });
    calls
        .take_while(|call| call.name != "create_branch")
        .filter_map(|call| Some(call.input.get("command")?.as_str()?.to_owned()))
        .collect()
}

#[test]
fn failed_repair_is_listed_and_stops_nothing() {
    let asked = build_changed_request(|asked| {
        asked.rules.ci.auto_fix = vec!["pre-commit".to_owned(), "make fmt".to_owned()];
    });
    let mut play = Play::implement(asked, build_work_replies());
    play.failing = vec!["make fmt"];
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        list_repair_commands(&play),
        ["pre-commit run --all-files", "make fmt", "make fmt"],
        "what repaired something runs once more"
    );
    play.pushed();
    assert_eq!(play.drive(), RunAction::Wait);
    let description = play.description();
    assert_eq!(description.unrepaired, ["make fmt"]);
}

#[test]
fn repaired_files_are_stored_before_proof() {
    let asked = build_changed_request(|asked| asked.rules.ci.auto_fix = vec!["make fmt".to_owned()]);
    let mut play = Play::implement(asked, build_work_replies());
    play.until(|action| matches!(action, RunAction::FindChecks { .. }));
    let named = |fact: &&Fact| matches!(fact, Fact::ToolFinished { .. } | Fact::SnapshotTaken { .. });
    let mut facts = play.entries.iter().map(|entry| &entry.fact);
    let last = facts.rfind(named).unwrap();
    assert!(matches!(last, Fact::SnapshotTaken { .. }), "{last:?}");
}

#[test]
fn repairs_rerun_after_further_work() {
    let asked = build_changed_request(|asked| asked.rules.ci.auto_fix = vec!["make fmt".to_owned()]);
    let mut play = Play::implement(asked, (0..2).flat_map(|_| build_work_replies()));
    play.until(|action| matches!(action, RunAction::FindChecks { .. }));
    play.append(Fact::Returned {
        why: ReturnReason::NothingChanged,
    });
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(list_repair_commands(&play), ["make fmt", "make fmt"]);
}

#[test]
fn contract_change_runs_end_to_end_checks() {
    let commands = |path: &str, contract: &[&str]| {
        let asked = build_changed_request(|asked| {
            asked.rules.agent.e2e_checks = vec!["make e2e".to_owned()];
            asked.rules.agent.contract = contract.iter().map(|path| (*path).to_owned()).collect();
        });
        let mut play = Play::implement(asked, build_work_replies());
        play.checks.is_there = true;
        play.checks.change.changed = vec![ChangedFileSize {
            path: path.to_owned(),
            added: 1,
            removed: 0,
            role: FileRole::Product,
        }];
        assert_eq!(play.drive(), RunAction::Wait);
        let rows = play.state.outputs().proof().unwrap().rows.iter();
        rows.map(|row| row.command.clone()).collect::<Vec<_>>()
    };
    assert_eq!(commands("api/shop.proto", &[]), ["pytest", "make e2e"]);
    assert_eq!(commands("api/openapi.v1.yaml", &[]), ["pytest", "make e2e"]);
    assert_eq!(commands("shop/cart.py", &[]), ["pytest"]);
    assert_eq!(commands("shop/cart.py", &["shop/c*"]), ["pytest", "make e2e"]);
    assert_eq!(commands("api/shop.proto", &["shop"]), ["pytest"]);
}

#[test]
fn module_checks_run_for_touched_modules() {
    let module = |name: &str, checks: &[&str]| domain::ModuleRules {
        name: name.to_owned(),
        paths: vec![name.to_owned()],
        checks: checks.iter().map(|command| (*command).to_owned()).collect(),
        ..domain::ModuleRules::default()
    };
    let select = |paths: &[&str], given: Option<&str>| {
        let asked = build_changed_request(|asked| {
            asked.rules.modules = vec![
                module("core", &["cargo test -p core"]),
                module("api", &["make api", "make schema"]),
                module("docs", &[]),
                module("web", &["make a", "make b", "make c", "make d", "make e"]),
            ];
            asked.rules.agent.e2e_checks = ["e2e 1", "e2e 2", "e2e 3"].map(str::to_owned).to_vec();
            asked.rules.agent.contract = vec!["web/contract".to_owned()];
            asked.rules.agent.checks = given.map(|command| vec![command.to_owned()]);
        });
        let mut play = Play::implement(asked, (0..2).flat_map(|_| build_work_replies()));
        play.checks.is_there = true;
        let file = |path: &&str| ChangedFileSize {
            path: (*path).to_owned(),
            added: 1,
            removed: 0,
            role: FileRole::Product,
        };
        play.checks.change.changed = paths.iter().map(file).collect();
        assert_eq!(play.drive(), RunAction::Wait);
        let proof = play.state.outputs().proof().unwrap().clone();
        play.pushed();
        assert_eq!(play.drive(), RunAction::Wait);
        assert_eq!(play.description().skipped_checks, proof.skipped_checks);
        let run = proof.rows.into_iter().map(|row| row.command);
        (run.collect::<Vec<_>>(), proof.skipped_checks)
    };
    let commands = |paths: &[&str], given: Option<&str>| {
        let (run, skipped) = select(paths, given);
        assert_eq!(skipped, [""; 0], "{paths:?}");
        run
    };
    assert_eq!(commands(&["core/a.rs"], None), ["cargo test -p core"]);
    assert_eq!(
        commands(&["api/b.rs", "core/a.rs"], None),
        ["cargo test -p core", "make api", "make schema"]
    );
    // A file without checks of a module needs those of the repository.
    for other in ["README.md", "docs/start.md"] {
        assert_eq!(
            commands(&["core/a.rs", other], None),
            ["pytest", "cargo test -p core"],
            "{other}"
        );
    }
    // Checks that the rules name always run.
    assert_eq!(
        commands(&["core/a.rs"], Some("pytest")),
        ["pytest", "cargo test -p core"]
    );
    assert_eq!(commands(&["docs/start.md"], None), ["pytest"]);
    // Beyond the limit, checks are named in the proof. Each module gets its first one.
    for (paths, run, skipped) in [
        (
            &["web/a.ts"][..],
            &["make a", "make b", "make c", "make d"][..],
            &["make e"][..],
        ),
        (
            &["web/a.ts", "api/b.rs", "core/a.rs"][..],
            &["cargo test -p core", "make api", "make a", "make schema"][..],
            &["make b", "make c", "make d", "make e"][..],
        ),
        (
            &["web/contract/a.ts"][..],
            &["make a", "make b", "make c", "make d", "e2e 1", "e2e 2"][..],
            &["make e", "e2e 3"][..],
        ),
    ] {
        let (ran, left_out) = select(paths, None);
        assert_eq!(ran, run, "{paths:?}");
        assert_eq!(left_out, skipped, "{paths:?}");
    }
}

#[test]
fn checks_of_rules_beyond_limit_are_named() {
    let given = ["pytest", "make lint", "make types"];
    for (path, found, skipped) in [
        ("README.md", &given[..], &given[2..]),
        // The module of the change names it, too.
        ("core/a.rs", &given[..], &given[..0]),
        // The executor did not find any, so no limit is the reason.
        ("README.md", &given[..0], &given[..0]),
    ] {
        let asked = build_changed_request(|asked| {
            asked.rules.agent.checks = Some(given.map(str::to_owned).to_vec());
            asked.rules.modules = vec![domain::ModuleRules {
                name: "core".to_owned(),
                paths: vec!["core".to_owned()],
                checks: vec!["make types".to_owned()],
                ..domain::ModuleRules::default()
            }];
        });
        let mut play = Play::implement(asked, (0..2).flat_map(|_| build_work_replies()));
        play.checks.change.changed = vec![ChangedFileSize {
            path: path.to_owned(),
            added: 1,
            removed: 0,
            role: FileRole::Product,
        }];
        play.until(|action| matches!(action, RunAction::FindChecks { .. }));
        let candidate = |command: &&str| domain::check::CheckCandidate {
            command: (*command).to_owned(),
            directory: String::new(),
            why: String::new(),
            known_at_base: false,
        };
        play.append(Fact::ChecksFound {
            candidates: found.iter().map(candidate).collect(),
        });
        assert_eq!(play.drive(), RunAction::Wait);
        let proof = play.state.outputs().proof().unwrap();
        assert_eq!(proof.skipped_checks, skipped, "{path}");
    }
}

#[test]
fn module_check_runs_beside_folder_check() {
    let asked = build_changed_request(|asked| {
        asked.rules.modules = vec![domain::ModuleRules {
            name: "core".to_owned(),
            paths: vec!["core".to_owned()],
            checks: vec!["pytest".to_owned()],
            ..domain::ModuleRules::default()
        }];
    });
    let mut play = Play::implement(asked, (0..2).flat_map(|_| build_work_replies()));
    let file = |path: &str| ChangedFileSize {
        path: path.to_owned(),
        added: 1,
        removed: 0,
        role: FileRole::Product,
    };
    play.checks.change.changed = vec![file("core/a.rs"), file("README.md")];
    play.until(|action| matches!(action, RunAction::FindChecks { .. }));
    let found = domain::check::CheckCandidate {
        command: "pytest".to_owned(),
        directory: "web".to_owned(),
        why: "web/pyproject.toml".to_owned(),
        known_at_base: false,
    };
    play.append(Fact::ChecksFound {
        candidates: vec![found],
    });
    assert_eq!(play.drive(), RunAction::Wait);
    let mut folders: Vec<&str> = play
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::CheckRequested { check, .. } => Some(check.directory.as_str()),
            _ => None,
        })
        .collect();
    folders.sort_unstable();
    folders.dedup();
    assert_eq!(folders, ["", "web"]);
}

#[test]
fn prompt_names_checks_of_modules() {
    let asked = build_changed_request(|asked| {
        let module = |name: &str, checks: &[&str]| domain::ModuleRules {
            name: name.to_owned(),
            paths: vec![name.to_owned()],
            checks: checks.iter().map(|command| (*command).to_owned()).collect(),
            ..domain::ModuleRules::default()
        };
        asked.rules.modules = vec![module("core", &["make core", "make lint"]), module("docs", &[])];
    });
    let mut play = Play::implement(asked, build_work_replies());
    play.until_model_call();
    let TranscriptMessage::User(task) = &play.transcript().messages[0] else {
        panic!("no task")
    };
    for line in ["- core (core) (checked by make core; make lint)", "- docs (docs)"] {
        assert!(task.lines().any(|known| known == line), "{line}: {task}");
    }
}

#[test]
fn description_names_ignored_files_of_snapshot() {
    let mut play = Play::with(build_work_replies());
    play.ignored = vec!["shop/mean.gen.py".to_owned()];
    play.drive();
    play.pushed();
    play.drive();
    assert_eq!(play.description().ignored, ["shop/mean.gen.py"]);
}

#[test]
fn contract_change_without_test_is_named() {
    let named = |changed: &[(&str, FileRole)]| {
        let asked = build_changed_request(|asked| asked.rules.agent.e2e_checks = vec!["make e2e".to_owned()]);
        let mut play = Play::implement(asked, build_work_replies());
        play.checks.is_there = true;
        let file = |&(path, role): &(&str, FileRole)| ChangedFileSize {
            path: path.to_owned(),
            added: 1,
            removed: 0,
            role,
        };
        play.checks.change.changed = changed.iter().map(file).collect();
        play.until_model_call();
        let system = play.transcript().system.concat();
        assert!(
            system.contains("These commands run such tests: make e2e"),
            "{system}"
        );
        play.drive();
        play.pushed();
        play.drive();
        play.description().untested_contracts.clone()
    };
    let contract = ("api/shop.proto", FileRole::Product);
    assert_eq!(named(&[contract]), ["api/shop.proto"]);
    assert!(named(&[contract, ("tests/test_api.py", FileRole::Test)]).is_empty());
    assert!(named(&[("shop/cart.py", FileRole::Product)]).is_empty());
}

#[test]
fn prompt_shows_ticket_kind_needs_and_template() {
    let render_task = |kind: &str| {
        let mut play = Play::implement(
            build_changed_request(|asked| asked.text.kind = kind.to_owned()),
            [],
        );
        play.until_model_call();
        let shown = play.transcript();
        match &shown.messages[0] {
            TranscriptMessage::User(task) => task.clone(),
            other => panic!("{other:?}"),
        }
    };
    let bug = render_task("Bug");
    assert!(bug.contains("find the exact root cause first"), "{bug}");
    assert!(bug.contains(">\n## Risk\n</template-"), "{bug}");
    let story = render_task("Story");
    assert!(story.contains("meet every criterion") && !story.contains("root cause first"));
    assert!(render_task("Chore").contains("must not change"));
}

#[test]
fn template_keeps_headings_with_answers() {
    let mut answered = build_finish_call();
    answered.1["template"] = serde_json::json!([{"heading": "risk", "text": "None."}]);
    let mut play = Play::implement(
        build_changed_request(|_| ()),
        [
            build_tool_reply(&build_edit_calls()),
            build_tool_reply(&[answered]),
        ],
    );
    play.drive();
    play.pushed();
    play.drive();
    let description = play.description();
    assert_eq!(description.template, "## Risk\n\nNone.");
}

#[test]
fn prompt_names_dbt_projects_and_manifests() {
    let asked = build_changed_request(|asked| {
        asked.rules.dbt.enabled = true;
        asked.rules.dbt.projects = vec![domain::DbtProject {
            path: "data".to_owned(),
            manifest_path: "target/manifest.json".to_owned(),
        }];
        asked.rules.ci.auto_fix = vec!["dbt_compile".to_owned()];
    });
    let mut play = Play::implement(asked, build_work_replies());
    play.until_model_call();
    let system = play.transcript().system.join("\n");
    assert!(
        system.contains("projects: data (manifest: target/manifest.json)\n"),
        "{system}"
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(list_repair_commands(&play), ["dbt compile --project-dir 'data'"]);
}

#[test]
fn finish_without_required_scope_is_refused() {
    let asked = |is_required| build_changed_request(|asked| asked.rules.commits.scope_required = is_required);
    let mut play = Play::implement(asked(true), build_work_replies());
    play.drive();
    let answer = &play.result_of("finish").content;
    assert!(answer.contains("`scope` is missing"), "{answer}");
    let mut scoped = build_finish_call();
    scoped.1["scope"] = "cart".into();
    let mut play = Play::implement(
        asked(true),
        [build_tool_reply(&build_edit_calls()), build_tool_reply(&[scoped])],
    );
    assert_eq!(play.drive(), RunAction::Wait);
    let mut play = Play::implement(asked(false), build_work_replies());
    assert_eq!(play.drive(), RunAction::Wait);
}

fn build_message_pattern(operator: PatternOperator, pattern: &str) -> MetadataPattern {
    MetadataPattern {
        subject: PatternSubject::CommitMessage,
        operator,
        pattern: pattern.to_owned(),
        negate: false,
    }
}

/// Returns a run whose repository requires the pattern.
fn start_with_pattern(pattern: MetadataPattern, replies: Vec<domain::ModelReply>) -> Play {
    let mut play = Play::implement(build_changed_request(|_| ()), replies);
    let patterns = vec![pattern];
    play.start = Some(OutboundOutcome::Done(OutboundReceipt::Started { patterns }));
    play
}

/// Returns the messages of the planner's commits.
fn list_commit_messages(play: &Play) -> Vec<String> {
    let calls = play.entries.iter().filter_map(|entry| match &entry.fact {
        Fact::ToolRequested { call, own: true, .. } if call.name == "commit_changes" => Some(call),
        _ => None,
    });
    calls
        .filter_map(|call| Some(call.input.get("message")?.as_str()?.to_owned()))
        .collect()
}

fn build_titled_finish(title: &str) -> domain::ModelReply {
    let mut finish = build_finish_call();
    finish.1["title"] = title.into();
    build_tool_reply(&[finish])
}

#[test]
fn required_pattern_reaches_prompt_with_commit() {
    let pattern = build_message_pattern(PatternOperator::StartsWith, "ENG-12: ");
    let mut play = start_with_pattern(pattern, build_work_replies().to_vec());
    play.until_model_call();
    let system = play.transcript().system.concat();
    assert!(
        system.contains("The commit message must start with `ENG-12: `. The message is made of the title"),
        "{system}"
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    let messages = list_commit_messages(&play);
    assert!(
        messages[0].starts_with("ENG-12: Correct the totals\n"),
        "{messages:?}"
    );
}

#[test]
fn pattern_for_end_leaves_trailers_out() {
    for (pattern, message) in [
        (
            "Totals are right again.",
            "fix: Correct the totals (ENG-12)\n\nTotals are right again.",
        ),
        ("(ENG-12)", "fix: Correct the totals (ENG-12)"),
    ] {
        let pattern = build_message_pattern(PatternOperator::EndsWith, pattern);
        let mut play = start_with_pattern(pattern, build_work_replies().to_vec());
        assert_eq!(play.drive(), RunAction::Wait);
        assert!(
            matches!(play.last_request(), OutboundAction::PushBranch(_)),
            "the model is not asked for another description"
        );
        assert_eq!(list_commit_messages(&play), [message]);
    }
}

#[test]
fn unmet_message_returns_before_commit() {
    let pattern = build_message_pattern(PatternOperator::Regex, "^Totals: ");
    let mut replies = build_work_replies().to_vec();
    replies.push(build_titled_finish("Totals: correct them"));
    let mut play = start_with_pattern(pattern.clone(), replies);
    assert_eq!(play.drive(), RunAction::Wait);
    let returns: Vec<&ReturnReason> = play
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::Returned { why } => Some(why),
            _ => None,
        })
        .collect();
    let violation = PolicyViolation::Pattern {
        requires: pattern,
        commit: String::new(),
    };
    assert_eq!(returns, [&ReturnReason::Refused(violation.into())]);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    let messages = list_commit_messages(&play);
    assert_eq!(messages.len(), 1, "nothing was committed before: {messages:?}");
    assert!(
        messages[0].starts_with("Totals: correct them (ENG-12)\n"),
        "{messages:?}"
    );
}

#[test]
fn pattern_refuses_commit_of_model() {
    let pattern = build_message_pattern(PatternOperator::StartsWith, "ENG-12: ");
    let commit =
        |message: &str| build_tool_reply(&[("commit_changes", serde_json::json!({"message": message}))]);
    let mut play = start_with_pattern(
        pattern,
        vec![
            build_tool_reply(&build_edit_calls()),
            commit("fix: totals (ENG-12)"),
            commit("ENG-12: totals"),
        ],
    );
    let mut results = Vec::new();
    for _ in 0..3 {
        play.until_model_call();
        let action = crate::run::decide_action(&play.state);
        play.perform(action);
        play.until_model_call();
        results.push(play.last_result().clone());
    }
    assert!(
        results[1].content.contains("must start with `ENG-12: `"),
        "{results:?}"
    );
    assert_eq!(results[2].status, domain::ToolStatus::Ok, "{results:?}");
}

#[test]
fn words_of_server_return_to_model_twice() {
    let replies = (0..3).flat_map(|_| build_work_replies());
    let mut play = Play::implement(build_changed_request(|_| ()), replies);
    let refusal = OutboundRefusal::PushRejected {
        branch: "fix/ENG-12-correct-the-totals".to_owned(),
        detail: "error: no key in the message".to_owned(),
    };
    for push in 1..=3 {
        assert_eq!(play.drive(), RunAction::Wait, "push {push}");
        assert!(
            matches!(play.last_request(), OutboundAction::PushBranch(_)),
            "push {push}"
        );
        play.settle(OutboundOutcome::Refused(refusal.clone()));
        if push == 1 {
            play.until_model_call();
            let shown = play.transcript();
            let Some(TranscriptMessage::User(last)) = shown.messages.last() else {
                panic!("{:?}", shown.messages)
            };
            assert!(last.contains("> error: no key in the message"), "{last}");
        }
    }
    play.drive();
    let OutboundAction::RunStopped(stopped) = play.last_request() else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(stopped.reason, StopReason::ReportRefused(refusal));
}
