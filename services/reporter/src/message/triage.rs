//! Texts about a triage: choices that are not set on the ticket, and a possible duplicate.

use domain::TicketKey;

use super::words::{format_code, sanitize_line};
use crate::receipt::{TriageWish, UnsetChoice, UnsetReason};

/// Builds one paragraph about the choices that are left to people; empty without any.
pub(crate) fn render_unset_choices<'a>(left: impl IntoIterator<Item = &'a UnsetChoice>) -> Vec<String> {
    let lines: Vec<String> = left.into_iter().map(render_unset_choice).collect();
    match lines.as_slice() {
        [] => Vec::new(),
        [one] => vec![one.clone()],
        several => {
            let list: Vec<String> = several.iter().map(|line| format!("- {line}")).collect();
            vec![list.join("\n")]
        }
    }
}

fn render_unset_choice(left: &UnsetChoice) -> String {
    match (&left.wish, &left.why) {
        (TriageWish::Type { name }, UnsetReason::Suggested) => {
            format!(
                "This looks like a ticket of the type {}. Its type is left to people.",
                format_code(name)
            )
        }
        (TriageWish::Type { name }, UnsetReason::Has { current }) => format!(
            "The type {} would fit; the issue keeps its type {}.",
            format_code(name),
            format_code(current)
        ),
        (wish, why) => format!("{} {}", describe_wish(wish), describe_unset_reason(why)),
    }
}

fn describe_wish(wish: &TriageWish) -> String {
    match wish {
        TriageWish::Type { name } => format!("The type {} fits and is not set:", format_code(name)),
        TriageWish::Priority { name } => format!("The priority {} fits and is not set:", format_code(name)),
        TriageWish::Project { owner, number } => format!(
            "The issue is not in project {} with its fields:",
            format_code(&format!("{owner}/{number}"))
        ),
        TriageWish::Field { name, value } => {
            format!(
                "{} of the project is not set to {}:",
                format_code(name),
                format_code(value)
            )
        }
        TriageWish::Link { to } => format!("The link with {} is not made:", format_code(to)),
    }
}

fn describe_unset_reason(why: &UnsetReason) -> String {
    match why {
        UnsetReason::Suggested => "it is left to people.".to_owned(),
        UnsetReason::Has { current } => format!("it has {}.", format_code(current)),
        UnsetReason::NoToken => {
            "no token for projects is in the settings of the service (`project_token`).".to_owned()
        }
        UnsetReason::NoField => "the project has no such field.".to_owned(),
        UnsetReason::NoValue => "the field cannot have this value.".to_owned(),
        UnsetReason::NoLinkType { name } => {
            format!(
                "Jira has no type of link {} (`triage.link_type` in the rules).",
                format_code(name)
            )
        }
        UnsetReason::Refused { detail } => sanitize_line(detail),
    }
}

/// Renders the notice. `of` is the other ticket's key as people write it: `ENG-5` or `acme/shop#5`. Both trackers
/// render keys as links.
pub(crate) fn render_duplicate(of: &str, is_linked: bool) -> String {
    let is_key = TicketKey::jira(of).is_ok() || format!("github:{of}").parse::<TicketKey>().is_ok();
    let name = if is_key { of.to_owned() } else { format_code(of) };
    let linked = if is_linked { " The two are linked." } else { "" };
    format!(
        "This seems to ask for the same as {name}, which is open.{linked} Please close one of them if that is so; Journeyman closes \
         neither."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_single_choice(wish: TriageWish, why: UnsetReason) -> String {
        render_unset_choices(&[UnsetChoice { wish, why }]).join("\n")
    }

    #[test]
    fn left_choice_is_reported_with_reason() {
        let bug = || TriageWish::Type {
            name: "Bug".to_owned(),
        };
        let field = || TriageWish::Field {
            name: "Size".to_owned(),
            value: "S".to_owned(),
        };
        let project = TriageWish::Project {
            owner: "acme".to_owned(),
            number: 3,
        };
        let current = "Task".to_owned();
        assert_eq!(
            render_single_choice(bug(), UnsetReason::Suggested),
            "This looks like a ticket of the type `Bug`. Its type is left to people."
        );
        assert_eq!(
            render_single_choice(bug(), UnsetReason::Has { current }),
            "The type `Bug` would fit; the issue keeps its type `Task`."
        );
        assert_eq!(
            render_single_choice(project, UnsetReason::NoToken),
            "The issue is not in project `acme/3` with its fields: no token for projects is in the settings of the service \
             (`project_token`)."
        );
        assert_eq!(
            render_single_choice(field(), UnsetReason::NoField),
            "`Size` of the project is not set to `S`: the project has no such field."
        );
        let name = "Clones".to_owned();
        let to = "ENG-5".to_owned();
        assert_eq!(
            render_single_choice(TriageWish::Link { to }, UnsetReason::NoLinkType { name }),
            "The link with `ENG-5` is not made: Jira has no type of link `Clones` (`triage.link_type` in the rules)."
        );
    }

    #[test]
    fn refusal_details_are_harmless_and_listed() {
        let detail = "ask @ann\nnow".to_owned();
        let high = TriageWish::Priority {
            name: "High".to_owned(),
        };
        let refused = UnsetChoice {
            wish: high,
            why: UnsetReason::Refused { detail },
        };
        let text = render_unset_choices(&[refused.clone(), refused]).join("\n");
        assert!(!text.contains(" @ann"), "{text}");
        assert_eq!(text.matches("- The priority `High` fits").count(), 2, "{text}");
        assert!(render_unset_choices(&[]).is_empty());
    }

    #[test]
    fn duplicate_notice_links_only_valid_keys() {
        assert!(render_duplicate("ENG-5", false).contains("same as ENG-5,"));
        assert!(render_duplicate("acme/shop#5", false).contains("same as acme/shop#5,"));
        assert!(render_duplicate("@everyone", false).contains("same as `@everyone`,"));
        assert!(render_duplicate("ENG-5", true).contains("which is open. The two are linked. Please"));
    }
}
