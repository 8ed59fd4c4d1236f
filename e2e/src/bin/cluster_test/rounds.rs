//! Rounds of tickets, and what happens to the cluster during each.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    contained::{self, control_path},
    kubectl::{self, WORKLOADS, inside, kubectl, raw},
    names::{INSIDE, OUTSIDE, Order, POD, Round},
    play, say,
    table::Row,
};

/// Between two questions to the stand-ins.
const TICK: Duration = Duration::from_secs(2);
/// How far tickets are when something happens: some work, the others wait.
const UNDER_WAY: Duration = Duration::from_secs(10);
/// Between two numbers of executors.
const SCALED: Duration = Duration::from_secs(15);
/// What one change to the cluster may take.
const CHANGE: Duration = Duration::from_secs(300);
/// Executors in the base, and from one number to the next.
const EXECUTORS: [&str; 3] = ["4", "1", "3"];
/// The command that answers what it reaches takes this long at most, with a ticket around it.
const AFTER_ALL: Duration = Duration::from_secs(60);

/// What happens while tickets are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Event {
    /// Nothing
    Nothing,
    /// Executors are scaled up, down and up
    Scale,
    /// Every workload is restarted at once
    Restart,
    /// A node is drained
    Drain,
    /// A NATS server is killed
    Kill,
    /// A command of a ticket tries to reach everything
    Contained,
}

impl Event {
    /// All, in the order in which they are played.
    pub(crate) const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Scale,
        Self::Restart,
        Self::Drain,
        Self::Kill,
        Self::Contained,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Scale => "executors 2 → 4 → 1 → 3",
            Self::Restart => "rollout restart of all seven workloads at once",
            Self::Drain => "drain of a node",
            Self::Kill => "a NATS server killed",
            Self::Contained => "a command tries every address",
        }
    }
}

/// Plays one round; what is wrong is in its row.
///
/// # Errors
/// When the cluster or the stand-ins do not answer.
pub(crate) async fn play(event: Event, order: &Order) -> anyhow::Result<Row> {
    if event == Event::Contained {
        return contained().await;
    }
    kubectl::ready().await?;
    begin(order).await?;
    let happening = async {
        sleep(UNDER_WAY).await;
        let start = Instant::now();
        let note = happen(event).await;
        // Whatever became of it, what a round changed does not stay.
        settle(event).await?;
        anyhow::Ok((note?, start.elapsed()))
    };
    let (happened, round) = tokio::join!(happening, end());
    let (note, took) = happened?;
    let round = round?;
    tell(&round);
    Ok(Row {
        event: event.name().to_owned(),
        note,
        took: (event != Event::Nothing).then_some(took),
        round,
        is_good: true,
    })
}

fn tell(round: &Round) {
    for problem in round.lost.iter().chain(&round.doubled) {
        say(&format!("problem: {problem}"));
    }
}

async fn begin(order: &Order) -> anyhow::Result<()> {
    let body = serde_json::to_string(order)?;
    raw(&control_path("round"), Some(&body)).await.map(drop)
}

/// How far the round is, until it is over.
async fn end() -> anyhow::Result<Round> {
    let start = Instant::now();
    let mut failures = 0;
    loop {
        sleep(TICK).await;
        // The way to the pod leads over nodes that something happens to.
        match raw(&control_path("round"), None).await {
            Ok(text) => {
                failures = 0;
                let round: Round = serde_json::from_str(&text).context("the round")?;
                if round.is_over {
                    return Ok(round);
                }
            }
            Err(error) if failures >= 10 => return Err(error),
            Err(_) => failures += 1,
        }
        anyhow::ensure!(start.elapsed() < play::LIMIT + AFTER_ALL, "the round does not end");
    }
}

/// Does it; gives what there is to say about it.
async fn happen(event: Event) -> anyhow::Result<String> {
    match event {
        Event::Nothing | Event::Contained => Ok(String::new()),
        Event::Scale => scale().await,
        Event::Restart => restart().await,
        Event::Drain => drain().await,
        Event::Kill => kill().await,
    }
}

async fn scale() -> anyhow::Result<String> {
    for count in EXECUTORS {
        let replicas = format!("--replicas={count}");
        inside(CHANGE, &["scale", "deployment/executor", &replicas]).await?;
        sleep(SCALED).await;
    }
    Ok(String::new())
}

async fn restart() -> anyhow::Result<String> {
    inside(CHANGE, &[&["rollout", "restart"][..], &WORKLOADS].concat()).await?;
    kubectl::ready().await?;
    Ok(String::new())
}

/// Drains the node of the last NATS server, unless the stand-ins are there too.
async fn drain() -> anyhow::Result<String> {
    let Some((node, pods)) = node_to_drain().await? else {
        return Ok("skipped: there is one node".to_owned());
    };
    let arguments = [
        "drain",
        &node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--pod-selector=app.kubernetes.io/instance=cluster-test",
        "--timeout=240s",
    ];
    inside(CHANGE, &arguments).await?;
    Ok(format!("with {}", pods.join(", ")))
}

async fn node_to_drain() -> anyhow::Result<Option<(String, Vec<String>)>> {
    let stand_ins = kubectl::get(&["-n", OUTSIDE, "pod", POD]).await?;
    let kept = stand_ins["spec"]["nodeName"].clone();
    let pods = kubectl::get(&["-n", INSIDE, "pods"]).await?;
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let movable = pods.iter().filter(|pod| pod["spec"]["nodeName"] != kept);
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    // NATS sorts behind nearly everything else.
    let chosen = movable.max_by_key(|pod| (name(pod).starts_with("nats-"), name(pod)));
    let Some(node) = chosen.and_then(|pod| pod["spec"]["nodeName"].as_str()) else {
        return Ok(None);
    };
    let there = pods.iter().filter(|pod| pod["spec"]["nodeName"] == node);
    let service = |pod: &Value| pod["metadata"]["labels"]["app.kubernetes.io/name"].as_str().map(str::to_owned);
    let mut names: Vec<String> = there.filter_map(service).collect();
    names.sort();
    Ok(Some((node.to_owned(), names)))
}

async fn kill() -> anyhow::Result<String> {
    inside(CHANGE, &["delete", "pod", "nats-1", "--force", "--grace-period=0"]).await?;
    kubectl::ready().await?;
    Ok(String::new())
}

/// The cluster as the next round expects it.
async fn settle(event: Event) -> anyhow::Result<()> {
    match event {
        Event::Scale => inside(CHANGE, &["scale", "deployment/executor", "--replicas=2"])
            .await
            .map(drop),
        Event::Drain => uncordon().await,
        _ => Ok(()),
    }
}

/// Lets pods onto every node that a drain of ours closed.
async fn uncordon() -> anyhow::Result<()> {
    let nodes = kubectl::get(&["nodes"]).await?;
    for node in nodes["items"].as_array().into_iter().flatten() {
        if let Some(name) = node["metadata"]["name"].as_str().filter(|_| node["spec"]["unschedulable"] == true) {
            kubectl(&["uncordon", name]).await?;
        }
    }
    Ok(())
}

/// One ticket whose command tries every address.
async fn contained() -> anyhow::Result<Row> {
    kubectl::ready().await?;
    let targets = contained::targets().await?;
    let controls = contained::controls(&targets);
    let reached = raw(&control_path("reach"), Some(&serde_json::to_string(&controls)?)).await?;
    let reached: Vec<String> = serde_json::from_str(&reached).context("what a free pod reaches")?;
    anyhow::ensure!(reached == controls, "a pod without a policy reaches {reached:?}, not {controls:?}");
    let order = Order {
        tickets: 1,
        command: contained::command(&targets),
    };
    begin(&order).await?;
    let round = end().await?;
    tell(&round);
    let output = round.outputs.last().context("the command said nothing")?;
    let verdict = contained::verdict(&targets, output)?;
    for forbidden in &verdict.forbidden {
        say(&format!("problem: commands reach {forbidden}"));
    }
    let reached: Vec<_> = verdict.reached.into_iter().collect();
    Ok(Row {
        event: Event::Contained.name().to_owned(),
        note: format!("{} tried; reached: {}", targets.len(), reached.join(", ")),
        took: None,
        round,
        is_good: verdict.forbidden.is_empty(),
    })
}
