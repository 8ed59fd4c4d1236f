//! Downloads the contents that commits point to into the mirror's store.

use std::{collections::BTreeMap, sync::Arc};

use domain::{CommitId, cause::format_error_chain};
use git::{BareRepository, LfsOid, LfsOmission, LfsPointer, LfsStore, run_blocking_task};

use super::connection::{GateAddress, GateConnection, GateFailure};
use crate::{lfs_contents::LfsContents, mirror::MirrorPath};

// Limit of a content in bytes: that of a file in a workspace.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
// Contents in a row that may fail before the rest is not tried.
const MAX_FAILURES: usize = 3;

/// Fetches the contents of these commits. What the gate does not give stays a pointer, with the reason.
///
/// # Errors
/// [`git::Error::NotReady`] while the gate itself downloads, and failures of the disk.
pub(crate) async fn fetch_contents(
    store: &Arc<LfsStore>,
    mirror: &MirrorPath,
    address: Result<GateAddress, String>,
    commits: &[CommitId],
) -> Result<LfsContents, git::Error> {
    let mut wanted: BTreeMap<LfsPointer, CommitId> = BTreeMap::new();
    let mut left_out = Vec::new();
    let mut connection = address.map(GateConnection::new);
    for commit in commits {
        let listed = match &mut connection {
            Ok(connection) => connection.list(commit).await,
            Err(problem) => Err(GateFailure::Refused(problem.clone())),
        };
        match listed {
            Ok(listing) => {
                let pointers = listing.contents.into_iter();
                wanted.extend(pointers.map(|pointer| (pointer, commit.clone())));
                left_out.extend(listing.left_out);
            }
            Err(GateFailure::NotReady { percent }) => return Err(git::Error::NotReady { percent }),
            Err(failure) => {
                let reason = format_error_chain(&failure);
                tracing::warn!(commit = %commit.short(), reason, "no contents of Git LFS");
                left_out.extend(list_pointers(mirror, commit, &reason).await?);
            }
        }
    }
    let too_large = |pointer: &LfsPointer| pointer.size > MAX_BYTES;
    left_out.extend(
        wanted
            .keys()
            .filter(|pointer| too_large(pointer))
            .map(|pointer| LfsOmission {
                pointer: pointer.clone(),
                reason: format!("it has more than {} MiB", MAX_BYTES >> 20),
            }),
    );
    wanted.retain(|pointer, _| !too_large(pointer));
    // Held before the download, so that another workspace's eviction takes none of them.
    let hold = store.hold(mirror, wanted.keys().cloned());
    if let Ok(connection) = &mut connection {
        left_out.extend(Box::pin(download(store, mirror, connection, wanted)).await?);
    }
    let store = Arc::clone(store);
    run_blocking_task(move || {
        let evicted = store.evict();
        if evicted.contents > 0 {
            tracing::info!(
                contents = evicted.contents,
                bytes = evicted.bytes,
                "contents of Git LFS evicted"
            );
        }
        Ok(LfsContents::new(hold, left_out))
    })
    .await
}

async fn download(
    store: &Arc<LfsStore>,
    mirror: &MirrorPath,
    connection: &mut GateConnection,
    wanted: BTreeMap<LfsPointer, CommitId>,
) -> Result<Vec<LfsOmission>, git::Error> {
    let mut left_out: Vec<LfsOmission> = Vec::new();
    let mut failures = 0;
    for (pointer, commit) in wanted {
        let (keeper, place, known) = (Arc::clone(store), Arc::clone(mirror), pointer.clone());
        let receipt = run_blocking_task(move || match keeper.find(&place, &known) {
            Some(_) => Ok(None),
            None => Ok(Some(keeper.receive(&place, &known)?)),
        });
        let Some(receipt) = receipt.await? else { continue };
        let reason = match left_out.last() {
            Some(last) if failures >= MAX_FAILURES => last.reason.clone(),
            Some(_) | None => {
                let received = connection.receive(&commit, &pointer.oid, receipt);
                let received = failpoint::around("executor.lfs.fetch", Box::pin(received)).await;
                let finished = match received {
                    Ok(receipt) => run_blocking_task(move || Ok(receipt.finish()))
                        .await?
                        .map_err(GateFailure::from),
                    Err(failure) => Err(failure),
                };
                match finished {
                    Ok(()) => {
                        failures = 0;
                        continue;
                    }
                    Err(failure) => format_error_chain(&failure),
                }
            }
        };
        failures += 1;
        log_omission(&pointer.oid, &reason);
        left_out.push(LfsOmission { pointer, reason });
    }
    Ok(left_out)
}

fn log_omission(oid: &LfsOid, reason: &str) {
    tracing::warn!(%oid, reason, "a content of Git LFS was not received");
}

async fn list_pointers(
    mirror: &MirrorPath,
    commit: &CommitId,
    reason: &str,
) -> Result<Vec<LfsOmission>, git::Error> {
    let (mirror, commit) = (Arc::clone(mirror), commit.clone());
    let files = run_blocking_task(move || BareRepository::open(&mirror)?.lfs_files(&commit)).await?;
    let leave_out = |pointer| LfsOmission {
        pointer,
        reason: reason.to_owned(),
    };
    Ok(files.into_iter().map(|file| leave_out(file.pointer)).collect())
}
