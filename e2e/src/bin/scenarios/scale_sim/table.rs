//! Output of the simulation.

use crate::output::print_line;
use crate::scale_sim::{ScaleArguments, day::SimulatedDay, measurement::MeasuredLoad, shares::MinuteLoad};

/// Column of the output.
type LoadColumn = (&'static str, fn(&MinuteLoad) -> f64);

const COLUMNS: [LoadColumn; 13] = [
    ("webhooks", |minute| minute.webhooks),
    ("github_reader_not_modified", |minute| minute.reader_unchanged),
    ("github_reader_counted", |minute| minute.reader_counted),
    ("github_reader_graphql", |minute| minute.reader_graphql),
    ("github_writer_reads", |minute| minute.writer_reads),
    ("github_writer_writes", |minute| minute.writer_writes),
    ("jira_reader", |minute| minute.jira_reader),
    ("jira_writer", |minute| minute.jira_writer),
    ("nats_stored", |minute| minute.stored),
    ("nats_acknowledged_or_in_progress", |minute| minute.acknowledged),
    ("nats_asked_for_the_next", |minute| minute.asked),
    ("nats_read_and_managed", |minute| minute.other_nats),
    ("redis_commands", |minute| minute.redis),
];

/// Returns GitHub's hourly limit for an App installation: 5,000, plus 50 for each repository beyond 20, at
/// most 12,500.
fn installation_limit(repositories: u32) -> f64 {
    f64::from(5_000 + 50 * repositories.saturating_sub(20)).min(12_500.0)
}

pub(crate) fn print_table(scale: &ScaleArguments, measured: &MeasuredLoad, day: &SimulatedDay) {
    print_line(&format!(
        "# {} repositories, {} open pull requests, {} executors; polls every {} s; {} tickets in the day",
        scale.repositories, scale.pull_requests, scale.executors, scale.poll_interval_s, day.tickets
    ));
    for ((account, kind), count) in &measured.github {
        print_line(&format!("# one ticket: github {account:?} {kind:?} {count}").to_lowercase());
    }
    for (account, count) in &measured.jira {
        print_line(&format!("# one ticket: jira {account:?} {count}").to_lowercase());
    }
    for (kind, count) in measured.nats.iter().chain(&measured.redis) {
        print_line(&format!("# one ticket: {kind} {count}"));
    }
    for (kind, rate) in measured.idle_nats.iter().chain(&measured.idle_redis) {
        print_line(&format!("# without a ticket, a minute: {kind} {rate:.0}"));
    }
    for (name, of) in COLUMNS {
        let all = day.minutes.iter().map(of);
        let (sum, busiest) = all.fold((0.0, 0.0_f64), |(sum, most), now| (sum + now, most.max(now)));
        let mean = sum / day.minutes.len() as f64;
        print_line(&format!("scale {name} {mean:.1} {busiest:.0} a_minute"));
    }
    print_busiest_hour(
        "github_reader_busiest_hour",
        day,
        |minute| minute.reader_counted,
        installation_limit(scale.repositories),
    );
    print_busiest_hour(
        "github_graphql_busiest_hour",
        day,
        |minute| minute.reader_graphql,
        5_000.0,
    );
    let writes = github::WRITES;
    print_busiest_hour(
        "github_writes_busiest_hour",
        day,
        |minute| minute.writer_writes,
        writes.an_hour.into(),
    );
    print_waits(day);
}

/// Prints a column's busiest hour and its limit.
fn print_busiest_hour(name: &str, day: &SimulatedDay, of: fn(&MinuteLoad) -> f64, limit: f64) {
    let hours = day
        .minutes
        .windows(60)
        .map(|hour| hour.iter().map(of).sum::<f64>());
    let busiest = hours.fold(0.0, f64::max);
    let percent = busiest * 100.0 / limit;
    print_line(&format!("scale {name} {busiest:.0} of {limit:.0} {percent:.0} %"));
}

fn print_waits(day: &SimulatedDay) {
    let minutes = |time: std::time::Duration| time.as_secs_f64() / 60.0;
    print_line(&format!("scale slots_busiest {} slots", day.busiest_slots));
    print_line(&format!("scale runs_waiting_most {} runs", day.longest_queue));
    print_line(&format!(
        "scale wait_for_slot_longest {:.1} minutes",
        minutes(day.longest_wait)
    ));
    print_line(&format!(
        "scale look_at_checks_latest {:.1} minutes",
        minutes(day.latest_look)
    ));
    print_line(&format!(
        "scale write_held_back_longest {:.1} minutes",
        minutes(day.latest_write)
    ));
}
