//! Triage: a new or edited ticket is labeled, when its repository's rules say so.

use std::collections::BTreeSet;

use domain::{Background, Job, JobRequest, Reason, Rules, Trigger, TriggerKey};

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
        if self.is_ours(&[&entered.actor.id, &entered.actor.display_name]) {
            return nothing("our own account did it");
        }
        let key = TriggerKey::new(format!(
            "triage:{}",
            entered.changelog.as_deref().unwrap_or("created")
        ));
        if let Some(sequence) = self.known(&entered.ticket, &key).await? {
            return Ok(Outcome::Known(sequence));
        }
        if !self
            .instructors
            .include(&self.outside, entered.ticket.instance(), Some(&entered.actor.id))
            .await?
        {
            tracing::info!(ticket = %entered.ticket, "no triage: who wrote the text may not ask for it");
            return nothing("who wrote the text may not ask for a triage");
        }
        let mut issue = self.outside.issue(&entered.ticket).await?;
        issue.comments.clear();
        if issue.labels.contains(&rules.triage.done_label) {
            return nothing("the ticket is triaged");
        }
        if detect::has_later_text(&issue, entered.changelog.as_deref(), entered.at) {
            return nothing("a later edit of the text stands for it");
        }
        let raw = detect::text_of(&issue);
        if detect::skip(&raw, &[], rules, &[]).is_some() {
            return nothing("a skip rule forbids work on the ticket");
        }
        let repository = rules
            .repository()
            .map_err(|problem| Failure::Never(problem.to_string()))?;
        let request = JobRequest {
            job: Job::Triage,
            repository,
            text: pin::pin(raw, &[], entered.at, &BTreeSet::new()),
            rules: rules.clone(),
            background: Background::default(),
        };
        self.outcome(Trigger {
            key,
            ticket: entered.ticket,
            at: entered.at,
            source: entered.source,
            actor: Some(entered.actor.display_name).filter(|name| !name.is_empty()),
            reason: Reason::JobRequested(Box::new(request)),
        })
        .await
    }
}
