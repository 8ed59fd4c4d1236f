//! `journeyman watch`: works on whatever asks for it, found by polls, and prints what becomes of it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use domain::{Fact, RunId, Timestamp};
use futures::TryStreamExt;
use tokio_util::sync::CancellationToken;

use super::{alone::Alone, say, settings_file};
use crate::{
    api::{Access, Client, OfRun},
    args::Watch,
    timeline,
};

pub(super) async fn run(asked: Watch) -> anyhow::Result<ExitCode> {
    let (interval, data) = (asked.interval, asked.data.clone());
    let alone = Alone {
        rules: asked.rules,
        file: settings_file(asked.settings),
        data: asked.data,
        more: vec![(
            "JOURNEYMAN__INGEST__POLL_INTERVAL_S".to_owned(),
            interval.to_string(),
        )],
    };
    let watched = alone.run(async |client, shutdown| watch(&client, &data, interval, shutdown).await);
    watched.await
}

async fn watch(
    client: &Client,
    data: &Path,
    interval: u32,
    shutdown: CancellationToken,
) -> anyhow::Result<ExitCode> {
    // Before anything is said, so that nothing that happens afterwards is missed.
    let events = client.events().await?;
    let _access = Left::at(client, data)?;
    for repository in client.rules().await?.repositories {
        say(&format!("watching {} every {interval} s", repository.repository));
    }
    let mut events = std::pin::pin!(events);
    let mut starts: BTreeMap<RunId, Timestamp> = BTreeMap::new();
    while let Some(event) = shutdown.run_until_cancelled(events.try_next()).await {
        let Some(OfRun { run, entry }) = event? else {
            anyhow::bail!("the live journal ended");
        };
        let start = *starts.entry(run.clone()).or_insert(entry.at);
        if let Some(line) = timeline::line(&entry, start) {
            say(&format!("{run} {line}"));
        }
        if matches!(entry.fact, Fact::RunFinished { .. }) {
            starts.remove(&run);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that lets the other commands find this API, for as long as it is there.
struct Left(PathBuf);

impl Left {
    fn at(client: &Client, data: &Path) -> anyhow::Result<Self> {
        Access::of(client).save(data)?;
        Ok(Self(data.to_owned()))
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        Access::forget(&self.0);
    }
}
