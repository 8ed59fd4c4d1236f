//! Background loops of ingest: per process, and once per cluster.

use std::{sync::Arc, time::Duration};

use bootstrap::service;
use queue::Queue;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    Settings,
    health::deliveries::handle_delivery,
    maintenance::{census::RunCensus, projector::RunProjector, sweeper::WakeupSweeper},
    poll::poller::TrackerPoller,
    router::EventRouter,
};

// Time until another process takes over a loop whose process died.
const TAKEOVER: Duration = Duration::from_secs(15);

/// Parts of ingest that run in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngestMode {
    /// Everything: webhooks, polls and the API.
    #[default]
    Whole,
    /// The API and the wake-up of planners; no webhooks and no polls.
    OnRequest,
    /// The API alone. It reads and starts no work.
    Answers,
}

/// Starts the loops of the given extent. They end at shutdown.
pub(crate) fn spawn_loops(
    extent: IngestMode,
    settings: &Settings,
    router: &EventRouter,
    shutdown: &CancellationToken,
    tasks: &mut JoinSet<anyhow::Result<()>>,
) {
    match extent {
        IngestMode::Answers => return,
        // No loop may find work in this mode: only the requests of one command start a run.
        IngestMode::OnRequest => {}
        IngestMode::Whole => spawn_inbound_loops(settings, router, shutdown, tasks),
    }
    // Any number of processes may run the waker, so it needs no singleton.
    let (triggers, stop) = (router.queue.triggers(), shutdown.clone());
    tasks.spawn(restart_after_errors("waker", shutdown.clone(), move || {
        let (triggers, stop) = (triggers.clone(), stop.clone());
        async move { triggers.run_waker(stop).await }
    }));
}

fn spawn_inbound_loops(
    settings: &Settings,
    router: &EventRouter,
    shutdown: &CancellationToken,
    tasks: &mut JoinSet<anyhow::Result<()>>,
) {
    let (rules, stop) = (Arc::clone(&router.rules), shutdown.clone());
    tasks.spawn(async move {
        rules.run(stop).await;
        Ok(())
    });
    spawn_singletons(settings, router, shutdown, tasks);
    let (own, outside) = (Arc::clone(&router.own_accounts), Arc::clone(&router.outside));
    let stop = shutdown.clone();
    tasks.spawn(async move {
        own.learn(&outside, stop).await;
        Ok(())
    });
    let (slots, routed, stop) = (settings.router_slots, router.clone(), shutdown.clone());
    tasks.spawn(restart_after_errors("router", shutdown.clone(), move || {
        let (deliveries, routed, stop) = (routed.queue.deliveries(), routed.clone(), stop.clone());
        async move {
            let handler = move |delivery| {
                let routed = routed.clone();
                async move { Box::pin(handle_delivery(&routed, delivery)).await }
            };
            deliveries.consume(slots, stop, handler).await
        }
    }));
}

/// Starts the loops over all tickets. One process of the cluster runs each of them, so that their cost does not grow
/// with the replicas.
fn spawn_singletons(
    settings: &Settings,
    router: &EventRouter,
    shutdown: &CancellationToken,
    tasks: &mut JoinSet<anyhow::Result<()>>,
) {
    let (queue, stop) = (&router.queue, shutdown);
    let (routed, stopped) = (router.clone(), stop.clone());
    let interval = Duration::from_secs(settings.poll_interval_s);
    let settle = Duration::from_secs(settings.checks_absent_s);
    let pending = Duration::from_secs(settings.checks_pending_s);
    tasks.spawn(run_once_in_cluster(queue, "poller", stop, move || {
        Box::pin(TrackerPoller::new(routed.clone(), interval, (settle, pending)).run(stopped.clone()))
    }));
    let (swept, stopped) = (queue.clone(), stop.clone());
    let interval = Duration::from_secs(settings.sweep_interval_s);
    tasks.spawn(run_once_in_cluster(queue, "sweeper", stop, move || {
        Box::pin(WakeupSweeper::new(swept.clone(), interval).run(stopped.clone()))
    }));
    let (projected, stopped) = (queue.clone(), stop.clone());
    tasks.spawn(run_once_in_cluster(queue, "projector", stop, move || {
        Box::pin(RunProjector::new(projected.clone()).run(stopped.clone()))
    }));
    let (counted, rules, stopped) = (queue.clone(), Arc::clone(&router.rules), stop.clone());
    tasks.spawn(run_once_in_cluster(queue, "census", stop, move || {
        Box::pin(RunCensus::new(counted.clone(), Arc::clone(&rules)).run(stopped.clone()))
    }));
}

fn run_once_in_cluster<F>(
    queue: &Queue,
    name: &'static str,
    shutdown: &CancellationToken,
    work: F,
) -> impl Future<Output = anyhow::Result<()>> + Send + 'static
where
    F: FnMut() -> futures::future::BoxFuture<'static, ()> + Send + 'static,
{
    let (singleton, shutdown) = (queue.singleton(name, TAKEOVER), shutdown.clone());
    async move {
        singleton.run(shutdown, work).await;
        Ok(())
    }
}

/// Runs a loop until shutdown, and restarts it after an error.
async fn restart_after_errors<F, Fut>(
    name: &'static str,
    shutdown: CancellationToken,
    run: F,
) -> anyhow::Result<()>
where
    F: Fn() -> Fut + Send,
    Fut: Future<Output = Result<(), queue::Error>> + Send,
{
    service::keep_running(name, &shutdown, |_| false, run).await
}
