//! Mentions of our accounts in Markdown, by the rules of GitHub and Jira: outside of code, quotations and addresses.

use std::{collections::BTreeSet, mem};

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeStream};

/// Prefix of a mention by account id in wiki markup, `[~accountid:712020:1a2b]`, after the sign.
const BY_ID: &str = "accountid:";

/// Elements of HTML whose text mentions no account: code and quotations.
const SILENT: [&str; 7] = ["blockquote", "code", "kbd", "pre", "q", "samp", "tt"];

/// True when a Markdown text mentions one of these accounts: by `@name` (without GitHub's `[bot]`, case-insensitive) or
/// by `@accountid:ID`.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other Markdown mentions no account"
)]
pub(crate) fn names_account(text: &str, accounts: &BTreeSet<String>) -> bool {
    // Parsing Markdown is the expensive part, and most comments contain no sign. The sign may also be a character
    // reference.
    if !text.contains('@') && !text.contains("&#") && !text.contains("&commat") {
        return false;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let names: Vec<String> = accounts.iter().map(|account| fold_name(account)).collect();
    let (mut quoted, mut in_code, mut in_address) = (0_usize, false, false);
    let (mut silent, mut block) = (SilentElements::default(), String::new());
    for event in TextMergeStream::new(Parser::new_ext(text, options)) {
        match event {
            Event::Start(Tag::BlockQuote(_)) => quoted += 1,
            Event::End(TagEnd::BlockQuote(_)) => quoted = quoted.saturating_sub(1),
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Link { link_type, .. }) => {
                in_address = matches!(link_type, LinkType::Autolink | LinkType::Email);
            }
            Event::End(TagEnd::Link) => in_address = false,
            Event::Start(Tag::HtmlBlock) => block.clear(),
            Event::Html(html) => block.push_str(&html),
            Event::End(TagEnd::HtmlBlock) => silent.read_block(&block),
            Event::InlineHtml(html) => silent.read_inline(&html),
            Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableCell)
                if silent.end_text() =>
            {
                return true;
            }
            Event::Text(words)
                if quoted == 0
                    && !in_code
                    && !in_address
                    && find_mentions(&words).any(|rest| is_named(rest, accounts, &names))
                    && !silent.holds_back() =>
            {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// Returns the text after a mention of one of these accounts at the start of a line. The mention may end with
/// punctuation.
pub(crate) fn strip_mention<'a>(line: &'a str, accounts: &BTreeSet<String>) -> Option<&'a str> {
    let rest = line.strip_prefix('@')?;
    let after = match split_id(rest) {
        Some((id, after)) => accounts.contains(id).then_some(after)?,
        None => {
            let after_name = |account: &String| strip_name(rest, &fold_name(account));
            // Of two names with the same start, the longer one is meant.
            accounts
                .iter()
                .filter_map(after_name)
                .min_by_key(|after| after.len())?
        }
    };
    Some(after.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | ';')))
}

fn strip_name<'a>(rest: &'a str, name: &str) -> Option<&'a str> {
    let mut chars = rest.chars();
    let is_same = name.chars().all(|c| {
        chars
            .next()
            .is_some_and(|other| other.to_lowercase().eq(c.to_lowercase()))
    });
    let after = chars.as_str();
    let after = after.strip_prefix("[bot]").unwrap_or(after);
    (is_same && !name.is_empty() && ends_name(after)).then_some(after)
}

/// Open elements of HTML whose text mentions no account.
#[derive(Default)]
struct SilentElements {
    /// Elements of blocks of HTML, which may contain several paragraphs.
    outer: usize,
    /// Elements of the current paragraph.
    inner: usize,
    /// True when an element of the current paragraph holds back a mention.
    has_mention: bool,
}

impl SilentElements {
    fn read_block(&mut self, html: &str) {
        for is_end in list_silent_tags(html) {
            if is_end {
                self.close();
            } else {
                self.outer += 1;
            }
        }
    }

    fn read_inline(&mut self, html: &str) {
        for is_end in list_silent_tags(html) {
            if is_end {
                self.close();
            } else {
                self.inner += 1;
            }
        }
    }

    fn close(&mut self) {
        match self.inner {
            0 => self.outer = self.outer.saturating_sub(1),
            1 => (self.inner, self.has_mention) = (0, false),
            _ => self.inner -= 1,
        }
    }

    /// Returns true when a mention is in such an element. In a paragraph it counts later if the element has no end tag.
    fn holds_back(&mut self) -> bool {
        self.has_mention |= self.outer == 0 && self.inner > 0;
        self.outer > 0 || self.inner > 0
    }

    /// Ends a paragraph. Returns true when an element without an end tag holds back a mention: the text is about this tag.
    fn end_text(&mut self) -> bool {
        self.inner = 0;
        mem::take(&mut self.has_mention)
    }
}

/// Tags of silent elements in a text of HTML, in order; true for an end tag.
fn list_silent_tags(html: &str) -> Vec<bool> {
    let (mut found, mut rest) = (Vec::new(), html);
    while let Some((_, after)) = rest.split_once('<') {
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let tag = after.strip_prefix('/');
        let name: String = tag
            .unwrap_or(after)
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        if SILENT.contains(&name.to_ascii_lowercase().as_str()) {
            found.push(tag.is_some());
        }
        rest = after;
    }
    found
}

fn fold_name(account: &str) -> String {
    account.to_lowercase().trim_end_matches("[bot]").to_owned()
}

/// Text after each sign that may start a mention. A sign within a mail address, a path or a word does not.
fn find_mentions(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let is_apart = before.is_none_or(|c| !(c.is_ascii_alphanumeric() || "_.-+/%@`".contains(c)));
        is_apart.then_some(&text[at + 1..])
    })
}

fn is_named(rest: &str, accounts: &BTreeSet<String>, names: &[String]) -> bool {
    match split_id(rest) {
        Some((id, _)) => accounts.contains(id),
        None => names.iter().any(|name| strip_name(rest, name).is_some()),
    }
}

/// Account id after the sign in wiki markup, and the text after it; `None` for a mention by name.
fn split_id(rest: &str) -> Option<(&str, &str)> {
    let start = rest.get(..BY_ID.len())?;
    let id = start.eq_ignore_ascii_case(BY_ID).then(|| &rest[BY_ID.len()..])?;
    let end = id.find(|c: char| !(c.is_ascii_alphanumeric() || ":-_".contains(c)));
    Some(id.split_at(end.unwrap_or(id.len())))
}

/// True at the end of a name. A point may end a sentence or continue an address; a slash names a team.
fn ends_name(rest: &str) -> bool {
    let mut rest = rest.chars();
    match rest.next() {
        None => true,
        Some(c) if c.is_alphanumeric() || c == '-' || c == '_' || c == '@' => false,
        Some('.' | '/') => rest.next().is_none_or(|next| !next.is_alphanumeric()),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_mention(text: &str) -> bool {
        let accounts = ["agent-bot[bot]", "Agent Bot", "712020:5f-writer", "reader.bot"];
        names_account(text, &accounts.map(str::to_owned).into())
    }

    #[test]
    fn mention_at_start_of_line_is_stripped() {
        let accounts = ["agent-bot[bot]", "Agent", "Agent Bot", "712020:5f-writer"];
        let accounts: BTreeSet<String> = accounts.map(str::to_owned).into();
        for (line, rest) in [
            ("@agent-bot /stop", Some("/stop")),
            ("@Agent-Bot[bot]: /stop", Some("/stop")),
            ("@Agent Bot, /stop now", Some("/stop now")),
            ("@agent /stop", Some("/stop")),
            ("@accountid:712020:5f-writer /stop", Some("/stop")),
            ("@agent-bot", Some("")),
            ("@agent-bots /stop", None),
            ("@rita @agent-bot /stop", None),
            ("agent-bot /stop", None),
            ("@accountid:other /stop", None),
            ("@ /stop", None),
            ("", None),
        ] {
            assert_eq!(strip_mention(line, &accounts), rest, "{line}");
        }
    }

    #[test]
    fn mention_matches_name_or_id_in_prose() {
        for text in [
            "@agent-bot why?",
            "@Agent-Bot[bot] why?",
            "Hi (@agent-bot), why?",
            "**@agent-bot** why",
            "\u{8c22}\u{8c22}@agent-bot why",
            "- [ ] @agent-bot, look",
            "| a |\n| - |\n| @agent-bot |",
            "&#64;agent-bot why",
            "why, @agent-bot.",
            "@agent bot why",
            "@accountid:712020:5f-writer why",
            "a\n@accountid:712020:5f-writer",
            "@reader.bot why",
            "> quoted\n\n@agent-bot is it so?",
            "`x` @agent-bot why",
            "[@agent-bot](https://example.com/x) why",
            "<code>x</code> @agent-bot why",
            "<blockquote>\n\nquoted\n\n</blockquote>\n\n@agent-bot is it so?",
            "the <code> tag, @agent-bot why",
            "- the <code> tag, @agent-bot why\n- x",
            "<code>\n\nx\n\n</code>\n\n@agent-bot why",
            "<details>\n<summary>x</summary>\n\n@agent-bot why\n\n</details>",
            "<!-- <code> -->\n\n@agent-bot why",
            "<!--\n<pre>\n-->\n\n@agent-bot why",
            "<b>@agent-bot</b> why",
        ] {
            assert!(is_mention(text), "{text}");
        }
    }

    #[test]
    fn code_quotes_and_addresses_mention_none() {
        for text in [
            "",
            "agent-bot why",
            "`@agent-bot`",
            "``a ` @agent-bot``",
            "```\n@agent-bot why\n```",
            "~~~ text\n@agent-bot why\n~~~",
            "    @agent-bot why",
            "- a\n\n      @agent-bot why",
            "> `ada`: @agent-bot why does it fail?\n\nThanks, that helps!",
            "> > @agent-bot why\n\nI agree.",
            "- > @agent-bot why",
            "mail support@agent-bot.example or x@agent-bot please",
            "mail <x@agent-bot.example>",
            "https://example.com/@agent-bot",
            "<https://example.com/@agent-bot>",
            "see @agent-bot.example",
            "@agent-bot-fan, @agent-bot_2 and @agent-botany",
            "@agent-bot/team",
            "git@agent-bot:acme/shop",
            "@accountid:712020:5f-writer2",
            "@accountid:712020:5f",
            "@reader",
            "<!-- @agent-bot why -->",
            "<code>@agent-bot why</code>",
            "see <code class=\"x\">a @agent-bot why</code> there",
            "<CODE>x <b>@agent-bot</b></CODE> why",
            "- <code>@agent-bot why</code>",
            "| a |\n| - |\n| <code>@agent-bot</code> |",
            "<pre>\n@agent-bot why\n\n@agent-bot why\n</pre>",
            "<pre><code>\n@agent-bot why\n</code></pre>",
            "<code>\n\n@agent-bot why\n\n</code>",
            "<blockquote>@agent-bot why</blockquote>",
            "<blockquote>\n\n@agent-bot why\n\n</blockquote>\n\nThanks!",
            "<blockquote>\n\n- one\n- @agent-bot why\n\n</blockquote>",
            "<details>\n\n<blockquote>\n\n@agent-bot why\n\n</blockquote>\n\n</details>",
            "\u{e9}x@agent-bot",
        ] {
            assert!(!is_mention(text), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn quoted_text_mentions_no_account(text in "([a-z `>*_#\\[\\]()~-]|@agent-bot|\n){0,60}") {
            let quoted: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
            let quote = format!("{}\n\nThanks, that helps!", quoted.join("\n"));
            proptest::prop_assert!(!is_mention(&quote), "{}", quote);
        }
    }
}
