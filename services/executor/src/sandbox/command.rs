//! One command under the launcher.

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    process::{Child, ChildStdin},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use super::{Sandbox, output::Output, policy::Policy};

/// How long the launcher has to kill a process tree.
const KILL_TIME: Duration = Duration::from_secs(2);

/// One command.
pub(crate) struct CommandSpec {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Where it starts.
    pub(crate) directory: PathBuf,
    /// Folders it may write.
    pub(crate) writable: Vec<PathBuf>,
    /// Folders inside hidden ones it may read.
    pub(crate) readable: Vec<PathBuf>,
    /// Folders that stay in place where a hidden one around them is covered.
    pub(crate) exposed: Vec<PathBuf>,
    /// Whether it shares the machine's network.
    pub(crate) network: bool,
    /// Its whole environment.
    pub(crate) environment: Vec<(&'static str, std::ffi::OsString)>,
    /// How long it may take.
    pub(crate) limit: Duration,
}

/// Why a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ended; its exit code, 128 + signal when a signal ended it.
    Exited(i32),
    /// It reached its time limit and was killed.
    TimedOut,
    /// Its caller went away; it was killed.
    Cancelled,
}

/// How a command went.
pub(crate) struct CommandEnd {
    /// Why it is over.
    pub(crate) ending: Ending,
    /// Standard output and error in the order written, head and tail.
    pub(crate) output: String,
}

impl Sandbox {
    /// Runs a command and everything it starts to its end. Chunks of output also go to `sink`, as far as it has room.
    /// When this future is dropped the tree is killed as well.
    pub(crate) async fn run(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
        sink: Option<&mpsc::Sender<Vec<u8>>>,
    ) -> io::Result<CommandEnd> {
        let deadline = tokio::time::Instant::now() + spec.limit;
        let (mut child, control, mut pipe) = self.spawn(spec).await?;
        let mut output = Output::default();
        let ending = tokio::select! {
            () = drain(&mut pipe, &mut output, sink) => None,
            () = tokio::time::sleep_until(deadline) => Some(Ending::TimedOut),
            () = cancel.cancelled() => Some(Ending::Cancelled),
        };
        // While it is open the launcher lets the command live; closed output alone does not mean that it ended.
        let ending = match ending {
            Some(ending) => ending,
            None => tokio::select! {
                status = child.wait() => Ending::Exited(status?.code().unwrap_or(137)),
                () = tokio::time::sleep_until(deadline) => Ending::TimedOut,
                () = cancel.cancelled() => Ending::Cancelled,
            },
        };
        drop(control);
        if tokio::time::timeout(KILL_TIME, child.wait()).await.is_err() {
            tracing::error!("the launcher did not end in time");
            child.kill().await?;
        }
        Ok(CommandEnd {
            ending,
            output: output.into_text(),
        })
    }

    async fn spawn(&self, spec: CommandSpec) -> io::Result<(Child, ChildStdin, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let mut command = tokio::process::Command::new(&self.launcher);
        command.env_clear().envs(spec.environment).current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let mut child = command.spawn()?;
        // The command holds copies of the pipe's writing end; without this the reader would never see the end.
        drop(command);
        let policy = Policy {
            command: spec.command,
            directory: spec.directory,
            writable: spec.writable,
            readable: spec.readable,
            hidden: self.hidden.clone(),
            exposed: spec.exposed,
            limits: self.limits,
            confinement: self.probe.offers,
            network: spec.network,
            uid: 0,
        };
        let mut line = serde_json::to_vec(&policy)?;
        line.push(b'\n');
        let mut control = child
            .stdin
            .take()
            .ok_or_else(|| io::Error::other("the launcher has no input"))?;
        control.write_all(&line).await?;
        Ok((child, control, pipe::Receiver::from_owned_fd(reader.into())?))
    }
}

/// A script as a command of the machine's best shell.
pub(crate) fn shell(script: String) -> Vec<String> {
    let shell = if std::path::Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    };
    vec![shell.to_owned(), "-c".to_owned(), script]
}

async fn drain(pipe: &mut pipe::Receiver, output: &mut Output, sink: Option<&mpsc::Sender<Vec<u8>>>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        output.push(&buffer[..count]);
        if let Some(sink) = sink {
            // A reader who is too slow misses chunks; the result has what counts.
            let _ = sink.try_send(buffer[..count].to_vec());
        }
    }
}
