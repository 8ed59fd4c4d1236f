//! Text of tickets and comments: what a reader sees of it, its pinned form, mentions, commands and files in it.

pub(crate) mod attachment_links;
pub(crate) mod command;
pub(crate) mod credential_mask;
pub(crate) mod mention;
pub(crate) mod sanitizer;
pub(crate) mod text_pin;
pub(crate) mod ticket_mentions;
pub(crate) mod ticket_references;
