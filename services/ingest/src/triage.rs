//! Triage: a new or edited ticket is labeled, when its repository's rules say so.

use domain::{Job, JobRequest, Reason, Rules, Trigger, TriggerKey};

use crate::{
    detect,
    events::jira::Entered,
    outcome::{Failure, Outcome},
    pin,
    router::Router,
};

impl Router {
    /// Asks for a triage of a ticket that was created or edited, unless its rules name no labels or it is triaged.
    pub(crate) async fn triage(&self, entered: Entered, rules: &Rules) -> Result<Outcome, Failure> {
        let nothing = |why: &str| Ok(Outcome::Nothing(why.to_owned()));
        if rules.triage.labels.is_empty() {
            return nothing("nothing follows from the ticket's text");
        }
        if self.is_ours(&[&entered.actor.id, &entered.actor.name]) {
            return nothing("our own account did it");
        }
        let mut issue = self.outside.issue(&entered.ticket).await?;
        issue.comments.clear();
        if issue.labels.contains(&rules.triage.done_label) {
            return nothing("the ticket is triaged");
        }
        let raw = detect::text_of(&issue, entered.pinned);
        if detect::skip(&raw, &[], rules, &[]).is_some() {
            return nothing("a skip rule forbids work on the ticket");
        }
        let repository = rules
            .repository()
            .map_err(|problem| Failure::Never(problem.to_string()))?;
        let change = entered.changelog.as_deref().unwrap_or("created");
        let request = JobRequest {
            job: Job::Triage,
            repository,
            text: pin::pin(raw, &[], entered.at),
            rules: rules.clone(),
        };
        self.outcome(Trigger {
            version: Trigger::VERSION,
            key: TriggerKey::new(format!("triage:{change}")),
            ticket: entered.ticket,
            at: entered.at,
            source: entered.source,
            actor: Some(entered.actor.name).filter(|name| !name.is_empty()),
            reason: Reason::JobRequested(Box::new(request)),
        })
        .await
    }
}
