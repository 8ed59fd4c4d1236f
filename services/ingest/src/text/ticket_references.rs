//! Tickets that a ticket's text refers to: issues of GitHub on the same server, and tickets of the same Jira project.

use domain::{RepositoryName, TicketKey, text::truncate_bytes};

/// Most references of one text that are followed: each may cost a read.
pub(crate) const MOST_REFERENCES: usize = 5;

// Text that is searched, in bytes. A reference behind it is not followed.
const SEARCHED_BYTES: usize = 64 * 1024;

/// Place of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReferenceOrigin<'a> {
    pub(crate) ticket: &'a TicketKey,
    /// Repository of the work on the ticket; references without a server are on its server.
    pub(crate) repository: &'a RepositoryName,
    /// Host of that server's pages.
    pub(crate) host: Option<&'a str>,
}

/// Lists the tickets that a text refers to, in their order, without the ticket itself; at most [`MOST_REFERENCES`].
///
/// An issue is named by its address, as `acme/shop#12`, or in a ticket of GitHub as `#12`; a ticket of Jira by its key.
pub(crate) fn list_references(text: &str, origin: ReferenceOrigin<'_>) -> Vec<TicketKey> {
    let searched = truncate_bytes(text, SEARCHED_BYTES);
    let words = searched.split(|c: char| c.is_whitespace() || "()[]<>{}\"'`,;|".contains(c));
    let mut found: Vec<TicketKey> = Vec::new();
    for word in words {
        let word = word.trim_end_matches(['.', ':', '!', '?', '*', '_']);
        let word = word.trim_start_matches(['*', '_']);
        if let Some(ticket) = read_reference(word, origin)
            && ticket != *origin.ticket
            && !found.contains(&ticket)
        {
            found.push(ticket);
            if found.len() == MOST_REFERENCES {
                break;
            }
        }
    }
    found
}

fn read_reference(word: &str, origin: ReferenceOrigin<'_>) -> Option<TicketKey> {
    if word.contains("://") {
        return read_address(word, origin);
    }
    match origin.ticket {
        TicketKey::Jira {
            instance, project, ..
        } => {
            let key = TicketKey::jira_on(instance.clone(), word).ok();
            let is_here =
                |key: &TicketKey| matches!(key, TicketKey::Jira { project: named, .. } if named == project);
            if let Some(key) = key.filter(is_here) {
                return Some(key);
            }
        }
        TicketKey::GitHub { repository, .. } | TicketKey::Discussion { repository, .. } => {
            if let Some(number) = word.strip_prefix('#') {
                return build_issue_key(repository.clone(), number);
            }
        }
        TicketKey::Folder { .. } => return None,
    }
    let (path, number) = word.split_once('#')?;
    let (owner, name) = path.split_once('/')?;
    let repository = RepositoryName::new(owner, name).ok()?;
    build_issue_key(repository.on(origin.repository.instance().cloned()), number)
}

/// Reads the address of an issue, such as `https://github.com/acme/shop/issues/12#issuecomment-1`.
fn read_address(address: &str, origin: ReferenceOrigin<'_>) -> Option<TicketKey> {
    let (scheme, rest) = address.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    if !matches!(scheme, "http" | "https") || !origin.host?.eq_ignore_ascii_case(host) {
        return None;
    }
    let path = path.split(['?', '#']).next()?;
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let [owner, name, "issues", number] = parts[..] else {
        return None;
    };
    let repository = RepositoryName::new(owner, name).ok()?;
    build_issue_key(repository.on(origin.repository.instance().cloned()), number)
}

fn build_issue_key(repository: RepositoryName, number: &str) -> Option<TicketKey> {
    let parsed: u64 = number.parse().ok()?;
    (parsed > 0 && parsed.to_string() == number).then_some(TicketKey::GitHub {
        repository,
        number: parsed,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list_keys(ticket: &str, text: &str) -> Vec<String> {
        let (ticket, repository) = (ticket.parse().unwrap(), "acme/shop".parse().unwrap());
        let origin = ReferenceOrigin {
            ticket: &ticket,
            repository: &repository,
            host: Some("github.com"),
        };
        list_references(text, origin)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn issues_are_named_by_address_or_number() {
        let (jira, issue) = ("jira:ENG-1", "github:acme/shop#1");
        for (ticket, text, expected) in [
            (
                jira,
                "see https://github.com/acme/shop/issues/12.",
                &["github:acme/shop#12"][..],
            ),
            (
                jira,
                "[log](https://github.com/acme/web/issues/7#issuecomment-9)",
                &["github:acme/web#7"],
            ),
            (
                jira,
                "as in acme/web#3, and (acme/web#4)",
                &["github:acme/web#3", "github:acme/web#4"],
            ),
            (
                jira,
                "after ENG-7 and OPS-2, like **ENG-8**",
                &["jira:ENG-7", "jira:ENG-8"],
            ),
            (jira, "#12 is a color here, ENG-1 is this ticket", &[]),
            (issue, "like #12 and #1", &["github:acme/shop#12"]),
            (issue, "ENG-7 is not of GitHub", &[]),
            (issue, "#012 #0 #12a x#3 a/b/c#4", &[]),
            (jira, "https://github.com.evil.example/acme/shop/issues/12", &[]),
            (jira, "https://github.com@evil.example/acme/shop/issues/12", &[]),
            (jira, "ftp://github.com/acme/shop/issues/12", &[]),
            (jira, "https://github.com/acme/shop/pull/12", &[]),
            (jira, "https://github.com/../shop/issues/12", &[]),
            ("folder:shop#1", "acme/shop#2", &[]),
        ] {
            assert_eq!(list_keys(ticket, text), expected, "{text}");
        }
    }

    #[test]
    fn references_are_bounded_and_distinct() {
        let text: String = (2..100).map(|number| format!("#{number} #{number} ")).collect();
        let expected: Vec<String> = (2..7)
            .map(|number| format!("github:acme/shop#{number}"))
            .collect();
        assert_eq!(list_keys("github:acme/shop#1", &text), expected);
        let far = format!("{}é#2", "é ".repeat(SEARCHED_BYTES));
        assert!(list_keys("github:acme/shop#1", &far).is_empty());
    }

    proptest! {
        #[test]
        fn fuzz_any_text_has_few_references(text in any::<String>()) {
            prop_assert!(list_keys("jira:ENG-1", &text).len() <= MOST_REFERENCES);
        }
    }
}
