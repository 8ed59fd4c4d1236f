//! Requests of a run to GitHub and Jira: what it wrote there, with the text and the outcome of each.

use domain::{
    ChangeDescription, ChangePlan, Fact, JournalEntry, OutboundAction, OutboundId, OutboundOutcome,
    OutboundReceipt, StopReason,
    report::{OpenIssues, PullRequestOpening, PullRequestReviewed, QuestionAsked, ReviewAddressed},
};
use maud::{Markup, html};

use crate::{
    chips::render_external_link,
    markdown::render_markdown,
    words::{make_visible, run_path},
};

/// Request with its outcome, if it has one.
struct OutboundWrite<'a> {
    position: u64,
    id: &'a OutboundId,
    request: &'a OutboundAction,
    outcome: Option<&'a OutboundOutcome>,
}

/// Renders the requests of the run in order.
pub(super) fn render_outside(run: &str, journal: &[JournalEntry]) -> Markup {
    let writes = list_writes(journal);
    html! {
        @if !writes.is_empty() {
            h2 { "Written outside" }
            p.soft {
                "Texts are as the run sent them. The reporter puts them into its own words where needed, and removes mentions "
                "and commands to other programs."
            }
            ul.outside { @for write in &writes { (render_write(run, write)) } }
        }
    }
}

fn list_writes(journal: &[JournalEntry]) -> Vec<OutboundWrite<'_>> {
    let mut writes: Vec<OutboundWrite<'_>> = Vec::new();
    for entry in journal {
        if let Fact::ReportRequested { id, request, .. } = &entry.fact {
            // Progress only changes a number in the status comment.
            if !matches!(request, OutboundAction::Progressed(_)) {
                writes.push(OutboundWrite {
                    position: entry.position,
                    id,
                    request,
                    outcome: None,
                });
            }
        } else if let Fact::ReportSettled { id, outcome } = &entry.fact
            && let Some(write) = writes.iter_mut().find(|write| write.id == id)
        {
            write.outcome = Some(outcome);
        }
    }
    writes
}

fn render_write(run: &str, write: &OutboundWrite<'_>) -> Markup {
    let text = find_text(write.request);
    html! {
        li {
            a href={ (run_path(run)) "/entries/" (write.position) } { "#" (write.position) }
            " " (make_visible(&write.request.summary())) ": " (render_outcome(write.outcome))
            @if let Some(text) = &text { details { summary { "Text" } (render_markdown(text)) } }
        }
    }
}

fn render_outcome(outcome: Option<&OutboundOutcome>) -> Markup {
    html! {
        @match outcome {
            None => span.warm { "not done yet" },
            Some(OutboundOutcome::Refused(refusal)) => { span.bad { "refused" } (render_markdown(&refusal.words())) }
            Some(OutboundOutcome::Failed { detail }) => span.bad { "failed: " (make_visible(detail)) },
            Some(OutboundOutcome::Done(receipt)) => (render_receipt(receipt)),
        }
    }
}

fn render_receipt(receipt: &OutboundReceipt) -> Markup {
    html! {
        @match receipt {
            OutboundReceipt::Pushed { branch, head, .. } => { span.good { "pushed" } " " code { (make_visible(branch)) } " at " code { (head.short()) } }
            OutboundReceipt::PullRequestOpened(opened) => { span.good { "open" } " " (render_external_link(&opened.url, &opened.url)) }
            OutboundReceipt::DecisionAsked { head, .. } => { span.good { "asked" } " about " code { (head.short()) } }
            OutboundReceipt::Told => span.good { "done" },
            OutboundReceipt::Started { patterns } => {
                span.good { "done" }
                @for pattern in patterns { "; " (make_visible(&pattern.words())) }
            }
            OutboundReceipt::Rehearsed { would } => {
                "nothing, because it is a rehearsal of "
                @for (index, one) in would.iter().enumerate() { @if index > 0 { ", " } (make_visible(&one.request)) }
            }
        }
    }
}

/// Returns the text of a request as Markdown; `None` for a request without words of the run.
fn find_text(request: &OutboundAction) -> Option<String> {
    match request {
        OutboundAction::OpenPullRequest(opening) => Some(describe_opening(opening)),
        OutboundAction::WorkDelivered(delivered) => Some(describe_change(&delivered.description)),
        OutboundAction::DecisionNeeded(proposal) => proposal.description.as_deref().map(describe_change),
        OutboundAction::ChecksRepaired(repaired) => Some(repaired.summary.clone()),
        OutboundAction::ConflictResolved(resolved) => Some(resolved.summary.clone()),
        OutboundAction::ReviewAddressed(addressed) => Some(describe_replies(addressed)),
        OutboundAction::QuestionAnswered(answered) => Some(answered.answer.answer.clone()),
        OutboundAction::PullRequestReviewed(reviewed) => Some(describe_review(reviewed)),
        OutboundAction::PlanProposed(proposed) => Some(describe_plan(&proposed.plan)),
        OutboundAction::QuestionAsked(asked) => Some(describe_questions(asked)),
        OutboundAction::RunStopped(stopped) => Some(describe_reason(&stopped.reason)),
        OutboundAction::RetryScheduled(scheduled) => Some(describe_reason(&scheduled.reason)),
        OutboundAction::OpenIssues(opening) => Some(describe_issues(opening)),
        OutboundAction::Discussed(result) => Some(result.answer.answer.clone()),
        OutboundAction::Quarantined(quarantined) => Some(quarantined.reason.clone()),
        // The summary of these has all that the run decided; the reporter words the rest.
        OutboundAction::PullRequest(_)
        | OutboundAction::WorkStarted(_)
        | OutboundAction::Progressed(_)
        | OutboundAction::React(_)
        | OutboundAction::EffortForecast(_)
        | OutboundAction::PushBranch(_)
        | OutboundAction::CostTold(_)
        | OutboundAction::HelpTold(_)
        | OutboundAction::Unreadable(_)
        | OutboundAction::Triaged(_)
        | OutboundAction::Rehearse(_)
        | OutboundAction::Skipped(_)
        | OutboundAction::TicketLeft(_) => None,
    }
}

fn describe_opening(opening: &PullRequestOpening) -> String {
    match &opening.description {
        Some(description) => format!("**{}**\n\n{}", opening.title, description.handover.summary),
        None => format!("**{}**\n\n{}", opening.title, opening.body),
    }
}

fn describe_change(description: &ChangeDescription) -> String {
    let handover = &description.handover;
    format!("**{}**\n\n{}", handover.title, handover.summary)
}

fn describe_replies(addressed: &ReviewAddressed) -> String {
    let replies = addressed.replies.iter().map(|reply| reply.reply.clone());
    let parts: Vec<String> = [addressed.summary.clone()].into_iter().chain(replies).collect();
    parts.join("\n\n---\n\n")
}

fn describe_review(reviewed: &PullRequestReviewed) -> String {
    let review = &reviewed.review;
    let comments = review.comments.iter().map(|comment| {
        let (path, line) = (&comment.path, comment.line);
        format!("- `{path}` line {line}: {} ({})", comment.why, comment.trigger)
    });
    let comments: Vec<String> = comments.collect();
    format!("{}\n\n{}", review.summary, comments.join("\n"))
}

/// Returns the goal, the approach and the steps of a plan as Markdown.
pub(super) fn describe_plan(plan: &ChangePlan) -> String {
    let steps = plan.steps.iter().map(|step| format!("1. {}", step.what));
    let steps: Vec<String> = steps.collect();
    format!("**{}**\n\n{}\n\n{}", plan.goal, plan.approach, steps.join("\n"))
}

fn describe_questions(asked: &QuestionAsked) -> String {
    let questions = asked.questions.iter().map(|question| {
        let options = question.options.iter().map(|option| format!("\n   - {option}"));
        format!("1. {}{}", question.text, options.collect::<String>())
    });
    questions.collect::<Vec<_>>().join("\n")
}

fn describe_issues(opening: &OpenIssues) -> String {
    let issues = opening
        .issues
        .iter()
        .map(|issue| format!("**{}**\n\n{}", issue.title, issue.text));
    issues.collect::<Vec<_>>().join("\n\n---\n\n")
}

fn describe_reason(reason: &StopReason) -> String {
    match reason.detail() {
        Some(detail) => format!("{}: {detail}", reason.words()),
        None => reason.words(),
    }
}

#[cfg(test)]
mod tests {
    use domain::{OutboundRefusal, PolicyViolation, PullRequestRef, TicketQuestion};

    use super::*;
    use crate::{
        pages::tests::{build_hostile_text, render_safe_page},
        sample_journal::{HEAD, RUN, build_run_id, push_fact},
    };

    fn push_report(
        journal: &mut Vec<JournalEntry>,
        request: OutboundAction,
        outcome: Option<OutboundOutcome>,
    ) {
        let id = OutboundId::from(build_run_id().call(journal.len() as u64));
        push_fact(
            journal,
            Fact::ReportRequested {
                id: id.clone(),
                request,
                answers: None,
            },
        );
        if let Some(outcome) = outcome {
            push_fact(journal, Fact::ReportSettled { id, outcome });
        }
    }

    fn build_question(text: &str) -> OutboundAction {
        OutboundAction::QuestionAsked(QuestionAsked {
            questions: vec![TicketQuestion {
                text: text.to_owned(),
                options: vec!["half up".to_owned()],
            }],
        })
    }

    fn build_opening(body: &str) -> OutboundAction {
        OutboundAction::OpenPullRequest(PullRequestOpening {
            repository: "acme/shop".parse().unwrap(),
            branch: "fix/ENG-1".to_owned(),
            base_branch: "main".to_owned(),
            title: "Count every item".to_owned(),
            body: body.to_owned(),
            description: None,
        })
    }

    #[test]
    fn writes_have_text_and_outcome() {
        let mut journal = Vec::new();
        let opened = OutboundReceipt::PullRequestOpened(PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "https://github.com/acme/shop/pull/7".to_owned(),
            branch: "fix/ENG-1".to_owned(),
        });
        push_report(
            &mut journal,
            build_opening("The *last* item"),
            Some(OutboundOutcome::Done(opened)),
        );
        push_report(&mut journal, build_question("How to round?"), None);
        let refusal = OutboundRefusal::NotApproved {
            head: HEAD.parse().unwrap(),
        };
        push_report(
            &mut journal,
            build_opening(""),
            Some(OutboundOutcome::Refused(refusal)),
        );
        let page = render_outside(RUN, &journal).into_string();
        for part in [
            "href=\"/runs/jira%3AENG-1%403/entries/0\">#0</a> open draft pull request",
            "<span class=\"good\">open</span> <a href=\"https://github.com/acme/shop/pull/7\"",
            "<p><strong>Count every item</strong></p><p>The <em>last</em> item</p>",
            "<span class=\"warm\">not done yet</span>",
            "<li>How to round?<ul><li>half up</li></ul></li>",
            "<span class=\"bad\">refused</span>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn hostile_text_of_request_stays_text() {
        let mut journal = Vec::new();
        let violations = vec![PolicyViolation::Protected {
            path: build_hostile_text(),
        }];
        let refused = OutboundOutcome::Refused(OutboundRefusal::Policy { violations });
        push_report(&mut journal, build_question(&build_hostile_text()), Some(refused));
        let detail = build_hostile_text();
        push_report(
            &mut journal,
            build_opening(&detail),
            Some(OutboundOutcome::Failed {
                detail: detail.clone(),
            }),
        );
        let page = render_safe_page(render_outside(RUN, &journal));
        assert!(page.contains("failed: "), "{page}");
    }

    #[test]
    fn run_that_wrote_nothing_has_no_section() {
        let mut journal = Vec::new();
        let progress = domain::report::ProgressUpdate {};
        push_report(&mut journal, OutboundAction::Progressed(progress), None);
        assert_eq!(render_outside(RUN, &journal).into_string(), "");
    }
}
