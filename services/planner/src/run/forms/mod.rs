//! Replies of a fixed form, one file each, with their validation.

pub(super) mod intake;
