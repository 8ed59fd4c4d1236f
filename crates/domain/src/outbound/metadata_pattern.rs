//! Patterns that a repository requires of commits and branch names.

use regex::RegexBuilder;
use serde::{Deserialize, Serialize};

use crate::{journal::record_format::is_default, text::characters::truncate_text};

// Maximum size of a compiled expression in bytes.
const COMPILED_BYTES: usize = 1 << 20;
// Maximum length of a pattern in a text.
const SHOWN_CHARS: usize = 300;

/// Pattern that the server requires of the commits or the name of a branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MetadataPattern {
    /// Property that has to match.
    pub subject: PatternSubject,
    /// Comparison of the property with the text.
    pub operator: PatternOperator,
    /// Text or regular expression to compare with.
    pub pattern: String,
    /// True when the property must not match.
    #[serde(default, skip_serializing_if = "is_default")]
    pub negate: bool,
}

/// Property of a commit or a branch that a pattern is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternSubject {
    /// Message of each commit.
    CommitMessage,
    /// Mail address of the author.
    AuthorEmail,
    /// Mail address of the committer.
    CommitterEmail,
    /// Name of the branch.
    BranchName,
}

/// Comparison of a property with the text of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternOperator {
    /// The property starts with the text.
    StartsWith,
    /// The property ends with the text.
    EndsWith,
    /// The property contains the text.
    Contains,
    /// The regular expression matches a part of the property.
    Regex,
}

impl MetadataPattern {
    /// Returns false if the server would certainly refuse the value. An expression that cannot be compiled here, because
    /// its dialect differs, refuses nothing.
    pub fn accepts(&self, value: &str) -> bool {
        // Git ends messages with a line feed, and not every server counts it.
        let trimmed = value.trim_end();
        self.meets(value) || (trimmed.len() < value.len() && self.meets(trimmed))
    }

    fn meets(&self, value: &str) -> bool {
        let pattern = self.pattern.as_str();
        let is_match = match self.operator {
            PatternOperator::StartsWith => value.starts_with(pattern),
            PatternOperator::EndsWith => value.ends_with(pattern),
            PatternOperator::Contains => value.contains(pattern),
            PatternOperator::Regex => {
                // GitHub anchors expressions at lines: `^ENG-` accepts a message with such a line anywhere.
                let expression = RegexBuilder::new(&narrow_classes(pattern))
                    .multi_line(true)
                    .size_limit(COMPILED_BYTES)
                    .build();
                match expression {
                    Ok(expression) => expression.is_match(value),
                    Err(_) => return true,
                }
            }
        };
        is_match != self.negate
    }

    /// Returns true if the server refuses every text that ends with this line, whatever is before it.
    pub fn excludes_last_line(&self, line: &str) -> bool {
        match (self.operator, self.negate) {
            (PatternOperator::EndsWith, false) => {
                !line.ends_with(&self.pattern) && !self.pattern.ends_with(line)
            }
            (PatternOperator::StartsWith | PatternOperator::Contains | PatternOperator::Regex, false) => {
                false
            }
            // The empty lines keep expressions for the start of a text from this line.
            (_, true) => !self.accepts(&format!("\n\n{line}")),
        }
    }

    /// Describes the requirement as a sentence without its end: "the commit message must start with `ENG-`".
    pub fn words(&self) -> String {
        let subject = match self.subject {
            PatternSubject::CommitMessage => "the commit message",
            PatternSubject::AuthorEmail => "the mail address of the author",
            PatternSubject::CommitterEmail => "the mail address of the committer",
            PatternSubject::BranchName => "the branch name",
        };
        let verb = if self.negate { "must not" } else { "must" };
        let operator = match self.operator {
            PatternOperator::StartsWith => "start with",
            PatternOperator::EndsWith => "end with",
            PatternOperator::Contains => "contain",
            PatternOperator::Regex => "match the regular expression",
        };
        format!("{subject} {verb} {operator} {}", quote_pattern(&self.pattern))
    }
}

/// Replaces the classes of an expression by those of RE2, with which GitHub compiles it: they have ASCII letters alone.
fn narrow_classes(pattern: &str) -> String {
    let mut narrowed = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let escaped = match letter {
            '\\' => letters.next(),
            _ => None,
        };
        // A bracket inside of brackets is a union here, so the same text is right in both places.
        match escaped {
            Some('d') => narrowed.push_str("[0-9]"),
            Some('D') => narrowed.push_str("[^0-9]"),
            Some('w') => narrowed.push_str("[0-9A-Za-z_]"),
            Some('W') => narrowed.push_str("[^0-9A-Za-z_]"),
            Some('s') => narrowed.push_str(r"[\t\n\f\r ]"),
            Some('S') => narrowed.push_str(r"[^\t\n\f\r ]"),
            Some('b') => narrowed.push_str(r"(?-u:\b)"),
            other => {
                narrowed.push(letter);
                narrowed.extend(other);
            }
        }
    }
    narrowed
}

/// Formats a pattern as code. Its spaces count, so they stay.
fn quote_pattern(pattern: &str) -> String {
    let plain = pattern.chars().map(|letter| match letter {
        '`' => '\'',
        letter if letter.is_control() => ' ',
        letter => letter,
    });
    let plain: String = plain.collect();
    format!("`{}`", truncate_text(&plain, SHOWN_CHARS))
}

/// Returns the first pattern about the subject that refuses the value.
pub fn find_unmet_pattern<'a>(
    patterns: &'a [MetadataPattern],
    subject: PatternSubject,
    value: &str,
) -> Option<&'a MetadataPattern> {
    let mut about = patterns.iter().filter(|pattern| pattern.subject == subject);
    about.find(|pattern| !pattern.accepts(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_pattern(operator: PatternOperator, pattern: &str, negate: bool) -> MetadataPattern {
        MetadataPattern {
            subject: PatternSubject::CommitMessage,
            operator,
            pattern: pattern.to_owned(),
            negate,
        }
    }

    #[test]
    fn each_operator_compares_whole_message() {
        use PatternOperator::{Contains, EndsWith, Regex, StartsWith};
        let message = "ENG-12: count\n\nSecond line\n";
        for (operator, pattern, accepts) in [
            (StartsWith, "ENG-", true),
            (StartsWith, "count", false),
            (EndsWith, "line", true),
            (EndsWith, "line\n", true),
            (EndsWith, "count", false),
            (Contains, "Second", true),
            (Contains, "second", false),
            (Regex, r"^ENG-\d+: \w+", true),
            (Regex, "count", true),
            (Regex, "^Second", true),
            (Regex, "^line", false),
            (Regex, "(?-m)^Second", false),
            (Regex, r"\ASecond", false),
            (Regex, r"\A.{1,13}$", true),
            (Regex, r"\A.{1,12}$", false),
            (Regex, "count$", true),
            (Regex, "line$", true),
            (Regex, "(?i)^eng", true),
        ] {
            assert_eq!(
                build_pattern(operator, pattern, false).accepts(message),
                accepts,
                "{pattern}"
            );
            // A negated pattern accepts a message if one of its two forms does not match.
            if operator != EndsWith && !pattern.ends_with('$') {
                assert_eq!(
                    build_pattern(operator, pattern, true).accepts(message),
                    !accepts,
                    "not {pattern}"
                );
            }
        }
    }

    #[test]
    fn last_line_may_exclude_whole_text() {
        use PatternOperator::{Contains, EndsWith, Regex, StartsWith};
        let line = "Signed-off-by: Bot <bot@acme.example>";
        for (operator, pattern, negate, is_excluded) in [
            (EndsWith, "(ENG-12)", false, true),
            (EndsWith, "bot@acme.example>", false, false),
            (StartsWith, "ENG-12", false, false),
            (Contains, "ENG-12", false, false),
            (Regex, r"\(ENG-12\)\z", false, false),
            (EndsWith, ">", true, true),
            (Contains, "Signed-off-by", true, true),
            (Regex, "^Signed-off-by: ", true, true),
            (Regex, r"\ASigned-off-by: ", true, false),
            (StartsWith, "Signed-off-by: ", true, false),
            (Contains, "WIP", true, false),
        ] {
            let found = build_pattern(operator, pattern, negate).excludes_last_line(line);
            assert_eq!(found, is_excluded, "{operator:?} {pattern} {negate}");
        }
    }

    #[test]
    fn foreign_dialect_refuses_no_value() {
        for pattern in ["(?=ENG)", r"\Qa.b\E", "("] {
            for negate in [false, true] {
                assert!(
                    build_pattern(PatternOperator::Regex, pattern, negate).accepts("x"),
                    "{pattern}"
                );
            }
        }
        let large = "(a{1000}){1000}";
        assert!(
            build_pattern(PatternOperator::Regex, large, false).accepts("x"),
            "too large to compile"
        );
    }

    #[test]
    fn classes_have_ascii_letters_alone() {
        for (pattern, value, is_match) in [
            (r"^\W$", "é", true),
            (r"\w", "é", false),
            (r"^[^\w]$", "é", true),
            (r"^[\w.-]+$", "a_1.b-c", true),
            (r"^[\w.-]+$", "a é", false),
            (r"^[\W\d]+$", "é٣1", true),
            (r"\d", "٣", false),
            (r"\D", "12", false),
            (r"\s", "a\u{a0}b", false),
            (r"^a\Sb$", "a\u{a0}b", true),
            (r"\bkey\b", "ékey", true),
            (r"^\\w$", r"\w", true),
            (r"^.$", "é", true),
        ] {
            for negate in [false, true] {
                let accepts = build_pattern(PatternOperator::Regex, pattern, negate).accepts(value);
                assert_eq!(accepts, is_match != negate, "{pattern} {value}");
            }
        }
    }

    #[test]
    fn requirement_is_described_in_words() {
        let pattern = build_pattern(PatternOperator::Regex, "^ENG-`x`", false);
        assert_eq!(
            pattern.words(),
            "the commit message must match the regular expression `^ENG-'x'`"
        );
        let spaced = build_pattern(PatternOperator::StartsWith, "ENG-12: ", false);
        assert_eq!(spaced.words(), "the commit message must start with `ENG-12: `");
        let name = MetadataPattern {
            subject: PatternSubject::BranchName,
            ..build_pattern(PatternOperator::StartsWith, "tmp/", true)
        };
        assert_eq!(name.words(), "the branch name must not start with `tmp/`");
        let patterns = [pattern, name.clone()];
        let found = find_unmet_pattern(&patterns, PatternSubject::BranchName, "tmp/x");
        assert_eq!(found, Some(&name));
        assert_eq!(
            find_unmet_pattern(&patterns, PatternSubject::AuthorEmail, "tmp/x"),
            None
        );
    }
}
