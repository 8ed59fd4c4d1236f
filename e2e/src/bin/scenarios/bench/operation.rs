//! Cost of operation: time from start to readiness, and scrapes of `/metrics`.

use anyhow::{Context as _, ensure};
use e2e::{Options, ServiceMode, TestWorld, find_binary};
use tokio::{process::Command, time::Instant};

use crate::bench::{
    measure::{DurationSamples, convert_to_milliseconds, print_figure},
    processes::ServiceProcesses,
};

const SERVICES: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];
const STARTS: usize = 5;
const SCRAPES: usize = 500;

/// Prints the figures of starts and scrapes.
pub(crate) async fn measure_operation() -> anyhow::Result<()> {
    let mut world = Box::pin(TestWorld::start(Options {
        mode: ServiceMode::Processes,
        ..Options::default()
    }))
    .await?;
    measure_starts(&mut world).await?;
    // The run uses every instrument once, so that the scrape contains all series.
    let key = world.ask()?;
    let run = world.run(&key, 0).await?;
    world.finished(&run).await?;
    let services = ServiceProcesses::of(&mut world)?;
    for service in ["ingest", "planner", "reporter"] {
        measure_scrapes(&world, &services, service).await?;
    }
    world.stop().await
}

/// Drains and restarts each service five times. The floor is the time of `--version`.
async fn measure_starts(world: &mut TestWorld) -> anyhow::Result<()> {
    for service in SERVICES {
        let (mut ready, mut floor) = (DurationSamples::default(), DurationSamples::default());
        for _ in 0..STARTS {
            let processes = world
                .processes()
                .context("the services are not separate processes")?;
            processes.drain(service).await?;
            let start = Instant::now();
            processes.restart(service).await?;
            ready.add(start.elapsed());
            let start = Instant::now();
            let said = Command::new(find_binary(service)?)
                .arg("--version")
                .output()
                .await?;
            ensure!(said.status.success(), "{service} --version failed");
            floor.add(start.elapsed());
        }
        print_figure(
            &format!("start_to_ready_{service}_p50"),
            convert_to_milliseconds(ready.median()),
            "ms",
        );
        print_figure(
            &format!("floor_start_{service}_p50"),
            convert_to_milliseconds(floor.median()),
            "ms",
        );
    }
    Ok(())
}

/// Scrapes over one connection. The floor is the smallest answer, `/healthz`.
async fn measure_scrapes(
    world: &TestWorld,
    services: &ServiceProcesses,
    service: &str,
) -> anyhow::Result<()> {
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
    let times = DurationSamples::sequential(SCRAPES, |_| async { get("/metrics").await.map(drop) }).await?;
    let cpu = services.cpu_of(service)? - before;
    times.print(&format!("metrics_scrape_{service}"));
    print_figure(
        &format!("metrics_scrape_{service}_cpu"),
        cpu * 1000.0 / SCRAPES as f64,
        "ms",
    );
    print_figure(
        &format!("metrics_scrape_{service}_size"),
        bytes as f64 / 1024.0,
        "KiB",
    );
    let floor = DurationSamples::sequential(SCRAPES, |_| async { get("/healthz").await.map(drop) }).await?;
    floor.print(&format!("floor_healthz_{service}"));
    Ok(())
}
