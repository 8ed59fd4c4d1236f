//! Quotation of a provider's message for users: short, on one line, without credentials.

// Maximum length of a quotation in characters.
const MOST_CHARS: usize = 200;
// Prefixes of credentials, in lower case.
const PREFIXES: [&str; 14] = [
    "sk-", "sk_", "pk-", "rk-", "gsk_", "xai-", "pplx-", "aiza", "akia", "asia", "absk", "ghp_", "hf_", "eyj",
];
// A mixed run of letters and digits of this length is not a word.
const SECRET_RUN: usize = 20;
/// Placeholder for a credential.
pub(super) const HIDDEN: &str = "[hidden]";

/// Returns the quotation; empty if the provider sends no message or an HTML page.
pub(super) fn quote_message(message: &str) -> String {
    if message.trim_start().starts_with('<') {
        return String::new();
    }
    let mut words = message
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    let mut text = String::new();
    let mut after_bearer = false;
    // The result is truncated, so more words need no cleaning.
    for word in words.by_ref().take(MOST_CHARS) {
        let shown = if after_bearer || is_secret(word) {
            HIDDEN.to_owned()
        } else {
            clean_word(word)
        };
        after_bearer = word.eq_ignore_ascii_case("bearer");
        if !text.is_empty() && !shown.is_empty() {
            text.push(' ');
        }
        text.push_str(&shown);
        if text.chars().count() > MOST_CHARS {
            break;
        }
    }
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

/// Removes characters that hide or format text, and replaces those that end the quotation.
fn clean_word(word: &str) -> String {
    let shown = domain::text::remove_hidden(word);
    shown
        .chars()
        .map(|c| if matches!(c, '"' | '`') { '\'' } else { c })
        .collect()
}

/// Returns true if a word may contain a credential.
fn is_secret(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let parts = || lower.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*')));
    let is_credential = |part: &str| {
        PREFIXES
            .iter()
            .any(|prefix| part.strip_prefix(prefix).is_some_and(|rest| rest.len() >= 6))
    };
    let is_named = ["key=", "token=", "secret=", "password=", "signature="]
        .iter()
        .any(|name| lower.contains(name));
    let runs = || lower.split(|c: char| !(c.is_ascii_alphanumeric()));
    let is_random = |run: &str| {
        run.len() >= SECRET_RUN
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    is_named || parts().any(is_credential) || runs().any(is_random)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sentence_is_one_short_line() {
        assert_eq!(
            quote_message("Your credit\nbalance is \"too low\"."),
            "Your credit balance is 'too low'."
        );
        assert_eq!(quote_message("<html><body>Bad gateway"), "");
        let long = quote_message(&"word ".repeat(100));
        assert!(
            long.chars().count() <= MOST_CHARS + 1 && long.ends_with('…'),
            "{long}"
        );
        let model = "The model claude-sonnet-4-5-20250929 does not exist";
        assert_eq!(quote_message(model), model);
    }

    #[test]
    fn credentials_in_a_sentence_are_hidden() {
        for secret in [
            "sk-proj-abcdefgh1234",
            "sk-ant-api03-AbCdEf_12-34",
            "sk-abc***********xyz1",
            "AIzaSyA1234567890abcdefg",
            "AKIAIOSFODNN7EXAMPLE",
            "0123456789abcdef0123456789abcdef",
            "https://gateway.example/v1?key=abc",
        ] {
            let shown = quote_message(&format!("Incorrect API key provided: {secret}. See the page."));
            assert!(shown.contains(HIDDEN) && !shown.contains(secret), "{shown}");
        }
        assert_eq!(
            quote_message("Authorization: Bearer abc was refused"),
            "Authorization: Bearer [hidden] was refused"
        );
    }

    proptest! {
        #[test]
        fn any_sentence_is_quoted_within_its_limit(text in "\\PC*|(sk-[a-z0-9]{8}| |\n|[a-zé]{1,9}){0,200}") {
            let shown = quote_message(&text);
            prop_assert!(shown.chars().count() <= MOST_CHARS + 1);
            prop_assert!(!shown.chars().any(char::is_control));
            let is_key = |word: &str| word.starts_with("sk-") && word.len() > 8;
            prop_assert!(!shown.split(' ').any(is_key));
        }
    }
}
