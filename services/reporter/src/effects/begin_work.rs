//! Starts the work that a comment requests.

use async_trait::async_trait;
use domain::{JobRequest, JobSubject, RunId, TicketKey, Trigger, TriggerChannel, TriggerKey, TriggerReason};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, receipt::BegunWork};

/// Appends the trigger that ingest pinned when it received the comment. A planner decides if the work starts, not
/// what it is.
#[derive(Debug)]
pub(crate) struct BeginWork;

#[async_trait]
impl OutboundEffect for BeginWork {
    type Output = Option<BegunWork>;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "begin_work"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::OwnRecords
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let ticket = &asked.report.ticket;
        let Some(begun) = find_pinned_work(outside, ticket, asked.report.run.as_ref()).await? else {
            tracing::warn!(%ticket, "no work begins: what was asked for is not kept");
            return Ok(None);
        };
        let job = begun.reason.job();
        // A repetition appends nothing, because its trigger has the same key.
        outside.triggers.append(&begun).await?;
        tracing::info!(%ticket, job = job.map(domain::Job::as_str), "work begins that a comment asks for");
        Ok(job.map(BegunWork))
    }
}

/// Reads the pinned work from the trigger that opened the run.
async fn find_pinned_work(
    outside: &OutboundClients,
    ticket: &TicketKey,
    run: Option<&RunId>,
) -> Result<Option<Trigger>, EffectError> {
    let Some((run, before)) = run.and_then(|run| Some((run, run.sequence().checked_sub(1)?))) else {
        return Ok(None);
    };
    // A run's sequence is that of the trigger that opened it, so the read starts just before it.
    let read = outside.triggers.read_each_after(ticket, before).await?;
    let opener = read.into_iter().find(|(sequence, _)| *sequence == run.sequence());
    Ok(opener.and_then(|(_, opener)| work_of(opener.ok()?)))
}

/// Builds the trigger. Its key follows from the comment's key, so that the work starts once.
fn work_of(opener: Trigger) -> Option<Trigger> {
    let TriggerReason::JobRequested(request) = opener.reason else {
        return None;
    };
    let work = work_in(*request)?;
    // The opener's other fields stay, so that the work keeps its rules and its requester.
    Some(Trigger {
        key: TriggerKey::new(format!("work:{}", opener.key.as_str())),
        source: TriggerChannel::Reporter,
        seen: None,
        reason: TriggerReason::JobRequested(work),
        ..opener
    })
}

fn work_in(request: JobRequest) -> Option<Box<JobRequest>> {
    let JobSubject::Question(question) = request.about else {
        return None;
    };
    question.work
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build_question_trigger(work: Option<serde_json::Value>) -> Trigger {
        let text = json!({"summary": "s", "description": "", "kind": "", "priority": "", "labels": [], "comments": [],
            "url": "", "sha256": ""});
        let mut question = json!({"type": "question", "author": "rita", "text": "Please mend it."});
        if let Some(mut work) = work {
            work["text"] = text.clone();
            question["work"] = work;
        }
        let reason = json!({"type": "job_requested", "job": "answer", "repository": "acme/shop", "text": text, "rules": {},
            "about": question});
        serde_json::from_value(
            json!({"ticket": "jira:ENG-1", "key": "comment:7", "at": 5, "source": "webhook",
            "actor": "rita", "seen": null, "reason": reason}),
        )
        .unwrap()
    }

    #[test]
    fn only_pinned_work_begins() {
        let work = json!({"job": "implement", "repository": "acme/shop", "rules": {}});
        let begun = work_of(build_question_trigger(Some(work))).unwrap();
        assert_eq!(begun.key.as_str(), "work:comment:7");
        assert_eq!(
            (begun.source, begun.actor.as_deref()),
            (TriggerChannel::Reporter, Some("rita"))
        );
        assert_eq!(begun.reason.job(), Some(domain::Job::Implement));
        assert_eq!(work_of(build_question_trigger(None)), None);
    }
}
