//! Replies of models in all journals, read page by page with the repository of their run.

use bootstrap::read_wall_clock;
use domain::{Fact, JournalEntry, ModelReply, ReplyStop, RunId, SpendWindow, Timestamp, TokenUsage};
use queue::{ChargedEntry, SpendReader};

use crate::world::{World, build_entry, build_run_id, build_started_fact};

fn build_reply_fact(run: &RunId) -> Fact {
    Fact::ModelReplied {
        id: run.call(1),
        reply: ModelReply {
            blocks: Vec::new(),
            stop: ReplyStop::EndTurn,
            usage: TokenUsage::default(),
            model: "large".to_owned(),
            provider: "main".to_owned(),
            cost_micros: Some(1),
        },
        prompt: None,
    }
}

/// Writer of one run's journal, whose entries have one time.
struct JournalWriter<'a> {
    world: &'a World,
    run: RunId,
    at: Timestamp,
    last: u64,
    position: u64,
}

impl<'a> JournalWriter<'a> {
    fn new(world: &'a World, number: u64, at: Timestamp) -> Self {
        Self {
            world,
            run: build_run_id(number),
            at,
            last: 0,
            position: 0,
        }
    }

    async fn append(&mut self, fact: Fact) -> &mut Self {
        let entry = JournalEntry {
            fact,
            at: self.at,
            ..build_entry(self.position, &format!("n{}", self.position))
        };
        let journal = self.world.queue.journal();
        self.last = journal.append(&self.run, self.last, &entry).await.unwrap();
        self.position += 1;
        self
    }

    async fn start(&mut self) -> &mut Self {
        let ticket = self.run.ticket().clone();
        self.append(build_started_fact(&ticket)).await
    }

    async fn reply(&mut self) -> &mut Self {
        let fact = build_reply_fact(&self.run);
        self.append(fact).await
    }

    /// Stores an entry that cannot be read.
    async fn corrupt(&mut self) -> &mut Self {
        let raw = self.world.raw().await;
        let ticket = self.run.ticket().to_string().replace(':', "=3A");
        let subject = format!("journeyman.journal.{ticket}.{}", self.run.sequence());
        let ack = raw.publish(subject, "{\"position\":".into()).await.unwrap();
        self.last = ack.await.unwrap().sequence;
        self.position += 1;
        self
    }
}

async fn read_charged(world: &World, window: SpendWindow, from: Option<u64>) -> Vec<ChargedEntry> {
    let mut reader = SpendReader::new(world.queue.journal(), window, from);
    let mut charged = Vec::new();
    while let Some(page) = reader.read_page(|_| true).await.unwrap() {
        charged.extend(page);
    }
    assert_eq!(reader.next_sequence(), None);
    charged
}

fn list_repositories(charged: &[ChargedEntry]) -> Vec<Option<String>> {
    let names = charged.iter().map(|entry| entry.source.repository.as_ref());
    names.map(|name| name.map(ToString::to_string)).collect()
}

#[tokio::test]
async fn reply_counts_beside_unreadable_entry() {
    let world = World::new().await;
    let now = read_wall_clock();
    let mut journal = JournalWriter::new(&world, 1, now);
    let started = journal.start().await.last;
    journal.reply().await.corrupt().await.reply().await;
    let shop = Some("acme/shop".to_owned());
    let window = SpendWindow::starting_at(now);
    let whole = read_charged(&world, window, None).await;
    assert_eq!(list_repositories(&whole), [shop.clone(), shop.clone()]);
    // The run started before the first page.
    let rest = read_charged(&world, window, Some(started + 1)).await;
    assert_eq!(list_repositories(&rest), [shop.clone(), shop]);
}

#[tokio::test]
async fn unreadable_start_leaves_repository_unknown() {
    let world = World::new().await;
    let now = read_wall_clock();
    JournalWriter::new(&world, 1, now).corrupt().await.reply().await;
    let charged = read_charged(&world, SpendWindow::starting_at(now), None).await;
    assert_eq!(list_repositories(&charged), [None]);
}

#[tokio::test]
async fn reader_stays_within_period_and_runs() {
    let world = World::new().await;
    let at = read_wall_clock();
    for number in [1, 2] {
        JournalWriter::new(&world, number, at).start().await.reply().await;
    }
    for (since, until, count) in [(0, 1, 2), (1, 2, 0), (-1, 0, 0)] {
        let window = SpendWindow {
            since: at.plus_ms(since),
            until: at.plus_ms(until),
        };
        assert_eq!(
            read_charged(&world, window, None).await.len(),
            count,
            "{window:?}"
        );
    }
    let mut reader = SpendReader::new(world.queue.journal(), SpendWindow::starting_at(at), None);
    let wanted = build_run_id(2);
    let page = reader.read_page(|run| *run == wanted).await.unwrap().unwrap();
    assert_eq!(
        page.iter().map(|charged| &charged.run).collect::<Vec<_>>(),
        [&wanted]
    );
    assert!(reader.next_sequence().is_some_and(|next| next > 4));
}
