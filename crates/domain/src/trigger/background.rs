//! Context that a team's trackers have about a ticket in addition to its text. All of it is text of other
//! people: data, never an instruction.

use serde::{Deserialize, Serialize};

use crate::{
    identity::author::CommitAuthor, text::criteria::acceptance_criteria,
    trigger::pull_request::PullRequestStatus,
};

/// Maximum number of acceptance criteria that count.
const CRITERIA: usize = 20;

/// Related pull requests and tickets at the time of the request. Ingest reads them once and pins them with
/// the job, so every later step sees the same context.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TicketBackground {
    /// Finished pull requests that name the ticket, the latest first; at most 3.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierPullRequest>,
    /// Tickets that are linked with this one; at most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<LinkedTicket>,
    /// Tickets that the text of this one refers to; at most 5. Nothing in them asks for anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub referenced: Vec<LinkedTicket>,
    /// Unfinished tickets of the same project with a similar title, the most similar first; at most 5, for a
    /// triage 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarTicket>,
    /// Parts that ingest failed to read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<BackgroundPart>,
    /// The person who asked for the work, as author of commits; absent: no address of the person is
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<CommitAuthor>,
}

/// A part of the background that is read by its own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundPart {
    /// Earlier pull requests that name the ticket.
    Earlier,
    /// Tickets that are linked with this one.
    Linked,
    /// Unfinished tickets with a similar title.
    Similar,
}

/// A finished pull request that was opened for the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierPullRequest {
    /// Its number in the repository of the ticket.
    pub number: u64,
    /// The title of the pull request.
    pub title: String,
    /// Name of its head branch.
    pub branch: String,
    /// Login of its author.
    pub author: String,
    /// True when an account of Journeyman opened it.
    #[serde(default)]
    pub is_ours: bool,
    /// Final status: merged or closed.
    pub status: PullRequestStatus,
    /// Remarks of people on it, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<ReviewRemark>,
}

/// A person's remark on a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRemark {
    /// Login of the author.
    pub author: String,
    /// The place that the remark is about, `path:line` or `path`; empty: the whole pull request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// The text of the remark.
    pub text: String,
}

/// A ticket that is linked with another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedTicket {
    /// Its key in the form that the tracker displays.
    pub key: String,
    /// Its relation to the other ticket, in the tracker's words: `is blocked by`, `parent` …
    pub relation: String,
    /// The title of the linked ticket.
    pub summary: String,
    /// Name of its workflow status.
    pub status: String,
    /// The beginning of its description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// An unfinished ticket with a similar title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimilarTicket {
    /// Its key in the form that the tracker displays.
    pub key: String,
    /// The title of the ticket.
    pub summary: String,
    /// Name of its workflow status.
    pub status: String,
}

/// Replaces each run of white space by one space.
fn collapse_white_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl TicketBackground {
    /// Returns true when the background contains nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the keys of tickets that this ticket may duplicate.
    pub fn tickets(&self) -> Vec<&str> {
        let linked = self.linked.iter().map(|ticket| ticket.key.as_str());
        let similar = self.similar.iter().map(|ticket| ticket.key.as_str());
        linked.chain(similar).collect()
    }

    /// Returns the acceptance criteria of the linked tickets; at most 20.
    pub fn criteria(&self) -> Vec<String> {
        let listed = self
            .linked
            .iter()
            .flat_map(|ticket| acceptance_criteria(&ticket.description));
        listed.take(CRITERIA).collect()
    }

    /// Returns true when a linked ticket contains the quotation; white space does not matter.
    pub fn contains_quote(&self, quote: &str) -> bool {
        let quote = collapse_white_space(quote);
        let text = |ticket: &LinkedTicket| {
            collapse_white_space(&format!("{}\n{}", ticket.summary, ticket.description))
        };
        !quote.is_empty() && self.linked.iter().any(|ticket| text(ticket).contains(&quote))
    }

    /// Returns true when an earlier pull request was closed without a merge.
    pub fn was_refused(&self) -> bool {
        let mut earlier = self.earlier.iter();
        earlier.any(|earlier| earlier.status == PullRequestStatus::Closed)
    }

    /// Returns the names, such as `#12`, of merged pull requests that may have done the work already.
    pub fn merged(&self) -> Vec<String> {
        let merged = self.earlier.iter();
        merged
            .filter(|earlier| earlier.status == PullRequestStatus::Merged)
            .map(|earlier| format!("#{}", earlier.number))
            .collect()
    }
}

/// Similarity of two titles in percent: the share of the shorter title's words that the other title contains.
///
/// Words that occur in nearly every title do not count. Letter case does not matter.
// The shorter title is the measure, because a detailed title still repeats a short one.
pub fn compare_titles(one: &str, other: &str) -> usize {
    let (one, other) = (title_words(one), title_words(other));
    let shorter = one.len().min(other.len());
    let shared = one.iter().filter(|word| other.contains(word)).count();
    match shorter {
        // A single common word is chance.
        0 | 1 => 0,
        shorter => shared * 100 / shorter,
    }
}

/// Returns the significant words of a title in lower case, each once, in their order.
pub fn title_words(title: &str) -> Vec<String> {
    const COMMON: [&str; 32] = [
        "a", "add", "an", "and", "are", "as", "at", "be", "bug", "can", "cannot", "does", "fix", "for",
        "from", "in", "is", "issue", "it", "no", "not", "of", "on", "or", "should", "that", "the", "to",
        "when", "while", "with", "wrong",
    ];
    let mut words: Vec<String> = Vec::new();
    for word in title.split(|c: char| !c.is_alphanumeric()) {
        let word = word.to_lowercase();
        if word.chars().count() > 1 && !COMMON.contains(&word.as_str()) && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_similarity_ignores_common_words() {
        let cart = "Cart total ignores the quantity";
        assert_eq!(
            compare_titles(cart, "The total of the cart ignores quantity"),
            100
        );
        assert_eq!(
            compare_titles(cart, "Cart: wrong total with a quantity above 1"),
            75
        );
        assert_eq!(compare_titles(cart, "The login is not possible"), 0);
        assert_eq!(compare_titles("Cart", "Cart"), 0, "one word is chance");
        assert_eq!(compare_titles("", cart), 0);
    }

    #[test]
    fn closed_pull_request_counts_as_unmerged() {
        let earlier = |number, status| EarlierPullRequest {
            number,
            title: String::new(),
            branch: String::new(),
            author: String::new(),
            is_ours: false,
            status,
            said: Vec::new(),
        };
        let known = TicketBackground {
            earlier: vec![
                earlier(3, PullRequestStatus::Closed),
                earlier(4, PullRequestStatus::Merged),
            ],
            ..TicketBackground::default()
        };
        assert_eq!(known.merged(), ["#4"]);
    }
}
