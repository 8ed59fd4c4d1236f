//! Download of missing contents into the store of a mirror.

use std::{path::Path, sync::Arc};

use domain::{RepositoryName, cause::format_error_chain};
use futures::{StreamExt as _, stream};
use git::{LfsDefect, LfsOmission, LfsPointer, LfsReceipt, LfsStore};
use github::GitHubWriter;
use lfs::{LfsAddress, LfsClient, LfsError, LfsRefusal, LfsRemote, MAX_BATCH};
use tokio::time::Instant;

use crate::{effect_error::EffectError, mirror::run_blocking};

// Downloads at the same time.
const CONCURRENT: usize = 4;
// Received bytes that are written at once.
const WRITE_AT: usize = 1024 * 1024;
// Name of the service in the log of retries.
const SERVICE: &str = "Git LFS";

/// Clients and store of the downloads.
pub(super) struct LfsFetcher {
    pub(super) github: GitHubWriter,
    pub(super) client: LfsClient,
    pub(super) store: Arc<LfsStore>,
}

/// Contents with their addresses.
type AddressedContents = Vec<(LfsPointer, Result<LfsAddress, LfsRefusal>)>;

/// Failure of one content.
#[derive(Debug, thiserror::Error)]
enum ContentFailure {
    #[error(transparent)]
    Server(#[from] LfsError),
    #[error(transparent)]
    Refusal(#[from] LfsRefusal),
    #[error("the content is not accepted: {0}")]
    Defect(#[from] LfsDefect),
    #[error("the reporter failed: {0}")]
    Reporter(String),
    #[error("the time limit of a clone (reporter.clone_limit_s) ended first")]
    Late,
}

impl ContentFailure {
    const fn is_outage(&self) -> bool {
        match self {
            Self::Server(error) => error.is_outage(),
            Self::Defect(LfsDefect::TooShort { .. }) => true,
            Self::Defect(LfsDefect::TooLong(_) | LfsDefect::WrongHash | LfsDefect::Disk(_))
            | Self::Refusal(_)
            | Self::Reporter(_)
            | Self::Late => false,
        }
    }
}

impl From<EffectError> for ContentFailure {
    fn from(error: EffectError) -> Self {
        Self::Reporter(format_error_chain(&error))
    }
}

impl LfsFetcher {
    /// Downloads contents until a deadline. Returns those that failed. `report` receives the bytes of each content that
    /// is done.
    pub(super) async fn fetch(
        &self,
        repository: &RepositoryName,
        mirror: &Arc<Path>,
        wanted: &[LfsPointer],
        deadline: Instant,
        report: impl Fn(u64),
    ) -> Vec<LfsOmission> {
        let mut failed = Vec::new();
        for batch in wanted.chunks(MAX_BATCH) {
            // The token of a long download may expire, so each batch requests one.
            let asked = tokio::time::timeout_at(deadline, self.request_addresses(repository, batch)).await;
            let (remote, addresses) = match asked.unwrap_or(Err(ContentFailure::Late)) {
                Ok(answer) => answer,
                Err(failure) => {
                    let reason = format_error_chain(&failure);
                    tracing::warn!(%repository, reason, "Git LFS not read");
                    failed.extend(batch.iter().map(|pointer| LfsOmission {
                        pointer: pointer.clone(),
                        reason: reason.clone(),
                    }));
                    continue;
                }
            };
            let downloads = addresses.into_iter().map(|(pointer, address)| {
                let (remote, report) = (&remote, &report);
                async move {
                    let downloading = self.download(mirror, remote, &pointer, address);
                    let done = tokio::time::timeout_at(deadline, downloading).await;
                    report(pointer.size);
                    let failure = done.unwrap_or(Err(ContentFailure::Late)).err()?;
                    let reason = format_error_chain(&failure);
                    Some(LfsOmission { pointer, reason })
                }
            });
            // Boxed, because the downloads at the same time make the future large.
            let results = Box::pin(stream::iter(downloads).buffer_unordered(CONCURRENT));
            failed.extend(results.filter_map(std::future::ready).collect::<Vec<_>>().await);
        }
        failed
    }

    async fn request_addresses(
        &self,
        repository: &RepositoryName,
        batch: &[LfsPointer],
    ) -> Result<(LfsRemote, AddressedContents), ContentFailure> {
        let asking = async {
            let remote = self.github.fetch_remote(repository).await;
            let remote = remote.map_err(EffectError::from)?;
            let remote = LfsRemote::new(&remote.url, remote.token)?;
            let ask = || self.client.request_addresses(&remote, batch);
            let answer = webclient::retry_read(SERVICE, LfsError::is_outage, ask).await?;
            Ok::<_, ContentFailure>((remote, answer))
        };
        let (remote, mut answer) = failpoint::around("reporter.lfs.batch", Box::pin(asking)).await?;
        let addresses = batch.iter().map(|pointer| {
            let address = answer.remove(&pointer.oid);
            (pointer.clone(), address.unwrap_or(Err(LfsRefusal::NoDownload)))
        });
        Ok((remote, addresses.collect()))
    }

    async fn download(
        &self,
        mirror: &Arc<Path>,
        remote: &LfsRemote,
        pointer: &LfsPointer,
        address: Result<LfsAddress, LfsRefusal>,
    ) -> Result<(), ContentFailure> {
        let address = address?;
        let receive = || self.receive(mirror, remote, pointer, &address);
        let receiving = webclient::retry_read(SERVICE, ContentFailure::is_outage, receive);
        failpoint::around("reporter.lfs.download", Box::pin(receiving)).await
    }

    async fn receive(
        &self,
        mirror: &Arc<Path>,
        remote: &LfsRemote,
        pointer: &LfsPointer,
        address: &LfsAddress,
    ) -> Result<(), ContentFailure> {
        let mut content = self.client.open(remote, address).await?;
        let (store, place, wanted) = (Arc::clone(&self.store), Arc::clone(mirror), pointer.clone());
        let begin = move || Ok::<_, EffectError>(store.receive(&place, &wanted));
        let mut receipt = run_blocking(begin).await?.map_err(LfsDefect::Disk)?;
        let mut buffer = Vec::new();
        while let Some(part) = content.next_part().await? {
            buffer.extend_from_slice(&part);
            if buffer.len() >= WRITE_AT {
                receipt = write_part(receipt, std::mem::take(&mut buffer)).await?;
            }
        }
        let receipt = write_part(receipt, buffer).await?;
        let finish = move || Ok::<_, EffectError>(receipt.finish());
        Ok(run_blocking(finish).await??)
    }
}

async fn write_part(mut receipt: LfsReceipt, part: Vec<u8>) -> Result<LfsReceipt, ContentFailure> {
    let write = move || Ok::<_, EffectError>(receipt.write(&part).map(|()| receipt));
    Ok(run_blocking(write).await??)
}
