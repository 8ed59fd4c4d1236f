//! Syntax check of a changed file.

use std::path::Path;

use super::{ToolContext, placeholders::check_placeholders};
use crate::parser::{GrammarLanguage, MAX_BYTES, ParseFailure, SyntaxError};

/// File names, without extension, of JSON files that may contain comments and trailing commas.
const LENIENT_JSON: &[&str] = &[
    "tsconfig",
    "jsconfig",
    ".eslintrc",
    "devcontainer",
    "settings",
    "launch",
    "tasks",
];

/// Checks that a change has no placeholder, and does not break the syntax of a file that could be parsed
/// before. Returns a note for the answer if the check was impossible.
///
/// # Errors
/// Returns a text for the model with the position of the error.
pub(super) fn check_syntax(
    call: &ToolContext,
    path: &Path,
    before: Option<&str>,
    after: &str,
) -> Result<String, String> {
    check_placeholders(path, before, after)?;
    let is_long = |text: &str| text.len() as u64 > MAX_BYTES;
    let Some(language) = GrammarLanguage::of(path).filter(|language| is_checked(*language, path, after))
    else {
        return Ok(String::new());
    };
    if is_long(after) {
        return Ok(String::new());
    }
    let earlier = before.filter(|before| !is_long(before)).map(str::to_owned);
    let parser = &call.workspace.parser;
    match parser.new_error(language, earlier, after.to_owned(), &call.cancel) {
        Ok(None) => Ok(String::new()),
        Ok(Some(error)) => Err(describe_syntax_error(path, before.is_some(), after, &error)),
        Err(ParseFailure::Cancelled) => Err("The call was cut; nothing was changed.".to_owned()),
        Err(why) => Ok(format!(
            "\nThe syntax of {} could not be checked ({why}); the change was applied unchecked.",
            path.display()
        )),
    }
}

/// Returns false for a text that its grammar may refuse although it is valid.
///
/// Templates become YAML only after rendering, and some JSON files may contain comments. Macros decide what C
/// means, and the grammars of Kotlin and shells are approximations.
fn is_checked(language: GrammarLanguage, path: &Path, text: &str) -> bool {
    match language {
        GrammarLanguage::Yaml => !text.contains("{{") && !text.contains("{%"),
        GrammarLanguage::Json => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !LENIENT_JSON.iter().any(|start| name.starts_with(start))
        }
        GrammarLanguage::Python
        | GrammarLanguage::JavaScript
        | GrammarLanguage::TypeScript
        | GrammarLanguage::Tsx
        | GrammarLanguage::Rust
        | GrammarLanguage::Go
        | GrammarLanguage::Java
        | GrammarLanguage::Ruby
        | GrammarLanguage::Php
        | GrammarLanguage::Toml => true,
        GrammarLanguage::C | GrammarLanguage::Cpp | GrammarLanguage::Kotlin | GrammarLanguage::Shell => false,
    }
}

fn describe_syntax_error(path: &Path, is_old: bool, after: &str, error: &SyntaxError) -> String {
    let what = match &error.missing {
        Some(missing) => format!("{missing:?} is missing"),
        None => "there is a syntax error".to_owned(),
    };
    let shown = after.lines().nth(error.line - 1).unwrap_or_default().trim_end();
    let (could, unchanged) = if is_old {
        ("could no longer be parsed", "was not changed")
    } else {
        ("cannot be parsed", "was not written")
    };
    format!(
        "{} {could}, so it {unchanged}: {what} at line {}, column {}:\n{:>5} {}\nCorrect the change, or call again with \
         force = true if the file is right as it is.",
        path.display(),
        error.line,
        error.column,
        error.line,
        domain::text::truncate_bytes(shown, 300)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::tests::World;

    fn check_file_syntax(name: &str, before: Option<&str>, after: &str) -> Result<String, String> {
        check_syntax(&World::new().call, Path::new(name), before, after)
    }

    #[test]
    fn syntax_refusal_names_location_and_remedy() {
        let error = check_file_syntax("a.py", Some("def f(): pass\n"), "\ndef f(:\n").unwrap_err();
        assert!(
            error.contains("no longer be parsed") && error.contains("at line 2"),
            "{error}"
        );
        assert!(
            error.contains("    2 def f(:") && error.contains("force = true"),
            "{error}"
        );
        let error = check_file_syntax("new.py", None, "def f(:\n").unwrap_err();
        assert!(error.contains("was not written"), "{error}");
    }

    #[test]
    fn unchecked_languages_pass_syntax_check() {
        for (name, text) in [
            ("a.txt", "def (:\n"),
            (
                "chart/templates/a.yaml",
                "{{- if .Values.a }}\na: [{{ .Values.b }\n{{ end }}\n",
            ),
            ("tsconfig.build.json", "{\"a\": [1,],}\n"),
            ("a.h", "class EXPORT Cart : public Base { Q_OBJECT };\n"),
            ("a.c", "int f(\n"),
            ("a.kt", "val l = object : L { override fun on() {} }\n"),
            ("a.sh", "f() {\n"),
        ] {
            assert_eq!(check_file_syntax(name, None, text), Ok(String::new()), "{name}");
        }
        check_file_syntax("package.json", None, "{\"a\": [1,],}\n").unwrap_err();
    }
}
