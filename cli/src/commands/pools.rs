//! `journeyman pools`: pools of executors.

use std::process::ExitCode;

use api::types::{MakeView, PoolView};
use clap::Args;
use domain::PoolFreshness;

use super::{print_json, print_list, print_result};
use crate::{
    access,
    args::{ApiArguments, OutputFormat},
};

/// List the pools of executors: slots, waiting runs, versions, and problems
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Output format: text, the answer of /v1/pools, or one pool per line
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    api: ApiArguments,
}

pub(super) async fn run_command(Arguments { output, api }: Arguments) -> anyhow::Result<ExitCode> {
    let found = access::build_client(&api)?.installation().pools().await?;
    match output {
        OutputFormat::Json => print_json(&found)?,
        OutputFormat::Jsonl => print_list(&found.pools, false)?,
        OutputFormat::Text if found.pools.is_empty() => {
            print_result("no pool is known: no planner has reported one within a day, and no rules name one")
        }
        OutputFormat::Text => found
            .pools
            .iter()
            .flat_map(render_pool)
            .for_each(|line| print_result(&line)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Lines of a pool: its kinds of executors, each executor, and problems.
fn render_pool(pool: &PoolView) -> Vec<String> {
    let mut lines = vec![render_pool_line(pool)];
    lines.extend(
        pool.makes
            .iter()
            .map(|make| format!("  {}", render_make_line(make))),
    );
    for one in &pool.members {
        let why = if one.why.is_empty() {
            String::new()
        } else {
            format!(": {}", one.why)
        };
        let report = match (one.state.as_str(), &one.heard_at) {
            ("silent", Some(at)) => format!(", last answer at {at}"),
            ("silent", None) => ", no answer yet".to_owned(),
            _ => format!(
                ", {} of {} slots free, {} workspaces open",
                one.free, one.total, one.held
            ),
        };
        lines.push(format!("  {} {}{report}{why}", one.address, one.state.as_str()));
    }
    lines.extend(
        pool.problems
            .iter()
            .map(|problem| format!("  problem: {problem}")),
    );
    lines
}

fn render_pool_line(pool: &PoolView) -> String {
    let waiting = match &pool.waiting_since {
        Some(since) => format!("{} since {since}", describe_waiting(pool.waiting)),
        None => describe_waiting(pool.waiting),
    };
    let seen = pool.seen_at.as_deref().unwrap_or("never");
    match pool.news {
        PoolFreshness::Current => format!(
            "{}  {} of {} executors ready, {} of {} slots free, {} workspaces open, {waiting}, seen {seen}",
            pool.name, pool.ready, pool.executors, pool.free, pool.total, pool.held
        ),
        PoolFreshness::Old => format!(
            "{}  not known now, {} executors when last seen {seen}, {waiting}",
            pool.name, pool.executors
        ),
        PoolFreshness::Unknown => format!("{}  not known, {waiting}", pool.name),
    }
}

fn describe_waiting(waiting: u32) -> String {
    match waiting {
        1 => "1 run waits".to_owned(),
        waiting => format!("{waiting} runs wait"),
    }
}

/// Line of one kind of executors: `2 executors of release 0.1.0, L2, Debian 12: go, python3.11`.
fn render_make_line(make: &MakeView) -> String {
    let version = match make.version.as_str() {
        "" => "an earlier release".to_owned(),
        version => format!("release {version}"),
    };
    let system = if make.system.is_empty() {
        String::new()
    } else {
        format!(", {}", make.system)
    };
    let programs = if make.programs.is_empty() {
        String::new()
    } else {
        format!(": {}", make.programs.join(", "))
    };
    let executors = if make.executors == 1 {
        "executor"
    } else {
        "executors"
    };
    format!(
        "{} {executors} of {version}, sandbox {}{system}{programs}",
        make.executors, make.sandbox
    )
}

#[cfg(test)]
mod tests {
    use api::types::ExecutorView;
    use domain::ExecutorState;

    use super::*;

    fn build_pool() -> PoolView {
        PoolView {
            name: "default".to_owned(),
            news: PoolFreshness::Current,
            seen_at: Some("2026-11-25T09:00:00Z".to_owned()),
            planners: 1,
            executors: 2,
            ready: 1,
            free: 1,
            total: 4,
            held: 3,
            waiting: 2,
            waiting_since: Some("2026-11-25T08:58:00Z".to_owned()),
            makes: vec![MakeView {
                version: "0.1.0".to_owned(),
                sandbox: "L2".to_owned(),
                system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
                programs: vec!["go".to_owned(), "python3.11".to_owned()],
                executors: 1,
            }],
            problems: vec!["1 executor is silent: it cannot be reached".to_owned()],
            members: vec![
                ExecutorView {
                    address: "http://10.0.0.8:7403".to_owned(),
                    state: ExecutorState::Silent,
                    why: "it cannot be reached".to_owned(),
                    free: 0,
                    total: 0,
                    held: 0,
                    make: None,
                    heard_at: Some("2026-11-25T08:50:00Z".to_owned()),
                    started_at: None,
                },
                ExecutorView {
                    address: "http://10.0.0.7:7403".to_owned(),
                    state: ExecutorState::Ready,
                    why: String::new(),
                    free: 1,
                    total: 4,
                    held: 3,
                    make: Some(0),
                    heard_at: Some("2026-11-25T09:00:00Z".to_owned()),
                    started_at: None,
                },
            ],
        }
    }

    #[test]
    fn pool_lines_show_executors_and_problems() {
        assert_eq!(
            render_pool(&build_pool()),
            [
                "default  1 of 2 executors ready, 1 of 4 slots free, 3 workspaces open, 2 runs wait since 2026-11-25T08:58:00Z, \
                 seen 2026-11-25T09:00:00Z",
                "  1 executor of release 0.1.0, sandbox L2, Debian GNU/Linux 12 (bookworm): go, python3.11",
                "  http://10.0.0.8:7403 silent, last answer at 2026-11-25T08:50:00Z: it cannot be reached",
                "  http://10.0.0.7:7403 ready, 1 of 4 slots free, 3 workspaces open",
                "  problem: 1 executor is silent: it cannot be reached",
            ]
        );
    }

    #[test]
    fn unreported_pool_is_not_shown_current() {
        let old = PoolView {
            news: PoolFreshness::Old,
            ready: 0,
            waiting: 0,
            waiting_since: None,
            ..build_pool()
        };
        assert_eq!(
            render_pool_line(&old),
            "default  not known now, 2 executors when last seen 2026-11-25T09:00:00Z, 0 runs wait"
        );
        let unknown = PoolView {
            news: PoolFreshness::Unknown,
            ..old
        };
        assert_eq!(render_pool_line(&unknown), "default  not known, 0 runs wait");
        assert_eq!(describe_waiting(1), "1 run waits");
    }
}
