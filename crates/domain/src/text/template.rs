//! A repository's pull request template, filled with the author's answers.

use serde::{Deserialize, Serialize};

/// The author's answer to one heading of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateAnswer {
    /// Text of the heading; empty: the part before the first heading.
    pub heading: String,
    /// Markdown below the heading.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Items of checklists below the heading that apply to the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
}

/// Fills a template: headings and checkboxes remain, instructions and comments are removed, each answer
/// follows its heading.
///
/// A box is ticked if an answer names its item or the template ticks it. Headings without an answer and
/// without boxes get a remark. The result is empty for a template without headings and boxes.
#[must_use]
pub fn fill_template(template: &str, answers: &[TemplateAnswer]) -> String {
    // Comments of a template instruct its author. GitHub does not show them to readers.
    let template = without_comments(template);
    let mut parts: Vec<TemplatePart<'_>> = vec![TemplatePart::default()];
    let mut is_code = false;
    for line in without_front_matter(&template).lines() {
        // Fenced code may contain lines with the form of headings or boxes.
        is_code ^= line.trim_start().starts_with("```");
        match (parse_heading(line), parse_checkbox(line)) {
            (Some(words), _) if !is_code => parts.push(TemplatePart {
                heading: Some((line.trim(), words)),
                boxes: Vec::new(),
            }),
            (_, Some(item)) if !is_code => {
                if let Some(part) = parts.last_mut() {
                    part.boxes.push(item);
                }
            }
            _ => {}
        }
    }
    // Without headings and boxes, a template asks for nothing that an answer could be assigned to.
    let is_bare = parts
        .iter()
        .all(|part| part.heading.is_none() && part.boxes.is_empty());
    if is_bare {
        return String::new();
    }
    let filled = parts.iter().filter_map(|part| part.fill(answers));
    filled.collect::<Vec<_>>().join("\n\n")
}

/// A heading of a template with the text below it.
#[derive(Default)]
struct TemplatePart<'t> {
    // The whole line, and its text without marks.
    heading: Option<(&'t str, &'t str)>,
    boxes: Vec<TemplateCheckbox<'t>>,
}

/// One item of a checklist.
struct TemplateCheckbox<'t> {
    words: &'t str,
    is_ticked: bool,
}

impl TemplatePart<'_> {
    fn fill(&self, answers: &[TemplateAnswer]) -> Option<String> {
        let words = self.heading.map_or("", |(_, words)| words);
        let answer = answers.iter().find(|answer| is_same(&answer.heading, words));
        let text = answer.map_or("", |answer| answer.text.trim());
        let done = answer.map_or(&[][..], |answer| answer.done.as_slice());
        let mut blocks: Vec<String> = self.heading.iter().map(|(line, _)| (*line).to_owned()).collect();
        blocks.extend(Some(text.to_owned()).filter(|text| !text.is_empty()));
        let boxes = self.boxes.iter().map(|item| {
            let is_done = item.is_ticked || done.iter().any(|named| is_same(named, item.words));
            format!("- [{}] {}", if is_done { 'x' } else { ' ' }, item.words)
        });
        blocks.extend(Some(boxes.collect::<Vec<_>>().join("\n")).filter(|boxes| !boxes.is_empty()));
        if self.heading.is_some() && blocks.len() == 1 {
            // The heading stays, so that a reviewer sees what the author left open.
            blocks.push("Not answered.".to_owned());
        }
        (!blocks.is_empty()).then(|| blocks.join("\n\n"))
    }
}

/// Returns true when two texts have the same letters and digits in the same order, regardless of case.
fn is_same(one: &str, other: &str) -> bool {
    let bare = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    bare(one) == bare(other)
}

/// Returns the text of a heading: `## Words`, or a line that is completely bold.
fn parse_heading(line: &str) -> Option<&str> {
    let line = line.trim();
    let marks = line.len() - line.trim_start_matches('#').len();
    let after = &line[marks..];
    if (1..=6).contains(&marks) && after.starts_with(' ') {
        return Some(after.trim().trim_end_matches('#').trim()).filter(|words| !words.is_empty());
    }
    let bold = line.strip_prefix("**")?.strip_suffix("**")?;
    (!bold.is_empty() && !bold.contains("**")).then(|| bold.trim())
}

fn parse_checkbox(line: &str) -> Option<TemplateCheckbox<'_>> {
    let rest = line.trim().strip_prefix(['-', '*', '+'])?.trim_start();
    let (mark, words) = rest.strip_prefix('[')?.split_once(']')?;
    // `[x](https://…)` is a link.
    let is_box = matches!(mark, " " | "" | "x" | "X") && !words.trim().is_empty() && !words.starts_with('(');
    is_box.then(|| TemplateCheckbox {
        words: words.trim(),
        is_ticked: mark.eq_ignore_ascii_case("x"),
    })
}

/// Returns the text without `<!-- … -->`. An open comment extends to the end, as in browsers.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// Returns the text without YAML front matter, with which some templates begin.
fn without_front_matter(text: &str) -> &str {
    let inside = text.trim_start().strip_prefix("---\n");
    inside
        .and_then(|inside| inside.split_once("\n---\n"))
        .map_or(text, |(_, after)| after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEMPLATE: &str = "---\nname: x\n---\n<!-- Thanks! -->\nFixes #\n\n## What changed? ##\n\nDescribe it.\n<!--\n## Not a heading\n-->\n\
        **Checklist**\n\n- [ ] Tests added\n* [X] I read the rules\n- [ ] Docs updated\n- [a link](https://x.example)\n\n```\n# code\n- [ ] no\n```\n\n## Risk\n\nNone?\n";

    fn build_answer(heading: &str, text: &str, done: &[&str]) -> TemplateAnswer {
        TemplateAnswer {
            heading: heading.to_owned(),
            text: text.to_owned(),
            done: done.iter().map(|&item| item.to_owned()).collect(),
        }
    }

    #[test]
    fn headings_and_boxes_are_kept() {
        let answers = [
            build_answer("what changed", "Totals count pieces.", &[]),
            build_answer("Checklist", "", &["tests added", "unknown item"]),
        ];
        assert_eq!(
            fill_template(TEMPLATE, &answers),
            "## What changed? ##\n\nTotals count pieces.\n\n**Checklist**\n\n- [x] Tests added\n- [x] I read the rules\n\
             - [ ] Docs updated\n\n## Risk\n\nNot answered."
        );
    }

    #[test]
    fn boxes_before_headings_are_kept() {
        let filled = fill_template(
            "- [ ] one\n- [ ] two\n",
            &[build_answer("", "All of it.", &["two"])],
        );
        assert_eq!(filled, "All of it.\n\n- [ ] one\n- [x] two");
    }

    #[test]
    fn template_without_structure_is_empty() {
        assert_eq!(
            fill_template("Please describe.\n", &[build_answer("", "Words.", &[])]),
            ""
        );
        assert_eq!(fill_template("", &[]), "");
        assert_eq!(fill_template("<!-- ## Only a comment", &[]), "");
    }

    proptest! {
        #[test]
        fn any_template_is_filled_without_panic(template in "(?s)(#|-|\\[|\\]|x|<!--|-->|`|\\*| |\n|é){0,60}") {
            let filled = fill_template(&template, &[build_answer("x", "words", &["x"])]);
            prop_assert!(!filled.contains("<!--"));
        }
    }
}
