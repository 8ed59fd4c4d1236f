//! Plays one instance as a ticket, with the services and phases of `journeyman try`.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use anyhow::Context;
use api::Client;
use domain::{
    Fact, JournalEntry, ModelSpend, OutboundReceipt, PhaseOutput, RunId, StopReason, WaitCondition,
    check::EvidenceLevel,
};
use evaluation::EvalInstance;
use futures::{Stream, TryStreamExt};
use git::FolderRepository;
use tokio_util::sync::CancellationToken;

use super::super::folder::{FolderEnvironment, FolderRunSettings, FolderSetup, parse_ticket_text};
use crate::{local::LocalServices, timeline};

// Time limit for a stopped run to end.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Folders and settings of one run.
pub(super) struct PlaySetup<'a> {
    /// Temporary folder of the run, which contains the repository.
    pub(super) work: &'a Path,
    /// Folder for its journal.
    pub(super) kept: &'a Path,
    /// Settings of the services.
    pub(super) settings: &'a FolderRunSettings,
    /// Rules without `repo`.
    pub(super) rules: Option<&'a Path>,
}

/// Result of a run.
#[derive(Debug, Default)]
pub(super) struct PlayedRun {
    /// Stop reason; absent after an interruption.
    pub(super) reason: Option<StopReason>,
    /// True when the run was stopped because it asked a person.
    pub(super) asked: bool,
    /// Branch with its change.
    pub(super) branch: Option<String>,
    /// Level of its evidence.
    pub(super) evidence: Option<EvidenceLevel>,
    pub(super) spend: ModelSpend,
    pub(super) turns: u32,
    pub(super) duration_ms: u64,
    pub(super) journal: Vec<JournalEntry>,
}

/// Folder of the repository in the run's folder.
pub(super) fn locate_repository(work: &Path) -> PathBuf {
    work.join("repository")
}

/// Starts the services on the repository, dispatches the problem and follows the run to its end. `shutdown` stops it.
///
/// # Errors
/// When the services fail to start, or the journal cannot be followed or stored.
pub(super) async fn play_instance(
    instance: &EvalInstance,
    place: &PlaySetup<'_>,
    shutdown: &CancellationToken,
) -> anyhow::Result<PlayedRun> {
    let ticket = parse_ticket_text(&instance.problem_statement)?;
    let environment = build_folder_environment(instance, place)?;
    let Some(local) = shutdown
        .run_until_cancelled(Box::pin(LocalServices::start(environment.plan())))
        .await
    else {
        return Ok(PlayedRun::default());
    };
    let local = local?;
    let worked = async {
        let client = Client::new(&local.url, local.token.clone())?;
        let run: RunId = client
            .jobs()
            .dispatch_text(environment.ticket(), &ticket)
            .await?
            .run
            .parse()?;
        let mut recorder = RunRecorder::new(client, run, place.kept)?;
        recorder.record_run(shutdown).await?;
        Ok(recorder.outcome)
    };
    let played: anyhow::Result<PlayedRun> = Box::pin(worked).await;
    // The services stop after an error, too, because the next run starts its own.
    let stopped = local.stop().await;
    // The error of the run comes first: the services' error is often its consequence.
    let played = played?;
    stopped?;
    Ok(played)
}

fn build_folder_environment(
    instance: &EvalInstance,
    place: &PlaySetup<'_>,
) -> anyhow::Result<FolderEnvironment> {
    let folder = FolderRepository::open(&locate_repository(place.work))?;
    // The state is in the folder of the run, so that it is removed together with the run.
    let state = place.work.join("state");
    let setup = FolderSetup {
        commands: instance.setup.clone(),
        ..FolderSetup::default()
    };
    FolderEnvironment::new(&folder, Some(&state), place.settings, place.rules, &setup, true)
}

/// Follows a run, and stores its journal and its timeline.
struct RunRecorder {
    client: Client,
    run: RunId,
    journal: File,
    timeline: File,
    outcome: PlayedRun,
}

impl RunRecorder {
    fn new(client: Client, run: RunId, kept: &Path) -> anyhow::Result<Self> {
        let create = |name: &str| {
            let path = kept.join(name);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        Ok(Self {
            client,
            run,
            journal: create("journal.jsonl")?,
            timeline: create("timeline.txt")?,
            outcome: PlayedRun::default(),
        })
    }

    /// Records the run up to its end. `shutdown` stops it.
    async fn record_run(&mut self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        let mut events = pin!(self.client.runs().follow(&self.run).await?);
        let followed = shutdown
            .run_until_cancelled(Box::pin(self.follow(&mut events)))
            .await;
        if let Some(followed) = followed {
            return followed;
        }
        self.client.runs().stop(&self.run).await?;
        // An interrupted run has no result, whether it ended in time or not.
        let _ = tokio::time::timeout(STOP_LIMIT, Box::pin(self.follow(&mut events))).await;
        self.outcome.reason = None;
        Ok(())
    }

    async fn follow(
        &mut self,
        events: &mut (impl Stream<Item = Result<JournalEntry, api::Error>> + Unpin),
    ) -> anyhow::Result<()> {
        while let Some(entry) = events.try_next().await? {
            // The entry is stored first, so that the journal on disk contains the entry that caused an
            // error.
            self.store_entry(&entry)?;
            if let Fact::Parked {
                waits_for: WaitCondition::Decision | WaitCondition::Answer,
            } = entry.fact
            {
                // No person answers in an evaluation, so the run ends here.
                self.outcome.asked = true;
                self.client.runs().stop(&self.run).await?;
            }
            self.outcome.add_entry(entry);
            if self.outcome.reason.is_some() {
                return Ok(());
            }
        }
        anyhow::bail!("the live journal ended before the run did")
    }

    fn store_entry(&mut self, entry: &JournalEntry) -> anyhow::Result<()> {
        let start = self.outcome.journal.first().map_or(entry.at, |first| first.at);
        writeln!(self.journal, "{}", serde_json::to_string(entry)?).context("cannot write the journal")?;
        if let Some(line) = timeline::render_entry_line(entry, start) {
            writeln!(self.timeline, "{line}").context("cannot write the timeline")?;
        }
        Ok(())
    }
}

impl PlayedRun {
    fn add_entry(&mut self, entry: JournalEntry) {
        if let Some(charge) = entry.fact.charge() {
            self.spend.add(charge.reply);
            self.turns += u32::from(matches!(entry.fact, Fact::ModelReplied { .. }));
        } else if let Fact::PhaseFinished {
            output: PhaseOutput::Prove { proof },
        } = &entry.fact
        {
            self.evidence = Some(proof.level);
        } else if let Some(OutboundReceipt::Pushed { branch, .. }) = entry.fact.receipt() {
            self.branch = Some(branch.clone());
        } else if let Fact::RunFinished { reason } = &entry.fact {
            self.reason = Some(reason.clone());
        }
        self.journal.push(entry);
        if let (Some(first), Some(last)) = (self.journal.first(), self.journal.last()) {
            let elapsed = last.at.unix_ms() - first.at.unix_ms();
            self.duration_ms = u64::try_from(elapsed).unwrap_or_default();
        }
    }
}
