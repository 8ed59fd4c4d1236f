//! Finds credentials in text by the shapes that their issuers gave them.

/// One shape: where it starts, and how many of its own characters must follow at least.
struct Shape {
    name: &'static str,
    prefix: &'static str,
    at_least: usize,
    is_part: fn(char) -> bool,
}

const SHAPES: [Shape; 16] = [
    shape("GitHub token", "ghp_", 30, is_word),
    shape("GitHub token", "ghs_", 30, is_word),
    shape("GitHub token", "gho_", 30, is_word),
    shape("GitHub token", "ghu_", 30, is_word),
    shape("GitHub token", "ghr_", 30, is_word),
    shape("GitHub token", "github_pat_", 30, is_word),
    shape("GitLab token", "glpat-", 20, is_token),
    shape("AWS access key", "AKIA", 16, is_upper),
    shape("AWS access key", "ASIA", 16, is_upper),
    shape("Anthropic key", "sk-ant-", 20, is_token),
    shape("API key", "sk-", 32, is_token),
    shape("Slack token", "xoxb-", 10, is_token),
    shape("Slack token", "xoxp-", 10, is_token),
    shape("Slack token", "xoxa-", 10, is_token),
    shape("Google key", "AIza", 35, is_token),
    shape("Atlassian token", "ATATT3", 30, is_token),
];

/// The kind of the first credential in one line; the credential itself is never returned.
pub(crate) fn find(line: &str) -> Option<&'static str> {
    if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
        return Some("private key");
    }
    SHAPES
        .iter()
        .find(|shape| shape.occurs_in(line))
        .map(|shape| shape.name)
}

impl Shape {
    fn occurs_in(&self, line: &str) -> bool {
        line.match_indices(self.prefix).any(|(at, _)| {
            let starts_a_word = line[..at].chars().next_back().is_none_or(|c| !is_word(c));
            let rest: Vec<char> = line[at + self.prefix.len()..]
                .chars()
                .take_while(|c| (self.is_part)(*c))
                .collect();
            // Words joined by hyphens look like a key, but keys have digits.
            starts_a_word && rest.len() >= self.at_least && rest.iter().any(char::is_ascii_digit)
        })
    }
}

const fn shape(
    name: &'static str,
    prefix: &'static str,
    at_least: usize,
    is_part: fn(char) -> bool,
) -> Shape {
    Shape {
        name,
        prefix,
        at_least,
        is_part,
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_token(c: char) -> bool {
    is_word(c) || c == '-'
}

fn is_upper(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_credentials_are_found() {
        let long = "a1B2c3D4e5".repeat(4);
        for (line, kind) in [
            (format!("token = \"ghp_{long}\""), "GitHub token"),
            (format!("ghs_{long}"), "GitHub token"),
            (format!("x=github_pat_{long}"), "GitHub token"),
            (format!("aws AKIA{}", "ABCD1234".repeat(2)), "AWS access key"),
            (format!("key: sk-ant-api03-{long}"), "Anthropic key"),
            (format!("OPENAI_API_KEY=sk-{long}"), "API key"),
            (format!("xoxb-123456789012-{long}"), "Slack token"),
            ("-----BEGIN RSA PRIVATE KEY-----".to_owned(), "private key"),
        ] {
            assert_eq!(find(&line), Some(kind), "{line}");
        }
    }

    #[test]
    fn ordinary_text_is_not_a_credential() {
        for line in [
            "ghp_ is the prefix of a token",
            "class=\"sk-navigation-with-a-very-long-name-and-no-number\"",
            "task-1234567890-1234567890-1234567890-12",
            "AKIAshort",
            "-----BEGIN CERTIFICATE-----",
            "",
        ] {
            assert_eq!(find(line), None, "{line}");
        }
    }
}
