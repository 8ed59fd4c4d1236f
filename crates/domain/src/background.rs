//! What a team's trackers know of a ticket beside its own text. All of it is text of others: data, never an order.

use serde::{Deserialize, Serialize};

use crate::{CommitAuthor, PullRequestStatus, acceptance_criteria};

/// At most so many criteria count.
const CRITERIA: usize = 20;

/// What was found when work was asked for. It is read once and kept with the job, so every look at it is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Background {
    /// Pull requests that are over and name the ticket, the latest first; at most 3.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierPullRequest>,
    /// Tickets that this one is linked with; at most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<LinkedTicket>,
    /// Unfinished tickets of the same project with a similar title, the most similar first; at most 5, for a triage 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarTicket>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<BackgroundPart>,
    /// The person who asked for the work, as commits name them; absent: no account of a GitHub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<CommitAuthor>,
}

/// A part of the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundPart {
    /// Earlier pull requests.
    Earlier,
    /// Linked tickets.
    Linked,
    /// Similar tickets.
    Similar,
}

/// A pull request that was meant for the ticket and is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierPullRequest {
    /// Its number in the ticket's repository.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its head branch.
    pub branch: String,
    /// Login of its author.
    pub author: String,
    /// Whether an account of ours made it.
    #[serde(default)]
    pub is_ours: bool,
    /// Merged or closed.
    pub status: PullRequestStatus,
    /// What people said of it, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<ReviewRemark>,
}

/// What a person said of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRemark {
    /// Login of who said it.
    pub author: String,
    /// The place that it is about, `path:line` or `path`; empty: the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What.
    pub text: String,
}

/// A ticket that another one is linked with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedTicket {
    /// Its key, as people write it.
    pub key: String,
    /// What it is to the other one, in the tracker's words: `is blocked by`, `parent` …
    pub relation: String,
    /// Its title.
    pub summary: String,
    /// Where it is in its workflow.
    pub status: String,
    /// The beginning of its description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// An unfinished ticket with a similar title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimilarTicket {
    /// Its key, as people write it.
    pub key: String,
    /// Its title.
    pub summary: String,
    /// Where it is in its workflow.
    pub status: String,
}

/// A text whose white space does not matter.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Background {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The names of tickets that this one may repeat.
    pub fn tickets(&self) -> Vec<&str> {
        let linked = self.linked.iter().map(|ticket| ticket.key.as_str());
        let similar = self.similar.iter().map(|ticket| ticket.key.as_str());
        linked.chain(similar).collect()
    }

    /// The acceptance criteria of the linked tickets; at most 20.
    pub fn criteria(&self) -> Vec<String> {
        let listed = self
            .linked
            .iter()
            .flat_map(|ticket| acceptance_criteria(&ticket.description));
        listed.take(CRITERIA).collect()
    }

    /// Whether a linked ticket has these words; white space does not matter.
    pub fn says(&self, quote: &str) -> bool {
        let quote = plain(quote);
        let said = |ticket: &LinkedTicket| plain(&format!("{}\n{}", ticket.summary, ticket.description));
        !quote.is_empty() && self.linked.iter().any(|ticket| said(ticket).contains(&quote))
    }

    /// Whether an earlier pull request was closed without a merge.
    pub fn was_refused(&self) -> bool {
        let mut earlier = self.earlier.iter();
        earlier.any(|earlier| earlier.status == PullRequestStatus::Closed)
    }

    /// The names of merged pull requests that may have done the work already, `#12`.
    pub fn merged(&self) -> Vec<String> {
        let merged = self.earlier.iter();
        merged
            .filter(|earlier| earlier.status == PullRequestStatus::Merged)
            .map(|earlier| format!("#{}", earlier.number))
            .collect()
    }
}

/// How much two titles have in common: the shared part of the words of the shorter one, in percent. Words that stand in
/// nearly every title do not count, nor do cases.
pub fn likeness(one: &str, other: &str) -> usize {
    let (one, other) = (title_words(one), title_words(other));
    let shorter = one.len().min(other.len());
    let shared = one.iter().filter(|word| other.contains(word)).count();
    match shorter {
        // One word in common is chance.
        0 | 1 => 0,
        shorter => shared * 100 / shorter,
    }
}

/// The words of a title that say what it is about, in small letters, each once, in their order.
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
    fn titles_are_alike_by_the_words_that_say_something() {
        let cart = "Cart total ignores the quantity";
        assert_eq!(likeness(cart, "The total of the cart ignores quantity"), 100);
        assert_eq!(likeness(cart, "Cart: wrong total with a quantity above 1"), 75);
        assert_eq!(likeness(cart, "The login is not possible"), 0);
        assert_eq!(likeness("Cart", "Cart"), 0, "one word is chance");
        assert_eq!(likeness("", cart), 0);
    }

    #[test]
    fn only_what_was_merged_may_have_done_the_work() {
        let earlier = |number, status| EarlierPullRequest {
            number,
            title: String::new(),
            branch: String::new(),
            author: String::new(),
            is_ours: false,
            status,
            said: Vec::new(),
        };
        let known = Background {
            earlier: vec![
                earlier(3, PullRequestStatus::Closed),
                earlier(4, PullRequestStatus::Merged),
            ],
            ..Background::default()
        };
        assert_eq!(known.merged(), ["#4"]);
    }
}
