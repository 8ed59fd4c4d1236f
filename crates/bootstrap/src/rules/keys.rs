//! Positions of the keys in a YAML file.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

/// Keys by their dotted path, in the order of the file. Empty for a file that is not YAML.
#[derive(Default)]
pub(super) struct KeyPositions(Vec<KeyPosition>);

struct KeyPosition {
    path: String,
    line: u64,
    column: u64,
}

impl KeyPositions {
    pub(super) fn of(text: &str) -> Self {
        let mut keys = Self::default();
        if let Ok(node) = serde_saphyr::from_str::<YamlKeyNode>(text) {
            keys.add("", node);
        }
        keys
    }

    fn add(&mut self, parent: &str, node: YamlKeyNode) {
        for (key, inner) in node.0 {
            let path = if parent.is_empty() {
                key.value
            } else {
                format!("{parent}.{}", key.value)
            };
            self.0.push(KeyPosition {
                path: path.clone(),
                line: key.defined.line(),
                column: key.defined.column(),
            });
            self.add(&path, inner);
        }
    }

    /// Line of a key, if the file has it.
    pub(super) fn line(&self, path: &str) -> Option<u64> {
        let found = self.0.iter().find(|place| place.path == path);
        found.map(|place| place.line)
    }

    /// Last key that begins at or before a position of the file.
    pub(super) fn at(&self, line: u64, column: u64) -> Option<&str> {
        let before = self
            .0
            .iter()
            .take_while(|place| (place.line, place.column) <= (line, column));
        before.last().map(|place| place.path.as_str())
    }
}

/// Value of YAML, reduced to its keys.
#[derive(Default)]
struct YamlKeyNode(Vec<(Spanned<String>, YamlKeyNode)>);

impl<'de> Deserialize<'de> for YamlKeyNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = YamlKeyNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlKeyNode, A::Error> {
        let mut keys = Vec::new();
        while let Some(entry) = map.next_entry()? {
            keys.push(entry);
        }
        Ok(YamlKeyNode(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<YamlKeyNode, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(YamlKeyNode::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<YamlKeyNode, E> {
        Ok(YamlKeyNode::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<YamlKeyNode, E> {
        Ok(YamlKeyNode::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<YamlKeyNode, E> {
        Ok(YamlKeyNode::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<YamlKeyNode, E> {
        Ok(YamlKeyNode::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<YamlKeyNode, E> {
        Ok(YamlKeyNode::default())
    }

    fn visit_unit<E>(self) -> Result<YamlKeyNode, E> {
        Ok(YamlKeyNode::default())
    }

    fn visit_none<E>(self) -> Result<YamlKeyNode, E> {
        Ok(YamlKeyNode::default())
    }
}
