//! Notification of people: the status comment of a ticket, separate comments, and the deletion of duplicates.

use std::time::Duration;

use domain::{ReportFence, RepositoryName, Rules, TicketKey, Timestamp, cause::chain};

use crate::{
    board::{Board, Entry},
    effects::{Asked, Effect, Thread, TicketRecords},
    ledger,
    made::{How, Made, Settled},
    message::{self, RoundsLinks},
    outgoing::Outgoing,
    perform::Performer,
    reports::{self, Heard, Told},
    rounds::{RoundEvent, ShownOn},
    scan, telemetry,
    trouble::Trouble,
};

impl Performer {
    /// Writes the text of a report, as a separate comment or into the ticket's status comment, which is created once
    /// and then edited.
    pub(crate) async fn tell(
        &self,
        asked: &Asked<'_>,
        thread: &Thread,
        effect: &dyn Effect,
        fence: ReportFence,
    ) -> Result<Settled, Trouble> {
        let (ticket, request) = (&asked.report.ticket, &asked.report.request);
        let again = asked.rules.map_or_else(
            || Rules::default().agent.status,
            |rules| rules.agent.status.clone(),
        );
        let told = Told {
            made: asked.made,
            ticket,
            run: asked.report.run.as_ref(),
            again: &again,
        };
        if reports::heard(request) == Heard::Apart {
            let text = Outgoing::without_credentials(&reports::comment(request, &told));
            let asked = Asked {
                text: &text,
                ..*asked
            };
            let settled = Box::pin(self.once(&asked, effect, fence)).await?;
            // Only a comment that may be new can have a duplicate.
            if settled.how != How::Known {
                self.change_board(ticket, fence, |board| board.watch(asked.id, self.lists_by()))
                    .await?;
            }
            return Ok(settled);
        }
        let heard = reports::heard(request);
        let (report, at) = (asked.report.id.clone(), asked.report.at);
        let board = self
            .change_board(ticket, fence, |board| {
                if let Some(moved) = &asked.made.moved {
                    board.moved(moved);
                }
                // A failed transition of an earlier report still applies, so its advice does, too.
                let made = Made {
                    moved: board.unmoved.clone().or(asked.made.moved.clone()),
                    ..asked.made.clone()
                };
                let told = Told { made: &made, ..told };
                let text = scan::redact(&reports::words(request, &told)).into_owned();
                let lasting = reports::lasting(request, &told);
                let (run, mark) = (told.run.cloned(), reports::mark(request, &told));
                board.keep(lasting.map(|text| scan::redact(&text).into_owned()));
                if let Some(progress) = asked.report.progress {
                    let phase = progress.phase.filter(|_| heard == Heard::AsProgress);
                    board.stand(at, progress, phase);
                }
                if heard != Heard::AsProgress {
                    let entry = Entry {
                        report,
                        at,
                        run,
                        text,
                        mark,
                    };
                    board.add(entry, heard == Heard::AtStart);
                }
            })
            .await?;
        // The comment already shows this report, so no request is needed.
        if board.shows(&asked.report.id, heard != Heard::AsProgress) {
            let made = Made::default();
            return Ok(Settled {
                made,
                how: How::Known,
            });
        }
        let text = self.status(&board, thread);
        let id = status_id(ticket);
        let asked = Asked {
            id: &id,
            text: &text,
            ..*asked
        };
        self.show(&asked, thread, effect, fence).await
    }

    /// Builds the text of the status comment for its thread.
    fn status(&self, board: &Board, thread: &Thread) -> Outgoing {
        let mut text = message::status(board, self.outside.pages.run_url.as_deref());
        // Only GitHub hides HTML comments.
        if matches!(thread, Thread::GitHub(..)) {
            text = format!("{text}\n\n{}", message::hidden_state(board));
        }
        Outgoing::without_credentials(&text)
    }

    /// Records a round event, and shows the rounds of work on the pull request.
    pub(crate) async fn show_rounds(
        &self,
        asked: &Asked<'_>,
        (event, repository): (&RoundEvent, Option<&RepositoryName>),
        effect: &dyn Effect,
        fence: ReportFence,
    ) -> Result<Settled, Trouble> {
        let ticket = &asked.report.ticket;
        let noted = |board: &mut Board| board.rounds.note(asked.report, asked.made, event);
        let rounds = self.change_board(ticket, fence, noted).await?.rounds;
        let can = |on: &ShownOn| self.outside.github.makes_check_runs(&on.repository);
        let Some(on) = rounds.shown_on(repository).filter(can) else {
            let made = Made::default();
            return Ok(Settled {
                made,
                how: How::Known,
            });
        };
        let ticket_url = self.outside.ticket_url(ticket, asked.rules);
        let links = RoundsLinks {
            ticket,
            ticket_url: ticket_url.as_deref(),
            repository: &on.repository,
            run_url: self.outside.pages.run_url.as_deref(),
        };
        // Another commit may be a person's, and the check run would vouch for it.
        let records = TicketRecords::new(&self.outside, asked.report, asked.rules);
        if !records.is_head(&on.repository, &on.head).await? {
            tracing::warn!(%ticket, repository = %on.repository, head = %on.head, "no check run: the commit is no head of the ticket's");
            return Ok(Settled {
                made: Made::default(),
                how: How::Known,
            });
        }
        let text = message::rounds(&rounds, &links);
        let asked = Asked {
            rounds: Some((&on, &text)),
            ..*asked
        };
        let settled = Box::pin(self.once(&asked, effect, fence)).await?;
        if let Some(id) = settled.made.check_run {
            let known = |board: &mut Board| board.rounds.check_run = Some((on.head.clone(), id));
            self.change_board(ticket, fence, known).await?;
        }
        Ok(settled)
    }

    /// Updates the status comment to the content of the board.
    async fn show(
        &self,
        asked: &Asked<'_>,
        thread: &Thread,
        effect: &dyn Effect,
        fence: ReportFence,
    ) -> Result<Settled, Trouble> {
        let ticket = &asked.report.ticket;
        let settled = Box::pin(self.once(asked, effect, fence)).await?;
        let comment = settled.made.comment.as_deref().unwrap_or_default();
        // A new comment has the text already.
        if settled.how != How::Created {
            let edit = self.outside.edit_comment(thread, comment, asked.text, asked.id);
            let edited = failpoint::around("reporter.comment.edit", edit).await;
            if let Err(Trouble::Missing(detail)) = edited {
                // A person deleted the comment, so the next try writes a new one.
                self.ledger.correct(ticket, asked.id, fence, None).await?;
                return Err(Trouble::Later { detail, after: None });
            }
            edited?;
        }
        let shown = self
            .change_board(ticket, fence, |board| {
                board.is_shown = true;
                if settled.how != How::Known {
                    board.watch(asked.id, self.lists_by());
                }
            })
            .await;
        // Another reporter took over during the edit, so this edit may have replaced a newer text.
        if let Err(Trouble::Ledger(ledger::Error::Superseded)) = shown {
            self.show_newest(ticket, comment).await;
        }
        shown?;
        Ok(Settled {
            made: Made::default(),
            how: settled.how,
        })
    }

    /// Restores the newest text, after a reporter that was overtaken wrote an older one.
    async fn show_newest(&self, ticket: &TicketKey, comment: &str) {
        let id = status_id(ticket);
        let healed = async {
            let kept = self.ledger.receipt(ticket, &id).await?;
            let kept = kept.and_then(|made| made.comment);
            if let Some(board) = self.ledger.newest_board(ticket).await? {
                let comment = kept.as_deref().unwrap_or(comment);
                let thread = Thread::of(ticket);
                let text = self.status(&board, &thread);
                self.outside.edit_comment(&thread, comment, &text, &id).await?;
            }
            Ok::<_, Trouble>(())
        };
        if let Err(error) = healed.await {
            tracing::warn!(
                error = %chain(&error),
                "the status comment may be out of date until the next report"
            );
        }
    }

    /// Lists watched comments again when lists are up to date. The oldest stays, and our duplicates are deleted.
    /// Returns the time until the next check.
    pub(crate) async fn tidy(
        &self,
        ticket: &TicketKey,
        fence: ReportFence,
    ) -> Result<Option<Duration>, Trouble> {
        // Reads the board with the fence first: a reporter without the ticket must delete nothing.
        let (board, _) = self.ledger.board(ticket, fence).await?;
        let now = bootstrap::now();
        let (due, later): (Vec<_>, Vec<_>) =
            board.watched.into_iter().partition(|watched| watched.due <= now);
        if !due.is_empty() {
            let thread = Thread::of(ticket);
            let listed = self.outside.our_comments(&thread);
            let ours = failpoint::around("reporter.comment.list", listed).await?;
            for watched in &due {
                let same: Vec<&str> = ours
                    .iter()
                    .filter(|comment| comment.marker == watched.marker)
                    .map(|comment| comment.id.as_str())
                    .collect();
                self.keep_oldest(ticket, fence, &watched.marker, &same).await?;
            }
            self.change_board(ticket, fence, |board| board.watched.clone_from(&later))
                .await?;
        }
        let next = later.iter().map(|watched| watched.due).min();
        Ok(next.map(|due| due.since(now)))
    }

    async fn keep_oldest(
        &self,
        ticket: &TicketKey,
        fence: ReportFence,
        marker: &str,
        same: &[&str],
    ) -> Result<(), Trouble> {
        // Comments are listed oldest first.
        let Some((oldest, doubles)) = same.split_first() else {
            return Ok(());
        };
        let made = Made {
            comment: Some((*oldest).to_owned()),
            ..Made::default()
        };
        // The receipt may name a duplicate; later edits must go to the comment that stays.
        if self.ledger.receipt(ticket, marker).await?.as_ref() != Some(&made) {
            self.ledger.correct(ticket, marker, fence, Some(made)).await?;
            if marker == status_id(ticket) {
                self.show_newest(ticket, oldest).await;
            }
        }
        let thread = Thread::of(ticket);
        for double in doubles {
            let deleted = self.outside.delete_comment(&thread, double);
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

    async fn change_board(
        &self,
        ticket: &TicketKey,
        fence: ReportFence,
        change: impl FnOnce(&mut Board),
    ) -> Result<Board, Trouble> {
        let (mut board, last) = self.ledger.board(ticket, fence).await?;
        let before = board.clone();
        // The write also excludes reporters with an older fence.
        board.fence = fence;
        change(&mut board);
        if board != before {
            self.ledger.keep_board(ticket, &board, last).await?;
        }
        Ok(board)
    }

    fn lists_by(&self) -> Timestamp {
        bootstrap::now().plus(self.windows.list_lag)
    }
}

/// Returns the id of a ticket's status comment in the ledger, which is also its marker.
fn status_id(ticket: &TicketKey) -> String {
    format!("status:{ticket}")
}
