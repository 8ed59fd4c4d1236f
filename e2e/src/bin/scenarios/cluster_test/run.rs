//! Whole test: from an empty cluster to the table, and back to an empty cluster.

use std::time::Duration;

use testkit::tls::Authority;
use tokio::time::Instant;

use crate::cluster_test::{
    Arguments,
    events::ClusterEvent,
    kubectl::{self, kubectl},
    names::{OUTSIDE, Order, POD},
    overlay::Overlay,
    rounds, say,
    table::table,
};

/// Plays the rounds. Returns true if nothing was lost, duplicated or reached without permission.
///
/// # Errors
/// When the cluster or the stand-ins fail.
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    // Objects of an earlier call would count as those of this one.
    kubectl::clean().await?;
    let played = Box::pin(perform(arguments)).await;
    if !arguments.keep {
        kubectl::clean().await?;
    }
    played
}

async fn perform(arguments: &Arguments) -> anyhow::Result<bool> {
    let authority = Authority::new()?;
    let overlay = Overlay::new(&authority)?;
    overlay.write(
        &arguments.kustomization,
        &arguments.stand_ins_image,
        &arguments.folder,
    )?;
    let ready = apply(arguments).await?;
    say(&format!("ready after {:.0} s", ready.as_secs_f64()));
    let order = Order {
        tickets: arguments.tickets,
        command: arguments.command.clone(),
        webhooks: None,
    };
    let events = match arguments.rounds.as_slice() {
        [] => &ClusterEvent::ALL[..],
        some => some,
    };
    let mut rows = Vec::new();
    for event in events {
        let played = Box::pin(rounds::play(*event, &order)).await;
        let Ok(row) = played.inspect_err(|error| say(&format!("{event:?}: {error:#}"))) else {
            // The finished rows are useful even if a later round fails.
            say(&table(&rows));
            return Ok(false);
        };
        say(&table(std::slice::from_ref(&row)));
        rows.push(row);
    }
    say(&format!("\n{}", table(&rows)));
    Ok(rows.iter().all(crate::cluster_test::table::Row::is_good))
}

/// Applies all manifests and returns the time until readiness.
async fn apply(arguments: &Arguments) -> anyhow::Result<Duration> {
    let folder = arguments.folder.display().to_string();
    let start = Instant::now();
    // The namespaces come first, then the Secrets, because the pods wait for them.
    kubectl(&["apply", "-f", &format!("{folder}/namespaces.json")]).await?;
    kubectl(&["apply", "-f", &format!("{folder}/secrets.json")]).await?;
    kubectl(&["apply", "-k", &format!("{folder}/outside")]).await?;
    kubectl(&["apply", "-k", &format!("{folder}/inside")]).await?;
    let pod = format!("pod/{POD}");
    let condition = "--for=condition=Ready";
    kubectl(&["-n", OUTSIDE, "wait", condition, &pod, "--timeout=50s"]).await?;
    kubectl::ready().await?;
    Ok(start.elapsed())
}
