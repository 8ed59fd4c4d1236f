//! Detection of orders to other bots in a text.
//!
//! Prow, bors-ng, Atlantis and many workflows read a comment's raw text line by line, including quotations, lists and code
//! fences. Mergify, homu and workflows with `contains(comment.body, …)` find their order at any place, in code too. The
//! account of Journeyman may have the right to give such an order.

use std::{
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use domain::text::is_hidden;

// Prefix of a line of code that begins with an order: inside of code, code style has no effect on bots.
pub(crate) const CODE_MARK: &str = "| ";

// First words or phrases that widely used bots accept without a slash, with an optional `@`.
const KNOWN: [&str; 15] = [
    "add to whitelist",
    "atlantis",
    "bors",
    "bors-servo",
    "build this please",
    "digger",
    "homu",
    "jenkins",
    "ok to test",
    "please retest",
    "recheck",
    "retest",
    "reverify",
    "terrateam",
    "test this please",
];

// Bots that obey `@name` at any place of a text, in code too. Longer names with the same start count as well: a workflow
// with `contains(comment.body, '@claude')` obeys them all.
const CALLED_BOTS: [&str; 25] = [
    "all-contributors",
    "bors",
    "claude",
    "codex",
    "coderabbit",
    "copilot",
    "craterbot",
    "cursor",
    "dependabot",
    "devin-ai",
    "gemini-cli",
    "github-actions",
    "greptile",
    "homu",
    "jules",
    "k8s-ci-robot",
    "mergify",
    "openhands",
    "pytorchbot",
    "pytorchmergebot",
    "renovate",
    "rust-timer",
    "rustbot",
    "sourcery-ai",
    "sweep-ai",
];

// Bots that obey no mention, or only one that a command follows after a space. So a package of a scope with their
// name, as `@renovatebot/pep440`, is not an order.
const SCOPE_NAMES: [&str; 4] = ["dependabot", "github-actions", "mergify", "renovate"];

// Commands `/word` that bots and workflows obey at any place of a text. A command may go on behind a hyphen, as in
// `/deploy-staging`.
const COMMANDS: [&str; 26] = [
    "approve",
    "azp",
    "backport",
    "cherry-pick",
    "cherrypick",
    "deploy",
    "destroy",
    "gcbrun",
    "hold",
    "lgtm",
    "merge",
    "oc",
    "ok-to-test",
    "opencode",
    "promote",
    "publish",
    "rebase",
    "recheck",
    "release",
    "rerun",
    "retest",
    "rollback",
    "ship",
    "shipit",
    "test",
    "unhold",
];

// Punctuation that continues a path or an address before a slash: `../docs`, `$HOME/test`, `</test>`.
const PATH_SIGNS: &str = "./-~$%@&+=:})]<\\?#";

static CONFIGURED: OnceLock<Vec<String>> = OnceLock::new();
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let configured = CONFIGURED.get().into_iter().flatten();
    let all = KNOWN
        .iter()
        .map(|word| (*word).to_owned())
        .chain(configured.cloned());
    all.map(|word| word.trim().trim_start_matches('@').to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
});

/// Adds the words of the setting `reporter.bot_words`. The process calls it once, before it writes the first text.
pub(crate) fn set_words(words: &[String]) {
    // A second call comes from another instance in the same process, with the same settings.
    let _ = CONFIGURED.set(words.to_vec());
}

/// Returns true for characters that a bot or a person skips at the start of a line.
pub(crate) fn is_skipped(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || is_hidden(c)
        || c.is_ascii_digit()
        || "><-*+#~_.()[]{}!:;,'\"=".contains(c)
}

/// Returns true if only skipped characters precede this position on its line.
pub(crate) fn is_line_start(text: &str, at: usize) -> bool {
    let line = text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
    text[line..at].chars().all(|c| is_skipped(c) || c == '\\')
}

/// Returns true if an order can begin after this character. `../docs` and `3/x` are not orders.
pub(crate) fn may_begin_behind(before: Option<char>) -> bool {
    before.is_none_or(|c| !(c.is_ascii_digit() || c == '.'))
}

/// Returns the length of the order at the start of the text, in bytes; 0 without an order.
pub(crate) fn order_length(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix('/') {
        let word = command_word_length(rest);
        let is_word = rest.starts_with(char::is_alphabetic);
        // `/usr/bin` and `/index.html` are paths.
        let ends = !rest[word..].starts_with(['/', '.']) || rest[word..].starts_with(". ");
        return if is_word && ends { 1 + word } else { 0 };
    }
    let (sign, rest) = match text.strip_prefix('@') {
        Some(rest) => (1, rest),
        None => (0, text),
    };
    let lengths = WORDS.iter().filter_map(|word| phrase_length(rest, word));
    lengths.max().map_or(0, |length| sign + length)
}

/// Returns the length of the word at the start of the text, as far as it can be the name of a command.
fn command_word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || "-_".contains(c)))
        .unwrap_or(text.len())
}

/// Returns the length of a phrase at the start of the text, without regard to case and to the space between its
/// words.
fn phrase_length(text: &str, phrase: &str) -> Option<usize> {
    let mut rest = text;
    for (index, word) in phrase.split(' ').enumerate() {
        if index > 0 {
            let trimmed = rest.trim_start_matches([' ', '\t', '\u{a0}']);
            rest = (trimmed.len() < rest.len()).then_some(trimmed)?;
        }
        rest = strip_word(rest, word)?;
    }
    let ends = rest
        .chars()
        .next()
        .is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == '-'));
    ends.then_some(text.len() - rest.len())
}

/// Removes a word from the start of the text, without regard to case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut chars = text.chars();
    for wanted in word.chars() {
        chars.next().filter(|c| fold_case(*c) == fold_case(wanted))?;
    }
    Some(chars.as_str())
}

/// Folds the case of a letter like the regular expressions of Python, in which a dotless i and a long s match `i` and
/// `s`.
fn fold_case(c: char) -> char {
    match c {
        '\u{131}' => 'i',
        '\u{17f}' => 's',
        _ => c.to_lowercase().next().unwrap_or(c),
    }
}

/// Returns the length of an order that bots obey at any place, at the start of `text`; 0 without an order. `before` is
/// the text before it.
pub(crate) fn anywhere_length(before: &str, text: &str) -> usize {
    if let Some(rest) = text.strip_prefix('@') {
        return called_length(rest).map_or(0, |length| 1 + length);
    }
    match text.strip_prefix('/') {
        Some(rest) if is_word_start(before) => command_length(rest).map_or(0, |length| 1 + length),
        Some(_) | None => 0,
    }
}

/// Returns the length of the login at the start of the text, if a bot that obeys mentions has it.
fn called_length(text: &str) -> Option<usize> {
    let login = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)))
        .unwrap_or(text.len());
    let package = text[login..].strip_prefix('/');
    let is_scope = package.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric()));
    let known = CALLED_BOTS
        .iter()
        .filter(|name| !(is_scope && SCOPE_NAMES.contains(name)))
        .filter_map(|name| strip_word(text, name));
    let known = known.map(|rest| text.len() - rest.len());
    let configured = WORDS.iter().filter_map(|word| phrase_length(text, word));
    let matched = known.chain(configured).max()?;
    Some(matched.max(login))
}

/// Returns the length of the command at the start of the text, which follows a slash. A word in a path is not a command.
fn command_length(text: &str) -> Option<usize> {
    let length = command_word_length(text);
    let (word, after) = text.split_at(length);
    let mut after = after.chars();
    let is_path = match after.next() {
        Some('/') => true,
        Some('.' | ':' | '?' | '=') => after.next().is_some_and(|c| c.is_ascii_alphanumeric()),
        Some(_) | None => false,
    };
    let configured = WORDS.iter().filter_map(|word| word.strip_prefix('/'));
    let configured = configured.filter(|command| !command.is_empty());
    let is_known = COMMANDS.iter().copied().chain(configured).any(|command| {
        strip_word(word, command).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    });
    (is_known && !is_path).then_some(length)
}

/// Returns true if a word can begin behind this text, so that a slash does not continue a path or an address.
fn is_word_start(before: &str) -> bool {
    // Emphasis may surround a command.
    let bare = before.trim_end_matches(['*', '_']);
    let bare = bare.strip_suffix("~~").unwrap_or(bare);
    // A closing quote ends the start of a path, as in `"$DIR"/test`.
    let quoted = bare
        .strip_suffix(['"', '\''])
        .and_then(|inner| inner.chars().next_back());
    let is_part = |c: char| c.is_ascii_alphanumeric() || PATH_SIGNS.contains(c);
    let closes = quoted.is_some_and(|c| c.is_ascii_alphanumeric() || "})".contains(c));
    !closes && !bare.chars().next_back().is_some_and(is_part)
}

/// Returns the text with a visible break in each order that bots obey at any place: `[@]bors`, `[/]deploy`.
///
/// The sign of a login in an address becomes `%40`, so that the address stays valid. A second pass changes nothing.
pub(crate) fn break_orders(text: &str) -> String {
    let mut broken = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, sign) in text.match_indices(['@', '/']) {
        let (before, rest) = text.split_at(at);
        if anywhere_length(before, rest) == 0 {
            continue;
        }
        broken.push_str(&text[copied..at]);
        if sign == "@" && is_address(before) {
            broken.push_str("%40");
        } else {
            broken.push_str(&format!("[{sign}]"));
        }
        copied = at + sign.len();
    }
    broken.push_str(&text[copied..]);
    broken
}

/// Returns true if the text ends within a web address.
fn is_address(before: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "(<\"'`[|".contains(c);
    before
        .rsplit(ends)
        .next()
        .is_some_and(|word| word.contains("://"))
}

/// Returns the positions of orders at line starts, in a part of a text.
pub(crate) fn orders_in(text: &str, part: Range<usize>) -> Vec<usize> {
    line_starts(text, part)
        .filter(|at| order_length(&text[*at..]) > 0)
        .collect()
}

/// Returns the positions of orders in code. A mention with a following word also counts there, because code style
/// does not apply.
pub(crate) fn orders_in_code(text: &str, part: Range<usize>) -> Vec<usize> {
    let is_order = |at: &usize| order_length(&text[*at..]) > 0 || begins_with_mention(&text[*at..]);
    line_starts(text, part).filter(is_order).collect()
}

/// Returns true if the line begins with `@login word`.
fn begins_with_mention(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('@') else {
        return false;
    };
    let name = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || "-_/".contains(c)))
        .unwrap_or(rest.len());
    let after = rest[name..]
        .strip_prefix([' ', '\t', ',', ':'])
        .unwrap_or_default();
    name > 0
        && after
            .trim_start_matches([' ', '\t'])
            .starts_with(char::is_alphanumeric)
}

/// Returns the position of the first visible character of each line in a part of a text.
fn line_starts(text: &str, part: Range<usize>) -> impl Iterator<Item = usize> + '_ {
    let mut at = part.start;
    let lines = text[part].split_inclusive(['\n', '\r']);
    let starts = lines.map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    });
    starts.filter_map(move |(start, line)| {
        // The part may begin in the middle of a line, after prose.
        if !is_line_start(text, start) {
            return None;
        }
        let skipped = line.find(|c: char| !is_skipped(c))?;
        may_begin_behind(line[..skipped].chars().next_back()).then_some(start + skipped)
    })
}

/// Returns the code with a mark before each order at a line start, and a break in each order that is obeyed anywhere.
pub(crate) fn guard_code(text: &str) -> String {
    let text = &break_orders(text);
    let mut guarded = String::with_capacity(text.len());
    let mut copied = 0;
    for at in orders_in_code(text, 0..text.len()) {
        guarded.push_str(&text[copied..at]);
        guarded.push_str(CODE_MARK);
        copied = at;
    }
    guarded.push_str(&text[copied..]);
    guarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_differ_from_paths_and_prose() {
        for (text, length) in [
            ("/lgtm", 5),
            ("/LGTM\n", 5),
            ("/ok-to-test now", 11),
            ("/approve. Now", 8),
            ("bors r+", 4),
            ("Bors: try", 4),
            ("@bors r+", 5),
            ("atlantis apply", 8),
            ("@homu retry", 5),
            ("ok  to test", 11),
            ("recheck", 7),
            ("/usr/bin/env", 0),
            ("/index.html", 0),
            ("// a comment", 0),
            ("/* a comment", 0),
            ("/", 0),
            ("borscht", 0),
            ("ok, to test", 0),
            ("ann: look", 0),
        ] {
            assert_eq!(order_length(text), length, "{text}");
        }
    }

    #[test]
    fn code_lines_with_orders_get_a_mark() {
        let code = "@cache\ndef f():\n  /lgtm\n/usr/bin/x\n@app.route('/x')\n> bors r+\n@some-bot merge\n";
        let guarded =
            "@cache\ndef f():\n  [/]lgtm\n/usr/bin/x\n@app.route('/x')\n> | bors r+\n| @some-bot merge\n";
        assert_eq!(guard_code(code), guarded);
        assert_eq!(guard_code(guarded), guarded);
        assert_eq!(guard_code("/plan\n"), "| /plan\n");
    }

    #[test]
    fn orders_obeyed_anywhere_are_broken() {
        for (text, broken) in [
            ("r+ @bors", "r+ [@]bors"),
            ("x@HOMU: r+", "x[@]HOMU: r+"),
            ("@claude/x @renovatebot/", "[@]claude/x [@]renovatebot/"),
            ("@mergify queue", "[@]mergify queue"),
            ("@Merg\u{131}fyio refresh", "[@]Merg\u{131}fyio refresh"),
            ("@@bors r+", "@[@]bors r+"),
            ("@dependabot rebase", "[@]dependabot rebase"),
            ("@renovate-bot, @copilot", "[@]renovate-bot, [@]copilot"),
            ("(@coderabbitai review)", "([@]coderabbitai review)"),
            (
                "'@claude' and @openhands-agent",
                "'[@]claude' and [@]openhands-agent",
            ),
            ("@jenkins retest", "[@]jenkins retest"),
            ("https://a.example/@claude/x", "https://a.example/%40claude/x"),
            ("so /deploy now", "so [/]deploy now"),
            ("/Deploy-staging.", "[/]Deploy-staging."),
            ("(/ok-to-test)", "([/]ok-to-test)"),
            ("'/lgtm', **/merge**", "'[/]lgtm', **[/]merge**"),
            ("`/approve` ~~/retest~~", "`[/]approve` ~~[/]retest~~"),
            ("/cherry-pick v1\t/rebase", "[/]cherry-pick v1\t[/]rebase"),
            ("get('/test')", "get('[/]test')"),
        ] {
            assert_eq!(break_orders(text), broken);
            assert_eq!(break_orders(broken), broken);
        }
    }

    #[test]
    fn paths_and_other_names_stay() {
        for text in [
            "src/deploy/x and src/deploy",
            "/deploy/x, /test.sh, /test?page=2",
            "https://a.example/deploy",
            "../test ~/test $HOME/test ${DIR}/test",
            "\"$DIR\"/test '/tmp'/test",
            "<test></test>",
            "and/or, 3/4, /testing, /usr/bin",
            "test/*.py src/**/test",
            "@cache @app.route('/x') @alice @acme/core",
            "mail a@b.example",
            "npm i @renovatebot/pep440 @github-actions/core",
        ] {
            assert_eq!(break_orders(text), text);
        }
    }
}
