//! Files that people attach to issues, pull requests, discussions and comments.

use domain::RepositoryName;
use reqwest::Url;
use serde_json::{Value, json};

use crate::{
    Error,
    client::{FileLocation, GitHubClients},
    permissions::AccessKind,
};

// GitHub signs the addresses of files in private repositories only in rendered texts.
const RENDERED: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { issueOrPullRequest(number: $number) { __typename \
    ... on Issue { bodyHTML comments(last: 100) { nodes { bodyHTML } } } \
    ... on PullRequest { bodyHTML comments(last: 100) { nodes { bodyHTML } } } } } }";
const RENDERED_DISCUSSION: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { discussion(number: $number) { \
    bodyHTML comments(last: 100) { nodes { bodyHTML replies(last: 50) { nodes { bodyHTML } } } } } } }";
// Shorter parts of an address may be in any other address, too.
const SHORTEST_ID: usize = 8;

/// Kind of the thread in which files are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachmentThread {
    /// Issue or pull request.
    Issue,
    /// Discussion.
    Discussion,
}

/// Reader of attached files; cheap to clone.
#[derive(Clone, Debug)]
pub struct AttachmentReader {
    pub(crate) clients: GitHubClients,
}

impl AttachmentReader {
    /// True for an address at which the GitHub of this repository has attached files. No other address is ever read.
    pub fn is_readable(&self, repository: &RepositoryName, address: &str) -> bool {
        let website = self.clients.of(repository).and_then(|client| client.website());
        match (website, Url::parse(address)) {
            (Ok(website), Ok(address)) => {
                let is_own = address.origin() == website.origin();
                match FileLocation::of(&address, &website) {
                    Some(FileLocation::Attachment) => true,
                    // Other paths of the website are pages, not files.
                    Some(FileLocation::Storage) => !is_own,
                    None => false,
                }
            }
            (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
        }
    }

    /// Reads the content at an address; `None` when it has more than `most_bytes`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist or is visible in a rendered text only, [`Error::Rejected`] for an
    /// address that is not GitHub's.
    pub async fn attachment(
        &self,
        repository: &RepositoryName,
        address: &str,
        most_bytes: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        let address = Url::parse(address).map_err(|_| Error::Rejected {
            detail: "the address of an attachment is not a URL".to_owned(),
        })?;
        self.clients
            .of(repository)?
            .download(repository, &address, most_bytes)
            .await
    }

    /// Reads the addresses of GitHub in the rendered texts of a thread. Those of private files are signed for some minutes.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn rendered_addresses(
        &self,
        repository: &RepositoryName,
        number: u64,
        thread: AttachmentThread,
    ) -> Result<Vec<String>, Error> {
        let query = match thread {
            AttachmentThread::Issue => RENDERED,
            AttachmentThread::Discussion => RENDERED_DISCUSSION,
        };
        let client = self.clients.of(repository)?;
        let variables = json!({ "number": number });
        let data = client
            .query(repository, AccessKind::Look, query, variables)
            .await?;
        let mut found = Vec::new();
        collect_addresses(&data, &mut found);
        let website = client.website()?;
        found.retain(|address| is_of_github(address, &website));
        Ok(found)
    }
}

/// True for an address at which GitHub has files. A comment may link to another host with the id of an attachment in the
/// path, which would take the place of the attachment.
fn is_of_github(address: &str, website: &Url) -> bool {
    Url::parse(address).is_ok_and(|address| FileLocation::of(&address, website).is_some())
}

/// Finds the rendered address of a file by the id at the end of its written address.
pub fn find_rendered_address<'a>(address: &str, rendered: &'a [String]) -> Option<&'a str> {
    let written = Url::parse(address).ok()?;
    let id = written.path_segments()?.next_back()?.to_owned();
    if id.len() < SHORTEST_ID {
        return None;
    }
    let has_id = |text: &&String| {
        let Ok(url) = Url::parse(text) else { return false };
        url.path().contains(&id) && url.path() != written.path()
    };
    rendered.iter().find(has_id).map(String::as_str)
}

/// Collects the values of `src` and `href` in all rendered texts.
fn collect_addresses(data: &Value, found: &mut Vec<String>) {
    match data {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(html) if name == "bodyHTML" => collect_from_html(html, found),
                    Some(_) | None => collect_addresses(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_addresses(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect_from_html(html: &str, found: &mut Vec<String>) {
    for name in ["src=\"", "href=\""] {
        for (at, _) in html.match_indices(name) {
            let value = html[at + name.len()..].split('"').next().unwrap_or_default();
            found.push(value.replace("&amp;", "&"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_other_hosts_are_left_out() {
        let website = Url::parse("https://github.com").unwrap();
        for (address, is_kept) in [
            (
                "https://private-user-images.githubusercontent.com/1/2-0a1b2c3d-ee.png?jwt=a",
                true,
            ),
            ("https://github.com/user-attachments/files/1/trace.log", true),
            ("https://evil.example/0a1b2c3d-ee", false),
            ("/relative/0a1b2c3d-ee", false),
        ] {
            assert_eq!(is_of_github(address, &website), is_kept, "{address}");
        }
    }

    #[test]
    fn signed_address_is_found_by_id() {
        let data = json!({"repository": {"issueOrPullRequest": {
            "bodyHTML": "<p><a href=\"https://a.example/x\"><img src=\"https://private-user-images.githubusercontent.com/1/2-0a1b2c3d-ee.png?jwt=a&amp;b=c\" alt=\"x\"></a></p>",
            "comments": {"nodes": [{"bodyHTML": "<img src=\"https://b.example/y.png\">"}]}
        }}});
        let mut found = Vec::new();
        collect_addresses(&data, &mut found);
        assert_eq!(found.len(), 3, "{found:?}");
        let signed = find_rendered_address("https://github.com/user-attachments/assets/0a1b2c3d-ee", &found);
        assert_eq!(
            signed,
            Some("https://private-user-images.githubusercontent.com/1/2-0a1b2c3d-ee.png?jwt=a&b=c")
        );
        for other in [
            "https://github.com/user-attachments/assets/ffffffff-ee",
            "https://github.com/user-attachments/assets/png",
            "not an address",
        ] {
            assert_eq!(find_rendered_address(other, &found), None, "{other}");
        }
    }
}
