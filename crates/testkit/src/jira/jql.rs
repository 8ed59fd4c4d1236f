//! Subset of JQL that our poller needs. Everything else is refused, so that a typo cannot match every issue.

use time::OffsetDateTime;
use time::macros::format_description;

/// Parsed query whose conditions all apply.
#[derive(Debug, Default, PartialEq)]
pub(super) struct JqlQuery {
    pub(super) project: Option<String>,
    pub(super) status: Option<String>,
    pub(super) updated_since: Option<OffsetDateTime>,
    pub(super) created_since: Option<OffsetDateTime>,
    /// Labels that the issue must all have.
    pub(super) labels: Vec<String>,
    /// Excludes statuses of the category Done.
    pub(super) is_unfinished: bool,
    /// Words of which the title must contain one.
    pub(super) title_words: Vec<String>,
    /// Keys of which the issue must have one.
    pub(super) keys: Vec<String>,
    pub(super) ascending: bool,
}

/// Parses a query of this form; unknown fields and operators are errors:
///
/// ```text
/// project = "X" [AND status = "Y"] [AND updated >= "yyyy-MM-dd HH:mm"|"-17m"] [AND statusCategory != Done]
/// [AND (summary ~ "word" OR …)] [AND key in ("X-1", …)] [AND created >= …] [AND labels = "x"] [AND (…)]
/// [ORDER BY field [ASC|DESC], …]
/// ```
pub(super) fn parse_query(text: &str) -> Result<JqlQuery, String> {
    let tokens = split_tokens(text)?;
    // A quoted word is a value, never a keyword.
    let order = tokens.iter().position(|token| token.is("ORDER"));
    let (conditions, order) = tokens.split_at(order.unwrap_or(tokens.len()));
    let mut query = JqlQuery {
        ascending: read_order(order)?,
        ..JqlQuery::default()
    };
    if conditions.is_empty() {
        return Err(
            "Unbounded JQL queries are not allowed here. Please add a search restriction.".to_owned(),
        );
    }
    read_conditions(&mut query, conditions)?;
    Ok(query)
}

/// Splits at each AND outside brackets.
fn split_conditions(tokens: &[JqlToken]) -> Vec<&[JqlToken]> {
    let (mut depth, mut begin, mut parts) = (0_i32, 0, Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        depth += i32::from(token.is("(")) - i32::from(token.is(")"));
        if depth == 0 && token.is("AND") {
            parts.push(&tokens[begin..index]);
            begin = index + 1;
        }
    }
    parts.push(&tokens[begin..]);
    parts
}

fn read_conditions(query: &mut JqlQuery, conditions: &[JqlToken]) -> Result<(), String> {
    for (index, condition) in split_conditions(conditions).into_iter().enumerate() {
        match condition {
            [open, words @ .., close]
                if open.is("(") && close.is(")") && words.first().is_some_and(|word| word.is("summary")) =>
            {
                read_titles(query, words)?;
            }
            [open, inner @ .., close] if open.is("(") && close.is(")") && !inner.is_empty() => {
                read_conditions(query, inner)?;
            }
            [field, operator, open, keys @ .., close]
                if field.is("key")
                    && operator.is("in")
                    && open.is("(")
                    && close.is(")")
                    && !keys.is_empty() =>
            {
                query.keys = keys.iter().map(|key| key.text.clone()).collect();
            }
            [field, operator, value] => read_condition(query, &field.text, &operator.text, value)?,
            _ => return Err(format!("condition {} is not `field operator value`", index + 1)),
        }
    }
    Ok(())
}

fn read_titles(query: &mut JqlQuery, words: &[JqlToken]) -> Result<(), String> {
    for one in words.split(|token| token.is("OR")) {
        let [field, operator, word] = one else {
            return Err("expected `summary ~ word` between OR".to_owned());
        };
        if !field.is("summary") || !operator.is("~") {
            return Err(format!(
                "`{} {}` is not understood here",
                field.text, operator.text
            ));
        }
        // Other characters are operators of Jira's text search.
        if word.text.is_empty() || !word.text.chars().all(char::is_alphanumeric) {
            return Err(format!("the text query {:?} is not understood here", word.text));
        }
        query.title_words.push(word.text.to_lowercase());
    }
    Ok(())
}

fn read_condition(query: &mut JqlQuery, field: &str, operator: &str, value: &JqlToken) -> Result<(), String> {
    match (field.to_ascii_lowercase().as_str(), operator) {
        ("project", "=") => query.project = Some(value.text.clone()),
        ("statuscategory", "!=") if value.is("Done") => query.is_unfinished = true,
        ("status", "=") => query.status = Some(value.text.clone()),
        ("key", "=") => query.keys = vec![value.text.clone()],
        ("labels", "=") => query.labels.push(value.text.clone()),
        ("updated", ">=") => query.updated_since = Some(parse_instant("updated", value)?),
        ("created", ">=") => query.created_since = Some(parse_instant("created", value)?),
        (field, operator) => return Err(format!("`{field} {operator}` is not understood here")),
    }
    Ok(())
}

fn parse_instant(field: &str, value: &JqlToken) -> Result<OffsetDateTime, String> {
    let since = parse_period(&value.text).or_else(|| parse_minute(&value.text));
    since.ok_or_else(|| format!("Date value '{}' for field '{field}' is invalid", value.text))
}

/// Parses a period before now: `-17m`, `-3h`, `-2d` or `-1w`.
fn parse_period(text: &str) -> Option<OffsetDateTime> {
    let (number, unit) = text
        .strip_prefix('-')?
        .split_at_checked(text.len().checked_sub(2)?)?;
    let number: i64 = number.parse().ok()?;
    let ago = match unit {
        "m" => time::Duration::minutes(number),
        "h" => time::Duration::hours(number),
        "d" => time::Duration::days(number),
        "w" => time::Duration::weeks(number),
        _ => return None,
    };
    OffsetDateTime::now_utc().checked_sub(ago)
}

fn parse_minute(text: &str) -> Option<OffsetDateTime> {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]");
    let at = time::PrimitiveDateTime::parse(text, format).ok()?;
    // JQL has times in the user's zone, which is UTC for all accounts here.
    Some(at.assume_utc())
}

fn read_order(tokens: &[JqlToken]) -> Result<bool, String> {
    match tokens {
        [] => Ok(true),
        [_, by, field, rest @ ..] if by.is("BY") => {
            let known = ["updated", "created", "key", "rank"];
            if !known.iter().any(|name| field.is(name)) {
                return Err(format!("cannot order by {}", field.text));
            }
            Ok(!rest.first().is_some_and(|direction| direction.is("DESC")))
        }
        _ => Err("expected ORDER BY field".to_owned()),
    }
}

#[derive(Debug)]
struct JqlToken {
    text: String,
    quoted: bool,
}

impl JqlToken {
    fn is(&self, word: &str) -> bool {
        !self.quoted && self.text.eq_ignore_ascii_case(word)
    }
}

fn split_tokens(text: &str) -> Result<Vec<JqlToken>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            c if c.is_whitespace() || c == ',' => {}
            quote @ ('"' | '\'') => {
                let mut word = String::new();
                loop {
                    match rest.next() {
                        None => return Err("a quoted string is not closed".to_owned()),
                        // A backslash escapes any character of a quoted string.
                        Some('\\') => word.extend(rest.next()),
                        Some(c) if c == quote => break,
                        Some(c) => word.push(c),
                    }
                }
                tokens.push(JqlToken {
                    text: word,
                    quoted: true,
                });
            }
            bracket @ ('(' | ')') => tokens.push(JqlToken {
                text: bracket.to_string(),
                quoted: false,
            }),
            first => {
                // Operators need no spaces around them, so symbols and words are separate tokens.
                let symbol = is_symbol(first);
                let mut word = String::from(first);
                while let Some(next) = rest.next_if(|next| {
                    !next.is_whitespace()
                        && !matches!(next, '"' | '\'' | ',' | '(' | ')')
                        && is_symbol(*next) == symbol
                }) {
                    word.push(next);
                }
                tokens.push(JqlToken {
                    text: word,
                    quoted: false,
                });
            }
        }
    }
    Ok(tokens)
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '<' | '>' | '!' | '~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pollers_query_is_understood() {
        let query = parse_query(
            r#"project = "ENG" AND status = "Ready \"for\" Agent" AND updated >= "2026-01-02 03:04" ORDER BY updated ASC"#,
        )
        .unwrap();
        assert_eq!(query.project.as_deref(), Some("ENG"));
        assert_eq!(query.status.as_deref(), Some("Ready \"for\" Agent"));
        assert_eq!(query.updated_since.unwrap().year(), 2026);
        assert!(query.ascending);
    }

    #[test]
    fn parse_reads_title_and_key_searches() {
        let query = parse_query(
            r#"project = "ENG" AND statusCategory != Done AND (summary ~ "Cart" OR summary ~ "total") ORDER BY updated DESC"#,
        )
        .unwrap();
        assert!(query.is_unfinished && !query.ascending);
        assert_eq!(query.title_words, ["cart", "total"]);
        assert_eq!(
            parse_query(r#"key in ("ENG-1", "ENG-2")"#).unwrap().keys,
            ["ENG-1", "ENG-2"]
        );
    }

    #[test]
    fn bracketed_condition_joins_outer_conditions() {
        let query = parse_query(r#"key = "ENG-1" AND (labels = agent AND created >= "-1d")"#).unwrap();
        assert_eq!(
            (query.keys.as_slice(), query.labels.as_slice()),
            (&["ENG-1".to_owned()][..], &["agent".to_owned()][..])
        );
        assert!(query.created_since.is_some());
    }

    #[test]
    fn a_period_reaches_back_from_now() {
        let since = |text: &str| {
            parse_query(&format!("updated >= \"{text}\""))
                .unwrap()
                .updated_since
                .unwrap()
        };
        let now = OffsetDateTime::now_utc();
        for (text, minutes) in [("-17m", 17), ("-3h", 180), ("-2d", 2880), ("-1w", 10_080)] {
            let ago = (now - since(text)).whole_seconds();
            assert!((minutes * 60 - 5..=minutes * 60).contains(&ago), "{text}: {ago}");
        }
    }

    #[test]
    fn other_queries_are_refused() {
        for text in [
            "",
            "ORDER BY key",
            "colour = x",
            "project = ENG OR status = x",
            "updated >= \"soon\"",
            "updated >= \"-5x\"",
            "updated >= \"-m\"",
            "updated >= \"5m\"",
            "project = \"E",
            "(summary ~ \"a b\")",
            "(summary ~ a OR labels ~ b)",
            "(summary ~ a",
            "key in ()",
            "statusCategory != Dune",
        ] {
            assert!(parse_query(text).is_err(), "{text}");
        }
    }
}
