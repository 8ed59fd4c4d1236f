//! Tests of a reporter that freezes at any await while another one takes over: all effects exist once afterwards. A count
//! of the ledger's writes.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, task::Poll, time::Duration};

use bootstrap::rules::{self, RulesStore};
use domain::{
    BranchRecord, FenceStamp, Job, OutboundAction, OutboundCursor, OutboundRequest, PullRequestRef,
    ReporterFence, RepositoryName, RunFence, RunId, SkipReason, TicketCost, TicketKey, report,
};
use queue::{KeyValueBucket, Queue, RecordKey, TableRevision};
use secrecy::SecretString;
use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraOptions, NatsServer, ServiceFault,
    github::{LockReach, WRITER_LOGIN},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::Settings,
    effect_error::EffectError,
    effects::OutboundClients,
    folders::FolderTable,
    inspect::ChangeInspector,
    ledger::{self, EffectLedger},
    message::FooterPages,
    mirror::{RemoteSettings, RepositoryMirrors},
    performer::{AttemptKind, EffectWindows, PerformedReport, ReportPerformer},
    refused_notice::RefusalLog,
    signing::{CommitSigner, SigningSettings},
    worker::ReportWorker,
};

const SHOP: &str = "acme/shop";
const RULES: &str = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n";

struct Scene {
    github: FakeGitHub,
    jira: FakeJira,
    queue: Queue,
    folder: tempfile::TempDir,
    _nats: NatsServer,
}

impl Scene {
    async fn start() -> Self {
        let nats = NatsServer::start().await.unwrap();
        let queue_settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&queue_settings, "test").await.unwrap();
        queue.ensure_topology().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("shop.yaml"), RULES).unwrap();
        Self {
            github: FakeGitHub::start(GitHubOptions::default()).await.unwrap(),
            jira: FakeJira::start(JiraOptions::default()).await.unwrap(),
            queue,
            folder,
            _nats: nats,
        }
    }

    /// Builds a second reporter, which shares only the ledger, GitHub and Jira with the first.
    fn performer(&self) -> ReportPerformer {
        let github = github::GitHubWriter::new(&github::Settings {
            api_url: self.github.api_url(),
            git_url: self.github.git_url(),
            token: Some(SecretString::from(testkit::github::WRITER_TOKEN)),
            ..github::Settings::default()
        })
        .unwrap();
        let jira = jira::JiraWriter::new(&jira::Settings {
            base_url: self.jira.url(),
            email: testkit::jira::WRITER_EMAIL.to_owned(),
            api_token: SecretString::from(testkit::jira::WRITER_API_TOKEN),
            ..jira::Settings::default()
        })
        .unwrap();
        let dir = self.folder.path().to_owned();
        let rules = RulesStore::open(
            &rules::Settings {
                dir: dir.clone(),
                ..rules::Settings::default()
            },
            rules::ConfiguredInstances::default(),
        )
        .unwrap();
        ReportPerformer {
            outside: OutboundClients {
                mirrors: Arc::new(RepositoryMirrors::new(
                    dir.join("mirrors"),
                    git::DiskFloor(0),
                    github.clone(),
                    FolderTable::new(BTreeMap::new(), &dir),
                    (rules.clone(), RemoteSettings::default()),
                )),
                github,
                jira,
                objects: self.queue.objects(),
                branches: self.queue.branches(),
                pull_requests: self.queue.pull_requests(),
                identities: self.queue.issue_identities(),
                triggers: self.queue.triggers(),
                inspector: ChangeInspector::absent(),
                limits: Settings::default().limits(),
                signer: CommitSigner::new(&SigningSettings::default()).unwrap(),
                reports: self.queue.reports(),
                pages: FooterPages::default(),
            },
            ledger: EffectLedger::new(&self.queue),
            rules,
            refusals: RefusalLog::default(),
            windows: EffectWindows {
                unknown: Duration::from_millis(100),
                list_lag: Duration::ZERO,
            },
            shutdown: CancellationToken::new(),
        }
    }

    fn ticket(&self) -> TicketKey {
        let key = self
            .jira
            .create_issue("ENG", "Totals are wrong", "They are.", "Bug", &[]);
        TicketKey::jira(&key).unwrap()
    }

    /// Opens an issue with a locked conversation, and a pull request of ours for it. Returns the ticket and the number of
    /// the pull request.
    async fn open_locked_ticket(&self, branch: &str) -> (TicketKey, u64) {
        let issue = self
            .github
            .open_issue_as(SHOP, "ada", "Totals", "Wrong.")
            .unwrap();
        let head = self
            .github
            .commit(SHOP, branch, "x", &[("b.txt", "b\n")])
            .unwrap();
        let number = self
            .github
            .open_pull_request_as(SHOP, WRITER_LOGIN, branch, "x", "")
            .unwrap();
        self.github
            .lock_conversation(SHOP, issue, "ada", LockReach::Tokens)
            .unwrap();
        let ticket: TicketKey = format!("github:{SHOP}#{issue}").parse().unwrap();
        let repository: RepositoryName = SHOP.parse().unwrap();
        let record = BranchRecord {
            repository: repository.clone(),
            branch: branch.to_owned(),
            ticket: ticket.clone(),
            run: RunId::new(ticket.clone(), 1),
            head: head.parse().unwrap(),
            pull_request: Some(PullRequestRef {
                repository,
                number,
                url: format!("https://github.example/{SHOP}/pull/{number}"),
                branch: branch.to_owned(),
            }),
            signed: Vec::new(),
        };
        self.queue.branches().put(&record, None).await.unwrap();
        (ticket, number)
    }
}

fn build_report(ticket: &TicketKey, position: u64, request: OutboundAction) -> OutboundRequest {
    let run = RunId::new(ticket.clone(), 1);
    OutboundRequest {
        id: run.call(position).into(),
        ticket: ticket.clone(),
        run: Some(run),
        fence: RunFence::default(),
        at: bootstrap::read_wall_clock(),
        progress: None,
        request,
    }
}

fn build_fence(sequence: u64) -> ReporterFence {
    FenceStamp {
        epoch: 1,
        sequence,
        delivered: 1,
    }
    .into()
}

/// Polls until the future has waited `times` times. Returns its result if it ends before that.
async fn until_waits<F: Future + Unpin>(future: &mut F, times: usize) -> Option<F::Output> {
    let mut waited = 0;
    std::future::poll_fn(|context| match Pin::new(&mut *future).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            waited += 1;
            if waited < times {
                Poll::Pending
            } else {
                Poll::Ready(None)
            }
        }
    })
    .await
}

async fn perform_until_done(
    performer: &ReportPerformer,
    report: &OutboundRequest,
    fence: ReporterFence,
) -> PerformedReport {
    for _ in 0..50 {
        match Box::pin(performer.perform(report, fence, AttemptKind::More)).await {
            Ok(performed) => return performed,
            // A write of the frozen reporter may arrive in the meantime.
            Err(
                EffectError::Later { .. }
                | EffectError::HeldBack { .. }
                | EffectError::Unknown(_)
                | EffectError::Ledger(ledger::Error::Superseded),
            ) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(trouble) => panic!("{trouble}"),
        }
    }
    panic!("never performed")
}

fn assert_superseded_or_done(zombie: &Result<PerformedReport, EffectError>, frozen_at: usize) {
    let harmless = matches!(
        zombie,
        Ok(_)
            | Err(EffectError::Ledger(ledger::Error::Superseded)
                | EffectError::Later { .. }
                | EffectError::HeldBack { .. }
                | EffectError::Unknown(_))
    );
    assert!(harmless, "frozen at {frozen_at}: {zombie:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_and_overtaken_reporter_leaves_no_double() {
    let scene = Scene::start().await;
    let (frozen, taker) = (scene.performer(), scene.performer());
    let mut times_frozen = 0;
    // More than the number of awaits of the report. An await whose result is ready does not count.
    for frozen_at in 1..=20 {
        let ticket = scene.ticket();
        let key = ticket.short();
        let started = build_report(
            &ticket,
            2,
            OutboundAction::WorkStarted(report::WorkStarted {
                job: Job::Implement,
                repository: "acme/shop".parse().unwrap(),
                begun: report::WorkOrigin::default(),
            }),
        );
        let label = "later".to_owned();
        let skipped = build_report(&ticket, 4, OutboundAction::Skipped(SkipReason::Label { label }));
        let mut first = Box::pin(frozen.perform(&started, build_fence(1), AttemptKind::More));
        let ended = until_waits(&mut first, frozen_at).await;
        times_frozen += u32::from(ended.is_none());
        perform_until_done(&taker, &started, build_fence(2)).await;
        perform_until_done(&taker, &skipped, build_fence(2)).await;
        let zombie = match ended {
            Some(ended) => ended,
            None => first.await,
        };
        assert_superseded_or_done(&zombie, frozen_at);
        while taker.tidy(&ticket, build_fence(2)).await.unwrap().is_some() {}
        let comments = scene.jira.comments(&key);
        assert_eq!(comments.len(), 1, "frozen at {frozen_at}: {comments:#?}");
        let places = ["later", "has started"].map(|words| comments[0].text.find(words));
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "frozen at {frozen_at}: {comments:#?}"
        );
        let history = scene.jira.status_history(&key);
        assert_eq!(history, ["To Do", "In Progress"], "frozen at {frozen_at}");
    }
    assert!(times_frozen > 8, "frozen only {times_frozen} times");
    assert_eq!(scene.jira.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn overtaken_reporter_leaves_newest_text_elsewhere() {
    let scene = Scene::start().await;
    scene
        .github
        .create_repository(SHOP, &[("README.md", "# Shop\n")])
        .unwrap();
    let (frozen, taker) = (scene.performer(), scene.performer());
    let mut times_frozen = 0;
    // More than the number of awaits of the report. An await whose result is ready does not count.
    for frozen_at in 1..=60 {
        let (ticket, number) = scene.open_locked_ticket(&format!("fix/{frozen_at}")).await;
        let build_skipped = |position, label: &str| {
            let label = label.to_owned();
            build_report(
                &ticket,
                position,
                OutboundAction::Skipped(SkipReason::Label { label }),
            )
        };
        let (older, newer) = (build_skipped(2, "sooner"), build_skipped(4, "later"));
        let mut first = Box::pin(frozen.perform(&older, build_fence(1), AttemptKind::More));
        let ended = until_waits(&mut first, frozen_at).await;
        times_frozen += u32::from(ended.is_none());
        perform_until_done(&taker, &older, build_fence(2)).await;
        perform_until_done(&taker, &newer, build_fence(2)).await;
        let zombie = match ended {
            Some(ended) => ended,
            None => first.await,
        };
        assert_superseded_or_done(&zombie, frozen_at);
        let comments = scene.github.comments(SHOP, number);
        assert_eq!(comments.len(), 1, "frozen at {frozen_at}: {comments:#?}");
        let body = comments[0].body.as_str();
        let reason = format!("The conversation of `{}` is locked", ticket.short());
        assert!(body.starts_with(&reason), "frozen at {frozen_at}: {body}");
        let places = ["later", "sooner"].map(|label| body.find(label));
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "frozen at {frozen_at}: {body}"
        );
    }
    assert!(times_frozen > 12, "frozen only {times_frozen} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_beside_ticket_are_deleted() {
    let scene = Scene::start().await;
    scene
        .github
        .create_repository(SHOP, &[("README.md", "# Shop\n")])
        .unwrap();
    let performer = scene.performer();
    let (ticket, number) = scene.open_locked_ticket("fix/1").await;
    let mut records = scene.queue.branches().of_ticket(&ticket).await.unwrap();
    let ours = records.remove(0).pull_request;
    // The comment of a reporter that was overtaken. Lists did not show it yet, so the status is written again.
    let older = format!("Older text.\n\n<!-- journeyman:effect=elsewhere:{SHOP}#{number}/comment -->");
    let comment = |body: &str| scene.github.comment_as(SHOP, number, WRITER_LOGIN, body).unwrap();
    let oldest = comment(&older);
    let label = "later".to_owned();
    let status = OutboundAction::Skipped(SkipReason::Label { label });
    let build_cost = |on| {
        let cost = TicketCost::default();
        OutboundAction::CostTold(report::CostReply { on, cost })
    };
    // The status and an answer of the locked ticket, and an answer to an order on the pull request.
    for (position, request) in [(2, status), (4, build_cost(None)), (6, build_cost(ours))] {
        let report = build_report(&ticket, position, request);
        perform_until_done(&performer, &report, build_fence(1)).await;
    }
    let written = scene.github.comments(SHOP, number);
    assert_eq!(written.len(), 4, "{written:#?}");
    for double in &written[1..] {
        comment(&double.body);
    }
    let next_check = performer.tidy(&ticket, build_fence(1)).await.unwrap();
    assert_eq!(next_check, None);
    let kept = scene.github.comments(SHOP, number);
    let ids: Vec<u64> = kept.iter().map(|comment| comment.id).collect();
    assert_eq!(ids, [oldest, written[2].id, written[3].id], "{kept:#?}");
    assert_eq!(kept[0].body, written[1].body, "the oldest has the newest text");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_ticket_needs_no_further_check() {
    let scene = Scene::start().await;
    let performer = scene.performer();
    let ticket = scene.ticket();
    let label = "later".to_owned();
    let skipped = OutboundAction::Skipped(SkipReason::Label { label });
    perform_until_done(&performer, &build_report(&ticket, 2, skipped), build_fence(1)).await;
    assert_eq!(scene.jira.comments(&ticket.short()).len(), 1);
    scene.jira.delete_issue(&ticket.short(), "ada").unwrap();
    let next_check = performer.tidy(&ticket, build_fence(1)).await.unwrap();
    assert_eq!(next_check, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn comment_of_crashed_reporter_is_checked() {
    let scene = Scene::start().await;
    let (crashing, taker) = (scene.performer(), scene.performer());
    let mut times_crashed = 0;
    // More than the number of awaits of the report. An await whose result is ready does not count.
    for crashed_at in 1..=20 {
        let ticket = scene.ticket();
        let cost = TicketCost::default();
        let told = OutboundAction::CostTold(report::CostReply { on: None, cost });
        let told = build_report(&ticket, 2, told);
        let mut first = Box::pin(crashing.perform(&told, build_fence(1), AttemptKind::More));
        let ended = until_waits(&mut first, crashed_at).await;
        times_crashed += u32::from(ended.is_none());
        drop(first);
        perform_until_done(&taker, &told, build_fence(2)).await;
        let board = taker.ledger.newest_board(&ticket).await.unwrap().unwrap();
        assert_eq!(board.watched.len(), 1, "crashed at {crashed_at}: {board:?}");
    }
    assert!(times_crashed > 4, "crashed only {times_crashed} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_check_waits_for_next_report() {
    let scene = Scene::start().await;
    let performer = scene.performer();
    let ticket = scene.ticket();
    let label = "later".to_owned();
    let skipped = OutboundAction::Skipped(SkipReason::Label { label });
    perform_until_done(&performer, &build_report(&ticket, 2, skipped), build_fence(1)).await;
    let count_watched = async || {
        let board = performer.ledger.newest_board(&ticket).await.unwrap().unwrap();
        board.watched.len()
    };
    for status in [401, 403] {
        scene
            .jira
            .fail_next(ServiceFault::new("/comment", 1, status).on("GET"));
        let next_check = performer.tidy(&ticket, build_fence(1)).await.unwrap();
        assert_eq!(next_check, None, "{status}");
        assert_eq!(scene.jira.faults_left(), 0, "{status}");
        assert_eq!(count_watched().await, 1, "{status}");
    }
    let next_check = performer.tidy(&ticket, build_fence(1)).await.unwrap();
    assert_eq!(next_check, None);
    assert_eq!(count_watched().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn older_fence_is_refused_before_any_write() {
    let scene = Scene::start().await;
    let (older, newer) = (scene.performer(), scene.performer());
    let ticket = scene.ticket();
    let label = || SkipReason::Label {
        label: "later".into(),
    };
    let first = build_report(&ticket, 2, OutboundAction::Skipped(label()));
    perform_until_done(&newer, &first, build_fence(2)).await;
    let before = scene.jira.requests().len();
    let second = build_report(&ticket, 4, OutboundAction::Skipped(label()));
    let refused = older.perform(&second, build_fence(1), AttemptKind::More).await;
    assert!(
        matches!(refused, Err(EffectError::Ledger(ledger::Error::Superseded))),
        "{refused:?}"
    );
    let refused = older.tidy(&ticket, build_fence(1)).await;
    assert!(
        matches!(refused, Err(EffectError::Ledger(ledger::Error::Superseded))),
        "{refused:?}"
    );
    assert_eq!(scene.jira.requests().len(), before);
}

/// Writes a row of another ticket. Its revision counts the writes to the ledger.
async fn write_probe(scene: &Scene, last: Option<TableRevision>) -> TableRevision {
    let cursors = scene.queue.table::<OutboundCursor>(KeyValueBucket::Effects);
    let other = TicketKey::jira("ENG-999").unwrap();
    let cursor = OutboundCursor::default();
    cursors
        .put(RecordKey::cursor(&other), &cursor, last)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_batch_move_cursor_once() {
    let scene = Scene::start().await;
    let ledger = EffectLedger::new(&scene.queue);
    let worker = ReportWorker::new(
        scene.queue.clone(),
        ledger,
        scene.performer(),
        CancellationToken::new(),
    );
    let ticket = scene.ticket();
    let (mut position, mut counts) = (0, Vec::new());
    let mut probe = write_probe(&scene, None).await;
    for (fence, reports) in [(1, 1), (2, 1), (3, 3)] {
        for _ in 0..reports {
            position += 2;
            let label = format!("later {position}");
            let skipped = OutboundAction::Skipped(SkipReason::Label { label });
            let report = build_report(&ticket, position, skipped);
            scene.queue.reports().append(&report).await.unwrap();
        }
        worker.settle_all(&ticket, build_fence(fence)).await.unwrap();
        let after = write_probe(&scene, Some(probe)).await;
        counts.push(after.0 - probe.0 - 1);
        probe = after;
    }
    // Cursor twice, board twice, and outcome; at first also the attempt and the receipt of the comment.
    assert_eq!(counts, [7, 5, 11]);
    assert_eq!(scene.jira.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn round_of_work_costs_no_write() {
    let scene = Scene::start().await;
    let ledger = EffectLedger::new(&scene.queue);
    let worker = ReportWorker::new(
        scene.queue.clone(),
        ledger.clone(),
        scene.performer(),
        CancellationToken::new(),
    );
    let mut probe = write_probe(&scene, None).await;
    let mut counts = Vec::new();
    // A round needs the progress of its run.
    for has_round in [false, true] {
        let ticket = scene.ticket();
        let started = OutboundAction::WorkStarted(report::WorkStarted {
            job: Job::Implement,
            repository: "acme/shop".parse().unwrap(),
            begun: report::WorkOrigin::default(),
        });
        let progress = has_round.then_some(report::JobProgress {
            job: Job::Implement,
            phase: None,
            clone_percent: None,
            cost: None,
        });
        let started = OutboundRequest {
            progress,
            ..build_report(&ticket, 2, started)
        };
        scene.queue.reports().append(&started).await.unwrap();
        worker.settle_all(&ticket, build_fence(1)).await.unwrap();
        let board = ledger.newest_board(&ticket).await.unwrap().unwrap();
        assert_eq!(board.rounds.count(), usize::from(has_round));
        let after = write_probe(&scene, Some(probe)).await;
        counts.push(after.0 - probe.0 - 1);
        probe = after;
    }
    assert_eq!(counts[0], counts[1]);
}
