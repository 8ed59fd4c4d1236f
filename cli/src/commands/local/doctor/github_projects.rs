//! Check of the GitHub projects that triages fill: visibility to the token, fields and values of the rules.

use bootstrap::rules::RulesBook;
use domain::{RepositoryRules, cause::format_error_chain};
use github::GitHubWriter;

use super::{
    DoctorFinding, DoctorReport, DoctorSections, Remedy, check_within_limit, instances::InstanceSections,
};

pub(super) async fn check_github_projects(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    instances: &InstanceSections,
) {
    // Another check reports unreadable rules.
    let Ok(book) = RulesBook::read(&sections.rules.dir, &instances.connections()) else {
        return;
    };
    for rules in book.repositories() {
        if rules.triage.project.is_none() {
            continue;
        }
        let account = match &rules.repo.instance {
            None => sections.github_writer.as_ref(),
            Some(name) => instances.github_writer(name),
        };
        let finding = match account {
            Some(settings) if settings.project_token.is_some() => {
                check_within_limit(Remedy::GithubProjects, inspect_project(settings, rules)).await
            }
            Some(_) | None => {
                let left = "the fields of projects are left alone: project_token is not set";
                DoctorFinding::Skipped(left.to_owned())
            }
        };
        findings.add("project", finding);
    }
}

async fn inspect_project(settings: &github::Settings, rules: &RepositoryRules) -> Result<String, String> {
    let repository = rules.repository().map_err(|error| format_error_chain(&error))?;
    // The check has a client per account, in which the account is the default instance.
    let repository = repository.on(None);
    let Some(wanted) = &rules.triage.project else {
        return Err("the rules name none".to_owned());
    };
    let writer = GitHubWriter::new(settings).map_err(|error| format_error_chain(&error))?;
    let found = writer
        .projects()
        .project(&repository, &wanted.owner, wanted.number)
        .await
        .map_err(|error| format_error_chain(&error))?;
    let place = format!("{} ({}/{})", found.title, wanted.owner, wanted.number);
    let lacking = list_missing_fields(&found, rules);
    match lacking.is_empty() {
        true => Ok(format!("{place}, for {repository}")),
        false => Err(format!("{place} has no {}", lacking.join(", "))),
    }
}

/// Fields and values that the rules name and the project lacks.
fn list_missing_fields(project: &github::GitHubProject, rules: &RepositoryRules) -> Vec<String> {
    let triage = &rules.triage;
    let named = triage.project.iter();
    let of_fields = named.clone().flat_map(|wanted| &wanted.fields);
    let of_priority = named.filter(|wanted| !wanted.priority_field.is_empty());
    let of_priority = of_priority.map(|wanted| (&wanted.priority_field, &triage.priorities));
    let mut lacking = Vec::new();
    for (name, values) in of_fields.chain(of_priority) {
        match project.field(name) {
            None => lacking.push(format!("field {name:?}")),
            Some(field) => {
                let unknown = values.iter().filter(|value| field.value(value).is_none());
                lacking.extend(unknown.map(|value| format!("{value:?} in {name:?}")));
            }
        }
    }
    lacking
}
