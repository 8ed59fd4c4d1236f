//! Requirements of the providers for reply schemas.

use serde_json::Value;

/// JSON Schema keywords that providers refuse in structured outputs.
const REFUSED: [&str; 8] = [
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "multipleOf",
];

/// Checks that every object is closed and free of refused keywords. In the strict form every property is also
/// required.
pub(super) fn check_schema(schema: &Value, is_strict: bool) -> Result<(), String> {
    if schema["type"] != "object" {
        return Err("schema must be of type object".to_owned());
    }
    check_part(schema, is_strict)
}

fn check_part(schema: &Value, is_strict: bool) -> Result<(), String> {
    if let Some(keyword) = REFUSED.iter().find(|keyword| !schema[**keyword].is_null()) {
        return Err(format!("property '{keyword}' is not supported"));
    }
    if let Some(properties) = schema["properties"].as_object() {
        if schema["additionalProperties"] != false {
            return Err(
                "for 'object' type, 'additionalProperties' must be explicitly set to false".to_owned(),
            );
        }
        for (name, property) in properties {
            let listed = schema["required"]
                .as_array()
                .is_some_and(|list| list.iter().any(|one| one == name));
            if is_strict && !listed {
                return Err(format!(
                    "'required' must include every key in properties; missing '{name}'"
                ));
            }
            check_part(property, is_strict)?;
        }
    }
    match &schema["items"] {
        Value::Null => Ok(()),
        items => check_part(items, is_strict),
    }
}
