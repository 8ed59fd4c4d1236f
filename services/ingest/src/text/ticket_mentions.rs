//! Tickets that a pull request names.

use domain::{RepositoryName, RepositoryRules, TicketKey};

// Limit of issues per pull request: each costs a read.
const MOST: usize = 3;
// Keywords by which GitHub closes issues (docs.github.com, "Linking a pull request to an issue").
const CLOSING: [&str; 9] = [
    "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved",
];

/// Texts of a pull request that may name a ticket.
pub(crate) struct PullRequestTexts<'a> {
    pub(crate) title: &'a str,
    pub(crate) branch: &'a str,
    pub(crate) body: &'a str,
}

/// Ticket of a pull request: a key of the rules' Jira project in title or branch; else an issue of the repository, by `#12`
/// in title or branch, or by a closing keyword.
pub(crate) fn find_named_ticket(
    texts: &PullRequestTexts<'_>,
    repository: &RepositoryName,
    rules: &RepositoryRules,
) -> Option<TicketKey> {
    let places = [texts.title, texts.branch];
    let number = places
        .into_iter()
        .find_map(|text| find_issue_numbers(text).next());
    find_jira_ticket(&places, rules)
        .or_else(|| number.map(|number| build_issue_key(repository, number)))
        .or_else(|| {
            let all = places.into_iter().chain([texts.body]);
            all.flat_map(|text| list_closed_issues(text, repository)).next()
        })
}

/// Ticket of the rules' Jira project that one of these texts names.
pub(crate) fn find_jira_ticket(texts: &[&str], rules: &RepositoryRules) -> Option<TicketKey> {
    let project = rules.jira.project_key.as_str();
    if project.is_empty() {
        return None;
    }
    let prefix = format!("{project}-");
    // A branch may contain the key in lower case.
    let texts = texts.iter().map(|text| text.to_uppercase());
    texts.into_iter().find_map(|text| {
        text.match_indices(&prefix).find_map(|(at, _)| {
            let digits: String = text[at + prefix.len()..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            let key = format!("{prefix}{digits}");
            let is_word = github::is_key_mentioned(&text, &key);
            let ticket = TicketKey::jira_on(rules.jira.instance.clone(), &key).ok();
            ticket.filter(|_| is_word)
        })
    })
}

/// Issues of the repository that a text closes by keyword: `Fixes #7`, `closes acme/shop#7`.
pub(crate) fn list_closed_issues(text: &str, repository: &RepositoryName) -> Vec<TicketKey> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let closes = |word: &str| {
        let word = word.trim_end_matches(':').to_ascii_lowercase();
        CLOSING.contains(&word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()))
    };
    let number = |word: &str| {
        let (home, number) = word.split_once('#')?;
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        let is_here = home.is_empty() || home.eq_ignore_ascii_case(&repository.path());
        let ends = number[digits.len()..].chars().all(|c| c.is_ascii_punctuation());
        digits.parse().ok().filter(|_| is_here && ends)
    };
    let mut found: Vec<TicketKey> = Vec::new();
    for pair in words.windows(2) {
        if closes(pair[0])
            && let Some(number) = number(pair[1])
        {
            let ticket = build_issue_key(repository, number);
            if !found.contains(&ticket) {
                found.push(ticket);
            }
        }
    }
    found.truncate(MOST);
    found
}

fn build_issue_key(repository: &RepositoryName, number: u64) -> TicketKey {
    TicketKey::GitHub {
        repository: repository.clone(),
        number,
    }
}

/// Numbers after `#` that form separate words. `shop#12` refers to another repository.
fn find_issue_numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.match_indices('#').filter_map(|(at, _)| {
        let digits = text[at + 1..].split(|c: char| !c.is_ascii_digit()).next()?;
        let number: u64 = digits.parse().ok().filter(|number| *number > 0)?;
        let before = text[..at].chars().next_back();
        let after = text[at + 1 + digits.len()..].chars().next();
        let is_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '#')
            && !after.is_some_and(|c| c.is_alphanumeric() || c == '_');
        is_word.then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_request_names_project_key_or_issue() {
        let repository: RepositoryName = "acme/shop".parse().unwrap();
        let mut rules = RepositoryRules::default();
        rules.jira.project_key = "ENG".to_owned();
        let named = |title: &str, branch: &str, body: &str| {
            let found = find_named_ticket(&PullRequestTexts { title, branch, body }, &repository, &rules);
            found.map(|ticket| ticket.short())
        };
        let is = |key: &str| Some(key.to_owned());
        assert_eq!(named("ENG-12: Round", "x", ""), is("ENG-12"));
        assert_eq!(named("Round", "mia/eng-12-round", "Fixes #3"), is("ENG-12"));
        assert_eq!(named("XENG-12", "x", ""), None);
        assert_eq!(named("Round (#7)", "x", ""), is("acme/shop#7"));
        assert_eq!(named("Round", "#7-round", ""), is("acme/shop#7"));
        assert_eq!(
            named("Round", "x", "As in #3.\n\nFixes: #7, for good"),
            is("acme/shop#7")
        );
        assert_eq!(named("Round", "x", "See #7"), None, "only spoken of");
        assert_eq!(named("other/shop#7", "v#7a", "prefixes #7"), None);
    }

    #[test]
    fn closing_keywords_name_issues() {
        let repository: RepositoryName = "acme/shop".parse().unwrap();
        let numbers = |text: &str| -> Vec<u64> {
            let number = |ticket: &TicketKey| match ticket {
                TicketKey::GitHub { number, .. } => *number,
                other => panic!("{other}"),
            };
            list_closed_issues(text, &repository).iter().map(number).collect()
        };
        assert_eq!(
            numbers("Fixes #7, closes: acme/shop#8.\n\nResolves #7 (FIXED #9)"),
            [7, 8, 9]
        );
        assert_eq!(
            numbers("See #7. Fixes other/repo#8, fixes #9x, fix 10, prefixes #11"),
            [] as [u64; 0]
        );
        assert_eq!(numbers("fix #1 fix #2 fix #3 fix #4"), [1, 2, 3]);
    }
}
