//! Users to notify when a decision needs a person.

use domain::{Job, RepositoryRules, TicketKey, Trigger, TriggerChannel, TriggerReason};

/// Logins of the users to notify: the reviewers that the rules name, else the GitHub user who requested the work. Empty
/// without a known login.
pub(crate) fn list_deciders(ticket: &TicketKey, rules: &RepositoryRules, history: &[Trigger]) -> Vec<String> {
    let named = &rules.pull_request.reviewers;
    if !named.is_empty() {
        return named.clone();
    }
    let TicketKey::GitHub { .. } = ticket else {
        return Vec::new();
    };
    let mut requests = history.iter().rev().filter(|trigger| is_work_request(trigger));
    let requester = requests.find_map(|trigger| trigger.actor.clone().filter(|actor| is_login(actor)));
    requester.into_iter().collect()
}

/// True for a request for work that came from a tracker. A request through the API names its token, which is not a login.
fn is_work_request(trigger: &Trigger) -> bool {
    let is_implement =
        matches!(&trigger.reason, TriggerReason::JobRequested(request) if request.job == Job::Implement);
    is_implement && matches!(trigger.source, TriggerChannel::Webhook | TriggerChannel::Poll)
}

/// True for a valid login of a person. `[bot]` accounts fail the character check.
fn is_login(actor: &str) -> bool {
    !actor.is_empty() && actor.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use domain::{JobRequest, JobSubject, TicketBackground, TicketText, Timestamp, TriggerKey};

    use super::*;

    fn build_job_trigger(by: &str, source: TriggerChannel, job: Job) -> Trigger {
        Trigger {
            ticket: "github:acme/shop#7".parse().expect("key"),
            key: TriggerKey::new("k"),
            at: Timestamp::default(),
            source,
            actor: Some(by.to_owned()),
            seen: None,
            reason: TriggerReason::JobRequested(Box::new(JobRequest {
                job,
                repository: "acme/shop".parse().expect("name"),
                text: TicketText::default(),
                rules: RepositoryRules::default(),
                background: TicketBackground::default(),
                about: JobSubject::Ticket,
            })),
        }
    }

    #[test]
    fn deciders_are_rules_reviewers_or_requester() {
        let issue: TicketKey = "github:acme/shop#7".parse().expect("key");
        let jira: TicketKey = "jira:ENG-1".parse().expect("key");
        let mut rules = RepositoryRules::default();
        let history = [
            build_job_trigger("rita", TriggerChannel::Poll, Job::Implement),
            build_job_trigger("helper[bot]", TriggerChannel::Webhook, Job::Implement),
            build_job_trigger("ops", TriggerChannel::Api, Job::Implement),
            build_job_trigger("eve", TriggerChannel::Webhook, Job::Answer),
        ];
        assert_eq!(list_deciders(&issue, &rules, &history), ["rita"]);
        assert_eq!(list_deciders(&issue, &rules, &[]), Vec::<String>::new());
        assert_eq!(
            list_deciders(&jira, &rules, &history),
            Vec::<String>::new(),
            "a ticket of Jira has no login"
        );
        rules.pull_request.reviewers = vec!["grace".to_owned()];
        assert_eq!(list_deciders(&jira, &rules, &history), ["grace"]);
        assert_eq!(list_deciders(&issue, &rules, &history), ["grace"]);
    }
}
