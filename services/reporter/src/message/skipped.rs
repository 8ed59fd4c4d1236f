//! Why nothing is done on a ticket.

use domain::{RepositoryChoice, SkipPlace, SkipReason};

use super::words::{code, harmless, is_web_link, person};

pub(crate) fn skipped(reason: &SkipReason, retry: &str) -> Vec<String> {
    match reason {
        SkipReason::Phrase { phrase, place } => vec![format!(
            "Journeyman leaves this ticket alone: {} is in {}. Remove it first. {retry}",
            code(phrase),
            match place {
                SkipPlace::Summary => "the summary".to_owned(),
                SkipPlace::Description => "the description".to_owned(),
                SkipPlace::Comment { author } => format!("a comment by {}", person(author)),
            }
        )],
        SkipReason::Label { label } => vec![format!(
            "Journeyman leaves this ticket alone: it has the label {}. Remove the label first. {retry}",
            code(label)
        )],
        SkipReason::PullRequestExists { url, author } => {
            let which = if is_web_link(url) {
                format!("[a pull request](<{url}>)")
            } else {
                "a pull request".to_owned()
            };
            vec![format!(
                "Journeyman leaves this ticket alone: {which} by {} is open for it. Close that one first. {retry}",
                person(author)
            )]
        }
        SkipReason::NotAllowed { actor, group } if group.is_empty() => vec![format!(
            "Journeyman did not start work that {} asked for: nobody is set up who may. An operator names the Jira \
             group whose members may ask for work in the setting {}. {retry}",
            person(actor),
            code("ingest.jira_trigger_group")
        )],
        SkipReason::NotAllowed { actor, group } => vec![format!(
            "Journeyman did not start work that {} asked for: only members of the Jira group **{}** may ask for it. \
             A member can start it. {retry}",
            person(actor),
            harmless(group)
        )],
        SkipReason::NoWritePermission { actor } => vec![format!(
            "Journeyman did not start work that {} asked for: only people with write permission in this repository may \
             ask for it. One of them can start it. {retry}",
            person(actor)
        )],
        SkipReason::StatusLeft { wanted, status } => vec![format!(
            "Journeyman did not start work: when it heard that the ticket was moved to **{}**, the ticket was in **{}** \
             already. {retry}",
            harmless(wanted),
            harmless(status)
        )],
        SkipReason::TextChanged { by } => vec![format!(
            "Journeyman did not start work: {}, who may not ask for work, changed the ticket's text after it was asked \
             for. Read the text again. {retry}",
            person(by)
        )],
        SkipReason::UnclearDecision { heads } => {
            let heads: Vec<String> = heads
                .iter()
                .map(|head| code(&format!("/approve {head}")))
                .collect();
            vec![format!(
                "Journeyman did not take the decision: it has to name what it is about. Comment {}; to refuse or to change it, \
                 name it in the same way.",
                heads.join(" or ")
            )]
        }
        SkipReason::UnclearRepository { choices } => unclear_repository(choices, retry),
        SkipReason::NoIssues => vec![
            "I open no issues here: the rules of this repository allow none. `issues.most_planned` in the rules says how \
             many a plan may have."
                .to_owned(),
        ],
        SkipReason::Unreadable => vec![format!(
            "Journeyman did not start work: Jira's answer about this ticket could not be read. Make the text simpler, for \
             example with fewer nested lists. {retry}"
        )],
    }
}

fn unclear_repository(choices: &[RepositoryChoice], retry: &str) -> Vec<String> {
    let mut lines = vec![format!(
        "Journeyman did not start work: several repositories share this project, and the ticket does not say which one is \
         meant. Give it what exactly one of them goes by. {retry}"
    )];
    lines.extend(choices.iter().map(choice));
    lines
}

fn choice(choice: &RepositoryChoice) -> String {
    let named = |what: &str, names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| code(name)).collect();
        (!names.is_empty()).then(|| format!("the {what} {}", names.join(" or ")))
    };
    let marks = [
        named("component", &choice.components),
        named("label", &choice.labels),
    ];
    let marks: Vec<String> = marks.into_iter().flatten().collect();
    format!("- {}: {}", code(&choice.repository), marks.join(", or "))
}
