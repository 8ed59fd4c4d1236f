//! Texts about choices of a triage that are not set on the ticket.

use super::words::{code, harmless};
use crate::made::{Left, Why, Wish};

/// Builds one paragraph about the choices that are left to people; empty without any.
pub(crate) fn left(left: &[Left]) -> Vec<String> {
    let lines: Vec<String> = left.iter().map(line).collect();
    match lines.as_slice() {
        [] => Vec::new(),
        [one] => vec![one.clone()],
        several => {
            let list: Vec<String> = several.iter().map(|line| format!("- {line}")).collect();
            vec![list.join("\n")]
        }
    }
}

fn line(left: &Left) -> String {
    match (&left.wish, &left.why) {
        (Wish::Type { name }, Why::Suggested) => {
            format!(
                "This looks like a ticket of the type {}. Its type is left to people.",
                code(name)
            )
        }
        (Wish::Type { name }, Why::Has { current }) => format!(
            "The type {} would fit; the issue keeps its type {}.",
            code(name),
            code(current)
        ),
        (wish, why) => format!("{} {}", wished(wish), reason(why)),
    }
}

fn wished(wish: &Wish) -> String {
    match wish {
        Wish::Type { name } => format!("The type {} fits and is not set:", code(name)),
        Wish::Priority { name } => format!("The priority {} fits and is not set:", code(name)),
        Wish::Project { owner, number } => format!(
            "The issue is not in project {} with its fields:",
            code(&format!("{owner}/{number}"))
        ),
        Wish::Field { name, value } => {
            format!("{} of the project is not set to {}:", code(name), code(value))
        }
        Wish::Link { to } => format!("The link with {} is not made:", code(to)),
    }
}

fn reason(why: &Why) -> String {
    match why {
        Why::Suggested => "it is left to people.".to_owned(),
        Why::Has { current } => format!("it has {}.", code(current)),
        Why::NoToken => {
            "no token for projects is in the settings of the service (`project_token`).".to_owned()
        }
        Why::NoField => "the project has no such field.".to_owned(),
        Why::NoValue => "the field cannot have this value.".to_owned(),
        Why::NoLinkType { name } => {
            format!(
                "Jira has no type of link {} (`triage.link_type` in the rules).",
                code(name)
            )
        }
        Why::Refused { detail } => harmless(detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(wish: Wish, why: Why) -> String {
        left(&[Left { wish, why }]).join("\n")
    }

    #[test]
    fn left_choice_is_reported_with_reason() {
        let bug = || Wish::Type {
            name: "Bug".to_owned(),
        };
        let field = || Wish::Field {
            name: "Size".to_owned(),
            value: "S".to_owned(),
        };
        let project = Wish::Project {
            owner: "acme".to_owned(),
            number: 3,
        };
        let current = "Task".to_owned();
        assert_eq!(
            one(bug(), Why::Suggested),
            "This looks like a ticket of the type `Bug`. Its type is left to people."
        );
        assert_eq!(
            one(bug(), Why::Has { current }),
            "The type `Bug` would fit; the issue keeps its type `Task`."
        );
        assert_eq!(
            one(project, Why::NoToken),
            "The issue is not in project `acme/3` with its fields: no token for projects is in the settings of the service \
             (`project_token`)."
        );
        assert_eq!(
            one(field(), Why::NoField),
            "`Size` of the project is not set to `S`: the project has no such field."
        );
        let name = "Clones".to_owned();
        let to = "ENG-5".to_owned();
        assert_eq!(
            one(Wish::Link { to }, Why::NoLinkType { name }),
            "The link with `ENG-5` is not made: Jira has no type of link `Clones` (`triage.link_type` in the rules)."
        );
    }

    #[test]
    fn refusal_details_are_harmless_and_listed() {
        let detail = "ask @ann\nnow".to_owned();
        let high = Wish::Priority {
            name: "High".to_owned(),
        };
        let refused = Left {
            wish: high,
            why: Why::Refused { detail },
        };
        let text = left(&[refused.clone(), refused]).join("\n");
        assert!(!text.contains(" @ann"), "{text}");
        assert_eq!(text.matches("- The priority `High` fits").count(), 2, "{text}");
        assert!(left(&[]).is_empty());
    }
}
