//! Scope of a token, everything or the tickets of some repositories and Jira projects, and its bearer.

use std::{collections::BTreeSet, sync::Arc};

use api::types::Role;
use bootstrap::settings::TextList;
use domain::{InstanceName, RepositoryName, RepositoryRules, TicketKey};

use super::{ApiProblem, ticket_key::TicketScoped as _};

/// Visible part of the system for a caller. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenScope(Option<Arc<LimitedScope>>);

/// Repositories and projects of a limited token. A ticket's key alone decides about its scope, so the check needs no read.
#[derive(Debug, Default, PartialEq, Eq)]
struct LimitedScope {
    repositories: BTreeSet<RepositoryName>,
    projects: BTreeSet<ScopedProject>,
}

/// Jira project, with its site unless it is on the default one.
type ScopedProject = (Option<InstanceName>, String);

impl TokenScope {
    /// Scope of a token: everything, unless one of the lists is given.
    pub(super) fn new(
        repositories: Option<&TextList>,
        projects: Option<&TextList>,
    ) -> Result<Self, (&'static str, String)> {
        if repositories.is_none() && projects.is_none() {
            return Ok(Self::default());
        }
        let only = LimitedScope {
            repositories: parse_list("repositories", repositories, |text| text.parse().ok())?,
            projects: parse_list("projects", projects, parse_project)?,
        };
        Ok(Self(Some(Arc::new(only))))
    }

    pub(crate) const fn is_all(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn has_ticket(&self, ticket: &TicketKey) -> bool {
        self.is(|only| match ticket {
            TicketKey::Jira {
                instance, project, ..
            } => only.projects.contains(&(instance.clone(), project.clone())),
            TicketKey::GitHub { repository, .. } | TicketKey::Discussion { repository, .. } => {
                only.repositories.contains(repository)
            }
            TicketKey::Folder { folder, .. } => {
                only.repositories.contains(&RepositoryName::in_folder(folder))
            }
        })
    }

    pub(super) fn has_repository(&self, repository: &RepositoryName) -> bool {
        self.is(|only| only.repositories.contains(repository))
    }

    pub(super) fn has_project(&self, instance: Option<&InstanceName>, project: &str) -> bool {
        self.is(|only| only.projects.contains(&(instance.cloned(), project.to_owned())))
    }

    /// True when the scope includes work for the repository of these rules: by the repository, or by the project that the
    /// rules name.
    pub(super) fn has_rules(&self, rules: &RepositoryRules) -> bool {
        let project = (rules.jira.instance.as_ref(), rules.jira.project_key.as_str());
        self.has_project(project.0, project.1)
            || rules.repository().is_ok_and(|name| self.has_repository(&name))
    }

    fn is(&self, inside: impl FnOnce(&LimitedScope) -> bool) -> bool {
        self.0.as_deref().is_none_or(inside)
    }
}

/// Bearer of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenCaller {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Tickets and repositories that the caller may see. Lists contain nothing outside of it.
    pub(crate) scope: TokenScope,
}

impl TokenCaller {
    /// Refuses a ticket outside the scope with the answer for an unknown one, so that the caller learns nothing.
    pub(super) fn reaches(&self, ticket: &TicketKey) -> Result<(), ApiProblem> {
        if self.scope.has_ticket(ticket) {
            Ok(())
        } else {
            Err(ticket.unknown())
        }
    }

    /// Refuses a repository outside the scope in the same way.
    pub(super) fn reaches_repository(&self, repository: &RepositoryName) -> Result<(), ApiProblem> {
        if self.scope.has_repository(repository) {
            Ok(())
        } else {
            Err(ApiProblem::NotFound(format!("nothing is known of {repository}")))
        }
    }
}

/// Parses a list of the scope. An empty list is an error: it may mean nothing or everything.
fn parse_list<T: Ord>(
    key: &'static str,
    texts: Option<&TextList>,
    one: fn(&str) -> Option<T>,
) -> Result<BTreeSet<T>, (&'static str, String)> {
    let Some(texts) = texts else {
        return Ok(BTreeSet::new());
    };
    if texts.is_empty() {
        return Err((key, "must name at least one, or be left out".to_owned()));
    }
    let read = texts
        .iter()
        .map(|text| one(text).ok_or_else(|| (key, format!("{text:?} is none"))));
    read.collect()
}

/// Parses `ENG`, or `work:ENG` for a project on the site `work`.
fn parse_project(text: &str) -> Option<ScopedProject> {
    let (instance, key) = match text.split_once(':') {
        Some((instance, key)) => (Some(instance.parse().ok()?), key),
        None => (None, text),
    };
    // The parser of issue keys validates the project key.
    match TicketKey::jira_on(instance, &format!("{key}-1")).ok()? {
        TicketKey::Jira {
            instance, project, ..
        } => Some((instance, project)),
        TicketKey::GitHub { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_text_list(texts: &[&str]) -> TextList {
        TextList(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    fn build_token_scope(repositories: &[&str], projects: &[&str]) -> TokenScope {
        let given = |texts: &[&str]| (!texts.is_empty()).then(|| build_text_list(texts));
        TokenScope::new(given(repositories).as_ref(), given(projects).as_ref()).expect("a scope")
    }

    fn is_ticket_included(scope: &TokenScope, ticket: &str) -> bool {
        scope.has_ticket(&ticket.parse().expect("ticket"))
    }

    #[test]
    fn scope_includes_only_its_tickets() {
        let shop = build_token_scope(
            &["acme/shop", "ghe:acme/web", "folder:local/toy"],
            &["ENG", "work:OPS"],
        );
        for inside in [
            "jira:ENG-1",
            "jira+work:OPS-1",
            "github:acme/shop#7",
            "github:acme/shop/discussions/7",
            "github+ghe:acme/web#7",
            "folder:toy#1",
        ] {
            assert!(is_ticket_included(&shop, inside), "{inside}");
            assert!(is_ticket_included(&TokenScope::default(), inside), "{inside}");
            assert!(
                !is_ticket_included(&build_token_scope(&["acme/other"], &["OTHER"]), inside),
                "{inside}"
            );
        }
        for outside in [
            "jira:OPS-1",
            "jira:ENGINE-1",
            "github:acme/web#7",
            "folder:shop#1",
        ] {
            assert!(!is_ticket_included(&shop, outside), "{outside}");
        }
        assert!(!is_ticket_included(
            &build_token_scope(&["acme/shop"], &[]),
            "jira:ENG-1"
        ));
        assert!(!is_ticket_included(
            &build_token_scope(&[], &["ENG"]),
            "github:acme/shop#7"
        ));
    }

    #[test]
    fn what_a_scope_cannot_mean_is_refused() {
        let refused = |repositories: Option<&[&str]>, projects: Option<&[&str]>| {
            let (repositories, projects) = (repositories.map(build_text_list), projects.map(build_text_list));
            let refused = TokenScope::new(repositories.as_ref(), projects.as_ref()).expect_err("refused");
            format!("{}: {}", refused.0, refused.1)
        };
        let empty = "must name at least one, or be left out";
        assert_eq!(refused(Some(&[]), None), format!("repositories: {empty}"));
        assert_eq!(refused(None, Some(&[])), format!("projects: {empty}"));
        assert_eq!(refused(Some(&["shop"]), None), "repositories: \"shop\" is none");
        for wrong in ["eng", "ENG-1", ":ENG", ""] {
            let refusal = refused(None, Some(&[wrong]));
            assert!(refusal.starts_with("projects: "), "{refusal}");
        }
    }
}
