//! Contents of attachments from the object store: parts of texts for a tool call, images for a model call.

use std::{num::NonZeroUsize, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use domain::{CallId, Fact, ObjectRef, ToolResult, cause::format_error_chain};
use lru::LruCache;
use parking_lot::Mutex;
use queue::ContentStore;

use super::{RunDriver, StepOutcome, TicketError};
use crate::prompts;
use crate::run::{AttachmentRead, PlannerRunState};
use crate::transcript::{MessagePart, ModelTranscript, TranscriptMessage};

// An image has at most 3 MiB, which are 4 MiB in base64.
const MOST_CACHED: NonZeroUsize = match NonZeroUsize::new(16) {
    Some(most) => most,
    None => NonZeroUsize::MIN,
};

/// Images of the conversations under way, so that each turn does not read them again.
pub(crate) struct ImageCache(Mutex<LruCache<String, Arc<str>>>);

impl Default for ImageCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MOST_CACHED)))
    }
}

impl ImageCache {
    /// Returns an image in base64; `None` if the store does not have it, or does not answer.
    async fn find(&self, objects: &ContentStore, object: &ObjectRef) -> Option<Arc<str>> {
        let known = self.0.lock().get(&object.sha256).cloned();
        if known.is_some() {
            return known;
        }
        match Box::pin(objects.get(object)).await {
            Ok(bytes) => {
                let encoded: Arc<str> = BASE64_STANDARD.encode(&bytes).into();
                self.0.lock().put(object.sha256.clone(), Arc::clone(&encoded));
                Some(encoded)
            }
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "an image is not shown to the model");
                None
            }
        }
    }
}

impl RunDriver {
    /// Reads a part of a text attachment for the model.
    ///
    /// # Errors
    /// [`TicketError`] when the store does not answer; the call is repeated then.
    pub(super) async fn read_attachment(
        &self,
        state: &PlannerRunState,
        id: CallId,
        read: &AttachmentRead,
    ) -> Result<StepOutcome, TicketError> {
        let result = match Box::pin(self.queue.objects().get(&read.object)).await {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                prompts::render_attachment_part(read, &text, state.conversation().nonce())
            }
            Err(error @ queue::Error::Corrupt { .. }) => {
                tracing::warn!(run = %state.run, error = %format_error_chain(&error), "an attachment cannot be read");
                ToolResult::error(prompts::LOST_ATTACHMENT)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Fact::ToolFinished { id, result }.into())
    }

    /// Adds the contents of images to a model call. An image that cannot be read stays without, and is named.
    pub(super) async fn load_images(&self, transcript: &mut ModelTranscript) {
        let objects = self.queue.objects();
        for message in &mut transcript.messages {
            let TranscriptMessage::Parts(parts) = message else {
                continue;
            };
            for part in parts {
                if let MessagePart::Image(image) = part {
                    image.data = self.images.find(&objects, &image.object).await;
                }
            }
        }
    }
}
