//! What a report asks for: a report and the repository's rules become an ordered list of effects, without any I/O.

use domain::{
    CiRequired, CommitId, Proposal, PullRequestRef, PullRequestStatus, PushBranch, Report, ReportRequest,
    RepositoryName, Rules, TicketKey,
};

use crate::{draft::Draft, message::Say};

/// One outward write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Import, check and push a branch.
    PushBranch(PushBranch),
    /// Import and check what would be pushed, and keep what it changes for people to read.
    ShowChange(PushBranch),
    /// Open the draft, or adopt the open one of the same branch.
    OpenPullRequest(Draft),
    /// Link the pull request of this report on the Jira issue.
    LinkPullRequest {
        /// The Jira issue.
        issue: TicketKey,
    },
    /// Take a draft out of draft.
    MarkReady {
        /// The draft.
        pull_request: PullRequestRef,
        /// The commit whose checks passed; another head is refused.
        head: CommitId,
    },
    /// Take a draft out of draft on which no check reports, unless something is configured to.
    MarkReadyUnchecked {
        /// The draft.
        pull_request: PullRequestRef,
        /// The commit without checks; another head is refused.
        head: CommitId,
        /// What the rules say.
        required: CiRequired,
    },
    /// Move a Jira issue.
    Transition {
        /// The Jira issue.
        issue: TicketKey,
        /// Acceptable statuses, the best one first.
        goals: Vec<String>,
    },
    /// Put labels on the ticket.
    AddLabels {
        /// Where.
        ticket: TicketKey,
        /// Which.
        labels: Vec<String>,
    },
    /// Take a Jira issue from whoever has it, so that giving it back asks for work again.
    Unassign {
        /// The Jira issue.
        issue: TicketKey,
    },
    /// Write into the index of our pull requests that one is over, so that nobody asks about it again.
    RecordEnd {
        /// The pull request.
        pull_request: PullRequestRef,
        /// How it ended.
        status: PullRequestStatus,
    },
    /// Tell the people on the ticket: in the ticket's status comment, or in a comment of its own.
    Comment {
        /// Where.
        ticket: TicketKey,
        /// What.
        say: Say,
    },
}

impl Effect {
    /// Its kind.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::PushBranch(_) => "push_branch",
            Self::ShowChange(_) => "show_change",
            Self::OpenPullRequest(_) => "open_pull_request",
            Self::LinkPullRequest { .. } => "link_pull_request",
            Self::MarkReady { .. } => "mark_ready",
            Self::MarkReadyUnchecked { .. } => "mark_ready_unchecked",
            Self::Transition { .. } => "transition",
            Self::AddLabels { .. } => "add_labels",
            Self::Unassign { .. } => "unassign",
            Self::RecordEnd { .. } => "record_end",
            Self::Comment { .. } => "comment",
        }
    }

    /// Whether the outside itself refuses or absorbs a repetition. Where it does not, an attempt of unknown outcome is
    /// looked for until its window has passed.
    pub(crate) const fn absorbs_repetition(&self) -> bool {
        match self {
            Self::PushBranch(_)
            | Self::ShowChange(_)
            | Self::OpenPullRequest(_)
            | Self::LinkPullRequest { .. }
            | Self::MarkReady { .. }
            | Self::MarkReadyUnchecked { .. }
            | Self::Transition { .. }
            | Self::AddLabels { .. }
            | Self::Unassign { .. }
            | Self::RecordEnd { .. } => true,
            Self::Comment { .. } => false,
        }
    }
}

/// The repository whose rules govern a report, when the request names one.
pub(crate) fn repository_of(request: &ReportRequest) -> Option<&RepositoryName> {
    match request {
        ReportRequest::WorkStarted { repository, .. }
        | ReportRequest::EffortForecast { repository, .. }
        | ReportRequest::OpenPullRequest { repository, .. } => Some(repository),
        ReportRequest::PushBranch(push) => Some(&push.repository),
        ReportRequest::PlanProposed { repository, .. } => Some(repository),
        ReportRequest::DecisionNeeded(asked) => Some(&asked.push.repository),
        ReportRequest::ChecksPassed { pull_request, .. }
        | ReportRequest::ChecksAbsent { pull_request, .. }
        | ReportRequest::ChecksFailed { pull_request, .. }
        | ReportRequest::Merged { pull_request, .. }
        | ReportRequest::Closed { pull_request, .. } => Some(&pull_request.repository),
        ReportRequest::RunStopped {
            pull_request, branch, ..
        } => {
            let drafted = pull_request.as_ref().map(|known| &known.repository);
            drafted.or(branch.as_ref().map(|pushed| &pushed.repository))
        }
        ReportRequest::QuestionAsked { .. }
        | ReportRequest::RetryScheduled { .. }
        | ReportRequest::Quarantined { .. }
        | ReportRequest::Unreadable { .. }
        | ReportRequest::AddLabels { .. }
        | ReportRequest::Skipped(_) => None,
    }
}

/// The effects of a report, in order: what is done, then what is told.
pub(crate) fn plan(report: &Report, rules: &Rules) -> Vec<Effect> {
    // A ticket of a folder has no place for comments: its people read the journal.
    let is_told = !matches!(report.ticket, TicketKey::Folder { .. });
    let said = is_told.then(|| said(&report.request, rules)).flatten();
    let told = said.map(|say| Effect::Comment {
        ticket: report.ticket.clone(),
        say,
    });
    done(report, rules).into_iter().chain(told).collect()
}

/// The effects with the names that they have in the ledger. The second of a kind has another name than the first: they
/// are two things to do, and one row for both would leave one of them undone.
pub(crate) fn named(effects: &[Effect]) -> impl Iterator<Item = (String, &Effect)> {
    effects.iter().enumerate().map(|(index, effect)| {
        let same = effects[..index]
            .iter()
            .filter(|earlier| earlier.name() == effect.name());
        let name = match same.count() {
            0 => effect.name().to_owned(),
            earlier => format!("{}.{}", effect.name(), earlier + 1),
        };
        (name, effect)
    })
}

fn done(report: &Report, rules: &Rules) -> Vec<Effect> {
    let agent = &rules.agent;
    match &report.request {
        ReportRequest::PushBranch(push) => vec![Effect::PushBranch(push.clone())],
        ReportRequest::DecisionNeeded(asked) => vec![Effect::ShowChange(asked.push.clone())],
        ReportRequest::OpenPullRequest {
            repository,
            branch,
            base_branch,
            title,
            body,
            description,
        } => {
            let draft = Draft {
                repository: repository.clone(),
                branch: branch.clone(),
                base_branch: base_branch.clone(),
                title: title.clone(),
                body: body.clone(),
                description: description.clone(),
            };
            let link = on_jira(report, |issue| Effect::LinkPullRequest { issue });
            std::iter::once(Effect::OpenPullRequest(draft))
                .chain(link)
                .collect()
        }
        ReportRequest::WorkStarted { .. } => moved(report, &[&agent.in_progress_status]),
        ReportRequest::ChecksPassed { pull_request, head } => {
            let ready = Effect::MarkReady {
                pull_request: pull_request.clone(),
                head: head.clone(),
            };
            let moved = moved(report, &[&agent.review_status]);
            std::iter::once(ready).chain(moved).collect()
        }
        ReportRequest::ChecksAbsent { pull_request, head } => {
            let ready = Effect::MarkReadyUnchecked {
                pull_request: pull_request.clone(),
                head: head.clone(),
                required: rules.ci.required,
            };
            let moved = moved(report, &[&agent.review_status]);
            std::iter::once(ready).chain(moved).collect()
        }
        ReportRequest::Merged { pull_request, .. } => {
            let usual = ["done", "closed", "complete", "completed", "resolved"];
            let goals: Vec<&str> = std::iter::once(agent.done_status.as_str()).chain(usual).collect();
            let over = Effect::RecordEnd {
                pull_request: pull_request.clone(),
                status: PullRequestStatus::Merged,
            };
            std::iter::once(over).chain(moved(report, &goals)).collect()
        }
        ReportRequest::Closed { pull_request, .. } => vec![Effect::RecordEnd {
            pull_request: pull_request.clone(),
            status: PullRequestStatus::Closed,
        }],
        ReportRequest::RunStopped { reason, .. } if reason.breaks_circuit() => {
            on_jira(report, |issue| Effect::Unassign { issue })
                .into_iter()
                .collect()
        }
        ReportRequest::AddLabels { labels } => vec![Effect::AddLabels {
            ticket: report.ticket.clone(),
            labels: labels.clone(),
        }],
        ReportRequest::ChecksFailed { .. }
        | ReportRequest::EffortForecast { .. }
        | ReportRequest::PlanProposed { .. }
        | ReportRequest::QuestionAsked { .. }
        | ReportRequest::RunStopped { .. }
        | ReportRequest::RetryScheduled { .. }
        | ReportRequest::Quarantined { .. }
        | ReportRequest::Unreadable { .. }
        | ReportRequest::Skipped(_) => Vec::new(),
    }
}

fn said(request: &ReportRequest, rules: &Rules) -> Option<Say> {
    Some(match request.clone() {
        ReportRequest::PushBranch(_) | ReportRequest::AddLabels { .. } => return None,
        ReportRequest::OpenPullRequest { .. } => Say::Opened,
        ReportRequest::WorkStarted { job, repository } => Say::Started { job, repository },
        ReportRequest::EffortForecast { forecast, .. } => Say::Forecast { forecast },
        ReportRequest::ChecksPassed { pull_request, .. } => Say::Ready { pull_request },
        ReportRequest::ChecksAbsent { pull_request, .. } => Say::Unchecked { pull_request },
        ReportRequest::ChecksFailed {
            pull_request, failed, ..
        } => Say::ChecksFailed { pull_request, failed },
        ReportRequest::Merged { pull_request, by } => Say::Merged { pull_request, by },
        ReportRequest::Closed { pull_request, by } => Say::Closed {
            pull_request,
            by,
            again: again(rules),
        },
        ReportRequest::DecisionNeeded(Proposal { push, description }) => {
            Say::DecisionNeeded { push, description }
        }
        ReportRequest::PlanProposed { repository, id, plan } => Say::PlanProposed { repository, id, plan },
        ReportRequest::QuestionAsked { questions } => Say::Question { questions },
        ReportRequest::RunStopped {
            job,
            reason,
            pull_request,
            branch,
        } => Say::Stopped {
            job,
            reason,
            pull_request,
            branch,
            again: again(rules),
        },
        ReportRequest::RetryScheduled {
            job,
            reason,
            attempt,
            most,
            due,
        } => Say::RetryScheduled {
            job,
            reason,
            attempt,
            most,
            due,
        },
        ReportRequest::Quarantined { reason } => Say::Quarantined { reason },
        ReportRequest::Unreadable { what } => Say::Unreadable {
            what: what.to_string(),
        },
        ReportRequest::Skipped(reason) => Say::Skipped {
            reason,
            again: again(rules),
        },
    })
}

fn again(rules: &Rules) -> String {
    rules.agent.status.clone()
}

fn on_jira(report: &Report, effect: impl FnOnce(TicketKey) -> Effect) -> Option<Effect> {
    matches!(report.ticket, TicketKey::Jira { .. }).then(|| effect(report.ticket.clone()))
}

fn moved(report: &Report, goals: &[&str]) -> Vec<Effect> {
    let goals: Vec<String> = goals
        .iter()
        .filter(|goal| !goal.is_empty())
        .map(|goal| (*goal).to_owned())
        .collect();
    if goals.is_empty() {
        return Vec::new();
    }
    on_jira(report, |issue| Effect::Transition { issue, goals })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use domain::{Job, ObjectRef, RunFence, RunId, SkipReason, Timestamp};

    use super::*;

    fn report(ticket: &str, request: ReportRequest) -> Report {
        let ticket: TicketKey = ticket.parse().unwrap();
        let run = RunId::new(ticket.clone(), 7);
        Report {
            id: run.call(3).into(),
            ticket,
            run: Some(run),
            fence: RunFence::default(),
            at: Timestamp::default(),
            request,
        }
    }

    fn names(ticket: &str, rules: &Rules, request: ReportRequest) -> Vec<&'static str> {
        plan(&report(ticket, request), rules)
            .iter()
            .map(Effect::name)
            .collect()
    }

    fn pull_request() -> PullRequestRef {
        PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 5,
            url: "https://github.example/acme/shop/pull/5".to_owned(),
            branch: "feat/ENG-12-x".to_owned(),
        }
    }

    fn commit() -> CommitId {
        "a".repeat(40).parse().unwrap()
    }

    fn push(repository: RepositoryName) -> PushBranch {
        PushBranch {
            scope: None,
            repository,
            branch: "feat/ENG-12-x".to_owned(),
            base: commit(),
            head: commit(),
            pack: ObjectRef {
                sha256: "0".repeat(64),
                size_bytes: 1,
            },
            expected: None,
        }
    }

    #[test]
    fn every_request_on_a_jira_ticket_has_its_effects_in_order() {
        let rules = Rules::default();
        let repository: RepositoryName = "acme/shop".parse().unwrap();
        let of = |request| names("jira:ENG-12", &rules, request);
        assert_eq!(
            of(ReportRequest::WorkStarted {
                job: Job::Implement,
                repository: repository.clone()
            }),
            ["transition", "comment"]
        );
        assert_eq!(
            of(ReportRequest::OpenPullRequest {
                repository: repository.clone(),
                branch: "b".into(),
                base_branch: "main".into(),
                title: "t".into(),
                body: "b".into(),
                description: None,
            }),
            ["open_pull_request", "link_pull_request", "comment"]
        );
        assert_eq!(
            of(ReportRequest::ChecksPassed {
                pull_request: pull_request(),
                head: commit()
            }),
            ["mark_ready", "comment"]
        );
        assert_eq!(
            of(ReportRequest::ChecksFailed {
                pull_request: pull_request(),
                head: commit(),
                failed: vec![]
            }),
            ["comment"]
        );
        assert_eq!(
            of(ReportRequest::Merged {
                pull_request: pull_request(),
                by: "ann".into()
            }),
            ["record_end", "transition", "comment"]
        );
        assert_eq!(
            of(ReportRequest::Closed {
                pull_request: pull_request(),
                by: "ann".into()
            }),
            ["record_end", "comment"]
        );
        assert_eq!(
            of(ReportRequest::DecisionNeeded(Proposal {
                push: push(repository),
                description: None
            })),
            ["show_change", "comment"]
        );
        assert_eq!(
            of(ReportRequest::Skipped(SkipReason::Label { label: "skip".into() })),
            ["comment"]
        );
    }

    #[test]
    fn two_effects_of_one_kind_have_two_names() {
        let comment = |number| Effect::Comment {
            ticket: format!("jira:ENG-{number}").parse().unwrap(),
            say: Say::Opened,
        };
        let unassign = Effect::Unassign {
            issue: "jira:ENG-1".parse().unwrap(),
        };
        let effects = [comment(1), unassign, comment(2), comment(3)];
        let names: Vec<String> = named(&effects).map(|(name, _)| name).collect();
        assert_eq!(names, ["comment", "unassign", "comment.2", "comment.3"]);
    }

    #[test]
    fn a_review_status_moves_the_ticket_at_hand_over() {
        let mut rules = Rules::default();
        rules.agent.review_status = "In Review".to_owned();
        let request = ReportRequest::ChecksPassed {
            pull_request: pull_request(),
            head: commit(),
        };
        assert_eq!(
            names("jira:ENG-12", &rules, request),
            ["mark_ready", "transition", "comment"]
        );
    }

    #[test]
    fn a_github_ticket_is_neither_moved_nor_linked() {
        let rules = Rules::default();
        let request = ReportRequest::Merged {
            pull_request: pull_request(),
            by: "ann".into(),
        };
        assert_eq!(
            names("github:acme/shop#7", &rules, request),
            ["record_end", "comment"]
        );
    }

    #[test]
    fn the_configured_done_status_is_tried_first() {
        let mut rules = Rules::default();
        rules.agent.done_status = "Shipped".to_owned();
        let request = ReportRequest::Merged {
            pull_request: pull_request(),
            by: "ann".into(),
        };
        let effects = plan(&report("jira:ENG-12", request), &rules);
        let Effect::Transition { goals, .. } = &effects[1] else {
            panic!("{effects:?}")
        };
        assert_eq!(goals[0], "Shipped");
        assert!(goals.contains(&"resolved".to_owned()));
    }
}
