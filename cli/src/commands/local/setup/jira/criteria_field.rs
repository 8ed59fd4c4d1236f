//! Field with acceptance criteria that the rules name, when the site calls it by an unusual name.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::Context;
use bootstrap::rules::{ConfiguredInstances, RulesBook};
use domain::{RepositoryName, RepositoryRules, text::escape_hidden};
use jira::{JiraReader, Settings};

use super::{print_result, prompt};
use crate::{commands::local::rules_files::read_rules_files, user_files::replace_file};

// Fields that are few enough for a choice.
const MOST_FIELDS: usize = 5;

/// Rules of the default site that name no field with acceptance criteria.
enum OpenRules {
    /// No rules have a project of the site yet.
    NoProject,
    /// Repositories whose rules name no field; empty when all of them name one.
    Of(Vec<RepositoryName>),
}

/// Proposes a field of the site, and writes it to the rules when the user accepts it. Without a terminal the proposal is
/// printed.
pub(super) async fn propose_criteria_field(account: &Settings, folder: &Path) -> anyhow::Result<()> {
    // The field is only a proposal, so a failed read is ignored.
    let found = JiraReader::new(account)?.criteria_fields().await;
    let found = found.unwrap_or_default();
    if let Some(usual) = found.usual.first() {
        print_result(&format!("criteria {usual} is read with every ticket"));
        return Ok(());
    }
    let fields = found.similar;
    if fields.is_empty() || fields.len() > MOST_FIELDS {
        return Ok(());
    }
    let repositories = match find_open_rules(folder) {
        OpenRules::NoProject => Vec::new(),
        OpenRules::Of(repositories) if repositories.is_empty() => return Ok(()),
        OpenRules::Of(repositories) => repositories,
    };
    if repositories.is_empty() || !prompt::can_ask() {
        let names: Vec<String> = fields.iter().map(|field| format!("{field:?}")).collect();
        print_result(&format!(
            "criteria {} may have acceptance criteria",
            names.join(", ")
        ));
        print_result(
            "         to read them, name the field in the rules: jira.criteria_field (docs/rules.md)",
        );
        return Ok(());
    }
    let Some(field) = ask_field(&fields).await? else {
        return Ok(());
    };
    let mut written = BTreeSet::new();
    for repository in &repositories {
        match write_criteria_field(folder, repository, &field)? {
            Some(file) => {
                written.insert(file);
            }
            None => print_result(&format!(
                "criteria name {field:?} as jira.criteria_field in the rules of {repository} yourself"
            )),
        }
    }
    for file in written {
        let path = folder.join(file);
        print_result(&format!("criteria {field} is named in {}", path.display()));
    }
    Ok(())
}

/// Field that the user chooses; `None` for none.
async fn ask_field(fields: &[String]) -> anyhow::Result<Option<String>> {
    if let [field] = fields {
        let is_accepted = prompt::ask_confirmation(&render_question(field), true).await?;
        return Ok(is_accepted.then(|| field.clone()));
    }
    for (place, field) in fields.iter().enumerate() {
        let start = if place == 0 { "fields" } else { "" };
        print_result(&format!("{start:<8} {} {field}", place + 1));
    }
    loop {
        let question = "Field with acceptance criteria, name or number (empty: none)";
        let answer = prompt::ask_optional_text(None, question).await?;
        let field = prompt::resolve_numbered_option(&answer, fields);
        if field.is_empty() {
            return Ok(None);
        }
        if fields.iter().any(|known| known == field) {
            return Ok(Some(field.to_owned()));
        }
        print_result(&format!("         {field:?} is not one of these fields"));
    }
}

/// Renders the question about the only field. Its name comes from the site, and the terminal would obey control characters.
fn render_question(field: &str) -> String {
    format!(
        "Read acceptance criteria from the field {}?",
        escape_hidden(field)
    )
}

/// Finds the rules of the default site. `doctor` reports invalid rules.
fn find_open_rules(folder: &Path) -> OpenRules {
    let Ok(book) = RulesBook::read(folder, &ConfiguredInstances::default()) else {
        return OpenRules::NoProject;
    };
    let is_of_site =
        |rules: &&RepositoryRules| rules.jira.instance.is_none() && !rules.jira.project_key.is_empty();
    if !book.repositories().any(|rules| is_of_site(&rules)) {
        return OpenRules::NoProject;
    }
    let open = book
        .repositories()
        .filter(|rules| is_of_site(rules) && rules.jira.criteria_field.is_empty());
    OpenRules::Of(open.filter_map(|rules| rules.repository().ok()).collect())
}

/// Names the field in the file with the project of a repository, and returns the name of the file. `None` when the file has a
/// form in which the change would not set exactly this key.
fn write_criteria_field(
    folder: &Path,
    repository: &RepositoryName,
    field: &str,
) -> anyhow::Result<Option<String>> {
    let place = || format!("cannot change the rules in {}", folder.display());
    let source = RulesBook::find_key_source(folder, repository, "jira.project_key").with_context(place)?;
    let Some(source) = source else { return Ok(None) };
    let mut files = read_rules_files(folder)?;
    let before = RulesBook::parse(&files, &ConfiguredInstances::default());
    let Some(rules) = before.for_repository(repository) else {
        return Ok(None);
    };
    // Several repositories may have the key of their project from one file of defaults.
    if rules.jira.criteria_field == field {
        return Ok(Some(source.file));
    }
    let mut wanted = rules.clone();
    field.clone_into(&mut wanted.jira.criteria_field);
    let changed = files.iter_mut().find(|(name, _)| *name == source.file);
    let Some((_, text)) = changed else { return Ok(None) };
    let Some(inserted) = insert_criteria_field(text, source.line, field) else {
        return Ok(None);
    };
    text.clone_from(&inserted);
    let after = RulesBook::parse(&files, &ConfiguredInstances::default());
    if after.for_repository(repository) != Some(&wanted) || after.problems().len() > before.problems().len() {
        return Ok(None);
    }
    // A symbolic link stays a link, because its target is replaced.
    let path = fs::canonicalize(folder.join(&source.file)).with_context(place)?;
    let mode = fs::metadata(&path).with_context(place)?.permissions().mode();
    replace_file(&path, inserted.as_bytes(), mode & 0o777).with_context(place)?;
    Ok(Some(source.file))
}

/// Text with the field before the key of the project, which is at this line.
fn insert_criteria_field(text: &str, line: u64, field: &str) -> Option<String> {
    // Every JSON string is also a valid YAML string.
    let field = serde_json::to_string(field).ok()?;
    let place = usize::try_from(line).ok()?.checked_sub(1)?;
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let target = lines.get_mut(place)?;
    let (before, rest) = target.split_once("project_key:")?;
    // A mapping in braces may be in one line.
    let end = if before.trim().is_empty() {
        format!("\n{before}")
    } else {
        ", ".to_owned()
    };
    *target = format!("{before}criteria_field: {field}{end}project_key:{rest}");
    Some(lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: &str = "Story \"acceptance\" criteria";

    /// Writes the field into a folder with these files, and returns the changed text of the first one.
    fn write(files: &[(&str, &str)]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let repository: RepositoryName = "acme/shop".parse().unwrap();
        write_criteria_field(folder.path(), &repository, FIELD)
            .unwrap()
            .map(|file| fs::read_to_string(folder.path().join(file)).unwrap())
    }

    #[test]
    fn field_is_inserted_before_project_key() {
        let quoted = "criteria_field: \"Story \\\"acceptance\\\" criteria\"";
        for (text, expected) in [
            (
                "repo:\n  owner: acme\n  name: shop\njira: # ours\n  project_key: ENG # here\n",
                format!(
                    "repo:\n  owner: acme\n  name: shop\njira: # ours\n  {quoted}\n  project_key: ENG # here\n"
                ),
            ),
            (
                "repo: {owner: acme, name: shop}\njira: {project_key: ENG}",
                format!("repo: {{owner: acme, name: shop}}\njira: {{{quoted}, project_key: ENG}}"),
            ),
            (
                "repo: {owner: acme, name: shop}\njira:\n    assignee: ada\n    project_key:\n      ENG\n",
                format!(
                    "repo: {{owner: acme, name: shop}}\njira:\n    assignee: ada\n    {quoted}\n    project_key:\n      ENG\n"
                ),
            ),
        ] {
            assert_eq!(write(&[("shop.yaml", text)]), Some(expected), "{text}");
        }
    }

    #[test]
    fn unusual_form_of_rules_is_kept() {
        for text in [
            "repo: {owner: acme, name: shop}\njira: {\"project_key\": ENG}\n",
            "repo: {owner: acme, name: shop}\njira: {base_url: \"https://x/project_key:\", project_key: ENG}\n",
            "repo: {owner: acme, name: shop}\njira: {base_url: \"https://x\"}\n",
        ] {
            assert_eq!(write(&[("shop.yaml", text)]), None, "{text}");
        }
    }

    #[test]
    fn defaults_of_several_repositories_are_changed_once() {
        let folder = tempfile::tempdir().unwrap();
        let write_file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write_file("defaults.yaml", "jira:\n  project_key: ENG\n");
        for name in ["docs", "shop"] {
            let text = format!("repo: {{owner: acme, name: {name}}}\njira: {{components: [{name}]}}\n");
            write_file(&format!("{name}.yaml"), &text);
        }
        for name in ["acme/docs", "acme/shop"] {
            let file = write_criteria_field(folder.path(), &name.parse().unwrap(), FIELD).unwrap();
            assert_eq!(file.as_deref(), Some("defaults.yaml"));
        }
        let text = fs::read_to_string(folder.path().join("defaults.yaml")).unwrap();
        assert_eq!(text.matches("criteria_field").count(), 1, "{text}");
        assert!(matches!(find_open_rules(folder.path()), OpenRules::Of(open) if open.is_empty()));
    }

    #[test]
    fn question_has_no_control_characters() {
        assert_eq!(
            render_question("Acceptance\u{1b}[2J criteria"),
            "Read acceptance criteria from the field Acceptance<U+001B>[2J criteria?"
        );
    }

    #[test]
    fn linked_rules_file_stays_link() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, target) = (
            folder.path().join("shop.yaml"),
            elsewhere.path().join("shop.yaml"),
        );
        fs::write(
            &target,
            "repo: {owner: acme, name: shop}\njira: {project_key: ENG}\n",
        )
        .unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let file = write_criteria_field(folder.path(), &"acme/shop".parse().unwrap(), FIELD).unwrap();
        assert_eq!(file.as_deref(), Some("shop.yaml"));
        assert!(link.is_symlink());
        assert!(fs::read_to_string(&target).unwrap().contains("criteria_field"));
    }

    #[test]
    fn folder_without_project_has_no_open_rules() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "repo: {owner: acme, name: shop}\nissues: {labels: [agent]}\n"] {
            fs::write(folder.path().join("shop.yaml"), text).unwrap();
            assert!(
                matches!(find_open_rules(folder.path()), OpenRules::NoProject),
                "{text}"
            );
        }
        assert!(matches!(
            find_open_rules(&folder.path().join("missing")),
            OpenRules::NoProject
        ));
    }
}
