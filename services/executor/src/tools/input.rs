//! Input of a tool: its JSON Schema, derived from the Rust type, and a parser that tolerates small mistakes
//! of models.

use std::{collections::BTreeSet, sync::LazyLock};

use domain::text::quote_shell_word;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Alternative names of fields. Models use them because other tools have them.
pub(super) type FieldAliases = &'static [(&'static str, &'static str)];

/// Alternative names that apply to every tool with the field.
const COMMON: FieldAliases = &[
    ("file_path", "path"),
    ("filepath", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("directory", "path"),
    ("dir", "path"),
    ("folder", "path"),
    ("contents", "content"),
    ("file_text", "content"),
    ("text", "content"),
    ("offset", "start_line"),
    ("line_start", "start_line"),
    ("line_end", "end_line"),
    ("query", "pattern"),
    ("regex", "pattern"),
    ("glob", "file_pattern"),
    ("include", "file_pattern"),
    ("cmd", "command"),
    ("script", "command"),
    ("timeout", "timeout_s"),
    ("workdir", "cwd"),
    ("working_directory", "cwd"),
    ("branch", "branch_name"),
    ("name", "branch_name"),
    ("diff", "patch"),
    ("input", "patch"),
    ("command", "patch"),
    ("msg", "message"),
    ("old_str", "old_string"),
    ("new_str", "new_string"),
    ("search", "old_string"),
    ("replace", "new_string"),
];

/// Fields with text of several lines, which models sometimes send as a list of lines.
const OF_LINES: [&str; 6] = ["content", "edits", "patch", "old_string", "new_string", "message"];

/// Defers the schema of an input to its first use. It is built once, because every call reads it.
pub(super) const fn build_schema_once<T: JsonSchema>() -> LazyLock<Value> {
    LazyLock::new(input_schema::<T>)
}

/// Returns the schema of an input: an object with the type and description of each field.
fn input_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
        object.entry("properties").or_insert_with(|| Map::new().into());
        object
            .entry("required")
            .or_insert_with(|| Vec::<Value>::new().into());
        let properties = object.get_mut("properties").and_then(Value::as_object_mut);
        properties
            .into_iter()
            .flat_map(Map::values_mut)
            .for_each(simplify_property);
    }
    schema
}

/// Removes keywords without meaning for a model: that an optional field may be null, and the width of
/// numbers.
fn simplify_property(property: &mut Value) {
    let Some(property) = property.as_object_mut() else {
        return;
    };
    property.remove("format");
    property.remove("default");
    // `Option` fields have the types `[T, "null"]`.
    if let Some(Value::Array(types)) = property.get("type") {
        let first = types.iter().find(|name| *name != "null").cloned();
        property.insert("type".to_owned(), first.unwrap_or(Value::Null));
    }
}

/// Input in the form that its tool accepts.
#[derive(Debug, PartialEq)]
pub(super) struct FittedInput {
    pub(super) input: Value,
    /// Unknown fields, which were removed.
    pub(super) ignored: Vec<String>,
}

/// Converts an input to its schema where the intention is clear: numbers and booleans as text, alternative
/// names, and unknown fields.
///
/// # Errors
/// Returns a text for the model that names the field.
pub(super) fn fit_input(text: &str, schema: &Value) -> Result<FittedInput, String> {
    let given = parse_object(text)?;
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let named: BTreeSet<String> = given.keys().cloned().collect();
    let (mut input, mut ignored) = (Map::new(), Vec::new());
    for (name, value) in given {
        // An alternative name counts only if the input does not have the field itself, under any name.
        let known = find_field(&name, properties)
            .filter(|known| *known == name || !(named.contains(*known) || input.contains_key(*known)));
        match known {
            None => ignored.push(name),
            Some(_) if value.is_null() => {}
            Some(known) => {
                let kind = properties[known]["type"].as_str().unwrap_or_default();
                let value = fit_value(value, kind, known)
                    .map_err(|wanted| format!("`{name}` must be {wanted}. Call the tool again with that."))?;
                input.insert(known.to_owned(), value);
            }
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let missing: Vec<&str> = required
        .filter_map(Value::as_str)
        .filter(|name| !input.contains_key(*name))
        .collect();
    if missing.is_empty() {
        return Ok(FittedInput {
            input: input.into(),
            ignored,
        });
    }
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    Err(format!(
        "`{}` is missing. The fields are: {}. Call the tool again.",
        missing.join("`, `"),
        names.join(", ")
    ))
}

/// Parses a text as an object, also if it is a JSON string that contains JSON.
fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("The input is not valid JSON: {error}."))?;
    match value {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::String(inner) if inner.trim_start().starts_with('{') => parse_object(&inner),
        Value::String(_) | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err("The input must be a JSON object. Call the tool again with one.".to_owned())
        }
    }
}

fn find_field<'a>(name: &'a str, properties: &Map<String, Value>) -> Option<&'a str> {
    if properties.contains_key(name) {
        return Some(name);
    }
    let other = COMMON
        .iter()
        .find(|(other, known)| *other == name && properties.contains_key(*known));
    other.map(|(_, known)| *known)
}

/// Converts the value of a field to a type of JSON Schema. The error describes the required type.
fn fit_value(value: Value, kind: &str, field: &str) -> Result<Value, &'static str> {
    match (kind, value) {
        ("integer", value) => parse_integer(&value).map(Value::from).ok_or("a whole number"),
        ("boolean", Value::Bool(is)) => Ok(is.into()),
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Ok(true.into()),
            "false" | "no" | "0" => Ok(false.into()),
            _ => Err("true or false"),
        },
        ("boolean", _) => Err("true or false"),
        ("string", Value::Number(number)) => Ok(number.to_string().into()),
        ("string", Value::Bool(is)) => Ok(is.to_string().into()),
        ("string", Value::Array(list)) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            match (texts.as_deref(), field) {
                // Lists with other elements are left to the tool: `edits` accepts objects.
                (None, _) => Ok(Value::Array(list)),
                (Some([only]), _) => Ok((*only).into()),
                (Some(words), "command") => Ok(command_line(words).into()),
                (Some(globs), "file_pattern") => Ok(globs.join(",").into()),
                (Some(lines), _) if OF_LINES.contains(&field) => Ok(lines.join("\n").into()),
                (Some(_), _) => Err("one text, not a list: make one call for each"),
            }
        }
        ("string", Value::Object(_)) => Err("text"),
        (_, value) => Ok(value),
    }
}

fn parse_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number
                .as_f64()
                // Below 2^53 every integer has an exact float; 1e15 is safely below it.
                .filter(|float| float.fract() == 0.0 && float.abs() < 1e15)?;
            format!("{float:.0}").parse().ok()
        }),
        Value::String(text) => {
            let text = text.trim();
            text.strip_suffix(".0").unwrap_or(text).parse().ok()
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Converts a list to a command: a program with its arguments, or the lines of a script.
fn command_line(words: &[&str]) -> String {
    // Names of programs contain no space, so each element is a whole command.
    if words
        .first()
        .is_some_and(|first| first.trim().contains(char::is_whitespace))
    {
        return words.join("\n");
    }
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    quoted.join(" ")
}

/// Quotes an argument for the shell. Shell operators stay unquoted, because no program takes them as
/// arguments.
fn shell_word(word: &str) -> String {
    const OPERATORS: [&str; 16] = [
        "&&",
        "||",
        "|",
        "|&",
        ";",
        "&",
        "(",
        ")",
        ">",
        ">>",
        "<",
        "2>",
        "2>&1",
        "&>",
        ">&2",
        "2>/dev/null",
    ];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%^".contains(c);
    if OPERATORS.contains(&word) || (!word.is_empty() && word.chars().all(is_plain)) {
        return word.to_owned();
    }
    quote_shell_word(word)
}

/// Deserializes an input that fits its schema into the tool's type.
///
/// # Errors
/// Returns a text for the model.
pub(super) fn parse_input<T: DeserializeOwned>(input: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        format!(
            "`{}` cannot be read. Call the tool again with input that fits its schema.",
            error.path()
        )
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        /// Path relative to the root
        path: String,
        /// First line
        start_line: Option<i64>,
        /// Keep it
        #[serde(default)]
        force: bool,
    }

    fn parse_fitted_input(text: &str) -> Result<(Input, Vec<String>), String> {
        let FittedInput { input, ignored } = fit_input(text, &input_schema::<Input>())?;
        Ok((parse_input(input)?, ignored))
    }

    #[test]
    fn input_schema_has_plain_types() {
        assert_eq!(
            input_schema::<Input>(),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Path relative to the root" },
                    "start_line": { "type": "integer", "description": "First line" },
                    "force": { "type": "boolean", "description": "Keep it" },
                },
                "required": ["path"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn small_slips_are_forgiven() {
        let input = |start_line, force| Input {
            path: "a".to_owned(),
            start_line,
            force,
        };
        for (text, wanted) in [
            (
                r#"{"path": "a", "start_line": "3", "force": "true"}"#,
                input(Some(3), true),
            ),
            (r#"{"path": "a", "start_line": 3.0}"#, input(Some(3), false)),
            (r#"{"file_path": "a", "offset": "-1"}"#, input(Some(-1), false)),
            (r#"{"path": ["a"], "start_line": null}"#, input(None, false)),
            (r#""{\"path\": \"a\"}""#, input(None, false)),
        ] {
            assert_eq!(parse_fitted_input(text), Ok((wanted, Vec::new())), "{text}");
        }
        let (_, ignored) = parse_fitted_input(r#"{"path": "a", "reason": "why", "file": "b"}"#).unwrap();
        assert_eq!(ignored, ["file", "reason"]);
    }

    #[test]
    fn command_list_becomes_one_command() {
        for (list, command) in [
            (json!(["ls", "-la"]), "ls -la"),
            (json!(["python", "manage.py", "test"]), "python manage.py test"),
            (
                json!(["rm", "-rf", "a b", "it's", "$HOME", ""]),
                r"rm -rf 'a b' 'it'\''s' '$HOME' ''",
            ),
            (json!(["bash", "-lc", "cd src && ls"]), "bash -lc 'cd src && ls'"),
            (json!(["cat", "a.txt", "|", "wc", "-l"]), "cat a.txt | wc -l"),
            (json!(["npm test", "npm run lint"]), "npm test\nnpm run lint"),
            (json!(["make"]), "make"),
            (json!(["cd src && make"]), "cd src && make"),
        ] {
            assert_eq!(
                fit_value(list.clone(), "string", "command"),
                Ok(command.into()),
                "{list}"
            );
        }
        let lines = json!(["one", "two"]);
        assert_eq!(
            fit_value(lines.clone(), "string", "content"),
            Ok("one\ntwo".into())
        );
        assert_eq!(
            fit_value(json!(["*.py", "*.js"]), "string", "file_pattern"),
            Ok("*.py,*.js".into())
        );
        let refused = fit_value(lines.clone(), "string", "path").unwrap_err();
        assert!(refused.contains("not a list"), "{refused}");
        let blocks = json!([{"old_string": "a"}]);
        assert_eq!(fit_value(blocks.clone(), "string", "blocks"), Ok(blocks));
    }

    #[test]
    fn invalid_input_error_names_field() {
        for (text, words) in [
            ("{}", "`path` is missing. The fields are: "),
            ("", "`path` is missing. The fields are: "),
            (" \n", "`path` is missing. The fields are: "),
            ("null", "`path` is missing. The fields are: "),
            ("\"\"", "must be a JSON object"),
            (r#"{"path": {}}"#, "`path` must be text"),
            (
                r#"{"path": "a", "start_line": "x"}"#,
                "`start_line` must be a whole number",
            ),
            (
                r#"{"path": "a", "start_line": 1.5}"#,
                "`start_line` must be a whole number",
            ),
            (
                r#"{"path": "a", "force": "maybe"}"#,
                "`force` must be true or false",
            ),
            ("[1]", "must be a JSON object"),
            ("{", "not valid JSON"),
        ] {
            let error = parse_fitted_input(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
            assert!(
                !error.contains("usize") && !error.contains("expected a"),
                "{error}"
            );
        }
    }
}
