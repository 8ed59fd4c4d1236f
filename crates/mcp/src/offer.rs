//! Tools of MCP servers in the form in which a run offers them to models: named for every provider,
//! sanitized, within limits.

use std::collections::BTreeSet;

use domain::{
    McpServerTools, McpTool, ToolSpec,
    text::{sanitize_output, truncate_text},
};
use serde_json::{Map, Value};

use crate::settings::is_tool_allowed;

/// Maximum number of tools of all servers in a run: every call of the model contains their descriptions.
pub const MAX_TOOLS: usize = 64;
/// Maximum size of the descriptions and schemas of all tools in a run, in bytes.
pub const SCHEMA_BYTES: usize = 64 * 1024;

// Maximum length of a name that providers accept.
const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 2_000;
// Maximum size of one tool's schema, in bytes.
const TOOL_SCHEMA_BYTES: usize = 16 * 1024;
const SEPARATOR: &str = "__";
// Keywords that providers refuse at the top of a schema. The server still checks its arguments.
const REFUSED_AT_TOP: [&str; 7] = ["$schema", "$id", "oneOf", "anyOf", "allOf", "not", "enum"];

/// Tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RemoteTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Map<String, Value>,
    pub(crate) is_read_only: bool,
}

/// Room for the tools of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferRoom {
    tools: usize,
    bytes: usize,
}

impl Default for OfferRoom {
    fn default() -> Self {
        Self {
            tools: MAX_TOOLS,
            bytes: SCHEMA_BYTES,
        }
    }
}

impl OfferRoom {
    fn take(&mut self, spec: &ToolSpec) -> bool {
        let bytes = spec.description.len() + spec.input_schema.to_string().len();
        let has_room = self.tools > 0 && bytes <= self.bytes;
        if has_room {
            self.tools -= 1;
            self.bytes -= bytes;
        }
        has_room
    }
}

/// Chooses the tools that a run offers, in the order of the server. `allowed`: names of the settings or rules;
/// absent: the tools that are declared read-only.
pub(crate) fn choose_tools(
    server: &str,
    allowed: Option<&[String]>,
    tools: &[RemoteTool],
    room: &mut OfferRoom,
) -> McpServerTools {
    let (mut chosen, mut names) = (Vec::new(), BTreeSet::new());
    for tool in tools {
        if !is_tool_allowed(allowed, &tool.name, tool.is_read_only) {
            continue;
        }
        let spec = build_spec(server, tool, &names);
        if let Some(spec) = spec.filter(|spec| room.take(spec)) {
            names.insert(spec.name.clone());
            chosen.push(McpTool {
                spec,
                tool: tool.name.clone(),
            });
        }
    }
    let omitted = tools.len() - chosen.len();
    McpServerTools {
        server: server.to_owned(),
        tools: chosen,
        omitted: u32::try_from(omitted).unwrap_or(u32::MAX),
        command: None,
        problem: None,
    }
}

/// Describes a tool for models; `None` if providers would refuse its schema.
fn build_spec(server: &str, tool: &RemoteTool, names: &BTreeSet<String>) -> Option<ToolSpec> {
    let input_schema = build_schema(&tool.schema)?;
    let description = truncate_text(sanitize_output(&tool.description).trim(), DESCRIPTION_CHARS);
    Some(ToolSpec {
        name: build_name(server, &tool.name, names),
        description: format!("Tool of the MCP server {server}. {description}")
            .trim_end()
            .to_owned(),
        input_schema,
        read_only: tool.is_read_only,
    })
}

/// Returns an unused name in the form that every provider accepts.
fn build_name(server: &str, tool: &str, names: &BTreeSet<String>) -> String {
    let is_legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let legal = tool
        .chars()
        .map(|letter| if is_legal(letter) { letter } else { '_' });
    let whole: String = format!("{server}{SEPARATOR}").chars().chain(legal).collect();
    let numbered = (1_usize..).map(|number| {
        let suffix = if number == 1 {
            String::new()
        } else {
            format!("_{number}")
        };
        let start: String = whole.chars().take(NAME_CHARS - suffix.len()).collect();
        start + &suffix
    });
    // The names are finite and the numbers are not, so a free one exists.
    let mut free = numbered.filter(|name| !names.contains(name));
    free.next().unwrap_or_default()
}

/// Returns a schema that every provider accepts; `None` if that is not possible.
fn build_schema(schema: &Map<String, Value>) -> Option<Value> {
    let is_object = schema.get("type").is_none_or(|kind| kind == "object");
    let properties = schema.get("properties").and_then(Value::as_object);
    let are_legal = properties.is_none_or(|known| {
        let is_legal = |(name, property): (&String, &Value)| {
            is_property_name(name) && (property.is_object() || property.is_boolean())
        };
        known.iter().all(is_legal)
    });
    if !is_object || !are_legal {
        return None;
    }
    let kept = schema
        .iter()
        .filter(|(key, _)| !REFUSED_AT_TOP.contains(&key.as_str()));
    let mut kept: Map<String, Value> = kept.filter_map(sanitize_field).collect();
    kept.insert("type".to_owned(), Value::from("object"));
    kept.entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    let has_legal_list = kept.get("required").is_none_or(Value::is_array);
    if !has_legal_list || !kept.get("properties").is_some_and(Value::is_object) {
        return None;
    }
    let built = Value::Object(kept);
    (built.to_string().len() <= TOOL_SCHEMA_BYTES).then_some(built)
}

/// Returns true for a name of a property that every provider accepts.
fn is_property_name(name: &str) -> bool {
    let is_legal = |letter: u8| letter.is_ascii_alphanumeric() || b"_.-".contains(&letter);
    (1..=NAME_CHARS).contains(&name.len()) && name.bytes().all(is_legal)
}

// The depth is that of the JSON parser, which refuses more than 128 levels.
fn sanitize_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(sanitize_output(text).into_owned()),
        Value::Array(items) => items.iter().map(sanitize_value).collect(),
        Value::Object(fields) => Value::Object(fields.iter().filter_map(sanitize_field).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Cleans a field of a schema; `None` for one without content that providers would refuse.
fn sanitize_field((name, value): (&String, &Value)) -> Option<(String, Value)> {
    let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match name.as_str() {
        // PHP writes a map without entries as an empty list, Go an absent map or list as null.
        "properties" if is_empty => Some((name.clone(), Value::Object(Map::new()))),
        "required" if value.is_null() => None,
        _ => Some((sanitize_output(name).into_owned(), sanitize_value(value))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn build_tool(name: &str, schema: Value) -> RemoteTool {
        RemoteTool {
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            schema: schema.as_object().cloned().unwrap_or_default(),
            is_read_only: true,
        }
    }

    fn choose(tools: &[RemoteTool]) -> McpServerTools {
        choose_tools("docs", None, tools, &mut OfferRoom::default())
    }

    #[test]
    fn names_are_legal_and_different() {
        let long = "x".repeat(80);
        let names = [
            "search",
            "get.page",
            "get/page",
            "sök",
            &long,
            &format!("{long}y"),
        ];
        let tools = names.map(|name| build_tool(name, json!({})));
        let chosen = choose(&tools);
        let names: Vec<&str> = chosen.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        assert_eq!(
            names[..4],
            ["docs__search", "docs__get_page", "docs__get_page_2", "docs__s_k"]
        );
        assert!(
            names[5].ends_with("_2") && names.iter().all(|name| name.len() <= 64),
            "{names:?}"
        );
        assert_eq!(chosen.tools[1].tool, "get.page");
    }

    #[test]
    fn schemas_become_acceptable_or_are_omitted() {
        let chosen = choose(&[
            build_tool("none", json!({})),
            build_tool("list", json!({"type": "array"})),
            build_tool("odd", json!({"type": "object", "properties": {"a b": {}}})),
            build_tool(
                "large",
                json!({"type": "object", "description": "x".repeat(20_000)}),
            ),
            build_tool(
                "choice",
                json!({"$schema": "x", "type": "object", "oneOf": [{}], "properties": {"q": {"description": "a\u{202e}b"}}}),
            ),
        ]);
        let names: Vec<&str> = chosen.tools.iter().map(|tool| tool.tool.as_str()).collect();
        assert_eq!((names, chosen.omitted), (vec!["none", "choice"], 3));
        assert_eq!(
            chosen.tools[0].spec.input_schema,
            json!({"type": "object", "properties": {}})
        );
        let choice = &chosen.tools[1].spec.input_schema;
        assert_eq!(
            *choice,
            json!({"type": "object", "properties": {"q": {"description": "a<U+202E>b"}}})
        );
    }

    #[test]
    fn absent_parts_of_schema_become_legal() {
        let chosen = choose(&[
            build_tool("php", json!({"type": "object", "properties": []})),
            build_tool(
                "go",
                json!({"type": "object", "properties": null, "required": null}),
            ),
            build_tool(
                "inner",
                json!({"properties": {"q": {"type": "object", "properties": [], "required": null}}}),
            ),
            build_tool("text", json!({"properties": "q"})),
            build_tool("list", json!({"properties": ["q"]})),
            build_tool("null", json!({"properties": {"q": null}})),
            build_tool("must", json!({"properties": {"q": {}}, "required": true})),
        ]);
        let schemas: Vec<&Value> = chosen.tools.iter().map(|tool| &tool.spec.input_schema).collect();
        let empty = json!({"type": "object", "properties": {}});
        let inner = json!({"type": "object", "properties": {"q": empty}});
        assert_eq!((schemas, chosen.omitted), (vec![&empty, &empty, &inner], 4));
    }

    #[test]
    fn servers_share_room_of_run() {
        let many: Vec<RemoteTool> = (0..50)
            .map(|number| build_tool(&format!("t{number}"), json!({})))
            .collect();
        let mut room = OfferRoom::default();
        let first = choose_tools("docs", None, &many, &mut room);
        let second = choose_tools("issues", None, &many, &mut room);
        assert_eq!((first.tools.len(), first.omitted), (50, 0));
        assert_eq!((second.tools.len(), second.omitted), (MAX_TOOLS - 50, 36));
    }

    #[test]
    fn tool_without_permission_is_omitted() {
        let mut writing = build_tool("delete", json!({}));
        writing.is_read_only = false;
        let chosen = choose(&[writing, build_tool("search", json!({}))]);
        assert_eq!((chosen.tools.len(), chosen.omitted), (1, 1));
    }

    proptest! {
        #[test]
        fn fuzz_every_tool_is_offered_legally(names in prop::collection::vec("\\PC{0,90}", 0..20), text in "\\PC*") {
            let tools: Vec<RemoteTool> = names
                .iter()
                .map(|name| RemoteTool { description: text.clone(), ..build_tool(name, json!({"x": text})) })
                .collect();
            let chosen = choose(&tools);
            let mut seen = BTreeSet::new();
            for tool in &chosen.tools {
                let name = &tool.spec.name;
                prop_assert!(name.len() <= NAME_CHARS && name.starts_with("docs__"));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
                prop_assert!(seen.insert(name.clone()));
            }
        }
    }
}
