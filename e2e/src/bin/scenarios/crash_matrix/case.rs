//! One story with at most one crash.

use std::time::Duration;

use anyhow::Context;
use failpoint::FailpointPass;
use queue::Queue;
use testkit::fixture;

use crate::crash_matrix::{
    arguments::FailpointMode,
    child::{ServicesEvent, ServicesProcess, was_aborted},
    ending::{StoryEnding, is_at_rest},
    stage::{MatrixStage, MatrixStory, NatsServers},
};

/// Time limit of a story on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
const EVENT_WAIT: Duration = Duration::from_millis(25);
const LOG_LINES: usize = 120;

/// Result of a story.
pub(crate) struct PlayedStory {
    /// Final state of the story.
    pub(crate) ending: StoryEnding,
    /// Points that the story passed, if they were recorded.
    pub(crate) points: Vec<FailpointPass>,
    /// True if the process aborted at the point.
    pub(crate) has_crashed: bool,
    /// End of the services' log.
    pub(crate) log: String,
}

/// Plays the story and aborts the process at a point. Without a point it records all points.
///
/// # Errors
/// When the story does not end in time. The error contains the end of the services' log.
pub(crate) async fn play_story(
    story: MatrixStory,
    servers: NatsServers,
    crash_at: Option<&FailpointPass>,
) -> anyhow::Result<PlayedStory> {
    let mut stage = MatrixStage::start(story, servers).await?;
    let watch = FailpointMode {
        record: crash_at.is_none(),
        arm: crash_at.cloned(),
    };
    let ended = tokio::time::timeout(PATIENCE, Box::pin(to_the_end(&mut stage, &watch))).await;
    let log = log_tail(&stage);
    let (ending, points, has_crashed) = ended
        .with_context(|| format!("no end within {} s", PATIENCE.as_secs()))
        .and_then(|ended| ended)
        .with_context(|| describe_stage(&stage, &log))?;
    Ok(PlayedStory {
        ending,
        points,
        has_crashed,
        log,
    })
}

async fn to_the_end(
    stage: &mut MatrixStage,
    watch: &FailpointMode,
) -> anyhow::Result<(StoryEnding, Vec<FailpointPass>, bool)> {
    let mut has_crashed = false;
    let mut services = start_services(stage, watch).await?;
    let mut queue: Option<Queue> = None;
    loop {
        // `next` is cancel safe, so a timeout loses no event.
        let event = tokio::time::timeout(EVENT_WAIT, services.next()).await;
        match event.ok().transpose()? {
            // Only the armed process may abort, and only once.
            Some(ServicesEvent::Ended(status))
                if was_aborted(status) && watch.arm.is_some() && !has_crashed =>
            {
                has_crashed = true;
                services = start_services(stage, &FailpointMode::default()).await?;
            }
            Some(ServicesEvent::Ended(status)) => anyhow::bail!("the services ended with {status}"),
            Some(ServicesEvent::Ready) => {
                queue = Some(Queue::connect(&queue_settings(stage), "crash-matrix").await?);
            }
            None => {}
        }
        let Some(queue) = &queue else { continue };
        if stage.act().await? && is_at_rest(stage, queue).await? {
            let points = services.stop().await?;
            return Ok((StoryEnding::of(stage, queue).await?, points, has_crashed));
        }
    }
}

async fn start_services(stage: &MatrixStage, watch: &FailpointMode) -> anyhow::Result<ServicesProcess> {
    ServicesProcess::start(&stage.data(), &stage.log(), &stage.environment, watch).await
}

fn queue_settings(stage: &MatrixStage) -> queue::Settings {
    queue::Settings {
        url: stage.nats.url(),
        ..queue::Settings::default()
    }
}

fn log_tail(stage: &MatrixStage) -> String {
    let log = std::fs::read_to_string(stage.log()).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

fn describe_stage(stage: &MatrixStage, log: &str) -> String {
    let comments: Vec<_> = stage
        .jira
        .comments(&stage.key)
        .into_iter()
        .map(|comment| comment.text)
        .collect();
    let issues: Vec<_> = stage
        .github
        .issues(fixture::REPOSITORY)
        .into_iter()
        .map(|issue| (stage.said_on(issue.number), issue))
        .collect();
    let talk = stage.words_in_talk().unwrap_or_default();
    format!(
        "status {:?}, pull requests {:?}, comments {comments:#?}, issues {issues:#?}, discussion {talk:#?}, the end of the \
         log:\n{log}\n",
        stage.jira.status(&stage.key),
        stage.pull_requests(),
    )
}
