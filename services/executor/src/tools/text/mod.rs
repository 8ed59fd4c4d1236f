//! A file's text as lines, and the search for lines that a model remembers.

mod encoding;
mod excerpt;
mod form;
mod indent;
mod line_numbers;
mod lines;
mod locations;

pub(super) use encoding::{BOM, FileText, TextEncoding};
pub(super) use excerpt::{render_changes, render_numbered_lines};
pub(super) use form::{describe_form, keep_form, list_form_changes};
pub(super) use indent::IndentRelations;
pub(super) use line_numbers::{find_numbered_run, strip_numbers, strip_numbers_in};
pub(super) use lines::{LineSplice, TextLines, match_kept_lines};
pub(super) use locations::{MatchLocations, MatchStrictness, find_locations, render_nearest_text};
