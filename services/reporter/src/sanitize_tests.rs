//! What the model may write, and what is left of it.

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
        ("mail a@b.example, c# and C#7", "mail a@b.example, c# and C#7"),
        ("see https://docs.example/page", "see https://docs.example/page"),
        ("**@alice**", "**`@alice`**"),
        ("\\@alice", "`@alice`"),
        ("`x`@alice", "`x` `@alice`"),
        ("# Title\n\n- [ ] item @bob", "# Title\n\n- [ ] item `@bob`"),
    ] {
        assert_eq!(markdown(given), harmless, "{given}");
    }
}

#[test]
fn a_reference_that_is_split_by_a_backslash_or_an_entity_does_not_survive() {
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
        assert_eq!(markdown(given), harmless, "{given}");
    }
}

#[test]
fn a_footnote_mentions_nobody() {
    let harmless = markdown("See[^1].\n\n[^1]: @acme/core and #12\n");
    assert_eq!(harmless, "See[^1].\n\n[^1]: `@acme/core` and `#12`\n");
}

#[test]
fn a_backtick_of_the_text_does_not_end_ours() {
    for given in ["a ` @ann", "a ` b\n@ann", "\\`@ann", "` #12 `` @bob"] {
        let harmless = markdown(given);
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
fn what_was_escaped_stays_text_when_it_is_rewritten() {
    let harmless = markdown("\\<img src=\"https://evil.example/x\"\\> \\[x\\](https://evil.example) @ann");
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
fn links_lead_to_the_web_and_to_mail_only() {
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
        assert_eq!(markdown(given), harmless, "{given}");
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
    ] {
        assert_eq!(title(given), harmless, "{given}");
    }
}

#[test]
fn code_keeps_its_text() {
    let text = "Use `@decorator` and\n\n```python\n@cache\ndef f(): ...  # 12\n```\n";
    assert_eq!(markdown(text), text);
}

#[test]
fn html_and_images_do_not_survive() {
    assert_eq!(markdown("a <!-- hidden --> b"), "a   b");
    assert_eq!(
        markdown("see ![the @chart](https://evil.example/x.png?leak=1) here"),
        "see the `@chart` here"
    );
    assert!(!markdown("<img src=\"https://evil.example/x\">\n\ntext").contains("evil"));
    assert!(!markdown("<details>\n<!-- journeyman:effect=x -->\n</details>").contains("journeyman:effect"));
}

#[test]
fn invisible_characters_are_dropped() {
    assert_eq!(markdown("a\u{200b}b\u{202e}c"), "abc");
}

#[test]
fn any_text_is_accepted() {
    for text in [
        "", "`", "![", "<", "<!--", "@", "#", "é@ü", "||||", "> > >", "\\", "```",
    ] {
        let _ = markdown(text);
    }
}
