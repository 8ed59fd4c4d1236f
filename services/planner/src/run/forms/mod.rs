//! Replies of a given form, one file each: how they are read and checked.

pub(super) mod intake;
