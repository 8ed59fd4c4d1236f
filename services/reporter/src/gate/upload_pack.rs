//! One `git upload-pack` process with a deadline.

use std::{io, path::Path, process::Stdio, sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use domain::cause::format_error_chain;
use futures::{StreamExt as _, stream};
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, ChildStdout, Command},
};
use tokio_util::{
    io::ReaderStream,
    sync::{CancellationToken, DropGuard},
};

use super::slots::CloneSlot;

/// A running process. Dropping it, or its output, kills it.
pub(super) struct UploadPackProcess {
    output: ChildStdout,
    /// Canceled when the deadline has passed.
    late: CancellationToken,
    abandoned: DropGuard,
}

/// Starts `upload-pack` over a mirror. A task ends it at the deadline, when its output is dropped, or when it exits,
/// and then frees the slot. So the slot does not depend on a client that reads.
pub(super) fn spawn_upload_pack(
    mirror: Arc<Path>,
    protocol: Option<&str>,
    extra: &[&str],
    input: Bytes,
    deadline: Duration,
    slot: CloneSlot,
) -> io::Result<UploadPackProcess> {
    let mut command = build_command(&mirror, protocol, extra).map_err(io::Error::other)?;
    let mut child = command.spawn()?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    if let Some(mut stdin) = child.stdin.take() {
        // The process reads and writes at the same time, so the input needs a task. If the process dies, the write
        // fails.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input).await;
        });
    }
    let (late, abandoned) = (CancellationToken::new(), CancellationToken::new());
    let guard = abandoned.clone().drop_guard();
    tokio::spawn(watch_upload_pack(
        child,
        deadline,
        late.clone(),
        abandoned,
        (slot, mirror),
    ));
    Ok(UploadPackProcess {
        output,
        late,
        abandoned: guard,
    })
}

/// Waits for the end of the process. `_held` (its slot and the mirror's hold) is dropped only after that.
async fn watch_upload_pack<H: Send>(
    mut child: Child,
    deadline: Duration,
    late: CancellationToken,
    abandoned: CancellationToken,
    _held: H,
) {
    tokio::select! {
        // The process ends by itself when its output is read or closed.
        _ = child.wait() => return,
        () = abandoned.cancelled() => {}
        () = tokio::time::sleep(deadline) => {
            late.cancel();
            tracing::warn!(deadline_s = deadline.as_secs(), "a clone took too long and was ended");
        }
    }
    if let Err(error) = child.kill().await {
        tracing::debug!(error = %format_error_chain(&error), "upload-pack was not killed");
    }
}

fn build_command(mirror: &Path, protocol: Option<&str>, extra: &[&str]) -> Result<Command, git::Error> {
    // The mirror's configuration is ours, or overridden here.
    let mut command = Command::from(git::prepare_command(mirror)?);
    if let Some(protocol) = protocol {
        command.env("GIT_PROTOCOL", protocol);
    }
    command
        .args(["upload-pack", "--strict", "--stateless-rpc"])
        .args(extra)
        .arg(mirror)
        .current_dir(mirror)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Nothing reads it, and a full pipe would block the process.
        .stderr(Stdio::null())
        .kill_on_drop(true);
    Ok(command)
}

impl UploadPackProcess {
    /// Returns the output after an opening. After the deadline the stream ends with an error, so that a client does
    /// not take it as complete.
    pub(super) fn output(self, opening: Bytes) -> Body {
        let Self {
            output,
            late,
            abandoned,
        } = self;
        let opening = stream::iter((!opening.is_empty()).then_some(Ok(opening)));
        let end = stream::once(async move {
            let _abandoned = abandoned;
            late.is_cancelled()
                .then(|| Err(io::Error::from(io::ErrorKind::TimedOut)))
        });
        let chunks = ReaderStream::new(output).chain(end.filter_map(std::future::ready));
        Body::from_stream(opening.chain(chunks))
    }
}
