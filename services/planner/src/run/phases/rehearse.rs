//! Lists the reports of a successful job, with fixed text in place of the model's.

use domain::report::{
    Begun, ChecksRepaired, Discussed, OpenIssues, OpenPullRequest, PlanProposed, PullRequestReviewed,
    QuestionAnswered, Rehearse, RepairStrategy, ReviewAddressed, Triaged, WorkDelivered, WorkStarted,
};
use domain::{
    About, Answered, Approval, CommentQuestion, CommitId, Description, DiscussionTask, Disposition, Finish,
    Handover, Job, JobRequest, Naming, ObjectRef, Plan, PlannedIssue, Proposal, PullRequestRef, PushBranch,
    Rehearsal, ReportOutcome, ReportRequest, ReviewOfChange, StopReason, ThreadReply, WaitsFor,
};

use crate::run::machine::{PhaseSpec, RunState, Step, ask, park, report_failed};

// Text in place of the model's.
const WORDS: &str = "(mock)";

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let Some((request, rehearsal)) = state
        .request()
        .and_then(|request| Some((request, request.about.rehearsal()?)))
    else {
        return Step::Over;
    };
    match state.reports.first().map(|report| &report.outcome) {
        None => {
            let rehearse = Rehearse {
                job: rehearsal.job,
                repository: request.repository.clone(),
                requests: requests(state, request, rehearsal),
            };
            ask(state, ReportRequest::Rehearse(rehearse), None).into()
        }
        Some(None) => park(state, WaitsFor::Report).into(),
        Some(Some(ReportOutcome::Done(_))) => Step::Over,
        Some(Some(ReportOutcome::Refused(refusal))) => {
            Step::Finish(StopReason::ReportRefused(refusal.clone()))
        }
        Some(Some(ReportOutcome::Failed { detail })) => Step::Retry(report_failed(detail)),
    }
}

fn requests(state: &RunState, request: &JobRequest, rehearsal: &Rehearsal) -> Vec<ReportRequest> {
    match (rehearsal.job, &rehearsal.about) {
        (Job::Implement, _) => implement(state, request),
        (Job::Triage, _) => {
            let rules = &request.rules.triage;
            let choices = rules.choices(state.run.ticket());
            let first = |values: &[String]| values.first().cloned();
            let fields = choices.fields.iter();
            let fields = fields.filter_map(|(name, values)| Some((name.clone(), first(values)?)));
            let labels = first(&choices.labels)
                .into_iter()
                .chain([rules.done_label.clone()]);
            let triaged = Triaged {
                repository: Some(request.repository.clone()),
                labels: labels.collect(),
                duplicate_of: None,
                issue_type: first(&choices.types),
                priority: first(&choices.priorities),
                fields: fields.collect(),
            };
            vec![triaged.into()]
        }
        (Job::Answer, About::Question(question)) => vec![
            QuestionAnswered {
                repository: request.repository.clone(),
                question: CommentQuestion {
                    work: None,
                    ..(**question).clone()
                },
                answer: Answered {
                    answer: WORDS.to_owned(),
                    ..Answered::default()
                },
            }
            .into(),
        ],
        (Job::Discuss, About::Discussion(discussion)) => vec![discussed(request, discussion.task)],
        (Job::Review, About::Change(change)) => vec![
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
        (job, about) => on_branch(request, job, about).unwrap_or_default(),
    }
}

fn discussed(request: &JobRequest, task: DiscussionTask) -> ReportRequest {
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
        DiscussionTask::Research | DiscussionTask::Summarize | DiscussionTask::Complete => Discussed {
            repository,
            task,
            answer: Answered {
                answer: WORDS.to_owned(),
                ..Answered::default()
            },
        }
        .into(),
    }
}

/// Returns the reports of a change with its pull request, as far as the rules require one.
fn implement(state: &RunState, request: &JobRequest) -> Vec<ReportRequest> {
    let handover = Handover {
        title: request.text.summary.clone(),
        summary: WORDS.to_owned(),
        ..Handover::default()
    };
    let naming = Naming::new(&request.rules, state.run.ticket());
    let named = naming.of(&handover, &request.text.kind);
    let push = push(request, naming.branch(named), None);
    let description = Box::new(Description {
        kind: request.text.kind.clone(),
        ticket: request.text.summary.clone(),
        handover: handover.clone(),
        ..Description::default()
    });
    let mut requests = vec![started(request, Job::Implement)];
    if request.rules.agent.approval == Approval::Plan {
        requests.push(plan(request));
    }
    requests.extend(decision(request, &push, Some(description.clone())));
    if request.rules.agent.finish == Finish::Done && request.repository.local_folder().is_none() {
        requests.push(WorkDelivered { push, description }.into());
        return requests;
    }
    let open = OpenPullRequest {
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
fn on_branch(request: &JobRequest, job: Job, about: &About) -> Option<Vec<ReportRequest>> {
    let (ours, head) = about.pull_request()?;
    let commit = Some(CommitId::null());
    let told = match about {
        About::Checks(_) => ChecksRepaired {
            pull_request: ours.clone(),
            commit,
            strategy: RepairStrategy::Model,
            by: Vec::new(),
            summary: WORDS.to_owned(),
        }
        .into(),
        About::Review(round) => ReviewAddressed {
            pull_request: ours.clone(),
            reviewer: round.author.clone(),
            commit,
            summary: WORDS.to_owned(),
            replies: round.threads.iter().map(|thread| reply(thread.id)).collect(),
            left: round.left.clone(),
            deciders: round.deciders.clone(),
        }
        .into(),
        About::Ticket
        | About::Question(_)
        | About::Change(_)
        | About::Discussion(_)
        | About::Rehearsal(_) => return None,
    };
    let PullRequestRef { branch, .. } = ours;
    let push = push(request, branch.clone(), Some(head.clone()));
    let mut requests = vec![started(request, job)];
    requests.extend(decision(request, &push, None));
    requests.extend([push.into(), told]);
    Some(requests)
}

fn plan(request: &JobRequest) -> ReportRequest {
    let plan = Plan {
        goal: WORDS.to_owned(),
        ..Plan::default()
    };
    PlanProposed {
        repository: request.repository.clone(),
        id: CommitId::null(),
        plan: Box::new(plan),
    }
    .into()
}

/// Returns the decision request before a push, where the rules require it.
fn decision(
    request: &JobRequest,
    push: &PushBranch,
    description: Option<Box<Description>>,
) -> Option<ReportRequest> {
    (request.rules.agent.approval == Approval::BeforePush).then(|| {
        ReportRequest::DecisionNeeded(Proposal {
            push: push.clone(),
            description,
        })
    })
}

fn reply(id: u64) -> ThreadReply {
    ThreadReply {
        id,
        disposition: Disposition::Answered,
        reply: WORDS.to_owned(),
    }
}

fn started(request: &JobRequest, job: Job) -> ReportRequest {
    let repository = request.repository.clone();
    let begun = Begun::default();
    WorkStarted {
        job,
        repository,
        begun,
    }
    .into()
}

/// Returns a push without content, because nothing is committed.
fn push(request: &JobRequest, branch: String, expected: Option<CommitId>) -> PushBranch {
    PushBranch {
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
    }
}
