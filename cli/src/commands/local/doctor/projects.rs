//! Jira projects of the rules: the place that names them, and the existing names next to a wrong one.

use std::path::PathBuf;

use bootstrap::{rules::RulesBook, suggestion::find_nearest};
use domain::RepositoryName;
use jira::FoundProjects;

// Projects that a finding lists.
const MAX_LISTED: usize = 20;

/// Jira project of the rules, with the status and role that request work.
#[derive(Clone)]
pub(super) struct ProjectRequirements {
    pub(super) key: String,
    pub(super) status: String,
    /// Role whose members may request work; empty: none.
    pub(super) role: String,
    /// Folder of the rules.
    pub(super) rules: PathBuf,
    /// Repository whose rules name the project.
    pub(super) repository: Option<RepositoryName>,
}

impl ProjectRequirements {
    /// File and line that set a key, else the key alone: a default has no line.
    fn find_place(&self, key: &str) -> String {
        let repository = self.repository.as_ref();
        let found = repository
            .and_then(|repository| RulesBook::find_key_source(&self.rules, repository, key).ok()?);
        match found {
            Some(source) => format!("{}:{}", self.rules.join(&source.file).display(), source.line),
            None => format!("{key} in the rules"),
        }
    }

    /// Problem of a project that Jira does not show, with the existing ones where they can be listed.
    pub(super) fn describe_missing(&self, listed: Result<FoundProjects, jira::Error>) -> String {
        let (place, key) = (self.find_place("jira.project_key"), &self.key);
        let problem = format!("{place}: Jira has no project {key}, or this account cannot see it");
        match listed {
            Ok(listed) if !listed.keys.is_empty() => {
                let shown = &listed.keys[..listed.keys.len().min(MAX_LISTED)];
                let more = if listed.has_more || shown.len() < listed.keys.len() {
                    " and more"
                } else {
                    ""
                };
                let meant = suggest_name(key, &listed.keys);
                format!("{problem}; it sees {}{more}{meant}", shown.join(", "))
            }
            Ok(_) => format!("{problem}; it sees no project at all"),
            Err(_) => problem,
        }
    }

    /// Problem of a status that no issue of the project can have.
    pub(super) fn describe_missing_status(&self, statuses: &[String]) -> String {
        format!(
            "{}: {} has no status {:?}; it has {}{}",
            self.find_place("agent.status"),
            self.key,
            self.status,
            statuses.join(", "),
            suggest_name(&self.status, statuses)
        )
    }
}

/// Problem of a role that the project lacks, with its existing ones where they can be listed.
pub(super) fn describe_missing_role(
    project: &str,
    role: &str,
    listed: Result<Vec<String>, jira::Error>,
) -> String {
    let problem = format!("{project} has no role {role:?} (ingest.jira_trigger_role)");
    match listed {
        Ok(roles) => format!(
            "{problem}; it has {}{}",
            roles.join(", "),
            suggest_name(role, &roles)
        ),
        Err(_) => problem,
    }
}

/// Continuation of a sentence with the name that was probably meant.
fn suggest_name(wanted: &str, known: &[String]) -> String {
    match find_nearest(wanted, known.iter().map(String::as_str)) {
        Some(nearest) => format!("; did you mean {nearest}?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_requirements(folder: &std::path::Path) -> ProjectRequirements {
        let rules = "repo: {owner: acme, name: shop}\njira:\n  project_key: ENGG\n";
        std::fs::write(folder.join("shop.yaml"), rules).unwrap();
        ProjectRequirements {
            key: "ENGG".to_owned(),
            status: "Redy for Agent".to_owned(),
            role: String::new(),
            rules: folder.to_owned(),
            repository: Some("acme/shop".parse().unwrap()),
        }
    }

    fn list_projects(keys: &[&str]) -> FoundProjects {
        FoundProjects {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            has_more: false,
        }
    }

    #[test]
    fn missing_project_is_named_with_existing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let project = build_requirements(folder.path());
        let place = format!("{}/shop.yaml:3", folder.path().display());
        let problem = format!("{place}: Jira has no project ENGG, or this account cannot see it");
        let cases = [
            (
                list_projects(&["OPS", "ENG"]),
                "; it sees OPS, ENG; did you mean ENG?",
            ),
            (list_projects(&["OPS"]), "; it sees OPS"),
            (list_projects(&[]), "; it sees no project at all"),
        ];
        for (listed, end) in cases {
            assert_eq!(project.describe_missing(Ok(listed)), format!("{problem}{end}"));
        }
        let refused = jira::Error::Forbidden {
            detail: "no".to_owned(),
        };
        assert_eq!(project.describe_missing(Err(refused)), problem);
        let many: Vec<String> = (0..30).map(|number| format!("P{number}")).collect();
        let many = FoundProjects {
            keys: many,
            has_more: false,
        };
        let problem = project.describe_missing(Ok(many));
        assert!(problem.ends_with("P18, P19 and more"), "{problem}");
    }

    #[test]
    fn missing_role_is_named_with_existing_ones() {
        let roles = ["Administrators", "Developers"].map(str::to_owned);
        let problem = "ENG has no role \"Develpers\" (ingest.jira_trigger_role)";
        assert_eq!(
            describe_missing_role("ENG", "Develpers", Ok(roles.to_vec())),
            format!("{problem}; it has Administrators, Developers; did you mean Developers?")
        );
        let refused = jira::Error::Forbidden {
            detail: "no".to_owned(),
        };
        assert_eq!(describe_missing_role("ENG", "Develpers", Err(refused)), problem);
    }

    #[test]
    fn missing_status_is_named_with_existing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let project = build_requirements(folder.path());
        let statuses = ["Done", "Ready for Agent"].map(str::to_owned);
        assert_eq!(
            project.describe_missing_status(&statuses),
            "agent.status in the rules: ENGG has no status \"Redy for Agent\"; it has Done, Ready for Agent; did you \
             mean Ready for Agent?"
        );
    }
}
