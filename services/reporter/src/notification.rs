//! Notification of people: the status comment of a ticket, separate comments, and the deletion of duplicates.

use std::time::Duration;

use domain::{
    Job, OutboundAction, OutboundRequest, PullRequestRef, ReporterFence, RepositoryName, RepositoryRules,
    TicketKey, cause::format_error_chain,
};
use queue::TableRevision;

use crate::{
    board::{BoardEntry, StatusBoard, WatchedMarker},
    cleared_text::ClearedText,
    comment_place::{CommentPlace, group_by_thread},
    effect_error::EffectError,
    effects::{CommentThread, EffectClearance, EffectContext, PlannedEffect, TicketRecords, WriteComment},
    ledger::{self, status_id},
    message::{self, RoundsLinks},
    performer::ReportPerformer,
    receipt::{CheckRunId, EffectOrigin, EffectReceipts, SettledEffect, WrittenComment},
    refused_notice::{NoticeRefusal, RefusedNotice},
    reports::{self, NoticeContext, NoticePlace},
    rounds::RoundEvent,
    scan, telemetry,
};

/// Board as it was last read or written.
struct KeptBoard {
    board: StatusBoard,
    /// Absent before the first write.
    revision: Option<TableRevision>,
}

/// Returns the job of the run that requested a report; `None` if the report does not contain it.
fn find_report_job(report: &OutboundRequest) -> Option<Job> {
    let known = report.progress.map(|progress| progress.job);
    // The run of such an event does no work, so it has no progress.
    if let (None, OutboundAction::PullRequest(event)) = (known, &report.request) {
        return Some(event.job());
    }
    known
}

/// Adds a report to the board: its round of work, the result of its transition, its progress and its text.
fn add_to_board(board: &mut StatusBoard, asked: &EffectContext<'_>, context: NoticeContext<'_>) {
    let OutboundRequest {
        id,
        at,
        progress,
        request,
        ..
    } = asked.report;
    let notice_place = reports::notice_place(request);
    // The event may be on the board already; a repetition has no effect.
    if let Some(event) = asked.previous_round {
        board.rounds.note(asked.report, asked.receipts, event);
    }
    if let Some(moved) = asked.receipts.last() {
        board.moved(moved);
    }
    // A failed transition of an earlier report still applies, so its advice does, too.
    let unmoved = board.unmoved.clone();
    let context = NoticeContext {
        unmoved: unmoved.as_ref(),
        ..context
    };
    let finished = reports::finished_work(request, &context);
    board.keep(finished.map(|text| scan::redact_credentials(&text).into_owned()));
    if let Some(progress) = *progress {
        let phase = progress.phase.filter(|_| notice_place == NoticePlace::AsProgress);
        board.stand(*at, progress, phase);
    }
    if notice_place != NoticePlace::AsProgress {
        let entry = BoardEntry {
            report: id.clone(),
            at: *at,
            run: context.run.cloned(),
            job: find_report_job(asked.report),
            text: scan::redact_credentials(&reports::render_report(request, &context)).into_owned(),
            mark: reports::work_end(request, &context),
        };
        board.add(entry, notice_place == NoticePlace::AtStart);
    }
}

/// Puts the reason for the place before a text that is not on its ticket.
fn relocate_text(ticket: &TicketKey, refused: &RefusedNotice, text: &ClearedText) -> ClearedText {
    ClearedText::without_credentials(&message::render_relocated_text(
        ticket,
        refused.cause,
        text.as_str(),
    ))
}

/// Returns the name of a thread on GitHub for the ids of effects.
fn describe_thread(thread: &CommentThread) -> String {
    match thread {
        CommentThread::GitHub(repository, number)
        | CommentThread::Review(repository, number, _)
        | CommentThread::Discussion(repository, number, _) => format!("{repository}#{number}"),
        CommentThread::Jira(ticket) | CommentThread::Nowhere(ticket) => ticket.to_string(),
    }
}

impl ReportPerformer {
    /// Writes the text of a report, as a separate comment or into the ticket's status comment, which is created once
    /// and then edited.
    pub(crate) async fn notify(
        &self,
        asked: &EffectContext<'_>,
        thread: &CommentThread,
        effect: &dyn PlannedEffect,
        fence: ReporterFence,
    ) -> Result<SettledEffect, EffectError> {
        let (ticket, request) = (&asked.report.ticket, &asked.report.request);
        let again = asked.rules.map_or_else(
            || RepositoryRules::default().agent.status,
            |rules| rules.agent.status.clone(),
        );
        let context = NoticeContext {
            receipts: asked.receipts,
            unmoved: None,
            ticket,
            run: asked.report.run.as_ref(),
            again: &again,
        };
        let notice_place = reports::notice_place(request);
        if notice_place == NoticePlace::Apart {
            return Box::pin(self.comment_apart(asked, thread, effect, (&context, fence))).await;
        }
        let kept = self
            .change_board(ticket, fence, |board| add_to_board(board, asked, context))
            .await?;
        // The comment already shows this report, so no request is needed.
        if kept
            .board
            .shows(&asked.report.id, notice_place != NoticePlace::AsProgress)
        {
            return Ok(SettledEffect::unneeded());
        }
        let text = self.status(&kept.board, thread);
        let id = status_id(ticket);
        let asked = EffectContext {
            id: &id,
            text: &text,
            ..*asked
        };
        let place = CommentPlace {
            thread,
            id: &id,
            refused: None,
        };
        match Box::pin(self.show(&asked, place, effect, (fence, &kept))).await {
            Err(EffectError::Unwritable(refused)) => {
                Box::pin(self.show_elsewhere(&asked, thread, refused, (fence, &kept))).await
            }
            shown => shown,
        }
    }

    /// Writes the text of a report as a separate comment.
    async fn comment_apart(
        &self,
        asked: &EffectContext<'_>,
        thread: &CommentThread,
        effect: &dyn PlannedEffect,
        (context, fence): (&NoticeContext<'_>, ReporterFence),
    ) -> Result<SettledEffect, EffectError> {
        let OutboundRequest { ticket, request, .. } = asked.report;
        let text = ClearedText::without_credentials(&reports::render_comment(request, context));
        let asked = EffectContext {
            text: &text,
            ..*asked
        };
        let settled = Box::pin(self.once(&asked, effect, fence)).await?;
        if let Some(refused) = settled.receipts.last::<RefusedNotice>().cloned() {
            return Box::pin(self.comment_elsewhere(&asked, thread, refused, fence)).await;
        }
        let place = CommentPlace {
            thread,
            id: asked.id,
            refused: None,
        };
        self.watch(ticket, place, settled.how, fence).await?;
        Ok(settled)
    }

    /// Shows the status on the ticket's pull request, because the conversation of the ticket does not accept it. The next
    /// report tries the ticket first.
    async fn show_elsewhere(
        &self,
        asked: &EffectContext<'_>,
        thread: &CommentThread,
        refused: RefusedNotice,
        (fence, kept): (ReporterFence, &KeptBoard),
    ) -> Result<SettledEffect, EffectError> {
        let Some((effect, cleared)) = self.find_other_thread(asked, thread, &refused).await? else {
            return Err(EffectError::Unwritable(refused));
        };
        let text = relocate_text(&asked.report.ticket, &refused, asked.text);
        let id = format!("elsewhere:{}/comment", describe_thread(&effect.thread));
        let asked = EffectContext {
            cleared: &cleared,
            id: &id,
            text: &text,
            ..*asked
        };
        let place = CommentPlace {
            thread: &effect.thread,
            id: &id,
            refused: Some(&refused),
        };
        let settled = self.show(&asked, place, &effect, (fence, kept)).await?;
        Ok(SettledEffect {
            receipts: refused.into(),
            how: settled.how,
        })
    }

    /// Writes a separate comment on the ticket's pull request, because the conversation of the ticket does not accept it.
    async fn comment_elsewhere(
        &self,
        asked: &EffectContext<'_>,
        thread: &CommentThread,
        refused: RefusedNotice,
        fence: ReporterFence,
    ) -> Result<SettledEffect, EffectError> {
        let ticket = &asked.report.ticket;
        let mut how = EffectOrigin::Known;
        if let Some((effect, cleared)) = self.find_other_thread(asked, thread, &refused).await? {
            let text = relocate_text(ticket, &refused, asked.text);
            let id = format!("{}.elsewhere", asked.id);
            let asked = EffectContext {
                cleared: &cleared,
                id: &id,
                text: &text,
                ..*asked
            };
            how = Box::pin(self.once(&asked, &effect, fence)).await?.how;
            let place = CommentPlace {
                thread: &effect.thread,
                id: &id,
                refused: None,
            };
            self.watch(ticket, place, how, fence).await?;
        }
        Ok(SettledEffect {
            receipts: refused.into(),
            how,
        })
    }

    /// Returns a comment on the newest pull request of the ticket with its clearance; `None` if the ticket has none, or if
    /// the refused text was not for the thread of the ticket.
    async fn find_other_thread(
        &self,
        asked: &EffectContext<'_>,
        thread: &CommentThread,
        refused: &RefusedNotice,
    ) -> Result<Option<(WriteComment, EffectClearance)>, EffectError> {
        let ticket = &asked.report.ticket;
        if *thread != CommentThread::of(ticket) {
            return Ok(None);
        }
        let home = match thread {
            CommentThread::GitHub(repository, _)
            | CommentThread::Review(repository, ..)
            | CommentThread::Discussion(repository, ..) => Some(repository),
            CommentThread::Jira(_) | CommentThread::Nowhere(_) => None,
        };
        let is_usable = |place: &PullRequestRef| {
            let is_archived = refused.cause == NoticeRefusal::Archived
                && home.is_some_and(|home| *home == place.repository);
            place.repository.local_folder().is_none() && !is_archived && CommentThread::on(place) != *thread
        };
        let records = self.outside.branches.of_ticket(ticket).await?;
        let newest = records
            .into_iter()
            .filter_map(|record| record.pull_request)
            .filter(is_usable)
            .max_by_key(|place| place.number);
        let Some(newest) = newest else {
            return Ok(None);
        };
        let effect = WriteComment {
            thread: CommentThread::on(&newest),
        };
        let records = TicketRecords::new(&self.outside, asked.report, asked.rules, asked.present);
        Ok(records.clear(&effect).await?.map(|cleared| (effect, cleared)))
    }

    /// Builds the text of the status comment for its thread.
    fn status(&self, board: &StatusBoard, thread: &CommentThread) -> ClearedText {
        let mut text = message::render_status(board, self.outside.pages.run_url.as_deref());
        // Only GitHub hides HTML comments.
        if matches!(thread, CommentThread::GitHub(..)) {
            text = format!("{text}\n\n{}", message::hidden_state(board));
        }
        ClearedText::without_credentials(&text)
    }

    /// Records a round event, and shows the rounds of work on the pull request.
    pub(crate) async fn show_rounds(
        &self,
        asked: &EffectContext<'_>,
        (event, repository): (&RoundEvent, Option<&RepositoryName>),
        effect: &dyn PlannedEffect,
        fence: ReporterFence,
    ) -> Result<SettledEffect, EffectError> {
        let ticket = &asked.report.ticket;
        let kept = self.read_board(ticket, fence).await?;
        let mut rounds = kept.board.rounds.clone();
        rounds.note(asked.report, asked.receipts, event);
        let shown_on = rounds
            .shown_on(repository)
            .filter(|on| self.outside.github.checks().makes_check_runs(&on.repository));
        // Without a check run to show, the write of the notice is sufficient.
        if shown_on.is_some() || !asked.is_noted_next {
            self.rewrite_board(ticket, fence, &kept, |board| board.rounds.clone_from(&rounds))
                .await?;
        }
        let Some(on) = shown_on else {
            return Ok(SettledEffect::unneeded());
        };
        let ticket_url = self.outside.ticket_url(ticket, asked.rules);
        let links = RoundsLinks {
            ticket,
            ticket_url: ticket_url.as_deref(),
            repository: &on.repository,
            run_url: self.outside.pages.run_url.as_deref(),
        };
        // Another commit may be a person's, and the check run would vouch for it.
        let records = TicketRecords::new(&self.outside, asked.report, asked.rules, asked.present);
        if !records.is_head(&on.repository, &on.head).await? {
            tracing::warn!(%ticket, repository = %on.repository, head = %on.head, "no check run: the commit is not a head of the ticket");
            return Ok(SettledEffect::unneeded());
        }
        let text = message::render_rounds(&rounds, &links);
        let asked = EffectContext {
            rounds: Some((&on, &text)),
            ..*asked
        };
        let settled = Box::pin(self.once(&asked, effect, fence)).await?;
        if let Some(CheckRunId(id)) = settled.receipts.last() {
            let known = |board: &mut StatusBoard| board.rounds.check_run = Some((on.head.clone(), *id));
            self.change_board(ticket, fence, known).await?;
        }
        Ok(settled)
    }

    /// Updates the status comment to the content of the board.
    async fn show(
        &self,
        asked: &EffectContext<'_>,
        place: CommentPlace<'_>,
        effect: &dyn PlannedEffect,
        (fence, kept): (ReporterFence, &KeptBoard),
    ) -> Result<SettledEffect, EffectError> {
        let (ticket, thread) = (&asked.report.ticket, place.thread);
        let settled = Box::pin(self.once(asked, effect, fence)).await?;
        if let Some(refused) = settled.receipts.last::<RefusedNotice>().cloned() {
            // The receipt is of this text. The next one is tried again, because the conversation may be unlocked by then.
            self.ledger.correct(ticket, asked.id, fence, None).await?;
            return Err(EffectError::Unwritable(refused));
        }
        let written = settled.receipts.last::<WrittenComment>();
        let comment = written.map_or("", |comment| comment.0.as_str());
        // A new comment has the text already.
        if settled.how != EffectOrigin::Created {
            let edit = self.outside.edit_comment(thread, comment, asked.text, asked.id);
            let edited = failpoint::around("reporter.comment.edit", edit).await;
            if let Err(EffectError::Missing(detail)) = edited {
                // A person deleted the comment, so the next try writes a new one.
                self.ledger.correct(ticket, asked.id, fence, None).await?;
                return Err(EffectError::Later { detail, after: None });
            }
            edited?;
        }
        let shown = self
            .rewrite_board(ticket, fence, kept, |board| {
                board.is_shown = true;
                if settled.how != EffectOrigin::Known {
                    board.watch(self.build_watched_marker(ticket, place));
                }
            })
            .await;
        // Another reporter took over during the edit, so this edit may have replaced a newer text.
        if let Err(EffectError::Ledger(ledger::Error::Superseded)) = shown {
            self.show_newest(ticket, place, comment).await;
        }
        shown?;
        Ok(SettledEffect {
            receipts: EffectReceipts::default(),
            how: settled.how,
        })
    }

    /// Restores the newest text, after a reporter that was overtaken wrote an older one.
    async fn show_newest(&self, ticket: &TicketKey, place: CommentPlace<'_>, comment: &str) {
        let CommentPlace { thread, id, refused } = place;
        let healed = async {
            let kept = self.ledger.receipt(ticket, id).await?.unwrap_or_default();
            if let Some(board) = self.ledger.newest_board(ticket).await? {
                let comment = kept.last().map_or(comment, |WrittenComment(kept)| kept);
                let text = self.status(&board, thread);
                let text = match refused {
                    Some(refused) => relocate_text(ticket, refused, &text),
                    None => text,
                };
                self.outside.edit_comment(thread, comment, &text, id).await?;
            }
            Ok::<_, EffectError>(())
        };
        if let Err(error) = healed.await {
            tracing::warn!(
                error = %format_error_chain(&error),
                "the status comment may be out of date until the next report"
            );
        }
    }

    /// Lists watched comments again when lists are up to date. The oldest stays, and our duplicates are deleted.
    /// Returns the time until the next check.
    pub(crate) async fn tidy(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
    ) -> Result<Option<Duration>, EffectError> {
        // Reads the board with the fence first: a reporter without the ticket must delete nothing.
        let (board, _) = self.ledger.board(ticket, fence).await?;
        let now = bootstrap::read_wall_clock();
        let (due, later): (Vec<_>, Vec<_>) =
            board.watched.into_iter().partition(|watched| watched.due <= now);
        if !due.is_empty() {
            self.outside.present_key(ticket).await?;
            let mut watched = later.clone();
            for (thread, markers) in group_by_thread(ticket, &due) {
                let tidied = Box::pin(self.tidy_thread(ticket, fence, &thread, &markers)).await;
                match tidied {
                    // Only a person can end such a failure, so the ticket's next report repeats the check.
                    Err(error) if error.needs_person() => {
                        tracing::warn!(
                            error = %format_error_chain(&error),
                            "comments not checked for duplicates until the next report"
                        );
                        watched.extend(markers.into_iter().cloned());
                    }
                    tidied => tidied?,
                }
            }
            self.change_board(ticket, fence, |board| board.watched.clone_from(&watched))
                .await?;
        }
        let next = later.iter().map(|watched| watched.due).min();
        Ok(next.map(|due| due.since(now)))
    }

    /// Lists the comments of a thread, and deletes the duplicates of watched ones.
    async fn tidy_thread(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
        thread: &CommentThread,
        markers: &[&WatchedMarker],
    ) -> Result<(), EffectError> {
        let listed = self.outside.our_comments(thread);
        let ours = match failpoint::around("reporter.comment.list", listed).await {
            // The comments went with their conversation, and nothing can be deleted in an archived repository.
            Err(EffectError::Unwritable(_) | EffectError::Missing(_)) => Vec::new(),
            listed => listed?,
        };
        for watched in markers {
            let same: Vec<&str> = ours
                .iter()
                .filter(|comment| comment.marker == watched.marker)
                .map(|comment| comment.id.as_str())
                .collect();
            let place = CommentPlace {
                thread,
                id: &watched.marker,
                refused: watched.refused.as_ref(),
            };
            self.keep_oldest(ticket, fence, place, &same).await?;
        }
        Ok(())
    }

    async fn keep_oldest(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
        place: CommentPlace<'_>,
        same: &[&str],
    ) -> Result<(), EffectError> {
        // Comments are listed oldest first.
        let Some((oldest, doubles)) = same.split_first() else {
            return Ok(());
        };
        let marker = place.id;
        let receipts = EffectReceipts::from(WrittenComment((*oldest).to_owned()));
        // The receipt may name a duplicate; later edits must go to the comment that stays.
        if self.ledger.receipt(ticket, marker).await?.as_ref() != Some(&receipts) {
            // The receipt changes before the deletions. After a crash in between, it never names a
            // deleted comment.
            self.ledger.correct(ticket, marker, fence, Some(receipts)).await?;
            if marker == status_id(ticket) || place.refused.is_some() {
                self.show_newest(ticket, place, oldest).await;
            }
        }
        for double in doubles {
            let deleted = self.outside.delete_comment(place.thread, double);
            failpoint::around("reporter.comment.delete", deleted).await?;
        }
        if !doubles.is_empty() {
            tracing::warn!(
                marker,
                deleted = doubles.len(),
                "comment stood there more than once"
            );
            telemetry::doubles_deleted(u64::try_from(doubles.len()).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    /// Reads the ticket's board and changes it.
    async fn change_board(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
        change: impl FnOnce(&mut StatusBoard),
    ) -> Result<KeptBoard, EffectError> {
        let kept = self.read_board(ticket, fence).await?;
        self.rewrite_board(ticket, fence, &kept, change).await
    }

    async fn read_board(&self, ticket: &TicketKey, fence: ReporterFence) -> Result<KeptBoard, EffectError> {
        let (board, revision) = self.ledger.board(ticket, fence).await?;
        Ok(KeptBoard { board, revision })
    }

    /// Changes a board without another read. The write succeeds only if no other reporter has written the board since.
    async fn rewrite_board(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
        kept: &KeptBoard,
        change: impl FnOnce(&mut StatusBoard),
    ) -> Result<KeptBoard, EffectError> {
        let mut board = kept.board.clone();
        // The write also excludes reporters with an older fence.
        board.fence = fence;
        change(&mut board);
        let mut revision = kept.revision;
        if board != kept.board {
            revision = Some(self.ledger.keep_board(ticket, &board, revision).await?);
        }
        Ok(KeptBoard { board, revision })
    }

    /// Schedules a separate comment for the check for duplicates. A known comment may be of a reporter that crashed
    /// before this write.
    async fn watch(
        &self,
        ticket: &TicketKey,
        place: CommentPlace<'_>,
        how: EffectOrigin,
        fence: ReporterFence,
    ) -> Result<(), EffectError> {
        let kept = self.read_board(ticket, fence).await?;
        if how != EffectOrigin::Known || !kept.board.watches(place.id) {
            let watched = self.build_watched_marker(ticket, place);
            self.rewrite_board(ticket, fence, &kept, |board| board.watch(watched))
                .await?;
        }
        Ok(())
    }

    fn build_watched_marker(&self, ticket: &TicketKey, place: CommentPlace<'_>) -> WatchedMarker {
        WatchedMarker {
            marker: place.id.to_owned(),
            on: place.conversation(ticket),
            refused: place.refused.cloned(),
            due: bootstrap::read_wall_clock().plus(self.windows.list_lag),
        }
    }
}
