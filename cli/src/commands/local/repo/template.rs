//! Rules of many repositories from one template.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use bootstrap::rules::{ConfiguredInstances, RulesBook};
use clap::ValueEnum;
use github::OwnerRepository;

/// Mark that assigns the tickets of a shared Jira project to repositories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TicketMark {
    /// Component with the name of the repository.
    #[default]
    Component,
    /// Label with the name of the repository.
    Label,
}

/// Text with placeholders for the values of a repository.
pub(super) struct RulesTemplate {
    text: String,
}

impl RulesTemplate {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Self { text })
    }

    /// Template without a file: repositories with a Jira project, which they share, or with issues.
    pub(super) fn usual(
        project: Option<&str>,
        label: Option<&str>,
        mark: TicketMark,
    ) -> anyhow::Result<Self> {
        // Every JSON string is also a valid YAML string.
        let quoted = |text: &str| serde_json::to_string(text);
        let mut text = "# Every key and its default: docs/rules.md\nrepo:\n  owner: \"{{owner}}\"\n  name: \"{{name}}\"\n  \
                        default_branch: \"{{default_branch}}\"\n"
            .to_owned();
        if let Some(project) = project {
            let key = match mark {
                TicketMark::Component => "components",
                TicketMark::Label => "labels",
            };
            text += &format!(
                "jira:\n  project_key: {}\n  {key}: [\"{{{{name}}}}\"]\n",
                quoted(project)?
            );
        }
        if let Some(label) = label {
            text += &format!("issues:\n  labels: [{}]\n", quoted(label)?);
        }
        Ok(Self { text })
    }

    /// Rules of a repository.
    ///
    /// # Errors
    /// When the text is not valid as rules of this repository.
    pub(super) fn render(
        &self,
        repository: &OwnerRepository,
        connections: &ConfiguredInstances,
    ) -> anyhow::Result<String> {
        let name = &repository.name;
        // A branch name may contain a quotation mark, so it is escaped for double quotes.
        let branch = serde_json::to_string(&repository.default_branch)?;
        let branch = branch.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let branch = branch.unwrap_or_default();
        let text = self
            .text
            .replace("{{owner}}", name.owner())
            .replace("{{name}}", name.name())
            .replace("{{default_branch}}", branch);
        if let Some(rest) = text.split_once("{{").map(|(_, rest)| rest) {
            let unknown: String = rest.chars().take_while(|c| *c != '}').take(40).collect();
            bail!(
                "the template has the unknown placeholder {{{{{unknown}}}}}; there are {{{{owner}}}}, {{{{name}}}} and \
                 {{{{default_branch}}}}"
            );
        }
        // The template may be wrong for this repository, so the result is read before it is used.
        let file = (format!("{}.yaml", name.name()), text);
        let book = RulesBook::parse(std::slice::from_ref(&file), connections);
        if let Some(found) = book.problems().first() {
            bail!(
                "the template gives no valid rules for {name}: line {} {}: {}",
                found.line,
                found.key,
                found.problem
            );
        }
        let is_theirs = book.for_repository(name).is_some();
        ensure!(
            is_theirs,
            "the template gives no rules for {name}: its `repo` names another repository"
        );
        Ok(file.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_repository(default_branch: &str) -> OwnerRepository {
        OwnerRepository {
            name: "acme/shop".parse().unwrap(),
            default_branch: default_branch.to_owned(),
            is_archived: false,
            is_fork: false,
        }
    }

    fn render(text: &str) -> Result<String, String> {
        let template = RulesTemplate {
            text: text.to_owned(),
        };
        let rendered = template.render(&build_repository("trunk"), &ConfiguredInstances::default());
        rendered.map_err(|error| error.to_string())
    }

    #[test]
    fn usual_template_gives_rules_of_repository() {
        let template = RulesTemplate::usual(Some("ENG"), Some("a: \"b\""), TicketMark::Component).unwrap();
        let text = template
            .render(&build_repository("trunk"), &ConfiguredInstances::default())
            .unwrap();
        let expected = "repo:\n  owner: \"acme\"\n  name: \"shop\"\n  default_branch: \"trunk\"\njira:\n  project_key: \"ENG\"\n  \
                        components: [\"shop\"]\nissues:\n  labels: [\"a: \\\"b\\\"\"]\n";
        assert!(text.ends_with(expected), "{text}");
        let by_label = RulesTemplate::usual(Some("ENG"), None, TicketMark::Label).unwrap();
        assert!(
            by_label.text.contains("  labels: [\"{{name}}\"]\n"),
            "{}",
            by_label.text
        );
    }

    #[test]
    fn template_of_user_must_fit_repository() {
        let good = "repo: {owner: '{{owner}}', name: '{{name}}'}\nagent: {status: Go}\n";
        assert_eq!(
            render(good).unwrap(),
            "repo: {owner: 'acme', name: 'shop'}\nagent: {status: Go}\n"
        );
        for (text, part) in [
            (
                "repo: {owner: acme, name: '{{nmae}}'}\n",
                "unknown placeholder {{nmae}}",
            ),
            (
                "repo: {owner: acme, name: other}\n",
                "its `repo` names another repository",
            ),
            ("agent: {status: Go}\n", "no rules for acme/shop"),
            (
                "repo: {owner: '{{owner}}', name: '{{name}}'}\nagnt: {}\n",
                "no valid rules for acme/shop: line 2 agnt: unknown key",
            ),
        ] {
            let problem = render(text).unwrap_err();
            assert!(problem.contains(part), "{part}: {problem}");
        }
    }

    #[test]
    fn branch_name_cannot_add_rules() {
        let template = RulesTemplate::usual(None, Some("agent"), TicketMark::Component).unwrap();
        let hostile = build_repository("x\"\nagent:\n  status: \"Go\ntail");
        let rendered = template.render(&hostile, &ConfiguredInstances::default());
        assert!(rendered.is_err() || !rendered.unwrap().contains("\n  status:"));
    }
}
