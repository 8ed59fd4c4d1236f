//! Orders to a run from its page: say something, stop, retry, start another job. A page with the effects of the order
//! comes before the order itself.

use api::{
    ApiAction, Client,
    types::{JobBody, JobStarted, RunState, RunView},
};
use axum::{
    Form,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use domain::{Job, JobAccess, JobInput, RequestPlace, RunId, TicketKey};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{ConsolePage, NavigationEntry},
    markdown::render_markdown,
    person::SignedInPerson,
    problem::PageProblem,
    words::{make_visible, run_path},
};

// Longest text of an order, in characters.
const TEXT_CHARS: usize = api::types::ContextBody::WORDS_CHARS;

/// Kind of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunOrder {
    Say,
    Stop,
    Retry,
    Dispatch,
}

impl RunOrder {
    const fn name(self) -> &'static str {
        match self {
            Self::Say => "say",
            Self::Stop => "stop",
            Self::Retry => "retry",
            Self::Dispatch => "dispatch",
        }
    }

    /// The text of the button that gives the order.
    const fn button(self) -> &'static str {
        match self {
            Self::Say => "Say it",
            Self::Stop => "Stop the run",
            Self::Retry => "Retry the ticket",
            Self::Dispatch => "Start the job",
        }
    }
}

/// Form fields of an order.
#[derive(Debug, Deserialize)]
pub(super) struct OrderForm {
    order: RunOrder,
    #[serde(default)]
    text: String,
    #[serde(default)]
    job: Option<Job>,
    /// Key of the confirmation, so that a repeated click starts a job once.
    #[serde(default)]
    key: String,
}

impl OrderForm {
    fn text(&self) -> Result<&str, PageProblem> {
        match self.text.trim() {
            text if text.chars().count() > TEXT_CHARS => Err(PageProblem::Form("The text is too long.")),
            text => Ok(text),
        }
    }

    /// Returns the text of an order that needs one.
    fn said(&self) -> Result<&str, PageProblem> {
        match self.text()? {
            "" => Err(PageProblem::Form("Write what to say.")),
            text => Ok(text),
        }
    }

    fn job_body(&self, ticket: &TicketKey) -> Result<JobBody, PageProblem> {
        let job = self.job.ok_or(PageProblem::Form("Choose a job."))?;
        let text = self.text()?;
        let field = find_text_field(job).filter(|_| !text.is_empty());
        let context = field.map(|field| serde_json::Map::from_iter([(field.to_owned(), text.into())]));
        Ok(JobBody {
            ticket: ticket.to_string(),
            job,
            repository: None,
            text: None,
            context,
            dry_run: false,
            mock: false,
        })
    }
}

/// Shows the effects of an order, with the button that gives it.
pub(super) async fn confirm_order(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
    Form(form): Form<OrderForm>,
) -> Result<ConsolePage, PageProblem> {
    let run: RunId = id.parse()?;
    let effects = describe_effects(&client, &run, &form).await?;
    let key = uuid::Uuid::new_v4().simple().to_string();
    let body = render_confirmation(&id, &form, &effects, &key);
    Ok(ConsolePage::new(NavigationEntry::Runs, "Confirm", body))
}

/// Gives an order.
pub(super) async fn give_order(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
    Form(form): Form<OrderForm>,
) -> Result<Response, PageProblem> {
    let run: RunId = id.parse()?;
    match form.order {
        RunOrder::Say => client.tickets().comment(run.ticket(), form.said()?).await?,
        RunOrder::Stop => client.runs().stop(&run).await?,
        RunOrder::Retry => client.tickets().retry(run.ticket()).await?,
        RunOrder::Dispatch => {
            let key = Some(form.key.as_str()).filter(|key| !key.is_empty());
            return match client.jobs().start(&form.job_body(run.ticket())?, key).await? {
                JobStarted::Accepted(accepted) => Ok(Redirect::to(&run_path(&accepted.run)).into_response()),
                JobStarted::Needless(result) => {
                    let why = result
                        .message
                        .unwrap_or_else(|| "There is nothing to repair.".to_owned());
                    let body = html! { p { (make_visible(&why)) } (render_way_back(&id)) };
                    Ok(ConsolePage::new(NavigationEntry::Runs, "Nothing was started", body).into_response())
                }
            };
        }
    }
    Ok(Redirect::to(&run_path(&id)).into_response())
}

/// Describes the effects of the order, one sentence for each.
async fn describe_effects(
    client: &Client,
    run: &RunId,
    form: &OrderForm,
) -> Result<Vec<String>, PageProblem> {
    match form.order {
        // The API has no dry run of a comment; the text itself is on the page.
        RunOrder::Say => {
            form.said()?;
            Ok(vec![format!(
                "The live runs of {} read this text before the next turn of their model. Jira and GitHub do not show it.",
                run.ticket()
            )])
        }
        RunOrder::Stop => Ok(complete_sentences(client.would(ApiAction::StopRun(run)).await?)),
        RunOrder::Retry => Ok(complete_sentences(
            client.would(ApiAction::RetryTicket(run.ticket())).await?,
        )),
        RunOrder::Dispatch => {
            let planned = client.jobs().plan(&form.job_body(run.ticket())?).await?;
            let mut effects = vec![format!(
                "The job {} starts on {} in {}: {}",
                planned.job, planned.ticket, planned.repository, planned.summary
            )];
            effects.extend(planned.pull_request.map(|url| format!("It is about {url}")));
            Ok(effects)
        }
    }
}

/// Completes the effects of a dry run, which follow "would".
fn complete_sentences(effects: Vec<String>) -> Vec<String> {
    if effects.is_empty() {
        vec!["Nothing would change.".to_owned()]
    } else {
        effects
            .into_iter()
            .map(|effect| format!("It would {effect}."))
            .collect()
    }
}

fn render_confirmation(run: &str, form: &OrderForm, effects: &[String], key: &str) -> Markup {
    let text = form.text.trim();
    html! {
        p { strong { (form.order.button()) "?" } " Run " a href=(run_path(run)) { (make_visible(run)) } }
        ul { @for effect in effects { li { (make_visible(effect)) } } }
        @if !text.is_empty() { blockquote { (render_markdown(text)) } }
        form method="post" action={ (run_path(run)) "/order" } {
            input type="hidden" name="order" value=(form.order.name());
            input type="hidden" name="text" value=(text);
            @if let Some(job) = form.job { input type="hidden" name="job" value=(job.profile().name); }
            input type="hidden" name="key" value=(key);
            div.actions { button.main { (form.order.button()) } a href=(run_path(run)) { "Back to the run" } }
        }
    }
}

fn render_way_back(run: &str) -> Markup {
    html! { p { a href=(run_path(run)) { "To the run" } } }
}

/// Renders the forms of a run's page. Each leads to the confirmation.
pub(super) fn render_orders(run: &RunView) -> Markup {
    let is_live = run.status != RunState::Finished;
    let action = format!("{}/confirm", run_path(&run.id));
    // A key of a later release has no jobs here.
    let jobs = match run.ticket.parse::<TicketKey>() {
        Ok(ticket) => list_jobs(&ticket),
        Err(_) => Vec::new(),
    };
    html! {
        h2 { "Steer" }
        @if is_live {
            form method="post" action=(action) {
                input type="hidden" name="order" value=(RunOrder::Say.name());
                label for="say-text" { "Say something to the run" }
                textarea id="say-text" name="text" required maxlength=(TEXT_CHARS) {}
                div.actions { button { (RunOrder::Say.button()) } }
            }
        }
        div.actions {
            @if is_live { (render_button(&action, RunOrder::Stop)) }
            (render_button(&action, RunOrder::Retry))
            a href={ (run_path(&run.id)) "/journal.json" } { "Journal as JSON" }
        }
        @if !jobs.is_empty() {
            details {
                summary { "Start another job on this ticket" }
                form method="post" action=(action) {
                    input type="hidden" name="order" value=(RunOrder::Dispatch.name());
                    label for="job" { "Job" }
                    select id="job" name="job" {
                        @for job in &jobs { option value=(job.profile().name) { (describe_job(*job)) } }
                    }
                    label for="job-text" { "Instructions, question or feedback for it" }
                    textarea id="job-text" name="text" maxlength=(TEXT_CHARS) {}
                    div.actions { button { (RunOrder::Dispatch.button()) } }
                }
            }
        }
    }
}

fn render_button(action: &str, order: RunOrder) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            input type="hidden" name="order" value=(order.name());
            button { (order.button()) }
        }
    }
}

/// Lists the jobs that a form with one text can start on the ticket.
fn list_jobs(ticket: &TicketKey) -> Vec<Job> {
    let place = RequestPlace::of(ticket);
    // The job of a folder needs the title and the description of its ticket.
    if place == RequestPlace::Folder {
        return Vec::new();
    }
    let can_start = |job: &Job| job.is_for(place) && !list_inputs(*job).contains(&JobInput::Task);
    Job::ALL.into_iter().filter(can_start).collect()
}

fn list_inputs(job: Job) -> &'static [JobInput] {
    match job.profile().access {
        JobAccess::Users { inputs, .. } => inputs,
        JobAccess::Rehearsal | JobAccess::Event => &[],
    }
}

/// Returns the field of a request that takes the text.
fn find_text_field(job: Job) -> Option<&'static str> {
    list_inputs(job).iter().find_map(|input| input.text_field())
}

fn describe_job(job: Job) -> String {
    let profile = job.profile();
    format!("{}: {}", profile.name.replace('_', " "), profile.task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::{HOSTILE, build_run_view, gave_up, render_safe_page};

    fn build_form(order: RunOrder, text: &str, job: Option<Job>) -> OrderForm {
        OrderForm {
            order,
            text: text.to_owned(),
            job,
            key: String::new(),
        }
    }

    #[test]
    fn live_run_takes_every_order() {
        let page = render_orders(&build_run_view(RunState::Active, None, None)).into_string();
        for order in [RunOrder::Say, RunOrder::Stop, RunOrder::Retry, RunOrder::Dispatch] {
            let field = format!("name=\"order\" value=\"{}\"", order.name());
            assert!(page.contains(&field), "{field}: {page}");
        }
        assert!(
            page.contains("action=\"/runs/jira%3AENG-12%4057/confirm\""),
            "{page}"
        );
        assert!(
            page.contains("<option value=\"fix_ci\">fix ci: repair the failing checks</option>"),
            "{page}"
        );
        assert!(
            !page.contains("discuss") && !page.contains("mark_ready"),
            "{page}"
        );
    }

    #[test]
    fn finished_run_offers_retry_and_jobs() {
        let mut run = build_run_view(RunState::Finished, None, Some(gave_up()));
        let page = render_orders(&run).into_string();
        assert!(
            !page.contains("value=\"stop\"") && !page.contains("value=\"say\""),
            "{page}"
        );
        assert!(
            page.contains("value=\"retry\"") && page.contains("value=\"dispatch\""),
            "{page}"
        );
        run.ticket = "folder:shop#1".to_owned();
        assert!(!render_orders(&run).into_string().contains("value=\"dispatch\""));
    }

    #[test]
    fn confirmation_repeats_order_and_text() {
        // The hidden field has the text as it was written, which no page shows.
        let text = HOSTILE.replace('\u{202e}', "");
        let form = build_form(RunOrder::Dispatch, &text, Some(Job::FixCi));
        let effects = complete_sentences(vec!["stop run jira:ENG-1@3".to_owned()]);
        let page = render_safe_page(render_confirmation("jira:ENG-1@3", &form, &effects, "k1"));
        for part in [
            "It would stop run jira:ENG-1@3.",
            "name=\"job\" value=\"fix_ci\"",
            "name=\"key\" value=\"k1\"",
            "action=\"/runs/jira%3AENG-1%403/order\"",
            ">Start the job</button>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn text_reaches_field_of_job() {
        let ticket: TicketKey = "jira:ENG-1".parse().unwrap();
        for (job, field) in [
            (Job::Implement, Some("instructions")),
            (Job::Answer, Some("question")),
            (Job::AddressReview, Some("feedback")),
            (Job::Triage, None),
        ] {
            let body = build_form(RunOrder::Dispatch, " half up\n", Some(job))
                .job_body(&ticket)
                .unwrap();
            let context = field.map(|field| serde_json::json!({ field: "half up" }));
            assert_eq!(body.context.map(serde_json::Value::Object), context, "{job}");
        }
        let body = build_form(RunOrder::Dispatch, " ", Some(Job::Implement))
            .job_body(&ticket)
            .unwrap();
        assert_eq!(body.context, None);
    }

    #[test]
    fn order_without_its_fields_is_refused() {
        let ticket: TicketKey = "jira:ENG-1".parse().unwrap();
        assert!(build_form(RunOrder::Say, " ", None).said().is_err());
        assert!(
            build_form(RunOrder::Say, &"x".repeat(TEXT_CHARS + 1), None)
                .said()
                .is_err()
        );
        assert!(
            build_form(RunOrder::Dispatch, "", None)
                .job_body(&ticket)
                .is_err()
        );
    }
}
