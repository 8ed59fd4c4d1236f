//! Rules: the repositories with valid rules, and every problem.

use api::types::RulesView;
use maud::{Markup, html};

use crate::{
    chips::{ChipTone, render_chip},
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_quantity, make_visible},
};

pub(super) async fn show_rules(SignedInPerson(client): SignedInPerson) -> Result<ConsolePage, PageProblem> {
    let rules = client.installation().rules().await?;
    Ok(ConsolePage::new(
        NavigationEntry::Rules,
        "Rules",
        render_rules(&rules),
    ))
}

pub(super) fn render_rules(rules: &RulesView) -> Markup {
    html! {
        @if !rules.problems.is_empty() {
            section.box.problem aria-labelledby="rule-problems" {
                h2 id="rule-problems" { (format_quantity(rules.problems.len(), "problem")) }
                (render_problems(rules))
            }
        }
        @if rules.repositories.is_empty() {
            div.empty {
                strong { "No repository has working rules." }
                "Write a rules file with " code { "journeyman repo add OWNER/NAME" } ": its repository appears here."
            }
        } @else { div.card { (render_repositories(rules)) } }
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
                        td data-name="Problem" { @if let Some(problem) = &one.problem { (render_chip(ChipTone::Bad, &make_visible(problem))) } @else { (render_chip(ChipTone::Good, "none")) } }
                    }
                }
            }
        }
    }
}
