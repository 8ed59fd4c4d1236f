//! Users of a discussion, and of a pull request that a user wrote.

use anyhow::Context;
use domain::TicketKey;
use serde_json::{Value, json};
use testkit::{
    ScriptStep,
    fixture::REPOSITORY,
    github::{StandInDiscussionComment, WRITER_LOGIN},
};

use crate::crash_matrix::stage::MatrixStage;

const REVIEWER: &str = "journeyman-agent";
const PERSON: &str = "rita";
const AUTHOR: &str = "sam";
/// Line of the fixture that answers quote.
const LINE: &str = "return full * (100 - discount_percent) // 100";
/// File that the pull request adds.
const MEAN: [(&str, &str); 1] = [(
    "shop/mean.py",
    "def mean(prices):\n    return sum(prices) / len(prices)\n",
)];

/// Rules of the story, in addition to the default ones.
pub(crate) const RULES: &str = "issues:\n  most_planned: 2\ndiscussions:\n  enabled: true\n  threads: 2\n\
     pull_request:\n  reviewer: journeyman-agent\n";

// Commands of the story, each with the text that completes it and permits the next one. The start of the
// discussion orders the research.
const ORDERS: [(&str, &str); 4] = [
    ("", "Two things are asked."),
    ("/summarize", "Rita asks how we round."),
    ("/plan", "Round the tax"),
    ("/complete", "We round half up."),
];

/// Memory of the users.
#[derive(Default)]
pub(crate) struct PeopleOfTalk {
    /// Numbers of the discussion and the pull request, after their creation.
    numbers: Option<(u64, u64)>,
    /// Number of commands given so far.
    ordered: usize,
}

/// Model replies that read the line and answer with `said`.
fn build_answer_script(said: &str) -> Vec<ScriptStep> {
    let citations = json!([{"path": "shop/cart.py", "line": 36, "quote": LINE}]);
    vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
        ScriptStep::call("submit_answer", json!({"answer": said, "citations": citations})),
    ]
}

fn build_research_script(said: &str) -> Vec<ScriptStep> {
    let citations = json!([{"path": "shop/cart.py", "line": 36, "quote": LINE}]);
    let found = |question: &str| -> Value {
        json!({"question": question, "answer": "In the cart.", "citations": citations})
    };
    let questions = json!([found("How do we round?"), found("Where?")]);
    vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
        ScriptStep::call("submit_answer", json!({"answer": said, "questions": questions})),
    ]
}

fn build_plan_script() -> Vec<ScriptStep> {
    let issue =
        |title: &str| -> Value { json!({"title": title, "text": "As agreed.", "checklist": ["Test it"]}) };
    let issues = [issue("Round half up"), issue("Round the tax")];
    vec![ScriptStep::call("submit_issues", json!({"issues": issues}))]
}

fn build_review_script() -> Vec<ScriptStep> {
    let comment = json!({"path": "shop/mean.py", "line": 2, "trigger": "An empty cart", "why": "It divides by zero.",
        "weight": "blocking"});
    vec![
        ScriptStep::call("read_file", json!({"path": "shop/mean.py"})),
        ScriptStep::call(
            "submit_comments",
            json!({"summary": "Adds a mean.", "comments": [comment]}),
        ),
    ]
}

impl MatrixStage {
    pub(crate) fn set_up_talk(&self) {
        let [(_, found), (_, summary), _, (_, end)] = ORDERS;
        for (begins, script) in [
            ("Research what this", build_research_script(found)),
            ("Sum this discussion up", build_answer_script(summary)),
            ("Plan what follows", build_plan_script()),
            ("This discussion is to be closed", build_answer_script(end)),
            ("Review this pull request", build_review_script()),
        ] {
            self.model.set_script_of(begins, "", script);
        }
    }

    /// Performs the users' next action. Returns true when the discussion is closed and the review is
    /// submitted.
    ///
    /// # Errors
    /// When a stand-in refuses the action.
    pub(crate) fn act_in_talk(&mut self) -> anyhow::Result<bool> {
        let Some((discussion, pull)) = self.people.of_talk.numbers else {
            self.begin_talk()?;
            return Ok(false);
        };
        let ordered = self.people.of_talk.ordered;
        let said = self.said_in(discussion)?;
        let is_said = |words: &str| said.iter().any(|said| said.body.contains(words));
        let is_time = match ordered.checked_sub(1).and_then(|last| ORDERS.get(last)) {
            Some((_, words)) => is_said(words),
            None => true,
        };
        if let Some((order, _)) = ORDERS.get(ordered).filter(|_| is_time) {
            self.github
                .discuss_as(REPOSITORY, discussion, PERSON, order, None)?;
            self.people.of_talk.ordered += 1;
        }
        let is_closed = self
            .github
            .discussion(REPOSITORY, discussion)?
            .closed_as
            .is_some();
        let is_reviewed = !self.github.reviews(REPOSITORY, pull)?.is_empty();
        Ok(is_closed && is_reviewed)
    }

    fn begin_talk(&mut self) -> anyhow::Result<()> {
        let github = &self.github;
        let asked = ("How do we round?", "Is the total of an invoice rounded?");
        let discussion = github.start_discussion(REPOSITORY, PERSON, "Q&A", asked)?;
        github.commit(REPOSITORY, "mean", "Mean price", &MEAN)?;
        let pull = github.open_pull_request_as(REPOSITORY, AUTHOR, "mean", "Mean price", "Adds it.")?;
        github.ask_for_review(REPOSITORY, pull, REVIEWER, PERSON)?;
        self.people.of_talk.numbers = Some((discussion, pull));
        self.people.of_talk.ordered = 1;
        let repository: domain::RepositoryName = REPOSITORY.parse()?;
        self.tickets = vec![
            TicketKey::Discussion {
                repository: repository.clone(),
                number: discussion,
            },
            TicketKey::GitHub {
                repository,
                number: pull,
            },
        ];
        Ok(())
    }

    fn said_in(&self, discussion: u64) -> anyhow::Result<Vec<StandInDiscussionComment>> {
        let said = self.github.discussion(REPOSITORY, discussion)?.comments;
        Ok(said
            .into_iter()
            .filter(|said| said.author == WRITER_LOGIN)
            .collect())
    }

    /// Returns our comments in the discussion.
    pub(crate) fn words_in_talk(&self) -> anyhow::Result<Vec<String>> {
        let (discussion, _) = self.people.of_talk.numbers.context("the discussion")?;
        let said = self.said_in(discussion)?.into_iter();
        Ok(said.map(|said| said.body).collect())
    }

    /// Returns the final state of discussion, issues and review.
    pub(crate) fn seen_of_talk(&self) -> anyhow::Result<Vec<String>> {
        let (discussion, pull) = self.people.of_talk.numbers.context("the discussion")?;
        let end = self.github.discussion(REPOSITORY, discussion)?;
        let last = self.said_in(discussion)?.pop().context("a last word")?;
        let mut seen = vec![
            format!("closed as {}", end.closed_as.unwrap_or_default()),
            format!("the last word is the answer: {}", end.answer == Some(last.id)),
        ];
        for issue in self.github.issues(REPOSITORY) {
            let parts = self.github.sub_issues(REPOSITORY, issue.number)?;
            seen.push(format!("issue {} with {} parts", issue.title, parts.len()));
        }
        for review in self.github.reviews(REPOSITORY, pull)? {
            let (by, lines) = (&review.author, review.comments.len());
            seen.push(format!("review by {by} with {lines} comments: {}", review.state));
        }
        Ok(seen)
    }
}

/// Expected state of discussion, issues and review.
pub(crate) const SEEN: [&str; 5] = [
    "closed as resolved",
    "the last word is the answer: true",
    "issue Round half up with 1 parts",
    "issue Round the tax with 0 parts",
    "review by journeyman[bot] with 1 comments: changes_requested",
];
