//! Move a Jira issue.

use domain::TicketKey;
use jira::Transition;

use super::Outside;
use crate::{
    plan::{Made, Moved},
    trouble::Trouble,
};

/// Done when the issue has one of the statuses.
pub(super) async fn look(
    outside: &Outside,
    issue: &TicketKey,
    goals: &[String],
) -> Result<Option<Made>, Trouble> {
    let status = outside.jira()?.status(issue).await?.name;
    let is_done = goals.iter().any(|goal| goal.eq_ignore_ascii_case(&status));
    Ok(is_done.then(|| made(Moved::To(status))))
}

/// Takes the best transition that the workflow offers; that there is none, or that Jira refuses it, is an answer too.
pub(super) async fn create(outside: &Outside, issue: &TicketKey, goals: &[String]) -> Result<Made, Trouble> {
    let jira = outside.jira()?;
    let wanted = goals.first().cloned().unwrap_or_default();
    let offered = jira.transitions(issue).await?;
    let Some(transition) = choose(&offered, goals) else {
        let status = jira.status(issue).await?.name;
        let reachable = offered.into_iter().map(|transition| transition.to.name).collect();
        return Ok(made(Moved::Unavailable {
            wanted,
            status,
            reachable,
        }));
    };
    let moved = jira.transition(issue, &transition.id);
    match failpoint::around("reporter.transition", moved).await {
        Ok(()) => {
            tracing::info!(ticket = %issue, status = %transition.to.name, "ticket moved");
            Ok(made(Moved::To(transition.to.name.clone())))
        }
        Err(
            error @ (jira::Error::Rejected { .. }
            | jira::Error::Forbidden { .. }
            | jira::Error::Conflict { .. }),
        ) => {
            // An earlier try that was thought lost may have moved it in between.
            let refused = made(Moved::Refused {
                wanted,
                detail: error.to_string(),
            });
            Ok(look(outside, issue, goals).await?.unwrap_or(refused))
        }
        Err(error) => Err(error.into()),
    }
}

fn made(moved: Moved) -> Made {
    Made {
        moved: Some(moved),
        ..Made::default()
    }
}

/// The transition to the best goal, by its target status or its own name.
fn choose<'a>(offered: &'a [Transition], goals: &[String]) -> Option<&'a Transition> {
    goals.iter().find_map(|goal| {
        let by_status = offered
            .iter()
            .find(|transition| transition.to.name.eq_ignore_ascii_case(goal));
        by_status.or_else(|| {
            offered
                .iter()
                .find(|transition| transition.name.eq_ignore_ascii_case(goal))
        })
    })
}

#[cfg(test)]
mod tests {
    use jira::{Status, StatusCategory};

    use super::*;

    fn offered(names: &[(&str, &str)]) -> Vec<Transition> {
        let transition = |(index, (name, to)): (usize, &(&str, &str))| Transition {
            id: index.to_string(),
            name: (*name).to_owned(),
            to: Status {
                name: (*to).to_owned(),
                category: StatusCategory::Done,
            },
        };
        names.iter().enumerate().map(transition).collect()
    }

    fn chosen(names: &[(&str, &str)], goals: &[&str]) -> Option<String> {
        let goals: Vec<String> = goals.iter().map(|goal| (*goal).to_owned()).collect();
        choose(&offered(names), &goals).map(|transition| transition.id.clone())
    }

    #[test]
    fn the_first_goal_wins_by_status_then_by_name() {
        let workflow = [
            ("Close issue", "Closed"),
            ("Finish", "DONE"),
            ("resolve", "Somewhere"),
        ];
        assert_eq!(chosen(&workflow, &["Done", "closed"]).as_deref(), Some("1"));
        assert_eq!(chosen(&workflow, &["Shipped", "closed"]).as_deref(), Some("0"));
        assert_eq!(chosen(&workflow, &["Resolve"]).as_deref(), Some("2"));
        assert_eq!(chosen(&workflow, &["In Review"]), None);
    }
}
