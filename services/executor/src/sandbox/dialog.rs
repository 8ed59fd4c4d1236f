//! Dialog with one command: a socket of the caller is its standard input and output.

use std::{
    convert::Infallible,
    io::{self, PipeReader, Read},
    os::fd::AsFd,
    time::Duration,
};

use tokio::{
    net::{UnixStream, unix::pipe},
    sync::mpsc,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    CommandSandbox,
    command::{CommandContext, drain_output},
    output::BoundedOutput,
    policy::DIALOG,
};

/// Time for a command to end after its input closed. Then it is killed.
const END_TIME: Duration = Duration::from_secs(1);

/// A command of a dialog with its context and limits.
pub(crate) struct DialogSpec {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Folders and environment. A dialog has no egress.
    pub(crate) place: CommandContext,
    /// Time limit of the dialog, with the start of the command.
    pub(crate) limit: Duration,
    /// Limit in bytes for each end of the command's standard error.
    pub(crate) error_bytes: usize,
}

/// Reason of a dialog's end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DialogOutcome<T> {
    /// The caller's side completed, with its result.
    Finished(T),
    /// The dialog reached its time limit, and the command was killed.
    TimedOut,
    /// The caller cancelled the dialog, and the command was killed.
    Cancelled,
}

/// Result of a dialog. No process of the command is left.
pub(crate) struct DialogEnd<T> {
    /// Reason of its end.
    pub(crate) outcome: DialogOutcome<T>,
    /// Exit code of a command that ended without being killed; 128 + signal when a signal ended it.
    pub(crate) exit_code: Option<u8>,
    /// Head and tail of the command's standard error, with messages of the launcher.
    pub(crate) errors: String,
}

impl CommandSandbox {
    /// Starts a command in confinement, and gives its side of the dialog to `talk`. When that completes, the
    /// command's input closes, and all of its processes end. Standard error also goes to `sink` as long as it has
    /// room. Dropping the future kills the process tree.
    pub(crate) async fn converse<T, F: Future<Output = T>>(
        &self,
        spec: DialogSpec,
        cancel: &CancellationToken,
        sink: Option<&mpsc::Sender<Vec<u8>>>,
        talk: impl FnOnce(UnixStream) -> F,
    ) -> io::Result<DialogEnd<T>> {
        let _running = self.room().enter();
        let deadline = Instant::now() + spec.limit;
        let mut launched = self.launch(spec.place).await?;
        let mut last_errors = launched.read_words()?;
        let mut pipe = pipe::Receiver::from_owned_fd(launched.read_words()?.into())?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let talking = talk(UnixStream::from_std(ours)?);
        let words: Vec<String> = [DIALOG.to_owned()].into_iter().chain(spec.command).collect();
        // The error is ignored: a launcher that could not confine itself has ended, and its messages contain
        // the reason.
        let _ = launched.send_command(&words, theirs.as_fd()).await;
        // The dialog ends when the last process of the command closes the socket, so this process keeps no end.
        drop(theirs);
        let mut errors = BoundedOutput::new(spec.error_bytes);
        let outcome = tokio::select! {
            result = talking => DialogOutcome::Finished(result),
            () = tokio::time::sleep_until(deadline) => DialogOutcome::TimedOut,
            () = cancel.cancelled() => DialogOutcome::Cancelled,
            never = drain_forever(&mut pipe, &mut errors, sink) => match never {},
        };
        let answered = match &outcome {
            DialogOutcome::Finished(_) => tokio::select! {
                answer = launched.answer() => answer.ok(),
                () = tokio::time::sleep(END_TIME) => None,
                never = drain_forever(&mut pipe, &mut errors, sink) => match never {},
            },
            DialogOutcome::TimedOut | DialogOutcome::Cancelled => None,
        };
        let exit_code = answered.map(|(code, _)| code);
        if exit_code.is_none() {
            launched.kill().await?;
        }
        read_rest(&mut last_errors, &mut errors);
        Ok(DialogEnd {
            outcome,
            exit_code,
            errors: errors.into_text(),
        })
    }
}

/// Reads an output until the future is dropped. A full pipe would stop the command.
async fn drain_forever(
    pipe: &mut pipe::Receiver,
    output: &mut BoundedOutput,
    sink: Option<&mpsc::Sender<Vec<u8>>>,
) -> Infallible {
    drain_output(pipe, output, sink).await;
    std::future::pending().await
}

/// Reads the bytes that are in a pipe already. The pipe does not block.
fn read_rest(pipe: &mut PipeReader, output: &mut BoundedOutput) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        output.push(&buffer[..count]);
    }
}
