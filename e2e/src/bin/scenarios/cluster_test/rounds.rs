//! Rounds of tickets, each with an event of the cluster.

use std::time::Duration;

use anyhow::Context;
use tokio::time::{Instant, sleep};

use crate::cluster_test::{
    autoscale::AutoscaleWatch,
    containment::{self, control_path},
    disturbances::{CHANGE, disturb_cluster},
    events::ClusterEvent,
    full_store::{self, SmallStore},
    kubectl::{self, call_api, run_inside},
    names::{TicketOrder, TicketRound},
    observation::RoundObservation,
    play,
    table::RoundRow,
};
use crate::output::print_line;

/// Interval between two reads of the round's progress.
const TICK: Duration = Duration::from_secs(2);
// Delay of the disturbance. By then some tickets are in progress and the others wait.
const UNDER_WAY: Duration = Duration::from_secs(10);
/// Additional time for the tickets' last steps, and for a command that tries every address.
const AFTER_ALL: Duration = Duration::from_secs(60);

/// Plays one round. Its problems are in the row.
///
/// # Errors
/// When the cluster or the stand-ins do not answer.
pub(crate) async fn play_round(event: ClusterEvent, order: &TicketOrder) -> anyhow::Result<RoundRow> {
    let row = match event {
        ClusterEvent::Contained => play_contained_round().await,
        ClusterEvent::Autoscale => play_autoscale_round(order).await,
        ClusterEvent::FullStore => full_store(order).await,
        ClusterEvent::Nothing
        | ClusterEvent::Scale
        | ClusterEvent::Restart
        | ClusterEvent::Drain
        | ClusterEvent::Kill
        | ClusterEvent::Webhooks
        | ClusterEvent::ForceDelete
        | ClusterEvent::Redis
        | ClusterEvent::Partition => play_disturbed_round(event, order).await,
    }?;
    for problem in row.exceeded(event.bounds()) {
        print_line(&format!("problem: {problem}"));
    }
    Ok(row)
}

async fn play_disturbed_round(event: ClusterEvent, order: &TicketOrder) -> anyhow::Result<RoundRow> {
    let order = TicketOrder {
        webhooks: event.webhooks(),
        ..order.clone()
    };
    let disturbance = async {
        sleep(UNDER_WAY).await;
        let start = Instant::now();
        let note = disturb_cluster(event).await?;
        anyhow::Ok((note, start.elapsed()))
    };
    let played = play_tickets(&order, disturbance).await;
    // The number returns to the base's value, even after a failed round.
    if event == ClusterEvent::Scale {
        run_inside(CHANGE, &["scale", "deployment/executor", "--replicas=2"]).await?;
    }
    let ((note, took), round, wake_ups) = played?;
    Ok(RoundRow {
        event,
        note,
        took: (event != ClusterEvent::Nothing).then_some(took),
        round,
        wake_ups,
        is_good: true,
    })
}

/// Plays tickets that fill a small store. They continue when storage is added, which happens at the end in
/// any case.
async fn full_store(order: &TicketOrder) -> anyhow::Result<RoundRow> {
    kubectl::wait_until_ready().await?;
    let store = SmallStore::set().await?;
    let order = TicketOrder {
        tickets: order.tickets.min(full_store::TICKETS),
        command: full_store::noisy_command(&order.command),
        webhooks: ClusterEvent::FullStore.webhooks(),
    };
    let filled = async {
        let filled = store.stay_full().await;
        let took = store.give_room().await;
        anyhow::Ok((filled?, took?))
    };
    let played = play_tickets(&order, filled).await;
    // A failed round must not leave a small store behind.
    if played.is_err() {
        store.give_room().await?;
    }
    let ((note, took), round, wake_ups) = played?;
    Ok(RoundRow {
        event: ClusterEvent::FullStore,
        note,
        took: Some(took),
        round,
        wake_ups,
        is_good: true,
    })
}

/// Plays the tickets during a disturbance. Returns the disturbance's result, the round, and the tickets whose
/// wake-up was repaired.
async fn play_tickets<T>(
    order: &TicketOrder,
    disturbance: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(T, TicketRound, Vec<String>)> {
    kubectl::wait_until_ready().await?;
    let observation = RoundObservation::start().await?;
    begin_round(order).await?;
    // The round ends even if the disturbance fails, so that the next one starts at rest.
    let (disturbed, round) = tokio::join!(disturbance, wait_for_round());
    let mut round = round?;
    let wake_ups = observation.end(&mut round).await;
    print_problems(&round);
    Ok((disturbed?, round, wake_ups?))
}

fn print_problems(round: &TicketRound) {
    for problem in round.lost.iter().chain(&round.doubled) {
        print_line(&format!("problem: {problem}"));
    }
}

async fn begin_round(order: &TicketOrder) -> anyhow::Result<()> {
    let body = serde_json::to_string(order)?;
    call_api(&control_path("round"), Some(&body)).await.map(drop)
}

/// Polls the round until it is over.
async fn wait_for_round() -> anyhow::Result<TicketRound> {
    let start = Instant::now();
    let mut failures = 0;
    loop {
        sleep(TICK).await;
        // The connection to the pod uses nodes that the disturbance may affect, so single failures are
        // ignored.
        match call_api(&control_path("round"), None).await {
            Ok(text) => {
                failures = 0;
                let round: TicketRound = serde_json::from_str(&text).context("the round")?;
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

/// Plays tickets from the minimum number of executors. The number returns to the minimum at the end.
async fn play_autoscale_round(order: &TicketOrder) -> anyhow::Result<RoundRow> {
    let mut scaled = AutoscaleWatch::at_rest().await?;
    let observation = RoundObservation::start().await?;
    begin_round(order).await?;
    let mut round = tokio::select! {
        round = wait_for_round() => round?,
        Err(error) = scaled.watch() => return Err(error),
    };
    let wake_ups = observation.end(&mut round).await?;
    print_problems(&round);
    let took = scaled.rest().await?;
    Ok(RoundRow {
        event: ClusterEvent::Autoscale,
        note: scaled.note(),
        took: Some(took),
        round,
        wake_ups,
        is_good: scaled.is_good(),
    })
}

/// Plays one ticket whose command tries every address.
async fn play_contained_round() -> anyhow::Result<RoundRow> {
    kubectl::wait_until_ready().await?;
    let targets = containment::list_targets().await?;
    let controls = containment::select_control_addresses(&targets);
    let reached = call_api(&control_path("reach"), Some(&serde_json::to_string(&controls)?)).await?;
    let reached: Vec<String> = serde_json::from_str(&reached).context("what a free pod reaches")?;
    anyhow::ensure!(
        reached == controls,
        "a pod without a policy reaches {reached:?}, not {controls:?}"
    );
    let order = TicketOrder {
        tickets: 1,
        command: containment::build_reach_command(&targets),
        webhooks: None,
    };
    let ((), round, wake_ups) = play_tickets(&order, async { Ok(()) }).await?;
    let output = round.outputs.last().context("the command said nothing")?;
    let verdict = containment::read_verdict(&targets, output)?;
    for forbidden in &verdict.forbidden {
        print_line(&format!("problem: commands reach {forbidden}"));
    }
    let reached: Vec<_> = verdict.reached.into_iter().collect();
    let reached = if reached.is_empty() {
        "nothing".to_owned()
    } else {
        reached.join(", ")
    };
    Ok(RoundRow {
        event: ClusterEvent::Contained,
        note: format!("{} tried, reached: {reached}", targets.len()),
        took: None,
        round,
        wake_ups,
        is_good: verdict.forbidden.is_empty(),
    })
}
