//! Code blocks in wiki markup.

use pulldown_cmark::CodeBlockKind;

use super::escape::{TextContext, escape_text};

// Languages that Jira highlights. For any other name it shows an error instead of the text.
const LANGUAGES: &str = "actionscript ada applescript bash c c# c++ css erlang go groovy haskell html java javascript json lua \
     objc perl php python r ruby scala sql xml yaml";

/// Renders a code block. Wiki markup has no escape within code, so the block uses a delimiter that the code
/// does not contain; code with all delimiters becomes monospaced lines.
pub(super) fn render_code_block(language: &str, code: &str) -> String {
    let code = code.replace('\r', "");
    let code = code.strip_suffix('\n').unwrap_or(&code);
    // Jira matches the names of macros regardless of case.
    let lower = code.to_lowercase();
    let has = |sign: &str| lower.contains(sign);
    match (has("{code"), has("{noformat")) {
        (false, _) if !language.is_empty() => format!("{{code:{language}}}\n{code}\n{{code}}"),
        (_, false) => format!("{{noformat}}\n{code}\n{{noformat}}"),
        (false, true) => format!("{{code:none}}\n{code}\n{{code}}"),
        (true, true) => render_monospaced_lines(code),
    }
}

fn render_monospaced_lines(code: &str) -> String {
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.map(|line| format!("{{{{{}}}}}", escape_text(line, Some('{'), TextContext::Marked)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Jira's name of a block's language; empty for an unknown one.
pub(super) fn map_language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else {
        return String::new();
    };
    let named = info.split_whitespace().next().unwrap_or_default().to_lowercase();
    let meant = match named.as_str() {
        "sh" | "shell" | "console" => "bash",
        "js" | "jsx" | "ts" | "typescript" => "javascript",
        "py" => "python",
        "rb" => "ruby",
        "yml" => "yaml",
        "cpp" => "c++",
        other => other,
    };
    let known = LANGUAGES.split_whitespace().any(|known| known == meant);
    if known { meant.to_owned() } else { String::new() }
}
