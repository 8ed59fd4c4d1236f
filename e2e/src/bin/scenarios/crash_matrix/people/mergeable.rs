//! Users of a pull request that has to stay mergeable, on a base branch that requires signed commits, current heads and
//! a merge queue.

use anyhow::Context;
use e2e::cart_conflict::{
    BOTH, CART, RESOLUTION, THEIRS, build_cart, build_resolution_edit, build_resolution_finish,
    name_both_lines,
};
use testkit::{
    fixture::REPOSITORY,
    github::{BranchRuleset, RulesetCondition, RunConclusion, StandInPullRequest},
};

use crate::crash_matrix::stage::MatrixStage;

const PERSON: &str = "grace";
const QUEUE: &str = "github-merge-queue[bot]";
/// Check that the base branch requires.
const CHECK: &str = "test";
const LOG: &[u8] = b"ERROR cart: the quantity of line 2 was ignored\n";
/// File that a user adds to the base branch, on other lines than ours.
const MOVED: [(&str, &str); 1] = [("notes/moved.md", "On.\n")];
const PASSED: &str = "All checks passed";

/// Actions of users and CI in order, each with the text on the ticket that permits it, and the number of its occurrences.
const ACTIONS: [PermittedAction; 10] = [
    PermittedAction(UserAction::Close, "Draft", 1),
    PermittedAction(UserAction::Reopen, "without merging it", 1),
    PermittedAction(UserAction::Check, "follows its checks and reviews", 1),
    PermittedAction(UserAction::MoveBase, PASSED, 1),
    PermittedAction(UserAction::Check, "lacks commits of", 1),
    PermittedAction(UserAction::Conflict, PASSED, 2),
    PermittedAction(UserAction::Check, "is resolved with commit", 1),
    PermittedAction(UserAction::Dequeue, PASSED, 3),
    PermittedAction(UserAction::Check, "checks are repaired", 1),
    PermittedAction(UserAction::Merge, PASSED, 4),
];

/// Action of a user or of CI.
#[derive(Clone, Copy)]
enum UserAction {
    /// Closes the draft.
    Close,
    /// Opens the closed draft again.
    Reopen,
    /// Reports the required check on a new head.
    Check,
    /// Moves the base branch on.
    MoveBase,
    /// Adds the pull request to the merge queue, and changes its line on the base branch.
    Conflict,
    /// Adds the pull request to the merge queue, where a check fails.
    Dequeue,
    /// Adds the pull request to the merge queue again, and merges it.
    Merge,
}

struct PermittedAction(UserAction, &'static str, usize);

/// Memory of the users.
#[derive(Default)]
pub(crate) struct PeopleOfMergeable {
    /// Number of the actions so far.
    acted: usize,
    /// Head commit of the last CI report.
    checked: Option<String>,
}

impl MatrixStage {
    pub(crate) fn set_up_mergeable(&self) -> anyhow::Result<()> {
        self.jira.attach(&self.key, "trace.log", LOG, "ada")?;
        let mut resolution = build_resolution_edit(BOTH);
        resolution.push(build_resolution_finish(&name_both_lines()));
        self.model.set_script_of(RESOLUTION, "", resolution);
        let base = BranchRuleset {
            branches: vec![self.story.target().to_owned()],
            required_checks: vec![CHECK.to_owned()],
            conditions: vec![RulesetCondition::CurrentBase, RulesetCondition::MergeQueue],
            ..BranchRuleset::default()
        };
        let all = BranchRuleset {
            branches: vec!["*".to_owned()],
            conditions: vec![RulesetCondition::SignedCommits],
            ..BranchRuleset::default()
        };
        self.github.set_rulesets(REPOSITORY, &[base, all])
    }

    /// Performs the next action of users and CI. Returns true when the pull request is merged and the ticket is done.
    ///
    /// # Errors
    /// When a stand-in refuses the action.
    pub(crate) fn act_on_mergeable(&mut self) -> anyhow::Result<bool> {
        if self.jira.status(&self.key).as_deref() == Some("To Do") {
            self.jira.move_issue(&self.key, "Ready for Agent", "ada")?;
        }
        let said = self.said();
        let acted = self.people.of_mergeable.acted;
        let Some(PermittedAction(action, text, times)) = ACTIONS.get(acted) else {
            let is_done = self.jira.status(&self.key).as_deref() == Some("Done");
            return Ok(is_done && said.contains("merged"));
        };
        // GitHub has each change before the ticket states it. An action in between would change the order of the
        // comments.
        if said.matches(text).count() >= *times
            && let Some(pull) = self.pull_requests().into_iter().next()
            && self.perform(*action, &pull)?
        {
            self.people.of_mergeable.acted += 1;
        }
        Ok(false)
    }

    /// Performs an action; false if the pull request is not ready for it.
    fn perform(&mut self, action: UserAction, pull: &StandInPullRequest) -> anyhow::Result<bool> {
        let (github, number) = (&self.github, pull.number);
        match action {
            UserAction::Close => github.close(REPOSITORY, number, PERSON)?,
            UserAction::Reopen => github.reopen(REPOSITORY, number, PERSON)?,
            UserAction::Check => {
                if self.people.of_mergeable.checked.as_ref() == Some(&pull.head_sha) {
                    return Ok(false);
                }
                let passed = [(CHECK, RunConclusion::Success, "ok")];
                github.run_checks(REPOSITORY, &pull.head_sha, &passed)?;
                self.people.of_mergeable.checked = Some(pull.head_sha.clone());
            }
            UserAction::MoveBase | UserAction::Conflict | UserAction::Dequeue | UserAction::Merge
                if pull.draft =>
            {
                return Ok(false);
            }
            UserAction::MoveBase => {
                github.commit(REPOSITORY, &pull.base, "Move on", &MOVED)?;
            }
            UserAction::Conflict => {
                github.enqueue(REPOSITORY, number, PERSON)?;
                let message = "Ignore negative prices";
                github.commit(REPOSITORY, &pull.base, message, &[(CART, &build_cart(THEIRS))])?;
            }
            UserAction::Dequeue => {
                let commit = github.enqueue(REPOSITORY, number, PERSON)?;
                let failed = [("notes", RunConclusion::Failure, "AssertionError: no note")];
                github.run_checks(REPOSITORY, &commit, &failed)?;
                github.dequeue(REPOSITORY, number, "CI_FAILURE", QUEUE)?;
            }
            UserAction::Merge => {
                let commit = github.enqueue(REPOSITORY, number, PERSON)?;
                let passed = [(CHECK, RunConclusion::Success, "ok")];
                github.run_checks(REPOSITORY, &commit, &passed)?;
                github.merge(REPOSITORY, number, PERSON)?;
            }
        }
        Ok(true)
    }

    /// Returns the commits of the branch from the head to the first one, with their parents and signatures.
    pub(crate) fn seen_of_mergeable(&self) -> anyhow::Result<Vec<String>> {
        let pull = self.pull_requests().into_iter().next();
        let mut commit = pull.context("the pull request")?.head_sha;
        let mut seen = Vec::new();
        loop {
            let (_, parents) = self.github.tree_and_parents(REPOSITORY, &commit)?;
            let Some(first) = parents.first() else {
                return Ok(seen);
            };
            let signature = self.github.signature_of(REPOSITORY, &commit)?;
            seen.push(format!("parents {}, signature {signature}", parents.len()));
            commit.clone_from(first);
        }
    }
}

/// Expected commits: the repair, the resolution, the update with the base, and the work.
pub(crate) const SEEN: [&str; 4] = [
    "parents 1, signature valid",
    "parents 2, signature valid",
    "parents 2, signature valid",
    "parents 1, signature valid",
];
