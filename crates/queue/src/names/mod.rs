//! Names on the server: streams, consumers, buckets, subjects and keys. No other module spells them.
//!
//! Subjects go from the general to the particular. The ticket precedes the parts that belong to it, so one
//! filter selects all messages of a ticket. Each part is one token (see [`token`]), which decodes back
//! exactly.

mod key;
pub(crate) mod token;

use domain::{RecordKind, RepositoryName, RunId, ServiceOrigin, TicketKey};

pub use key::RecordKey;
use key::key_hash;
pub(crate) use key::sha256_hex;
use token::{decode_token, encode_token};

/// Names of one keyed log.
#[derive(Debug)]
pub(crate) struct LogNames {
    /// Stream of the records, with subjects `<prefix>.<ticket>.<hash of the key>`.
    pub(crate) stream: &'static str,
    prefix: &'static str,
    /// Stream of the tokens, with subjects `<wakeup_prefix>.<ticket>`; `workers` is its durable consumer.
    pub(crate) wakeups: &'static str,
    wakeup_prefix: &'static str,
    pub(crate) workers: &'static str,
    /// True when the waker of this log also turns due timers into tokens.
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

/// Durable consumer that turns appended records and due timers into tokens.
pub(crate) const WAKER: &str = "waker";
/// Stream of the deliveries, with subjects `journeyman.deliveries.<origin>`; `ROUTER` is its durable
/// consumer.
pub(crate) const DELIVERIES: &str = "DELIVERIES";
pub(crate) const ROUTER: &str = "router";
/// Stream of the timers, with subjects `journeyman.timers.set.<ticket>` and `journeyman.timers.due.<ticket>`.
pub(crate) const TIMERS: &str = "TIMERS";
/// Stream of the journals, with subjects `journeyman.journal.<ticket>.<sequence of the run>`.
pub(crate) const JOURNAL: &str = "JOURNAL";
/// Stream of the dead letters, with subjects `journeyman.dead.<what>.<ticket, or the empty token>`.
pub(crate) const DEAD: &str = "DEAD";

const DELIVERIES_PREFIX: &str = "journeyman.deliveries";
const TIMERS_SET: &str = "journeyman.timers.set";
const TIMERS_DUE: &str = "journeyman.timers.due";
const JOURNAL_PREFIX: &str = "journeyman.journal";
const DEAD_PREFIX: &str = "journeyman.dead";
/// Prefix of live output, which no stream stores: `journeyman.live.<ticket>.<sequence of the run>`.
const LIVE_PREFIX: &str = "journeyman.live";

impl LogNames {
    /// Subject of one record; the key is hashed to a token.
    pub(crate) fn record(&self, ticket: &TicketKey, key: &str) -> String {
        format!("{}.{}", self.ticket(ticket), key_hash(key))
    }

    /// Filter for all records of a ticket.
    pub(crate) fn records_of(&self, ticket: &TicketKey) -> String {
        format!("{}.*", self.ticket(ticket))
    }

    /// Key of the log's epoch in the `control` bucket.
    pub(crate) fn epoch(&self) -> String {
        format!("epoch:{}", self.wakeups)
    }

    /// Filter for all records of the log.
    pub(crate) fn records(&self) -> String {
        format!("{}.>", self.prefix)
    }

    /// Subject of a ticket's token.
    pub(crate) fn token(&self, ticket: &TicketKey) -> String {
        build_subject(self.wakeup_prefix, &ticket.to_string())
    }

    /// Filter for all tokens of the log.
    pub(crate) fn tokens(&self) -> String {
        format!("{}.>", self.wakeup_prefix)
    }

    /// Ticket in the subject of a record.
    pub(crate) fn ticket_of_record(&self, subject: &str) -> Option<TicketKey> {
        ticket_of(self.prefix, subject)
    }

    /// Ticket in the subject of a token.
    pub(crate) fn ticket_of_token(&self, subject: &str) -> Option<TicketKey> {
        ticket_of(self.wakeup_prefix, subject)
    }

    fn ticket(&self, ticket: &TicketKey) -> String {
        build_subject(self.prefix, &ticket.to_string())
    }
}

/// Subject of the deliveries of an origin.
pub(crate) fn deliveries_of(origin: &ServiceOrigin) -> String {
    build_subject(DELIVERIES_PREFIX, &origin.to_string())
}

/// Message id of a delivery. The sender chooses `id`, so both parts are encoded.
pub(crate) fn delivery_id(origin: &ServiceOrigin, id: &str) -> String {
    format!("{}.{}", encode_token(&origin.to_string()), encode_token(id))
}

/// Filter for all deliveries.
pub(crate) fn build_delivery_filter() -> String {
    format!("{DELIVERIES_PREFIX}.>")
}

/// Subject on which a ticket's timer is set.
pub(crate) fn timer_set(ticket: &TicketKey) -> String {
    build_subject(TIMERS_SET, &ticket.to_string())
}

/// Subject on which the server publishes a ticket's timer when it is due.
pub(crate) fn timer_due(ticket: &TicketKey) -> String {
    build_subject(TIMERS_DUE, &ticket.to_string())
}

/// Filter for all timers that are set.
pub(crate) fn timers_set() -> String {
    format!("{TIMERS_SET}.*")
}

/// Filter for all timers that are due.
pub(crate) fn timers_due() -> String {
    format!("{TIMERS_DUE}.*")
}

/// Ticket in the subject of a due timer.
pub(crate) fn ticket_of_timer(subject: &str) -> Option<TicketKey> {
    ticket_of(TIMERS_DUE, subject)
}

/// Subject of a run's journal.
pub(crate) fn build_journal_subject(run: &RunId) -> String {
    format!(
        "{}.{}",
        build_subject(JOURNAL_PREFIX, &run.ticket().to_string()),
        run.sequence()
    )
}

/// Subject of the live output of a run's tools.
pub(crate) fn build_live_subject(run: &RunId) -> String {
    format!(
        "{}.{}",
        build_subject(LIVE_PREFIX, &run.ticket().to_string()),
        run.sequence()
    )
}

/// Filter for the live output of all runs.
pub(crate) fn build_live_filter() -> String {
    format!("{LIVE_PREFIX}.>")
}

/// Filter for the journals of a ticket's runs.
pub(crate) fn journals_of(ticket: &TicketKey) -> String {
    format!("{}.*", build_subject(JOURNAL_PREFIX, &ticket.to_string()))
}

/// Filter for all journals.
pub(crate) fn build_journal_filter() -> String {
    format!("{JOURNAL_PREFIX}.>")
}

/// Run in the subject of a journal.
pub(crate) fn run_of(subject: &str) -> Option<RunId> {
    let ticket = ticket_of(JOURNAL_PREFIX, subject)?;
    let (_, sequence) = subject.rsplit_once('.')?;
    let run = RunId::new(ticket, sequence.parse().ok()?);
    // `parse` accepts a sign and leading zeros; only the subject that this crate writes names a run.
    (build_journal_subject(&run) == subject).then_some(run)
}

/// Subject of a dead letter; the last token is the ticket, or empty when the ticket is unknown.
pub(crate) fn build_letter_subject(what: RecordKind, ticket: Option<&TicketKey>) -> String {
    let ticket = ticket.map(ToString::to_string).unwrap_or_default();
    format!(
        "{}.{}",
        build_subject(DEAD_PREFIX, what.as_str()),
        encode_token(&ticket)
    )
}

/// Filter for all dead letters of a ticket.
pub(crate) fn letters_of(ticket: &TicketKey) -> String {
    format!("{DEAD_PREFIX}.*.{}", encode_token(&ticket.to_string()))
}

/// Filter for all dead letters about one kind of record.
pub(crate) fn letters_about(what: RecordKind) -> String {
    format!("{}.*", build_subject(DEAD_PREFIX, what.as_str()))
}

/// Filter for all dead letters.
pub(crate) fn build_letter_filter() -> String {
    format!("{DEAD_PREFIX}.>")
}

/// Key of the holder record of work that one process of a cluster does.
pub(crate) fn build_singleton_key(name: &str) -> String {
    format!("singleton:{name}")
}

/// Key-value buckets, with the parts of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum KeyValueBucket {
    /// Rows of tickets: `<ticket>`.
    Tickets,
    /// Ledger of the reporter: `<ticket>.<report>.<effect>` and `<ticket>.<name>`, see [`RecordKey`].
    Effects,
    /// Head branches: `<repository>.<branch>.<ticket>`; see [`crate::BranchIndex`].
    Branches,
    /// Index of Journeyman's pull requests: `<repository>.<number>.<ticket>`; see [`crate::PullRequestIndex`].
    PullRequests,
    /// Control records such as stop-all, and epochs: `<name>`.
    Control,
    /// Runs that wait for a slot: `<pool>`.
    Slots,
    /// Latest runs that brought a pull request: `<repository>`.
    History,
    /// Overviews of runs for the API and the console: `<ticket>.<sequence of the run>`; see [`crate::RunOverviews`].
    Runs,
    /// Each planner's view of a pool of executors: `<pool>.<planner>`. A view expires after a day without a
    /// write.
    Pools,
}

impl KeyValueBucket {
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

    /// Name of the bucket on the server.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Stream behind the bucket.
    pub(crate) fn stream(self) -> String {
        format!("KV_{}", self.name())
    }

    /// Subject of a key.
    pub(crate) fn subject(self, key: &RecordKey) -> String {
        format!("$KV.{}.{}", self.name(), key.tokens())
    }

    /// Filter for all keys below a key; the key itself is not included.
    pub(crate) fn under(self, key: &RecordKey) -> String {
        format!("{}.>", self.subject(key))
    }

    /// Filter for all keys of two parts whose second part is `name`.
    pub(crate) fn named(self, name: &str) -> String {
        format!("$KV.{}.*.{}", self.name(), encode_token(name))
    }

    /// Filter for all keys of the bucket.
    pub(crate) fn all(self) -> String {
        format!("$KV.{}.>", self.name())
    }

    /// Key in a subject of this bucket, or `None` for a subject of another bucket.
    pub(crate) fn key_of(self, subject: &str) -> Option<RecordKey> {
        let tokens = subject
            .strip_prefix("$KV.")?
            .strip_prefix(self.name())?
            .strip_prefix('.')?;
        RecordKey::of_tokens(tokens)
    }
}

/// Filter for the records of a branch, of any ticket.
pub(crate) fn build_branch_filter(repository: &RepositoryName, branch: &str) -> String {
    let key = RecordKey::from(repository.to_string().as_str()).and(branch);
    format!("{}.*", KeyValueBucket::Branches.subject(&key))
}

/// Filter for the records of all branches of a ticket.
pub(crate) fn branches_of(ticket: &TicketKey) -> String {
    third_token(KeyValueBucket::Branches, ticket)
}

/// Filter for the records of a pull request, of any ticket.
pub(crate) fn build_pull_request_filter(repository: &RepositoryName, number: u64) -> String {
    let key = RecordKey::from(repository.to_string().as_str()).and(&number.to_string());
    format!("{}.*", KeyValueBucket::PullRequests.subject(&key))
}

/// Filter for the records of all pull requests of a ticket.
pub(crate) fn pull_requests_of(ticket: &TicketKey) -> String {
    third_token(KeyValueBucket::PullRequests, ticket)
}

fn third_token(bucket: KeyValueBucket, ticket: &TicketKey) -> String {
    format!("$KV.{}.*.*.{}", bucket.name(), encode_token(&ticket.to_string()))
}

/// Name of the object store, its stream, and the subjects of its descriptions (`M`) and chunks (`C`).
pub(crate) const STORE: &str = "objects";
pub(crate) const OBJECTS: &str = "OBJ_objects";
pub(crate) const OBJECT_METAS: &str = "$O.objects.M.>";
pub(crate) const OBJECT_CHUNKS: &str = "$O.objects.C.>";

/// Subject of an object's description. `encoded_name` is Base64 as in the client library.
pub(crate) fn object_meta(encoded_name: &str) -> String {
    format!("$O.{STORE}.M.{encoded_name}")
}

/// Subject of an object's chunks; `*` as `nuid` selects those of all objects.
pub(crate) fn object_chunks(nuid: &str) -> String {
    format!("$O.{STORE}.C.{nuid}")
}

fn build_subject(prefix: &str, text: &str) -> String {
    format!("{prefix}.{}", encode_token(text))
}

/// Ticket in the first token after `prefix.`.
fn ticket_of(prefix: &str, subject: &str) -> Option<TicketKey> {
    let rest = subject.strip_prefix(prefix)?.strip_prefix('.')?;
    decode_token(rest.split('.').next()?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_ticket(text: &str) -> TicketKey {
        text.parse().unwrap()
    }

    #[test]
    fn subjects_name_ticket_before_its_parts() {
        let shop = parse_ticket("github+ghe:acme/shop#7");
        let run = RunId::new(shop.clone(), 57);
        assert_eq!(
            build_journal_subject(&run),
            "journeyman.journal.github=2Bghe=3Aacme=2Fshop=237.57"
        );
        assert_eq!(
            journals_of(&shop),
            "journeyman.journal.github=2Bghe=3Aacme=2Fshop=237.*"
        );
        assert_eq!(run_of(&build_journal_subject(&run)), Some(run));
        let record = TRIGGERS.record(&shop, "comment:1");
        assert!(
            record.starts_with("journeyman.triggers.github=2Bghe=3Aacme=2Fshop=237."),
            "{record}"
        );
        assert_eq!(TRIGGERS.ticket_of_record(&record), Some(shop.clone()));
        assert_eq!(TRIGGERS.ticket_of_record("journeyman.triggersX.a"), None);
        assert_eq!(
            build_letter_subject(RecordKind::Trigger, Some(&shop)),
            "journeyman.dead.trigger.github=2Bghe=3Aacme=2Fshop=237"
        );
        assert_eq!(
            build_letter_subject(RecordKind::Delivery, None),
            "journeyman.dead.delivery.="
        );
        let key =
            KeyValueBucket::Effects.subject(&RecordKey::from(&parse_ticket("jira:ENG-1")).and("r").and("e"));
        assert_eq!(key, "$KV.effects.jira=3AENG-1.r.e");
    }

    /// True when a NATS filter selects a subject.
    fn is_subject_selected(filter: &str, subject: &str) -> bool {
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
        fn filter_selects_exactly_one_ticket(
            a in "(jira|jira\\+dc):[A-Z]{1,2}-[1-9]", b in "(jira|jira\\+dc):[A-Z]{1,2}-[1-9]",
            sequence: u64, text: String,
        ) {
            let (a, b) = (parse_ticket(&a), parse_ticket(&b));
            let (run, is_same) = (RunId::new(b.clone(), sequence), a == b);
            prop_assert_eq!(is_subject_selected(&journals_of(&a), &build_journal_subject(&run)), is_same);
            prop_assert_eq!(is_subject_selected(&TRIGGERS.records_of(&a), &TRIGGERS.record(&b, &text)), is_same);
            prop_assert_eq!(is_subject_selected(&letters_of(&a), &build_letter_subject(RecordKind::Row, Some(&b))), is_same);
            prop_assert!(!is_subject_selected(&letters_of(&a), &build_letter_subject(RecordKind::Row, None)));
            let effect = KeyValueBucket::Effects.subject(&RecordKey::from(&b).and(&text).and(&text));
            prop_assert_eq!(is_subject_selected(&KeyValueBucket::Effects.under(&RecordKey::from(&a)), &effect), is_same);
            let shop: RepositoryName = "acme/shop".parse().unwrap();
            let kept = KeyValueBucket::Branches.subject(&RecordKey::branch(&shop, &text, &b));
            prop_assert!(is_subject_selected(&build_branch_filter(&shop, &text), &kept));
            prop_assert_eq!(is_subject_selected(&branches_of(&a), &kept), is_same);
            let open = KeyValueBucket::PullRequests.subject(&RecordKey::pull_request(&shop, sequence, &b));
            prop_assert!(is_subject_selected(&build_pull_request_filter(&shop, sequence), &open));
            prop_assert_eq!(is_subject_selected(&pull_requests_of(&a), &open), is_same);
            prop_assert_eq!(run_of(&build_journal_subject(&run)), Some(run));
        }
    }
}
