//! Placeholders in the content that a model writes: comments for lines that it left out, and line numbers
//! that it copied.

use std::path::Path;

use domain::text::truncate_bytes;

use super::text::find_numbered_run;
use crate::{parser::MAX_BYTES, pattern::LazyPattern};

/// Line in place of code that the model left out, such as `// ... existing code ...`.
static ELISION: LazyPattern = LazyPattern::new(concat!(
    r"(?i)^\s*(?:",
    // Dots, then what they stand for.
    r"(?://+|#+|--+|/\*+|<!--|;+|%+|\*|\{/\*)?\s*[(\[]?\s*(?:\.{3}|…)\s*[(\[]?\s*(?:the\s+|your\s+)?",
    r"(?:(?:rest|remainder)\s+of\s+(?:the\s+|your\s+)?|(?:existing|remaining|unchanged|previous|other|original|same)\s+)",
    r"(?:\w+\s+){0,2}(?:code|lines?|file|functions?|class|methods?|implementation|content|imports|body|module|logic)\b.*",
    // A comment about the rest that says that it stays or is missing.
    r"|(?://+|#+|--+|/\*+|<!--|;+|%+|\*|\{/\*)\s*(?:the\s+)?",
    r"(?:rest\s+of\s+(?:the\s+)?(?:code|file|function|class|method|implementation|module)",
    r"|(?:existing|unchanged|remaining)\s+(?:code|lines|implementation|methods|functions|imports))\b",
    r"[^.…]*(?:\.{3}|…|\b(?:unchanged|omitted|stays?|remains?|goes\s+here)\b).*",
    // Dots with one word.
    r"|(?://+|#+|--+|/\*+|<!--|;+|%+|\*|\{/\*)?\s*[(\[]?(?:\.{3}|…)\s*[(\[]?",
    r"(?:unchanged|omitted|snip|snipped|as\s+before|same\s+as\s+before|no\s+changes?)\W*",
    r")$",
));
// A longer line is text about something.
const LONGEST_LINE: usize = 160;

/// Returns true for a line in place of code that the model left out.
pub(super) fn is_elision(line: &str) -> bool {
    line.len() <= LONGEST_LINE && ELISION.is_match(line)
}

/// Returns true for a line of dots alone, or one in place of code that the model left out.
pub(super) fn stands_for_lines(line: &str) -> bool {
    matches!(line.trim(), "..." | "…") || is_elision(line)
}

/// Checks that a content has no placeholder that the file did not have before.
///
/// # Errors
/// Returns a text for the model that names the line.
pub(super) fn check_placeholders(path: &Path, before: Option<&str>, after: &str) -> Result<(), String> {
    if after.len() as u64 > MAX_BYTES {
        return Ok(());
    }
    let was_there = |line: &str| before.is_some_and(|before| before.lines().any(|known| known == line));
    let mut lines = after.lines().enumerate();
    if let Some((place, line)) = lines.find(|(_, line)| is_elision(line) && !was_there(line)) {
        return Err(format!(
            "{}: line {}, {:?}, stands for lines that you left out, and would replace them. Nothing was written. Give these \
             lines, or change only the lines around them with edit_file. `force: true` writes the line as it is.",
            path.display(),
            place + 1,
            truncate_bytes(line.trim(), 80)
        ));
    }
    if let Some(place) = find_numbered_run(after)
        && before.is_none_or(|before| find_numbered_run(before).is_none())
    {
        return Err(format!(
            "{}: from line {} on, lines begin with the numbers that read_file shows. They are not part of the file. Nothing \
             was written. Leave them out; `force: true` writes them.",
            path.display(),
            place + 1
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_lines_are_recognized() {
        assert!(ELISION.is_sound());
        for line in [
            "// ... existing code ...",
            "    # ... existing code ...",
            "# ... rest of the function ...",
            "    // … rest of your implementation",
            "/* ... remaining methods ... */",
            "<!-- ... rest of the file ... -->",
            "// ... (rest of the file unchanged)",
            "{/* ... existing imports ... */}",
            "... existing code ...",
            "# rest of the file unchanged",
            "// existing code...",
            "-- ... unchanged ...",
            "// (... omitted)",
            "// ... other existing methods ...",
            "// ... same as before",
        ] {
            assert!(is_elision(line), "{line}");
        }
        for line in [
            "...",
            "    ...",
            "def f(): ...",
            "// existing code must not call this",
            "# the rest of the file is parsed lazily",
            "/// Returns the rest of the text ...",
            "let rest = ...;",
            "print('... existing users')",
            "# Loading...",
            "// ... and so on",
            "*args, **kwargs",
            "- ...and the remaining sum is split",
        ] {
            assert!(!is_elision(line), "{line}");
        }
    }

    #[test]
    fn placeholder_of_file_itself_may_stay() {
        let path = Path::new("a.js");
        let text = "a();\n// ... existing code ...\n";
        let error = check_placeholders(path, Some("a();\nb();\n"), text).unwrap_err();
        assert!(error.contains("line 2") && error.contains("force"), "{error}");
        assert!(check_placeholders(path, None, text).is_err());
        assert_eq!(check_placeholders(path, Some(text), text), Ok(()));
        let numbered = "     1 a\n     2 b\n     3 c\n";
        let error = check_placeholders(path, None, numbered).unwrap_err();
        assert!(error.contains("from line 1 on"), "{error}");
        assert_eq!(check_placeholders(path, Some(numbered), numbered), Ok(()));
    }
}
