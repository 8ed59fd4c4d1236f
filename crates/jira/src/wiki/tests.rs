//! Conversions between Markdown and wiki markup in both directions.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{from_markdown, from_markdown_within, to_markdown};

#[track_caller]
fn check_wiki(markdown: &str, wiki: &str) {
    assert_eq!(from_markdown(markdown), wiki);
}

#[track_caller]
fn check_markdown(wiki: &str, markdown: &str) {
    assert_eq!(to_markdown(wiki), markdown);
}

#[track_caller]
fn check_both_ways(markdown: &str, wiki: &str) {
    check_wiki(markdown, wiki);
    check_markdown(wiki, markdown);
}

#[test]
fn paragraphs_headings_and_rules() {
    check_both_ways(
        "# Title\n\nOne paragraph.\n\n### Third level\n\n---\n\nLast.",
        "h1. Title\n\nOne paragraph.\n\nh3. Third level\n\n----\n\nLast.",
    );
}

#[test]
fn marks_and_marks_within_words() {
    check_both_ways(
        "Plain **bold** *leaning* ~~gone~~ `code` and **bold *and leaning***.",
        "Plain *bold* _leaning_ -gone- {{code}} and *bold _and leaning_*.",
    );
    check_both_ways("half**bold**, **bold**half", "half{*}bold{*}, {*}bold{*}half");
}

#[test]
fn links_with_text_and_bare() {
    check_both_ways(
        "See [the log](https://ci.example/1) or <https://ci.example/2> or https://ci.example/a_b_c.",
        "See [the log|https://ci.example/1] or [https://ci.example/2] or https://ci.example/a_b_c.",
    );
    check_wiki(
        "[a](javascript:x) ![alt](https://a.example/x.png)",
        "a [alt|https://a.example/x.png]",
    );
    check_wiki(
        "[a|b]c](https://a.example/{x}|y)",
        "\\[a\\|b\\]c\\](https://a.example/\\{x\\}\\|y)",
    );
    check_wiki(
        "[a\\|b\\]](<https://a.example/{x}|y z>)",
        "[a&#124;b&#93;|https://a.example/%7Bx%7D%7Cy%20z]",
    );
}

#[test]
fn lists_within_lists() {
    check_both_ways(
        "- one\n- two\n  - inner\n  - inner two\n    1. deep\n    2. deeper\n- three",
        "* one\n* two\n** inner\n** inner two\n**# deep\n**# deeper\n* three",
    );
    check_both_ways("- [x] done\n- [ ] open", "* \\[x\\] done\n* \\[ \\] open");
    check_wiki("- # Title\n\n  more\n- x", "* *Title*\nmore\n* x");
}

#[test]
fn code_keeps_what_stands_in_it() {
    check_both_ways(
        "```python\ndef f():\n\n    return \"*x* {x} [~a]\"\n```",
        "{code:python}\ndef f():\n\n    return \"*x* {x} [~a]\"\n{code}",
    );
    check_both_ways("```\nplain\n```", "{noformat}\nplain\n{noformat}");
    check_wiki("```rust\nfn f() {}\n```", "{noformat}\nfn f() {}\n{noformat}");
    check_wiki(
        "- run\n\n  ```sh\n  make\n  ```\n- done",
        "* run\n{code:bash}\nmake\n{code}\n* done",
    );
}

#[test]
fn code_with_macro_delimiters_stays_in_block() {
    check_wiki("```python\na {code} b\n```", "{noformat}\na {code} b\n{noformat}");
    check_wiki("```\na {noformat} b\n```", "{code:none}\na {noformat} b\n{code}");
    check_wiki(
        "```\na {Code} b\n\n{noformat} *c*\n```",
        "{{a &#123;Code&#125; b}}\n{{&#123;noformat&#125; \\*c\\*}}",
    );
}

#[test]
fn tables_and_tables_in_lists() {
    check_both_ways(
        "| check | before |\n| --- | --- |\n| `make` | **fails** |\n| a \\| b |  |",
        "||check||before||\n|{{make}}|*fails*|\n|a \\| b| |",
    );
    check_wiki(
        "- one\n\n  | a | b |\n  |---|---|\n  | c | **d** |",
        "* one\na \\| b\nc \\| *d*",
    );
}

#[test]
fn quotes_and_breaks() {
    check_both_ways(
        "> first\n>\n> second **bold**\n\nafter",
        "{quote}\nfirst\n\nsecond *bold*\n{quote}\n\nafter",
    );
    check_wiki("one  \n# two", "one\n\nh1. two");
    check_wiki("one  \n\\# two", "one\n\\# two");
    check_wiki("**one  \ntwo**", "*one \\\\ two*");
}

#[test]
fn text_resembling_markup_is_escaped() {
    for (text, wiki) in [
        ("[~admin] and [AGENT-SKIP]", "\\[\\~admin\\] and \\[AGENT-SKIP\\]"),
        ("{quote} {color:red}", "\\{quote\\} \\{color:red\\}"),
        ("h1. no title", "h1&#46; no title"),
        ("bq. no quote", "bq&#46; no quote"),
        ("re-run foo_bar - now -gone-", "re-run foo_bar - now \\-gone\\-"),
        ("!image.png! and done! yes", "\\!image.png! and done! yes"),
        ("C:\\temp & &amp; &#123;", "C:&#92;temp & &amp;amp; &amp;#123;"),
        ("f(x) (y) :) a:b", "f&#40;x) &#40;y) &#58;) a:b"),
    ] {
        let markdown = escape_markdown(text);
        check_wiki(&markdown, wiki);
        check_markdown(wiki, text);
    }
}

#[test]
fn what_people_write_becomes_markdown() {
    check_markdown(
        "h2.  Steps\r\n# one\r\n#* two\r\nstill two\r\n# three",
        "## Steps\n\n1. one\n   - two\n     still two\n2. three",
    );
    check_markdown("- dash\n- dash", "- dash\n- dash");
    check_markdown(
        "[~mia] see [^log.txt] and !shot.png|thumbnail!",
        "@mia see (file `log.txt`) and (image `shot.png`)",
    );
    check_markdown(
        "!shot.png|width=300,alt=\"the dialog\"! !https://a.example/x.png|alt=logo!",
        "(image `shot.png`: the dialog) ![logo](https://a.example/x.png)",
    );
    check_markdown(
        "{color:red}*urgent*{color} +under+ ??cite?? x^2^",
        "**urgent** under cite x^2^",
    );
    check_markdown(
        "[AGENT-SKIP] [x] [text|#anchor]",
        "[AGENT-SKIP] [x] [text|#anchor]",
    );
    check_markdown(
        "{panel:title=Note|borderStyle=dashed}\ntext\n{panel}",
        "> Note\n>\n> text",
    );
    check_markdown(
        "a {code:title=x.py|language=python}\nx\n{code} b",
        "a\n\n```python\nx\n```\n\nb",
    );
    check_markdown("{code}never closed", "{code}never closed");
    check_markdown("{quote}never closed", "never closed");
    check_markdown("{quote}/stop", "> /stop");
    check_markdown("{panel}\nIt asks:\n\n[~us] /stop", "It asks:\n\n> @us /stop");
    check_markdown("bq. said", "> said");
    check_markdown("one\\\\ two", "one  \ntwo");
    check_markdown("{{a*b*}} a * b - c -- d", "`a*b*` a * b - c -- d");
    check_markdown(
        "run make --keep-going -x and --all",
        "run make --keep-going -x and --all",
    );
    check_markdown(
        "|a|[b|https://b.example]|\n|c|d|",
        "| a | [b](https://b.example) |\n| --- | --- |\n| c | d |",
    );
    check_markdown("  \n", "");
    check_markdown("wiki text\n", "wiki text");
}

#[test]
fn long_text_is_truncated_with_closed_block() {
    let code = "line {x}\n".repeat(500);
    let cut = from_markdown_within(&format!("before\n\n```python\n{code}```\n\nafter"), 1_000);
    assert!(cut.chars().count() <= 1_000 && cut.chars().count() > 500);
    assert!(cut.ends_with("\n{code}\n\n…"), "{cut}");
    assert_eq!(from_markdown_within("short", 5), "short");
    let cut = from_markdown_within(&"*".repeat(1_000), 300);
    assert!(cut.chars().count() <= 300, "{}", cut.len());
}

/// Escapes a text so that Markdown shows it literally. Leading spaces are dropped, because four of them begin
/// a code block.
fn escape_markdown(text: &str) -> String {
    let mut markdown = String::new();
    for c in text.trim_start().chars() {
        if c.is_ascii_punctuation() {
            markdown.push('\\');
        }
        markdown.push(c);
    }
    markdown
}

fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Generates texts of words, spaces and the delimiters of both languages.
fn any_hostile_text() -> impl Strategy<Value = String> {
    let parts = vec![
        "{code}",
        "{noformat}",
        "{quote}",
        "{panel:title=x}",
        "{color:red}",
        "[~admin]",
        "[a|https://x.example]",
        "[^f]",
        "!a.png!",
        "||",
        "|",
        "*",
        "_",
        "-",
        "+",
        "^",
        "~",
        "??",
        "{{",
        "}}",
        "{",
        "}",
        "[",
        "]",
        "\\",
        "\\\\",
        "h1. ",
        "bq. ",
        "# ",
        "* ",
        "- ",
        "----",
        "(x)",
        ":)",
        "&amp;",
        "&#123;",
        "&",
        "a",
        "b1",
        " ",
        "  ",
        "é",
        "!",
        "`",
        "<b>",
        "http://x.example/a",
        "https://x.example/_a_",
        ".",
        "x",
    ];
    vec(select(parts), 0..24).prop_map(|parts| parts.concat())
}

/// Collects the delimiters of macros, links, images and monospaced text that no backslash precedes.
fn collect_active_delimiters(wiki: &str) -> Vec<char> {
    let (mut found, mut before) = (Vec::new(), ' ');
    for c in wiki.chars() {
        if "{}[]|*^~".contains(c) && before != '\\' {
            found.push(c);
        }
        before = if before == '\\' { ' ' } else { c };
    }
    found
}

proptest! {
    #[test]
    fn escaped_text_round_trips_without_active_markup(text in any_hostile_text()) {
        let wiki = from_markdown(&escape_markdown(&text));
        prop_assert_eq!(collect_active_delimiters(&wiki), Vec::<char>::new(), "{}", wiki);
        prop_assert_eq!(collapse_whitespace(&to_markdown(&wiki)), collapse_whitespace(&text), "{}", wiki);
    }

    #[test]
    fn monospaced_text_comes_back(text in any_hostile_text()) {
        let text = text.replace('`', "").trim().to_owned();
        prop_assume!(!text.is_empty());
        let wiki = from_markdown(&format!("a `` {text} `` b"));
        let expected = format!("a `{}` b", collapse_whitespace(&text));
        prop_assert_eq!(collapse_whitespace(&to_markdown(&wiki)), expected, "{}", wiki);
    }

    #[test]
    fn code_never_leaves_its_block(lines in vec(any_hostile_text(), 0..5), language in select(vec!["", "python", "rust"])) {
        let code = lines.join("\n");
        let wiki = from_markdown(&format!("````````{language}\n{}\n````````\n\nafter", code.replace('`', "")));
        let (block, after) = wiki.rsplit_once("\n\n").unwrap();
        prop_assert_eq!(after, "after");
        let inside = ["{noformat}", "{code:none}", "{code:python}"].iter().find_map(|head| {
            let end = if head.starts_with("{code") { "{code}" } else { "{noformat}" };
            block.strip_prefix(head)?.strip_suffix(end).map(|inside| (inside, end))
        });
        match inside {
            Some((inside, end)) => prop_assert!(!inside.contains(&end[..end.len() - 1]), "{}", wiki),
            None => for line in block.lines() {
                let inside = line.strip_prefix("{{").and_then(|line| line.strip_suffix("}}"));
                prop_assert_eq!(inside.map(collect_active_delimiters), Some(Vec::new()), "{}", wiki);
            },
        }
    }

    #[test]
    fn cells_items_and_links_keep_text(text in any_hostile_text()) {
        let text = collapse_whitespace(&text.replace('`', ""));
        prop_assume!(!text.is_empty());
        let shown = escape_markdown(&text);
        let table = from_markdown(&format!("| a | b |\n|---|---|\n| {} | c |", shown.replace("\\|", "\\\\\\|")));
        prop_assert_eq!(table.lines().count(), 2, "{}", table);
        let list = to_markdown(&from_markdown(&format!("- {shown}\n- c")));
        let (first, second) = list.rsplit_once('\n').unwrap();
        prop_assert_eq!((collapse_whitespace(first), second), (format!("- {text}"), "- c"));
        let link = from_markdown(&format!("[{shown}](https://x.example/y)"));
        let ends = link.strip_prefix('[').and_then(|link| link.strip_suffix("|https://x.example/y]"));
        let bars = ends.map(|text| text.contains(['[', ']', '|', '{', '}']));
        prop_assert_eq!(bars, Some(false), "{}", link);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

    #[test]
    fn fuzz_any_text_is_read_and_written(text in any::<String>(), parts in any_hostile_text()) {
        let text = format!("{parts}{text}\n{parts}");
        let _ = from_markdown(&text);
        let _ = from_markdown(&to_markdown(&text));
        prop_assert!(from_markdown_within(&text, 40).chars().count() <= 40);
    }
}

#[test]
fn deep_and_wide_texts_take_no_time() {
    let began = tokio::time::Instant::now();
    for text in [
        "[",
        "*a ",
        "{*}",
        "{quote}{panel}",
        "> ",
        "- ",
        "[a|https://x.example ",
        "_*a",
        "!a.png ",
        "&",
    ] {
        let text = text.repeat(2_000);
        let _ = to_markdown(&text);
        let _ = from_markdown(&text);
    }
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
}
