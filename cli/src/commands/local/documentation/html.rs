//! Pages as HTML, with the headings and links of their Markdown.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use maud::{DOCTYPE, Escaper, PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::pages::{CONTENTS, DocumentationPage, build_anchor};

const STYLE: &str = "body{margin:0 auto;max-width:52rem;padding:1rem;font:16px/1.55 system-ui,sans-serif}\
    pre,code{font-family:ui-monospace,monospace;font-size:.9em}pre{padding:.8rem;overflow:auto;background:#8881}\
    table{border-collapse:collapse;display:block;overflow:auto}th,td{border:1px solid #8884;padding:.3rem .6rem;text-align:left;\
    vertical-align:top}img{max-width:100%}:root{color-scheme:light dark}";

/// File of a page below the folder of all pages.
pub(super) fn name_file(page: &DocumentationPage) -> String {
    match page.name {
        CONTENTS => "index.html".to_owned(),
        name => format!("{name}.html"),
    }
}

/// Renders a page for a folder of all pages. Pictures and other files that the folder lacks become text.
pub(super) fn render_page(page: &DocumentationPage, folder: &Path) -> String {
    let mut writer = HtmlWriter::new(page, folder);
    for event in Parser::new_ext(page.text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        writer.write(event);
    }
    let up = "../".repeat(page.name.matches('/').count());
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (page.title()) " · Journeyman" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav { a href={ (up) "index.html" } { "Journeyman " (env!("CARGO_PKG_VERSION")) } }
                main { (PreEscaped(writer.html)) }
            }
        }
    };
    document.into_string()
}

/// Heading that is being written.
struct OpenHeading {
    /// Place of its content in the HTML.
    start: usize,
    title: String,
}

/// Image that is being read.
struct OpenImage {
    source: String,
    alternative: String,
}

/// Writer of the body of a page.
struct HtmlWriter<'a> {
    page: &'a DocumentationPage,
    /// Folder of all pages.
    folder: &'a Path,
    html: String,
    /// Number of headings by anchor.
    anchors: BTreeMap<String, usize>,
    heading: Option<OpenHeading>,
    image: Option<OpenImage>,
    is_table_head: bool,
    /// Ends of the open elements.
    ends: Vec<&'static str>,
}

impl<'a> HtmlWriter<'a> {
    fn new(page: &'a DocumentationPage, folder: &'a Path) -> Self {
        Self {
            page,
            folder,
            html: String::new(),
            anchors: BTreeMap::new(),
            heading: None,
            image: None,
            is_table_head: false,
            ends: Vec::new(),
        }
    }

    fn write(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) => self.write_text(&text),
            Event::Code(code) => {
                self.html.push_str("<code>");
                self.write_text(&code);
                self.html.push_str("</code>");
            }
            // The pages have no HTML of their own, so it is shown as text.
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.write_text(&text),
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
        }
    }

    fn write_text(&mut self, text: &str) {
        if let Some(image) = &mut self.image {
            image.alternative.push_str(text);
            return;
        }
        if let Some(heading) = &mut self.heading {
            heading.title.push_str(text);
        }
        self.escape(text);
    }

    fn escape(&mut self, text: &str) {
        // Writing to a `String` does not fail.
        let _ = Escaper::new(&mut self.html).write_str(text);
    }

    fn write_attribute(&mut self, name: &str, value: &str) {
        self.html.push(' ');
        self.html.push_str(name);
        self.html.push_str("=\"");
        self.escape(value);
        self.html.push('"');
    }

    fn open(&mut self, tag: Tag<'_>) {
        let (start, end) = match tag {
            Tag::Paragraph => ("<p>", "</p>\n"),
            Tag::Heading { .. } => {
                self.heading = Some(OpenHeading {
                    start: self.html.len(),
                    title: String::new(),
                });
                ("", "")
            }
            Tag::BlockQuote(_) => ("<blockquote>", "</blockquote>\n"),
            Tag::CodeBlock(_) => ("<pre><code>", "</code></pre>\n"),
            Tag::List(None) => ("<ul>", "</ul>\n"),
            Tag::List(Some(first)) => {
                self.html.push_str("<ol");
                self.write_attribute("start", &first.to_string());
                (">", "</ol>\n")
            }
            Tag::Item => ("<li>", "</li>\n"),
            Tag::Table(_) => ("<table>", "</tbody></table>\n"),
            Tag::TableHead => {
                self.is_table_head = true;
                ("<thead><tr>", "</tr></thead><tbody>\n")
            }
            Tag::TableRow => ("<tr>", "</tr>\n"),
            Tag::TableCell if self.is_table_head => ("<th>", "</th>"),
            Tag::TableCell => ("<td>", "</td>"),
            Tag::Emphasis => ("<em>", "</em>"),
            Tag::Strong => ("<strong>", "</strong>"),
            Tag::Strikethrough => ("<del>", "</del>"),
            Tag::Link { dest_url, .. } => match self.resolve_link(&dest_url) {
                Some(target) => {
                    self.html.push_str("<a");
                    self.write_attribute("href", &target);
                    (">", "</a>")
                }
                None => ("", ""),
            },
            Tag::Image { dest_url, .. } => {
                self.image = Some(OpenImage {
                    source: dest_url.into_string(),
                    alternative: String::new(),
                });
                ("", "")
            }
            Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => ("", ""),
        };
        self.html.push_str(start);
        self.ends.push(end);
    }

    fn close(&mut self, tag: TagEnd) {
        if let TagEnd::Heading(level) = tag {
            self.close_heading(level as usize);
        }
        if tag == TagEnd::Image {
            self.close_image();
        }
        if tag == TagEnd::TableHead {
            self.is_table_head = false;
        }
        self.html.push_str(self.ends.pop().unwrap_or_default());
    }

    fn close_heading(&mut self, level: usize) {
        let Some(heading) = self.heading.take() else {
            return;
        };
        let content = self.html.split_off(heading.start);
        let anchor = build_anchor(&heading.title);
        let count = self.anchors.entry(anchor.clone()).or_default();
        // Of several equal headings the later ones have a number.
        let anchor = match *count {
            0 => anchor,
            earlier => format!("{anchor}-{earlier}"),
        };
        *count += 1;
        self.html.push_str(&format!("<h{level}"));
        self.write_attribute("id", &anchor);
        self.html.push_str(&format!(">{content}</h{level}>\n"));
    }

    fn close_image(&mut self) {
        let Some(image) = self.image.take() else { return };
        if !image.source.contains("://") && !self.has_file(&image.source) {
            self.escape(&image.alternative);
            return;
        }
        self.html.push_str("<img");
        self.write_attribute("src", &image.source);
        self.write_attribute("alt", &image.alternative);
        self.html.push('>');
    }

    /// True when the folder of all pages has a file that this page names.
    fn has_file(&self, target: &str) -> bool {
        let page = self.folder.join(name_file(self.page));
        let below = page.parent().unwrap_or(self.folder);
        below.join(target).is_file()
    }

    /// Target of a link in the HTML; `None` for a file outside of the documentation, or one that is not there.
    fn resolve_link(&self, target: &str) -> Option<String> {
        if target.starts_with('#') || target.contains("://") {
            return Some(target.to_owned());
        }
        let depth = self.page.name.matches('/').count();
        if target.matches("../").count() > depth {
            return None;
        }
        let (path, anchor) = match target.split_once('#') {
            Some((path, anchor)) => (path, format!("#{anchor}")),
            None => (target, String::new()),
        };
        match path.strip_suffix(".md") {
            Some(name) => Some(format!("{name}.html{anchor}")),
            None => self.has_file(path).then(|| target.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands::local::documentation::pages::list_pages;

    fn render(name: &'static str, text: &'static str) -> String {
        render_in(Path::new("/no/such/folder"), name, text)
    }

    fn render_in(folder: &Path, name: &'static str, text: &'static str) -> String {
        let page = render_page(&DocumentationPage { name, text }, folder);
        let (_, rest) = page.split_once("<main>").unwrap();
        rest.split_once("</main>").unwrap().0.to_owned()
    }

    #[test]
    fn markdown_of_pages_becomes_html() {
        let text = "# A & B\n\n## A\n\n## A\n\nText with `a < b` and **c**.\n\n- one\n- two\n\n1. x\n\n| h |\n|---|\n| c |\n\n```sh\n$ x > y\n```\n";
        let html = render("page", text);
        for part in [
            "<h1 id=\"a--b\">A &amp; B</h1>",
            "<h2 id=\"a\">A</h2>\n<h2 id=\"a-1\">A</h2>",
            "<p>Text with <code>a &lt; b</code> and <strong>c</strong>.</p>",
            "<ul><li>one</li>\n<li>two</li>\n</ul>",
            "<ol start=\"1\"><li>x</li>\n</ol>",
            "<table><thead><tr><th>h</th></tr></thead><tbody>\n<tr><td>c</td></tr>\n</tbody></table>",
            "<pre><code>$ x &gt; y\n</code></pre>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn links_lead_to_shipped_files_alone() {
        let text = "[a](setup.md#choose-the-model) [b](../README.md) [c](https://x.example/y.md) [d](#e) ![f](console/run.png)\n";
        let folder = tempfile::tempdir().unwrap();
        for below in ["console", "jobs"] {
            std::fs::create_dir(folder.path().join(below)).unwrap();
        }
        std::fs::write(folder.path().join("console/run.png"), "").unwrap();
        let html = render_in(folder.path(), "page", text);
        let expected = "<a href=\"setup.html#choose-the-model\">a</a> b <a href=\"https://x.example/y.md\">c</a> <a href=\"#e\">d</a> \
                        <img src=\"console/run.png\" alt=\"f\">";
        assert!(html.contains(expected), "{html}");
        let below = render("jobs/page", "[a](../setup.md) [b](../../README.md)\n");
        assert!(below.contains("<a href=\"../setup.html\">a</a> b"), "{below}");
        let text = "[a](../openapi.json) ![a <b>](../console/run.png) ![c](https://x.example/c.png)\n";
        let there = render_in(folder.path(), "jobs/page", text);
        let expected = "<p>a <img src=\"../console/run.png\" alt=\"a &lt;b&gt;\"> \
                        <img src=\"https://x.example/c.png\" alt=\"c\"></p>";
        assert!(there.contains(expected), "{there}");
        let absent = render("jobs/page", text);
        let expected = "<p>a a &lt;b&gt; <img src=\"https://x.example/c.png\" alt=\"c\"></p>";
        assert!(absent.contains(expected), "{absent}");
    }

    #[test]
    fn links_between_pages_resolve() {
        let mut ids = BTreeSet::new();
        let pages: Vec<(String, String)> = list_pages()
            .iter()
            .map(|page| (name_file(page), render_page(page, Path::new("/no/such/folder"))))
            .collect();
        for (file, html) in &pages {
            ids.insert(file.clone());
            let found = html
                .split(" id=\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next());
            ids.extend(found.map(|id| format!("{file}#{id}")));
        }
        for (file, html) in &pages {
            let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            for target in html
                .split("<a href=\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
            {
                let is_page = target.starts_with('#') || target.contains(".html");
                if !is_page || target.contains("://") {
                    continue;
                }
                let place = match (target.strip_prefix("../"), target.starts_with('#'), folder) {
                    (_, true, _) => format!("{file}{target}"),
                    (Some(target), ..) => target.to_owned(),
                    (None, false, "") => target.to_owned(),
                    (None, false, folder) => format!("{folder}/{target}"),
                };
                assert!(ids.contains(&place), "{file}: {target}");
            }
        }
    }
}
