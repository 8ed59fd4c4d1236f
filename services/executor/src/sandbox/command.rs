//! One command under the launcher, which may have been made ready for it before.

use std::{
    io::{self, PipeWriter},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    process::Child,
    sync::mpsc,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Sandbox, Way,
    output::Output,
    policy::{Policy, frame},
};

/// How long the launcher has to kill a process tree.
const KILL_TIME: Duration = Duration::from_secs(2);
/// Exit code of a command whose launcher ended without a word.
const NO_ANSWER: i32 = 126;
/// A folder to hide that appears later is hidden by the next launcher only, so none waits for longer.
const SPARE_AGE: Duration = Duration::from_secs(300);

/// One command.
pub(crate) struct CommandSpec {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Where it runs.
    pub(crate) place: Place,
    /// How long it may take.
    pub(crate) limit: Duration,
}

/// Where a command runs: all that is known before the command is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
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
    pub(crate) environment: Vec<(String, String)>,
}

/// A launcher that has confined itself and waits to be told the command.
struct Launched {
    place: Place,
    /// Absent when it is the runner's.
    child: Option<Child>,
    control: UnixStream,
    output: pipe::Receiver,
    since: Instant,
}

impl Launched {
    /// It says nothing before it ends.
    fn lives(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(&self.control, &mut [0_u8; 1], flags).is_err_and(|error| error == Errno::AGAIN)
    }
}

/// Keeps one launcher ready, so that the next command need not wait until its world is made. Dropped, it ends.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Option<Launched>>);

impl Spare {
    fn put(&self, launched: Option<Launched>) -> Option<Launched> {
        std::mem::replace(
            &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner),
            launched,
        )
    }

    /// The launcher that is ready for this place, unless it has waited for too long or has ended.
    fn take(&self, place: &Place) -> Option<Launched> {
        let launched = self.put(None).filter(|launched| launched.place == *place)?;
        let is_fresh = launched.since.elapsed() < SPARE_AGE;
        (is_fresh && launched.lives()).then_some(launched)
    }
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
        spare: &Spare,
    ) -> io::Result<CommandEnd> {
        let deadline = Instant::now() + spec.limit;
        let launched = match spare.take(&spec.place) {
            Some(launched) => launched,
            None => self.launch(spec.place).await?,
        };
        let Launched {
            mut child,
            mut control,
            output: mut pipe,
            ..
        } = launched;
        // A launcher that could not confine itself has gone; its output says why.
        let _ = control.write_all(&frame(&spec.command)?).await;
        let mut output = Output::default();
        let ending = tokio::select! {
            () = drain(&mut pipe, &mut output, sink) => None,
            () = tokio::time::sleep_until(deadline) => Some(Ending::TimedOut),
            () = cancel.cancelled() => Some(Ending::Cancelled),
        };
        // Closed output alone does not mean that the command ended.
        let ending = match ending {
            Some(ending) => ending,
            None => tokio::select! {
                code = control.read_u8() => Ending::Exited(code.map_or(NO_ANSWER, i32::from)),
                () = tokio::time::sleep_until(deadline) => Ending::TimedOut,
                () = cancel.cancelled() => Ending::Cancelled,
            },
        };
        if !matches!(ending, Ending::Exited(_)) {
            // The launcher lets the command live until then.
            control.shutdown().await?;
            let dead = tokio::time::timeout(KILL_TIME, control.read_u8()).await;
            if dead.is_err() {
                tracing::error!("the launcher did not end in time");
                if let Some(child) = &mut child {
                    child.kill().await?;
                }
            }
        }
        Ok(CommandEnd {
            ending,
            output: output.into_text(),
        })
    }

    /// Makes a launcher ready for the next command in a place.
    pub(crate) async fn prepare(&self, place: Place, spare: &Spare) {
        match self.launch(place).await {
            Ok(launched) => drop(spare.put(Some(launched))),
            Err(error) => tracing::warn!(%error, "no launcher could be made ready"),
        }
    }

    async fn launch(&self, place: Place) -> io::Result<Launched> {
        let (reader, writer) = io::pipe()?;
        let (mut control, child) = match &self.way {
            Way::Launcher(launcher) => spawn(launcher, writer)?,
            Way::Runner(runner) => {
                let control = runner.start(&writer.into())?;
                control.set_nonblocking(true)?;
                (UnixStream::from_std(control)?, None)
            }
        };
        let policy = Policy {
            directory: place.directory.clone(),
            environment: place.environment.clone(),
            writable: place.writable.clone(),
            readable: place.readable.clone(),
            hidden: self.hidden.clone(),
            exposed: place.exposed.clone(),
            limits: self.limits,
            confinement: self.probe.offers,
            network: place.network,
            uid: 0,
        };
        control.write_all(&frame(&policy)?).await?;
        Ok(Launched {
            place,
            child,
            control,
            output: pipe::Receiver::from_owned_fd(reader.into())?,
            since: Instant::now(),
        })
    }
}

/// Starts a launcher whose output goes to `writer`.
fn spawn(launcher: &Path, writer: PipeWriter) -> io::Result<(UnixStream, Option<Child>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = theirs.into_std()?;
    theirs.set_nonblocking(false)?;
    let mut command = tokio::process::Command::new(launcher);
    command.env_clear().current_dir("/");
    command
        .stdin(OwnedFd::from(theirs))
        .stdout(writer.try_clone()?)
        .stderr(writer);
    // With the command go the copies of the pipe's writing end; with them the reader would never see the end.
    Ok((ours, Some(command.spawn()?)))
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
