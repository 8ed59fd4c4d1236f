//! Texts that GitHub keeps elsewhere, such as logs.

use domain::RepositoryName;

use super::{Client, Kind, Request, connect::anonymous_crab};
use crate::{Error, permissions::Access, transport};

impl Client {
    /// Reads a text that GitHub keeps elsewhere and redirects to: the last `keep` bytes of it. The credentials stay here.
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
        // The answer leads elsewhere, so none of the ways back of `exchange` would help.
        match Box::pin(self.attempt(&request)).await {
            Err(Error::Moved { to }) => {
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
