//! Work that one process of a cluster does at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use queue::Queue;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::world::{World, await_soon, bound_running_time, build_server_settings};

const TTL: Duration = Duration::from_secs(2);

/// Counts the processes that work at the same time.
#[derive(Clone, Default)]
struct Gauge {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct AtWork(Gauge);

impl Gauge {
    fn enter(&self) -> AtWork {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        AtWork(self.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

/// Process that is ready to do the work, and reports when it begins.
async fn start_process(
    world: &World,
    name: &'static str,
    gauge: &Gauge,
    begins: &UnboundedSender<&'static str>,
) -> (JoinHandle<()>, CancellationToken) {
    let queue = Queue::connect(&build_server_settings(&world.server), name)
        .await
        .unwrap();
    let (gauge, begins, shutdown) = (gauge.clone(), begins.clone(), CancellationToken::new());
    let stop = shutdown.clone();
    let task = tokio::spawn(async move {
        let work = || {
            let (gauge, begins) = (gauge.clone(), begins.clone());
            async move {
                let _at_work = gauge.enter();
                begins.send(name).unwrap();
                std::future::pending::<()>().await;
            }
        };
        queue.singleton("test", TTL).run(stop, work).await;
    });
    (task, shutdown)
}

/// Measures for how long the machine stands still, by ticks that come late.
struct StallWatch {
    longest_ms: Arc<AtomicU64>,
    _ticking: AbortOnDropHandle<()>,
}

impl StallWatch {
    fn start() -> Self {
        const TICK: Duration = Duration::from_millis(20);
        let longest_ms = Arc::<AtomicU64>::default();
        let longest = Arc::clone(&longest_ms);
        let ticking = tokio::spawn(async move {
            loop {
                let began = Instant::now();
                sleep(TICK).await;
                let took = u64::try_from(began.elapsed().as_millis()).unwrap();
                longest.fetch_max(took, SeqCst);
            }
        });
        Self {
            longest_ms,
            _ticking: AbortOnDropHandle::new(ticking),
        }
    }

    /// True if the machine stood still for so long that a holder may have lost its work.
    fn has_stalled(&self) -> bool {
        Duration::from_millis(self.longest_ms.load(SeqCst)) >= TTL / 8
    }
}

/// Waits until no other process has begun for twice the time to live, and returns the holder. Only a machine that
/// stands still moves the work.
async fn await_steady_holder(
    begun: &mut UnboundedReceiver<&'static str>,
    stalls: &StallWatch,
    mut holder: &'static str,
) -> &'static str {
    while let Ok(next) = timeout(TTL * 2, begun.recv()).await {
        let next = next.unwrap();
        assert!(stalls.has_stalled(), "{next} begins while {holder} renews");
        holder = next;
    }
    holder
}

async fn receive_next_name(begun: &mut UnboundedReceiver<&'static str>) -> &'static str {
    await_soon(begun.recv()).await.unwrap()
}

#[tokio::test]
async fn killed_holder_is_replaced_within_ttl() {
    let world = World::new().await;
    let stalls = StallWatch::start();
    let (gauge, (begins, mut begun)) = (Gauge::default(), unbounded_channel());
    let (first, stop_first) = start_process(&world, "first", &gauge, &begins).await;
    assert_eq!(receive_next_name(&mut begun).await, "first");
    let (second, stop_second) = start_process(&world, "second", &gauge, &begins).await;
    // Much longer than one renewal lasts: the first process keeps the work.
    let holder = await_steady_holder(&mut begun, &stalls, "first").await;
    let (killed, other) = match holder {
        "first" => (first, "second"),
        _ => (second, "first"),
    };
    killed.abort();
    // The rest of the limit is for a loaded machine.
    let next = bound_running_time(TTL * 3, begun.recv()).await;
    assert_eq!(next, Some(Some(other)));
    assert_eq!(gauge.most.load(SeqCst), 1);
    stop_first.cancel();
    stop_second.cancel();
}

#[tokio::test]
async fn shutdown_lets_next_holder_begin_immediately() {
    let world = World::new().await;
    let (gauge, (begins, mut begun)) = (Gauge::default(), unbounded_channel());
    let (first, stop) = start_process(&world, "first", &gauge, &begins).await;
    assert_eq!(receive_next_name(&mut begun).await, "first");
    let (_second, _) = start_process(&world, "second", &gauge, &begins).await;
    stop.cancel();
    await_soon(first).await.unwrap();
    assert_eq!(gauge.now.load(SeqCst), 0);
    assert_eq!(receive_next_name(&mut begun).await, "second");
}

#[tokio::test]
async fn work_without_nats_stops_before_takeover() {
    let mut world = World::new().await;
    let stalls = StallWatch::start();
    let (gauge, (begins, mut begun)) = (Gauge::default(), unbounded_channel());
    let (_first, _) = start_process(&world, "first", &gauge, &begins).await;
    let (_second, _) = start_process(&world, "second", &gauge, &begins).await;
    receive_next_name(&mut begun).await;
    world.server.stop().await;
    let stopped = async {
        while gauge.now.load(SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    await_soon(stopped).await;
    world.server.restart().await.unwrap();
    let holder = receive_next_name(&mut begun).await;
    await_steady_holder(&mut begun, &stalls, holder).await;
    assert!(gauge.now.load(SeqCst) == 1 || stalls.has_stalled());
    assert_eq!(gauge.most.load(SeqCst), 1);
}

#[tokio::test]
async fn ended_work_is_started_again() {
    let world = World::new().await;
    let count = AtomicUsize::new(0);
    let stop = CancellationToken::new();
    let singleton = world.queue.singleton("short", Duration::from_millis(500));
    let run = singleton.run(stop.clone(), || async {
        if count.fetch_add(1, SeqCst) == 2 {
            stop.cancel();
        }
    });
    await_soon(run).await;
    assert_eq!(count.load(SeqCst), 3);
}
