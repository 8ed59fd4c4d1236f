//! Values of issue fields by the fields' display names.

use std::collections::BTreeMap;

use domain::{TicketKey, json};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{Error, JiraReader, criteria::collect_texts};

#[derive(Deserialize)]
struct WireNamed {
    /// Display names of the fields, by field id.
    #[serde(default)]
    names: BTreeMap<String, String>,
    #[serde(default)]
    fields: BTreeMap<String, Option<Box<RawValue>>>,
}

impl JiraReader {
    /// Reads the values of an issue's fields, each with the field's name; an empty field contributes none.
    /// Values are options, names and plain texts.
    ///
    /// # Errors
    /// As for [`Self::issue`].
    pub async fn field_values(
        &self,
        key: &TicketKey,
        names: &[String],
    ) -> Result<Vec<(String, String)>, Error> {
        let path = format!(
            // `names` maps the ids of custom fields to their display names.
            "{}?fields=*all&expand=names",
            self.clients.of(key)?.issue_path(key)?
        );
        let found: WireNamed = self.clients.of(key)?.get(&path).await?;
        let is_wanted = |name: &String| {
            names
                .iter()
                .any(|wanted| wanted.to_lowercase() == name.to_lowercase())
        };
        let wanted = found.names.iter().filter(|(_, name)| is_wanted(name));
        let mut values = Vec::new();
        for (id, name) in wanted {
            let raw = found.fields.get(id).and_then(Option::as_deref);
            // A value that is too deep to be parsed cannot be an option.
            let value: Option<Value> = raw.and_then(|raw| json::from_slice(raw.get().as_bytes()).ok());
            let texts = value.as_ref().map(collect_texts).unwrap_or_default();
            values.extend(texts.into_iter().map(|text| (name.clone(), text)));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::collect_texts;

    #[test]
    fn empty_field_has_no_values() {
        for (value, expected) in [
            (json!("Tax"), vec!["Tax"]),
            (json!({"id": "1", "value": "Tax"}), vec!["Tax"]),
            (json!([{"value": "Tax"}, {"name": "VAT"}]), vec!["Tax", "VAT"]),
            (
                json!({"value": "Shop", "child": {"value": "Tax"}}),
                vec!["Shop", "Tax"],
            ),
            (json!(7), vec!["7"]),
            (json!(null), vec![]),
            (json!([]), vec![]),
        ] {
            assert_eq!(collect_texts(&value), expected, "{value}");
        }
    }
}
