//! Downloads of attachments, also from the host that stores the files of a site.

use reqwest::{RequestBuilder, Url};
use webclient::FileDownload;

use super::{JiraClient, RESOURCE};
use crate::{Error, JiraAttachment, answer::classify_refusal};

impl JiraClient {
    /// Path of an attachment's content below the base URL.
    pub(crate) fn attachment_path(&self, attachment: &JiraAttachment) -> Result<String, Error> {
        let bases = [self.0.base_url.as_str(), self.0.site_url.as_str()];
        self.dialect()
            .attachment(&attachment.id, &attachment.content, &bases)
    }

    /// Downloads a path, with retries; `None` above `most_bytes`.
    ///
    /// The site may redirect to the host that stores its files. The address there is its own permission, so that host
    /// gets no credentials, and a further redirect is refused.
    pub(crate) async fn download(&self, path: &str, most_bytes: usize) -> Result<Option<Vec<u8>>, Error> {
        let is_outage = |error: &Error| matches!(error, Error::Unavailable { .. });
        let attempt = || Box::pin(self.download_once(path, most_bytes));
        webclient::retry_read("jira", is_outage, attempt).await
    }

    async fn download_once(&self, path: &str, most_bytes: usize) -> Result<Option<Vec<u8>>, Error> {
        let name = "GET an attachment";
        let request = self.authorize(self.0.http.get(self.url(path)))?;
        let admitted = self.0.account.admit(RESOURCE, None).await;
        admitted.map_err(|retry_after| Error::HeldBack { retry_after })?;
        let FileDownload::Whole(answer) = webclient::download_file(request, most_bytes).await? else {
            return Ok(None);
        };
        let answer = match answer.header("location") {
            Some(location) if answer.status.is_redirection() => {
                let request = self.build_redirected(location)?;
                match webclient::download_file(request, most_bytes).await? {
                    FileDownload::Whole(answer) => answer,
                    FileDownload::TooLarge => return Ok(None),
                }
            }
            Some(_) | None => answer,
        };
        if answer.status.is_success() {
            Ok(Some(answer.body))
        } else {
            Err(classify_refusal(name, &answer))
        }
    }

    /// Request to the target of a redirect. Only the site itself gets the credentials.
    fn build_redirected(&self, location: &str) -> Result<RequestBuilder, Error> {
        let refuse = |detail: &str| Error::Rejected {
            detail: detail.to_owned(),
        };
        let base = Url::parse(&self.0.base_url).map_err(|_| refuse("the base URL is not a URL"))?;
        let target = base
            .join(location)
            .map_err(|_| refuse("an attachment redirects to no address"))?;
        // Without TLS others could read the file; the site itself has none where it is on this machine.
        if target.scheme() != "https" && target.scheme() != base.scheme() {
            return Err(refuse("an attachment redirects to an address without TLS"));
        }
        if target.origin() != base.origin() {
            return Ok(self.0.http.get(target));
        }
        // A page for login at the site would look like a text file.
        if target.path().contains("login") {
            return Err(Error::Unauthorized {
                check: "the account's access to attachments; the site asks for a login".to_owned(),
            });
        }
        self.authorize(self.0.http.get(target))
    }
}
