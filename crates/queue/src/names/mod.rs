//! What everything is called on the server: streams, consumers, buckets, subjects and keys. Nothing else spells them.
//!
//! Subjects go from the general to the particular, and the ticket comes before what belongs to it, so that one filter
//! selects everything of a ticket. Each part is one token (see [`token`]), which decodes back exactly.

mod key;
pub(crate) mod token;

use domain::{Origin, RecordKind, RepositoryName, RunId, TicketKey};

pub use key::Key;
use token::{decode, encode};

use crate::digest::key_hash;

/// What one keyed log is called.
#[derive(Debug)]
pub(crate) struct LogNames {
    /// Stream of the records: `<prefix>.<ticket>.<hash of the key>`.
    pub(crate) stream: &'static str,
    prefix: &'static str,
    /// Stream of the tokens, `<prefix>.<ticket>`, and their consumer.
    pub(crate) wakeups: &'static str,
    wakeup_prefix: &'static str,
    pub(crate) workers: &'static str,
    /// Whether this log's waker also turns due timers into tokens.
    pub(crate) takes_timers: bool,
}

pub(crate) const TRIGGERS: LogNames = LogNames {
    stream: "TRIGGERS",
    prefix: "journeyman.triggers",
    wakeups: "WAKEUPS",
    wakeup_prefix: "journeyman.wakeups",
    workers: "planners",
    takes_timers: true,
};
pub(crate) const REPORTS: LogNames = LogNames {
    stream: "REPORTS",
    prefix: "journeyman.reports",
    wakeups: "REPORT_WAKEUPS",
    wakeup_prefix: "journeyman.report-wakeups",
    workers: "reporters",
    takes_timers: false,
};

/// The durable consumer that turns appends and due timers into tokens.
pub(crate) const WAKER: &str = "waker";
/// Stream of the deliveries: `journeyman.deliveries.<origin>`, and its durable consumer.
pub(crate) const DELIVERIES: &str = "DELIVERIES";
pub(crate) const ROUTER: &str = "router";
/// Stream of the timers: `journeyman.timers.set.<ticket>` and `journeyman.timers.due.<ticket>`.
pub(crate) const TIMERS: &str = "TIMERS";
/// Stream of the journals: `journeyman.journal.<ticket>.<sequence of the run>`.
pub(crate) const JOURNAL: &str = "JOURNAL";
/// Stream of the dead letters: `journeyman.dead.<what>.<ticket, or nothing>`.
pub(crate) const DEAD: &str = "DEAD";

const DELIVERIES_PREFIX: &str = "journeyman.deliveries";
const TIMERS_SET: &str = "journeyman.timers.set";
const TIMERS_DUE: &str = "journeyman.timers.due";
const JOURNAL_PREFIX: &str = "journeyman.journal";
const DEAD_PREFIX: &str = "journeyman.dead";
/// Of no stream: `journeyman.live.<ticket>.<sequence of the run>`.
const LIVE_PREFIX: &str = "journeyman.live";

impl LogNames {
    /// The subject of one record.
    pub(crate) fn record(&self, ticket: &TicketKey, key: &str) -> String {
        format!("{}.{}", self.ticket(ticket), key_hash(key))
    }

    /// Every record of a ticket.
    pub(crate) fn records_of(&self, ticket: &TicketKey) -> String {
        format!("{}.*", self.ticket(ticket))
    }

    /// Where the log's epoch stands among the control records.
    pub(crate) fn epoch(&self) -> String {
        format!("epoch:{}", self.wakeups)
    }

    /// Every record.
    pub(crate) fn records(&self) -> String {
        format!("{}.>", self.prefix)
    }

    /// The subject of a ticket's token.
    pub(crate) fn token(&self, ticket: &TicketKey) -> String {
        under(self.wakeup_prefix, &ticket.to_string())
    }

    /// Every token.
    pub(crate) fn tokens(&self) -> String {
        format!("{}.>", self.wakeup_prefix)
    }

    /// The ticket of a record, by its subject.
    pub(crate) fn ticket_of_record(&self, subject: &str) -> Option<TicketKey> {
        ticket_of(self.prefix, subject)
    }

    /// The ticket of a token, by its subject.
    pub(crate) fn ticket_of_token(&self, subject: &str) -> Option<TicketKey> {
        ticket_of(self.wakeup_prefix, subject)
    }

    fn ticket(&self, ticket: &TicketKey) -> String {
        under(self.prefix, &ticket.to_string())
    }
}

/// The subject of an origin's deliveries.
pub(crate) fn deliveries_of(origin: &Origin) -> String {
    under(DELIVERIES_PREFIX, &origin.to_string())
}

/// The message id of a delivery. An id is a sender's and may hold anything.
pub(crate) fn delivery_id(origin: &Origin, id: &str) -> String {
    format!("{}.{}", encode(&origin.to_string()), encode(id))
}

/// Every delivery.
pub(crate) fn deliveries() -> String {
    format!("{DELIVERIES_PREFIX}.>")
}

/// Where a ticket's timer is set.
pub(crate) fn timer_set(ticket: &TicketKey) -> String {
    under(TIMERS_SET, &ticket.to_string())
}

/// Where the server puts a ticket's timer when it is due.
pub(crate) fn timer_due(ticket: &TicketKey) -> String {
    under(TIMERS_DUE, &ticket.to_string())
}

/// Every timer that is set.
pub(crate) fn timers_set() -> String {
    format!("{TIMERS_SET}.*")
}

/// Every timer that is due.
pub(crate) fn timers_due() -> String {
    format!("{TIMERS_DUE}.*")
}

/// The ticket of a due timer, by its subject.
pub(crate) fn ticket_of_timer(subject: &str) -> Option<TicketKey> {
    ticket_of(TIMERS_DUE, subject)
}

/// The subject of a run's journal.
pub(crate) fn journal(run: &RunId) -> String {
    format!(
        "{}.{}",
        under(JOURNAL_PREFIX, &run.ticket().to_string()),
        run.sequence()
    )
}

/// The subject of what a run's tools print.
pub(crate) fn live(run: &RunId) -> String {
    format!(
        "{}.{}",
        under(LIVE_PREFIX, &run.ticket().to_string()),
        run.sequence()
    )
}

/// What the tools of every run print.
pub(crate) fn lives() -> String {
    format!("{LIVE_PREFIX}.>")
}

/// The journals of every run of a ticket.
pub(crate) fn journals_of(ticket: &TicketKey) -> String {
    format!("{}.*", under(JOURNAL_PREFIX, &ticket.to_string()))
}

/// Every journal.
pub(crate) fn journals() -> String {
    format!("{JOURNAL_PREFIX}.>")
}

/// The run of a journal, by its subject.
pub(crate) fn run_of(subject: &str) -> Option<RunId> {
    let ticket = ticket_of(JOURNAL_PREFIX, subject)?;
    let (_, sequence) = subject.rsplit_once('.')?;
    let run = RunId::new(ticket, sequence.parse().ok()?);
    (journal(&run) == subject).then_some(run)
}

/// The subject of a dead letter; a ticket's stand under its key.
pub(crate) fn letter(what: RecordKind, ticket: Option<&TicketKey>) -> String {
    let ticket = ticket.map(ToString::to_string).unwrap_or_default();
    format!("{}.{}", under(DEAD_PREFIX, what.as_str()), encode(&ticket))
}

/// Every dead letter of a ticket.
pub(crate) fn letters_of(ticket: &TicketKey) -> String {
    format!("{DEAD_PREFIX}.*.{}", encode(&ticket.to_string()))
}

/// Every dead letter about a kind of record.
pub(crate) fn letters_about(what: RecordKind) -> String {
    format!("{}.*", under(DEAD_PREFIX, what.as_str()))
}

/// Every dead letter.
pub(crate) fn letters() -> String {
    format!("{DEAD_PREFIX}.>")
}

/// The key of the record of work that one process of a cluster does.
pub(crate) fn singleton(name: &str) -> String {
    format!("singleton:{name}")
}

/// The key-value buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// Ticket rows: `<ticket>`.
    Tickets,
    /// The reporter's ledger: `<ticket>.<report>.<effect>` and `<ticket>.<name>`, see [`Key`].
    Effects,
    /// Head branches: `<repository>.<branch>.<ticket>`; see [`crate::Branches`].
    Branches,
    /// The index of our pull requests: `<repository>.<number>.<ticket>`; see [`crate::PullRequests`].
    PullRequests,
    /// Control records (stop-all …) and epochs: `<name>`.
    Control,
    /// Runs that wait for a slot: `<pool>`.
    Slots,
    /// What earlier work took: `<repository>`.
    History,
    /// Runs as people see them: `<ticket>.<sequence of the run>`; see [`crate::Runs`].
    Runs,
    /// Pools of executors as planners see them: `<pool>.<planner>`. What was not written for a day is gone.
    Pools,
}

impl Bucket {
    pub(crate) const ALL: [Self; 9] = [
        Self::Tickets,
        Self::Effects,
        Self::Branches,
        Self::PullRequests,
        Self::Control,
        Self::Slots,
        Self::History,
        Self::Runs,
        Self::Pools,
    ];

    /// Its name on the server.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tickets => "tickets",
            Self::Effects => "effects",
            Self::Branches => "branches",
            Self::PullRequests => "pull-requests",
            Self::Control => "control",
            Self::Slots => "slots",
            Self::History => "history",
            Self::Runs => "runs",
            Self::Pools => "pools",
        }
    }

    /// The stream that holds it.
    pub(crate) fn stream(self) -> String {
        format!("KV_{}", self.name())
    }

    /// The subject of a key.
    pub(crate) fn subject(self, key: &Key) -> String {
        format!("$KV.{}.{}", self.name(), key.tokens())
    }

    /// Every key that begins with these parts, itself not included.
    pub(crate) fn under(self, key: &Key) -> String {
        format!("{}.>", self.subject(key))
    }

    /// Every key of two parts whose second is this.
    pub(crate) fn named(self, name: &str) -> String {
        format!("$KV.{}.*.{}", self.name(), encode(name))
    }

    /// Every key.
    pub(crate) fn all(self) -> String {
        format!("$KV.{}.>", self.name())
    }

    /// The key of a subject of this bucket.
    pub(crate) fn key_of(self, subject: &str) -> Option<Key> {
        let tokens = subject
            .strip_prefix("$KV.")?
            .strip_prefix(self.name())?
            .strip_prefix('.')?;
        Key::of_tokens(tokens)
    }
}

/// The records of a branch, whatever their ticket.
pub(crate) fn branch(repository: &RepositoryName, branch: &str) -> String {
    let key = Key::from(repository.to_string().as_str()).and(branch);
    format!("{}.*", Bucket::Branches.subject(&key))
}

/// The records of every branch of a ticket.
pub(crate) fn branches_of(ticket: &TicketKey) -> String {
    third_token(Bucket::Branches, ticket)
}

/// The records of a pull request, whatever their ticket.
pub(crate) fn pull_request(repository: &RepositoryName, number: u64) -> String {
    let key = Key::from(repository.to_string().as_str()).and(&number.to_string());
    format!("{}.*", Bucket::PullRequests.subject(&key))
}

/// The records of every pull request of a ticket.
pub(crate) fn pull_requests_of(ticket: &TicketKey) -> String {
    third_token(Bucket::PullRequests, ticket)
}

fn third_token(bucket: Bucket, ticket: &TicketKey) -> String {
    format!("$KV.{}.*.*.{}", bucket.name(), encode(&ticket.to_string()))
}

/// The one object store, its stream, and the subjects in there: descriptions and chunks.
pub(crate) const STORE: &str = "objects";
pub(crate) const OBJECTS: &str = "OBJ_objects";
pub(crate) const OBJECT_METAS: &str = "$O.objects.M.>";
pub(crate) const OBJECT_CHUNKS: &str = "$O.objects.C.>";

/// The subject of an object's description; the client library encodes names so.
pub(crate) fn object_meta(encoded_name: &str) -> String {
    format!("$O.{STORE}.M.{encoded_name}")
}

/// The subject of an object's chunks; `*` for those of every object.
pub(crate) fn object_chunks(nuid: &str) -> String {
    format!("$O.{STORE}.C.{nuid}")
}

fn under(prefix: &str, text: &str) -> String {
    format!("{prefix}.{}", encode(text))
}

/// The ticket in the first token after `prefix.`.
fn ticket_of(prefix: &str, subject: &str) -> Option<TicketKey> {
    let rest = subject.strip_prefix(prefix)?.strip_prefix('.')?;
    decode(rest.split('.').next()?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticket(text: &str) -> TicketKey {
        text.parse().unwrap()
    }

    #[test]
    fn subjects_read_well_and_name_the_ticket_before_what_belongs_to_it() {
        let shop = ticket("github+ghe:acme/shop#7");
        let run = RunId::new(shop.clone(), 57);
        assert_eq!(
            journal(&run),
            "journeyman.journal.github=2Bghe=3Aacme=2Fshop=237.57"
        );
        assert_eq!(
            journals_of(&shop),
            "journeyman.journal.github=2Bghe=3Aacme=2Fshop=237.*"
        );
        assert_eq!(run_of(&journal(&run)), Some(run));
        let record = TRIGGERS.record(&shop, "comment:1");
        assert!(
            record.starts_with("journeyman.triggers.github=2Bghe=3Aacme=2Fshop=237."),
            "{record}"
        );
        assert_eq!(TRIGGERS.ticket_of_record(&record), Some(shop.clone()));
        assert_eq!(TRIGGERS.ticket_of_record("journeyman.triggersX.a"), None);
        assert_eq!(
            letter(RecordKind::Trigger, Some(&shop)),
            "journeyman.dead.trigger.github=2Bghe=3Aacme=2Fshop=237"
        );
        assert_eq!(letter(RecordKind::Delivery, None), "journeyman.dead.delivery.=");
        let key = Bucket::Effects.subject(&Key::from(&ticket("jira:ENG-1")).and("r").and("e"));
        assert_eq!(key, "$KV.effects.jira=3AENG-1.r.e");
    }

    /// Whether a filter of NATS selects a subject.
    fn selects(filter: &str, subject: &str) -> bool {
        let (mut filter, mut subject) = (filter.split('.'), subject.split('.'));
        loop {
            match (filter.next(), subject.next()) {
                (Some(">"), Some(_)) | (None, None) => return true,
                (Some("*"), Some(_)) => {}
                (Some(wanted), Some(token)) if wanted == token => {}
                _ => return false,
            }
        }
    }

    proptest! {
        #[test]
        fn one_filter_selects_everything_of_a_ticket_and_nothing_of_another(
            a in "(jira|jira\\+dc):[A-Z]{1,2}-[1-9]", b in "(jira|jira\\+dc):[A-Z]{1,2}-[1-9]",
            sequence: u64, text: String,
        ) {
            let (a, b) = (ticket(&a), ticket(&b));
            let (run, is_same) = (RunId::new(b.clone(), sequence), a == b);
            prop_assert_eq!(selects(&journals_of(&a), &journal(&run)), is_same);
            prop_assert_eq!(selects(&TRIGGERS.records_of(&a), &TRIGGERS.record(&b, &text)), is_same);
            prop_assert_eq!(selects(&letters_of(&a), &letter(RecordKind::Row, Some(&b))), is_same);
            prop_assert!(!selects(&letters_of(&a), &letter(RecordKind::Row, None)));
            let effect = Bucket::Effects.subject(&Key::from(&b).and(&text).and(&text));
            prop_assert_eq!(selects(&Bucket::Effects.under(&Key::from(&a)), &effect), is_same);
            let shop: RepositoryName = "acme/shop".parse().unwrap();
            let kept = Bucket::Branches.subject(&Key::branch(&shop, &text, &b));
            prop_assert!(selects(&branch(&shop, &text), &kept));
            prop_assert_eq!(selects(&branches_of(&a), &kept), is_same);
            let open = Bucket::PullRequests.subject(&Key::pull_request(&shop, sequence, &b));
            prop_assert!(selects(&pull_request(&shop, sequence), &open));
            prop_assert_eq!(selects(&pull_requests_of(&a), &open), is_same);
            prop_assert_eq!(run_of(&journal(&run)), Some(run));
        }
    }
}
