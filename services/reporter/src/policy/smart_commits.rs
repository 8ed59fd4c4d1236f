//! Detection of closing keywords (GitHub) and smart commits (Jira) in a commit message.

use domain::{RepositoryName, TicketKey, commit_orders};

const CLOSING: [&str; 9] = [
    "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved",
];

/// Returns the first words that would act on a ticket, people, releases or checks. Closing the commit's own ticket is
/// allowed.
pub(crate) fn find_commit_order(
    message: &str,
    ticket: &TicketKey,
    repository: &RepositoryName,
) -> Option<String> {
    message
        .lines()
        .find_map(|line| find_closing_keyword(line, ticket, repository).or_else(|| smart_commit(line)))
        .or_else(|| commit_orders::find_order(message))
}

fn find_closing_keyword(line: &str, ticket: &TicketKey, repository: &RepositoryName) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // A keyword closes an issue only directly before its reference.
    words.windows(2).find_map(|pair| {
        let keyword = pair[0].trim_start_matches(|c: char| !c.is_alphanumeric());
        let keyword = keyword.strip_suffix(':').unwrap_or(keyword);
        let reference = pair[1].trim_matches(|c: char| matches!(c, '(' | ')' | ',' | '.' | ';' | '[' | ']'));
        let is_closing = CLOSING.iter().any(|known| known.eq_ignore_ascii_case(keyword));
        let (owner, number) = parse_issue_reference(reference)?;
        let is_own = matches!(ticket, TicketKey::GitHub { repository: home, number: own }
            if *own == number
                && home.instance() == repository.instance()
                && owner.map_or(repository == home, |owner| owner.eq_ignore_ascii_case(&home.path())));
        (is_closing && !is_own).then(|| format!("{} {reference}", pair[0]))
    })
}

/// Parses `#12`, `GH-12`, `acme/shop#12` or an issue's address: the repository if it is named, and the number.
fn parse_issue_reference(reference: &str) -> Option<(Option<&str>, u64)> {
    if let Some((_, path)) = reference.split_once("://") {
        let mut parts = path.splitn(4, '/').skip(1);
        let (owner, name, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let number = rest.strip_prefix("issues/").or(rest.strip_prefix("pull/"))?;
        let start = path.find(owner)?;
        return Some((
            path.get(start..start + owner.len() + 1 + name.len()),
            parse_leading_number(number)?,
        ));
    }
    let short = reference
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("GH-"));
    if short {
        return Some((None, parse_leading_number(&reference[3..])?));
    }
    let (owner, number) = reference.split_once('#')?;
    Some((
        (!owner.is_empty()).then_some(owner),
        parse_leading_number(number)?,
    ))
}

fn parse_leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Finds a Jira smart commit such as `ENG-12 #done`, which moves, comments on or logs time to an issue.
fn smart_commit(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let key = words.iter().position(|word| is_jira_key(word))?;
    // A command may come anywhere after the key on the same line, with other words in between.
    let command = words[key..].iter().find(|word| {
        word.strip_prefix('#')
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
    })?;
    Some(format!("{} {command}", words[key]))
}

fn is_jira_key(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.rsplit_once('-').is_some_and(|(project, number)| {
        project.starts_with(|c: char| c.is_ascii_uppercase())
            && project
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_smart_commit(message: &str, ticket: &str) -> Option<String> {
        find_commit_order(message, &ticket.parse().unwrap(), &"acme/shop".parse().unwrap())
    }

    #[test]
    fn orders_for_other_tickets_are_found() {
        for (message, words) in [
            ("fix: totals\n\nCloses #99", "Closes #99"),
            ("fix: totals (fixes: #99)", "(fixes: #99"),
            ("resolved acme/other#7", "resolved acme/other#7"),
            ("Fixes GH-12.", "Fixes GH-12"),
            (
                "fixes https://github.com/acme/other/issues/7",
                "fixes https://github.com/acme/other/issues/7",
            ),
            ("ENG-12 #done", "ENG-12 #done"),
            ("ENG-12: totals #comment hello", "ENG-12: #comment"),
        ] {
            assert_eq!(
                find_smart_commit(message, "jira:ENG-12").as_deref(),
                Some(words),
                "{message}"
            );
        }
        assert_eq!(
            find_smart_commit("closes other/shop#7", "github:acme/shop#7").as_deref(),
            Some("closes other/shop#7")
        );
    }

    #[test]
    fn ordinary_messages_and_the_own_ticket_pass() {
        for message in [
            "fix: totals (ENG-12)",
            "fix: totals (#12)",
            "Fix 3 of 4 cases, see #12",
            "Closes the file # early",
            "ENG-12 uses #3 of the list",
        ] {
            assert_eq!(find_smart_commit(message, "jira:ENG-12"), None, "{message}");
        }
        for message in [
            "Closes #7",
            "closes acme/shop#7",
            "fixes https://github.com/acme/shop/issues/7",
        ] {
            assert_eq!(
                find_smart_commit(message, "github:acme/shop#7"),
                None,
                "{message}"
            );
        }
    }
}
