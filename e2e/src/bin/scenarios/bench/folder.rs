//! Time until `journeyman try` works, including its own servers and services.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use servers::{NatsServer, RedisServer};
use testkit::{ScriptedModel, fixture, model::MODEL_API_KEY};
use tokio::{process::Command, time::Instant};

use crate::bench::{
    measure::{DurationSamples, convert_to_milliseconds, print_figure},
    tickets::write_shop_files,
    waiting::wait_for,
};

const STARTS: usize = 10;

/// Prints the time from the start of the command to the model's first call.
pub(crate) async fn first_call() -> anyhow::Result<()> {
    let model = ScriptedModel::start(vec![fixture::nothing_to_do()]).await?;
    let root = tempfile::tempdir()?;
    let folder = root.path().join("shop");
    create_shop_checkout(&folder).await?;
    let mut samples = DurationSamples::default();
    for number in 0..=STARTS {
        let took = time_first_call(&model, root.path(), &folder).await?;
        // The first start fills empty caches, so it is a separate figure.
        match number {
            0 => print_figure(
                "try_to_first_model_call_cold",
                convert_to_milliseconds(took),
                "ms",
            ),
            _ => samples.add(took),
        }
    }
    samples.print("try_to_first_model_call");
    model.stop().await;
    let servers = DurationSamples::sequential(STARTS, async |_| {
        let (nats, redis) = tokio::join!(NatsServer::start(), RedisServer::start());
        nats?.stop().await;
        redis?.stop().await;
        Ok(())
    });
    servers.await?.print("floor_start_and_stop_nats_redis");
    Ok(())
}

/// Creates a checkout of the fixture's repository.
pub(crate) async fn create_shop_checkout(folder: &Path) -> anyhow::Result<()> {
    write_shop_files(folder)?;
    let me = ["-c", "user.name=A", "-c", "user.email=a@b.example"];
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "--all"],
        &["commit", "-q", "-m", "The shop"],
    ] {
        let mut git = Command::new("git");
        let status = git.args(me).args(arguments).current_dir(folder).status().await?;
        ensure!(status.success(), "git {arguments:?}: {status}");
    }
    Ok(())
}

async fn time_first_call(model: &ScriptedModel, root: &Path, folder: &Path) -> anyhow::Result<Duration> {
    let before = model.total_count();
    let start = Instant::now();
    let mut command = Command::new(e2e::find_binary("journeyman")?)
        .args(["try", "Cart total ignores the quantity"])
        .env("ANTHROPIC_API_KEY", MODEL_API_KEY)
        .env("ANTHROPIC_BASE_URL", model.url())
        .env("XDG_STATE_HOME", root.join("state"))
        .env("JOURNEYMAN__MODEL__NAME", "claude-haiku-4-5")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    wait_for("the model's first call", model.answered(), || {
        model.total_count() > before
    })
    .await?;
    let first = model.arrival(before).context("no call")?;
    command.wait().await?;
    Ok(first.saturating_duration_since(start))
}
