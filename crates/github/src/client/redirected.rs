//! Texts that GitHub serves from another host, such as logs.

use domain::RepositoryName;

use super::{Client, Kind, Request, connect::anonymous_crab};
use crate::{Error, permissions::Access, transport};

impl Client {
    /// Follows GitHub's redirect to a text and reads its last `keep` bytes. The other host receives no
    /// credentials.
    pub(crate) async fn get_redirected(
        &self,
        repository: &RepositoryName,
        access: Access,
        path: &str,
        keep: usize,
    ) -> Result<String, Error> {
        let request = Request {
            repository,
            access,
            path,
            kind: Kind::Get(None),
        };
        // `exchange` would treat the expected redirect as a move of the repository, so the request is sent
        // without it.
        match Box::pin(self.attempt(&request)).await {
            Err(Error::Moved { to }) => {
                // A log may contain confidential text. Plain HTTP is accepted only where the API itself has
                // no TLS.
                let is_plain = to.starts_with("http://") && !self.0.api_url.starts_with("http://");
                if is_plain {
                    return Err(Error::Rejected {
                        detail: "GitHub redirects to an address without TLS".to_owned(),
                    });
                }
                transport::fetch(&anonymous_crab(&self.0.api_url)?, &to, keep).await
            }
            Ok(_) => Err(Error::Malformed {
                detail: format!("GET {path} led nowhere"),
            }),
            Err(error) => Err(error),
        }
    }
}
