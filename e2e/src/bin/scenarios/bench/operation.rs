//! Cost of operation: time from start to readiness, and scrapes of `/metrics`.

use anyhow::{Context as _, ensure};
use e2e::{Mode, Options, World, binary};
use tokio::{process::Command, time::Instant};

use crate::bench::{
    measure::{Samples, figure, ms},
    processes::Services,
};

const SERVICES: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];
const STARTS: usize = 5;
const SCRAPES: usize = 500;

/// Prints the figures of starts and scrapes.
pub(crate) async fn all() -> anyhow::Result<()> {
    let mut world = Box::pin(World::start(Options {
        mode: Mode::Processes,
        ..Options::default()
    }))
    .await?;
    starts(&mut world).await?;
    // The run uses every instrument once, so that the scrape contains all series.
    let key = world.ask()?;
    let run = world.run(&key, 0).await?;
    world.finished(&run).await?;
    let services = Services::of(&mut world)?;
    for service in ["ingest", "planner", "reporter"] {
        scrapes(&world, &services, service).await?;
    }
    world.stop().await
}

/// Drains and restarts each service five times. The floor is the time of `--version`.
async fn starts(world: &mut World) -> anyhow::Result<()> {
    for service in SERVICES {
        let (mut ready, mut floor) = (Samples::default(), Samples::default());
        for _ in 0..STARTS {
            let processes = world.processes().context("the services are no processes")?;
            processes.drain(service).await?;
            let start = Instant::now();
            processes.restart(service).await?;
            ready.add(start.elapsed());
            let start = Instant::now();
            let said = Command::new(binary(service)?).arg("--version").output().await?;
            ensure!(said.status.success(), "{service} --version failed");
            floor.add(start.elapsed());
        }
        figure(&format!("start_to_ready_{service}_p50"), ms(ready.median()), "ms");
        figure(&format!("floor_start_{service}_p50"), ms(floor.median()), "ms");
    }
    Ok(())
}

/// Scrapes over one connection. The floor is the smallest answer, `/healthz`.
async fn scrapes(world: &World, services: &Services, service: &str) -> anyhow::Result<()> {
    let listen = world.setting(&format!("{}__LISTEN", service.to_uppercase()));
    let base = format!("http://{}", listen.context("no address")?);
    let client = reqwest::Client::builder().no_proxy().build()?;
    let get = async |path: &str| -> anyhow::Result<usize> {
        let answer = client
            .get(format!("{base}{path}"))
            .send()
            .await?
            .error_for_status()?;
        Ok(answer.bytes().await?.len())
    };
    let bytes = get("/metrics").await?;
    let before = services.cpu_of(service)?;
    let times = Samples::sequential(SCRAPES, |_| async { get("/metrics").await.map(drop) }).await?;
    let cpu = services.cpu_of(service)? - before;
    times.print(&format!("metrics_scrape_{service}"));
    figure(
        &format!("metrics_scrape_{service}_cpu"),
        cpu * 1000.0 / SCRAPES as f64,
        "ms",
    );
    figure(
        &format!("metrics_scrape_{service}_size"),
        bytes as f64 / 1024.0,
        "KiB",
    );
    let floor = Samples::sequential(SCRAPES, |_| async { get("/healthz").await.map(drop) }).await?;
    floor.print(&format!("floor_healthz_{service}"));
    Ok(())
}
