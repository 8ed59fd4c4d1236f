//! Journal of a made-up run for tests: one second between its entries.

use domain::{
    BranchPush, ChangeProof, Fact, JournalEntry, ModelReply, ModelRole, ObjectRef, OutboundAction,
    OutboundOutcome, OutboundReceipt, PhaseOutput, ReplyStop, RunFence, RunId, RunPhase, SandboxLevel,
    StopReason, Timestamp, TokenUsage, ToolCall, ToolResult, WorkExit, WorkHandover,
    check::{CheckOutcome, CheckSpec, CompletedCheck, EvidenceLevel, TreeKind},
};

pub(crate) const RUN: &str = "jira:ENG-1@3";
pub(crate) const HEAD: &str = "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d";

/// Builds an entry at `position` seconds.
pub(crate) fn build_entry(position: u64, fact: Fact) -> JournalEntry {
    JournalEntry {
        position,
        nonce: String::new(),
        fence: RunFence::default(),
        at: Timestamp::from_unix_ms(i64::try_from(position).unwrap() * 1_000),
        fact,
    }
}

/// Builds the journal of a run: workspace, two turns, a check that passes at the second attempt, a push.
pub(crate) fn build_run_journal() -> Vec<JournalEntry> {
    let mut journal = vec![build_entry(
        0,
        Fact::WorkspaceRequested {
            id: build_run_id().call(0),
            repository: None,
        },
    )];
    let read = ToolResult::ok("1 def total(items):");
    push_turn(&mut journal, 1, "read_file", read);
    push_turn(&mut journal, 2, "run_command", ToolResult::error("2 failed"));
    let handover = WorkHandover {
        title: "Count every item".to_owned(),
        summary: "The loop **skipped** the last item.".to_owned(),
        ..WorkHandover::default()
    };
    let exit = WorkExit::Finished(Box::new(handover));
    let output = PhaseOutput::Work { exit };
    push_fact(&mut journal, Fact::PhaseFinished { output });
    push_checks(&mut journal, &[CheckOutcome::Red, CheckOutcome::Green]);
    let proof = ChangeProof {
        level: EvidenceLevel::E1,
        rows: Vec::new(),
        demonstrations: Vec::new(),
        findings: Vec::new(),
        outside: Vec::new(),
        unnoticed: Vec::new(),
        shown_by: None,
        unrepaired: Vec::new(),
        skipped_checks: Vec::new(),
    };
    let output = PhaseOutput::Prove {
        proof: Box::new(proof),
    };
    push_fact(&mut journal, Fact::PhaseFinished { output });
    let id = build_run_id().call(journal.len() as u64);
    push_fact(
        &mut journal,
        Fact::ReportRequested {
            id: id.clone().into(),
            request: OutboundAction::PushBranch(build_push()),
            answers: None,
        },
    );
    let receipt = OutboundReceipt::Pushed {
        branch: "fix/ENG-1".to_owned(),
        head: HEAD.parse().unwrap(),
        diff: None,
    };
    let outcome = OutboundOutcome::Done(receipt);
    push_fact(
        &mut journal,
        Fact::ReportSettled {
            id: id.into(),
            outcome,
        },
    );
    let reason = StopReason::Completed;
    push_fact(&mut journal, Fact::RunFinished { reason });
    journal
}

/// Builds a journal of attempts of one check with these outcomes.
pub(crate) fn build_check_run(outcomes: &[CheckOutcome]) -> Vec<JournalEntry> {
    let mut journal = Vec::new();
    push_checks(&mut journal, outcomes);
    journal
}

pub(crate) fn build_run_id() -> RunId {
    RUN.parse().unwrap()
}

pub(crate) fn push_fact(journal: &mut Vec<JournalEntry>, fact: Fact) {
    journal.push(build_entry(journal.len() as u64, fact));
}

/// Adds four entries: request and reply of the model, call and result of the tool.
pub(crate) fn push_turn(journal: &mut Vec<JournalEntry>, turn: u32, tool: &str, result: ToolResult) {
    let model = build_run_id().call(journal.len() as u64);
    push_fact(
        journal,
        Fact::ModelRequested {
            id: model.clone(),
            turn,
            phase: RunPhase::Work,
            round: 0,
            role: ModelRole::Default,
        },
    );
    let reply = ModelReply {
        blocks: Vec::new(),
        stop: ReplyStop::ToolUse,
        usage: TokenUsage::default(),
        model: "m".to_owned(),
        provider: String::new(),
        cost_micros: Some(12_000),
    };
    push_fact(
        journal,
        Fact::ModelReplied {
            id: model,
            reply,
            prompt: None,
        },
    );
    let id = build_run_id().call(journal.len() as u64);
    let call = ToolCall {
        id: format!("t{turn}"),
        name: tool.to_owned(),
        input: serde_json::json!({"path": "cart.py"}),
    };
    push_fact(
        journal,
        Fact::ToolRequested {
            id: id.clone(),
            call,
            own: false,
            repository: None,
            server: None,
        },
    );
    push_fact(journal, Fact::ToolFinished { id, result });
}

fn push_checks(journal: &mut Vec<JournalEntry>, outcomes: &[CheckOutcome]) {
    for (again, outcome) in (0..).zip(outcomes) {
        let id = build_run_id().call(journal.len() as u64);
        let check = CheckSpec {
            command: "pytest".to_owned(),
            directory: String::new(),
            tree: TreeKind::Head,
            again,
            limit_s: None,
            reports: Vec::new(),
        };
        push_fact(
            journal,
            Fact::CheckRequested {
                id: id.clone(),
                check,
            },
        );
        let run = CompletedCheck {
            command: "pytest".to_owned(),
            directory: String::new(),
            tree: None,
            tree_kind: TreeKind::Head,
            outcome: *outcome,
            reason: String::new(),
            exit_code: None,
            duration_ms: 900,
            tests: None,
            output_tail: String::new(),
            truncated: false,
            sandbox: SandboxLevel::L1,
            tampered: Vec::new(),
            setup_hint: None,
        };
        push_fact(
            journal,
            Fact::CheckRan {
                id,
                run: Box::new(run),
            },
        );
    }
}

fn build_push() -> BranchPush {
    BranchPush {
        repository: "acme/shop".parse().unwrap(),
        branch: "fix/ENG-1".to_owned(),
        base: HEAD.parse().unwrap(),
        head: HEAD.parse().unwrap(),
        pack: ObjectRef {
            sha256: "0".repeat(64),
            size_bytes: 1,
        },
        expected: None,
        scope: None,
        merge: None,
    }
}
