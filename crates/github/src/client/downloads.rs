//! Downloads of files that people attach to texts. Only hosts of GitHub itself are read, and only its website gets the
//! token.

use std::time::Duration;

use domain::RepositoryName;
use reqwest::Url;
use secrecy::ExposeSecret as _;
use webclient::{FileDownload, ServiceAnswer, ServiceRefusal};

use super::GitHubClient;
use crate::{Error, permissions::AccessKind};

// The website has no headers with a time to wait.
const RATE_LIMIT_WAIT: Duration = Duration::from_secs(60);
// Hosts at which github.com stores what people upload.
const STORAGE_SUFFIX: &str = ".githubusercontent.com";
const BUCKET_PREFIX: &str = "github-production-";
const BUCKET_SUFFIX: &str = ".s3.amazonaws.com";
const NAME: &str = "GET an attachment";

/// Place of a file, which decides about the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLocation {
    /// Path of an attachment at the website. It takes the token and may redirect.
    Attachment,
    /// Address whose signature is its permission, or a public one.
    Storage,
}

impl FileLocation {
    /// Location of an address, for a website; `None` for an address that is not GitHub's.
    pub(crate) fn of(address: &Url, website: &Url) -> Option<Self> {
        if !is_protected(address, website) || !address.username().is_empty() || address.password().is_some() {
            return None;
        }
        if address.origin() == website.origin() {
            let is_attachment = is_attachment_path(address.path());
            return Some(if is_attachment {
                Self::Attachment
            } else {
                Self::Storage
            });
        }
        is_storage_host(address, website).then_some(Self::Storage)
    }
}

/// True for a connection that is as protected as that of the website.
fn is_protected(address: &Url, website: &Url) -> bool {
    address.scheme() == "https" || (address.scheme() == "http" && website.scheme() == "http")
}

fn is_storage_host(address: &Url, website: &Url) -> bool {
    let (Some(host), Some(web)) = (address.domain(), website.domain()) else {
        return false;
    };
    // Enterprise Server serves media at subdomains.
    let is_subdomain = host.strip_suffix(web).is_some_and(|sub| sub.ends_with('.'));
    is_subdomain || (web == "github.com" && host.ends_with(STORAGE_SUFFIX))
}

/// True for the target of a redirect at which GitHub stores files.
fn is_redirect_target(address: &Url, website: &Url) -> bool {
    let host = address.domain().unwrap_or_default();
    let is_bucket = website.domain() == Some("github.com")
        && host.starts_with(BUCKET_PREFIX)
        && host.ends_with(BUCKET_SUFFIX);
    is_protected(address, website) && (is_bucket || FileLocation::of(address, website).is_some())
}

/// True for a path of the website under which attachments of texts are.
fn is_attachment_path(path: &str) -> bool {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match segments.as_slice() {
        ["user-attachments", "assets" | "files", _, ..] | ["storage", "user", _, ..] => true,
        // Addresses of earlier years name the repository.
        [_, _, "assets" | "files", number, _] => is_number(number),
        _ => false,
    }
}

impl GitHubClient {
    /// Address of the website, which is also that of git.
    pub(crate) fn website(&self) -> Result<Url, Error> {
        Url::parse(&self.0.git_url).map_err(|_| Error::Rejected {
            detail: "git_url is not a URL".to_owned(),
        })
    }

    /// Downloads a file, with retries; `None` above `most_bytes`.
    pub(crate) async fn download(
        &self,
        repository: &RepositoryName,
        address: &Url,
        most_bytes: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        let is_outage = |error: &Error| matches!(error, Error::Unavailable { .. });
        let attempt = || Box::pin(self.download_once(repository, address, most_bytes));
        webclient::retry_read("github", is_outage, attempt).await
    }

    async fn download_once(
        &self,
        repository: &RepositoryName,
        address: &Url,
        most_bytes: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        let website = self.website()?;
        let location = FileLocation::of(address, &website).ok_or_else(refuse_address)?;
        let connection = &self.0.places.own().connection;
        let request = connection.request_elsewhere(address.clone());
        let request = match location {
            FileLocation::Attachment => {
                let token = self.0.places.secret(repository, AccessKind::Look).await?;
                request.bearer_auth(token.expose_secret())
            }
            FileLocation::Storage => request,
        };
        let FileDownload::Whole(answer) = webclient::download_file(request, most_bytes).await? else {
            return Ok(None);
        };
        let answer = match answer.header("location") {
            Some(to) if answer.status.is_redirection() => {
                let target = address.join(to).map_err(|_| refuse_address())?;
                if location != FileLocation::Attachment || !is_redirect_target(&target, &website) {
                    return Err(refuse_address());
                }
                let request = connection.request_elsewhere(target);
                match webclient::download_file(request, most_bytes).await? {
                    FileDownload::Whole(answer) => answer,
                    FileDownload::TooLarge => return Ok(None),
                }
            }
            Some(_) | None => answer,
        };
        read_file(answer).map(Some)
    }
}

fn refuse_address() -> Error {
    Error::Rejected {
        detail: "the address of an attachment is not GitHub's".to_owned(),
    }
}

fn read_file(answer: ServiceAnswer) -> Result<Vec<u8>, Error> {
    let missing = || Error::NotFound {
        what: NAME.to_owned(),
    };
    if answer.status.is_success() {
        // The website answers with a page where it has no file for the account. GitHub serves no attachment as a page.
        let is_page = answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"));
        return if is_page { Err(missing()) } else { Ok(answer.body) };
    }
    let detail = format!("{NAME} answered {}", answer.status.as_u16());
    Err(match answer.refusal(NAME) {
        ServiceRefusal::Unauthorized | ServiceRefusal::NotFound => missing(),
        ServiceRefusal::Forbidden => Error::Forbidden { detail, needs: None },
        ServiceRefusal::RateLimited => Error::RateLimited {
            retry_after: RATE_LIMIT_WAIT,
        },
        ServiceRefusal::Failed(error) => error.into(),
        ServiceRefusal::Conflict | ServiceRefusal::Rejected => Error::Rejected { detail },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(address: &str, website: &str) -> Option<FileLocation> {
        FileLocation::of(&Url::parse(address).unwrap(), &Url::parse(website).unwrap())
    }

    #[test]
    fn only_hosts_of_github_are_read() {
        use FileLocation::{Attachment, Storage};
        let cases = [
            (
                "https://github.com/user-attachments/assets/0a1b",
                Some(Attachment),
            ),
            (
                "https://github.com/user-attachments/files/12/trace.log",
                Some(Attachment),
            ),
            (
                "https://github.com/acme/shop/files/12/trace.log",
                Some(Attachment),
            ),
            ("https://github.com/acme/shop/assets/12/0a1b", Some(Attachment)),
            ("https://github.com/acme/shop/blob/main/x.png", Some(Storage)),
            (
                "https://private-user-images.githubusercontent.com/1/2-0a1b.png?jwt=x",
                Some(Storage),
            ),
            ("https://user-images.githubusercontent.com/1/2.png", Some(Storage)),
            ("http://github.com/user-attachments/assets/0a1b", None),
            (
                "https://github.com.evil.example/user-attachments/assets/0a1b",
                None,
            ),
            ("https://evil.example/user-attachments/assets/0a1b", None),
            ("https://x:y@github.com/user-attachments/assets/0a1b", None),
            ("https://github.com:8443/user-attachments/assets/0a1b", None),
            ("https://githubusercontent.com.evil.example/1", None),
            ("https://github-production-user-asset-1.s3.amazonaws.com/1", None),
            ("file:///etc/passwd", None),
            ("http://169.254.169.254/latest", None),
        ];
        for (address, expected) in cases {
            assert_eq!(locate(address, "https://github.com"), expected, "{address}");
        }
        let own = "https://ghe.example";
        assert_eq!(
            locate("https://media.ghe.example/user/1/files/0a1b", own),
            Some(Storage)
        );
        assert_eq!(
            locate("https://ghe.example/storage/user/1/files/0a1b", own),
            Some(Attachment)
        );
        assert_eq!(locate("https://evilghe.example/storage/user/1", own), None);
        assert_eq!(
            locate("https://user-images.githubusercontent.com/1/2.png", own),
            None
        );
    }

    #[test]
    fn redirect_may_lead_to_bucket() {
        let website = Url::parse("https://github.com").unwrap();
        let leads = |address: &str| is_redirect_target(&Url::parse(address).unwrap(), &website);
        assert!(leads(
            "https://github-production-user-asset-6210df.s3.amazonaws.com/1?X-Amz-Signature=a"
        ));
        assert!(leads("https://objects.githubusercontent.com/1?sig=a"));
        assert!(!leads("https://other.s3.amazonaws.com/1"));
        assert!(!leads(
            "http://github-production-user-asset-6210df.s3.amazonaws.com/1"
        ));
        assert!(!leads("https://evil.example/1"));
    }
}
