//! Difference of a run's change, file by file: unified, or before and after side by side.

use api::types::{DiffSource, RunDiff};
use axum::{
    extract::{Path, Query},
    http::StatusCode,
};
use domain::{
    address::percent_encode,
    text::{group_digits, truncate_text},
};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    difference::{ChangeDifference, DiffHunk, DiffLine, FileDifference, LineKind, parse_difference},
    highlight::{CodeToken, HighlightBudget, LineHighlighter},
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_quantity, make_visible, run_path},
};

// Number of lines that the page shows.
const LINES: usize = 5_000;
// Number of files that the page shows. Files without lines, such as renamed ones, cost no lines.
const FILES: usize = 1_000;
// Longest shown line in characters. A generated file may be one line of megabytes.
const LINE_CHARS: usize = 2_000;
// Longest shown path, note or header of a hunk in characters. A header ends with a line of the file.
const HEADER_CHARS: usize = 500;

/// Arrangement of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DiffView {
    /// One column: removed lines above added ones.
    #[default]
    Unified,
    /// Two columns: before and after.
    Split,
}

/// Query of the page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DiffQuery {
    view: DiffView,
}

pub(super) async fn show_diff(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
    Query(asked): Query<DiffQuery>,
) -> Result<ConsolePage, PageProblem> {
    let body = match client.runs().diff(&id.parse()?).await {
        Ok(diff) => {
            let run = id.clone();
            render_on_blocking_thread(move || render_diff(&run, &diff, asked.view)).await?
        }
        Err(api::Error::Refused { status, .. }) if status == StatusCode::NOT_FOUND => render_missing(&id),
        Err(error) => return Err(error.into()),
    };
    let title = format!("Change of {}", make_visible(&id));
    Ok(ConsolePage::new(NavigationEntry::Runs, title, body))
}

/// Renders a page with a difference on a thread for blocking work. Megabytes of code would hold up the other pages.
///
/// # Errors
/// When the rendering panics.
pub(super) async fn render_on_blocking_thread(
    render: impl FnOnce() -> Markup + Send + 'static,
) -> Result<Markup, PageProblem> {
    Ok(tokio::task::spawn_blocking(render).await?)
}

/// Returns the address of a file's difference.
pub(super) fn diff_path(run: &str, file: &str) -> String {
    format!("{}/diff#{}", run_path(run), name_anchor(file))
}

fn name_anchor(file: &str) -> String {
    format!("file-{}", percent_encode(&truncate_text(file, HEADER_CHARS)))
}

/// Returns a path, note or header with a limited length.
fn show_header(text: &str) -> String {
    make_visible(&truncate_text(text, HEADER_CHARS))
}

fn render_missing(run: &str) -> Markup {
    html! {
        p {
            "No difference of this run is kept. A run keeps it when it pushes its change, when it asks a person about it, or "
            "when its change is reviewed."
        }
        p { a href=(run_path(run)) { "To the run" } }
    }
}

pub(super) fn render_diff(run: &str, diff: &RunDiff, view: DiffView) -> Markup {
    let change = parse_difference(&diff.text);
    let path = run_path(run);
    html! {
        p { (describe_source(diff.source)) " " a href=(path) { "To the run" } }
        @if !change.is_complete { div.box { p { "A part of the difference is missing here." } } }
        p.actions {
            @match view {
                DiffView::Unified => { strong { "Unified" } a href={ (path) "/diff?view=split" } { "Side by side" } }
                DiffView::Split => { a href={ (path) "/diff" } { "Unified" } strong { "Side by side" } }
            }
        }
        (render_file_list(&change))
        (render_files(&change, view))
    }
}

const fn describe_source(source: DiffSource) -> &'static str {
    match source {
        DiffSource::Decision => "This is the change that a person was asked to decide about.",
        DiffSource::Pushed => "This is the change that the run pushed last.",
        DiffSource::Workspace => "This is the change when the run last looked at it; it is not pushed.",
    }
}

fn render_file_list(change: &ChangeDifference<'_>) -> Markup {
    html! {
        h2 { (format_quantity(change.files.len(), "file")) }
        ul.files {
            @for file in change.files.iter().take(FILES) {
                li { a href={ "#" (name_anchor(&file.path)) } { (show_header(&file.path)) } " " (render_size(file)) }
            }
        }
    }
}

/// Renders the numbers of added and removed lines.
fn render_size(file: &FileDifference<'_>) -> Markup {
    html! {
        span.good { "+" (group_digits(file.added as u64)) } " "
        span.removed { "−" (group_digits(file.removed as u64)) }
        @if !file.note.is_empty() { " " span.soft { (show_header(&file.note)) } }
    }
}

fn render_files(change: &ChangeDifference<'_>, view: DiffView) -> Markup {
    let mut code = CodePage {
        budget: HighlightBudget::default(),
        lines: LINES,
    };
    let files: Vec<Markup> = change
        .files
        .iter()
        .take(FILES)
        .map(|file| code.render_file(file, view))
        .collect();
    let all: usize = change
        .files
        .iter()
        .flat_map(|file| &file.hunks)
        .map(|hunk| hunk.lines.len())
        .sum();
    // The files that are left out may have lines for which the page had room.
    let left_out = (all - (LINES - code.lines)) as u64;
    let more_files = change.files.len().saturating_sub(FILES) as u64;
    html! {
        @for file in &files { (file) }
        @if more_files > 0 { p { (group_digits(more_files)) " more files are left out: read them with journeyman diff." } }
        @if left_out > 0 { p { (group_digits(left_out)) " more lines are left out: read them with journeyman diff." } }
    }
}

/// Remaining lines and highlighting of a page.
struct CodePage {
    budget: HighlightBudget,
    lines: usize,
}

/// Highlighters of the two versions of a file. A hunk begins somewhere in the file, so each has its own.
struct VersionHighlighters {
    old: Option<LineHighlighter>,
    new: Option<LineHighlighter>,
}

impl CodePage {
    fn render_file(&mut self, file: &FileDifference<'_>, view: DiffView) -> Markup {
        let start = LineHighlighter::of_path(&file.path);
        let hunks: Vec<Markup> = file
            .hunks
            .iter()
            .map(|hunk| self.render_hunk(start.as_ref(), hunk, view))
            .collect();
        html! {
            details.file id=(name_anchor(&file.path)) open {
                summary { code { (show_header(&file.path)) } " " (render_size(file)) }
                @if !hunks.is_empty() {
                    div.scroll tabindex="0" role="region" aria-label={ "Difference of " (show_header(&file.path)) } {
                        table class={ "code " (view.class()) } { @for hunk in &hunks { (hunk) } }
                    }
                }
            }
        }
    }

    /// Renders a hunk. `start` is the highlighter of its file before any line.
    fn render_hunk(
        &mut self,
        start: Option<&LineHighlighter>,
        hunk: &DiffHunk<'_>,
        view: DiffView,
    ) -> Markup {
        let shown = hunk.lines.len().min(self.lines);
        self.lines -= shown;
        // A large difference has many more hunks than the page shows.
        if shown == 0 {
            return html! {};
        }
        let mut highlighters = VersionHighlighters {
            old: start.cloned(),
            new: start.cloned(),
        };
        let lines = hunk.lines.iter().take(shown);
        let lines: Vec<CodeLine> = lines
            .map(|line| self.render_line(*line, &mut highlighters))
            .collect();
        html! {
            tbody {
                tr.hunk { td colspan=(view.columns()) { (show_header(hunk.header)) } }
                @match view {
                    DiffView::Unified => @for line in &lines { (render_unified_row(line)) },
                    DiffView::Split => @for (old, new) in pair_lines(&lines) { (render_split_row(old, new)) },
                }
            }
        }
    }

    fn render_line(&mut self, line: DiffLine<'_>, highlighters: &mut VersionHighlighters) -> CodeLine {
        let (text, left_out) = shorten_line(line.text);
        // Both versions have a context line, so both highlighters need it.
        if line.kind == LineKind::Context
            && let Some(old) = &mut highlighters.old
        {
            old.highlight_line(text, &mut self.budget);
        }
        let highlighter = match line.kind {
            LineKind::Removed => &mut highlighters.old,
            LineKind::Added | LineKind::Context => &mut highlighters.new,
        };
        let tokens = highlighter
            .as_mut()
            .map(|known| known.highlight_line(text, &mut self.budget));
        CodeLine {
            kind: line.kind,
            old: line.old,
            new: line.new,
            code: html! {
                (render_code(text, tokens.as_deref()))
                @if left_out > 0 { span.warm { " … " (group_digits(left_out)) " more characters of this line are left out" } }
            },
        }
    }
}

impl DiffView {
    const fn class(self) -> &'static str {
        match self {
            Self::Unified => "unified",
            Self::Split => "split",
        }
    }

    const fn columns(self) -> u8 {
        match self {
            Self::Unified => 3,
            Self::Split => 4,
        }
    }
}

/// Line with its rendered code.
struct CodeLine {
    kind: LineKind,
    old: Option<u32>,
    new: Option<u32>,
    code: Markup,
}

/// Returns the shown start of a line, and the number of characters that are left out.
fn shorten_line(line: &str) -> (&str, u64) {
    let Some((end, _)) = line.char_indices().nth(LINE_CHARS) else {
        return (line, 0);
    };
    let (shown, rest) = line.split_at(end);
    (shown, rest.chars().count() as u64)
}

fn render_code(text: &str, tokens: Option<&[CodeToken]>) -> Markup {
    html! {
        @match tokens {
            None => (make_visible(text)),
            Some(tokens) => @for token in tokens {
                @let part = make_visible(text.get(token.range.clone()).unwrap_or_default());
                @match token.kind.class() {
                    "" => (part),
                    class => span class=(class) { (part) },
                }
            },
        }
    }
}

const fn row_class(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Context => "context",
        LineKind::Added => "add",
        LineKind::Removed => "del",
    }
}

fn render_unified_row(line: &CodeLine) -> Markup {
    html! {
        tr class=(row_class(line.kind)) {
            td.line { @if let Some(number) = line.old { (number) } }
            td.line { @if let Some(number) = line.new { (number) } }
            td { (line.kind.mark()) (line.code) }
        }
    }
}

fn render_split_row(old: Option<&CodeLine>, new: Option<&CodeLine>) -> Markup {
    let cells = |line: Option<&CodeLine>, number: Option<u32>| {
        html! {
            @match line {
                Some(line) => {
                    td class={ "line " (row_class(line.kind)) } { @if let Some(number) = number { (number) } }
                    td class=(row_class(line.kind)) { (line.kind.mark()) (line.code) }
                }
                None => { td.line.empty {} td.empty {} }
            }
        }
    };
    html! { tr { (cells(old, old.and_then(|line| line.old))) (cells(new, new.and_then(|line| line.new))) } }
}

/// Puts removed lines beside the added ones that follow them.
fn pair_lines(lines: &[CodeLine]) -> Vec<(Option<&CodeLine>, Option<&CodeLine>)> {
    let mut pairs = Vec::new();
    let mut rest = lines;
    while let Some((first, after)) = rest.split_first() {
        if first.kind == LineKind::Context {
            pairs.push((Some(first), Some(first)));
            rest = after;
            continue;
        }
        let removed = rest
            .iter()
            .take_while(|line| line.kind == LineKind::Removed)
            .count();
        let (removed, after) = rest.split_at(removed);
        let added = after
            .iter()
            .take_while(|line| line.kind == LineKind::Added)
            .count();
        let (added, after) = after.split_at(added);
        let rows = removed.len().max(added.len());
        pairs.extend((0..rows).map(|row| (removed.get(row), added.get(row))));
        rest = after;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::{HOSTILE, render_safe_page};

    fn build_diff(text: &str) -> RunDiff {
        RunDiff {
            text: text.to_owned(),
            source: DiffSource::Pushed,
        }
    }

    const CHANGE: &str = "diff --git a/cart.txt b/cart.txt\n--- a/cart.txt\n+++ b/cart.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+3\n \
                          four\n";

    #[test]
    fn unified_view_numbers_both_versions() {
        let page = render_diff("jira:ENG-1@3", &build_diff(CHANGE), DiffView::Unified).into_string();
        for part in [
            "the change that the run pushed last",
            "<h2>1 file</h2>",
            "<a href=\"#file-cart.txt\">cart.txt</a> <span class=\"good\">+2</span> <span class=\"removed\">−1</span>",
            "<tr class=\"context\"><td class=\"line\">1</td><td class=\"line\">1</td><td> one</td></tr>",
            "<tr class=\"del\"><td class=\"line\">2</td><td class=\"line\"></td><td>-two</td></tr>",
            "<tr class=\"add\"><td class=\"line\"></td><td class=\"line\">3</td><td>+3</td></tr>",
            "href=\"/runs/jira%3AENG-1%403/diff?view=split\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(
            !page.contains("is missing here") && !page.contains("left out"),
            "{page}"
        );
    }

    #[test]
    fn split_view_pairs_removed_with_added() {
        let page = render_diff("jira:ENG-1@3", &build_diff(CHANGE), DiffView::Split).into_string();
        for part in [
            "<tr><td class=\"line del\">2</td><td class=\"del\">-two</td><td class=\"line add\">2</td><td class=\"add\">+2</td></tr>",
            "<tr><td class=\"line empty\"></td><td class=\"empty\"></td><td class=\"line add\">3</td><td \
             class=\"add\">+3</td></tr>",
            "<td class=\"line context\">3</td><td class=\"context\"> four</td><td class=\"line context\">4</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn hostile_difference_is_text() {
        let text = format!(
            "diff --git a/{HOSTILE}.py b/{HOSTILE}.py\n+++ b/{HOSTILE}.py\n@@ -1 +1 @@ {HOSTILE}\n-{HOSTILE}\n+{HOSTILE}\n{HOSTILE}\n"
        );
        for view in [DiffView::Unified, DiffView::Split] {
            let page = render_safe_page(render_diff("jira:ENG-1@3", &build_diff(&text), view));
            assert!(page.contains("is missing here"), "{page}");
        }
    }

    #[test]
    fn long_difference_is_truncated() {
        let count = LINES + 7;
        let lines = "+x\n".repeat(count);
        let text = format!("diff --git a/a.txt b/a.txt\n+++ b/a.txt\n@@ -0,0 +1,{count} @@\n{lines}");
        let page = render_diff("jira:ENG-1@3", &build_diff(&text), DiffView::Unified).into_string();
        assert!(page.contains("7 more lines are left out"), "{}", page.len());
        assert_eq!(page.matches("<tr class=\"add\">").count(), LINES);
    }

    #[test]
    fn many_files_and_long_lines_are_truncated() {
        let renamed =
            "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n".repeat(FILES + 2);
        let long = "é".repeat(LINE_CHARS + 3);
        let text = format!("diff --git a/a.py b/a.py\n+++ b/a.py\n@@ -0,0 +1 @@\n+{long}\n{renamed}");
        let page = render_diff("jira:ENG-1@3", &build_diff(&text), DiffView::Unified).into_string();
        assert_eq!(page.matches("<details class=\"file\"").count(), FILES);
        assert!(page.contains("3 more files are left out"), "{}", page.len());
        assert!(
            page.contains("… 3 more characters of this line"),
            "{}",
            page.len()
        );
        assert!(!page.contains("more lines are left out"), "{}", page.len());
    }

    #[test]
    fn long_header_path_and_note_are_truncated() {
        let long = "x".repeat(HEADER_CHARS * 4);
        let text = format!(
            "diff --git a/{long}.py b/{long}.py\nrename from {long}\nrename to {long}.py\n@@ -0,0 +1 @@ {long}\n+1\n"
        );
        for view in [DiffView::Unified, DiffView::Split] {
            let page = render_diff("jira:ENG-1@3", &build_diff(&text), view).into_string();
            assert!(page.contains("renamed from x"), "{page}");
            assert!(!page.contains(&"x".repeat(HEADER_CHARS + 1)), "{}", page.len());
        }
    }

    #[tokio::test]
    async fn failed_rendering_is_page_problem() {
        use axum::response::IntoResponse as _;
        let rendered = render_on_blocking_thread(|| html! { p { "1" } }).await.unwrap();
        assert_eq!(rendered.into_string(), "<p>1</p>");
        let failed = render_on_blocking_thread(|| panic!("a bug of a library"))
            .await
            .unwrap_err();
        assert_eq!(failed.into_response().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn code_is_highlighted_by_class() {
        let text = "diff --git a/a.py b/a.py\n+++ b/a.py\n@@ -0,0 +1 @@\n+# <sum>\n";
        let mut code = CodePage {
            budget: HighlightBudget::unlimited(),
            lines: 1,
        };
        let page = code
            .render_file(&parse_difference(text).files[0], DiffView::Unified)
            .into_string();
        assert!(
            page.contains("<td>+<span class=\"code-comment\"># &lt;sum&gt;</span></td>"),
            "{page}"
        );
    }
}
