//! One command under the launcher, which may have been made ready for it before.

use std::{
    io::{self, PipeReader, PipeWriter, Read},
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::cause::chain;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{UnixStream, unix::pipe},
    process::Child,
    sync::mpsc,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Sandbox, Way,
    output::{END_BYTES, Output},
    policy::{Cover, Policy, REACH, WAITS_FOR_NEXT, frame},
    way_out::{Door, WayOut},
    wire,
};

/// How long the launcher has to kill a process tree.
const KILL_TIME: Duration = Duration::from_secs(2);
/// A launcher's words that are kept, in bytes.
const MAX_WORDS: usize = 4096;
/// How long a launcher may take to open a door in its world.
const DOOR_TIME: Duration = Duration::from_secs(10);
/// Exit code of a command whose launcher ended without a word.
const NO_ANSWER: i32 = 126;
/// A folder to hide that appears later is hidden by the next launcher only, so none waits for longer.
const SPARE_AGE: Duration = Duration::from_secs(300);

/// How long trying addresses may take, with making the namespaces for it.
const REACH_TIME: Duration = Duration::from_secs(60);

/// One command.
pub(crate) struct CommandSpec {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Where it runs.
    pub(crate) place: Place,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// Kept of each end of its output, in bytes.
    pub(crate) output_bytes: usize,
    /// Kept from its beginning beside that, in bytes, for when something is left out.
    pub(crate) whole_bytes: usize,
    /// Where its connections go, and the listener for them unless the launcher has it; absent: nowhere.
    pub(crate) way_out: Option<(Arc<WayOut>, Option<std::net::TcpListener>)>,
}

impl CommandSpec {
    /// Lets it out at a door, and tells it where that is.
    pub(crate) fn let_out(&mut self, way_out: &Arc<WayOut>, door: Door) {
        self.place.environment.extend(door.environment());
        self.place.door = Some(door.port);
        self.way_out = Some((Arc::clone(way_out), door.listener));
    }
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
    /// What it sees at another place than it lies.
    pub(crate) covers: Vec<Cover>,
    /// Port of its own loopback at which it gets out; absent: it does not.
    pub(crate) door: Option<u16>,
    /// Its whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// Disk space beside the writable folders that counts with them, in MiB.
    pub(crate) beside_mib: u64,
}

/// A launcher that has confined itself and waits to be told a command.
struct Launched {
    place: Place,
    /// Absent when it is the runner's.
    child: Option<Child>,
    control: UnixStream,
    /// What it says of itself.
    words: PipeReader,
    /// Listens inside its world.
    door: Option<std::net::TcpListener>,
    since: Instant,
}

impl Launched {
    /// Between commands it says nothing before it ends.
    fn lives(&self) -> bool {
        super::is_open_and_silent(&self.control)
    }

    /// Whether it is good for a command in this place.
    fn serves(&self, place: &Place) -> bool {
        self.place == *place && self.since.elapsed() < SPARE_AGE && self.lives()
    }

    /// Tells it the command; the command's output goes to `output`.
    async fn tell(&self, words: &[String], output: &PipeWriter) -> io::Result<()> {
        let frame = frame(&words)?;
        let mut rest = frame.as_slice();
        let mut output = Some(output.as_fd());
        while !rest.is_empty() {
            let sending = self.control.async_io(Interest::WRITABLE, || {
                wire::send_some(&self.control, rest, output)
            });
            rest = rest.get(sending.await?..).unwrap_or_default();
            output = None;
        }
        Ok(())
    }

    /// The exit code, and whether it waits for the next command.
    async fn answer(&mut self) -> io::Result<(u8, bool)> {
        let mut answer = [0; 2];
        self.control.read_exact(&mut answer).await?;
        Ok((answer[0], answer[1] == WAITS_FOR_NEXT))
    }

    /// Kills the command with everything it started.
    async fn kill(mut self) -> io::Result<()> {
        // The launcher lets the command live until then.
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

/// Keeps one launcher ready, so that the next command need not wait until its world is made. Dropped, it ends.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Option<Launched>>);

impl Spare {
    fn lock(&self) -> MutexGuard<'_, Option<Launched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, launched: Launched) {
        let before = self.lock().replace(launched);
        drop(before);
    }

    /// The launcher that is ready for this place, unless it has waited for too long or has ended.
    fn take(&self, place: &Place) -> Option<Launched> {
        let launched = self.lock().take();
        launched.filter(|launched| launched.serves(place))
    }

    /// Ends the launcher that is ready.
    pub(crate) fn clear(&self) {
        let gone = self.lock().take();
        drop(gone);
    }

    fn has(&self, place: &Place) -> bool {
        self.lock()
            .as_ref()
            .is_some_and(|launched| launched.serves(place))
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
    /// Whether some of the output was left out.
    pub(crate) truncated: bool,
    /// The beginning of output of which some was left out, as far as it was wanted.
    pub(crate) whole: Vec<u8>,
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
        let mut launched = match spare.take(&spec.place) {
            Some(launched) => launched,
            None => self.launch(spec.place).await?,
        };
        let way_out = spec
            .way_out
            .and_then(|(way_out, here)| Some((way_out, here.or(launched.door.take())?)));
        let _open = way_out
            .map(|(way_out, listener)| way_out.open(listener))
            .transpose()?;
        let (reader, writer) = io::pipe()?;
        // A launcher that could not confine itself has gone; its words say why.
        let _ = launched.tell(&spec.command, &writer).await;
        drop(writer);
        let mut pipe = pipe::Receiver::from_owned_fd(reader.into())?;
        let mut output = Output::with_whole(spec.output_bytes, spec.whole_bytes);
        let ending = tokio::select! {
            // Closed output alone does not mean that the command ended.
            answer = async { drain(&mut pipe, &mut output, sink).await; launched.answer().await } => Ok(answer),
            () = tokio::time::sleep_until(deadline) => Err(Ending::TimedOut),
            () = cancel.cancelled() => Err(Ending::Cancelled),
        };
        let ending = match ending {
            Err(ending) => {
                launched.kill().await?;
                ending
            }
            Ok(answer) => {
                let (code, waits_for_next) =
                    answer.map_or((NO_ANSWER, false), |(code, waits)| (code.into(), waits));
                if waits_for_next && launched.place.door.is_none() {
                    spare.put(launched);
                } else {
                    hand_on(&last_words(&launched.words), &mut output, sink);
                }
                Ending::Exited(code)
            }
        };
        Ok(CommandEnd {
            ending,
            truncated: output.is_cut(),
            whole: output.take_whole(),
            output: output.into_text(),
        })
    }

    /// Which of these addresses a command would reach.
    pub(crate) async fn reached(&self, addresses: &[SocketAddr]) -> io::Result<Vec<SocketAddr>> {
        let words = addresses.iter().map(ToString::to_string);
        let spec = CommandSpec {
            command: [REACH.to_owned()].into_iter().chain(words).collect(),
            place: Place {
                directory: "/".into(),
                writable: Vec::new(),
                readable: Vec::new(),
                exposed: Vec::new(),
                covers: Vec::new(),
                door: None,
                environment: Vec::new(),
                beside_mib: 0,
            },
            limit: REACH_TIME,
            output_bytes: END_BYTES,
            whole_bytes: 0,
            way_out: None,
        };
        let (never, alone) = (CancellationToken::new(), Spare::default());
        let end = self.run(spec, &never, None, &alone).await?;
        if end.ending != Ending::Exited(0) {
            return Err(io::Error::other(format!(
                "{:?}: {}",
                end.ending,
                end.output.trim()
            )));
        }
        let lines = end.output.lines();
        Ok(lines.filter_map(|line| line.parse().ok()).collect())
    }

    /// Sees to it that a launcher is ready for the next command in a place.
    pub(crate) async fn prepare(&self, place: Place, spare: &Spare) {
        if spare.has(&place) {
            return;
        }
        match self.launch(place).await {
            Ok(launched) => spare.put(launched),
            Err(error) => tracing::warn!(error = %chain(&error), "no launcher could be made ready"),
        }
    }

    async fn launch(&self, place: Place) -> io::Result<Launched> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let (control, child) = match &self.way {
            Way::Launcher(launcher) => spawn(launcher, writer)?,
            Way::Runner(runner) => (runner.start(&writer.into())?, None),
        };
        let policy = Policy {
            directory: place.directory.clone(),
            environment: place.environment.clone(),
            writable: place.writable.clone(),
            readable: place.readable.clone(),
            visible: self.view.visible.clone(),
            hidden: self.view.hidden.clone(),
            exposed: place.exposed.clone(),
            covers: place.covers.clone(),
            limits: self.limits,
            beside_mib: place.beside_mib,
            confinement: self.probe.offers,
            cgroup: self.probe.cgroup.clone(),
            door: place.door,
            uid: 0,
        };
        wire::send(&control, &policy, None)?;
        let (control, door) = match place.door {
            Some(_) if self.probe.offers.namespaces => receive_door(control).await?,
            _ => (control, None),
        };
        control.set_nonblocking(true)?;
        Ok(Launched {
            place,
            child,
            control: UnixStream::from_std(control)?,
            words: reader,
            door,
            since: Instant::now(),
        })
    }
}

/// Starts a launcher whose words go to `writer`.
fn spawn(launcher: &Path, writer: PipeWriter) -> io::Result<(std::os::unix::net::UnixStream, Option<Child>)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let mut command = tokio::process::Command::new(launcher);
    command.env_clear().current_dir("/");
    command
        .stdin(OwnedFd::from(theirs))
        .stdout(writer.try_clone()?)
        .stderr(writer);
    Ok((ours, Some(command.spawn()?)))
}

/// The listener that the launcher opened in its world; nothing from one that ended, whose words say why.
async fn receive_door(
    control: std::os::unix::net::UnixStream,
) -> io::Result<(std::os::unix::net::UnixStream, Option<std::net::TcpListener>)> {
    let received = tokio::task::spawn_blocking(move || {
        control.set_read_timeout(Some(DOOR_TIME))?;
        let received = wire::receive::<()>(&control).ok().flatten();
        Ok((
            control,
            received.and_then(|(_, listener)| listener).map(Into::into),
        ))
    });
    received.await.map_err(io::Error::other)?
}

/// What a launcher that ends has said of the reason.
fn last_words(mut words: &PipeReader) -> Vec<u8> {
    let mut buffer = vec![0; MAX_WORDS];
    // Nothing said is an error here: it would block.
    let count = words.read(&mut buffer).unwrap_or(0);
    buffer.truncate(count);
    buffer
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
        hand_on(&buffer[..count], output, sink);
    }
}

fn hand_on(bytes: &[u8], output: &mut Output, sink: Option<&mpsc::Sender<Vec<u8>>>) {
    output.push(bytes);
    if let Some(sink) = sink.filter(|_| !bytes.is_empty()) {
        // A reader who is too slow misses chunks; the result has what counts.
        let _ = sink.try_send(bytes.to_vec());
    }
}
