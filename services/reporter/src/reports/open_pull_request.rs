//! Report that requests a draft pull request.

use domain::{OutboundReceipt, report::PullRequestOpening};

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_round_event};
use crate::{
    board::FinishedWork,
    draft::PullRequestDraft,
    effects::{self, LabelPullRequest, LinkPullRequest, ShowFiles},
    message,
    receipt::{EffectReceipts, RefusedLink},
    rounds::RoundEvent,
};

impl ReportKind for PullRequestOpening {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let draft = PullRequestDraft {
            repository: self.repository.clone(),
            branch: self.branch.clone(),
            base_branch: self.base_branch.clone(),
            title: self.title.clone(),
            body: self.body.clone(),
            description: self.description.clone(),
        };
        let mut effects: EffectList = vec![Box::new(effects::OpenPullRequest(draft))];
        effects.extend(asked.on_jira(|issue| LinkPullRequest { issue }));
        let labels = &asked.rules.pull_request.labels;
        if !labels.is_empty() && self.repository.local_folder().is_none() {
            let labels = labels.clone();
            effects.push(Box::new(LabelPullRequest { labels }));
        }
        effects.push(show_round_event(&self.repository, RoundEvent::Opened));
        if self.repository.local_folder().is_none() {
            effects.push(Box::new(ShowFiles { pull_request: None }));
        }
        effects
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        vec![
            message::render_opened(told.receipts.last()),
            match told.receipts.last() {
                Some(RefusedLink(why)) => message::not_linked(why),
                None => String::new(),
            },
        ]
    }

    fn lasting(&self, told: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: Some(message::render_finished_work(self.description.as_deref())),
            changed: message::render_changed_files(told.receipts.last(), told.receipts.last()),
        }
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        let opened = receipts.last().cloned();
        opened.map_or(OutboundReceipt::Told, OutboundReceipt::PullRequestOpened)
    }
}
