//! Dead letters: what could not be handled, why, and what it was.

use std::sync::Arc;

use async_nats::{HeaderMap, header};
use bytes::Bytes;
use domain::{TicketKey, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Error, body,
    connection::Connection,
    delivery, subject,
    topology::{DEAD, DEAD_PREFIX, DELIVERIES_PREFIX},
    wire::Stored,
};

const HEADER: &str = "Journeyman-Dead-Letter";

/// What could not be handled, why, and how to retry it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// `delivery`, `trigger`, `report` or `ticket`.
    pub what: String,
    /// Its identity.
    pub id: String,
    /// The ticket, when it is known.
    pub ticket: Option<TicketKey>,
    /// For the operator.
    pub reason: String,
    /// When it was given up.
    pub at: Timestamp,
}

/// The dead letters, kept for 90 days. Cheap to clone.
#[derive(Clone)]
pub struct DeadLetters {
    pub(crate) connection: Arc<Connection>,
}

impl DeadLetters {
    /// Stores a letter with what it is about.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after three tries.
    pub async fn publish(&self, letter: &DeadLetter, payload: Bytes) -> Result<(), Error> {
        self.store(letter, HeaderMap::new(), payload).await
    }

    async fn store(&self, letter: &DeadLetter, mut headers: HeaderMap, payload: Bytes) -> Result<(), Error> {
        let text = serde_json::to_string(letter).map_err(|error| Error::corrupt("a dead letter", error))?;
        headers.insert(HEADER, text);
        headers.insert(header::NATS_MESSAGE_ID, Uuid::new_v4().to_string());
        let payload = body::pack(&self.connection.objects(), &mut headers, payload).await?;
        self.connection
            .publish(&subject::under(DEAD_PREFIX, &letter.what), headers, payload)
            .await?;
        Ok(())
    }

    /// Newest last, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when a letter cannot be read.
    pub async fn list(&self, limit: usize) -> Result<Vec<(u64, DeadLetter)>, Error> {
        let subject = format!("{DEAD_PREFIX}.*");
        let Some(last) = self.connection.last(DEAD, &subject).await? else {
            return Ok(Vec::new());
        };
        let mut window = limit as u64;
        // Dropped letters leave gaps in the sequence.
        let letters = loop {
            let letters = self
                .connection
                .range(DEAD, &subject, last.sequence.saturating_sub(window))
                .await?;
            if letters.len() >= limit || window >= last.sequence {
                break letters;
            }
            window = window.saturating_mul(4).max(1);
        };
        let surplus = letters.len().saturating_sub(limit);
        letters
            .into_iter()
            .skip(surplus)
            .map(|stored| letter(&stored))
            .collect()
    }
}

impl DeadLetters {
    /// One letter with what it is about; `None` when it is gone.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when it cannot be read.
    pub async fn get(&self, sequence: u64) -> Result<Option<(DeadLetter, Bytes)>, Error> {
        let Some(stored) = self.connection.at(DEAD, sequence).await? else {
            return Ok(None);
        };
        let letter = letter(&stored)?.1;
        let body = body::unpack(&self.connection.objects(), Some(&stored.headers), stored.payload).await?;
        Ok(Some((letter, body)))
    }

    /// Forgets a letter; false when it was gone already.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn remove(&self, sequence: u64) -> Result<bool, Error> {
        self.connection.forget(DEAD, sequence).await
    }

    /// Hands a delivery to the router once more and forgets the letter; false when the letter is no delivery or is gone.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the letter is then still there.
    pub async fn revive(&self, sequence: u64) -> Result<bool, Error> {
        let Some(stored) = self.connection.at(DEAD, sequence).await? else {
            return Ok(false);
        };
        let Some(source) = delivery::source_of(&stored.headers) else {
            return Ok(false);
        };
        let mut headers = stored.headers;
        // The delivery's own id is still known as a duplicate.
        headers.insert(header::NATS_MESSAGE_ID, format!("revived.{sequence}"));
        let subject = subject::under(DELIVERIES_PREFIX, &source);
        self.connection.publish(&subject, headers, stored.payload).await?;
        self.remove(sequence).await?;
        Ok(true)
    }

    /// Stores what a delivery's letter needs to be revived.
    pub(crate) async fn publish_delivery(
        &self,
        letter: &DeadLetter,
        delivery: Option<&HeaderMap>,
        payload: Bytes,
    ) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        delivery::keep_meta(delivery, &mut headers);
        self.store(letter, headers, payload).await
    }
}

fn letter(stored: &Stored) -> Result<(u64, DeadLetter), Error> {
    let what = || format!("dead letter {}", stored.sequence);
    let text = stored
        .headers
        .get(HEADER)
        .ok_or_else(|| Error::corrupt(what(), "its header is missing"))?;
    let letter = serde_json::from_str(text.as_str()).map_err(|error| Error::corrupt(what(), error))?;
    Ok((stored.sequence, letter))
}
