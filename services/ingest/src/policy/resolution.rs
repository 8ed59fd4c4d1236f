//! Decision about the resolution of a conflict with the base branch, with the reason against one.

use domain::{
    ConflictEnd, ConflictedBase, Job, JobRequest, JobSubject, PullRequestEvent, RepositoryRules,
    TicketBackground, TicketKey, Trigger, TriggerReason,
};

use crate::{
    facts::{DecisionFacts, Need},
    policy::{deciders::list_deciders, repair::find_last_request},
};

// Resolutions of one head. A further base seldom helps a model that failed twice.
const PER_HEAD: usize = 2;

/// Job that resolves a conflict, or a report of the conflict with the reason against a resolution. `None` when people
/// know of the conflict already.
pub(crate) fn decide_resolution(
    ticket: &TicketKey,
    mut conflict: ConflictedBase,
    facts: &DecisionFacts,
) -> Result<Option<TriggerReason>, Need> {
    let rules = facts.book.for_repository(&conflict.pull_request.repository);
    let rules = match rules {
        Some(rules) if facts.covers(rules, ticket)? => Some(rules),
        Some(_) | None => None,
    };
    let history = facts.history(ticket)?;
    let end = match rules {
        Some(rules) => find_conflict_end(&conflict, rules, history),
        None => Some(ConflictEnd::Off),
    };
    let (rules, asked) = match (end, rules, find_last_request(history)) {
        (None, Some(rules), Some(asked)) => (rules, asked),
        (end, rules, _) => {
            let why = end.unwrap_or(ConflictEnd::Forgotten);
            if is_reported(&conflict, why, history) {
                return Ok(None);
            }
            if let Some(rules) = rules.filter(|_| why.calls_people()) {
                conflict.asked = list_deciders(ticket, rules, history);
            }
            conflict.unresolved = Some(why);
            return Ok(Some(PullRequestEvent::Conflicted(conflict).into()));
        }
    };
    Ok(Some(TriggerReason::JobRequested(Box::new(JobRequest {
        job: Job::ResolveConflict,
        repository: conflict.pull_request.repository.clone(),
        text: asked.text.clone(),
        rules: rules.clone(),
        background: TicketBackground::default(),
        about: JobSubject::Conflict(Box::new(conflict)),
    }))))
}

/// Reason against a resolution; `None` for a resolution.
fn find_conflict_end(
    conflict: &ConflictedBase,
    rules: &RepositoryRules,
    history: &[Trigger],
) -> Option<ConflictEnd> {
    if !rules.pull_request.resolve_conflicts {
        return Some(ConflictEnd::Off);
    }
    if conflict.base_branch != rules.target_branch() {
        return Some(ConflictEnd::OtherBase);
    }
    // A new request for the work also resets the limits.
    let is_work = |trigger: &Trigger| {
        let request = trigger.reason.job_request();
        request.is_some_and(|request| request.job == Job::Implement)
    };
    let since = history.iter().rposition(is_work).unwrap_or_default();
    let of_pull_request: Vec<&ConflictedBase> = history[since..]
        .iter()
        .filter_map(|trigger| trigger.reason.job_request()?.about.conflict())
        .filter(|earlier| earlier.pull_request.is_same(&conflict.pull_request))
        .collect();
    if of_pull_request.len() >= rules.pull_request.resolutions_per_pull_request as usize {
        return Some(ConflictEnd::PerPullRequest);
    }
    let of_head = of_pull_request
        .iter()
        .filter(|earlier| earlier.head == conflict.head);
    (of_head.count() >= PER_HEAD).then_some(ConflictEnd::PerHead)
}

/// True when people know of this conflict for the same reason: a base that moves on changes nothing for them.
fn is_reported(conflict: &ConflictedBase, why: ConflictEnd, history: &[Trigger]) -> bool {
    history.iter().any(|trigger| {
        let TriggerReason::PullRequest(PullRequestEvent::Conflicted(earlier)) = &trigger.reason else {
            return false;
        };
        earlier.pull_request.is_same(&conflict.pull_request)
            && earlier.head == conflict.head
            && earlier.unresolved == Some(why)
    })
}

#[cfg(test)]
mod tests {
    use domain::{CommitId, PullRequestRef, TicketText, Timestamp, TriggerChannel, TriggerKey};

    use super::*;

    fn build_id(digit: char) -> CommitId {
        digit.to_string().repeat(40).parse().expect("id")
    }

    fn build_conflict(head: char, base: char) -> ConflictedBase {
        let pull_request = PullRequestRef {
            repository: "acme/shop".parse().expect("name"),
            number: 7,
            url: "u".to_owned(),
            branch: "fix/ENG-1".to_owned(),
        };
        ConflictedBase::new(pull_request, build_id(head), build_id(base), "main".to_owned())
    }

    fn build_trigger(reason: TriggerReason) -> Trigger {
        Trigger {
            ticket: "jira:ENG-1".parse().expect("key"),
            key: TriggerKey::new("k"),
            at: Timestamp::default(),
            source: TriggerChannel::Poll,
            actor: None,
            seen: None,
            reason,
        }
    }

    fn build_request(job: Job, about: JobSubject) -> Trigger {
        build_trigger(TriggerReason::JobRequested(Box::new(JobRequest {
            job,
            repository: "acme/shop".parse().expect("name"),
            text: TicketText::default(),
            rules: RepositoryRules::default(),
            background: TicketBackground::default(),
            about,
        })))
    }

    fn build_resolution(head: char, base: char) -> Trigger {
        let about = JobSubject::Conflict(Box::new(build_conflict(head, base)));
        build_request(Job::ResolveConflict, about)
    }

    #[test]
    fn resolutions_are_limited_per_head() {
        let rules = RepositoryRules::default();
        let end = |history: &[Trigger]| find_conflict_end(&build_conflict('a', '9'), &rules, history);
        let mut history = vec![build_request(Job::Implement, JobSubject::Ticket)];
        assert_eq!(end(&history), None);
        history.push(build_resolution('a', '1'));
        history.push(build_resolution('b', '2'));
        assert_eq!(end(&history), None, "one of this head");
        history.push(build_resolution('a', '3'));
        assert_eq!(end(&history), Some(ConflictEnd::PerHead));
        history.push(build_request(Job::Implement, JobSubject::Ticket));
        assert_eq!(end(&history), None, "a new request resets the limit");
        history.extend("bcdef0".chars().map(|head| build_resolution(head, '1')));
        assert_eq!(end(&history), Some(ConflictEnd::PerPullRequest));
    }

    #[test]
    fn rules_leave_conflicts_to_people() {
        let mut rules = RepositoryRules::default();
        rules.repo.pr_target_branch = "release".to_owned();
        let conflict = build_conflict('a', '1');
        assert_eq!(
            find_conflict_end(&conflict, &rules, &[]),
            Some(ConflictEnd::OtherBase)
        );
        rules.pull_request.resolve_conflicts = false;
        assert_eq!(find_conflict_end(&conflict, &rules, &[]), Some(ConflictEnd::Off));
    }

    #[test]
    fn reported_conflict_is_reported_once() {
        let mut known = build_conflict('a', '1');
        known.unresolved = Some(ConflictEnd::PerHead);
        let history = [build_trigger(PullRequestEvent::Conflicted(known).into())];
        for (conflict, why, is_known) in [
            (build_conflict('a', '2'), ConflictEnd::PerHead, true),
            (build_conflict('a', '2'), ConflictEnd::Off, false),
            (build_conflict('b', '2'), ConflictEnd::PerHead, false),
        ] {
            assert_eq!(
                is_reported(&conflict, why, &history),
                is_known,
                "{conflict:?} {why:?}"
            );
        }
    }
}
