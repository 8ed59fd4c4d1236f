//! Comparison of objects with the vendors' descriptions in `tests/required`.

use std::collections::BTreeSet;

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::{Received, WEBHOOK_LIMIT};

/// File of `tests/required`, with the names that were compared so far.
pub(crate) struct Description {
    kinds: Map<String, Value>,
    /// Required shape of each answer or webhook, by name.
    required: Map<String, Value>,
    seen: BTreeSet<String>,
    lacking: BTreeSet<String>,
}

impl Description {
    /// Reads a file. `required` is its section: `answers` or `webhooks`.
    pub(crate) fn read(file: &str, required: &str) -> Self {
        let file: Value = serde_json::from_str(file).unwrap();
        let section = |name: &str| file[name].as_object().expect(name).clone();
        Self {
            kinds: section("kinds"),
            required: section(required),
            seen: BTreeSet::new(),
            lacking: BTreeSet::new(),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.required.keys().cloned().collect()
    }

    /// Compares an answer or a webhook with its required shape.
    pub(crate) fn compare(&mut self, name: &str, found: &Value) {
        self.seen.insert(name.to_owned());
        let mut lacking = Vec::new();
        match self.required.get(name) {
            None => lacking.push("tests/required has no shape for it".to_owned()),
            Some(Value::Array(_)) if found.as_array().is_some_and(Vec::is_empty) => {
                lacking.push("an empty list shows nothing".to_owned());
            }
            Some(wanted) => self.check_value(wanted, found, "it", &mut lacking),
        }
        self.lacking
            .extend(lacking.into_iter().map(|lack| format!("{name}: {lack}")));
    }

    /// Fails with everything that was lacking, or with names that were never compared.
    pub(crate) fn finish(self) {
        let all: BTreeSet<String> = self.required.keys().cloned().collect();
        let unseen: Vec<&String> = all.difference(&self.seen).collect();
        let lacking: Vec<String> = self.lacking.into_iter().collect();
        assert!(lacking.is_empty(), "\n{}\n", lacking.join("\n"));
        assert!(unseen.is_empty(), "never seen: {unseen:?}");
    }

    fn check_value(&self, wanted: &Value, found: &Value, place: &str, lacking: &mut Vec<String>) {
        match (wanted, found) {
            (Value::String(kind), found) => self.check_kind(kind, found, place, lacking),
            (Value::Array(items), Value::Array(found)) => {
                for (index, found) in found.iter().enumerate() {
                    self.check_value(&items[0], found, &format!("{place}[{index}]"), lacking);
                }
            }
            (Value::Object(properties), Value::Object(found)) => {
                self.check_properties(properties, found, place, lacking);
            }
            (wanted, found) => lacking.push(describe_mismatch(place, found, wanted)),
        }
    }

    /// Checks a value's kind: a JSON type, the name of an object kind, or several of them. The suffix `?`
    /// permits null.
    fn check_kind(&self, kind: &str, found: &Value, place: &str, lacking: &mut Vec<String>) {
        let wanted = kind.trim_end_matches('?');
        if kind.ends_with('?') && found.is_null() {
            return;
        }
        match self.kinds.get(wanted) {
            Some(properties) if found.is_object() => self.check_value(properties, found, place, lacking),
            None if wanted.split('|').any(|one| is_of_type(one, found)) => {}
            _ => lacking.push(describe_mismatch(place, found, &kind.into())),
        }
    }

    fn check_properties(
        &self,
        wanted: &Map<String, Value>,
        found: &Map<String, Value>,
        place: &str,
        lacking: &mut Vec<String>,
    ) {
        let whole = Value::Object(found.clone());
        for (name, wanted) in wanted {
            let inside = format!("{place}.{name}");
            match found.get(name) {
                _ if name == "..." => self.check_value(wanted, &whole, place, lacking),
                Some(found) => self.check_value(wanted, found, &inside, lacking),
                None => lacking.push(format!("{inside} is missing, expected {wanted}")),
            }
        }
    }
}

/// Waits for every webhook of a description and compares all received ones.
pub(crate) async fn compare_received_webhooks(
    mut description: Description,
    received: &Received,
    name_of: impl Fn(&HeaderMap, &Value) -> String,
) {
    let wanted = description.names();
    let all = testkit::poll_until("every webhook", WEBHOOK_LIMIT, async || {
        let received = received.lock().unwrap().clone();
        let read = received.iter().map(|(headers, body)| {
            let payload: Value = serde_json::from_slice(body).unwrap();
            (name_of(headers, &payload), payload)
        });
        let read: Vec<(String, Value)> = read.collect();
        let has_come = |wanted: &String| read.iter().any(|(name, _)| name == wanted);
        wanted.iter().all(has_come).then_some(read)
    });
    for (name, payload) in all.await.unwrap() {
        description.compare(&name, &payload);
    }
    description.finish();
}

fn describe_mismatch(place: &str, found: &Value, wanted: &Value) -> String {
    let found: String = found.to_string().chars().take(60).collect();
    format!("{place} is {found}, expected {wanted}")
}

fn is_of_type(name: &str, found: &Value) -> bool {
    match name {
        "string" => found.is_string(),
        "integer" => found.is_i64() || found.is_u64(),
        "number" => found.is_number(),
        "boolean" => found.is_boolean(),
        "object" => found.is_object(),
        _ => false,
    }
}

/// Returns every route of a router's source with its methods, such as `GET /pulls`. Deletions and refused
/// routes (`any`) have no answer to compare.
pub(crate) fn list_routes(source: &str) -> Vec<String> {
    let routes = source.split(".route(").skip(1);
    let named = routes.flat_map(|route| {
        let (_, path) = route.split_once('"').unwrap();
        let (path, rest) = path.split_once('"').unwrap();
        let rest = rest.split(".nest(").next().unwrap();
        let methods = ["get", "post", "put", "patch"];
        let has = move |method: &&str| {
            [" ", "."]
                .iter()
                .any(|before| rest.contains(&format!("{before}{method}(")))
        };
        let used = methods.into_iter().filter(has);
        used.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    named.collect()
}

/// Fails if a route has no answer in the description. The routes in `others` use another protocol.
pub(crate) fn every_route_is_described(source: &str, description: &Description, others: &[&str]) {
    let known = description.names();
    let routes = list_routes(source);
    assert!(routes.len() > 5, "the routes are found");
    for route in routes {
        let (method, path) = route.split_once(' ').unwrap();
        let is_it = |name: &String| name.starts_with(method) && name.ends_with(path);
        assert!(
            others.contains(&route.as_str()) || known.iter().any(is_it),
            "tests/required has no {route}"
        );
    }
}

#[test]
fn comparison_names_missing_property_and_wrong_type() {
    let file = r#"{"answers": {"GET /a": ["thing"], "GET /b": "thing", "GET /c": ["thing"]},
        "kinds": {"thing": {"...": "base", "of": "base?"}, "base": {"id": "integer"}}}"#;
    let mut description = Description::read(file, "answers");
    description.compare("GET /a", &serde_json::json!([{"id": 1, "of": null}, {"id": "1"}]));
    description.compare("GET /b", &serde_json::json!({"id": 1, "of": {}}));
    description.compare("GET /c", &serde_json::json!([]));
    let lacking: Vec<String> = description.lacking.into_iter().collect();
    assert_eq!(
        lacking,
        [
            "GET /a: it[1].id is \"1\", expected \"integer\"",
            "GET /a: it[1].of is missing, expected \"base?\"",
            "GET /b: it.of.id is missing, expected \"integer\"",
            "GET /c: an empty list shows nothing",
        ]
    );
}
