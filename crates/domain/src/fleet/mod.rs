//! Fleet: records about the installation itself, such as pools of executors with the runs that wait for a
//! slot, switches of operators, and credentials.

pub(crate) mod control;
pub(crate) mod credential;
pub(crate) mod pools;
pub(crate) mod slots;
