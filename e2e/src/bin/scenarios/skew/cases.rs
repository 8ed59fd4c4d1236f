//! Cases: the release of each service, and the changes of releases.

/// Combination of two releases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkewCase {
    pub(crate) name: &'static str,
    /// Services that start with the previous release.
    pub(crate) behind: &'static [&'static str],
    /// Changes before the first ticket.
    pub(crate) before: &'static [ReleaseChange],
    /// Sequential changes while tickets are in progress.
    pub(crate) during: &'static [ReleaseChange],
}

/// Replacement of a service by another release: drain, then restart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReleaseChange {
    pub(crate) service: &'static str,
    pub(crate) to: SkewRelease,
}

/// One of the two releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkewRelease {
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
const UPGRADE: [ReleaseChange; 5] = [
    upgrade_service("reporter"),
    upgrade_service("egress"),
    upgrade_service("executor"),
    upgrade_service("planner"),
    upgrade_service("ingest"),
];
/// Reverse order of the upgrade.
const ROLLBACK: [ReleaseChange; 5] = [
    downgrade_service("ingest"),
    downgrade_service("planner"),
    downgrade_service("executor"),
    downgrade_service("egress"),
    downgrade_service("reporter"),
];

pub(crate) const CASES: [SkewCase; 6] = [
    SkewCase {
        name: NAMES[0],
        behind: &ALL,
        before: &[],
        during: &UPGRADE,
    },
    build_behind_case(NAMES[1], &["ingest"]),
    build_behind_case(NAMES[2], &["planner"]),
    build_behind_case(NAMES[3], &["executor", "egress"]),
    SkewCase {
        name: NAMES[4],
        behind: &[],
        // This release creates the topology before the previous reporter starts.
        before: &[downgrade_service("reporter")],
        during: &[],
    },
    SkewCase {
        name: NAMES[5],
        behind: &[],
        before: &[],
        during: &ROLLBACK,
    },
];

const fn upgrade_service(service: &'static str) -> ReleaseChange {
    ReleaseChange {
        service,
        to: SkewRelease::This,
    }
}

const fn downgrade_service(service: &'static str) -> ReleaseChange {
    ReleaseChange {
        service,
        to: SkewRelease::Previous,
    }
}

/// Case in which some services have the previous release from start to end.
const fn build_behind_case(name: &'static str, services: &'static [&'static str]) -> SkewCase {
    SkewCase {
        name,
        behind: services,
        before: &[],
        during: &[],
    }
}
