//! Performs the steps of a plan.

use std::collections::BTreeMap;

use domain::{CommitId, PullRequestRef, Refusal, TicketKey};
use pullrequest::{Answer, Kind, Open, Plan, Problem, Request, Step};

use super::{
    Direct, Ground, jira_problem,
    look::{as_open, not_created},
    problem,
    tries::tried,
};
use crate::{
    effects::{comment_on_issue, link_pull_request, open_pull_request},
    message,
    mirror::addressed,
    outgoing::Outgoing,
    trouble::Trouble,
};

impl Direct {
    /// Performs the plan. Without a pull request, no later step runs. Failures at Jira are reported and undo nothing.
    pub async fn write(&self, request: &Request, ground: &Ground, plan: &Plan) -> Answer {
        let open = match self.pull_request(ground, plan).await {
            Ok(open) => open,
            Err(problem) => return Answer::failed(vec![problem]),
        };
        let mut answer = Answer::opened(open.number, &open.url, &ground.seen.issue);
        answer.marked_ready = request.mark_ready && !open.draft;
        answer.jira_status.transitioned = plan.is_in_review;
        for step in &plan.steps {
            self.follow(ground, &open, step, &mut answer).await;
        }
        for problem in &plan.problems {
            answer.without_jira(problem.clone());
        }
        answer
    }

    /// Performs the steps up to the pull request.
    async fn pull_request(&self, ground: &Ground, plan: &Plan) -> Result<Open, Problem> {
        let mut open = plan.open.clone();
        for step in &plan.steps {
            match step {
                Step::PushBranch { commit, expected, .. } => {
                    self.push(ground, commit, expected.as_ref()).await?;
                }
                Step::OpenPullRequest { draft, .. } => open = Some(self.open(ground, *draft).await?),
                Step::MarkReady | Step::LinkIssue { .. } | Step::MoveIssue { .. } => {}
            }
        }
        open.ok_or_else(|| Problem::new(Kind::UnknownError, "The plan opens no pull request"))
    }

    /// Performs one of the steps after the pull request.
    async fn follow(&self, ground: &Ground, open: &Open, step: &Step, answer: &mut Answer) {
        match step {
            Step::PushBranch { .. } | Step::OpenPullRequest { .. } => {}
            Step::MarkReady => match self.mark_ready(ground, open).await {
                Ok(()) => answer.marked_ready = true,
                Err(problem) => answer.errors.push(problem),
            },
            Step::LinkIssue { jira_key } => match self.link(ground, open, jira_key).await {
                Ok(()) => answer.jira_status.linked = true,
                Err(problem) => answer.without_jira(problem),
            },
            Step::MoveIssue {
                jira_key,
                leads_to,
                fields,
                id,
                ..
            } => match self.move_issue(jira_key, id, leads_to, fields).await {
                Ok(status) => {
                    answer.jira_status.transitioned = true;
                    answer.jira_status.current_state = Some(status);
                }
                Err(problem) => answer.without_jira(problem),
            },
        }
    }

    /// Pushes from a view of the folder, so that neither its settings nor its hooks apply. Never replaces commits of
    /// others.
    async fn push(
        &self,
        ground: &Ground,
        commit: &CommitId,
        expected: Option<&CommitId>,
    ) -> Result<(), Problem> {
        let branch = &ground.draft.branch;
        let Some(view) = &ground.view else {
            return Err(
                Problem::new(Kind::UnknownError, "There is no folder to push from").about_branch(branch),
            );
        };
        let transport = view.transport();
        let pushed = tried(Kind::GitPushFailed.retries(), || async {
            let (url, auth) = addressed(self.github.push_remote(&ground.draft.repository)).await?;
            let pushed = transport.push(&url, Some(&auth), commit, branch, expected);
            pushed.await.map_err(|error| Trouble::of_push(error, branch))
        });
        let failed = |gave_up| {
            problem(
                Kind::GitPushFailed,
                format!("Failed to push branch '{branch}'"),
                &gave_up,
            )
            .about_branch(branch)
        };
        pushed.await.map(drop).map_err(failed)
    }

    async fn open(&self, ground: &Ground, is_draft: bool) -> Result<Open, Problem> {
        let opened = tried(Kind::PrCreationFailed.retries(), || async {
            match self.opened_before(ground).await? {
                Some(open) => Ok(open),
                None => self.open_once(ground, is_draft).await,
            }
        });
        opened
            .await
            .map_err(|gave_up| not_created(&ground.draft, &gave_up))
    }

    /// Finds the pull request of an earlier try whose response was lost.
    async fn opened_before(&self, ground: &Ground) -> Result<Option<Open>, Trouble> {
        match self.find_open(&ground.draft).await? {
            Some(open) if !open.by_us => Err(Trouble::Refused(Refusal::ForeignPullRequest {
                number: open.number,
                author: String::new(),
            })),
            found => Ok(found),
        }
    }

    async fn open_once(&self, ground: &Ground, is_draft: bool) -> Result<Open, Trouble> {
        let Ground {
            draft, title, body, ..
        } = ground;
        match open_pull_request(&self.github, draft, title, body, is_draft).await {
            Ok(opened) => Ok(as_open(opened)),
            // The pull request exists, although GitHub's list may not show it yet.
            Err(error @ github::Error::Conflict { .. }) => {
                let there = self.opened_before(ground).await?;
                there.ok_or_else(|| Trouble::Unknown(domain::cause::chain(&error)))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn mark_ready(&self, ground: &Ground, open: &Open) -> Result<(), Problem> {
        let repository = &ground.draft.repository;
        let marked = tried(Kind::MarkReadyFailed.retries(), || async {
            let now = self.github.pull_request(repository, open.number).await?;
            Ok(self
                .github
                .mark_ready(repository, open.number, &now.node_id)
                .await?)
        });
        let failed = |gave_up| {
            let message = format!("Could not mark pull request {} ready for review", open.number);
            problem(Kind::MarkReadyFailed, message, &gave_up)
        };
        marked.await.map_err(failed)
    }

    /// Adds a link to the issue, or a comment if Jira refuses the link.
    async fn link(&self, ground: &Ground, open: &Open, key: &str) -> Result<(), Problem> {
        let (jira, issue) = self.issue_to_write(key)?;
        let made = PullRequestRef {
            repository: ground.draft.repository.clone(),
            number: open.number,
            url: open.url.clone(),
            branch: ground.draft.branch.clone(),
        };
        let title = Outgoing::without_credentials(&message::remote_link_title(&made));
        let linked = tried(Kind::JiraLinkFailed.retries(), || async {
            Ok(link_pull_request(jira, &issue, &made, &title).await?)
        });
        let Err(not_linked) = linked.await else {
            return Ok(());
        };
        let commented = tried(Kind::JiraLinkFailed.retries(), || async {
            comment_once(jira, &issue, &made).await
        });
        let message = format!("Could not link the pull request on {key}");
        let failed = |_| jira_problem(Kind::JiraLinkFailed, key, message, &not_linked);
        commented.await.map_err(failed)
    }

    /// Performs a transition and returns the new status.
    async fn move_issue(
        &self,
        key: &str,
        transition: &str,
        leads_to: &str,
        fields: &BTreeMap<String, String>,
    ) -> Result<String, Problem> {
        let (jira, issue) = self.issue_to_write(key)?;
        let moved = tried(Kind::JiraTransitionFailed.retries(), || async {
            let filled = filled_in(jira, &issue, transition, fields).await?;
            match jira
                .transition(&issue, transition, &filled)
                .await
                .map_err(Trouble::from)
            {
                // The response was lost: the status shows if the transition happened.
                Err(Trouble::Unknown(detail)) => match jira.status(&issue).await?.name {
                    status if status == leads_to => Ok(status),
                    _ => Err(Trouble::Unknown(detail)),
                },
                done => done.map(|()| leads_to.to_owned()),
            }
        });
        let message = format!("Could not transition {key} to Code Review state");
        moved
            .await
            .map_err(|gave_up| jira_problem(Kind::JiraTransitionFailed, key, message, &gave_up))
    }

    fn issue_to_write(&self, key: &str) -> Result<(&jira::Writer, TicketKey), Problem> {
        let pair = self.jira.as_ref().zip(TicketKey::jira(key).ok());
        pair.ok_or_else(|| Problem::new(Kind::UnknownError, "The issue was not looked at").about_issue(key))
    }
}

/// Fills the fields of the transition's screen. Without fields of the caller, the screen is not read.
async fn filled_in(
    jira: &jira::Writer,
    issue: &TicketKey,
    transition: &str,
    fields: &BTreeMap<String, String>,
) -> Result<serde_json::Map<String, serde_json::Value>, Trouble> {
    if fields.is_empty() {
        return Ok(serde_json::Map::new());
    }
    let offered = jira.transitions(issue).await?;
    let meant = offered.iter().find(|one| one.id == transition);
    Ok(meant.map(|one| one.fill(fields).fields).unwrap_or_default())
}

/// Comments on the issue unless our comment about this pull request exists.
async fn comment_once(jira: &jira::Writer, issue: &TicketKey, made: &PullRequestRef) -> Result<(), Trouble> {
    let marker = format!("pull-request:{}#{}", made.repository, made.number);
    let ours = jira.list_comments(issue).await?;
    if ours
        .iter()
        .any(|comment| comment.by_us && comment.marker == marker)
    {
        return Ok(());
    }
    let text = Outgoing::without_credentials(&message::link_comment(made));
    comment_on_issue(jira, issue, &text, &marker, jira::Audience::Internal).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use pullrequest::{Heads, IssueSeen, Place, Seen, Status};
    use secrecy::SecretString;

    use super::*;
    use crate::draft::Draft;

    #[tokio::test]
    async fn plan_without_pull_request_is_unknown_error() {
        bootstrap::install_tls_provider();
        let account = github::Settings {
            token: Some(SecretString::from("secret")),
            ..github::Settings::default()
        };
        let direct = Direct::with(github::Writer::new(&account).unwrap(), None, &[]);
        let repository: domain::RepositoryName = "acme/shop".parse().unwrap();
        let request = Request {
            branch: "feature/login".to_owned(),
            base_branch: "main".to_owned(),
            title: "Add a login".to_owned(),
            description: "A login form".to_owned(),
            jira_key: None,
            mark_ready: false,
            draft: true,
            transition: None,
            transition_fields: BTreeMap::new(),
            dry_run: false,
            place: Place::GitHub(repository.clone()),
        };
        let ground = Ground {
            seen: Seen {
                heads: Heads::default(),
                open: None,
                issue: IssueSeen::NotAsked,
            },
            draft: Draft {
                repository,
                branch: request.branch.clone(),
                base_branch: request.base_branch.clone(),
                title: request.title.clone(),
                body: request.description.clone(),
                description: None,
            },
            title: Outgoing::default(),
            body: Outgoing::default(),
            view: None,
        };
        let push = Step::PushBranch {
            branch: request.branch.clone(),
            commit: "a".repeat(40).parse().unwrap(),
            expected: None,
        };
        for steps in [Vec::new(), vec![push]] {
            let plan = Plan {
                open: None,
                steps,
                problems: Vec::new(),
                is_in_review: false,
            };
            let answer = direct.write(&request, &ground, &plan).await;
            assert_eq!(answer.status, Status::Failed);
            assert_eq!(answer.errors[0].kind, Kind::UnknownError, "{answer:?}");
        }
    }
}
