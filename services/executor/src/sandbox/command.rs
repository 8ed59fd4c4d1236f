//! Runs one command under a launcher, which may have been started before.

use std::{
    io::{self, PipeReader, PipeWriter, Read},
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use domain::cause::format_error_chain;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{UnixStream, unix::pipe},
    process::Child,
    sync::mpsc,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    CommandSandbox, LauncherSource,
    egress_relay::{EgressRelay, RelayListener},
    output::{BoundedOutput, END_BYTES},
    policy::{LauncherPolicy, PathCover, REACH, WAITS_FOR_NEXT, encode_frame},
    wire,
};

/// Time limit for the launcher to kill a process tree.
const KILL_TIME: Duration = Duration::from_secs(2);
/// Limit of a launcher's messages that are read, in bytes.
const MAX_WORDS: usize = 4096;
/// Time limit for a launcher to open the egress port in its network namespace.
const EGRESS_LISTENER_TIME: Duration = Duration::from_secs(10);
/// Exit code of a command whose launcher ended without an answer.
const NO_ANSWER: i32 = 126;
// Only a new launcher hides a secret folder that appears later, so an idle one is not used after this time.
const SPARE_AGE: Duration = Duration::from_secs(300);

/// Time limit for a reachability test, including the creation of namespaces.
const REACH_TIME: Duration = Duration::from_secs(60);

/// A command with its context and limits.
pub(crate) struct CommandSpec {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Folders, environment and egress port.
    pub(crate) place: CommandContext,
    /// Time limit of the command.
    pub(crate) limit: Duration,
    /// Limit in bytes for each end of its output.
    pub(crate) output_bytes: usize,
    /// Limit in bytes for the beginning of its output, which is stored in addition if the output is
    /// truncated.
    pub(crate) whole_bytes: usize,
    /// Egress of the command, and its listener unless the launcher has it; `None` for no egress.
    pub(crate) egress: Option<(Arc<EgressRelay>, Option<std::net::TcpListener>)>,
}

impl CommandSpec {
    /// Gives the command egress at a port, and sets the variables that name the port.
    pub(crate) fn add_egress(&mut self, relay: &Arc<EgressRelay>, listener: RelayListener) {
        self.place.environment.extend(listener.environment());
        self.place.egress_port = Some(listener.port);
        self.egress = Some((Arc::clone(relay), listener.listener));
    }
}

/// Context of a command that is known before the command itself, so that a launcher can be prepared for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandContext {
    /// Working directory.
    pub(crate) directory: PathBuf,
    /// Folders that the command may write to.
    pub(crate) writable: Vec<PathBuf>,
    /// Folders inside hidden ones that the command may read.
    pub(crate) readable: Vec<PathBuf>,
    /// Folders that stay visible inside a hidden one, each at its own path or in place of another folder.
    pub(crate) exposed: Vec<PathCover>,
    /// Files and folders that the command sees at another path.
    pub(crate) covers: Vec<PathCover>,
    /// Egress port on the loopback interface of the command; `None` for no egress.
    pub(crate) egress_port: Option<u16>,
    /// Complete environment of the command.
    pub(crate) environment: Vec<(String, String)>,
    /// Disk space outside of the writable folders that counts towards their limit, in MiB.
    pub(crate) beside_mib: u64,
}

impl CommandContext {
    /// Returns the writable folders as they are called outside of the command's mount namespace.
    fn measured(&self) -> Vec<PathBuf> {
        let outside = |path: &PathBuf| {
            let mut around = self.exposed.iter();
            let found = around.find_map(|shown| Some(shown.from.join(path.strip_prefix(&shown.at).ok()?)));
            found.unwrap_or_else(|| path.clone())
        };
        self.writable.iter().map(outside).collect()
    }
}

/// A confined launcher that waits for a command.
pub(super) struct ConfinedLauncher {
    place: CommandContext,
    /// Child process; `None` when the runner started the launcher.
    child: Option<Child>,
    control: UnixStream,
    /// Messages of the launcher about itself.
    words: PipeReader,
    /// Egress listener inside the network namespace of the launcher.
    egress_listener: Option<std::net::TcpListener>,
    since: Instant,
}

impl ConfinedLauncher {
    /// Returns true while the launcher runs. An idle launcher writes nothing before it ends.
    fn lives(&self) -> bool {
        super::is_open_and_silent(&self.control)
    }

    /// Returns true when the launcher can run a command in this context.
    fn serves(&self, place: &CommandContext) -> bool {
        self.place == *place && self.since.elapsed() < SPARE_AGE && self.lives()
    }

    /// Returns another reader of the launcher's messages, which does not block.
    pub(super) fn read_words(&self) -> io::Result<PipeReader> {
        self.words.try_clone()
    }

    /// Sends the command to the launcher. The command writes its output to `output`.
    pub(super) async fn send_command(&self, words: &[String], output: BorrowedFd<'_>) -> io::Result<()> {
        let frame = encode_frame(&words)?;
        let mut rest = frame.as_slice();
        let mut output = Some(output);
        while !rest.is_empty() {
            let sending = self.control.async_io(Interest::WRITABLE, || {
                wire::send_some(&self.control, rest, output)
            });
            rest = rest.get(sending.await?..).unwrap_or_default();
            // The descriptor travels with the first part of the frame only.
            output = None;
        }
        Ok(())
    }

    /// Receives the exit code, and whether the launcher waits for the next command.
    pub(super) async fn answer(&mut self) -> io::Result<(u8, bool)> {
        let mut answer = [0; 2];
        self.control.read_exact(&mut answer).await?;
        Ok((answer[0], answer[1] == WAITS_FOR_NEXT))
    }

    /// Kills the command with all of its descendants.
    pub(super) async fn kill(mut self) -> io::Result<()> {
        // The launcher kills the tree when this side of the connection closes.
        self.control.shutdown().await?;
        if tokio::time::timeout(KILL_TIME, self.answer()).await.is_err() {
            tracing::error!("the launcher did not end in time");
            if let Some(child) = &mut self.child {
                child.kill().await?;
            }
        }
        Ok(())
    }
}

/// Idle launcher that is confined already, so that the next command does not wait for its namespaces.
/// Dropping it ends the launcher.
#[derive(Default)]
pub(crate) struct IdleLauncher(Mutex<Option<ConfinedLauncher>>);

impl IdleLauncher {
    fn put(&self, launched: ConfinedLauncher) {
        let before = self.0.lock().replace(launched);
        drop(before);
    }

    /// Takes the launcher if it fits this context, is not too old and still runs.
    fn take(&self, place: &CommandContext) -> Option<ConfinedLauncher> {
        let launched = self.0.lock().take();
        launched.filter(|launched| launched.serves(place))
    }

    /// Ends the idle launcher.
    pub(crate) fn clear(&self) {
        let gone = self.0.lock().take();
        drop(gone);
    }

    fn has(&self, place: &CommandContext) -> bool {
        self.0
            .lock()
            .as_ref()
            .is_some_and(|launched| launched.serves(place))
    }
}

/// Reason of a command's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandEnding {
    /// The command exited, with its exit code; 128 + signal when a signal ended it.
    Exited(i32),
    /// The command reached its time limit and was killed.
    TimedOut,
    /// The caller cancelled the command, and it was killed.
    Cancelled,
}

/// Result of a command.
pub(crate) struct CommandEnd {
    /// Reason of its end.
    pub(crate) ending: CommandEnding,
    /// Head and tail of standard output and standard error, in the order written.
    pub(crate) output: String,
    /// True when a part of the output is missing in `output`.
    pub(crate) truncated: bool,
    /// Beginning of a truncated output, up to the requested limit; empty for a complete output.
    pub(crate) whole: Vec<u8>,
}

impl CommandSandbox {
    /// Runs a command with all of its descendants to its end. Chunks of output also go to `sink` as long as
    /// it has room. Dropping the future kills the process tree.
    pub(crate) async fn run(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
        sink: Option<&mpsc::Sender<Vec<u8>>>,
        spare: &IdleLauncher,
    ) -> io::Result<CommandEnd> {
        let _running = self.room().enter();
        self.run_admitted(spec, cancel, sink, spare).await
    }

    /// Runs a command whose place in the room the caller holds.
    pub(crate) async fn run_admitted(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
        sink: Option<&mpsc::Sender<Vec<u8>>>,
        spare: &IdleLauncher,
    ) -> io::Result<CommandEnd> {
        // The start of a launcher counts towards the limit.
        let deadline = Instant::now() + spec.limit;
        let mut launched = match spare.take(&spec.place) {
            Some(launched) => launched,
            None => self.launch(spec.place).await?,
        };
        let egress = spec
            .egress
            .and_then(|(relay, here)| Some((relay, here.or(launched.egress_listener.take())?)));
        let _open = egress.map(|(relay, listener)| relay.open(listener)).transpose()?;
        let (reader, writer) = io::pipe()?;
        // The error is ignored: a launcher that could not confine itself has ended, and its messages contain
        // the reason.
        let _ = launched.send_command(&spec.command, writer.as_fd()).await;
        // The output ends when the last writer closes the pipe, so this process keeps none.
        drop(writer);
        let mut pipe = pipe::Receiver::from_owned_fd(reader.into())?;
        let mut output = BoundedOutput::with_whole(spec.output_bytes, spec.whole_bytes);
        let ending = tokio::select! {
            // A command may close its output before it ends, so the launcher's answer decides.
            answer = async { drain_output(&mut pipe, &mut output, sink).await; launched.answer().await } => Ok(answer),
            () = tokio::time::sleep_until(deadline) => Err(CommandEnding::TimedOut),
            () = cancel.cancelled() => Err(CommandEnding::Cancelled),
        };
        let ending = match ending {
            Err(ending) => {
                launched.kill().await?;
                ending
            }
            Ok(answer) => {
                let (code, waits_for_next) =
                    answer.map_or((NO_ANSWER, false), |(code, waits)| (code.into(), waits));
                // A launcher with an egress port is not reused, because its environment permits network
                // access.
                if waits_for_next && launched.place.egress_port.is_none() {
                    spare.put(launched);
                } else {
                    forward_output(&last_words(&launched.words), &mut output, sink);
                }
                CommandEnding::Exited(code)
            }
        };
        Ok(CommandEnd {
            ending,
            truncated: output.is_truncated(),
            whole: output.take_whole(),
            output: output.into_text(),
        })
    }

    /// Returns those addresses that a command can reach.
    pub(crate) async fn reached(&self, addresses: &[SocketAddr]) -> io::Result<Vec<SocketAddr>> {
        let words = addresses.iter().map(ToString::to_string);
        let spec = CommandSpec {
            command: [REACH.to_owned()].into_iter().chain(words).collect(),
            place: CommandContext {
                directory: "/".into(),
                writable: Vec::new(),
                readable: Vec::new(),
                exposed: Vec::new(),
                covers: Vec::new(),
                egress_port: None,
                environment: Vec::new(),
                beside_mib: 0,
            },
            limit: REACH_TIME,
            output_bytes: END_BYTES,
            whole_bytes: 0,
            egress: None,
        };
        let (never, alone) = (CancellationToken::new(), IdleLauncher::default());
        let end = self.run(spec, &never, None, &alone).await?;
        if end.ending != CommandEnding::Exited(0) {
            return Err(io::Error::other(format!(
                "{:?}: {}",
                end.ending,
                end.output.trim()
            )));
        }
        let lines = end.output.lines();
        Ok(lines.filter_map(|line| line.parse().ok()).collect())
    }

    /// Prepares a launcher for the next command in a context. Failures are logged.
    pub(crate) async fn prepare(&self, place: CommandContext, spare: &IdleLauncher) {
        if spare.has(&place) {
            return;
        }
        match self.launch(place).await {
            Ok(launched) => spare.put(launched),
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "no launcher could be made ready")
            }
        }
    }

    pub(super) async fn launch(&self, place: CommandContext) -> io::Result<ConfinedLauncher> {
        let (reader, writer) = io::pipe()?;
        // Reading the launcher's messages must not block: it usually writes none.
        rustix::io::ioctl_fionbio(&reader, true)?;
        let (control, child) = match &self.way {
            LauncherSource::Launcher(launcher) => spawn_launcher(launcher, writer)?,
            LauncherSource::Runner(runner) => (runner.start(&writer.into())?, None),
        };
        let policy = LauncherPolicy {
            directory: place.directory.clone(),
            environment: place.environment.clone(),
            writable: place.writable.clone(),
            readable: place.readable.clone(),
            visible: self.view.visible.clone(),
            hidden: self.view.hidden.clone(),
            exposed: place.exposed.clone(),
            measured: place.measured(),
            covers: place.covers.clone(),
            limits: self.limits,
            beside_mib: place.beside_mib,
            confinement: self.probe.offers,
            cgroup: self.probe.cgroup.clone(),
            egress_port: place.egress_port,
            uid: 0,
        };
        wire::send_frame(&control, &policy, None)?;
        let (control, egress_listener) = match place.egress_port {
            Some(_) if self.probe.offers.namespaces => receive_egress_listener(control).await?,
            _ => (control, None),
        };
        // Only now, because the frames above are sent and received by blocking calls.
        control.set_nonblocking(true)?;
        Ok(ConfinedLauncher {
            place,
            child,
            control: UnixStream::from_std(control)?,
            words: reader,
            egress_listener,
            since: Instant::now(),
        })
    }
}

/// Starts a launcher that writes its messages to `writer`.
fn spawn_launcher(
    launcher: &Path,
    writer: PipeWriter,
) -> io::Result<(std::os::unix::net::UnixStream, Option<Child>)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let mut command = tokio::process::Command::new(launcher);
    // The policy contains the command's environment and folder. Nothing of the executor's own may reach
    // it.
    command.env_clear().current_dir("/");
    command
        .stdin(OwnedFd::from(theirs))
        .stdout(writer.try_clone()?)
        .stderr(writer);
    Ok((ours, Some(command.spawn()?)))
}

/// Receives the listener that the launcher opened in its namespace; `None` when the launcher ended. Its
/// messages contain the reason.
async fn receive_egress_listener(
    control: std::os::unix::net::UnixStream,
) -> io::Result<(std::os::unix::net::UnixStream, Option<std::net::TcpListener>)> {
    let received = tokio::task::spawn_blocking(move || {
        control.set_read_timeout(Some(EGRESS_LISTENER_TIME))?;
        let received = wire::receive_frame::<()>(&control).ok().flatten();
        Ok((
            control,
            received.and_then(|(_, listener)| listener).map(Into::into),
        ))
    });
    received.await.map_err(io::Error::other)?
}

/// Returns the messages of a launcher that ended.
fn last_words(mut words: &PipeReader) -> Vec<u8> {
    let mut buffer = vec![0; MAX_WORDS];
    // The pipe does not block, so an empty pipe is an error here.
    let count = words.read(&mut buffer).unwrap_or(0);
    buffer.truncate(count);
    buffer
}

/// Returns the command that runs a script in bash, or in `/bin/sh` where bash is missing.
pub(crate) fn shell_command(script: String) -> Vec<String> {
    let shell = if std::path::Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    };
    vec![shell.to_owned(), "-c".to_owned(), script]
}

pub(super) async fn drain_output(
    pipe: &mut pipe::Receiver,
    output: &mut BoundedOutput,
    sink: Option<&mpsc::Sender<Vec<u8>>>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        forward_output(&buffer[..count], output, sink);
    }
}

fn forward_output(bytes: &[u8], output: &mut BoundedOutput, sink: Option<&mpsc::Sender<Vec<u8>>>) {
    output.push(bytes);
    if let Some(sink) = sink.filter(|_| !bytes.is_empty()) {
        // The error is ignored: a slow reader misses chunks, but the result has the whole output.
        let _ = sink.try_send(bytes.to_vec());
    }
}
