//! Play of the instances with `journeyman eval` and a model that knows each fix.

use std::{path::Path, process::Stdio};

use anyhow::Context;
use serde_json::Value;
use testkit::{ScriptedModel, model::MODEL_API_KEY};
use tokio::process::Command;

use crate::output::print_line;
use crate::replay::instance::ReplayInstance;

/// Plays all instances. Returns true if each is resolved.
///
/// # Errors
/// When the evaluation does not start or leaves no summary.
pub(crate) async fn play_instances(
    instances: &[ReplayInstance],
    out: &Path,
    jobs: u16,
) -> anyhow::Result<bool> {
    let model = ScriptedModel::start(Vec::new()).await?;
    for instance in instances {
        model.set_script(instance.fix.summary(), instance.script());
    }
    let dataset = out.join("replay.jsonl");
    let lines: String = instances
        .iter()
        .map(|instance| format!("{}\n", instance.line()))
        .collect();
    std::fs::write(&dataset, lines)?;
    let results = out.join("results");
    // `journeyman eval` would otherwise resume the previous evaluation.
    if results.exists() {
        std::fs::remove_dir_all(&results)?;
    }
    let ran = Command::new(e2e::find_binary("journeyman")?)
        .arg("eval")
        .arg(&dataset)
        // The name of a model with a known price, so that the results contain costs.
        .args([
            "--model",
            "claude-haiku-4-5",
            "--jobs",
            &jobs.to_string(),
            "--out",
        ])
        .arg(&results)
        .env("ANTHROPIC_API_KEY", MODEL_API_KEY)
        .env("ANTHROPIC_BASE_URL", model.url())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await?;
    let summary = std::fs::read(results.join("summary.json"));
    let summary = summary.with_context(|| format!("journeyman eval left no summary: {ran}"))?;
    let summary: Value = serde_json::from_slice(&summary)?;
    model.stop().await;
    let mut all_resolved = true;
    for instance in instances {
        let (line, is_resolved) = describe_outcome(instance, &summary);
        print_line(&line);
        all_resolved &= is_resolved;
    }
    Ok(all_resolved && ran.success())
}

fn describe_outcome(instance: &ReplayInstance, summary: &Value) -> (String, bool) {
    let (id, language) = (&instance.fix.id, &instance.fix.language);
    let of = |list: &str| {
        let mut all = summary[list].as_array().into_iter().flatten();
        all.find(|one| one["instance"] == id.as_str()).cloned()
    };
    let Some(result) = of("results") else {
        let why = of("invalid").map_or("not played".to_owned(), |one| one["reason"].to_string());
        return (format!("replay {id} {language} invalid: {why}"), false);
    };
    let is_resolved = result["resolved"] == true;
    let word = if is_resolved { "resolved" } else { "unresolved" };
    let evidence = result["evidence"].as_str().unwrap_or("none");
    let ms = result["duration_ms"].as_u64().unwrap_or_default();
    (
        format!("replay {id} {language} {word} {evidence} {ms}"),
        is_resolved,
    )
}
