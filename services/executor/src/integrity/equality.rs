//! Equality that product code defines. A value that equals anything passes every comparison of a test.

use std::collections::BTreeMap;

use domain::check::FindingSeverity;

use super::{
    inventory::{end_by_indentation, measure_indentation},
    paths::SourceLanguage,
    size::NumberedLine,
};
use crate::pattern::LazyPattern;

/// Equality of other languages than Python.
static DEFINED: LazyPattern = LazyPattern::new(
    r"\boperator\s*==\s*[(<]|\bboolean\s+equals\s*\(|\bbool\s+Equals\s*\(|\boverride\s+fun\s+equals\b|\bimpl(?:<[^>]*>)?\s+PartialEq\b|\bdef\s+==\s*\(",
);
/// Python's equality without a `def`: by assignment, `setattr`, or in the table of a class that `type` creates.
static ASSIGNED: LazyPattern = LazyPattern::new(
    r"\b__(?:eq|ne|bool)__\s*=(?:[^=]|$)|\bsetattr(?:__)?\([^\n]*['\x22]__(?:eq|ne|bool)__['\x22]|['\x22]__(?:eq|ne|bool)__['\x22]\s*(?::|\]\s*=(?:[^=]|$))|\(\s*['\x22]__(?:eq|ne|bool)__['\x22]\s*,",
);
static HEADING: LazyPattern = LazyPattern::new(
    r"^\s*(?:async\s+)?def\s+__(eq|ne|hash|bool)__\s*\(\s*(\w+)\s*(?:,\s*(\w+)\s*(?::[^)=]*)?)?(?:,\s*/\s*)?\)\s*(?:->[^:]*)?:(.*)$",
);
static BARE_HEADING: LazyPattern = LazyPattern::new(r"\bdef\s+__(?:eq|ne|hash|bool)__\b");
static CLASS: LazyPattern = LazyPattern::new(r"^\s*class\s+\w+\s*(?:\(([^)]*)\))?\s*:");
/// Check of the other value before its fields are compared. The rest of the line is the last group.
static GUARD: LazyPattern = LazyPattern::new(
    r"^(?:if|elif)\s+(?:not\s+)?(?:isinstance\(\s*\w+\s*,[^()]*\)|type\(\s*\w+\s*\)\s*(?:is(?:\s+not)?|==|!=)\s*type\(\s*\w+\s*\)|\w+\.__class__\s*(?:is(?:\s+not)?|==|!=)\s*\w+\.__class__|\w+\s+is\s+(?:not\s+)?None)\s*:\s*(.*)$",
);
static REFUSAL: LazyPattern = LazyPattern::new(r"^return\s+(?:NotImplemented|False)$");
static TYPE_CHECK: LazyPattern = LazyPattern::new(
    r"^(?:isinstance\(\s*\w+\s*,[^()]*\)|type\(\s*\w+\s*\)\s*(?:is|==)\s*type\(\s*\w+\s*\)|\w+\.__class__\s*(?:is|==)\s*\w+\.__class__)$",
);
static FIELD: LazyPattern = LazyPattern::new(r"\b(\w+)\.(\w+)\b");
static NEGATION: LazyPattern = LazyPattern::new(
    r"^return\s+not\s+(?:\(\s*\w+\s*==\s*\w+\s*\)|\w+\s*==\s*\w+|\w+\.__eq__\(\s*\w+\s*\))$",
);
static HASHED: LazyPattern = LazyPattern::new(r"^return\s+hash\(.*\)$");
static ALWAYS: LazyPattern =
    LazyPattern::new(r"\breturn\s+(?:True|1|not\s+(?:False|None|0))\b|\bor\s+(?:True|1)\b");

/// Attributes that numbers and dates also have. Equality by one of them alone can equal an expected number.
const SHARED: [&str; 15] = [
    "args",
    "day",
    "denominator",
    "fold",
    "hour",
    "imag",
    "max",
    "min",
    "month",
    "numerator",
    "real",
    "start",
    "step",
    "stop",
    "year",
];
/// Base classes whose instances equal no value of a built-in type.
const PLAIN_BASES: [&str; 7] = [
    "",
    "object",
    "ABC",
    "abc.ABC",
    "Protocol",
    "metaclass=ABCMeta",
    "metaclass=abc.ABCMeta",
];

/// Returns the added lines that define equality, each with its severity. A comparison of fields is only flagged.
pub(super) fn find_equalities(
    language: SourceLanguage,
    text: &str,
    added: &[NumberedLine<'_>],
) -> BTreeMap<usize, FindingSeverity> {
    let mut found = BTreeMap::new();
    for (number, line) in added {
        if DEFINED.is_match(line) || (language == SourceLanguage::Python && ASSIGNED.is_match(line)) {
            found.insert(*number, FindingSeverity::Block);
        }
    }
    if language == SourceLanguage::Python {
        let lines: Vec<&str> = text.lines().collect();
        let headings = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| BARE_HEADING.is_match(line));
        for (number, severity) in headings.filter_map(|(at, _)| judge_definition(&lines, at, added)) {
            let worst = found.entry(number).or_insert(severity);
            *worst = severity.max(*worst);
        }
    }
    found
}

/// Returns the first added line of a definition with its severity; `None` for a definition without added lines.
fn judge_definition(
    lines: &[&str],
    at: usize,
    added: &[NumberedLine<'_>],
) -> Option<(usize, FindingSeverity)> {
    let end = end_by_indentation(lines, at);
    let (number, _) = added
        .iter()
        .find(|(number, _)| (at + 1..=end + 1).contains(number))?;
    let severity = if compares_fields(lines, at, end) {
        FindingSeverity::Flag
    } else if *number == at + 1 {
        FindingSeverity::Block
    } else {
        // A changed equality of the base blocks only where it now holds for every value.
        let is_always = added
            .iter()
            .filter(|(number, _)| (at + 1..=end + 1).contains(number))
            .any(|(_, line)| ALWAYS.is_match(line));
        if is_always {
            FindingSeverity::Block
        } else {
            FindingSeverity::Flag
        }
    };
    Some((*number, severity))
}

/// Returns true when every statement of a definition refuses other values, or compares fields of two values of
/// one class.
fn compares_fields(lines: &[&str], at: usize, end: usize) -> bool {
    let Some(heading) = lines.get(at).and_then(|line| HEADING.captures(line)) else {
        return false;
    };
    let group = |number| heading.get(number).map_or("", |found| found.as_str());
    let rest = group(4).split('#').next().unwrap_or_default().trim();
    let body = if rest.is_empty() {
        join_statements(lines.get(at + 1..=end).unwrap_or_default())
    } else {
        vec![rest.to_owned()]
    };
    match group(1) {
        "hash" => matches!(&body[..], [only] if HASHED.is_match(only)),
        "ne" => matches!(&body[..], [only] if NEGATION.is_match(only)),
        "eq" => {
            let (own, other) = (group(2), group(3));
            let bare: Vec<&str> = body
                .iter()
                .map(|statement| GUARD.first(statement).unwrap_or(statement))
                .collect();
            let is_compared = |statement: &str| is_comparison(statement, own, other, lines);
            let is_refused =
                |statement: &str| statement.is_empty() || statement == "else:" || REFUSAL.is_match(statement);
            has_plain_bases(lines, at)
                && bare.iter().any(|statement| is_compared(statement))
                && bare
                    .iter()
                    .all(|statement| is_refused(statement) || is_compared(statement))
        }
        _ => false,
    }
}

/// Returns the statements of a body, each in one line, without comments and documentation.
fn join_statements(body: &[&str]) -> Vec<String> {
    let (mut found, mut open, mut is_documentation) = (Vec::<String>::new(), 0_i32, false);
    for line in body {
        let line = line.trim();
        let text = if is_documentation {
            Some(line)
        } else {
            line.strip_prefix("\"\"\"").filter(|_| found.is_empty())
        };
        if let Some(text) = text {
            let end = text.split_once("\"\"\"");
            is_documentation = end.is_none();
            // A comparison of fields needs no statement in the line of the documentation, so it is kept to be refused.
            found.extend(
                end.filter(|(_, after)| !after.is_empty())
                    .map(|_| line.to_owned()),
            );
            continue;
        }
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match found.last_mut() {
            Some(statement) if open > 0 => {
                statement.push(' ');
                statement.push_str(line);
            }
            Some(_) | None => found.push(line.to_owned()),
        }
        for c in line.chars() {
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' => open -= 1,
                _ => {}
            }
        }
    }
    found
}

/// Returns true for a `return` of comparisons, each of the same fields on both sides.
fn is_comparison(statement: &str, own: &str, other: &str, lines: &[&str]) -> bool {
    let Some(value) = statement.strip_prefix("return ") else {
        return false;
    };
    let value = strip_parentheses(value.trim());
    let mut count = 0;
    let is_all = value.split(" and ").all(|part| {
        let part = part.trim();
        if TYPE_CHECK.is_match(part) {
            return true;
        }
        count += 1;
        let Some((left, right)) = part.split_once("==") else {
            return false;
        };
        let (left, right) = (remove_spaces(left), remove_spaces(right));
        let (of_own, of_other) = (format!("{own}."), format!("{other}."));
        let is_mirrored = (left.contains(&of_own) && left.replace(&of_own, &of_other) == right)
            || (right.contains(&of_own) && right.replace(&of_own, &of_other) == left);
        let side = if left.contains(&of_own) { left } else { right };
        is_mirrored && contains_only_fields(&side, own, lines)
    });
    is_all && count > 0
}

/// Returns true when a side of a comparison consists of fields that this file defines.
fn contains_only_fields(side: &str, own: &str, lines: &[&str]) -> bool {
    let fields: Vec<(String, String)> = FIELD
        .all(side)
        .map(|field| (field[1].to_owned(), field[2].to_owned()))
        .collect();
    let rest = fields.iter().fold(side.to_owned(), |rest, (of, field)| {
        rest.replacen(&format!("{of}.{field}"), "", 1)
    });
    rest.chars().all(|c| matches!(c, '(' | ')' | '[' | ']' | ','))
        && fields
            .iter()
            .all(|(of, field)| of == own && is_field(field, own, lines))
}

fn is_field(name: &str, own: &str, lines: &[&str]) -> bool {
    if name == "__dict__" {
        return true;
    }
    let (of_own, attribute) = (format!("{own}."), format!("{own}.{name}"));
    let is_defined = |line: &&str| {
        let line = line.trim();
        let target = line.split('=').next().unwrap_or_default();
        let is_assigned = line.contains('=') && line.starts_with(&of_own);
        let is_annotated = line.strip_prefix(name).is_some_and(|rest| {
            rest.trim_start().starts_with([':', '=']) && !rest.trim_start().starts_with("==")
        });
        let mut targets = target.split([',', ':']).map(str::trim);
        is_annotated || (is_assigned && targets.any(|target| target == attribute))
    };
    !name.starts_with("__") && !SHARED.contains(&name) && lines.iter().any(is_defined)
}

/// Returns true when the enclosing class has no base class that may be a built-in type.
fn has_plain_bases(lines: &[&str], at: usize) -> bool {
    let own = lines.get(at).map_or(0, |line| measure_indentation(line));
    let class = lines
        .get(..at)
        .unwrap_or_default()
        .iter()
        .rev()
        .find(|line| !line.trim().is_empty() && measure_indentation(line) < own);
    let Some(found) = class.and_then(|line| CLASS.captures(line)) else {
        return false;
    };
    let bases = found.get(1).map_or("", |bases| bases.as_str());
    bases.split(',').all(|base| {
        let base = base.trim();
        PLAIN_BASES.contains(&base) || (base.starts_with("Generic[") && base.ends_with(']'))
    })
}

fn strip_parentheses(value: &str) -> &str {
    let inner = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    // The first parenthesis of `(a, b) == (c, d)` does not belong to the last one.
    let is_pair = |inner: &&str| {
        let mut open = 0_i32;
        inner.chars().all(|c| {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            open >= 0
        })
    };
    inner.filter(is_pair).map_or(value, str::trim)
}

fn remove_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use domain::check::FindingSeverity::{Block, Flag};

    use super::*;

    /// Worst severity of a text of which every line is added.
    fn judge(text: &str) -> Option<FindingSeverity> {
        let added: Vec<NumberedLine<'_>> = (1..).zip(text.lines()).collect();
        let found = find_equalities(SourceLanguage::Python, text, &added);
        found.into_values().max()
    }

    fn build_class(heading: &str, equality: &str) -> String {
        format!(
            "{heading}\n    def __init__(self, amount, currency):\n        self.amount, self.currency = amount, currency\n\n{equality}"
        )
    }

    #[test]
    fn comparison_of_fields_is_flagged() {
        for equality in [
            "    def __eq__(self, other):\n        return self.amount == other.amount\n",
            "    def __eq__(self, other): return self.amount == other.amount\n",
            "    def __eq__(self, other: object) -> bool:\n        \"\"\"Compares.\"\"\"\n        if not isinstance(other, Money):\n            return NotImplemented\n        return (\n            self.amount == other.amount\n            and self.currency == other.currency\n        )\n",
            "    def __eq__(self, other):\n        return isinstance(other, Money) and (self.amount, self.currency) == (other.amount, other.currency)\n",
            "    def __eq__(self, other):\n        if type(self) is not type(other): return False\n        return self.__dict__ == other.__dict__\n",
            "    def __eq__(self, other):\n        return self.amount == other.amount  # only the amount\n\n    def __ne__(self, other):\n        return not self == other\n\n    def __hash__(self):\n        return hash((self.amount, self.currency))\n",
        ] {
            for heading in ["class Money:", "class Money(object):", "class Money(Generic[T]):"] {
                let text = build_class(heading, equality);
                assert_eq!(judge(&text), Some(Flag), "{text}");
            }
        }
    }

    #[test]
    fn equality_with_other_values_blocks() {
        for equality in [
            "    def __eq__(self, other):\n        return True\n",
            "    def __eq__(self, other): return True\n",
            "    def __eq__(self, other):\n        return True or \"\"\"x\"\"\"\n        return self.amount == other.amount\n",
            "    def __eq__(self, other):\n        \"\"\"x\"\"\"; return True\n        return self.amount == other.amount\n",
            "    def __eq__(self, other):\n        return self.amount == other.amount or True\n",
            "    def __eq__(self, other):\n        return self.amount == self.amount\n",
            "    def __eq__(self, other):\n        return self.imag == other.imag\n",
            "    def __eq__(self, other):\n        return self.__doc__ == other.__doc__\n",
            "    def __eq__(self, other):\n        return self.missing == other.missing\n",
            "    def __eq__(self, other):\n        if isinstance(other, int):\n            return True\n        return self.amount == other.amount\n",
            "    def __eq__(self, other):\n        return same(self, other)\n",
            "    def __ne__(self, other):\n        return False\n",
            "    def __bool__(self):\n        return True\n",
            "    __eq__ = always\n",
            "Money.__eq__ = always\n",
            "setattr(Money, \"__eq__\", always)\n",
            "Total = type(\"Total\", (), {\"__eq__\": always})\n",
            "Total = type('Total', (), dict([('__eq__', always)]))\n",
            "Total = type('Total', (), dict(__eq__=always))\n",
            "space['__eq__'] = always\n",
        ] {
            let text = build_class("class Money:", equality);
            assert_eq!(judge(&text), Some(Block), "{text}");
        }
        let numeric = build_class(
            "class Money(int):",
            "    def __eq__(self, other):\n        return self.amount == other.amount\n",
        );
        assert_eq!(judge(&numeric), Some(Block), "a number equals an expected number");
    }

    #[test]
    fn other_lines_define_no_equality() {
        for text in [
            "    __hash__ = None\n",
            "if self.__eq__ == other.__eq__:\n    f()\n",
            "same = getattr(self, \"__eq__\", None)\n",
            "return self.amount == other.amount\n",
            "if operator == '+':\n    f()\n",
        ] {
            assert_eq!(judge(text), None, "{text}");
        }
        for pattern in [
            &DEFINED,
            &ASSIGNED,
            &HEADING,
            &BARE_HEADING,
            &CLASS,
            &GUARD,
            &REFUSAL,
            &TYPE_CHECK,
            &FIELD,
            &NEGATION,
            &HASHED,
            &ALWAYS,
        ] {
            assert!(pattern.is_sound());
        }
    }

    #[test]
    fn changed_body_is_judged_with_its_definition() {
        let judge_line = |body: &str| {
            let text = format!("class Money(Base):\n    def __eq__(self, other):\n        {body}\n");
            let line = text.lines().nth(2).unwrap();
            find_equalities(SourceLanguage::Python, &text, &[(3, line)])
                .into_values()
                .max()
        };
        assert_eq!(judge_line("Total.__eq__ = always"), Some(Block));
        assert_eq!(judge_line("return True"), Some(Block));
        assert_eq!(judge_line("return self.key() == other.key()"), Some(Flag));
    }
}
