//! A file's text as lines, and where in it others are meant.

mod excerpt;
mod indent;
mod lines;
mod place;

pub(super) use excerpt::{changes, numbered};
pub(super) use indent::Readings;
pub(super) use lines::{Lines, Splice, kept};
pub(super) use place::{Match, Places, nearest, places};
