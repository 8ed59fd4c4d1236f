//! Users of two triaged Jira tickets, and of work that a comment requests and a user has to complete.

use anyhow::Context;
use domain::TicketKey;
use serde_json::{Value, json};
use testkit::{
    ScriptStep, fixture,
    fixture::REPOSITORY,
    github::{RunConclusion, WRITER_LOGIN},
    jira,
};

use crate::crash_matrix::stage::MatrixStage;

const PERSON: &str = "ada";
const TRIAGE: &str = "Sort this ticket";
const FAILURE: [(&str, RunConclusion, &str); 1] =
    [("notes", RunConclusion::Failure, "AssertionError: no note")];

/// Rules of the story, in addition to the default ones.
pub(crate) const RULES: &str = "agent:\n  assign: true\ntriage:\n  labels: [bug]\n  priorities: [Highest, High]\n  \
     duplicate_label: twin\npull_request:\n  reviewers: [grace]\n";

/// Memory of the users.
#[derive(Default)]
pub(crate) struct PeopleOfAsked {
    /// Key of the second ticket, after its creation.
    second: Option<String>,
    /// True after a user has requested the work.
    has_asked: bool,
    /// Head commits that CI has reported on.
    checked: Vec<String>,
}

fn sorted_as(input: Value) -> Vec<ScriptStep> {
    vec![ScriptStep::call("submit_triage", input)]
}

impl MatrixStage {
    pub(crate) fn set_up_asked(&self) {
        self.model
            .set_script_of(TRIAGE, "", sorted_as(json!({"labels": ["bug"]})));
        let takes_it = json!({"answer": "I understood what is to be done.", "needs_change": true});
        let takes_it = vec![ScriptStep::call("submit_answer", takes_it)];
        self.model.set_script_of("Answer this question", "", takes_it);
    }

    /// Performs the next action of users and CI. Returns true after a user is called because a repair did not
    /// fix the checks.
    ///
    /// # Errors
    /// When a stand-in refuses the action.
    pub(crate) fn act_on_asked(&mut self) -> anyhow::Result<bool> {
        if self.tickets.is_empty() {
            self.key = self.file();
            self.tickets = vec![TicketKey::jira(&self.key)?];
            return Ok(false);
        }
        let Some(second) = self.people.of_asked.second.clone() else {
            if self.is_triaged(&self.key) {
                self.file_second()?;
            }
            return Ok(false);
        };
        if self.is_triaged(&second) && !std::mem::replace(&mut self.people.of_asked.has_asked, true) {
            self.jira
                .comment_as(&self.key, PERSON, "@Journeyman please mend the total")?;
        }
        // GitHub has a head before the ticket states it. A result of CI in between would change the order of
        // the comments.
        let said = self.said();
        let stated = said.matches("when its checks pass").count();
        let is_stated = stated > self.people.of_asked.checked.len().min(1);
        let open = self.pull_requests().into_iter().find(|pull| pull.open);
        let Some(pull) = open.filter(|_| is_stated) else {
            return Ok(false);
        };
        let checked = &mut self.people.of_asked.checked;
        if checked.len() < 2 && !checked.contains(&pull.head_sha) {
            self.github.run_checks(REPOSITORY, &pull.head_sha, &FAILURE)?;
            checked.push(pull.head_sha);
        }
        let comments = self.github.comments(REPOSITORY, pull.number);
        let mut ours = comments.iter().filter(|comment| comment.author == WRITER_LOGIN);
        Ok(ours.any(|comment| comment.body.contains("@grace")))
    }

    fn file(&self) -> String {
        let (summary, description) = fixture::describe_shop_ticket();
        let jira = &self.jira;
        jira.create_issue(fixture::PROJECT, summary, description, "Bug", &[])
    }

    fn file_second(&mut self) -> anyhow::Result<()> {
        let repeats = json!({"labels": ["bug"], "priority": "High", "duplicate_of": self.key});
        self.model.set_script_of(TRIAGE, "", sorted_as(repeats));
        let second = self.file();
        self.tickets.push(TicketKey::jira(&second)?);
        self.people.of_asked.second = Some(second);
        Ok(())
    }

    fn is_triaged(&self, key: &str) -> bool {
        self.jira.labels(key).iter().any(|label| label == "triaged")
    }

    /// Returns the final state of both tickets.
    pub(crate) fn seen_of_asked(&self) -> anyhow::Result<Vec<String>> {
        let second = self
            .people
            .of_asked
            .second
            .as_ref()
            .context("the second ticket")?;
        let links = self.jira.issue_links();
        let assignee = self.jira.assignee(&self.key).unwrap_or_default();
        Ok(vec![
            format!("ours: {}", assignee == jira::WRITER_NAME),
            format!("labels {}", self.jira.labels(second).join(", ")),
            format!("priority {}", self.jira.priority(second).unwrap_or_default()),
            format!("links {}", links.len()),
            format!("comments on the second {}", self.jira.comments(second).len()),
        ])
    }
}

/// Expected state of both tickets. The first one is assigned back to the called user.
pub(crate) const SEEN: [&str; 5] = [
    "ours: false",
    "labels bug, triaged, twin",
    "priority High",
    "links 1",
    "comments on the second 1",
];
