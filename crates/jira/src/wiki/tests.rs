//! Conversions between Markdown and wiki markup in both directions.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{from_markdown, from_markdown_within, to_markdown};

#[track_caller]
fn written(markdown: &str, wiki: &str) {
    assert_eq!(from_markdown(markdown), wiki);
}

#[track_caller]
fn read(wiki: &str, markdown: &str) {
    assert_eq!(to_markdown(wiki), markdown);
}

#[track_caller]
fn both(markdown: &str, wiki: &str) {
    written(markdown, wiki);
    read(wiki, markdown);
}

#[test]
fn paragraphs_headings_and_rules() {
    both(
        "# Title\n\nOne paragraph.\n\n### Third level\n\n---\n\nLast.",
        "h1. Title\n\nOne paragraph.\n\nh3. Third level\n\n----\n\nLast.",
    );
}

#[test]
fn marks_and_marks_within_words() {
    both(
        "Plain **bold** *leaning* ~~gone~~ `code` and **bold *and leaning***.",
        "Plain *bold* _leaning_ -gone- {{code}} and *bold _and leaning_*.",
    );
    both("half**bold**, **bold**half", "half{*}bold{*}, {*}bold{*}half");
}

#[test]
fn links_with_text_and_bare() {
    both(
        "See [the log](https://ci.example/1) or <https://ci.example/2> or https://ci.example/a_b_c.",
        "See [the log|https://ci.example/1] or [https://ci.example/2] or https://ci.example/a_b_c.",
    );
    written(
        "[a](javascript:x) ![alt](https://a.example/x.png)",
        "a [alt|https://a.example/x.png]",
    );
    written(
        "[a|b]c](https://a.example/{x}|y)",
        "\\[a\\|b\\]c\\](https://a.example/\\{x\\}\\|y)",
    );
    written(
        "[a\\|b\\]](<https://a.example/{x}|y z>)",
        "[a&#124;b&#93;|https://a.example/%7Bx%7D%7Cy%20z]",
    );
}

#[test]
fn lists_within_lists() {
    both(
        "- one\n- two\n  - inner\n  - inner two\n    1. deep\n    2. deeper\n- three",
        "* one\n* two\n** inner\n** inner two\n**# deep\n**# deeper\n* three",
    );
    both("- [x] done\n- [ ] open", "* \\[x\\] done\n* \\[ \\] open");
    written("- # Title\n\n  more\n- x", "* *Title*\nmore\n* x");
}

#[test]
fn code_keeps_what_stands_in_it() {
    both(
        "```python\ndef f():\n\n    return \"*x* {x} [~a]\"\n```",
        "{code:python}\ndef f():\n\n    return \"*x* {x} [~a]\"\n{code}",
    );
    both("```\nplain\n```", "{noformat}\nplain\n{noformat}");
    written("```rust\nfn f() {}\n```", "{noformat}\nfn f() {}\n{noformat}");
    written(
        "- run\n\n  ```sh\n  make\n  ```\n- done",
        "* run\n{code:bash}\nmake\n{code}\n* done",
    );
}

#[test]
fn code_with_macro_delimiters_stays_in_block() {
    written("```python\na {code} b\n```", "{noformat}\na {code} b\n{noformat}");
    written("```\na {noformat} b\n```", "{code:none}\na {noformat} b\n{code}");
    written(
        "```\na {Code} b\n\n{noformat} *c*\n```",
        "{{a &#123;Code&#125; b}}\n{{&#123;noformat&#125; \\*c\\*}}",
    );
}

#[test]
fn tables_and_tables_in_lists() {
    both(
        "| check | before |\n| --- | --- |\n| `make` | **fails** |\n| a \\| b |  |",
        "||check||before||\n|{{make}}|*fails*|\n|a \\| b| |",
    );
    written(
        "- one\n\n  | a | b |\n  |---|---|\n  | c | **d** |",
        "* one\na \\| b\nc \\| *d*",
    );
}

#[test]
fn quotes_and_breaks() {
    both(
        "> first\n>\n> second **bold**\n\nafter",
        "{quote}\nfirst\n\nsecond *bold*\n{quote}\n\nafter",
    );
    written("one  \n# two", "one\n\nh1. two");
    written("one  \n\\# two", "one\n\\# two");
    written("**one  \ntwo**", "*one \\\\ two*");
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
        let markdown = escaped(text);
        written(&markdown, wiki);
        read(wiki, text);
    }
}

#[test]
fn what_people_write_becomes_markdown() {
    read(
        "h2.  Steps\r\n# one\r\n#* two\r\nstill two\r\n# three",
        "## Steps\n\n1. one\n   - two\n     still two\n2. three",
    );
    read("- dash\n- dash", "- dash\n- dash");
    read(
        "[~mia] see [^log.txt] and !shot.png|thumbnail!",
        "@mia see log.txt and shot.png",
    );
    read(
        "{color:red}*urgent*{color} +under+ ??cite?? x^2^",
        "**urgent** under cite x^2^",
    );
    read(
        "[AGENT-SKIP] [x] [text|#anchor]",
        "[AGENT-SKIP] [x] [text|#anchor]",
    );
    read(
        "{panel:title=Note|borderStyle=dashed}\ntext\n{panel}",
        "> Note\n>\n> text",
    );
    read(
        "a {code:title=x.py|language=python}\nx\n{code} b",
        "a\n\n```python\nx\n```\n\nb",
    );
    read("{code}never closed", "{code}never closed");
    read("{quote}never closed", "never closed");
    read("bq. said", "> said");
    read("one\\\\ two", "one  \ntwo");
    read("{{a*b*}} a * b - c -- d", "`a*b*` a * b - c -- d");
    read(
        "run make --keep-going -x and --all",
        "run make --keep-going -x and --all",
    );
    read(
        "|a|[b|https://b.example]|\n|c|d|",
        "| a | [b](https://b.example) |\n| --- | --- |\n| c | d |",
    );
    read("  \n", "");
    read("wiki text\n", "wiki text");
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
fn escaped(text: &str) -> String {
    let mut markdown = String::new();
    for c in text.trim_start().chars() {
        if c.is_ascii_punctuation() {
            markdown.push('\\');
        }
        markdown.push(c);
    }
    markdown
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Generates texts of words, spaces and the delimiters of both languages.
fn hostile() -> impl Strategy<Value = String> {
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
fn acting(wiki: &str) -> Vec<char> {
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
    fn escaped_text_round_trips_without_active_markup(text in hostile()) {
        let wiki = from_markdown(&escaped(&text));
        prop_assert_eq!(acting(&wiki), Vec::<char>::new(), "{}", wiki);
        prop_assert_eq!(squeezed(&to_markdown(&wiki)), squeezed(&text), "{}", wiki);
    }

    #[test]
    fn monospaced_text_comes_back(text in hostile()) {
        let text = text.replace('`', "").trim().to_owned();
        prop_assume!(!text.is_empty());
        let wiki = from_markdown(&format!("a `` {text} `` b"));
        let expected = format!("a `{}` b", squeezed(&text));
        prop_assert_eq!(squeezed(&to_markdown(&wiki)), expected, "{}", wiki);
    }

    #[test]
    fn code_never_leaves_its_block(lines in vec(hostile(), 0..5), language in select(vec!["", "python", "rust"])) {
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
                prop_assert_eq!(inside.map(acting), Some(Vec::new()), "{}", wiki);
            },
        }
    }

    #[test]
    fn cells_items_and_links_keep_text(text in hostile()) {
        let text = squeezed(&text.replace('`', ""));
        prop_assume!(!text.is_empty());
        let shown = escaped(&text);
        let table = from_markdown(&format!("| a | b |\n|---|---|\n| {} | c |", shown.replace("\\|", "\\\\\\|")));
        prop_assert_eq!(table.lines().count(), 2, "{}", table);
        let list = to_markdown(&from_markdown(&format!("- {shown}\n- c")));
        let (first, second) = list.rsplit_once('\n').unwrap();
        prop_assert_eq!((squeezed(first), second), (format!("- {text}"), "- c"));
        let link = from_markdown(&format!("[{shown}](https://x.example/y)"));
        let ends = link.strip_prefix('[').and_then(|link| link.strip_suffix("|https://x.example/y]"));
        let bars = ends.map(|text| text.contains(['[', ']', '|', '{', '}']));
        prop_assert_eq!(bars, Some(false), "{}", link);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

    #[test]
    fn fuzz_any_text_is_read_and_written(text in any::<String>(), parts in hostile()) {
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
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
