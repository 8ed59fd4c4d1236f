//! Reads of attachments: within limits of number, size and time, with the reader account, into the object store.
//!
//! A limit or a failure never stops a trigger: the attachment is pinned with the reason for its absence.

use std::{sync::Arc, time::Duration};

use domain::{
    AttachmentContent, AttachmentRule, ObjectRef, TicketAttachment, TicketKey, UnreadReason,
    cause::format_error_chain,
};
use futures::{StreamExt as _, stream};
use queue::Queue;
use serde::Deserialize;
use tokio::{sync::OnceCell, time::Instant};

use crate::{
    events::NewTrigger,
    facts::{
        DecisionFacts,
        attachment_content::{FileContent, MOST_PIXELS, inspect_file},
        attachment_sources::{AttachmentRequest, AttachmentSource, NamedAttachment, attach},
        tracker_reader::{ReadError, TrackerReader},
    },
    text::credential_mask::mask_credentials,
};

const MIB: usize = 1024 * 1024;
// Models refuse larger images; base64 adds a third.
const MOST_IMAGE_BYTES: usize = 3 * MIB;
// Downloads at the same time, each of which may hold one file in memory.
const CONCURRENT: usize = 4;
// Names of attachments that are not read are limited as well, because all of them are in the prompt.
const MOST_NAMED: usize = 60;
// Characters of the excerpts of all texts, and of the first and last lines of one text.
const EXCERPT_CHARS: usize = 32_000;
const HEAD_CHARS: usize = 4_000;
const TAIL_CHARS: usize = 8_000;

/// `[ingest.attachments]` of the settings.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttachmentSettings {
    /// Reads attachments; false: they are only named.
    pub read: bool,
    /// Attachments of one ticket that are read, at most 50.
    pub most: usize,
    /// MiB of one attachment, 1 to 20.
    pub file_mib: usize,
    /// MiB of all attachments of one ticket, 1 to 100.
    pub ticket_mib: usize,
    /// Seconds for all attachments of one ticket, 1 to 15.
    pub timeout_s: u64,
}

impl Default for AttachmentSettings {
    fn default() -> Self {
        Self {
            read: true,
            most: 20,
            file_mib: 5,
            ticket_mib: 20,
            timeout_s: 8,
        }
    }
}

impl AttachmentSettings {
    /// Returns the first invalid key, with the problem.
    pub(crate) const fn find_problem(&self) -> Option<(&'static str, &'static str)> {
        if self.most > 50 {
            return Some(("most", "must be at most 50"));
        }
        if self.file_mib < 1 || self.file_mib > 20 {
            return Some(("file_mib", "must be between 1 and 20"));
        }
        if self.ticket_mib < 1 || self.ticket_mib > 100 {
            return Some(("ticket_mib", "must be between 1 and 100"));
        }
        if self.timeout_s < 1 || self.timeout_s > 15 {
            return Some(("timeout_s", "must be between 1 and 15"));
        }
        None
    }

    const fn file_bytes(&self) -> usize {
        self.file_mib * MIB
    }

    const fn ticket_bytes(&self) -> usize {
        self.ticket_mib * MIB
    }
}

/// Reader of attachments.
#[derive(Clone)]
pub(crate) struct TicketAttachmentReader {
    outside: Arc<TrackerReader>,
    queue: Queue,
    settings: AttachmentSettings,
}

/// Addresses of private files, read once for a ticket.
type RenderedAddresses = OnceCell<Vec<String>>;

/// Bytes of a file, or the reason for their absence.
type FileBytes = Result<Vec<u8>, UnreadReason>;

impl TicketAttachmentReader {
    pub(crate) const fn new(outside: Arc<TrackerReader>, queue: Queue, settings: AttachmentSettings) -> Self {
        Self {
            outside,
            queue,
            settings,
        }
    }

    /// Reads the attachments that a trigger needs. They have no influence on the decision.
    pub(crate) async fn read(&self, follows: &NewTrigger, facts: &DecisionFacts) -> Vec<TicketAttachment> {
        let news_rule = facts.rules(&follows.ticket).ok().flatten();
        let news_rule = news_rule.map_or(AttachmentRule::All, |rules| rules.agent.attachments);
        let Some(request) = AttachmentRequest::of(follows, news_rule) else {
            return Vec::new();
        };
        let issue = facts
            .issue(&follows.ticket)
            .ok()
            .and_then(|issue| issue.as_ref().ok());
        let deadline = Instant::now() + Duration::from_secs(self.settings.timeout_s);
        let of_issue = match issue {
            Some(issue) => issue.attachments.clone(),
            None if request.needs_issue() => self.list_of_issue(&request.ticket, deadline).await,
            None => Vec::new(),
        };
        let mut named = request.list(&of_issue, |repository, address| {
            self.outside.is_attachment_on_github(repository, address)
        });
        let dropped = named.len().saturating_sub(MOST_NAMED);
        if dropped > 0 {
            tracing::info!(ticket = %request.ticket, dropped, "attachments beyond the limit are not even named");
            named.truncate(MOST_NAMED);
        }
        self.read_all(&request, named, deadline).await
    }

    /// Attachments of a Jira issue; none when they cannot be read in time.
    async fn list_of_issue(&self, ticket: &TicketKey, deadline: Instant) -> Vec<jira::JiraAttachment> {
        let read = self.outside.jira_attachments(ticket);
        match tokio::time::timeout_at(deadline, Box::pin(read)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::warn!(%ticket, error = %format_error_chain(&error), "the attachments of a ticket are not read");
                Vec::new()
            }
            Err(_) => {
                tracing::warn!(%ticket, "the attachments of a ticket are not read in time");
                Vec::new()
            }
        }
    }

    async fn read_all(
        &self,
        request: &AttachmentRequest,
        named: Vec<NamedAttachment>,
        deadline: Instant,
    ) -> Vec<TicketAttachment> {
        let rendered = RenderedAddresses::new();
        let mut readable = 0_usize;
        let planned: Vec<(NamedAttachment, Option<UnreadReason>)> = named
            .into_iter()
            .map(|one| {
                let refused = self.refuse_unread(request, &one, &mut readable);
                (one, refused)
            })
            .collect();
        let reads = planned.into_iter().map(|(one, refused)| {
            let rendered = &rendered;
            async move {
                let bytes = match refused {
                    Some(why) => Err(why),
                    None => Box::pin(self.download_in_time(request, &one, rendered, deadline)).await,
                };
                (one, bytes)
            }
        });
        // In order, so that the limit for all files drops the last ones.
        let mut reads = Box::pin(stream::iter(reads).buffered(CONCURRENT));
        let (mut found, mut total, mut excerpts) = (Vec::new(), 0_usize, EXCERPT_CHARS);
        while let Some((one, bytes)) = reads.next().await {
            let content = match bytes {
                Err(why) => Err(why),
                Ok(bytes) if total + bytes.len() > self.settings.ticket_bytes() => {
                    // Smaller files may follow, but the rest is named by the same reason, which is easier to explain.
                    total = self.settings.ticket_bytes();
                    Err(UnreadReason::TotalReached {
                        most_bytes: self.settings.ticket_bytes() as u64,
                    })
                }
                Ok(bytes) => {
                    total += bytes.len();
                    self.keep(request.rule, &one, bytes, &mut excerpts).await
                }
            };
            let mut attachment = build_attachment(one, content);
            rename_twin(&mut attachment, &found);
            found.push(attachment);
        }
        found
    }

    /// Reason against reading an attachment, before any request.
    fn refuse_unread(
        &self,
        request: &AttachmentRequest,
        one: &NamedAttachment,
        readable: &mut usize,
    ) -> Option<UnreadReason> {
        if one.source == AttachmentSource::Elsewhere {
            return Some(UnreadReason::Elsewhere);
        }
        if !self.settings.read || request.rule == AttachmentRule::None {
            return Some(UnreadReason::Excluded);
        }
        *readable += 1;
        if *readable > self.settings.most {
            return Some(UnreadReason::TooMany {
                most: self.settings.most as u64,
            });
        }
        let most_bytes = self.settings.file_bytes() as u64;
        (one.size_bytes > most_bytes).then_some(UnreadReason::TooLarge { most_bytes })
    }

    async fn download_in_time(
        &self,
        request: &AttachmentRequest,
        one: &NamedAttachment,
        rendered: &RenderedAddresses,
        deadline: Instant,
    ) -> FileBytes {
        let read = Box::pin(self.download(request, one, rendered));
        let read = tokio::time::timeout_at(deadline, read).await;
        let Ok(outcome) = read else {
            let seconds = self.settings.timeout_s;
            tracing::warn!(ticket = %request.ticket, seconds, "an attachment is not read in time");
            return Err(UnreadReason::Late { seconds });
        };
        match outcome {
            Ok(Some(bytes)) if one.size_bytes != 0 && bytes.len() as u64 != one.size_bytes => {
                tracing::warn!(ticket = %request.ticket, "an attachment has another size than the tracker says");
                Err(UnreadReason::Unavailable)
            }
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(UnreadReason::TooLarge {
                most_bytes: self.settings.file_bytes() as u64,
            }),
            Err(error) => {
                tracing::warn!(ticket = %request.ticket, error = %format_error_chain(&error), "an attachment is not read");
                Err(match error {
                    ReadError::NotFound(_)
                    | ReadError::Refused(_)
                    | ReadError::Transferred(_)
                    | ReadError::Deleted(_) => UnreadReason::Missing,
                    ReadError::Unreadable(_) | ReadError::Later { .. } => UnreadReason::Unavailable,
                })
            }
        }
    }

    async fn download(
        &self,
        request: &AttachmentRequest,
        one: &NamedAttachment,
        rendered: &RenderedAddresses,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let most = self.settings.file_bytes();
        match &one.source {
            AttachmentSource::Elsewhere => {
                Err(ReadError::NotFound("it is outside of the tracker".to_owned()))
            }
            AttachmentSource::Jira(file) => self.outside.jira_attachment(&request.ticket, file, most).await,
            AttachmentSource::GitHub { repository, address } => {
                let direct = self.outside.github_attachment(repository, address, most).await;
                let Err(ReadError::NotFound(_) | ReadError::Refused(_)) = &direct else {
                    return direct;
                };
                // The website shows files of private repositories by signed addresses alone.
                let found = rendered
                    .get_or_try_init(|| self.rendered_addresses(request))
                    .await?;
                match github::find_rendered_address(address, found) {
                    Some(signed) => self.outside.github_attachment(repository, signed, most).await,
                    None => direct,
                }
            }
        }
    }

    async fn rendered_addresses(&self, request: &AttachmentRequest) -> Result<Vec<String>, ReadError> {
        let Some(thread) = &request.thread else {
            return Ok(Vec::new());
        };
        let (number, kind) = (thread.number, thread.kind);
        self.outside
            .rendered_addresses(&thread.repository, number, kind)
            .await
    }

    /// Checks a file by its content and stores what models and people may read of it.
    async fn keep(
        &self,
        rule: AttachmentRule,
        one: &NamedAttachment,
        bytes: Vec<u8>,
        excerpts: &mut usize,
    ) -> Result<AttachmentContent, UnreadReason> {
        match inspect_file(&one.name, &bytes) {
            FileContent::Other(kind) => Err(UnreadReason::Kind { kind }),
            FileContent::BrokenImage => Err(UnreadReason::Broken),
            FileContent::Image { .. } if rule != AttachmentRule::All => Err(UnreadReason::Excluded),
            FileContent::Image { width, height, .. } if width.max(height) > MOST_PIXELS => {
                Err(UnreadReason::TooManyPixels { most: MOST_PIXELS })
            }
            FileContent::Image { .. } if bytes.len() > MOST_IMAGE_BYTES => Err(UnreadReason::TooLarge {
                most_bytes: MOST_IMAGE_BYTES as u64,
            }),
            FileContent::Image {
                format,
                width,
                height,
            } => Ok(AttachmentContent::Image {
                object: self.store(bytes).await?,
                format,
                width,
                height,
            }),
            FileContent::Text(text) => {
                let text = mask_credentials(&text);
                let (head, tail) = excerpt_text(&text, excerpts);
                Ok(AttachmentContent::Text {
                    lines: text.lines().count() as u64,
                    object: self.store(text.into_bytes()).await?,
                    head,
                    tail,
                })
            }
        }
    }

    /// Stores a content under its hash. The trigger that names it keeps it; without one it is collected.
    async fn store(&self, bytes: Vec<u8>) -> Result<ObjectRef, UnreadReason> {
        let stored = Box::pin(self.queue.objects().put(bytes.into())).await;
        stored.map_err(|error| {
            tracing::warn!(error = %format_error_chain(&error), "an attachment is not stored");
            match error {
                queue::Error::Full { .. } => UnreadReason::NoRoom,
                queue::Error::Unavailable { .. }
                | queue::Error::Conflict
                | queue::Error::Newer { .. }
                | queue::Error::Topology { .. }
                | queue::Error::Corrupt { .. } => UnreadReason::Unavailable,
            }
        })
    }

    /// Adds the attachments to a trigger.
    pub(crate) fn add_to(mut follows: NewTrigger, attached: Vec<TicketAttachment>) -> NewTrigger {
        if !attached.is_empty() {
            attach(&mut follows, attached);
        }
        follows
    }
}

fn build_attachment(
    one: NamedAttachment,
    content: Result<AttachmentContent, UnreadReason>,
) -> TicketAttachment {
    let content = content.unwrap_or_else(|why| AttachmentContent::Unread { why });
    // GitHub's addresses of images have no extension, by which people and models recognize a kind.
    let name = match &content {
        AttachmentContent::Image { format, .. } if !one.name.contains('.') => {
            let extension = format.media_type().rsplit('/').next().unwrap_or_default();
            format!("{}.{extension}", one.name)
        }
        AttachmentContent::Image { .. }
        | AttachmentContent::Text { .. }
        | AttachmentContent::Unread { .. } => one.name,
    };
    TicketAttachment {
        name,
        source: one.id,
        alt: one.alt,
        size_bytes: one.size_bytes,
        content,
    }
}

/// Numbers a name that became equal to another one by its extension.
fn rename_twin(attachment: &mut TicketAttachment, before: &[TicketAttachment]) {
    let is_taken = |name: &str| before.iter().any(|known| known.name.eq_ignore_ascii_case(name));
    let own = attachment.name.clone();
    let mut number = 2_usize;
    while is_taken(&attachment.name) {
        attachment.name = match own.rsplit_once('.') {
            Some((stem, extension)) => format!("{stem}-{number}.{extension}"),
            None => format!("{own}-{number}"),
        };
        number += 1;
    }
}

/// First and last lines of a text that fit into the room for excerpts; both are empty without room.
fn excerpt_text(text: &str, room: &mut usize) -> (String, String) {
    let chars = text.chars().count();
    if chars <= (HEAD_CHARS + TAIL_CHARS).min(*room) {
        *room -= chars;
        return (text.to_owned(), String::new());
    }
    if *room < HEAD_CHARS + TAIL_CHARS {
        return (String::new(), String::new());
    }
    *room -= HEAD_CHARS + TAIL_CHARS;
    let head: String = text.chars().take(HEAD_CHARS).collect();
    let tail: String = text.chars().skip(chars - TAIL_CHARS).collect();
    // Whole lines, so that line numbers hold; a single endless line is kept as it is.
    let head = head.rsplit_once('\n').map_or(head.as_str(), |(lines, _)| lines);
    let tail = tail.split_once('\n').map_or(tail.as_str(), |(_, lines)| lines);
    (head.to_owned(), tail.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_excerpted_whole() {
        let mut room = 20;
        assert_eq!(
            excerpt_text("one\ntwo\n", &mut room),
            ("one\ntwo\n".to_owned(), String::new())
        );
        assert_eq!(room, 12);
        assert_eq!(
            excerpt_text(&"x".repeat(13), &mut room),
            (String::new(), String::new())
        );
        assert_eq!(room, 12, "a later and shorter text may still fit");
    }

    #[test]
    fn long_text_is_excerpted_at_both_ends() {
        let text: String = (1..=3_000).map(|number| format!("line {number}\n")).collect();
        let mut room = EXCERPT_CHARS;
        let (head, tail) = excerpt_text(&text, &mut room);
        assert!(head.starts_with("line 1\n") && head.chars().count() <= HEAD_CHARS);
        assert!(tail.starts_with("line ") && tail.ends_with("line 3000\n"));
        let last_of_head = head.lines().last().unwrap();
        assert!(text.contains(&format!("{last_of_head}\n")), "whole lines");
        assert_eq!(room, EXCERPT_CHARS - HEAD_CHARS - TAIL_CHARS);
    }

    #[test]
    fn settings_outside_of_range_are_named() {
        let with = |change: fn(&mut AttachmentSettings)| {
            let mut settings = AttachmentSettings::default();
            change(&mut settings);
            settings.find_problem().map(|(key, _)| key)
        };
        assert_eq!(with(|_| {}), None);
        assert_eq!(with(|settings| settings.most = 51), Some("most"));
        assert_eq!(with(|settings| settings.file_mib = 0), Some("file_mib"));
        assert_eq!(with(|settings| settings.ticket_mib = 101), Some("ticket_mib"));
        assert_eq!(with(|settings| settings.timeout_s = 16), Some("timeout_s"));
    }

    #[test]
    fn image_without_extension_gets_one() {
        let one = NamedAttachment {
            name: "image".to_owned(),
            id: "https://github.com/user-attachments/assets/0a1b".to_owned(),
            alt: "the dialog".to_owned(),
            size_bytes: 0,
            source: AttachmentSource::Elsewhere,
        };
        let object = ObjectRef {
            sha256: "a".repeat(64),
            size_bytes: 1,
        };
        let content = AttachmentContent::Image {
            object,
            format: domain::ImageFormat::Png,
            width: 1,
            height: 1,
        };
        assert_eq!(build_attachment(one.clone(), Ok(content)).name, "image.png");
        let unread = build_attachment(one, Err(UnreadReason::Elsewhere));
        assert_eq!(unread.name, "image");
    }
}
