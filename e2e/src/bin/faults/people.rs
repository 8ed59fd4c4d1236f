//! What people and CI do with one ticket, and what of it can be seen from outside.

use std::collections::BTreeMap;

use e2e::World;
use testkit::{
    fixture,
    github::{Conclusion, PullRequestState},
};
use tokio::time::Instant;

/// After so many strikes without a step a ticket is spared. One strike can cost two takeovers.
const MOST_STRIKES: usize = 2;

/// One ticket on its way.
pub(crate) struct Ticket {
    pub(crate) key: String,
    /// What the model's script is found by.
    pub(crate) marker: String,
    pub(crate) asked: Instant,
    /// When it was Done and said to be merged.
    pub(crate) done: Option<Instant>,
    /// What the person saw who merged it.
    pub(crate) diff: Option<String>,
    mark: Mark,
    /// The strikes since its last step.
    struck: Vec<Instant>,
}

/// How far Journeyman has come, as it shows.
#[derive(Default, PartialEq, Eq)]
struct Mark {
    model_calls: usize,
    status: String,
    said: usize,
    /// A draft, or ready.
    pull_request: Option<bool>,
}

impl Ticket {
    /// A person files it and moves it to the status that asks for work.
    pub(crate) fn ask(world: &World, number: usize) -> anyhow::Result<Self> {
        Ok(Self {
            key: world.ask_for_note(number)?,
            marker: World::note_marker(number),
            asked: Instant::now(),
            done: None,
            diff: None,
            mark: Mark::default(),
            struck: Vec::new(),
        })
    }

    /// A fault strikes while the ticket is under way.
    pub(crate) fn struck(&mut self, now: Instant) {
        if self.done.is_none() {
            self.struck.push(now);
        }
    }

    /// Whether another strike might be the ticket's fifth without a step, after which it would be set aside.
    pub(crate) fn is_hard_hit(&self) -> bool {
        self.done.is_none() && self.struck.len() >= MOST_STRIKES
    }

    /// CI and people do what is theirs to do; gives the strikes since its last step when it has taken one.
    pub(crate) fn look(
        &mut self,
        world: &World,
        pulls: &BTreeMap<String, PullRequestState>,
        calls: &BTreeMap<String, usize>,
    ) -> anyhow::Result<Option<Vec<Instant>>> {
        let pull = pulls.get(&fixture::note_branch(&self.key));
        if let Some(pull) = pull.filter(|pull| pull.open) {
            self.attend(world, pull)?;
        }
        let said = world
            .jira
            .comments(&self.key)
            .into_iter()
            .map(|comment| comment.text);
        let said = said.collect::<String>();
        let mark = Mark {
            model_calls: calls.get(&self.marker).copied().unwrap_or_default(),
            status: world.jira.status(&self.key).unwrap_or_default(),
            said: said.len(),
            pull_request: pull.map(|pull| pull.draft),
        };
        if mark.status == "Done" && said.contains("merged") {
            self.done = Some(Instant::now());
        }
        let has_gone_on = self.mark != mark;
        self.mark = mark;
        Ok(has_gone_on.then(|| std::mem::take(&mut self.struck)))
    }

    fn attend(&mut self, world: &World, pull: &PullRequestState) -> anyhow::Result<()> {
        if !world.github.is_checked(fixture::REPOSITORY, &pull.head_sha) {
            let green = [("test", Conclusion::Success, "ok")];
            world
                .github
                .run_checks(fixture::REPOSITORY, &pull.head_sha, &green)?;
        } else if !pull.draft {
            self.diff = Some(world.github.diff(fixture::REPOSITORY, "main", &pull.head_sha)?);
            world.github.merge(fixture::REPOSITORY, pull.number, "grace")?;
        }
        Ok(())
    }
}
