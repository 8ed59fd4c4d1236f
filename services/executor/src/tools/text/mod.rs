//! A file's text as lines, and the search for lines that a model remembers.

mod excerpt;
mod indent;
mod lines;
mod place;

pub(super) use excerpt::{changes, numbered};
pub(super) use indent::Readings;
pub(super) use lines::{Lines, Splice, kept};
pub(super) use place::{Match, Places, nearest, places};
