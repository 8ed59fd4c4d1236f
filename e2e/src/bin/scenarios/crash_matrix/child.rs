//! Process of the services: its content, and its control by the matrix.

use std::{
    fs::File,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::Context;
use failpoint::FailpointPass;
use journeyman::local::{LocalServices, StartPlan};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::crash_matrix::arguments::FailpointMode;
use crate::output::print_line;

const STOP_LIMIT: Duration = Duration::from_secs(30);
const READY: &str = "ready";

/// Runs the services until standard input ends. The first input line holds the settings as JSON.
///
/// # Errors
/// When the services cannot start or do not drain.
pub(crate) async fn serve_services(data: &Path, watch: FailpointMode) -> anyhow::Result<ExitCode> {
    // Every case aborts a process; core dumps of all of them would fill the disk.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)?;
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).await?;
    let environment: Vec<(String, String)> = serde_json::from_str(&line)?;
    let telemetry = bootstrap::telemetry::Settings {
        // At this level ingest logs the reason for which an event causes no work.
        log_filter: "info,ingest=debug".to_owned(),
        ..bootstrap::telemetry::Settings::default()
    };
    let _logs = bootstrap::telemetry::install_logging("crash_matrix", &telemetry);
    if watch.record {
        failpoint::start_recording();
    }
    if let Some(point) = watch.arm {
        failpoint::arm_failpoint(point);
    }
    let plan = StartPlan {
        file: None,
        environment,
        data: data.to_owned(),
        free_ports: false,
        ..StartPlan::default()
    };
    let local = Box::pin(LocalServices::start(plan)).await?;
    print_line(READY);
    input.read_to_end(&mut Vec::new()).await?;
    local.stop().await?;
    for point in failpoint::list_recorded_passes() {
        print_line(&point.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Running process. Dropping it kills and reaps it.
pub(crate) struct ServicesProcess {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

/// Event of the process.
pub(crate) enum ServicesEvent {
    /// The services are ready.
    Ready,
    /// The process has exited.
    Ended(ExitStatus),
}

impl ServicesProcess {
    /// Starts this program as the services on a data folder. Its log goes to a file.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(crate) async fn start(
        data: &Path,
        log: &Path,
        environment: &[(String, String)],
        watch: &FailpointMode,
    ) -> anyhow::Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["crash-matrix", "services", "--data"]).arg(data);
        if watch.record {
            command.arg("--record");
        }
        if let Some(point) = &watch.arm {
            command.args(["--arm", &point.to_string()]);
        }
        let mut child = command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C reaches only the matrix, which then ends the services.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the services")?;
        let settings = format!("{}\n", serde_json::to_string(environment)?);
        let input = child.stdin.as_mut().context("stdin")?;
        input.write_all(settings.as_bytes()).await?;
        let output = BufReader::new(child.stdout.take().context("stdout")?).lines();
        Ok(Self { child, output })
    }

    /// Waits for the next event of the process. Cancel safe.
    ///
    /// # Errors
    /// When the process's output cannot be read.
    pub(crate) async fn next(&mut self) -> anyhow::Result<ServicesEvent> {
        while let Some(line) = self.output.next_line().await? {
            if line == READY {
                return Ok(ServicesEvent::Ready);
            }
        }
        Ok(ServicesEvent::Ended(self.child.wait().await?))
    }

    /// Drains the services and returns the recorded points.
    ///
    /// # Errors
    /// When the process does not end successfully in time.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Vec<FailpointPass>> {
        drop(self.child.stdin.take());
        let drained = async {
            let mut points = Vec::new();
            while let Some(line) = self.output.next_line().await? {
                points.extend(line.parse());
            }
            let status = self.child.wait().await?;
            anyhow::ensure!(status.success(), "the services ended with {status}");
            Ok(points)
        };
        tokio::time::timeout(STOP_LIMIT, drained)
            .await
            .context("the services did not drain")?
    }
}

/// True if a failpoint aborted the process.
pub(crate) fn was_aborted(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::ABORT.as_raw())
}
