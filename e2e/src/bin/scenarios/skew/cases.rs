//! Which services are of which release, and when that changes.

/// One way in which two releases meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Services that start as the previous release.
    pub(crate) behind: &'static [&'static str],
    /// Changes before the first ticket.
    pub(crate) before: &'static [Change],
    /// Changes while tickets are under way, one after another.
    pub(crate) during: &'static [Change],
}

/// A service is drained and started again as another release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) service: &'static str,
    pub(crate) to: Release,
}

/// Of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    Previous,
    This,
}

/// All services.
pub(crate) const ALL: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];

/// The names of the cases, for the command line.
pub(crate) const NAMES: [&str; 6] = [
    "upgrade",
    "ingest_behind",
    "planner_behind",
    "executor_behind",
    "reporter_behind",
    "rollback",
];

/// The order of docs/upgrades.md: the reporter owns the topology and knows every report before anybody asks for it.
const UPGRADE: [Change; 5] = [
    up("reporter"),
    up("egress"),
    up("executor"),
    up("planner"),
    up("ingest"),
];
/// The same backwards.
const ROLLBACK: [Change; 5] = [
    down("ingest"),
    down("planner"),
    down("executor"),
    down("egress"),
    down("reporter"),
];

pub(crate) const CASES: [Case; 6] = [
    Case {
        name: NAMES[0],
        behind: &ALL,
        before: &[],
        during: &UPGRADE,
    },
    behind(NAMES[1], &["ingest"]),
    behind(NAMES[2], &["planner"]),
    behind(NAMES[3], &["executor", "egress"]),
    Case {
        name: NAMES[4],
        behind: &[],
        // The topology is this release's.
        before: &[down("reporter")],
        during: &[],
    },
    Case {
        name: NAMES[5],
        behind: &[],
        before: &[],
        during: &ROLLBACK,
    },
];

const fn up(service: &'static str) -> Change {
    Change {
        service,
        to: Release::This,
    }
}

const fn down(service: &'static str) -> Change {
    Change {
        service,
        to: Release::Previous,
    }
}

/// Some services are of the previous release from beginning to end.
const fn behind(name: &'static str, services: &'static [&'static str]) -> Case {
    Case {
        name,
        behind: services,
        before: &[],
        during: &[],
    }
}
