//! Tests of the sanitizer with texts of a model.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

#[test]
fn mentions_and_references_become_code() {
    for (given, harmless) in [
        (
            "Thanks @alice and @acme/core!",
            "Thanks `@alice` and `@acme/core`!",
        ),
        (
            "Fixes #12, closes acme/x#3 and GH-4.",
            "Fixes `#12`, closes `acme/x#3` and `GH-4`.",
        ),
        (
            "Resolves https://github.com/acme/x/issues/3 now",
            "Resolves `https://github.com/acme/x/issues/3` now",
        ),
        ("mail a@b.example and c#", "mail a@b.example and c#"),
        ("see user#26 and C#7", "see `user#26` and `C#7`"),
        ("\u{8c22}\u{8c22}@acme/core", "\u{8c22}\u{8c22}`@acme/core`"),
        ("\u{e9}@ann and \u{e9}#12", "\u{e9}`@ann` and \u{e9}`#12`"),
        ("FIXES GH-4, Closes: gh-5", "FIXES `GH-4`, Closes: `gh-5`"),
        (
            "HTTPS://GitHub.com/o/r/Issues/3 now",
            "`HTTPS://GitHub.com/o/r/Issues/3` now",
        ),
        (
            "www.github.com/o/r/pull/3 and github.com/o/r/issues/3",
            "`www.github.com/o/r/pull/3` and `github.com/o/r/issues/3`",
        ),
        (
            "https://github.com/o/r/%69ssues/3",
            "`https://github.com/o/r/%69ssues/3`",
        ),
        ("see https://docs.example/page", "see https://docs.example/page"),
        ("**@alice**", "**`@alice`**"),
        ("\\@alice", "`@alice`"),
        ("`x`@alice", "`x` `@alice`"),
        ("# Title\n\n- [ ] item @bob", "# Title\n\n- [ ] item `@bob`"),
    ] {
        assert_eq!(sanitize_markdown(given), harmless, "{given}");
    }
}

#[test]
fn split_reference_does_not_survive() {
    for (given, harmless) in [
        ("&#64;alice", "`@alice`"),
        ("&commat;alice", "`@alice`"),
        ("fixes &#35;12", "fixes `#12`"),
        ("Fixes GH\\-4", "Fixes `GH-4`"),
        ("Fixes acme/shop\\-app#3", "Fixes `acme/shop-app#3`"),
        ("acme&#47;x#3", "`acme/x#3`"),
        ("\\GH-4", "\\\\`GH-4`"),
        ("#<!-- -->12", "# 12"),
        ("acme/x<b></b>#3", "acme/x  `#3`"),
    ] {
        assert_eq!(sanitize_markdown(given), harmless, "{given}");
    }
}

#[test]
fn a_footnote_mentions_nobody() {
    let harmless = sanitize_markdown("See[^1].\n\n[^1]: @acme/core and #12\n");
    assert_eq!(harmless, "See[^1].\n\n[^1]: `@acme/core` and `#12`\n");
}

#[test]
fn backtick_in_text_keeps_code_spans_closed() {
    for given in ["a ` @ann", "a ` b\n@ann", "\\`@ann", "` #12 `` @bob"] {
        let harmless = sanitize_markdown(given);
        let mut live = String::new();
        for event in Parser::new(&harmless) {
            if let Event::Text(words) = event {
                live.push_str(&words);
            }
        }
        assert!(!live.contains(['@', '#']), "{given:?} became {harmless:?}");
    }
}

#[test]
fn escaped_text_stays_text_after_rewrite() {
    let harmless =
        sanitize_markdown("\\<img src=\"https://evil.example/x\"\\> \\[x\\](https://evil.example) @ann");
    let mut parser = Parser::new(&harmless);
    let is_live = |event: Event<'_>| {
        matches!(
            event,
            Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Link { .. } | Tag::Image { .. })
        )
    };
    assert!(!parser.any(is_live), "{harmless}");
}

#[test]
fn links_lead_only_to_web_or_mail() {
    for (given, harmless) in [
        ("[x](https://docs.example/a)", "[x](https://docs.example/a)"),
        ("[x](docs/a.md#b)", "[x](docs/a.md#b)"),
        ("[x](mailto:a@b.example)", "[x](mailto:a@b.example)"),
        ("[x](javascript:alert(1))", "x (`javascript:alert(1)`)"),
        ("[x](JaVaScRiPt:alert(1))", "x (`JaVaScRiPt:alert(1)`)"),
        ("[x](data:text/html,y)", "x (`data:text/html,y`)"),
        ("[x](//evil.example)", "x (`//evil.example`)"),
        ("[x][1]\n\n[1]: vbscript:y", "x (`vbscript:y`)\n\n[1]: vbscript:y"),
        (
            "Fixes [it](https://github.com/acme/x/issues/3)",
            "Fixes it (`https://github.com/acme/x/issues/3`)",
        ),
    ] {
        assert_eq!(sanitize_markdown(given), harmless, "{given}");
    }
}

#[test]
fn a_title_closes_notifies_and_hides_nothing() {
    for (given, harmless) in [
        ("fix: totals (ENG-12)", "fix: totals (ENG-12)"),
        ("Fixes #12 for @ann", "Fixes `#12` for ann"),
        ("closes acme/x#3", "closes `acme/x#3`"),
        ("ENG-12 #done #comment hello", "ENG-12 done comment hello"),
        ("a\u{202e}b\u{200b}c\n d", "abc d"),
        ("C# and a@b.example", "C# and a@b.example"),
        ("`@ann` @everyone", "'ann' everyone"),
        ("Count [skip ci] pieces", "Count (skip ci) pieces"),
    ] {
        assert_eq!(sanitize_title(given), harmless, "{given}");
    }
}

#[test]
fn code_keeps_its_text() {
    let text = "Use `@decorator` and\n\n```python\n@cache\ndef f(): ...  # 12\n```\n";
    assert_eq!(sanitize_markdown(text), text);
}

#[test]
fn open_code_block_ends_before_next_part() {
    for (given, closed) in [
        ("a\n\n```py\nx", "a\n\n```py\nx\n```"),
        ("~~~~\nx\n~~~", "~~~~\nx\n~~~\n~~~~"),
        ("```", "```\n```"),
        ("```\nx\n```", "```\nx\n```"),
        ("```\nx\n```\nrest", "```\nx\n```\nrest"),
        // These last lines are code: a fence has at most three spaces before it, and no other space behind it.
        ("```\nx\n    ```", "```\nx\n    ```\n```"),
        ("```\nx\n```\u{a0}", "```\nx\n```\u{a0}\n```"),
        ("- ```\n  x", "- ```\n  x"),
        ("> ```\n> x", "> ```\n> x"),
        ("plain", "plain"),
    ] {
        assert_eq!(sanitize_part(given), closed, "{given:?}");
        assert_eq!(sanitize_part(closed), closed, "{given:?}");
    }
}

#[test]
fn html_and_images_do_not_survive() {
    assert_eq!(sanitize_markdown("a <!-- hidden --> b"), "a   b");
    assert_eq!(
        sanitize_markdown("see ![the @chart](https://evil.example/x.png?leak=1) here"),
        "see the `@chart` here"
    );
    assert!(!sanitize_markdown("<img src=\"https://evil.example/x\">\n\ntext").contains("evil"));
    assert!(
        !sanitize_markdown("<details>\n<!-- journeyman:effect=x -->\n</details>")
            .contains("journeyman:effect")
    );
}

#[test]
fn invisible_characters_are_dropped() {
    assert_eq!(sanitize_markdown("a\u{200b}b\u{202e}c"), "abc");
    assert_eq!(sanitize_markdown("a&#8203;b&#x202E;c @ann"), "abc `@ann`");
    assert_eq!(
        sanitize_markdown("[x&#x202E;](javascript:&#8203;y)"),
        "x (`javascript:y`)"
    );
}

#[test]
fn removed_tag_starts_no_new_block() {
    for text in [
        "<b><!-- rest",
        "<b><script",
        "<b><div <\nx> @alice",
        "<b>~~~\n~~~\n@a",
        "- <!--\n~~~\n<!--",
    ] {
        let clean = sanitize_markdown(text);
        assert_eq!(find_active_content(&clean), None, "{text:?} became {clean:?}");
    }
}

#[test]
fn an_issue_link_ends_before_a_backtick() {
    let clean = sanitize_markdown("https://github.com/o/r/pull/1` x");
    assert_eq!(clean, "`https://github.com/o/r/pull/1`\\` x");
    assert_eq!(
        sanitize_title("https://github.com/o/r/pull/1` x"),
        "`https://github.com/o/r/pull/1`' x"
    );
}

/// Finds active content of Markdown: HTML, an image, a mention or a reference. It does not use the tested code.
fn find_active_content(text: &str) -> Option<String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS;
    let mut in_code = false;
    let mut last = None;
    for (event, _) in TextMergeWithOffset::new(Parser::new_ext(text, options).into_offset_iter()) {
        match &event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Html(words) | Event::InlineHtml(words) => return Some(words.to_string()),
            Event::Start(Tag::Image { dest_url, .. }) => return Some(dest_url.to_string()),
            Event::Text(words) if !in_code && has_mention(last, words) => return Some(words.to_string()),
            _ => {}
        }
        last = match event {
            Event::Code(_) => Some('`'),
            Event::Text(words) => words.chars().last(),
            _ => None,
        };
    }
    None
}

/// Implements GitHub's rule for mentions and references, `(?:^|\W)@[a-z\d]` and `(?:^|\W)#\d`, with an ASCII `\W`.
fn has_mention(mut last: Option<char>, words: &str) -> bool {
    let mut letters = words.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_start = last.is_none_or(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '`')));
        let next = letters.peek();
        let mentions = letter == '@' && next.is_some_and(char::is_ascii_alphanumeric);
        let refers = letter == '#' && next.is_some_and(char::is_ascii_digit);
        if is_start && (mentions || refers) {
            return true;
        }
        last = Some(letter);
    }
    false
}

/// Finds a raw line that a bot obeys: `^\s*/[a-z]` or a known word, after marks of quotations and lists, and an order
/// that is obeyed anywhere.
fn find_order(text: &str) -> Option<&str> {
    text.lines().find(|line| {
        if has_order_anywhere(line) {
            return true;
        }
        let is_mark = |c: char| {
            c.is_whitespace() || c.is_control() || domain::text::is_hidden(c) || "><-*+".contains(c)
        };
        let line = line.trim_start_matches(is_mark);
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let slash = first
            .strip_prefix('/')
            .is_some_and(|word| !word.is_empty() && word.chars().all(char::is_alphabetic));
        let first = first.to_lowercase();
        let word = ["bors", "atlantis", "recheck", "@bors"].contains(&first.as_str());
        slash || word
    })
}

/// Returns true for `@mergify` and the like, also in a word, and for `/deploy` and the like between spaces, backticks or
/// brackets.
fn has_order_anywhere(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let called = ["@mergify", "@bors", "@homu", "@dependabot", "@claude"];
    let is_apart = |c: Option<char>, marks: &str| c.is_none_or(|c| c.is_whitespace() || marks.contains(c));
    let commands = [
        "/lgtm",
        "/approve",
        "/deploy",
        "/rebase",
        "/ok-to-test",
        "/retest",
    ];
    let calls = |name: &&str| {
        line.match_indices(*name).any(|(at, found)| {
            let after = line[at + found.len()..]
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "-_".contains(c));
            let package = after.strip_prefix('/').unwrap_or_default();
            let is_scope = package.starts_with(|c: char| c.is_ascii_alphanumeric());
            !(is_scope && ["@mergify", "@dependabot"].contains(name))
        })
    };
    called.iter().any(calls)
        || commands.iter().any(|command| {
            line.match_indices(command).any(|(at, found)| {
                let after = &line[at + found.len()..];
                is_apart(line[..at].chars().next_back(), "`(") && is_apart(after.chars().next(), "`)")
            })
        })
}

#[test]
fn order_obeyed_anywhere_survives_nowhere() {
    for (given, harmless) in [
        ("Please @mergifyio refresh", "Please `mergifyio` refresh"),
        ("use `@Mergify queue`", "use `[@]Mergify queue`"),
        ("r+ @bors", "r+ `bors`"),
        ("it is r+ x@homu", "it is r+ x&#64;homu"),
        ("&#64;dependabot rebase", "`dependabot` rebase"),
        ("\\@renovate-bot", "`renovate-bot`"),
        ("@@copilot", "@`copilot`"),
        ("@claude @ann", "`claude` `@ann`"),
        ("@bors@ann", "`bors` `@ann`"),
        (
            "ask @coderabbitai, @openhands-agent",
            "ask `coderabbitai`, `openhands-agent`",
        ),
        ("```\nr+ @bors\n```", "```\nr+ [@]bors\n```"),
        (
            "[x](https://a.example/@claude)",
            "[x](https://a.example/%40claude)",
        ),
        ("Then comment /deploy.", "Then comment &#47;deploy."),
        ("now /lgtm and /ok-to-test", "now &#47;lgtm and &#47;ok-to-test"),
        ("run `/retest` or **/merge**", "run `[/]retest` or **&#47;merge**"),
        ("a \\/cherry-pick b", "a &#47;cherry-pick b"),
        ("a &#47;rebase b", "a &#47;rebase b"),
        ("```sh\necho /approve\n```", "```sh\necho [/]approve\n```"),
        ("[x](\n/approve\n)", "[x](\n[/]approve\n)"),
    ] {
        assert_eq!(sanitize_markdown(given), harmless, "{given:?}");
        assert_eq!(find_order(harmless), None, "{given:?}");
        assert_eq!(sanitize_markdown(harmless), harmless, "{given:?}");
    }
    for (given, shown) in [
        (
            "Call GET /release or mail ann@claude.ai.",
            "Call GET &#47;release or mail ann&#64;claude.ai.",
        ),
        (
            "Adds @renovatebot/pep440 and `@github-actions/core`.",
            "Adds `@renovatebot/pep440` and `@github-actions/core`.",
        ),
    ] {
        assert_eq!(sanitize_markdown(given), shown);
        assert_eq!(sanitize_markdown(shown), shown);
        assert_eq!(find_order(shown), None);
    }
    for honest in [
        "see src/deploy/x, /deploy/x and https://a.example/deploy",
        "and/or `~/test`, `/testing`, `@cache` and a@b.example",
    ] {
        assert_eq!(sanitize_markdown(honest), honest);
    }
    assert_eq!(
        sanitize_title("Ask @mergifyio for /deploy"),
        "Ask `mergifyio` for [/]deploy"
    );
    assert_eq!(code_lines("# r+ @bors"), "# r+ [@]bors");
}

#[test]
fn bot_order_begins_no_line_anywhere() {
    for (given, harmless) in [
        ("x\n/lgtm\n", "x\n&#47;lgtm\n"),
        ("/LGTM", "&#47;LGTM"),
        ("bors r+", "`bors` r+"),
        ("@bors r+", "`bors` r+"),
        ("Atlantis apply", "`Atlantis` apply"),
        ("/plan it", "`/plan` it"),
        ("> /approve", "> &#47;approve"),
        (
            "- /approve\n- [ ] /hold\n1. /deploy",
            "- &#47;approve\n- [ ] &#47;hold\n1. &#47;deploy",
        ),
        ("# /approve", "# &#47;approve"),
        ("\u{a0}\u{2003}/approve", "\u{a0}\u{2003}&#47;approve"),
        ("\u{200b}\u{2800}/approve", "&#47;approve"),
        ("**/approve**", "**&#47;approve**"),
        ("\\/approve", "&#47;approve"),
        ("&#47;approve", "&#47;approve"),
        ("a  \n/ok-to-test", "a  \n&#47;ok-to-test"),
        ("```\n/lgtm\n```", "```\n| [/]lgtm\n```"),
        ("```\n@bors r+\n```", "```\n| [@]bors r+\n```"),
        ("> ```\n> /lgtm\n> ```", "> ```\n> | [/]lgtm\n> ```"),
        ("- ~~~\n  bors r+\n  ~~~", "- ~~~\n  | bors r+\n  ~~~"),
        ("    /lgtm", "    | [/]lgtm"),
        ("`a\n/lgtm`", "`a [/]lgtm`"),
        (
            "see /usr/bin/env, 3/4 and ../docs\n../docs",
            "see /usr/bin/env, 3/4 and ../docs\n../docs",
        ),
        ("a\n/usr/bin/env", "a\n/usr/bin/env"),
    ] {
        assert_eq!(sanitize_markdown(given), harmless, "{given:?}");
        assert_eq!(find_order(harmless), None, "{given:?}");
        assert_eq!(sanitize_markdown(harmless), harmless, "{given:?}");
    }
    for given in [
        "[a](\n/approve\n)",
        "[a](https://a.example \"\n/approve\n\")",
        "[x]:\n/approve\n\n[x]",
        "[^1]: a\n/approve\n\nx[^1]",
        "/approve | x\n--- | ---\n/approve | y",
        "<b>\n/approve\n</b>",
        "a<!--\n-->/approve",
        "/<b></b>approve",
        "![a\n](x)\n/approve",
    ] {
        let harmless = sanitize_markdown(given);
        assert_eq!(find_order(&harmless), None, "{given:?} became {harmless:?}");
        assert_eq!(sanitize_markdown(&harmless), harmless, "{given:?}");
    }
    assert_eq!(sanitize_plain("/plan"), "`/plan`");
    assert_eq!(sanitize_title("/approve it"), "[/]approve it");
    assert_eq!(sanitize_title("/plan it"), "`/plan` it");
}

/// Pieces of Markdown that interact with their neighbors.
const PIECES: [&str; 44] = [
    "/lgtm",
    " /deploy",
    "r+ ",
    "@mergifyio",
    "bors r+",
    "@bors",
    "\u{e9}",
    "\u{3000}",
    "1. ",
    "](\n",
    "@a",
    "#1",
    "`",
    "``",
    "\\",
    "[",
    "]",
    "(",
    ")",
    "!",
    "<b>",
    "</b>",
    "<!--",
    "-->",
    "&#64;",
    "&commat;",
    "x",
    " ",
    "\n",
    "\n\n",
    "    ",
    "- ",
    "> ",
    "|",
    "*",
    "_",
    "fixes ",
    "http://a/pull/1",
    "<",
    "~~~\n",
    "```\n",
    "[^1]",
    "^",
    "<div ",
];

/// Texts in the style of models, for [`testkit::apply_edits`].
const RECORDED: [&str; 3] = [
    "# Round totals\n\nFixes #12 for @ann, see [the log](https://ci.example/1) and `@cache`.\n\n- [ ] item @bob\n  1. deep\n\n> quoted <b>x</b>",
    "```python\n@cache\ndef f(): ...  # 12\n```\n\n| a | b |\n|---|---|\n| GH-4 | ![the @chart](https://a.example/x.png?a=1) |\n\n~~gone~~ **bold *and* @ann**",
    "a <!-- hidden --> b &#64;alice &commat;x \\@y [x][1] [^1]\n\n[1]: vbscript:y\n[^1]: @acme/core and acme/x#3\n\n<div title=\"@z\">\n#1\n</div>\n\n    code @q",
];

fn check_clean(text: &str) -> Result<(), TestCaseError> {
    let clean = sanitize_markdown(text);
    prop_assert_eq!(remove_hidden(&clean), clean.as_str());
    prop_assert_eq!(find_active_content(&clean), None, "{:?}", clean);
    prop_assert_eq!(find_order(&clean), None, "{:?}", clean);
    prop_assert_eq!(sanitize_markdown(&clean), clean);
    let line = sanitize_title(text);
    prop_assert!(!line.contains('\n'), "{:?}", line);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

    #[test]
    fn fuzz_any_text_is_clean_afterwards(text in "(?s).{0,80}", bytes in vec(any::<u8>(), 0..80)) {
        check_clean(&text)?;
        check_clean(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn fuzz_mutated_recorded_text_is_clean(
        which in 0..RECORDED.len(), edits in vec(any::<testkit::InputEdit>(), 0..8)
    ) {
        let text = testkit::apply_edits(RECORDED[which].as_bytes(), &edits);
        check_clean(&String::from_utf8_lossy(&text))?;
    }

    #[test]
    fn no_text_stays_live_clean_stays_unchanged(pieces in vec(select(&PIECES[..]), 0..10)) {
        let clean = sanitize_markdown(&pieces.concat());
        prop_assert_eq!(find_active_content(&clean), None, "{:?}", clean);
        prop_assert_eq!(find_order(&clean), None, "{:?}", clean);
        prop_assert_eq!(sanitize_markdown(&clean), clean);
    }
}
