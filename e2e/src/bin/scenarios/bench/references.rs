//! Floors and goals of figures.

use crate::bench::measure::{MeasuredFigure, format_value};

/// Figure with the bare work underneath it and its goal.
pub(crate) struct FigureReference {
    pub(crate) figure: &'static str,
    pub(crate) floor: Option<&'static str>,
    pub(crate) goal: Option<FigureGoal>,
}

/// Goal of a figure: in its own unit, or relative to its floor.
#[derive(Clone, Copy)]
pub(crate) enum FigureGoal {
    Most(f64),
    MostTimesFloor(f64),
    LeastTimesFloor(f64),
}

impl FigureGoal {
    /// Renders the goal, and whether the figure reaches it.
    pub(crate) fn render(self, figure: &MeasuredFigure, floor: Option<&MeasuredFigure>) -> String {
        let ratio = floor.map(|floor| compute_ratio(figure, floor));
        let (text, is_reached) = match self {
            Self::Most(limit) => (format!("≤ {}", trim_number(limit)), Some(figure.value <= limit)),
            Self::MostTimesFloor(limit) => (
                format!("≤ {} × floor", trim_number(limit)),
                ratio.map(|ratio| ratio <= limit),
            ),
            Self::LeastTimesFloor(limit) => (
                format!("≥ {} × floor", trim_number(limit)),
                ratio.map(|ratio| ratio >= limit),
            ),
        };
        match is_reached {
            Some(true) => format!("{text}: reached"),
            Some(false) => format!("{text}: missed"),
            None => text,
        }
    }
}

/// Divides a figure by its floor. Seconds and milliseconds are the only units that differ between the two.
pub(crate) fn compute_ratio(figure: &MeasuredFigure, floor: &MeasuredFigure) -> f64 {
    figure.value * count_milliseconds(&figure.unit) / (floor.value * count_milliseconds(&floor.unit))
}

fn count_milliseconds(unit: &str) -> f64 {
    match unit {
        "s" => 1000.0,
        _ => 1.0,
    }
}

fn trim_number(number: f64) -> String {
    let text = format_value(number);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Finds the reference of a figure.
pub(crate) fn find_reference(figure: &str) -> Option<&'static FigureReference> {
    REFERENCES.iter().find(|reference| reference.figure == figure)
}

const fn floor(figure: &'static str, floor: &'static str) -> FigureReference {
    FigureReference {
        figure,
        floor: Some(floor),
        goal: None,
    }
}

const fn at_most(figure: &'static str, limit: f64) -> FigureReference {
    FigureReference {
        figure,
        floor: None,
        goal: Some(FigureGoal::Most(limit)),
    }
}

const fn at_most_of(figure: &'static str, limit: f64, floor: &'static str) -> FigureReference {
    FigureReference {
        figure,
        floor: Some(floor),
        goal: Some(FigureGoal::Most(limit)),
    }
}

const fn times(figure: &'static str, limit: f64, floor: &'static str) -> FigureReference {
    FigureReference {
        figure,
        floor: Some(floor),
        goal: Some(FigureGoal::MostTimesFloor(limit)),
    }
}

/// References in the order in which the page of benchmarks shows those with a goal.
pub(crate) const REFERENCES: &[FigureReference] = &[
    times("tickets_20x50_wall", 1.4, "floor_20x50_wall"),
    floor(
        "tickets_20x50_without_checks_wall",
        "floor_20x50_without_checks_wall",
    ),
    floor("tickets_20x50_cpu_services", "floor_20x50_cpu"),
    floor(
        "tickets_20x50_without_checks_cpu_services",
        "floor_20x50_without_checks_cpu",
    ),
    at_most("tickets_20x50_share_of_bench", 10.0),
    at_most("tickets_20x50_without_checks_share_of_bench", 10.0),
    at_most("tickets_1000_one_turn_wall", 25.0),
    at_most("tickets_1000_one_turn_share_of_bench", 10.0),
    floor("ticket_to_pull_request_p50", "floor_eight_test_runs_p50"),
    at_most_of(
        "ticket_to_pull_request_without_checks_p50",
        200.0,
        "floor_two_test_runs_p50",
    ),
    floor("proof_wall_100ms", "floor_check_100ms"),
    floor("proof_wall_2s", "floor_check_2s"),
    floor("proof_wall_60s", "floor_check_60s"),
    at_most("proof_wall_per_check_wall_100ms", 2.0),
    at_most("proof_wall_per_check_wall_2s", 2.0),
    at_most("proof_wall_per_check_wall_60s", 2.0),
    at_most("webhook_to_first_model_call_p50", 30.0),
    at_most("turn_overhead_p50", 1.0),
    at_most("storage_1000_runs", 120.0),
    FigureReference {
        figure: "webhook_ingest_c64",
        floor: Some("floor_publish_and_ack_c64"),
        goal: Some(FigureGoal::LeastTimesFloor(0.85)),
    },
    floor("webhook_ingest_c1_p50", "floor_publish_and_ack_25kB_p50"),
    floor("webhook_ingest_c1_p99", "floor_publish_and_ack_25kB_p99"),
    floor("webhook_p99_beside_1000_idle", "floor_webhook_p99_alone"),
    times("tool_read_file_10kB_p50", 1.5, "floor_grpc_empty_call_p50"),
    floor("tool_read_file_10kB_p99", "floor_grpc_empty_call_p99"),
    times("tool_run_command_true_p50", 1.6, "floor_bash_true_p50"),
    floor("tool_run_command_true_p99", "floor_bash_true_p99"),
    at_most_of(
        "tool_run_command_true_20000_p50",
        15.0,
        "floor_bash_true_20000_p50",
    ),
    floor("tool_run_command_true_100000_p50", "floor_bash_true_100000_p50"),
    floor("tool_edit_file_20000_p50", "floor_write_file_20000_p50"),
    at_most_of("tool_edit_file_100000_p50", 20.0, "floor_write_file_100000_p50"),
    times("tool_commit_changes_20000_p50", 2.0, "floor_git_commit_20000_p50"),
    times(
        "tool_commit_changes_100000_p50",
        2.0,
        "floor_git_commit_100000_p50",
    ),
    at_most_of("snapshot_60MB_p50", 3000.0, "floor_git_add_60MB_p50"),
    times("open_cold_600", 1.2, "floor_clone_depth_1_600_p50"),
    floor("open_cold_20000", "floor_clone_depth_1_20000_p50"),
    floor("open_cold_100000", "floor_clone_depth_1_100000_p50"),
    floor("open_warm_600_p50", "floor_clone_shared_600_p50"),
    times("open_warm_20000_p50", 1.5, "floor_clone_shared_20000_p50"),
    times("open_warm_100000_p50", 1.5, "floor_clone_shared_100000_p50"),
    floor("tool_search_content_600_p50", "floor_rg_600_p50"),
    times("tool_search_content_20000_p50", 1.2, "floor_rg_20000_p50"),
    floor("tool_search_content_100000_p50", "floor_rg_100000_p50"),
    times("opens_c50_wall", 1.2, "floor_clone_shared_c50_wall"),
    FigureReference {
        figure: "commands_c32",
        floor: Some("floor_sh_true_c32"),
        goal: Some(FigureGoal::LeastTimesFloor(0.6)),
    },
    floor("journal_append_1kB_sync_default_p50", "floor_nats_round_trip_p50"),
    floor("journal_append_1kB_sync_default_p99", "floor_nats_round_trip_p99"),
    floor(
        "journal_append_1kB_sync_always_p50",
        "floor_write_and_sync_1kB_p50",
    ),
    floor(
        "journal_append_1kB_sync_always_p99",
        "floor_write_and_sync_1kB_p99",
    ),
    floor("recovery_planner_sigkill_p50", "floor_ack_wait"),
    at_most("recovery_planner_default_s", 10.0),
    at_most("planner_memory_parked_1000", 35.0),
    at_most("github_calls_per_hour_500_prs", 600.0),
    floor("adf_from_markdown", "floor_adf_as_json"),
    floor("adf_to_markdown", "floor_adf_as_json"),
    at_most("index_build_s", 60.0),
    at_most("index_100_changed_ms", 1000.0),
    at_most("query_p50_ms", 20.0),
    at_most("index_memory_mib", 150.0),
    floor("tokens_50_turns_input_cleared", "floor_tokens_50_turns_input"),
    at_most_of(
        "try_to_first_model_call_p50",
        600.0,
        "floor_start_and_stop_nats_redis_p50",
    ),
    at_most("setup_to_first_ticket_seconds", 120.0),
    floor("start_to_ready_ingest_p50", "floor_start_ingest_p50"),
    floor("start_to_ready_planner_p50", "floor_start_planner_p50"),
    floor("start_to_ready_executor_p50", "floor_start_executor_p50"),
    floor("start_to_ready_reporter_p50", "floor_start_reporter_p50"),
    floor("start_to_ready_egress_p50", "floor_start_egress_p50"),
    floor("metrics_scrape_ingest_p50", "floor_healthz_ingest_p50"),
    floor("metrics_scrape_planner_p50", "floor_healthz_planner_p50"),
    floor("metrics_scrape_reporter_p50", "floor_healthz_reporter_p50"),
    floor("console_runs_10000_runs_p50", "floor_api_runs_10000_runs_p50"),
    floor(
        "ingest_cpu_of_a_run_with_500_viewers",
        "floor_ingest_cpu_of_a_run_without_viewers",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn figure(value: f64, unit: &str) -> MeasuredFigure {
        MeasuredFigure {
            name: "a".to_owned(),
            value,
            unit: unit.to_owned(),
        }
    }

    #[test]
    fn goal_shows_limit_and_outcome() {
        let (slow, base) = (figure(3.0, "s"), figure(2000.0, "ms"));
        let shown = |goal: FigureGoal, floor| goal.render(&slow, floor);
        assert_eq!(shown(FigureGoal::Most(3.0), None), "≤ 3: reached");
        assert_eq!(
            shown(FigureGoal::MostTimesFloor(1.4), Some(&base)),
            "≤ 1.4 × floor: missed"
        );
        assert_eq!(
            shown(FigureGoal::LeastTimesFloor(0.85), Some(&base)),
            "≥ 0.85 × floor: reached"
        );
        assert_eq!(shown(FigureGoal::MostTimesFloor(2.0), None), "≤ 2 × floor");
        assert_eq!(shown(FigureGoal::Most(600.0), None), "≤ 600: reached");
    }

    #[test]
    fn each_figure_has_one_reference() {
        let names: BTreeSet<&str> = REFERENCES.iter().map(|reference| reference.figure).collect();
        assert_eq!(names.len(), REFERENCES.len());
    }
}
