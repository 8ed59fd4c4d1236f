//! Reads with several parts: the pages of a list, the cached answer that GitHub confirms by its `ETag`, and the text,
//! such as a log, that it redirects to.

use domain::RepositoryName;
use parking_lot::MutexGuard;
use serde::de::DeserializeOwned;

use super::{GitHubClient, RepositoryRequest, RequestKind};
use crate::{
    Error,
    connection::GitHubCall,
    etag_cache::EtagCache,
    limits::ApiCaller,
    permissions::AccessKind,
    transport::{self, GitHubAnswer, PAGE},
};

impl GitHubClient {
    /// Reads a path below the repository's address with the cache of `ETag`s. An unchanged answer comes from
    /// memory and costs nothing of the rate limit.
    pub(crate) async fn get_again<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        path: &str,
    ) -> Result<T, Error> {
        self.exchange_parsed(repository, access, path, RequestKind::GetAgain)
            .await
    }

    /// Reads the pages of a list below the repository's address, at most `most` of them.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        path: &str,
        most: usize,
    ) -> Result<Vec<T>, Error> {
        self.list_pages((repository, access), path, most, RequestKind::Get(None))
            .await
    }

    /// Reads the pages of a list for a reader with the cache of `ETag`s, at most `most` of them.
    pub(crate) async fn list_again<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        path: &str,
        most: usize,
    ) -> Result<Vec<T>, Error> {
        self.list_pages((repository, AccessKind::Look), path, most, RequestKind::GetAgain)
            .await
    }

    async fn list_pages<T: DeserializeOwned>(
        &self,
        (repository, access): (&RepositoryName, AccessKind),
        path: &str,
        most: usize,
        kind: RequestKind<'_>,
    ) -> Result<Vec<T>, Error> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut entries = Vec::new();
        for page in 1..=most {
            let path = format!("{path}{sign}per_page={PAGE}&page={page}");
            let found: Vec<T> = self.exchange_parsed(repository, access, &path, kind).await?;
            let is_last = found.len() < PAGE;
            entries.extend(found);
            if is_last {
                break;
            }
        }
        Ok(entries)
    }

    /// Reads a path with the cached `ETag`. The cached body is used only after a 304 for this caller.
    pub(super) async fn read_again(&self, caller: &ApiCaller, path: &str) -> Result<GitHubAnswer, Error> {
        // `find` copies, so that the lock is free while the request runs.
        let known = self.kept().find(path);
        let Some((tag, body)) = known else {
            let answer = transport::send_call(caller, GitHubCall::Get(path)).await?;
            self.kept().keep(path, &answer);
            return Ok(answer);
        };
        let answer = transport::send_call(caller, GitHubCall::GetUnless(path, &tag)).await?;
        if answer.is_unchanged {
            return Ok(answer.with_body(body));
        }
        self.kept().keep(path, &answer);
        Ok(answer)
    }

    fn kept(&self) -> MutexGuard<'_, EtagCache> {
        self.0.kept.lock()
    }

    /// Follows GitHub's redirect to a text and reads its last `keep` bytes. The other host receives no
    /// credentials.
    pub(crate) async fn get_redirected(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        path: &str,
        keep: usize,
    ) -> Result<String, Error> {
        let request = RepositoryRequest {
            repository,
            access,
            path,
            kind: RequestKind::Get(None),
        };
        // `exchange` would treat the expected redirect as a move of the repository, so the request is sent
        // without it.
        match Box::pin(self.attempt(&request)).await {
            Err(Error::Moved { to }) => {
                let connection = &self.0.places.own().connection;
                let target = connection.resolve_location(&to)?;
                // A log may contain confidential text. Plain HTTP is accepted only where the API itself has
                // no TLS.
                let is_plain = target.scheme() == "http" && !self.0.api_url.starts_with("http://");
                if is_plain {
                    return Err(Error::Rejected {
                        detail: "GitHub redirects to an address without TLS".to_owned(),
                    });
                }
                Box::pin(transport::fetch_tail(connection, target, keep)).await
            }
            Ok(_) => Err(Error::Malformed {
                detail: format!("GET {path} led nowhere"),
            }),
            Err(error) => Err(error),
        }
    }
}
