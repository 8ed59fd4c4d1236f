//! Reports of a change on its way: the push, the draft pull request, repaired checks, and the delivery without one.

use domain::{
    BranchPush, OutboundReceipt,
    report::{ChecksRepaired, ConflictResolved, PullRequestOpening, WorkDelivered},
};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind, show_round_event};
use crate::{
    board::{FinishedWork, WorkEnd},
    effects::{self, LabelPullRequest, LinkPullRequest, ShowChange, ShowFiles},
    message::{self, PullRequestDraft},
    receipt::{EffectReceipts, PushedDiff, PushedHead, RefusedLink, ShownChange},
    rounds::RoundEvent,
};

/// Report that requests a push.
impl ReportKind for BranchPush {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        let pushed = RoundEvent::Pushed {
            branch: Some(self.branch.clone()),
            head: self.head.clone(),
            by: None,
        };
        vec![
            Box::new(effects::PushBranch(self.clone())),
            show_round_event(&self.repository, pushed),
        ]
    }

    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        match receipts.last() {
            Some(PushedHead(head)) => OutboundReceipt::Pushed {
                branch: self.branch.clone(),
                head: head.clone(),
                diff: receipts.last::<PushedDiff>().map(|stored| stored.0.clone()),
            },
            None => OutboundReceipt::Told,
        }
    }
}

/// Report that requests a draft pull request.
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

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        vec![
            message::render_opened(context.receipts.last()),
            match context.receipts.last() {
                Some(RefusedLink(why)) => message::not_linked(why),
                None => String::new(),
            },
        ]
    }

    fn finished_work(&self, context: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: Some(message::render_finished_work(self.description.as_deref())),
            changed: message::render_changed_files(context.receipts.last(), context.receipts.last()),
        }
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        let opened = receipts.last().cloned();
        opened.map_or(OutboundReceipt::Told, OutboundReceipt::PullRequestOpened)
    }
}

/// Report of a complete change that ends its ticket without a pull request.
impl ReportKind for WorkDelivered {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        // The shown change is the pushed one, and the inspection comes before the push.
        let mut effects: EffectList = vec![
            Box::new(ShowChange(self.push.clone())),
            Box::new(effects::PushBranch(self.push.clone())),
        ];
        effects.extend(asked.done());
        effects.extend(asked.celebrated());
        effects
    }

    fn work_end(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Done)
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        let pushed = context.receipts.last::<PushedHead>();
        let head = pushed.map_or(&self.push.head, |pushed| &pushed.0);
        message::render_delivery(&self.push, head, context.moved())
    }

    fn finished_work(&self, context: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: Some(message::render_finished_work(Some(&self.description))),
            changed: context
                .receipts
                .last()
                .map(|shown| message::shown_change(shown, context.run)),
        }
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        match receipts.last() {
            Some(PushedHead(head)) => OutboundReceipt::Pushed {
                branch: self.push.branch.clone(),
                head: head.clone(),
                diff: receipts.last::<ShownChange>().map(|shown| shown.diff.clone()),
            },
            None => OutboundReceipt::Told,
        }
    }
}

/// Report of a resolved conflict.
impl ReportKind for ConflictResolved {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(ShowFiles {
            pull_request: Some(self.pull_request.clone()),
        })]
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_resolution(self)
    }

    fn finished_work(&self, context: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: None,
            changed: message::render_changed_files(context.receipts.last(), Some(&self.pull_request)),
        }
    }
}

/// Report of repaired checks.
impl ReportKind for ChecksRepaired {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(ShowFiles {
            pull_request: Some(self.pull_request.clone()),
        })]
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_repair(self)
    }

    fn finished_work(&self, context: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: None,
            changed: message::render_changed_files(context.receipts.last(), Some(&self.pull_request)),
        }
    }
}
