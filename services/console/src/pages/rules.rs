//! Rules: the repositories with valid rules, and every problem.

use api::types::RulesView;
use maud::{Markup, html};

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::shown,
};

pub(super) async fn show(Person(client): Person) -> Result<Page, Problem> {
    let rules = client.rules().await?;
    Ok(Page::new(Place::Rules, "Rules", body(&rules)))
}

pub(super) fn body(rules: &RulesView) -> Markup {
    html! {
        h2 { "Problems" }
        @if rules.problems.is_empty() { p { "There is none." } } @else { (problems(rules)) }
        h2 { "Repositories" }
        @if rules.repositories.is_empty() { p { "No repository has working rules." } } @else { (repositories(rules)) }
    }
}

fn problems(rules: &RulesView) -> Markup {
    html! {
        ul {
            @for problem in &rules.problems {
                li {
                    code {
                        (shown(&problem.file))
                        @if problem.line > 0 { ":" (problem.line) }
                    }
                    @if !problem.key.is_empty() { " " code { (shown(&problem.key)) } }
                    ": " span.bad { (shown(&problem.problem)) }
                }
            }
        }
    }
}

fn repositories(rules: &RulesView) -> Markup {
    html! {
        table.stack {
            caption { "Repositories with working rules" }
            thead {
                tr {
                    th scope="col" { "Repository" }
                    th scope="col" { "Jira project" }
                    th scope="col" { "Status that asks for work" }
                    th scope="col" { "Problem" }
                }
            }
            tbody {
                @for one in &rules.repositories {
                    tr {
                        th scope="row" { (shown(&one.repository)) }
                        td data-name="Jira project" { (shown(&one.project)) }
                        td data-name="Status" { (shown(&one.status)) }
                        td data-name="Problem" { @if let Some(problem) = &one.problem { span.bad { (shown(problem)) } } @else { "none" } }
                    }
                }
            }
        }
    }
}
