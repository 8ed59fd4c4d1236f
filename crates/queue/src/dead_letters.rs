//! Dead letters: records that could not be handled, with the reason and the original bytes.

use std::sync::Arc;

use async_nats::{HeaderMap, header};
use bytes::Bytes;
use domain::{RecordKind, StoredRecord, TicketKey, Timestamp, cause::format_error_chain, record_format};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    body::{self, DeliveryHeader},
    connection::NatsConnection,
    error::Error,
    names::{self, DEAD, REPORTS, TRIGGERS},
    objects::ContentStore,
    unreadable_record::UnreadableRecord,
    wire,
};

const HEADER: &str = "Journeyman-Dead-Letter";
/// Header with the stream of a record that could not be read.
const ORIGIN: &str = "Journeyman-Origin";

// Sequences that a list reads first: as many as one page has at most.
const FIRST_WINDOW: u64 = 256;
// Pages that a list reads at most.
const MOST_PAGES: u32 = 128;

/// Description of a record that could not be handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Kind of the record.
    pub what: RecordKind,
    /// Identity of the record: a delivery's id, for instance.
    pub id: String,
    /// Ticket of the record, if known.
    pub ticket: Option<TicketKey>,
    /// Reason and advice, for the operator.
    pub reason: String,
    /// Time at which the service gave the record up.
    pub at: Timestamp,
}

impl StoredRecord for DeadLetter {
    const KIND: RecordKind = RecordKind::Letter;
}

impl DeadLetter {
    /// Makes a letter about an unreadable record, with advice for the operator.
    pub fn about(
        record: &UnreadableRecord,
        what: RecordKind,
        id: impl Into<String>,
        ticket: Option<TicketKey>,
        advice: &str,
        at: Timestamp,
    ) -> Self {
        Self {
            what,
            id: id.into(),
            ticket,
            reason: format!("{}; {advice}", record.problem()),
            at,
        }
    }
}

/// Dead letters, kept for 90 days by default. Cheap to clone.
#[derive(Clone)]
pub struct DeadLetters {
    connection: Arc<NatsConnection>,
}

impl DeadLetters {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self { connection }
    }

    fn objects(&self) -> ContentStore {
        ContentStore::new(self.connection.clone())
    }

    /// Stores a letter with the bytes of its record.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after three attempts.
    pub async fn publish(&self, letter: &DeadLetter, payload: Bytes) -> Result<(), Error> {
        self.store(letter, HeaderMap::new(), payload).await
    }

    /// Stores a letter about an unreadable record, with its bytes. A repetition within two minutes is
    /// ignored.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after three attempts.
    pub async fn publish_unreadable(
        &self,
        letter: &DeadLetter,
        record: &UnreadableRecord,
    ) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, record.stream.as_str());
        let place = format!("unreadable.{}.{}", record.stream, record.sequence);
        headers.insert(header::NATS_MESSAGE_ID, place);
        self.store(letter, headers, record.bytes.clone()).await
    }

    async fn store(&self, letter: &DeadLetter, mut headers: HeaderMap, payload: Bytes) -> Result<(), Error> {
        let text = record_format::encode_stored_text(letter)
            .map_err(|error| Error::corrupt("a dead letter", error))?;
        headers.insert(HEADER, text);
        // A publish is retried after a lost acknowledgement. With an id the server drops the second
        // copy.
        if headers.get(header::NATS_MESSAGE_ID).is_none() {
            headers.insert(header::NATS_MESSAGE_ID, Uuid::new_v4().to_string());
        }
        let payload = body::pack_body(&self.objects(), &mut headers, payload).await?;
        let subject = names::build_letter_subject(letter.what, letter.ticket.as_ref());
        let published = self.connection.publish(&subject, headers, payload);
        failpoint::around_kind("queue.dead.publish", letter.what.as_str(), published).await?;
        Ok(())
    }

    /// Number of dead letters.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn count(&self) -> Result<u64, Error> {
        let info = self.connection.stream_info(DEAD).await?;
        Ok(info.state.messages)
    }

    /// The newest letters with their sequences, newest last, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list(&self, limit: usize) -> Result<Vec<(u64, DeadLetter)>, Error> {
        self.list_matching(limit, |_| true).await
    }

    /// The newest letters that match, with their sequences, newest last, at most `limit`.
    ///
    /// It reads the letters from the newest backwards until it has enough, and at most 32,768 of them.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list_matching(
        &self,
        limit: usize,
        is_wanted: impl Fn(&DeadLetter) -> bool + Send + Sync,
    ) -> Result<Vec<(u64, DeadLetter)>, Error> {
        let subject = names::build_letter_filter();
        let Some(last) = self.connection.last(DEAD, &subject).await? else {
            return Ok(Vec::new());
        };
        let mut newest_first = Vec::new();
        let mut window = LetterWindow::before(last.sequence + 1);
        for _ in 0..MOST_PAGES {
            if newest_first.len() >= limit || window.is_over() {
                break;
            }
            let page = self.connection.page(DEAD, &subject, window.first()).await?;
            let letters = window.take(&page).iter().rev().map(describe_letter);
            newest_first.extend(letters.filter(|(_, letter)| is_wanted(letter)));
        }
        newest_first.truncate(limit);
        newest_first.reverse();
        Ok(newest_first)
    }

    /// Letter with the bytes of its record; `None` if it does not exist, or was removed.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the body object of the record is lost.
    pub async fn get(&self, sequence: u64) -> Result<Option<(DeadLetter, Bytes)>, Error> {
        let Some(stored) = self.connection.at(DEAD, sequence).await? else {
            return Ok(None);
        };
        let letter = describe_letter(&stored).1;
        let body = body::unpack_body(&self.objects(), Some(&stored.headers), stored.payload).await?;
        Ok(Some((letter, body)))
    }

    /// Deletes a letter; returns false if it does not exist.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn remove(&self, sequence: u64) -> Result<bool, Error> {
        self.connection.forget(DEAD, sequence).await
    }

    /// True when a letter is about a report. Its subject decides, because only the reporter may publish on
    /// it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub(crate) async fn is_of_report(&self, sequence: u64) -> Result<bool, Error> {
        let stored = self.connection.at(DEAD, sequence).await?;
        let about = names::letters_about(RecordKind::Report);
        let prefix = about.trim_end_matches('*');
        Ok(stored.is_some_and(|stored| stored.subject.starts_with(prefix)))
    }

    /// Resends the record like [`Self::resend`] and deletes the letter. Only the reporter has the right.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the letter still exists then.
    pub async fn revive(&self, sequence: u64) -> Result<bool, Error> {
        if !self.resend(sequence).await? {
            return Ok(false);
        }
        // After the record is sent: a crash in between leaves the letter, and the message id of its next
        // revival is the same.
        self.remove(sequence).await?;
        Ok(true)
    }

    /// Appends the record of a letter to its stream again and keeps the letter.
    ///
    /// A delivery returns to the router. An unreadable trigger or report waits for a release that can read
    /// it. Returns false when the letter is about another kind of record or does not exist.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn resend(&self, sequence: u64) -> Result<bool, Error> {
        let Some(stored) = self.connection.at(DEAD, sequence).await? else {
            return Ok(false);
        };
        let Some(subject) = find_origin_subject(&stored) else {
            return Ok(false);
        };
        let mut headers = stored.headers;
        // The server still knows the delivery's own id as a duplicate.
        headers.insert(header::NATS_MESSAGE_ID, format!("revived.{sequence}"));
        self.connection.publish(&subject, headers, stored.payload).await?;
        Ok(true)
    }

    /// Stores a letter about a delivery with the headers that its revival needs.
    pub(crate) async fn publish_delivery(
        &self,
        letter: &DeadLetter,
        delivery: Option<&HeaderMap>,
        payload: Bytes,
    ) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        body::copy_delivery_header(delivery, &mut headers);
        // The delivery is redelivered if its acknowledgement is lost, but its letter must be stored once.
        if let Some(id) = delivery.and_then(|headers| headers.get(header::NATS_MESSAGE_ID)) {
            headers.insert(header::NATS_MESSAGE_ID, format!("delivery.{id}"));
        }
        self.store(letter, headers, payload).await
    }
}

/// Sequences that one request reads. The windows follow each other from the newest letter backwards, because the
/// server only reads forwards.
struct LetterWindow {
    /// Sequence after the window.
    end: u64,
    /// Number of sequences; fewer at the beginning of the stream.
    size: u64,
}

impl LetterWindow {
    const fn before(end: u64) -> Self {
        Self {
            end,
            size: FIRST_WINDOW,
        }
    }

    fn first(&self) -> u64 {
        self.end.saturating_sub(self.size).max(1)
    }

    const fn is_over(&self) -> bool {
        self.end <= 1
    }

    /// Letters of the window in a page that begins with it, and moves on to the window before. A page that ends
    /// too early has none: the window is smaller next time.
    fn take<'a>(&mut self, page: &'a [wire::StoredMessage]) -> &'a [wire::StoredMessage] {
        let (first, end) = (self.first(), self.end);
        if page.last().is_some_and(|last| last.sequence + 1 < end) {
            self.size = (end.saturating_sub(first) / 2).max(1);
            return &[];
        }
        let inside = page.partition_point(|stored| stored.sequence < end);
        self.end = first;
        // Deleted letters leave gaps in the sequence, and a gap must not cost one request per window. A page that
        // reaches far beyond its window has room for a larger one.
        if inside * 4 <= page.len() {
            self.size = self.size.saturating_mul(4);
        }
        page.get(..inside).unwrap_or_default()
    }
}

/// Letter of a stored message. An unreadable letter is replaced by a description, so that an operator sees it
/// and can delete it.
fn describe_letter(stored: &wire::StoredMessage) -> (u64, DeadLetter) {
    decode_letter(stored).unwrap_or_else(|error| {
        let letter = DeadLetter {
            what: RecordKind::Letter,
            id: stored.subject.clone(),
            ticket: None,
            reason: format_error_chain(&error),
            at: Timestamp::default(),
        };
        (stored.sequence, letter)
    })
}

/// Subject to which the record of a letter may be appended again.
fn find_origin_subject(stored: &wire::StoredMessage) -> Option<String> {
    if body::is_delivery(&stored.headers) {
        let meta = DeliveryHeader::read(Some(&stored.headers), &stored.subject).ok()?;
        return Some(names::deliveries_of(&meta.source));
    }
    let stream = stored.headers.get(ORIGIN)?;
    let names = [&TRIGGERS, &REPORTS]
        .into_iter()
        .find(|names| names.stream == stream.as_str())?;
    let ticket = decode_letter(stored).ok()?.1.ticket?;
    // The record's own key is occupied by the unreadable record.
    Some(names.record(&ticket, &format!("revived:{}", stored.sequence)))
}

fn decode_letter(stored: &wire::StoredMessage) -> Result<(u64, DeadLetter), Error> {
    let what = || format!("dead letter {}", stored.sequence);
    let text = stored
        .headers
        .get(HEADER)
        .ok_or_else(|| Error::corrupt(what(), "its header is missing"))?;
    let letter = record_format::decode_stored_record(text.as_str().as_bytes())
        .map_err(|problem| Error::undecodable(what(), DeadLetter::KIND, problem))?;
    Ok((stored.sequence, letter))
}
