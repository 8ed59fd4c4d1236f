//! Removal of text that a reader does not see. It runs once, before the text is pinned or judged. It is hygiene, not a
//! security boundary: the prompt also declares tickets to be information.

use std::ops::Range;

use domain::text;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// Elements whose content browsers do not render.
const UNSHOWN: [&str; 6] = ["script", "style", "template", "noscript", "head", "datalist"];
/// Attribute fragments that hide an element.
const HIDING: [&str; 7] = [
    "hidden",
    "display:none",
    "visibility:hidden",
    "font-size:0",
    "opacity:0",
    "aria-hidden=\"true\"",
    "aria-hidden='true'",
];
/// Elements without content and end tag.
const VOID: [&str; 7] = ["area", "br", "hr", "img", "input", "source", "wbr"];
/// Attributes with text or addresses, whose values hide nothing.
const TEXT_ATTRIBUTES: [&str; 4] = ["alt", "href", "src", "title"];
// Longest reference that is parsed, in bytes. Valid names and numbers are shorter.
const LONGEST_REFERENCE: usize = 32;
// Links and images that are nested deeper are not Markdown that people write.
const MOST_AROUND: usize = 8;
// Removing one construct may join the halves of another. Deeper nesting than this is an attack, so all markup
// characters are dropped then.
const ROUNDS: usize = 8;

/// Removes invisible content: hidden characters, literal or as references, HTML comments, declarations and processing
/// instructions, hidden elements, and hover texts (titles of images and links).
///
/// The result is the rendered text. Joiners and selectors that a script or an emoji needs stay, and so does the
/// alternative text of an image: it is what a reader without the image sees.
pub(crate) fn sanitize_text(raw: &str) -> String {
    let unified = raw.replace("\r\n", "\n").replace('\r', "\n");
    let mut clean = text::remove_hidden(&sanitize_once(&text::remove_hidden(&unified)));
    for _ in 0..ROUNDS {
        let again = text::remove_hidden(&sanitize_once(&clean));
        if again == clean {
            return clean;
        }
        clean = again;
    }
    clean.replace(['<', '&'], "")
}

fn sanitize_once(raw: &str) -> String {
    remove_hidden_elements(&remove_comments(&remove_references(raw)))
}

/// Removes references to hidden characters, such as `&#8203;`, `&#x202E;` and `&shy;`.
fn remove_references(raw: &str) -> String {
    let mut kept = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(start) = rest.find('&') {
        kept.push_str(&rest[..start]);
        rest = &rest[start..];
        let name = rest[1..]
            .find(';')
            .filter(|end| *end < LONGEST_REFERENCE)
            .map(|end| &rest[1..=end]);
        match name.filter(|name| is_hidden_reference(name)) {
            Some(name) => rest = &rest[name.len() + 2..],
            None => {
                kept.push('&');
                rest = &rest[1..];
            }
        }
    }
    kept.push_str(rest);
    kept
}

fn is_hidden_reference(name: &str) -> bool {
    let named = [
        "shy",
        "zwj",
        "zwnj",
        "lrm",
        "rlm",
        "ZeroWidthSpace",
        "NoBreak",
        "NegativeThinSpace",
        "InvisibleTimes",
        "InvisibleComma",
        "ApplyFunction",
        "it",
        "ic",
        "af",
    ];
    let code = match name
        .strip_prefix('#')
        .map(|number| number.strip_prefix(['x', 'X']).ok_or(number))
    {
        Some(Ok(hexadecimal)) => u32::from_str_radix(hexadecimal, 16).ok(),
        Some(Err(decimal)) => decimal.parse().ok(),
        None => return named.contains(&name),
    };
    // A number that is not a valid character renders nothing either.
    code.is_some_and(|code| char::from_u32(code).is_none_or(text::is_hidden))
}

/// Removes HTML comments, also those written with references. An unclosed comment at the start of a line hides the
/// rest, as in Markdown renderers; elsewhere `<!--` is literal text, and so is a comment in code.
fn remove_comments(raw: &str) -> String {
    const OPENERS: [&str; 2] = ["<!--", "&lt;!--"];
    if find_first(raw, OPENERS).is_none() {
        return raw.to_owned();
    }
    let mut kept = String::with_capacity(raw.len());
    let mut code = list_code(raw).into_iter().peekable();
    let mut at = 0;
    // An unclosed comment means that no later comment closes either. Searching again for each opener would be
    // quadratic.
    let mut may_close = true;
    while let Some((offset, opener)) = find_first(&raw[at..], OPENERS) {
        let start = at + offset;
        while code.next_if(|shown| shown.end <= start).is_some() {}
        if let Some(shown) = code.peek().filter(|shown| shown.contains(&start)) {
            kept.push_str(&raw[at..shown.end]);
            at = shown.end;
            continue;
        }
        kept.push_str(&raw[at..start]);
        let body = start + opener.len();
        let closed = may_close
            .then(|| find_first(&raw[body..], ["-->", "--&gt;"]))
            .flatten();
        may_close = closed.is_some();
        if let Some((end, closer)) = closed {
            at = body + end + closer.len();
        } else if is_blank(kept.rsplit('\n').next()) {
            return kept;
        } else {
            kept.push_str(opener);
            at = body;
        }
    }
    kept.push_str(&raw[at..]);
    kept
}

/// Positions of code, in their order. A page shows all of its characters.
#[expect(clippy::wildcard_enum_match_arm, reason = "other Markdown is no code")]
fn list_code(raw: &str) -> Vec<Range<usize>> {
    let parser = Parser::new_ext(raw, Options::all()).into_offset_iter();
    let code = parser.filter_map(|(event, range)| match event {
        Event::Start(Tag::CodeBlock(_)) | Event::Code(_) => Some(range),
        _ => None,
    });
    code.collect()
}

/// True for a missing or blank line prefix.
fn is_blank(line: Option<&str>) -> bool {
    line.is_none_or(|line| line.trim().is_empty())
}

/// First of two patterns in a text and its offset, in one pass.
fn find_first(text: &str, [one, other]: [&'static str; 2]) -> Option<(usize, &'static str)> {
    let starts = [one, other].map(|part| part.chars().next().unwrap_or_default());
    text.match_indices(starts).find_map(|(at, _)| {
        let here = [one, other].into_iter().find(|part| text[at..].starts_with(part));
        here.map(|part| (at, part))
    })
}

/// Removes hidden elements, hover texts and attributes at the positions that the Markdown parser reports. Code is
/// unchanged.
// The parser decides what is code: the same characters in a code block are visible and must survive.
#[expect(clippy::wildcard_enum_match_arm, reason = "other Markdown hides nothing")]
fn remove_hidden_elements(raw: &str) -> String {
    let mut cuts: Vec<(Range<usize>, String)> = Vec::new();
    let mut hidden: Option<(String, usize)> = None;
    let mut links: Vec<TitledLink> = Vec::new();
    // Number of open images. Their content is text, also where it looks like HTML.
    let mut images = 0_usize;
    let parser = Parser::new_ext(raw, Options::all());
    for (_, definition) in parser.reference_definitions().iter() {
        // The title of a link definition shows up on hovering only.
        if definition.title.is_some() {
            let source = &raw[definition.span.clone()];
            let label = source.find("]:").map_or("", |end| &source[..end]);
            cuts.push((definition.span.clone(), format!("{label}]: {}", definition.dest)));
        }
    }
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                ..
            }) => note_link(&mut links, &range, 1, (link_type, &dest_url, &title)),
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                ..
            }) => {
                images += 1;
                note_link(&mut links, &range, 2, (link_type, &dest_url, &title));
            }
            Event::End(TagEnd::Image) => images = images.saturating_sub(1),
            Event::Html(_) | Event::InlineHtml(_) if images == 0 => {
                for tag in list_tags(raw, range) {
                    cut_tag(raw, &tag, &mut hidden, &mut cuts);
                }
            }
            Event::Text(_) | Event::Code(_) | Event::InlineHtml(_) => note_end(&mut links, &range),
            _ => {}
        }
    }
    // An element without an end tag hides the rest of the text, as in a browser.
    if let Some((_, from)) = hidden {
        cuts.push((from..raw.len(), String::new()));
    }
    for link in links {
        let text_end = raw[link.text_end..link.range.end]
            .find(']')
            .map_or(link.range.end, |at| link.text_end + at);
        cuts.push((text_end..link.range.end, format!("]({})", link.address)));
    }
    apply_cuts(raw, cuts)
}

/// Link or image with a title.
struct TitledLink {
    range: Range<usize>,
    address: String,
    /// End of the text or element that is known to be within its brackets.
    text_end: usize,
}

/// Notes a link or image whose title has to go. `opener` is the length of what precedes its text.
fn note_link(
    links: &mut Vec<TitledLink>,
    range: &Range<usize>,
    opener: usize,
    (kind, address, title): (LinkType, &str, &str),
) {
    // It is a part of the text of the links around it.
    note_end(links, range);
    // The title of another type is in its definition.
    if kind == LinkType::Inline && !title.is_empty() {
        links.push(TitledLink {
            range: range.clone(),
            address: address.to_owned(),
            text_end: range.start + opener,
        });
    }
}

/// Extends the end of the text of all links around a part.
fn note_end(links: &mut [TitledLink], part: &Range<usize>) {
    for link in links.iter_mut().rev().take(MOST_AROUND) {
        if link.range.contains(&part.start) {
            link.text_end = link.text_end.max(part.end);
        }
    }
}

/// HTML tag; the name is empty for a declaration or processing instruction.
struct HtmlTag<'a> {
    range: Range<usize>,
    name: &'a str,
    is_end: bool,
}

/// Tags in a piece of HTML.
fn list_tags(raw: &str, piece: Range<usize>) -> Vec<HtmlTag<'_>> {
    let mut found = Vec::new();
    let mut at = piece.start;
    while let Some(start) = raw[at..piece.end].find('<').map(|offset| at + offset) {
        let Some(end) = raw[start..piece.end].find('>').map(|offset| start + offset + 1) else {
            break;
        };
        let inner = &raw[start + 1..end - 1];
        let is_end = inner.starts_with('/');
        let name = inner.trim_start_matches('/');
        let length = name
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .unwrap_or(name.len());
        found.push(HtmlTag {
            range: start..end,
            name: &name[..length],
            is_end,
        });
        at = end;
    }
    found
}

/// Removes hidden elements, declarations, and all attributes except addresses and the `alt` of images.
fn cut_tag(
    raw: &str,
    tag: &HtmlTag<'_>,
    hidden: &mut Option<(String, usize)>,
    cuts: &mut Vec<(Range<usize>, String)>,
) {
    let name = tag.name.to_ascii_lowercase();
    if let Some((element, from)) = hidden {
        if tag.is_end && *element == name {
            cuts.push((*from..tag.range.end, String::new()));
            *hidden = None;
        }
        return;
    }
    if name.is_empty() {
        cuts.push((tag.range.clone(), String::new()));
        return;
    }
    if tag.is_end {
        return;
    }
    let inner = &raw[tag.range.start + 1 + name.len()..tag.range.end - 1];
    let is_hidden = hides_element(inner);
    if is_hidden && VOID.contains(&name.as_str()) {
        cuts.push((tag.range.clone(), String::new()));
    } else if is_hidden || UNSHOWN.contains(&name.as_str()) {
        *hidden = Some((name, tag.range.start));
    } else if inner.contains('=') {
        let kept = match name.as_str() {
            "img" => find_attributes(inner, &["src", "alt"]),
            _ => find_link_attribute(inner),
        };
        cuts.push((tag.range.clone(), format!("<{name}{kept}>")));
    }
}

/// True for attributes that hide their element.
fn hides_element(attributes: &str) -> bool {
    let mut rest = without_text_values(attributes).to_ascii_lowercase();
    if let Some(style) = find_value(&rest, "style") {
        if rest[style.clone()].split(';').any(hides_by_style) {
            return true;
        }
        rest.replace_range(style, "");
    }
    // Whitespace is insignificant here: `style = "display : none"` hides too.
    let squeezed: String = rest.chars().filter(|c| !c.is_whitespace()).collect();
    HIDING.iter().any(|hiding| squeezed.contains(hiding))
}

/// True for a declaration of a style that hides an element. `overflow:hidden` and `font-size:0.9em` hide none.
fn hides_by_style(declaration: &str) -> bool {
    let Some((property, value)) = declaration.split_once(':') else {
        return false;
    };
    // `!important` may follow.
    let value = value.trim().split([' ', '!']).next().unwrap_or_default();
    match property.trim() {
        "display" => value == "none",
        "visibility" => matches!(value, "hidden" | "collapse"),
        "font-size" | "opacity" => is_tiny(value),
        _ => false,
    }
}

/// True for a size or an opacity at which a reader sees no text.
fn is_tiny(value: &str) -> bool {
    let length = value
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(value.len());
    let (number, unit) = value.split_at(length);
    let least = match unit {
        "px" | "pt" => 2.0,
        "%" => 10.0,
        _ => 0.1,
    };
    number.parse::<f64>().is_ok_and(|number| number < least)
}

/// Attributes of an element without the values that are text or addresses: an image of a "hidden button" is visible.
fn without_text_values(attributes: &str) -> String {
    let mut rest = attributes.to_owned();
    for name in TEXT_ATTRIBUTES {
        if let Some(range) = find_value(&rest, name) {
            rest.replace_range(range, "");
        }
    }
    rest
}

/// Position of an attribute's value, without quotation marks.
fn find_value(attributes: &str, name: &str) -> Option<Range<usize>> {
    let lower = attributes.to_ascii_lowercase();
    let wanted = format!("{name}=");
    let mut starts = lower.match_indices(&wanted).map(|(at, _)| at);
    // `data-alt=` is another attribute.
    let at = starts.find(|at| {
        let before = lower[..*at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '/'))
    })?;
    let from = at + wanted.len();
    let value = &attributes[from..];
    let from = from + (value.len() - value.trim_start().len());
    let value = &attributes[from..];
    let length = match value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) => {
            let inside = &value[1..];
            let end = inside.find(quote).unwrap_or(inside.len());
            return Some(from + 1..from + 1 + end);
        }
        None => value.find(char::is_whitespace).unwrap_or(value.len()),
    };
    Some(from..from + length)
}

/// Value of an attribute.
pub(super) fn find_attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    find_value(attributes, name).map(|range| &attributes[range])
}

/// These attributes of an element, as far as it has them.
fn find_attributes(attributes: &str, names: &[&str]) -> String {
    let found = names.iter().filter_map(|name| {
        let value = find_attribute(attributes, name)?;
        Some(format!(" {name}=\"{}\"", value.replace('"', "")))
    });
    found.collect()
}

/// Attribute with the target of an element; empty without one.
fn find_link_attribute(attributes: &str) -> String {
    let mut names = ["href", "src"].iter();
    let found = names.find_map(|name| {
        let kept = find_attributes(attributes, &[name]);
        (!kept.is_empty()).then_some(kept)
    });
    found.unwrap_or_default()
}

/// Applies replacements. Of two overlapping ones, the earlier start wins.
fn apply_cuts(raw: &str, mut cuts: Vec<(Range<usize>, String)>) -> String {
    // Of two replacements with the same start the longer one comes first, so that it covers the shorter
    // one.
    cuts.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut kept = String::with_capacity(raw.len());
    let mut at = 0;
    for (range, with) in cuts {
        if range.start < at {
            continue;
        }
        kept.push_str(&raw[at..range.start]);
        kept.push_str(&with);
        at = range.end;
    }
    kept.push_str(&raw[at..]);
    kept
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    #[test]
    fn hidden_text_goes_visible_text_stays() {
        let corpus = [
            ("plain *text* with `code`", "plain *text* with `code`"),
            ("a<!-- run rm -rf -->b", "ab"),
            ("a<!-- one --><!-- two -->b", "ab"),
            ("a<!-- over\nlines -->b", "ab"),
            ("seen\n<!-- never closed", "seen\n"),
            ("seen\n  <!-- never closed", "seen\n  "),
            ("write `<!--` to open one", "write `<!--` to open one"),
            ("a &lt;!-- obey --&gt; b", "a  b"),
            (
                "write `<!-- shown -->`<!-- obey --> at the top",
                "write `<!-- shown -->` at the top",
            ),
            (
                "```html\n<!-- shown -->\n```\n<!-- obey -->\nx",
                "```html\n<!-- shown -->\n```\n\nx",
            ),
            (
                "- one\n\n      <!-- shown -->\n",
                "- one\n\n      <!-- shown -->\n",
            ),
            ("<!-- obey ` -->x` <!-- obey -->", "x` "),
            (
                "<div>\n```\n<!-- obey -->\n```\n</div>",
                "<div>\n```\n\n```\n</div>",
            ),
            ("zero\u{200B}width\u{FEFF}", "zerowidth"),
            ("<\u{200B}!-- split opener -->x", "x"),
            ("bidi\u{202E}txt\u{2066}.", "biditxt."),
            ("soft\u{AD}hyphen", "softhyphen"),
            ("tag\u{E0041}\u{E007F}s", "tags"),
            ("selector\u{FE0F}\u{E0100}", "selector"),
            (
                "می\u{200C}خواهم \u{26A0}\u{FE0F}",
                "می\u{200C}خواهم \u{26A0}\u{FE0F}",
            ),
            (
                "\u{1F468}\u{200D}\u{1F467}<!-- x -->\u{200D}x",
                "\u{1F468}\u{200D}\u{1F467}x",
            ),
            (
                "blank\u{3164}\u{115F}\u{FFA0}\u{2800}\u{FFF9}\u{180B}\u{1D173}",
                "blank",
            ),
            ("refer&#8203;en&#x202E;ces&shy;&zwj;", "references"),
            ("a &amp; b &#65; &unknown; &", "a &amp; b &#65; &unknown; &"),
            ("bell\u{7}esc\u{1b}[31m", "bellesc[31m"),
            ("line\r\nbreak\rand\ttab", "line\nbreak\nand\ttab"),
            ("Grüße, 日本語, 👍", "Grüße, 日本語, 👍"),
            (
                "![obey me](https://a.example/x.png \"and me\")",
                "![obey me](https://a.example/x.png)",
            ),
            (
                "[![error 'Zahlung' failed](1.png \"obey\")](https://a.example \"and me\") [b](c \"obey\")",
                "[![error 'Zahlung' failed](1.png)](https://a.example) [b](c)",
            ),
            ("![a [b](c \"obey\") d](e \"obey\")", "![a [b](c) d](e)"),
            (
                "[![](1.png)](https://a.example \"obey\")",
                "[![](1.png)](https://a.example)",
            ),
            (
                "![the <script> tag](1.png) seen",
                "![the <script> tag](1.png) seen",
            ),
            (
                "<img title=\"obey\" alt=\"second picture\" src='2.png'> seen",
                "<img src=\"2.png\" alt=\"second picture\"> seen",
            ),
            (
                "<img alt='the hidden button' src=\"https://a.example/hidden.png\"> seen",
                "<img src=\"https://a.example/hidden.png\" alt=\"the hidden button\"> seen",
            ),
            ("a <img hidden src=\"pixel.png\"> b", "a  b"),
            ("<img data-alt=\"obey\" src=\"1.png\">", "<img src=\"1.png\">"),
            (
                "[docs](https://a.example \"obey me\") here",
                "[docs](https://a.example) here",
            ),
            (
                "[docs]\n\n[docs]: https://a.example \"obey me\"\n",
                "[docs]\n\n[docs]: https://a.example\n",
            ),
            ("a <?php obey ?> b", "a  b"),
            ("a <!DOCTYPE obey> b", "a  b"),
            ("a <span hidden>obey</span> b", "a  b"),
            ("a <span style=\"display: none\">obey</span> b", "a  b"),
            ("a <b title=\"obey\">bold</b>", "a <b>bold</b>"),
            ("a <b title=\"the hidden flag\">seen</b>", "a <b>seen</b>"),
            (
                "a <i style=\"overflow:hidden; font-size: 0.9em;opacity:0.8\">seen</i>",
                "a <i>seen</i>",
            ),
            ("a <i style='Font-Size : 0px'>obey</i> b", "a  b"),
            (
                "a <i style=\"color:red;opacity:.01!important\">obey</i> b",
                "a  b",
            ),
            ("a <i style = \"display : none\">obey</i> b", "a  b"),
            ("a <i style=\"color:red\" hidden>obey</i> b", "a  b"),
            (
                "<a href=\"https://a.example\" title=\"obey\">x</a>",
                "<a href=\"https://a.example\">x</a>",
            ),
            ("<template>\nobey\n</template>\n\nseen", "\n\nseen"),
            ("seen\n\n<script>\nobey", "seen\n\n"),
            ("<details>\nlog\n</details>", "<details>\nlog\n</details>"),
            (
                "`![shown](x \"shown\")` and `<b title=\"shown\">`",
                "`![shown](x \"shown\")` and `<b title=\"shown\">`",
            ),
            (
                "```html\n<span hidden>shown</span>\n```",
                "```html\n<span hidden>shown</span>\n```",
            ),
        ];
        for (raw, clean) in corpus {
            assert_eq!(sanitize_text(raw), clean, "{raw:?}");
        }
    }

    #[test]
    fn nested_comments_do_not_leave_one_behind() {
        assert_eq!(sanitize_text("a<!-<!-- x -->- tricky -->b"), "ab");
        let deep = format!("{}{}", "<!-".repeat(50), "- -->".repeat(50));
        assert!(!sanitize_text(&deep).contains("<!--"));
    }

    #[test]
    fn joined_references_are_removed_too() {
        for raw in [
            "a&#82&#8203;03;b",
            "a&#82<!-- x -->03;b",
            "a&#xE00&#8203;6F;b",
            "a&sh<!-- x -->y;b",
        ] {
            assert_eq!(sanitize_text(raw), "ab", "{raw}");
        }
        let deep = format!("{}{}", "&#82".repeat(50), "03;".repeat(50));
        assert!(!sanitize_text(&deep).contains("&#8203;"));
    }

    /// Pieces of markup that hide text when they are adjacent.
    const PIECES: [&str; 24] = [
        "<!-",
        "<!--",
        "-->",
        "- ",
        "&#8203;",
        "&#82",
        "03;",
        "&shy;",
        "&sh",
        "y;",
        "x",
        "\n",
        "<b hidden>",
        "</b>",
        "<!",
        "<",
        "![a](b)",
        "[",
        "](b \"t\")",
        "`",
        "&lt;",
        "!--",
        "&#x",
        "\u{200b}",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

        #[test]
        fn fuzz_any_text_is_clean_afterwards(text in "(?s).{0,80}", bytes in vec(any::<u8>(), 0..80)) {
            for text in [text, String::from_utf8_lossy(&bytes).into_owned()] {
                let clean = sanitize_text(&text);
                prop_assert_eq!(sanitize_text(&clean), clean);
            }
        }

        #[test]
        fn sanitizing_is_complete_and_idempotent(pieces in vec(select(&PIECES[..]), 0..10)) {
            let clean = sanitize_text(&pieces.concat());
            for hidden in ["&#8203;", "&shy;", "\u{200b}"] {
                prop_assert!(!clean.contains(hidden), "{:?}", clean);
            }
            prop_assert_eq!(sanitize_text(&clean), clean);
        }
    }

    #[test]
    fn sanitizing_takes_linear_time() {
        let size = 200_000;
        for part in [
            "x<!--",
            "&lt;!--x",
            "<!-- -->",
            "[a](b \"c\")",
            "<b ",
            "<b a=c>",
            "&#8203;",
            "![",
            "&",
        ] {
            let begun = tokio::time::Instant::now();
            let _ = sanitize_text(&part.repeat(size / part.len()));
            assert!(begun.elapsed().as_secs() < 120, "{part}: {:?}", begun.elapsed());
        }
    }

    #[test]
    fn broken_markup_is_no_reason_to_fail() {
        for raw in [
            "<",
            "<>",
            "</",
            "< hidden",
            "![",
            "[a](b \"",
            "&#;",
            "&#x110000;",
            "<a href=>",
            "<é hidden>x",
        ] {
            let _ = sanitize_text(raw);
        }
    }
}
