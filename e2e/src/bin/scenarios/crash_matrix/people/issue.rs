//! Users of a GitHub issue.

use anyhow::Context;
use domain::TicketKey;
use serde_json::json;
use testkit::{
    ScriptStep, fixture,
    fixture::REPOSITORY,
    github::{RunConclusion, StandInPullRequest, WRITER_LOGIN},
};

use crate::crash_matrix::stage::MatrixStage;

const AGENT: &str = "journeyman-agent";
const PERSON: &str = "rita";
/// Note that a user adds to the branch.
const NOTE: [(&str, &str); 1] = [("notes/person.md", "By a person.\n")];

/// Rules of the story, in addition to the default ones.
pub(crate) const RULES: &str = "agent:\n  approval: before_push\nissues:\n  assignee: journeyman-agent\n\
     triage:\n  labels: [bug, docs]\n  types: [Bug]\n  priorities: [High]\n  \
     project: {owner: acme, number: 3, priority_field: Urgency}\npull_request:\n  labels: [by an agent]\n";

/// Memory of the users.
#[derive(Default)]
pub(crate) struct PeopleOfIssue {
    /// Number of the issue, after its creation.
    number: Option<u64>,
    /// Number of assignments so far.
    assigned: u32,
    /// Commits that a user has approved.
    approved: Vec<String>,
    /// True after CI has failed with an infrastructure error.
    failed: bool,
    /// True after the rerun jobs have ended.
    ended: bool,
    /// True after a user has pushed.
    pushed: bool,
}

impl MatrixStage {
    pub(crate) fn set_up_issue(&self) -> anyhow::Result<()> {
        self.github
            .create_project("acme", 3, &[("Urgency", "SINGLE_SELECT", &["High"])]);
        let target = self.story.target();
        self.github.commit(REPOSITORY, target, "Next", &[])?;
        let labels = vec![ScriptStep::call(
            "submit_triage",
            json!({"labels": ["bug"], "type": "Bug", "priority": "High"}),
        )];
        self.model.set_script_of("Sort this ticket", "", labels);
        Ok(())
    }

    /// Performs the next action of users and CI. Returns true when the issue is closed.
    ///
    /// # Errors
    /// When a stand-in refuses the action.
    pub(crate) fn act_on_issue(&mut self) -> anyhow::Result<bool> {
        let Some(number) = self.people.of_issue.number else {
            let (title, text) = fixture::describe_shop_ticket();
            let number = self.github.open_issue_as(REPOSITORY, PERSON, title, text)?;
            self.people.of_issue.number = Some(number);
            let repository = REPOSITORY.parse()?;
            self.tickets = vec![TicketKey::GitHub { repository, number }];
            return Ok(false);
        };
        let issue = self.github.issue(REPOSITORY, number).context("the issue")?;
        // The ticket of Jira is sorted, too. Its model must not fail, even if a restart delays it.
        let is_triaged = [issue.labels.clone(), self.jira.labels(&self.key)]
            .iter()
            .all(|labels| labels.iter().any(|label| label == "triaged"));
        let said = self.said_on(number);
        let is_given_back = issue.assignees.is_empty() && said.contains("assign the issue again");
        match self.people.of_issue.assigned {
            // The model fails from now on.
            0 if is_triaged => self.assign(number, u32::MAX)?,
            // The model works again.
            1 if is_given_back => self.assign(number, 0)?,
            _ => {}
        }
        self.approve(number, &said)?;
        let open = self.pull_requests().into_iter().find(|pull| pull.open);
        if let Some(pull) = open {
            self.handle_issue_work(&pull, &said)?;
        }
        Ok(!issue.open && said.contains("merged"))
    }

    /// Returns our comments on an issue or pull request.
    pub(crate) fn said_on(&self, number: u64) -> String {
        let comments = self.github.comments(REPOSITORY, number).into_iter();
        let ours = comments.filter(|comment| comment.author == WRITER_LOGIN);
        ours.map(|comment| comment.body).collect()
    }

    fn assign(&mut self, number: u64, garbled: u32) -> anyhow::Result<()> {
        self.model.garble_next(garbled);
        self.people.of_issue.assigned += 1;
        self.github.assign_issue(REPOSITORY, number, AGENT, PERSON)
    }

    /// Approves each commit that a comment asks about, once.
    fn approve(&mut self, number: u64, said: &str) -> anyhow::Result<()> {
        // The last question is the current one.
        let asked = said.rsplit_once("/approve ").map(|(_, rest)| rest);
        let commit: String = asked
            .into_iter()
            .flat_map(|rest| rest.chars().take_while(char::is_ascii_hexdigit))
            .collect();
        if commit.is_empty() || self.people.of_issue.approved.contains(&commit) {
            return Ok(());
        }
        let order = format!("/approve {commit}");
        self.people.of_issue.approved.push(commit);
        self.github.comment_as(REPOSITORY, number, PERSON, &order)?;
        Ok(())
    }

    /// Reports one CI failure of the runner, then pushes a change without checks as a user, and merges.
    fn handle_issue_work(&mut self, pull: &StandInPullRequest, said: &str) -> anyhow::Result<()> {
        // GitHub has the pull request before the issue states it. A result of CI in between would change the
        // order of the comments.
        let people = &mut self.people.of_issue;
        let runs_again = self.github.reruns(REPOSITORY)? == 1 && said.contains("The failed jobs run again");
        if !people.failed && said.contains("Draft") {
            people.failed = true;
            let red = [("build", RunConclusion::Failure, "write: No space left on device")];
            self.github.run_checks(REPOSITORY, &pull.head_sha, &red)?;
        } else if runs_again && !std::mem::replace(&mut people.ended, true) {
            self.github.end_reruns(REPOSITORY, RunConclusion::Success, "")?;
        } else if !pull.draft
            && said.contains("All checks passed")
            && !std::mem::replace(&mut people.pushed, true)
        {
            self.github
                .commit(REPOSITORY, &pull.head, "Add a note of mine", &NOTE)?;
        } else if !pull.draft && said.contains("No check reports") {
            self.github.merge(REPOSITORY, pull.number, PERSON)?;
        }
        Ok(())
    }

    /// Returns the final state of the issue.
    pub(crate) fn seen_of_issue(&self) -> anyhow::Result<Vec<String>> {
        let number = self.people.of_issue.number.context("the issue")?;
        let issue = self.github.issue(REPOSITORY, number).context("the issue")?;
        Ok(vec![
            format!("type {}", issue.issue_type.unwrap_or_default()),
            format!(
                "fields {:?}",
                self.github.project_values(("acme", 3), REPOSITORY, number)?
            ),
            format!("labels {}", issue.labels.join(", ")),
            format!("assignees {}", issue.assignees.join(", ")),
            format!("closed as {}", issue.closed_as.unwrap_or_default()),
            format!("jobs that ran again {}", self.github.reruns(REPOSITORY)?),
        ])
    }

    /// Number of the issue, after its creation.
    pub(crate) fn issue_number(&self) -> Option<u64> {
        self.people.of_issue.number
    }
}

/// Expected state of the issue.
pub(crate) const SEEN: [&str; 6] = [
    "type Bug",
    "fields Some({\"Urgency\": \"High\"})",
    "labels bug, triaged",
    "assignees journeyman-agent",
    "closed as completed",
    "jobs that ran again 1",
];
