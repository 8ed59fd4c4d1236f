//! Texts that GitHub serves from another host, such as logs.

use domain::RepositoryName;

use super::{GitHubClient, RepositoryRequest, RequestKind};
use crate::{Error, permissions::AccessKind, transport};

impl GitHubClient {
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
