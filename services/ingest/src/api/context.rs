//! Context of a job in `POST /v1/jobs`, as given by the caller.

use api::types::ContextBody;
use domain::{DiscussionTask, Job, JobInput, PullRequestRecord, ReactionSubject, TicketKey};
use serde_json::{Map, Value};

use super::ApiProblem;
use crate::router::EventRouter;

/// Validated context of a job.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JobContext {
    /// Number of the pull request.
    pub(super) number: Option<u64>,
    issue: Option<u64>,
    discussion: Option<u64>,
    /// Number of an issue, a pull request or a discussion.
    resource: Option<u64>,
    comment: Option<String>,
    /// Task for a discussion.
    pub(super) task: Option<DiscussionTask>,
    /// Instructions, question or feedback of the caller.
    pub(super) words: Option<String>,
}

impl JobContext {
    /// Validates the context of a job. Text that the job does not use is refused, so that no caller believes it had
    /// an effect.
    pub(super) fn of(job: Job, given: Option<&Map<String, Value>>) -> Result<Self, ApiProblem> {
        let body = given.map_or_else(|| Ok(ContextBody::default()), parse_context)?;
        let texts = [
            ("instructions", body.instructions),
            ("question", body.question),
            ("feedback", body.feedback),
        ];
        let accepted = job.inputs().iter().find_map(|input| input.text_field());
        let mut words = None;
        for (name, text) in texts {
            let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            if accepted != Some(name) {
                return Err(build_problem(format!("the job {job} takes no context.{name}")));
            }
            if text.chars().count() > ContextBody::WORDS_CHARS {
                return Err(build_problem(format!(
                    "context.{name} must be at most {} characters",
                    ContextBody::WORDS_CHARS
                )));
            }
            words = Some(text);
        }
        if job.inputs().contains(&JobInput::Question) && words.is_none() {
            return Err(build_problem(format!("the job {job} needs context.question")));
        }
        Ok(Self {
            number: parse_number("pr_number", body.pr_number.as_ref())?,
            issue: parse_number("issue_number", body.issue_number.as_ref())?,
            discussion: parse_number("discussion_number", body.discussion_number.as_ref())?,
            resource: parse_number("resource_number", body.resource_number.as_ref())?,
            comment: parse_comment_id(job, body.comment_id)?,
            task: parse_task(job, body.task.as_deref())?,
            words,
        })
    }

    /// Our pull request, when the named ticket is one. Numbers in the context must match the ticket.
    pub(super) async fn about(
        &self,
        router: &EventRouter,
        named: &TicketKey,
    ) -> Result<Option<PullRequestRecord>, ApiProblem> {
        let (named_number, discussed) = match named {
            TicketKey::Discussion { number, .. } => (*number, Some(*number)),
            TicketKey::Jira { number, .. }
            | TicketKey::GitHub { number, .. }
            | TicketKey::Folder { number, .. } => (*number, None),
        };
        if let Some(other) = self.resource.filter(|number| *number != named_number) {
            return Err(build_problem(format!(
                "context.resource_number is {other}, and the ticket is {named}"
            )));
        }
        if let Some(other) = self.discussion.filter(|number| discussed != Some(*number)) {
            return Err(build_problem(format!(
                "context.discussion_number is {other}, and the ticket is {named}"
            )));
        }
        let TicketKey::GitHub { repository, number } = named else {
            return match self.issue {
                Some(issue) => Err(build_problem(format!(
                    "context.issue_number is {issue}, and the ticket is {named}"
                ))),
                None => Ok(None),
            };
        };
        let record = router.queue.pull_requests().get(repository, *number).await?;
        let of_its_ticket = record.as_ref().and_then(|record| match &record.ticket {
            TicketKey::GitHub { number, .. } => Some(*number),
            TicketKey::Jira { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => None,
        });
        // Dispatchers may send the number of the pull request or of the issue that it is for.
        let is_named = |given: &u64| given == number || Some(*given) == of_its_ticket;
        let numbers = [
            ("issue_number", self.issue),
            ("pr_number", self.number.filter(|_| record.is_some())),
        ];
        for (name, given) in numbers {
            if let Some(other) = given.filter(|given| !is_named(given)) {
                return Err(build_problem(format!(
                    "context.{name} is {other}, and the ticket is {named}"
                )));
            }
        }
        Ok(record)
    }
}

impl JobContext {
    /// Comment that requests the job, on the named ticket.
    pub(super) fn comment(&self, named: &TicketKey) -> Result<Option<ReactionSubject>, ApiProblem> {
        let Some(id) = &self.comment else {
            return Ok(None);
        };
        let found = match named {
            TicketKey::GitHub { repository, .. } => id.parse().ok().map(|id| ReactionSubject::Comment {
                repository: repository.clone(),
                id,
            }),
            TicketKey::Discussion { repository, number } => {
                is_node_id(id).then(|| ReactionSubject::Discussion {
                    repository: repository.clone(),
                    number: *number,
                    comment: Some(id.clone()),
                })
            }
            TicketKey::Jira { .. } | TicketKey::Folder { .. } => {
                return Err(build_problem(
                    "context.comment_id is for a comment on GitHub".to_owned(),
                ));
            }
        };
        let wrong = || build_problem(format!("context.comment_id is no comment's id on {named}"));
        found.map(Some).ok_or_else(wrong)
    }
}

/// True for a possible global id of GitHub, as comments of discussions have it. Such an id never consists of digits
/// alone.
fn is_node_id(text: &str) -> bool {
    let is_of_one = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '=');
    text.len() <= 100 && text.chars().all(is_of_one) && text.contains(|c: char| !c.is_ascii_digit())
}

/// Id of the comment, for jobs that answer one.
fn parse_comment_id(job: Job, given: Option<Value>) -> Result<Option<String>, ApiProblem> {
    let id = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(id)) if id.is_empty() => return Ok(None),
        Some(Value::String(id)) => Some(id),
        Some(Value::Number(id)) => id.as_u64().map(|id| id.to_string()),
        Some(_) => None,
    };
    if !job.inputs().contains(&JobInput::Comment) {
        return Err(build_problem(format!(
            "the job {job} takes no context.comment_id"
        )));
    }
    if id.is_none() {
        return Err(build_problem(
            "context.comment_id must be a number, its digits, or an id of GraphQL".to_owned(),
        ));
    }
    Ok(id)
}

/// Task of a job that has one.
fn parse_task(job: Job, given: Option<&str>) -> Result<Option<DiscussionTask>, ApiProblem> {
    let given = given.filter(|name| !name.is_empty());
    if !job.inputs().contains(&JobInput::Task) {
        return match given {
            Some(_) => Err(build_problem(format!("the job {job} takes no context.task"))),
            None => Ok(None),
        };
    }
    let known = DiscussionTask::ALL
        .into_iter()
        .find(|task| Some(task.as_str()) == given);
    match known {
        Some(task) => Ok(Some(task)),
        None => {
            let names = DiscussionTask::ALL.map(DiscussionTask::as_str).join(", ");
            Err(build_problem(format!(
                "the job {job} needs context.task, one of: {names}"
            )))
        }
    }
}

fn parse_context(given: &Map<String, Value>) -> Result<ContextBody, ApiProblem> {
    let size = serde_json::to_vec(given).map_or(usize::MAX, |text| text.len());
    if size > ContextBody::BYTES {
        return Err(build_problem(format!(
            "context must be at most {} bytes",
            ContextBody::BYTES
        )));
    }
    let read = serde_json::from_value(Value::Object(given.clone()));
    read.map_err(|error| build_problem(format!("context: {error}")))
}

/// Parses a number or its digits. Dispatchers send empty strings for missing values.
fn parse_number(name: &str, value: Option<&Value>) -> Result<Option<u64>, ApiProblem> {
    let number = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64(),
    };
    match number {
        Some(number) if number > 0 => Ok(Some(number)),
        Some(_) | None => Err(build_problem(format!(
            "context.{name} must be a number from 1, or its digits"
        ))),
    }
}

fn build_problem(detail: String) -> ApiProblem {
    ApiProblem::Unprocessable(detail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_job_context(job: Job, given: Value) -> Result<JobContext, String> {
        let Value::Object(given) = given else {
            panic!("an object")
        };
        JobContext::of(job, Some(&given)).map_err(|problem| match problem {
            ApiProblem::Unprocessable(detail) => detail,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn context_accepts_foreign_dispatcher_fields() {
        let given = json!({"trigger_type": "assigned", "issue_number": "123", "issue_title": "Believe me", "issue_body": "…",
            "branch_name": "claude/issue/123", "existing_branch": "false", "ci_result": "", "pr_number": ""});
        let expected = JobContext {
            issue: Some(123),
            ..JobContext::default()
        };
        assert_eq!(parse_job_context(Job::Implement, given), Ok(expected));
        let given =
            json!({"pr_number": 456, "instructions": " ", "issue_section": "Fixes #1", "comment_id": ""});
        let expected = JobContext {
            number: Some(456),
            ..JobContext::default()
        };
        assert_eq!(parse_job_context(Job::Review, given), Ok(expected));
        let given = json!({"resource_number": "789", "discussion_number": "789", "discussion_title": "Believe me",
            "discussion_body": "…", "task": "plan"});
        let expected = JobContext {
            discussion: Some(789),
            resource: Some(789),
            task: Some(DiscussionTask::Plan),
            ..JobContext::default()
        };
        assert_eq!(parse_job_context(Job::Discuss, given), Ok(expected));
        assert_eq!(JobContext::of(Job::Triage, None), Ok(JobContext::default()));
    }

    #[test]
    fn context_comment_id_needs_reactable_place() {
        let on = |job, ticket: &str, id: Value| {
            let ticket: TicketKey = ticket.parse().unwrap();
            let mut given = json!({"comment_id": id});
            given[if job == Job::Answer { "question" } else { "task" }] = json!("plan");
            let comment = parse_job_context(job, given)?.comment(&ticket);
            comment.map_err(|problem| format!("{problem:?}"))
        };
        let repository: domain::RepositoryName = "acme/shop".parse().unwrap();
        let of_issue = ReactionSubject::Comment {
            repository: repository.clone(),
            id: 91,
        };
        let of_discussion = ReactionSubject::Discussion {
            repository,
            number: 7,
            comment: Some("DC_kwDOA-1".to_owned()),
        };
        for (id, expected) in [
            (json!(91), Some(&of_issue)),
            (json!("91"), Some(&of_issue)),
            (json!(""), None),
        ] {
            assert_eq!(
                on(Job::Answer, "github:acme/shop#7", id).unwrap().as_ref(),
                expected
            );
        }
        for job in [Job::Answer, Job::Discuss] {
            let found = on(job, "github:acme/shop/discussions/7", json!("DC_kwDOA-1"));
            assert_eq!(found.unwrap().as_ref(), Some(&of_discussion));
        }
        for (job, ticket, id, complaint) in [
            (Job::Answer, "jira:ENG-1", json!(91), "for a comment on GitHub"),
            (
                Job::Answer,
                "github:acme/shop#7",
                json!("DC_1"),
                "is no comment's id",
            ),
            (
                Job::Answer,
                "github:acme/shop/discussions/7",
                json!(91),
                "is no comment's id",
            ),
            (
                Job::Answer,
                "github:acme/shop/discussions/7",
                json!("DC_1\") {"),
                "is no comment's id",
            ),
            (Job::Answer, "github:acme/shop#7", json!(true), "must be a number"),
        ] {
            let refused = on(job, ticket, id).expect_err(complaint);
            assert!(refused.contains(complaint), "{refused}");
        }
        let refused = parse_job_context(Job::Implement, json!({"comment_id": 91})).unwrap_err();
        assert_eq!(refused, "the job implement takes no context.comment_id");
    }

    #[test]
    fn only_discuss_job_takes_task() {
        let task =
            |job, task: Value| parse_job_context(job, json!({ "task": task })).map(|context| context.task);
        assert_eq!(task(Job::Discuss, json!("plan")), Ok(Some(DiscussionTask::Plan)));
        for (job, given, complaint) in [
            (
                Job::Discuss,
                json!("sing"),
                "one of: research, summarize, plan, complete",
            ),
            (Job::Discuss, json!(""), "needs context.task"),
            (Job::Review, json!("plan"), "takes no context.task"),
        ] {
            let refused = task(job, given).expect_err(complaint);
            assert!(refused.contains(complaint), "{refused}");
        }
    }

    #[test]
    fn context_words_match_job_or_fail() {
        let words = |job, name: &str| {
            parse_job_context(job, json!({ name: "Half up." })).map(|context| context.words)
        };
        let accepted = Ok(Some("Half up.".to_owned()));
        assert_eq!(words(Job::Implement, "instructions"), accepted);
        assert_eq!(words(Job::FixCi, "instructions"), accepted);
        assert_eq!(words(Job::Review, "instructions"), accepted);
        assert_eq!(words(Job::Answer, "question"), accepted);
        assert_eq!(words(Job::AddressReview, "feedback"), accepted);
        for (job, given, complaint) in [
            (
                Job::Triage,
                json!({"instructions": "x"}),
                "takes no context.instructions",
            ),
            (
                Job::Implement,
                json!({"feedback": "x"}),
                "takes no context.feedback",
            ),
            (Job::Answer, json!({}), "needs context.question"),
            (Job::Implement, json!({"pr_numbr": 1}), "unknown field `pr_numbr`"),
            (
                Job::FixCi,
                json!({"pr_number": "seven"}),
                "context.pr_number must be a number",
            ),
            (
                Job::FixCi,
                json!({"instructions": "x".repeat(8_001)}),
                "at most 8000 characters",
            ),
            (
                Job::FixCi,
                json!({"issue_body": "x".repeat(ContextBody::BYTES)}),
                "at most 262144 bytes",
            ),
        ] {
            let refused = parse_job_context(job, given).expect_err(complaint);
            assert!(refused.contains(complaint), "{refused}");
        }
    }
}
