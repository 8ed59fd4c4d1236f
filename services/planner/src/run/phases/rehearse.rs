//! Lists the reports of a successful job, with fixed text in place of the model's.

use domain::report::{
    ChecksRepaired, ConflictResolved, DiscussionResult, OpenIssues, PlanProposed, PullRequestOpening,
    PullRequestReviewed, QuestionAnswered, RehearsalRequest, RepairStrategy, ReviewAddressed, TicketTriaged,
    WorkDelivered, WorkOrigin, WorkStarted,
};
use domain::{
    ApprovalRule, BranchPush, ChangeDescription, ChangeNaming, ChangePlan, CitedAnswer, CommentQuestion,
    CommitId, DiscussionTask, FinishRule, Job, JobRequest, JobSubject, ObjectRef, OutboundAction,
    PlannedIssue, PullRequestRef, PushProposal, RehearsedJob, ReviewOfChange, ThreadDisposition, ThreadReply,
    WorkHandover,
};

use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep, finish_refused, report_once};

// Text in place of the model's.
const WORDS: &str = "(mock)";

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::without_dialog(decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let Some((request, rehearsal)) = state
        .request()
        .and_then(|request| Some((request, request.about.rehearsal()?)))
    else {
        return RunStep::Over;
    };
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::Rehearse(_));
    let rehearse = || {
        OutboundAction::Rehearse(RehearsalRequest {
            job: rehearsal.job,
            repository: request.repository.clone(),
            requests: rehearsed_requests(state, request, rehearsal),
        })
    };
    report_once(state, is_it, rehearse, finish_refused)
}

fn rehearsed_requests(
    state: &PlannerRunState,
    request: &JobRequest,
    rehearsal: &RehearsedJob,
) -> Vec<OutboundAction> {
    match (rehearsal.job, &rehearsal.about) {
        (Job::Implement, _) => rehearsed_change(state, request),
        (Job::Triage, _) => {
            let rules = &request.rules.triage;
            let choices = rules.choices(state.run.ticket());
            let first = |values: &[String]| values.first().cloned();
            let fields = choices.fields.iter();
            let fields = fields.filter_map(|(name, values)| Some((name.clone(), first(values)?)));
            let labels = first(&choices.labels)
                .into_iter()
                .chain([rules.done_label.clone()]);
            let triaged = TicketTriaged {
                repository: Some(request.repository.clone()),
                labels: labels.collect(),
                duplicate_of: None,
                issue_type: first(&choices.types),
                priority: first(&choices.priorities),
                fields: fields.collect(),
            };
            vec![triaged.into()]
        }
        (Job::Answer, JobSubject::Question(question)) => vec![
            QuestionAnswered {
                repository: request.repository.clone(),
                question: CommentQuestion {
                    work: None,
                    ..(**question).clone()
                },
                answer: CitedAnswer {
                    answer: WORDS.to_owned(),
                    ..CitedAnswer::default()
                },
            }
            .into(),
        ],
        (Job::Discuss, JobSubject::Discussion(discussion)) => {
            vec![rehearsed_discussion(request, discussion.task)]
        }
        (Job::Review, JobSubject::Change(change)) => vec![
            PullRequestReviewed {
                pull_request: change.pull_request.clone(),
                head: change.head.clone(),
                review: ReviewOfChange {
                    summary: WORDS.to_owned(),
                    comments: Vec::new(),
                    criteria: Vec::new(),
                },
            }
            .into(),
        ],
        (job, about) => rehearsed_repair(request, job, about).unwrap_or_default(),
    }
}

fn rehearsed_discussion(request: &JobRequest, task: DiscussionTask) -> OutboundAction {
    let repository = request.repository.clone();
    match task {
        DiscussionTask::Plan => OpenIssues {
            repository,
            parent: None,
            issues: vec![PlannedIssue {
                title: request.text.summary.clone(),
                text: WORDS.to_owned(),
                checklist: Vec::new(),
            }],
        }
        .into(),
        DiscussionTask::Research | DiscussionTask::Summarize | DiscussionTask::Complete => DiscussionResult {
            repository,
            task,
            answer: CitedAnswer {
                answer: WORDS.to_owned(),
                ..CitedAnswer::default()
            },
        }
        .into(),
    }
}

/// Returns the reports of a change with its pull request, as far as the rules require one.
fn rehearsed_change(state: &PlannerRunState, request: &JobRequest) -> Vec<OutboundAction> {
    let handover = WorkHandover {
        title: request.text.summary.clone(),
        summary: WORDS.to_owned(),
        ..WorkHandover::default()
    };
    let naming = ChangeNaming::new(&request.rules, state.run.ticket());
    let named = naming.of(&handover, &request.text.kind);
    let push = rehearsed_push(request, naming.branch(named), None);
    let description = Box::new(ChangeDescription {
        kind: request.text.kind.clone(),
        ticket: request.text.summary.clone(),
        handover: handover.clone(),
        ..ChangeDescription::default()
    });
    let mut requests = vec![rehearsed_start(request, Job::Implement)];
    if request.rules.agent.approval == ApprovalRule::Plan {
        requests.push(rehearsed_plan(request));
    }
    requests.extend(rehearsed_decision(request, &push, Some(description.clone())));
    if request.rules.agent.finish == FinishRule::Done && request.repository.local_folder().is_none() {
        requests.push(WorkDelivered { push, description }.into());
        return requests;
    }
    let open = PullRequestOpening {
        repository: request.repository.clone(),
        branch: push.branch.clone(),
        base_branch: request.rules.target_branch().to_owned(),
        title: naming.title(named),
        body: String::new(),
        description: Some(description),
    };
    requests.extend([push.into(), open.into()]);
    requests
}

/// Returns the reports of a push to our pull request.
fn rehearsed_repair(request: &JobRequest, job: Job, about: &JobSubject) -> Option<Vec<OutboundAction>> {
    let (ours, head) = about.pull_request()?;
    let commit = Some(CommitId::null());
    let result = match about {
        JobSubject::Checks(_) => ChecksRepaired {
            pull_request: ours.clone(),
            commit,
            strategy: RepairStrategy::Model,
            by: Vec::new(),
            summary: WORDS.to_owned(),
        }
        .into(),
        JobSubject::Conflict(conflict) => ConflictResolved {
            pull_request: ours.clone(),
            base_branch: conflict.base_branch.clone(),
            base: conflict.base.clone(),
            commit,
            summary: WORDS.to_owned(),
            dropped: Vec::new(),
        }
        .into(),
        JobSubject::Review(round) => ReviewAddressed {
            pull_request: ours.clone(),
            reviewer: round.author.clone(),
            commit,
            summary: WORDS.to_owned(),
            replies: round
                .threads
                .iter()
                .map(|thread| rehearsed_reply(thread.id))
                .collect(),
            left: round.left.clone(),
            deciders: round.deciders.clone(),
        }
        .into(),
        JobSubject::Ticket
        | JobSubject::Question(_)
        | JobSubject::Change(_)
        | JobSubject::Discussion(_)
        | JobSubject::Rehearsal(_) => return None,
    };
    let PullRequestRef { branch, .. } = ours;
    let push = rehearsed_push(request, branch.clone(), Some(head.clone()));
    let mut requests = vec![rehearsed_start(request, job)];
    requests.extend(rehearsed_decision(request, &push, None));
    requests.extend([push.into(), result]);
    Some(requests)
}

fn rehearsed_plan(request: &JobRequest) -> OutboundAction {
    let plan = ChangePlan {
        goal: WORDS.to_owned(),
        ..ChangePlan::default()
    };
    PlanProposed {
        repository: request.repository.clone(),
        id: CommitId::null(),
        plan: Box::new(plan),
    }
    .into()
}

/// Returns the decision request before a push, where the rules require it.
fn rehearsed_decision(
    request: &JobRequest,
    push: &BranchPush,
    description: Option<Box<ChangeDescription>>,
) -> Option<OutboundAction> {
    (request.rules.agent.approval == ApprovalRule::BeforePush).then(|| {
        OutboundAction::DecisionNeeded(PushProposal {
            push: push.clone(),
            description,
        })
    })
}

fn rehearsed_reply(id: u64) -> ThreadReply {
    ThreadReply {
        id,
        disposition: ThreadDisposition::Answered,
        reply: WORDS.to_owned(),
    }
}

fn rehearsed_start(request: &JobRequest, job: Job) -> OutboundAction {
    let repository = request.repository.clone();
    let begun = WorkOrigin::default();
    WorkStarted {
        job,
        repository,
        begun,
    }
    .into()
}

/// Returns a push without content, because nothing is committed.
fn rehearsed_push(request: &JobRequest, branch: String, expected: Option<CommitId>) -> BranchPush {
    BranchPush {
        repository: request.repository.clone(),
        branch,
        base: expected.clone().unwrap_or_else(CommitId::null),
        head: CommitId::null(),
        pack: ObjectRef {
            sha256: "0".repeat(64),
            size_bytes: 0,
        },
        expected,
        scope: None,
        merge: None,
    }
}
