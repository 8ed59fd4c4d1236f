//! Cases: the release of each service, and the changes of releases.

/// Combination of two releases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Services that start with the previous release.
    pub(crate) behind: &'static [&'static str],
    /// Changes before the first ticket.
    pub(crate) before: &'static [Change],
    /// Sequential changes while tickets are in progress.
    pub(crate) during: &'static [Change],
}

/// Replacement of a service by another release: drain, then restart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) service: &'static str,
    pub(crate) to: Release,
}

/// One of the two releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    Previous,
    This,
}

/// Names of all services.
pub(crate) const ALL: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];

/// Case names for the command line.
pub(crate) const NAMES: [&str; 6] = [
    "upgrade",
    "ingest_behind",
    "planner_behind",
    "executor_behind",
    "reporter_behind",
    "rollback",
];

// Order of docs/upgrades.md. The reporter owns the topology, and it knows every report before another service
// requests one.
const UPGRADE: [Change; 5] = [
    up("reporter"),
    up("egress"),
    up("executor"),
    up("planner"),
    up("ingest"),
];
/// Reverse order of the upgrade.
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
        // This release creates the topology before the previous reporter starts.
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

/// Case in which some services have the previous release from start to end.
const fn behind(name: &'static str, services: &'static [&'static str]) -> Case {
    Case {
        name,
        behind: services,
        before: &[],
        during: &[],
    }
}
