//! Custom fields of a site for acceptance criteria, which some teams keep apart from the description.

use domain::json;
use serde_json::{Value, value::RawValue};

use crate::{Error, JiraDialect};

// Usual names of such a field, in lower case: English, German, French, Spanish, Portuguese, Italian.
const NAMES: [&str; 8] = [
    "acceptance criteria",
    "acceptance criterion",
    "definition of done",
    "akzeptanzkriterien",
    "critères d'acceptation",
    "criterios de aceptación",
    "critérios de aceitação",
    "criteri di accettazione",
];
// Stems of names that resemble a usual one, in lower case. A name has all stems of an entry, in any order.
const STEMS: [&[&str]; 9] = [
    &["acceptance", "criteri"],
    &["definition", "done"],
    &["conditions", "satisfaction"],
    &["akzeptanzkriteri"],
    &["abnahmekriteri"],
    &["critère", "acceptation"],
    &["criterio", "aceptaci"],
    &["critério", "aceita"],
    &["criteri", "accettazione"],
];
// Length of a name that is offered, in characters.
const MOST_NAME_CHARS: usize = 100;
const HEADING: &str = "## Acceptance criteria";

/// True when a field of this name holds acceptance criteria.
pub(crate) fn is_criteria_field(name: &str) -> bool {
    // Apostrophes differ between keyboards, and some names end in a colon.
    let name = name.trim().trim_end_matches(':').replace('’', "'").to_lowercase();
    NAMES.contains(&name.as_str())
}

/// Custom fields of a site for acceptance criteria, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriteriaFields {
    /// Fields of a usual name, which are read with every issue.
    pub usual: Vec<String>,
    /// Fields whose names resemble a usual one.
    pub similar: Vec<String>,
}

impl CriteriaFields {
    /// Chooses from the names of all custom fields of a site.
    pub(crate) fn choose<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for name in names.map(str::trim) {
            let list = if is_criteria_field(name) {
                &mut found.usual
            } else if is_similar_to_criteria(name) {
                &mut found.similar
            } else {
                continue;
            };
            // A site may have several fields of the same name.
            if !list.iter().any(|known| known == name) {
                list.push(name.to_owned());
            }
        }
        found
    }
}

fn is_similar_to_criteria(name: &str) -> bool {
    let lower = name.to_lowercase();
    name.chars().count() <= MOST_NAME_CHARS
        && !name.chars().any(char::is_control)
        && STEMS
            .iter()
            .any(|stems| stems.iter().all(|stem| lower.contains(stem)))
}

/// Appends the criteria of these fields to a description. Criteria that the text contains already are
/// skipped.
pub(crate) fn append_criteria(
    description: String,
    fields: &[&RawValue],
    dialect: JiraDialect,
) -> Result<String, Error> {
    let mut text = description;
    for raw in fields {
        let criteria = convert_to_list(&render_field(raw, dialect)?);
        if criteria.is_empty() || text.contains(&criteria) {
            continue;
        }
        let before = match text.trim_end() {
            "" => String::new(),
            text => format!("{text}\n\n"),
        };
        text = format!("{before}{HEADING}\n\n{criteria}\n");
    }
    Ok(text)
}

/// Renders a field's value as Markdown: a document, a text, or the options of a list.
fn render_field(raw: &RawValue, dialect: JiraDialect) -> Result<String, Error> {
    const WHAT: &str = "the acceptance criteria";
    match (dialect, json::from_slice::<Value>(raw.get().as_bytes())) {
        // A single-line field is plain text also in the Cloud.
        (JiraDialect::Cloud, Ok(Value::String(text))) => Ok(text),
        (_, Ok(value @ (Value::Array(_) | Value::Number(_)))) => Ok(collect_texts(&value).join("\n")),
        (_, Ok(value @ Value::Object(_))) if value["type"] != "doc" => Ok(collect_texts(&value).join("\n")),
        (_, Ok(Value::Null | Value::Bool(_))) => Ok(String::new()),
        (_, Ok(_) | Err(_)) => dialect.markdown(raw, WHAT),
    }
}

/// Renders a text as a list. Without list items, each line becomes one.
fn convert_to_list(text: &str) -> String {
    let text = text.trim();
    // Below the heading any list counts; without it `acceptance_criteria` accepts checklists only.
    let has_points = !domain::acceptance_criteria(&format!("{HEADING}\n{text}")).is_empty();
    if has_points || text.is_empty() {
        return text.to_owned();
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let points: Vec<String> = lines.map(|line| format!("- {line}")).collect();
    points.join("\n")
}

/// Collects the texts of a value: those of a list's elements; of an option its own text and that of its child
/// option.
pub(crate) fn collect_texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) => items.iter().flat_map(collect_texts).collect(),
        Value::Object(choice) => {
            let own = ["value", "name", "displayName"]
                .iter()
                .find_map(|key| choice.get(*key)?.as_str());
            let below = choice.get("child").map(collect_texts).unwrap_or_default();
            own.map(str::to_owned).into_iter().chain(below).collect()
        }
        Value::Null | Value::Bool(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn read_criteria(value: &Value, dialect: JiraDialect) -> Vec<String> {
        let raw = to_raw_value(value).unwrap();
        let text = append_criteria("Totals are wrong.".to_owned(), &[&raw], dialect).unwrap();
        assert!(text.starts_with("Totals are wrong."), "{text}");
        domain::acceptance_criteria(&text)
    }

    #[test]
    fn criteria_of_every_field_type_are_points() {
        let item = |text: &str| {
            json!({"type": "listItem", "content": [
            {"type": "paragraph", "content": [{"type": "text", "text": text}]}]})
        };
        let document = json!({"type": "doc", "version": 1, "content": [
            {"type": "bulletList", "content": [item("Empty carts cost 0"), item("Discounts work")]}]});
        let expected = ["Empty carts cost 0", "Discounts work"];
        assert_eq!(read_criteria(&document, JiraDialect::Cloud), expected);
        let lines = json!("Empty carts cost 0\n\nDiscounts work\n");
        assert_eq!(read_criteria(&lines, JiraDialect::Cloud), expected);
        assert_eq!(read_criteria(&lines, JiraDialect::DataCenter), expected);
        let wiki = json!("* Empty carts cost 0\n* Discounts work");
        assert_eq!(read_criteria(&wiki, JiraDialect::DataCenter), expected);
        let choices = json!([{"value": "Empty carts cost 0"}, {"value": "Discounts work"}]);
        assert_eq!(read_criteria(&choices, JiraDialect::Cloud), expected);
        for nothing in [
            json!(null),
            json!(""),
            json!([]),
            json!({"type": "doc", "version": 1, "content": []}),
        ] {
            assert!(
                read_criteria(&nothing, JiraDialect::Cloud).is_empty(),
                "{nothing}"
            );
        }
    }

    #[test]
    fn criteria_that_the_description_repeats_stand_once() {
        let raw = to_raw_value(&json!("- Empty carts cost 0")).unwrap();
        let text = "Why.\n\n- Empty carts cost 0\n".to_owned();
        assert_eq!(
            append_criteria(text.clone(), &[&raw], JiraDialect::Cloud).unwrap(),
            text
        );
    }

    #[test]
    fn similar_names_differ_from_usual_ones() {
        let long = format!("Acceptance criteria {}", "x".repeat(100));
        let names = [
            "Story Points",
            "Acceptance Criteria:",
            "Acceptance criteria (QA)",
            "Kriterien",
            " Abnahmekriterien",
            "Abnahmekriterien",
            "Acceptance date",
            "Acceptance\ncriteria 2",
            &long,
            "CRITÉRIOS PARA ACEITAÇÃO",
        ];
        let found = CriteriaFields::choose(names.into_iter());
        assert_eq!(found.usual, ["Acceptance Criteria:"]);
        assert_eq!(
            found.similar,
            [
                "Acceptance criteria (QA)",
                "Abnahmekriterien",
                "CRITÉRIOS PARA ACEITAÇÃO"
            ]
        );
    }

    #[test]
    fn field_is_known_by_its_name_alone() {
        for name in [
            "Acceptance Criteria",
            " acceptance criteria: ",
            "Critères d’acceptation",
        ] {
            assert!(is_criteria_field(name), "{name}");
        }
        for name in ["Criteria", "Acceptance", "Risk acceptance criteria owner"] {
            assert!(!is_criteria_field(name), "{name}");
        }
    }
}
