//! Orders in comments: a first line that starts with a slash, as people write it.
//!
//! Case, full-width characters, hidden characters, punctuation, a mention of Journeyman before the order and words after
//! it do not matter, nor do quotations above it. Code, quotations and escapes are not orders.

use std::borrow::Cow;

use domain::{DiscussionTask, text::is_hidden};

/// Shortest accepted abbreviation of a commit, in hexadecimal characters.
pub(crate) const SHORTEST: usize = 12;

/// Command in a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommentCommand {
    /// Stops every live run of the ticket.
    Stop,
    /// Retries the last request.
    Retry,
    /// Reports the cost of the ticket.
    Cost,
    /// Replies with the ways to steer the work.
    Help,
    /// Runs a task in the discussion.
    Discuss(DiscussionTask),
    /// Approves a commit or plan. `head` may be abbreviated; empty: the only open decision.
    Approve { head: String },
    /// Stops the run that waits for this decision. `head` may be empty.
    Reject { head: String },
    /// Requests changes before the approval.
    Feedback { head: String, text: String },
}

/// Names of the orders.
const NAMES: &[&str] = &[
    "/stop",
    "/retry",
    "/cost",
    "/help",
    "/summarize",
    "/plan",
    "/complete",
    "/approve",
    "/reject",
    "/feedback",
];

// Punctuation and emphasis that people add to an order, in any script.
const PUNCTUATION: &[char] = &[
    '.', ',', '!', '?', ';', ':', '\u{2026}', '\u{3002}', '\u{3001}', '\u{ff61}', '*', '_', '"', '\'', ')',
];
// Longest word that is compared with the names of the orders.
const LONGEST: usize = 12;

/// Meaning of a comment for Journeyman.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrderReading {
    /// An order.
    Order(CommentCommand),
    /// Almost an order: the name of the meant one.
    NearMiss(&'static str),
    /// Other text.
    Text,
}

impl OrderReading {
    /// Reads a comment. `strip_mention` returns the text after a mention of Journeyman at the start of a line.
    pub(crate) fn of(comment: &str, strip_mention: impl Fn(&str) -> Option<&str>) -> Self {
        let mut lines = comment.lines().skip_while(|line| is_blank(line)).peekable();
        // A reply quotes what it answers. Lines up to the next blank one belong to the quotation.
        while lines.peek().is_some_and(|line| is_quotation(line)) {
            while lines.next_if(|line| !is_blank(line)).is_some() {}
            while lines.next_if(|line| is_blank(line)).is_some() {}
        }
        let Some(first) = lines.next() else {
            return Self::Text;
        };
        if is_indented_code(first) {
            return Self::Text;
        }
        let first = first.trim();
        let line = strip_mention(first).unwrap_or(first);
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || is_hidden(c));
        let line = strip_emphasis(line);
        if let Some(name) = find_quoted_name(line) {
            return Self::NearMiss(name);
        }
        let (word, behind) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let word = fold_word(word);
        if !word.starts_with('/') {
            return Self::Text;
        }
        let more: Vec<&str> = lines.collect();
        match CommentCommand::parse(&word, behind.trim(), &more.join("\n")) {
            Some(command) => Self::Order(command),
            None => find_meant(&word).map_or(Self::Text, Self::NearMiss),
        }
    }
}

impl CommentCommand {
    /// Command with this name. `behind` is the rest of its line, `more` the lines after it.
    fn parse(name: &str, behind: &str, more: &str) -> Option<Self> {
        Some(match name {
            // Words after these orders explain them to other readers.
            "/stop" => Self::Stop,
            "/retry" => Self::Retry,
            "/cost" => Self::Cost,
            "/help" => Self::Help,
            "/summarize" => Self::Discuss(DiscussionTask::Summarize),
            "/plan" => Self::Discuss(DiscussionTask::Plan),
            "/complete" => Self::Discuss(DiscussionTask::Complete),
            "/approve" => {
                let (head, rest) = split_head(behind);
                // A short or malformed abbreviation stays a command without a head. The user then gets an answer
                // instead of silence. Other words may be a question about the approval.
                let is_clear = !head.is_empty() || rest.is_empty() || is_hexadecimal(rest);
                return is_clear.then_some(Self::Approve { head });
            }
            "/reject" => Self::Reject {
                head: split_head(behind).0,
            },
            "/feedback" => {
                let whole = format!("{behind}\n{more}");
                let (head, text) = split_head(&whole);
                let text = text.to_owned();
                return (!text.is_empty()).then_some(Self::Feedback { head, text });
            }
            _ => return None,
        })
    }
}

/// True for a line that a reader sees as empty.
fn is_blank(line: &str) -> bool {
    line.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

/// True for a line of a quotation in Markdown.
fn is_quotation(line: &str) -> bool {
    !is_indented_code(line) && line.trim_start().starts_with('>')
}

/// True for a line of an indented code block of Markdown.
fn is_indented_code(line: &str) -> bool {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += 4,
            _ => break,
        }
    }
    columns >= 4
}

/// Text after the marks of bold or italic text. A mark before a space is a list.
fn strip_emphasis(line: &str) -> &str {
    let bare = line.trim_start_matches(['*', '_']);
    if bare.starts_with(char::is_whitespace) {
        line
    } else {
        bare
    }
}

/// Word of an order in its plain form: without hidden characters and punctuation at its end, in ASCII and lower case.
fn fold_word(word: &str) -> Cow<'static, str> {
    let plain: String = word
        .chars()
        .filter(|c| !is_hidden(*c))
        .map(fold_width)
        .collect::<String>()
        .to_ascii_lowercase();
    let plain = plain.trim_end_matches(PUNCTUATION);
    // The known names cost no memory.
    match NAMES.iter().find(|name| **name == plain) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(plain.to_owned()),
    }
}

/// ASCII character for its full-width form, and the slash for characters that look like it.
fn fold_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2044}' | '\u{2215}' => '/',
        _ => c,
    }
}

/// Name of the order that is the whole line, as code.
fn find_quoted_name(line: &str) -> Option<&'static str> {
    let code = line.trim().strip_prefix('`')?.strip_suffix('`')?;
    let code = fold_word(code.trim());
    NAMES.iter().find(|name| **name == code).copied()
}

/// Name of the order that a word probably means: a known one with unclear words after it, or one with a slip.
fn find_meant(word: &str) -> Option<&'static str> {
    let letters = word.strip_prefix('/')?;
    if letters.len() > LONGEST || !letters.chars().all(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    let distance = |name: &&&'static str| strsim::damerau_levenshtein(word, name);
    NAMES
        .iter()
        .filter(|name| distance(name) <= 1)
        .min_by_key(distance)
        .copied()
}

/// Splits a text into the commit at its start and the rest. The commit is empty when the first word
/// is none.
fn split_head(text: &str) -> (String, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let head = word.trim_end_matches(PUNCTUATION).trim_matches('`');
    let is_head = (SHORTEST..=40).contains(&head.len()) && is_hexadecimal(head);
    if is_head {
        (head.to_ascii_lowercase(), rest.trim())
    } else {
        (String::new(), text)
    }
}

fn is_hexadecimal(word: &str) -> bool {
    word.trim_matches('`').chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a comment where Journeyman is `@us`.
    fn read_order(comment: &str) -> OrderReading {
        OrderReading::of(comment, |line| line.strip_prefix("@us"))
    }

    fn read_command(comment: &str) -> Option<CommentCommand> {
        match read_order(comment) {
            OrderReading::Order(command) => Some(command),
            OrderReading::NearMiss(_) | OrderReading::Text => None,
        }
    }

    #[test]
    fn order_counts_as_people_write_it() {
        for text in [
            "/stop",
            "  /stop\nit goes nowhere",
            "/stop\r\nbecause of this",
            "\n\n/stop",
            "/Stop",
            "/STOP",
            "\u{ff0f}stop",
            "\u{ff0f}\u{ff53}\u{ff54}\u{ff4f}\u{ff50}",
            "/stop please",
            "/stop\u{3000}\u{8bf7}",
            "/stop\u{a0}now",
            "/stop.",
            "/stop!",
            "/stop\u{3002}",
            "/stop\u{200b}",
            "\u{feff}/stop",
            "\u{200b}\n/stop",
            "/st\u{ad}op",
            "**/stop**",
            "@us /stop",
            "@us\u{a0}/Stop, please",
            "/stop\n\nOn Monday Ada wrote:\n> /retry",
            "> Shall I go on?\n> It takes a day.\n\n/stop",
            "> Shall I go on?\r\n>\r\n> /retry\r\n\r\n/Stop, please",
            ">one\n\n> two\n\n@us /stop",
        ] {
            assert_eq!(read_command(text), Some(CommentCommand::Stop), "{text:?}");
        }
        for (text, command) in [
            ("/retry now", CommentCommand::Retry),
            ("/Cost?", CommentCommand::Cost),
            ("/help me", CommentCommand::Help),
            (
                "/plan\nin small steps",
                CommentCommand::Discuss(DiscussionTask::Plan),
            ),
        ] {
            assert_eq!(read_command(text), Some(command), "{text}");
        }
    }

    #[test]
    fn code_quotation_and_escape_are_no_order() {
        for text in [
            "    /stop",
            "\t/stop",
            "  \t/stop",
            "\n    /stop",
            "```\n/stop\n```",
            "~~~\n/stop\n~~~",
            "> /stop",
            "> /stop\n\n",
            "> Shall I go on?\n/stop",
            "> Shall I go on?\n\n    /stop",
            "> /stop\n\nWhy?",
            "Why?\n\n> it goes on\n\n/stop",
            "\\/stop",
            "\\\u{ff0f}stop",
            "please /stop",
            "@rita /stop",
            "@rita @us /stop",
            "- /stop",
            "* /stop",
            "# /stop",
            "<!-- -->/stop",
            "/stop/now",
            "//stop",
            "/",
            "",
            "\u{200b}",
            "why is /stop ignored",
        ] {
            assert_eq!(read_order(text), OrderReading::Text, "{text:?}");
        }
    }

    #[test]
    fn near_miss_names_meant_order() {
        for (text, meant) in [
            ("/stpo", "/stop"),
            ("/stopp", "/stop"),
            ("/Retri", "/retry"),
            ("@us /hlep", "/help"),
            ("`/stop`", "/stop"),
            ("`/Stop` ", "/stop"),
            ("/feedback", "/feedback"),
            ("/feedback\n\n", "/feedback"),
            ("/approve of it", "/approve"),
            ("/approved", "/approve"),
        ] {
            assert_eq!(read_order(text), OrderReading::NearMiss(meant), "{text}");
        }
        // Orders of other programs, and paths.
        for text in [
            "/stopper",
            "/retest",
            "/rebase",
            "/lgtm",
            "/close",
            "/tmp",
            "/usr/bin/stop",
            "/assign me",
        ] {
            assert_eq!(read_order(text), OrderReading::Text, "{text}");
        }
    }

    #[test]
    fn decision_commands_name_commit_or_feedback() {
        let head = |head: &str| {
            Some(CommentCommand::Approve {
                head: head.to_owned(),
            })
        };
        for text in [
            "/approve `1A2B3c4d5e6f`",
            "/Approve 1a2b3c4d5e6f.",
            "/approve 1a2b3c4d5e6f, thank you",
        ] {
            assert_eq!(read_command(text), head("1a2b3c4d5e6f"), "{text}");
        }
        assert_eq!(read_command("/approve"), head(""));
        assert_eq!(read_command("/approve 1a2b3c4"), head(""));
        let (head, none) = ("1a2b3c4d5e6f".to_owned(), String::new());
        let reject = |head: &String| Some(CommentCommand::Reject { head: head.clone() });
        assert_eq!(read_command("/reject, it is wrong"), reject(&none));
        assert_eq!(read_command("/reject it is wrong"), reject(&none));
        assert_eq!(read_command("/reject 1a2b3c4d5e6f"), reject(&head));
        let feedback = |head: &String, text: &str| {
            Some(CommentCommand::Feedback {
                head: head.clone(),
                text: text.to_owned(),
            })
        };
        let text = "Use cents.\nAnd round down.";
        for comment in [
            "/feedback Use cents.\nAnd round down.",
            "/Feedback\nUse cents.\nAnd round down.",
        ] {
            assert_eq!(read_command(comment), feedback(&none, text), "{comment}");
        }
        assert_eq!(
            read_command("/feedback 1A2B3C4D5E6F\nUse cents."),
            feedback(&head, "Use cents.")
        );
    }

    proptest! {
        /// No comment that shows an order as code, as a quotation or escaped is an order, whatever its spelling.
        #[test]
        fn fuzz_shown_order_is_no_order(
            name in prop::sample::select(NAMES),
            upper in any::<bool>(),
            before in prop::sample::select(vec!["    ", "\t", "> ", "\\", "```\n", "~~~\n", "x ", "@rita "]),
            behind in "[a-z .!\u{200b}\u{3000}]{0,8}",
        ) {
            let name = if upper { name.to_uppercase() } else { name.to_owned() };
            let comment = format!("{before}{name}{behind}");
            prop_assert_eq!(read_order(&comment), OrderReading::Text, "{:?}", comment);
        }

        /// Any text is read without a panic, and hidden characters never change the reading.
        #[test]
        fn fuzz_hidden_characters_change_no_reading(
            text in "(@us )?[/\u{ff0f}`]?[a-zA-Z]{0,9}[ .!\u{3000}]{0,2}[a-z0-9\u{4e00}-\u{4e10}]{0,14}",
            hidden in prop::sample::select(vec!['\u{200b}', '\u{2060}', '\u{ad}', '\u{feff}']),
        ) {
            let (mention, rest) = text.strip_prefix("@us ").map_or(("", text.as_str()), |rest| ("@us ", rest));
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            let mixed: String = word.chars().flat_map(|c| [c, hidden]).collect();
            let with_hidden = format!("{mention}{mixed}{}", &rest[word.len()..]);
            if !word.contains('`') {
                prop_assert_eq!(read_order(&with_hidden), read_order(&text), "{:?}", with_hidden);
            }
        }

        #[test]
        fn fuzz_any_comment_is_read(text in any::<String>()) {
            let _ = read_order(&text);
        }
    }
}
