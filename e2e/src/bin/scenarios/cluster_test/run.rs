//! From an empty cluster to the table, and back.

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

/// Plays the rounds; true when nothing was lost, nothing done twice, and nothing reached that must not be.
///
/// # Errors
/// When the cluster or the stand-ins do not do what they are told.
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    // What an earlier call left would be taken for this one's.
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
            // The rows so far are worth seeing.
            say(&table(&rows));
            return Ok(false);
        };
        say(&table(std::slice::from_ref(&row)));
        rows.push(row);
    }
    say(&format!("\n{}", table(&rows)));
    Ok(rows.iter().all(crate::cluster_test::table::Row::is_good))
}

/// Applies everything; gives how long it took until all was ready.
async fn apply(arguments: &Arguments) -> anyhow::Result<Duration> {
    let folder = arguments.folder.display().to_string();
    let start = Instant::now();
    // Namespaces first, for the Secrets that the pods wait for.
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
