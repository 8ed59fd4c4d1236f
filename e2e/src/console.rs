//! Separate process of `journeyman console`.

use std::process::Stdio;

use anyhow::Context;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::processes::find_binary;

/// Running console. Dropping it kills the process.
pub struct ConsoleProcess {
    /// Base URL of the console.
    pub url: String,
    _process: Child,
}

impl ConsoleProcess {
    /// Starts the console on a free port as a client of this API.
    ///
    /// # Errors
    /// When the program is not built, or exits before it is ready.
    pub async fn start(api: &str) -> anyhow::Result<Self> {
        let mut process = Command::new(find_binary("journeyman")?)
            .args(["console", "--api", api, "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("journeyman cannot be started")?;
        let said = first_line(&mut process, "console at ").await?;
        let url = said.split([' ', ',']).nth(2).context("no address")?.to_owned();
        Ok(Self {
            url,
            _process: process,
        })
    }
}

/// Returns the first output line with this start. The remaining output is discarded, so that the process
/// never blocks on a full pipe.
///
/// # Errors
/// When the process prints no such line.
pub async fn first_line(process: &mut Child, start: &str) -> anyhow::Result<String> {
    let output = process.stdout.take().context("no output")?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with(start) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(line);
        }
    }
    anyhow::bail!("it ended before it said {start:?}")
}
