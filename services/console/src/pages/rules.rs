//! Rules: the repositories with valid rules, and every problem.

use api::types::RulesView;
use maud::{Markup, html};

use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::make_visible,
};

pub(super) async fn show_rules(SignedInPerson(client): SignedInPerson) -> Result<ConsolePage, PageProblem> {
    let rules = client.rules().await?;
    Ok(ConsolePage::new(
        NavigationEntry::Rules,
        "Rules",
        render_rules(&rules),
    ))
}

pub(super) fn render_rules(rules: &RulesView) -> Markup {
    html! {
        h2 { "Problems" }
        @if rules.problems.is_empty() { p { "There is none." } } @else { (render_problems(rules)) }
        h2 { "Repositories" }
        @if rules.repositories.is_empty() { p { "No repository has working rules." } } @else { (render_repositories(rules)) }
    }
}

fn render_problems(rules: &RulesView) -> Markup {
    html! {
        ul {
            @for problem in &rules.problems {
                li {
                    code {
                        (make_visible(&problem.file))
                        @if problem.line > 0 { ":" (problem.line) }
                    }
                    @if !problem.key.is_empty() { " " code { (make_visible(&problem.key)) } }
                    ": " span.bad { (make_visible(&problem.problem)) }
                }
            }
        }
    }
}

fn render_repositories(rules: &RulesView) -> Markup {
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
                        th scope="row" { (make_visible(&one.repository)) }
                        td data-name="Jira project" { (make_visible(&one.project)) }
                        td data-name="Status" { (make_visible(&one.status)) }
                        td data-name="Problem" { @if let Some(problem) = &one.problem { span.bad { (make_visible(problem)) } } @else { "none" } }
                    }
                }
            }
        }
    }
}
