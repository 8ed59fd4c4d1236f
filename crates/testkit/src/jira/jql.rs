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
    /// Orders of the hits, the most significant first.
    pub(super) order: Vec<JqlOrder>,
}

/// One term of `ORDER BY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JqlOrder {
    pub(super) field: OrderField,
    pub(super) is_ascending: bool,
}

/// Field by which hits can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderField {
    Updated,
    Created,
    Key,
    Priority,
    Status,
    Summary,
}

impl OrderField {
    fn parse(token: &JqlToken) -> Option<Self> {
        let fields = [
            ("updated", Self::Updated),
            ("created", Self::Created),
            ("key", Self::Key),
            ("priority", Self::Priority),
            ("status", Self::Status),
            ("summary", Self::Summary),
        ];
        let found = fields.into_iter().find(|(name, _)| token.is(name));
        found.map(|(_, field)| field)
    }
}

/// Parses a query of this form; unknown fields and operators are errors:
///
/// ```text
/// project = "X" [AND status = "Y"] [AND updated >= "yyyy-MM-dd HH:mm"|"-17m"] [AND statusCategory != Done]
/// [AND (summary ~ "word" OR …)] [AND key in ("X-1", …)] [AND created >= …] [AND labels = "x"] [AND (…)]
/// [ORDER BY field ASC|DESC, …]
/// ```
pub(super) fn parse_query(text: &str) -> Result<JqlQuery, String> {
    let tokens = split_tokens(text)?;
    // A quoted word is a value, never a keyword.
    let order = tokens.iter().position(|token| token.is("ORDER"));
    let (conditions, order) = tokens.split_at(order.unwrap_or(tokens.len()));
    let mut query = JqlQuery {
        order: read_order(order)?,
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
                query.keys = read_list(keys)?;
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

/// Reads the values of a list, which commas separate.
fn read_list(tokens: &[JqlToken]) -> Result<Vec<String>, String> {
    let values = tokens.split(|token| token.is(","));
    values
        .map(|value| match value {
            [value] => Ok(value.text.clone()),
            _ => Err("expected one value between commas".to_owned()),
        })
        .collect()
}

/// Reads `ORDER BY`. A term without a direction has the direction of its field in Jira, which differs by field
/// and site, so it is refused.
fn read_order(tokens: &[JqlToken]) -> Result<Vec<JqlOrder>, String> {
    let terms = match tokens {
        [] => return Ok(Vec::new()),
        [_, by, terms @ ..] if by.is("BY") => terms,
        _ => return Err("expected ORDER BY field".to_owned()),
    };
    let mut order: Vec<JqlOrder> = Vec::new();
    for term in terms.split(|token| token.is(",")) {
        let [field, direction] = term else {
            return Err("expected `field ASC` or `field DESC` between the commas of ORDER BY".to_owned());
        };
        let is_ascending = direction.is("ASC");
        if !is_ascending && !direction.is("DESC") {
            return Err(format!("expected ASC or DESC instead of {}", direction.text));
        }
        let field = OrderField::parse(field)
            .ok_or_else(|| format!("Not able to sort using field '{}'.", field.text))?;
        if order.iter().any(|known| known.field == field) {
            return Err(format!("The sort field {field:?} is referenced multiple times"));
        }
        order.push(JqlOrder { field, is_ascending });
    }
    Ok(order)
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
            c if c.is_whitespace() => {}
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
            mark @ ('(' | ')' | ',') => tokens.push(JqlToken {
                text: mark.to_string(),
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
        let updated = JqlOrder {
            field: OrderField::Updated,
            is_ascending: true,
        };
        assert_eq!(query.order, [updated]);
    }

    #[test]
    fn parse_reads_title_and_key_searches() {
        let query = parse_query(
            r#"project = "ENG" AND statusCategory != Done AND (summary ~ "Cart" OR summary ~ "total") ORDER BY updated DESC"#,
        )
        .unwrap();
        assert!(query.is_unfinished && !query.order[0].is_ascending);
        assert_eq!(query.title_words, ["cart", "total"]);
        assert_eq!(
            parse_query(r#"key in ("ENG-1", "ENG-2")"#).unwrap().keys,
            ["ENG-1", "ENG-2"]
        );
    }

    #[test]
    fn each_term_of_order_is_read() {
        let query = parse_query("project = ENG ORDER BY priority DESC, created asc,key DESC").unwrap();
        let expected = [
            (OrderField::Priority, false),
            (OrderField::Created, true),
            (OrderField::Key, false),
        ];
        let found: Vec<_> = query
            .order
            .iter()
            .map(|order| (order.field, order.is_ascending))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(parse_query("project = ENG").unwrap().order, []);
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
            "key in (A-1 A-2)",
            "key in (A-1,)",
            "project = ENG, status = x",
            "project = ENG ORDER",
            "project = ENG ORDER BY",
            "project = ENG ORDER BY updated",
            "project = ENG ORDER BY updated UP",
            "project = ENG ORDER BY colour ASC",
            "project = ENG ORDER BY updated ASC key DESC",
            "project = ENG ORDER BY updated ASC,",
            "project = ENG ORDER BY updated ASC, updated DESC",
            "project = ENG ORDER BY updated ASC AND status = x",
        ] {
            assert!(parse_query(text).is_err(), "{text}");
        }
    }
}
