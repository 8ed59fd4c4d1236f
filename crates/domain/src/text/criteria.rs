//! Acceptance criteria in the text of a ticket.

// Maximum number of criteria.
const MOST: usize = 20;
// Maximum characters of one criterion.
const CHARS: usize = 500;

/// Returns the acceptance criteria of a text in their order, as written, without list marks.
///
/// They are the points below a heading "Acceptance criteria" or "Definition of done", otherwise the points of
/// a checklist. At most 20 criteria of 500 characters.
#[must_use]
pub fn acceptance_criteria(text: &str) -> Vec<String> {
    let below: Vec<&str> = points_below_heading(text);
    let found = if below.is_empty() {
        list_checklist_points(text)
    } else {
        below
    };
    found
        .into_iter()
        .take(MOST)
        .map(|point| point.chars().take(CHARS).collect())
        .collect()
}

fn points_below_heading(text: &str) -> Vec<&str> {
    let mut points = Vec::new();
    let mut is_below = false;
    for line in text.lines().map(str::trim) {
        match parse_list_point(line) {
            _ if is_heading(line) => is_below = true,
            Some(point) if is_below => points.push(point),
            // The first text after the points ends the section. Text before the first point may introduce the
            // list.
            None if is_below && !line.is_empty() && !points.is_empty() => break,
            _ => {}
        }
    }
    points
}

fn is_heading(line: &str) -> bool {
    let bare = line.trim_matches(|c: char| !c.is_alphanumeric());
    // The headings of Jira's wiki markup.
    let bare = ["h1. ", "h2. ", "h3. "]
        .into_iter()
        .find_map(|mark| bare.strip_prefix(mark))
        .unwrap_or(bare);
    bare.eq_ignore_ascii_case("acceptance criteria") || bare.eq_ignore_ascii_case("definition of done")
}

/// Returns the text of a list point: `- x`, `* x`, `1. x`, `- [ ] x`.
fn parse_list_point(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix(['-', '*', '+', '•']) {
        Some(rest) => rest.strip_prefix(' ')?,
        None => {
            let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
            let numbered = (after.len() < line.len()).then_some(after)?;
            numbered.strip_prefix(['.', ')'])?.strip_prefix(' ')?
        }
    };
    let rest = strip_checkbox(rest).unwrap_or(rest).trim();
    (!rest.is_empty()).then_some(rest)
}

fn list_checklist_points(text: &str) -> Vec<&str> {
    let marked = text.lines().map(str::trim).filter_map(|line| {
        let rest = line.strip_prefix(['-', '*', '+'])?.strip_prefix(' ')?;
        strip_checkbox(rest).map(str::trim)
    });
    marked.filter(|point| !point.is_empty()).collect()
}

/// Returns the text after a checkbox, ticked or not.
fn strip_checkbox(rest: &str) -> Option<&str> {
    ["[ ] ", "[x] ", "[X] "]
        .into_iter()
        .find_map(|mark| rest.trim_start().strip_prefix(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_are_points_below_their_heading() {
        let text = "Totals are wrong.\n\n- a remark\n\n## Acceptance Criteria:\n\n1. Empty carts cost 0.\n\
                    2) Discounts work\n* [ ] In German too\n\nThanks!\n- not this";
        assert_eq!(
            acceptance_criteria(text),
            ["Empty carts cost 0.", "Discounts work", "In German too"]
        );
    }

    #[test]
    fn a_checklist_counts_without_a_heading() {
        assert_eq!(
            acceptance_criteria("- [ ] one\n- [x] two\n- three"),
            ["one", "two"]
        );
        assert!(acceptance_criteria("- three\nplain").is_empty());
        assert!(acceptance_criteria("").is_empty());
    }

    #[test]
    fn long_and_many_criteria_are_bounded() {
        let point = format!("- {}\n", "é".repeat(900));
        let found = acceptance_criteria(&format!("Acceptance criteria\n{}", point.repeat(90)));
        assert_eq!((found.len(), found[0].chars().count()), (20, 500));
    }
}
