//! `journeyman eval`: plays tasks with known solutions, and reports the resolved share.

mod play;
mod session;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use bootstrap::settings;
use clap::Args;
use evaluation::{
    EvalFrame, EvalInstance, EvalResultStore, EvalRunKey, EvalRunRecord, EvalSummary, InvalidInstance,
};
use executor::FolderCheckRunner;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::session::{EvalSession, EvalSessionState};
use super::{EXIT_INTERRUPTED, folder, print_error, print_json, print_result, progress::ProgressDisplay};
use crate::{
    args::{OutputFormat, parse_dollars},
    local,
};

// Characters of a digest in a key.
const DIGEST: usize = 16;

/// Play tasks with known solutions, grade them by their tests, and print the resolved share and the
/// cost
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Arguments {
    /// The data set: one JSON object per line and instance
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    /// The model, by its provider's name for it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Settings file; only its model and limits count
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    settings: Option<PathBuf>,
    /// Rules for every instance, without `repo:`
    #[arg(long = "config", value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Concurrent instances
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Runs of each instance
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Start no run once this amount is spent, in dollars; active runs may still cost something
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    max_cost: Option<f64>,
    /// Folder for results and journals
    #[arg(long, value_name = "DIR", default_value = "eval-results")]
    out: PathBuf,
    /// Keep existing results, and play the missing ones
    #[arg(long)]
    resume: bool,
    /// Results folder of another evaluation to compare with, instance by instance
    #[arg(long, value_name = "RESULTS")]
    compare: Option<PathBuf>,
    /// Output format of the result
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
}

/// Version, model and settings of an evaluation.
struct EvalIdentity {
    release: String,
    model: String,
    settings: String,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let instances = evaluation::read_dataset(&asked.dataset)?;
    let other = asked
        .compare
        .as_deref()
        .map(evaluation::read_records)
        .transpose()?;
    let settings = load_model_settings(&asked)?;
    // Results are only comparable for equal release, model and settings.
    let identity = EvalIdentity {
        release: env!("CARGO_PKG_VERSION").to_owned(),
        model: settings.model()?,
        settings: hash_settings(&settings, asked.rules.as_deref())?,
    };
    std::fs::create_dir_all(&asked.out).with_context(|| format!("cannot create {}", asked.out.display()))?;
    let out = asked.out.canonicalize()?;
    // The results are opened before any work, so that existing results stop the command early.
    let store = EvalResultStore::open(&out, asked.resume)?;
    let work = tempfile::Builder::new().prefix("journeyman-eval-").tempdir()?;
    let root = work.path().canonicalize()?;
    let settings = hide_paths(settings, &asked.dataset, &instances, &out, &root)?;
    let bench = open_bench(&settings, &root).await?;
    let [shutdown, at_once] = bootstrap::listen_for_signals();
    let instances: Vec<_> = instances.into_iter().map(Arc::new).collect();
    let jobs = usize::from(asked.jobs);
    let (valid, invalid) = validate_instances(&bench, &root, instances, jobs, &shutdown).await;
    let runs = plan_runs(&valid, asked.runs, &identity);
    let session = EvalSession {
        state: Mutex::new(EvalSessionState::new(store)),
        out: out.clone(),
        root,
        settings,
        bench,
        rules: asked.rules.clone(),
        max_cost: asked.max_cost.map(convert_to_micros),
        planned: runs.len(),
        shutdown: shutdown.clone(),
        progress: ProgressDisplay::bar(runs.len()),
    };
    let planned: Vec<EvalRunKey> = runs.iter().map(|(_, key)| key.clone()).collect();
    let played = stream::iter(runs).map(|(instance, key)| Box::pin(session.play_run(instance, key)));
    let mut played = played.buffer_unordered(jobs);
    let mut problem = Ok(());
    // The second signal drops the runs, which still stop the services that they started.
    while let Some(Some(done)) = at_once.run_until_cancelled(played.next()).await {
        // A result that cannot be stored ends the evaluation, because further runs would cost money without a
        // result.
        if done.is_err() && problem.is_ok() {
            shutdown.cancel();
            problem = done;
        }
    }
    // The runs borrow the session, which `end` consumes.
    drop(played);
    problem?;
    let (records, ended_early) = session.end(&planned);
    let frame = EvalFrame {
        release: identity.release,
        model: identity.model,
        settings: identity.settings,
        instances: valid.len(),
        runs_each: asked.runs,
        invalid,
        ended_early,
    };
    print_summary(
        &EvalSummary::of(frame, &records, other.as_deref()),
        &records,
        &out,
        asked.output,
    )?;
    Ok(if shutdown.is_cancelled() {
        ExitCode::from(EXIT_INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

/// Settings of the services, the same as those of `try`.
fn load_model_settings(asked: &Arguments) -> anyhow::Result<folder::FolderRunSettings> {
    folder::load_folder_settings(&folder::InFolder {
        repository: None,
        rules: None,
        settings: asked.settings.clone(),
        data: None,
        model: asked.model.clone(),
        base_url: asked.base_url.clone(),
        accept: false,
        dry_run: false,
    })
}

/// Digest of the settings that influence a run, without secrets.
fn hash_settings(settings: &folder::FolderRunSettings, rules: Option<&Path>) -> anyhow::Result<String> {
    let mut parts: Vec<String> = settings
        .environment
        .iter()
        .filter(|(name, _)| !is_secret(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    // Variables have no fixed order, and equal settings must have equal digests.
    parts.sort();
    if let Some(file) = settings.file() {
        let text = std::fs::read_to_string(file)?;
        let lines = text.lines();
        parts.extend(
            lines
                .filter(|line| !is_secret(line.split('=').next().unwrap_or_default()))
                .map(str::to_owned),
        );
    }
    if let Some(rules) = rules {
        parts.push(
            std::fs::read_to_string(rules).with_context(|| format!("cannot read {}", rules.display()))?,
        );
    }
    Ok(shorten_digest(&evaluation::hash_to_hex(
        parts.join("\n").as_bytes(),
    )))
}

/// True for the name of a secret setting. Names of budgets end in `TOKENS`.
fn is_secret(name: &str) -> bool {
    let name = name.trim().trim_matches('"').to_uppercase();
    let ends = ["API_KEY", "TOKEN", "PASSWORD", "NKEY_SEED"];
    name.contains("SECRET") || ends.iter().any(|end| name.ends_with(end))
}

fn shorten_digest(digest: &str) -> String {
    digest.chars().take(DIGEST).collect()
}

/// Hides the data set, sources, results and other runs from commands, in case commands could read their
/// folders.
fn hide_paths(
    mut settings: folder::FolderRunSettings,
    dataset: &Path,
    instances: &[EvalInstance],
    out: &Path,
    root: &Path,
) -> anyhow::Result<folder::FolderRunSettings> {
    let name = "JOURNEYMAN__EXECUTOR__HIDDEN";
    let dataset = dataset.canonicalize()?;
    let sources = instances.iter().map(|instance| instance.source.path());
    let mut paths: Vec<String> = Vec::new();
    for path in sources.chain([dataset.as_path(), out, root]) {
        let path = path.display().to_string();
        anyhow::ensure!(
            !path.contains(','),
            "{path} cannot be hidden from commands: choose a path without a comma"
        );
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    // The variable replaces the setting of the file and every other variable of this name, so it repeats their paths.
    paths.extend(settings.hidden_paths()?);
    settings.environment.retain(|(other, _)| other != name);
    settings.environment.push((name.to_owned(), paths.join(",")));
    Ok(settings)
}

/// Sandbox for the deciding tests, by the settings of the executor.
async fn open_bench(settings: &folder::FolderRunSettings, root: &Path) -> anyhow::Result<FolderCheckRunner> {
    let file = settings.file();
    let environment = local::complete_settings(file.as_deref(), settings.environment.clone()).await?;
    let config: executor::Config = settings::load_settings(file.as_deref(), environment)?;
    let workspaces = root.join("graded");
    std::fs::create_dir_all(&workspaces)?;
    FolderCheckRunner::open(&config.executor, workspaces).await
}

/// Usable instances, and the others with the reason.
async fn validate_instances(
    bench: &FolderCheckRunner,
    root: &Path,
    instances: Vec<Arc<EvalInstance>>,
    jobs: usize,
    shutdown: &CancellationToken,
) -> (Vec<Arc<EvalInstance>>, Vec<InvalidInstance>) {
    let checked = stream::iter(instances).map(|instance| async move {
        let place = root.join("validated").join(&instance.id);
        let problem = evaluation::find_instance_problem(bench, place.clone(), &instance, shutdown).await;
        // The folder is temporary, so a failed removal is harmless.
        let _ = tokio::fs::remove_dir_all(place).await;
        if shutdown.is_cancelled() {
            // Validation was interrupted, so the instance is neither valid nor invalid. Nothing is played
            // afterwards.
            return (instance, None);
        }
        match &problem {
            None => print_error(&format!("valid      {}", instance.id)),
            Some(problem) => print_error(&format!("invalid    {}: {problem}", instance.id)),
        }
        (instance, problem)
    });
    let checked: Vec<_> = checked.map(Box::pin).buffered(jobs).collect().await;
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    for (instance, problem) in checked {
        match problem {
            None => valid.push(instance),
            Some(reason) => invalid.push(InvalidInstance {
                instance: instance.id.clone(),
                reason,
            }),
        }
    }
    (valid, invalid)
}

/// All runs in order: each instance once before any instance is repeated.
fn plan_runs(
    valid: &[Arc<EvalInstance>],
    runs: u32,
    identity: &EvalIdentity,
) -> Vec<(Arc<EvalInstance>, EvalRunKey)> {
    let each = |run: u32| {
        valid.iter().map(move |instance| {
            let key = EvalRunKey {
                instance: instance.id.clone(),
                task: shorten_digest(&instance.digest),
                run,
                release: identity.release.clone(),
                model: identity.model.clone(),
                settings: identity.settings.clone(),
            };
            (Arc::clone(instance), key)
        })
    };
    (1..=runs).flat_map(each).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the argument is a positive number of dollars, and the cast saturates"
)]
fn convert_to_micros(usd: f64) -> u64 {
    (usd * 1e6) as u64
}

fn print_summary(
    summary: &EvalSummary,
    records: &[EvalRunRecord],
    out: &Path,
    format: OutputFormat,
) -> anyhow::Result<()> {
    let mut value = serde_json::to_value(summary)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("results".to_owned(), serde_json::to_value(records)?);
    }
    let file: PathBuf = out.join("summary.json");
    std::fs::write(&file, format!("{value:#}\n"))
        .with_context(|| format!("cannot write {}", file.display()))?;
    match format {
        OutputFormat::Json | OutputFormat::Jsonl => print_json(&value),
        OutputFormat::Text => {
            evaluation::render_evaluation(summary, records)
                .lines()
                .for_each(print_result);
            print_result(&format!("{:<18} {}", "results", out.display()));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_digest_ignores_keys_and_includes_budgets() {
        for name in [
            "JOURNEYMAN__MODEL__API_KEY",
            "auth_token ",
            "aws_secret_access_key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["JOURNEYMAN__PLANNER__BUDGET_TOKENS", "max_output_tokens", "name"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn results_are_hidden_with_configured_paths() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let (file, dataset) = (root.join("team.toml"), root.join("set.jsonl"));
        let text = "[model]\napi_key = \"k\"\n[executor]\nhidden = [\"/srv/keys\"]\n";
        std::fs::write(&file, text).unwrap();
        std::fs::write(&dataset, "").unwrap();
        let settings = folder::load_folder_settings(&folder::InFolder {
            settings: Some(file.clone()),
            ..folder::InFolder::default()
        });
        let out = root.join("out");
        let settings = hide_paths(settings.unwrap(), &dataset, &[], &out, &root).unwrap();
        let hidden = settings
            .environment
            .iter()
            .filter(|(name, _)| name == "JOURNEYMAN__EXECUTOR__HIDDEN");
        let hidden: Vec<&str> = hidden.flat_map(|(_, paths)| paths.split(',')).collect();
        let named = [dataset, out, root, file].map(|path| path.display().to_string());
        for path in named.iter().map(String::as_str).chain(["/srv/keys"]) {
            assert!(hidden.contains(&path), "{path}: {hidden:?}");
        }
    }

    #[test]
    fn plan_plays_every_instance_before_repeats() {
        let folder = tempfile::tempdir().unwrap();
        let line = |id: &str| {
            serde_json::json!({
                "instance_id": id, "dir": folder.path(), "problem_statement": "x", "FAIL_TO_PASS": ["t"], "test_command": "make",
            })
        };
        let file = folder.path().join("set.jsonl");
        std::fs::write(&file, format!("{}\n{}\n", line("a"), line("b"))).unwrap();
        let instances: Vec<_> = evaluation::read_dataset(&file)
            .unwrap()
            .into_iter()
            .map(Arc::new)
            .collect();
        let identity = EvalIdentity {
            release: "1".to_owned(),
            model: "m".to_owned(),
            settings: "s".to_owned(),
        };
        let order: Vec<_> = plan_runs(&instances, 2, &identity)
            .into_iter()
            .map(|(_, key)| format!("{}{}", key.instance, key.run))
            .collect();
        assert_eq!(order, ["a1", "b1", "a2", "b2"]);
        assert_eq!(convert_to_micros(2.5), 2_500_000);
    }
}
