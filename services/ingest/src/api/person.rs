//! People for whom a token acts. A console names its logged-in user, and the journal records that user's decisions.

use api::{PERSON_HEADER, ROLE_HEADER, SUBJECT_HEADER, types::Role};
use axum::http::HeaderMap;
use domain::text::escape_hidden;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, de::value};

use super::{ApiProblem, scope::TokenCaller};

// Longest name of a person, in characters.
const NAME_CHARS: usize = 200;
// Longest issuer with a subject, in characters: `OpenID` Connect allows 255 for the subject alone.
const SUBJECT_CHARS: usize = 600;

/// Acting caller: the owner of a token, or the person for whom it acts. A token acts for people or for itself, never for both,
/// so every decision of a console has its person.
pub(super) fn resolve_acting_caller(
    token: TokenCaller,
    speaks_for_people: bool,
    headers: &HeaderMap,
) -> Result<TokenCaller, ApiProblem> {
    let person = headers.get(PERSON_HEADER);
    let named = match (person, speaks_for_people) {
        (None, false) => return Ok(token),
        (Some(person), true) => person.to_str().unwrap_or_default(),
        (Some(_), false) | (None, true) => return Err(ApiProblem::Forbidden),
    };
    let name = read_name(PERSON_HEADER, named, NAME_CHARS)?;
    let subject = match headers.get(SUBJECT_HEADER) {
        Some(subject) => {
            let subject = read_name(
                SUBJECT_HEADER,
                subject.to_str().unwrap_or_default(),
                SUBJECT_CHARS,
            )?;
            format!(" ({subject})")
        }
        None => String::new(),
    };
    let role = parse_role(headers)?;
    Ok(TokenCaller {
        // The suffix keeps a person apart from a token with the same name, and from a person with the same name at the
        // provider.
        name: format!("{name}{subject} via {}", token.name),
        // A person never gets more rights than the token that acts for them.
        role: role.min(token.role),
        scope: token.scope,
    })
}

/// Decodes a name on one line without hidden characters.
fn read_name(header: &str, text: &str, most: usize) -> Result<String, ApiProblem> {
    let name = percent_decode_str(text).decode_utf8().unwrap_or_default();
    let is_name = !name.trim().is_empty() && name.chars().count() <= most && escape_hidden(&name) == name;
    if !is_name || name.contains('\n') {
        return Err(ApiProblem::BadRequest(format!(
            "{header} must be a name of at most {most} characters, percent-encoded"
        )));
    }
    Ok(name.trim().to_owned())
}

fn parse_role(headers: &HeaderMap) -> Result<Role, ApiProblem> {
    let text = headers.get(ROLE_HEADER).and_then(|value| value.to_str().ok());
    let text = value::StrDeserializer::<value::Error>::new(text.unwrap_or_default());
    Role::deserialize(text)
        .map_err(|_| ApiProblem::BadRequest(format!("{ROLE_HEADER} must be viewer, operator or admin")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_token_caller(role: Role) -> TokenCaller {
        TokenCaller {
            name: "console".to_owned(),
            role,
            scope: super::super::scope::TokenScope::default(),
        }
    }

    fn build_person_headers(person: Option<&str>, role: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [(PERSON_HEADER, person), (ROLE_HEADER, role)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().expect("value"));
            }
        }
        headers
    }

    #[test]
    fn person_role_is_capped_by_token() {
        let named = build_person_headers(Some("ada%40acme.example"), Some("operator"));
        for (own, role) in [
            (Role::Admin, Role::Operator),
            (Role::Operator, Role::Operator),
            (Role::Viewer, Role::Viewer),
        ] {
            let acting = resolve_acting_caller(build_token_caller(own), true, &named).expect("somebody");
            assert_eq!(
                (acting.name.as_str(), acting.role),
                ("ada@acme.example via console", role)
            );
        }
    }

    #[test]
    fn only_person_tokens_may_name_people() {
        let named = build_person_headers(Some("ada"), Some("admin"));
        assert_eq!(
            resolve_acting_caller(build_token_caller(Role::Admin), false, &named),
            Err(ApiProblem::Forbidden)
        );
        let nobody = build_person_headers(None, None);
        assert_eq!(
            resolve_acting_caller(build_token_caller(Role::Admin), true, &nobody),
            Err(ApiProblem::Forbidden)
        );
        assert_eq!(
            resolve_acting_caller(build_token_caller(Role::Admin), false, &nobody),
            Ok(build_token_caller(Role::Admin))
        );
    }

    #[test]
    fn invalid_person_name_or_role_is_refused() {
        let long = "a".repeat(NAME_CHARS + 1);
        for (person, role) in [
            ("", Some("viewer")),
            ("%20", Some("viewer")),
            ("%FF", Some("viewer")),
            ("ada%0Aby%20root", Some("viewer")),
            ("ada%E2%80%AEx", Some("viewer")),
            (long.as_str(), Some("viewer")),
            ("ada", None),
            ("ada", Some("root")),
        ] {
            let refused = resolve_acting_caller(
                build_token_caller(Role::Admin),
                true,
                &build_person_headers(Some(person), role),
            );
            assert!(
                matches!(refused, Err(ApiProblem::BadRequest(_))),
                "{person} {role:?}: {refused:?}"
            );
        }
    }

    #[test]
    fn subject_of_provider_stands_beside_name() {
        let mut both = build_person_headers(Some("ada%40acme.example"), Some("operator"));
        both.insert(SUBJECT_HEADER, "u-1%20at%20id.example".parse().expect("value"));
        let caller = resolve_acting_caller(build_token_caller(Role::Admin), true, &both).expect("somebody");
        assert_eq!(caller.name, "ada@acme.example (u-1 at id.example) via console");
        for wrong in ["", "%0A", "a%0Ab", "%E2%80%AE"] {
            both.insert(SUBJECT_HEADER, wrong.parse().expect("value"));
            assert!(
                resolve_acting_caller(build_token_caller(Role::Admin), true, &both).is_err(),
                "{wrong}"
            );
        }
    }
}
