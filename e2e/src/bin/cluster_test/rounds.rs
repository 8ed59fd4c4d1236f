//! Rounds of tickets, and what happens to the cluster during each.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context;
use tokio::time::{Instant, sleep};

use crate::{
    autoscale::Autoscaled,
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
    /// The autoscaler scales the executors; takes the component `keda`, and is not among all
    Autoscale,
}

impl Event {
    /// All that every cluster can, in the order in which they are played.
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
            Self::Autoscale => "the autoscaler follows",
        }
    }
}

/// Plays one round; what is wrong is in its row.
///
/// # Errors
/// When the cluster or the stand-ins do not answer.
pub(crate) async fn play(event: Event, order: &Order) -> anyhow::Result<Row> {
    match event {
        Event::Contained => contained().await,
        Event::Autoscale => autoscale(order).await,
        Event::Nothing | Event::Scale | Event::Restart | Event::Drain | Event::Kill => {
            during(event, order).await
        }
    }
}

async fn during(event: Event, order: &Order) -> anyhow::Result<Row> {
    kubectl::ready().await?;
    begin(order).await?;
    let happening = async {
        sleep(UNDER_WAY).await;
        let start = Instant::now();
        let note = happen(event).await?;
        anyhow::Ok((note, start.elapsed()))
    };
    let (happened, round) = tokio::join!(happening, end());
    if event == Event::Scale {
        inside(CHANGE, &["scale", "deployment/executor", "--replicas=2"]).await?;
    }
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
        anyhow::ensure!(
            start.elapsed() < play::LIMIT + AFTER_ALL,
            "the round does not end"
        );
    }
}

/// Does it; gives what there is to say about it.
async fn happen(event: Event) -> anyhow::Result<String> {
    match event {
        Event::Nothing | Event::Contained | Event::Autoscale => Ok(String::new()),
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

/// Drains a node and lets pods onto it again.
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
    let drained = inside(CHANGE, &arguments).await;
    // Whatever became of it, the node takes pods again: where nodes are few, NATS waits for one.
    kubectl(&["uncordon", &node]).await?;
    drained?;
    Ok(format!("with {}", pods.join(", ")))
}

/// The node with most to lose, and the services on it; never that of the stand-ins.
async fn node_to_drain() -> anyhow::Result<Option<(String, Vec<String>)>> {
    let stand_ins = kubectl::get(&["-n", OUTSIDE, "pod", POD]).await?;
    let pods = kubectl::get(&["-n", INSIDE, "pods"]).await?;
    let mut nodes = BTreeMap::<String, Vec<String>>::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let (node, label) = (
            &pod["spec"]["nodeName"],
            &pod["metadata"]["labels"]["app.kubernetes.io/name"],
        );
        if let (Some(node), Some(service)) = (node.as_str(), label.as_str()) {
            nodes.entry(node.to_owned()).or_default().push(service.to_owned());
        }
    }
    nodes.retain(|node, services| {
        services.sort();
        stand_ins["spec"]["nodeName"] != node.as_str()
    });
    let has = |services: &[String], name: &str| services.iter().any(|service| service == name);
    Ok(nodes
        .into_iter()
        .max_by_key(|(_, there)| (has(there, "nats"), has(there, "executor"), there.len())))
}

async fn kill() -> anyhow::Result<String> {
    inside(
        CHANGE,
        &["delete", "pod", "nats-1", "--force", "--grace-period=0"],
    )
    .await?;
    kubectl::ready().await?;
    Ok(String::new())
}

/// Tickets that find as few executors as may be; there are as few again in the end.
async fn autoscale(order: &Order) -> anyhow::Result<Row> {
    let mut scaled = Autoscaled::at_rest().await?;
    begin(order).await?;
    let round = tokio::select! {
        round = end() => round?,
        Err(error) = scaled.watch() => return Err(error),
    };
    tell(&round);
    let took = scaled.rest().await?;
    Ok(Row {
        event: Event::Autoscale.name().to_owned(),
        note: scaled.note(),
        took: Some(took),
        round,
        is_good: scaled.is_good(),
    })
}

/// One ticket whose command tries every address.
async fn contained() -> anyhow::Result<Row> {
    kubectl::ready().await?;
    let targets = contained::targets().await?;
    let controls = contained::controls(&targets);
    let reached = raw(&control_path("reach"), Some(&serde_json::to_string(&controls)?)).await?;
    let reached: Vec<String> = serde_json::from_str(&reached).context("what a free pod reaches")?;
    anyhow::ensure!(
        reached == controls,
        "a pod without a policy reaches {reached:?}, not {controls:?}"
    );
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
    let reached = if reached.is_empty() {
        "nothing".to_owned()
    } else {
        reached.join(", ")
    };
    Ok(Row {
        event: Event::Contained.name().to_owned(),
        note: format!("{} tried, reached: {reached}", targets.len()),
        took: None,
        round,
        is_good: verdict.forbidden.is_empty(),
    })
}
