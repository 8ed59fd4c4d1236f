//! Texts: hidden characters and length limits, numbers, addresses, causes of errors, JSON of other services, commit
//! messages, templates, acceptance criteria, and the guide for people who steer the work.

pub mod address;
pub mod cause;
pub(crate) mod characters;
pub mod commit_orders;
pub(crate) mod criteria;
pub mod guide;
pub mod json;
pub(crate) mod numbers;
pub(crate) mod template;

pub use characters::{
    escape_hidden, format_code, has_hidden, is_hidden, normalize_text, one_line, quote_shell_word,
    remove_hidden, remove_invisible, sanitize_output, take_tail, take_tail_bytes, truncate_bytes,
    truncate_text, unquote_path,
};
pub use numbers::{format_count, format_duration, format_seconds, format_times, group_digits};
