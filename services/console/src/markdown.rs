//! Markdown of models and people as a safe subset of HTML.
//!
//! `pulldown-cmark` parses the text. Only the elements that this file names reach a page: HTML and images of the text
//! are shown as text. A link leads to an address of the web alone, and it ends with its host, so that a reader sees
//! where an external link leads.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, TextMergeStream};
use url::Url;

use crate::words::{make_visible, web_address};

// Longest rendered text in characters. Journals limit most texts to less.
const MOST_CHARS: usize = 40_000;
// Longest markup of a text in bytes. Every row of a table has all of its columns, so a short text can fill megabytes.
const MOST_BYTES: usize = 400_000;
// Deepest nesting of elements. Text can nest thousands of quotes, and browsers are slow with such trees.
const MOST_LEVELS: usize = 24;

/// Renders Markdown as a block of a page.
pub(crate) fn render_markdown(text: &str) -> Markup {
    let text = domain::text::truncate_text(text, MOST_CHARS);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = MarkdownPage::default();
    for event in TextMergeStream::new(Parser::new_ext(&text, options)) {
        if page.html.len() > MOST_BYTES {
            page.push_text("…");
            break;
        }
        page.push_event(event);
    }
    page.close_all();
    html! { div.markdown { (PreEscaped(page.html)) } }
}

/// Rendered text so far.
#[derive(Default)]
struct MarkdownPage {
    html: String,
    /// Ends of the open elements.
    ends: Vec<String>,
    is_table_head: bool,
    /// Number of open links and images. An image may be in a link, but HTML has no link in a link.
    links: usize,
}

impl MarkdownPage {
    fn push_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open_element(tag),
            Event::End(tag) => self.close_element(tag),
            Event::Code(text) => self.push_markup(html! { code { (make_visible(&text)) } }),
            // HTML of the text is shown as it was written.
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.push_text(&text),
            Event::FootnoteReference(name) => self.push_text(&format!("[{name}]")),
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(true) => self.push_text("☑ "),
            Event::TaskListMarker(false) => self.push_text("☐ "),
        }
    }

    fn open_element(&mut self, tag: Tag<'_>) {
        let (start, end) = match tag {
            Tag::Paragraph => ("<p>", "</p>"),
            // A heading element would become part of the page's outline.
            Tag::Heading { .. } => ("<p class=\"heading\">", "</p>"),
            Tag::BlockQuote(_) => ("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(_) => ("<pre><code>", "</code></pre>"),
            Tag::List(Some(_)) => ("<ol>", "</ol>"),
            Tag::List(None) => ("<ul>", "</ul>"),
            Tag::Item => ("<li>", "</li>"),
            // A wide table scrolls, so it must be reachable with the keyboard, and a screen reader names it then.
            Tag::Table(_) => (
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>",
                "</tbody></table></div>",
            ),
            Tag::TableHead => {
                self.is_table_head = true;
                ("<thead><tr>", "</tr></thead><tbody>")
            }
            Tag::TableRow => ("<tr>", "</tr>"),
            Tag::TableCell if self.is_table_head => ("<th scope=\"col\">", "</th>"),
            Tag::TableCell => ("<td>", "</td>"),
            Tag::Emphasis => ("<em>", "</em>"),
            Tag::Strong => ("<strong>", "</strong>"),
            Tag::Strikethrough => ("<del>", "</del>"),
            Tag::Link { dest_url, .. } => return self.open_link(&dest_url, ""),
            Tag::Image { dest_url, .. } => return self.open_link(&dest_url, "image: "),
            Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => ("", ""),
        };
        self.open(start.to_owned(), end.to_owned());
    }

    /// Opens a link with the host of its address, or only its text in another link and for an address that a browser
    /// must not follow.
    fn open_link(&mut self, address: &str, before: &str) {
        self.links += 1;
        let host = web_address(address)
            .filter(|_| self.links == 1)
            .and_then(|address| Url::parse(address).ok())
            .and_then(|parsed| parsed.host_str().map(make_visible));
        let Some(host) = host else {
            self.open(String::new(), String::new());
            return self.push_text(before);
        };
        // The tag is closed by its end, so the element is written in two halves.
        let start = html! { a href=(address) rel="noreferrer nofollow" { (before) } }.into_string();
        // The host is inside, so a link without a text has a name, too.
        let end = html! { span.external { " ↗ " (host) } }.into_string();
        let start = start.strip_suffix("</a>").unwrap_or(&start).to_owned();
        self.open(start, format!("{end}</a>"));
    }

    fn open(&mut self, start: String, end: String) {
        let is_too_deep = self.ends.len() >= MOST_LEVELS;
        let (start, end) = if is_too_deep {
            Default::default()
        } else {
            (start, end)
        };
        self.html.push_str(&start);
        self.ends.push(end);
    }

    fn close_element(&mut self, tag: TagEnd) {
        if tag == TagEnd::TableHead {
            self.is_table_head = false;
        }
        if matches!(tag, TagEnd::Link | TagEnd::Image) {
            self.links = self.links.saturating_sub(1);
        }
        self.html.push_str(&self.ends.pop().unwrap_or_default());
    }

    /// Closes the elements that the end of the text left open.
    fn close_all(&mut self) {
        while let Some(end) = self.ends.pop() {
            self.html.push_str(&end);
        }
    }

    fn push_text(&mut self, text: &str) {
        self.push_markup(html! { (make_visible(text)) });
    }

    fn push_markup(&mut self, markup: Markup) {
        self.html.push_str(&markup.into_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_inner_html(text: &str) -> String {
        let page = render_markdown(text).into_string();
        let inner = page.strip_prefix("<div class=\"markdown\">").unwrap();
        inner.strip_suffix("</div>").unwrap().to_owned()
    }

    #[test]
    fn common_constructs_become_elements() {
        for (text, expected) in [
            (
                "# Plan\n\nA *b* **c** `d`",
                "<p class=\"heading\">Plan</p><p>A <em>b</em> <strong>c</strong> <code>d</code></p>",
            ),
            (
                "- [x] done\n- [ ] open",
                "<ul><li>☑ done</li><li>☐ open</li></ul>",
            ),
            ("1. one", "<ol><li>one</li></ol>"),
            ("```py\na < b\n```", "<pre><code>a &lt; b\n</code></pre>"),
            ("> said", "<blockquote><p>said</p></blockquote>"),
            (
                "| a |\n|---|\n| ~~b~~ |",
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table><thead><tr><th \
                 scope=\"col\">a</th></tr></thead><tbody><tr><td><del>b</del></td></tr></tbody></table></div>",
            ),
        ] {
            assert_eq!(render_inner_html(text), expected, "{text}");
        }
    }

    #[test]
    fn external_links_show_their_host() {
        assert_eq!(
            render_inner_html("[docs](https://evil.example/x?a=\"b)"),
            "<p><a href=\"https://evil.example/x?a=&quot;b\" rel=\"noreferrer nofollow\">docs<span class=\"external\"> ↗ \
             evil.example</span></a></p>"
        );
        assert_eq!(
            render_inner_html("![shot](https://a.example/p.png)"),
            "<p><a href=\"https://a.example/p.png\" rel=\"noreferrer nofollow\">image: shot<span class=\"external\"> ↗ \
             a.example</span></a></p>"
        );
        for wrong in [
            "[x](javascript:alert(1))",
            "[x](/local)",
            "[x](data:text/html,y)",
            "[x](#a)",
        ] {
            assert_eq!(render_inner_html(wrong), "<p>x</p>", "{wrong}");
        }
    }

    #[test]
    fn links_have_names_and_contain_no_link() {
        for text in [
            "[![built](https://a.example/b.svg)](https://ci.example)",
            "![see [docs](https://a.example)](https://ci.example)",
            "[](https://ci.example)",
        ] {
            let page = render_inner_html(text);
            assert_eq!(page.matches("<a ").count(), 1, "{page}");
            assert!(page.contains("href=\"https://ci.example\""), "{page}");
            assert!(page.ends_with(" ↗ ci.example</span></a></p>"), "{page}");
        }
        let next = render_inner_html("[a](https://a.example) [b](https://b.example)");
        assert_eq!(next.matches("<a ").count(), 2, "{next}");
    }

    #[test]
    fn markup_of_text_stays_text() {
        let hostile = "<script>alert(1)</script>\n\n<a hx-get=/x>y</a> <img src=x onerror=z> \u{202e}\n\n<div\nhx-get=/x>";
        let page = render_inner_html(hostile);
        for wrong in ["<script", "<a ", "<img", "<div", "\u{202e}"] {
            assert!(!page.contains(wrong), "{wrong}: {page}");
        }
        assert!(
            page.contains("&lt;script&gt;") && page.contains("&lt;U+202E&gt;"),
            "{page}"
        );
    }

    #[test]
    fn deep_nesting_and_length_are_bounded() {
        let deep = render_inner_html(&format!("{} x", ">".repeat(5_000)));
        assert!(
            deep.matches("<blockquote>").count() <= MOST_LEVELS,
            "{}",
            deep.len()
        );
        assert_eq!(
            deep.matches("<blockquote>").count(),
            deep.matches("</blockquote>").count()
        );
        let long = render_inner_html(&"word ".repeat(20_000));
        assert!(long.chars().count() < MOST_CHARS + 100, "{}", long.len());
        let columns = 5_000;
        let table = format!(
            "{}\n{}\n{}",
            "a|".repeat(columns),
            "-|".repeat(columns),
            "b\n".repeat(columns)
        );
        let wide = render_inner_html(&table);
        assert!(wide.len() < MOST_BYTES + 1_000, "{}", wide.len());
        assert!(
            wide.contains('…') && wide.ends_with("</tbody></table></div>"),
            "{}",
            wide.len()
        );
    }
}
