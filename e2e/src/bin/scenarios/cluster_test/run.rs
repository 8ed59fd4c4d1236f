//! Whole test: from an empty cluster to the table, and back to an empty cluster.

use std::time::Duration;

use testkit::tls::TestAuthority;
use tokio::time::Instant;

use crate::cluster_test::{
    Arguments,
    events::ClusterEvent,
    kubectl::{self, run_kubectl},
    names::{OUTSIDE, POD, TicketOrder},
    overlay::ClusterOverlay,
    rounds,
    table::render_table,
};
use crate::output::print_line;

/// Plays the rounds. Returns true if nothing was lost, duplicated or reached without permission.
///
/// # Errors
/// When the cluster or the stand-ins fail.
pub(crate) async fn run_test(arguments: &Arguments) -> anyhow::Result<bool> {
    // Objects of an earlier call would count as those of this one.
    kubectl::remove_namespaces().await?;
    let played = Box::pin(play_rounds(arguments)).await;
    if !arguments.keep {
        kubectl::remove_namespaces().await?;
    }
    played
}

async fn play_rounds(arguments: &Arguments) -> anyhow::Result<bool> {
    let authority = TestAuthority::new()?;
    let overlay = ClusterOverlay::new(&authority)?;
    overlay.write(
        &arguments.kustomization,
        &arguments.stand_ins_image,
        &arguments.folder,
    )?;
    let ready = apply_manifests(arguments).await?;
    print_line(&format!("ready after {:.0} s", ready.as_secs_f64()));
    let order = TicketOrder {
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
        let played = Box::pin(rounds::play_round(*event, &order)).await;
        let Ok(row) = played.inspect_err(|error| print_line(&format!("{event:?}: {error:#}"))) else {
            // The finished rows are useful even if a later round fails.
            print_line(&render_table(&rows));
            return Ok(false);
        };
        print_line(&render_table(std::slice::from_ref(&row)));
        rows.push(row);
    }
    print_line(&format!("\n{}", render_table(&rows)));
    Ok(rows.iter().all(crate::cluster_test::table::RoundRow::is_good))
}

/// Applies all manifests and returns the time until readiness.
async fn apply_manifests(arguments: &Arguments) -> anyhow::Result<Duration> {
    let folder = arguments.folder.display().to_string();
    let start = Instant::now();
    // The namespaces come first, then the Secrets, because the pods wait for them.
    run_kubectl(&["apply", "-f", &format!("{folder}/namespaces.json")]).await?;
    run_kubectl(&["apply", "-f", &format!("{folder}/secrets.json")]).await?;
    run_kubectl(&["apply", "-k", &format!("{folder}/outside")]).await?;
    run_kubectl(&["apply", "-k", &format!("{folder}/inside")]).await?;
    let pod = format!("pod/{POD}");
    let condition = "--for=condition=Ready";
    run_kubectl(&["-n", OUTSIDE, "wait", condition, &pod, "--timeout=50s"]).await?;
    kubectl::wait_until_ready().await?;
    Ok(start.elapsed())
}
