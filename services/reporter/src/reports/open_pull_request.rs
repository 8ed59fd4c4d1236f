//! Report that requests a draft pull request.

use domain::{Receipt, report::OpenPullRequest};

use super::{Asked, Effects, Kind, Told, shows};
use crate::{
    draft::Draft,
    board::Lasting,
    effects::{self, LabelPullRequest, LinkPullRequest, ShowFiles},
    made::Made,
    message,
    rounds::RoundEvent,
};

impl Kind for OpenPullRequest {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let draft = Draft {
            repository: self.repository.clone(),
            branch: self.branch.clone(),
            base_branch: self.base_branch.clone(),
            title: self.title.clone(),
            body: self.body.clone(),
            description: self.description.clone(),
        };
        let mut effects: Effects = vec![Box::new(effects::OpenPullRequest(draft))];
        effects.extend(asked.on_jira(|issue| LinkPullRequest { issue }));
        let labels = &asked.rules.pull_request.labels;
        if !labels.is_empty() && self.repository.local_folder().is_none() {
            let labels = labels.clone();
            effects.push(Box::new(LabelPullRequest { labels }));
        }
        effects.push(shows(&self.repository, RoundEvent::Opened));
        if self.repository.local_folder().is_none() {
            effects.push(Box::new(ShowFiles { pull_request: None }));
        }
        effects
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        vec![
            message::opened(told.made.pull_request.as_ref()),
            told.made.unlinked.as_deref().map_or_else(String::new, message::not_linked),
        ]
    }

    fn lasting(&self, told: &Told<'_>) -> Lasting {
        Lasting {
            done: Some(message::done(self.description.as_deref())),
            changed: message::changed(told.made.changed.as_ref(), told.made.pull_request.as_ref()),
        }
    }

    fn receipt(&self, made: Made, _: &Asked<'_>) -> Receipt {
        made.pull_request.map_or(Receipt::Told, Receipt::PullRequestOpened)
    }
}
