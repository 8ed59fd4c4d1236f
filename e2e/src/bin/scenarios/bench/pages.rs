//! Pages of figures, written by the bench: all figures of one run with their floors, and nothing older.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use anyhow::{Context as _, ensure};

use crate::bench::{
    machine::MachineDescription,
    measure::{MeasuredFigure, format_value},
    references::{REFERENCES, compute_ratio, find_reference},
};
use crate::output::print_line;

/// Pages below the folder of documentation.
const FIGURES: &str = "reference/benchmark-figures.md";
const OVERVIEW: &str = "benchmarks.md";
/// Lines around the generated part of the overview.
const BEGIN: &str = "<!-- Written by make bench-docs -->";
const END: &str = "<!-- End of what make bench-docs writes -->";
const NO_FLOOR: &str = "–";

/// Replaces the figures in the pages of a folder.
pub(crate) fn write_pages(
    folder: &Path,
    machine: &MachineDescription,
    figures: &[MeasuredFigure],
) -> anyhow::Result<()> {
    ensure!(!figures.is_empty(), "there are no figures to write");
    let overview = folder.join(OVERVIEW);
    let text =
        std::fs::read_to_string(&overview).with_context(|| format!("cannot read {}", overview.display()))?;
    let text = replace_generated(&text, &render_overview(machine, figures))?;
    std::fs::write(&overview, text)?;
    std::fs::write(folder.join(FIGURES), render_figures(machine, figures))?;
    print_line(&format!(
        "# {} figures are in {} and {}",
        figures.len(),
        folder.join(FIGURES).display(),
        overview.display()
    ));
    Ok(())
}

/// Renders the page of all figures.
fn render_figures(machine: &MachineDescription, figures: &[MeasuredFigure]) -> String {
    let mut page = format!(
        "# Which figures did the benchmarks give?\n\n\
         Read this page when you plan machines. Measure on your own machine, because yours differs:\n\n\
         ```\nmake bench\n```\n\n\
         `make bench-docs` writes this page; a change by hand is lost. A part that was not measured in the\n\
         same run is absent.\n\
         [What does each benchmark measure?](benchmark-method.md)\n\n{}\n\
         | figure | value | floor | value / floor | goal |\n|---|---|---|---|---|\n",
        render_machine(machine)
    );
    let beside: BTreeSet<&str> = figures
        .iter()
        .filter_map(|figure| find_reference(&figure.name)?.floor)
        .collect();
    // A floor beside its figure needs no row of its own.
    for figure in figures
        .iter()
        .filter(|figure| !beside.contains(figure.name.as_str()))
    {
        page.push_str(&render_row(figure, figures));
    }
    page
}

/// Renders the figures that have a goal, in the order of the references.
fn render_overview(machine: &MachineDescription, figures: &[MeasuredFigure]) -> String {
    let mut text = format!(
        "{}\n| figure | value | floor | value / floor | goal |\n|---|---|---|---|---|\n",
        render_machine(machine)
    );
    for reference in REFERENCES.iter().filter(|reference| reference.goal.is_some()) {
        let figure = figures.iter().find(|figure| figure.name == reference.figure);
        text.push_str(
            &figure
                .map(|figure| render_row(figure, figures))
                .unwrap_or_default(),
        );
    }
    text
}

fn render_row(figure: &MeasuredFigure, figures: &[MeasuredFigure]) -> String {
    let reference = find_reference(&figure.name);
    let floor = reference.and_then(|reference| reference.floor);
    let floor = floor.and_then(|name| figures.iter().find(|figure| figure.name == name));
    let (beside, ratio) = match floor {
        Some(floor) => (
            format!("{} (`{}`)", render_value(floor), floor.name),
            format_value(compute_ratio(figure, floor)),
        ),
        None => (NO_FLOOR.to_owned(), NO_FLOOR.to_owned()),
    };
    let goal = reference.and_then(|reference| reference.goal);
    let goal = goal.map_or_else(|| NO_FLOOR.to_owned(), |goal| goal.render(figure, floor));
    format!(
        "| `{}` | {} | {beside} | {ratio} | {goal} |\n",
        figure.name,
        render_value(figure)
    )
}

fn render_value(figure: &MeasuredFigure) -> String {
    let unit = match figure.unit.as_str() {
        "per_second" => "a second",
        "MB_per_second" => "MB a second",
        "percent" => "%",
        "percent_of_a_core" => "% of a core",
        "percent_of_cpu" => "% of all CPU",
        unit => unit,
    };
    format!("{} {unit}", format_value(figure.value))
}

/// Renders commit, date and machine as lines of at most 100 columns.
fn render_machine(machine: &MachineDescription) -> String {
    let changed = if machine.is_changed {
        " with changes that are not committed"
    } else {
        ""
    };
    let text = format!(
        "Commit `{}` of {}{changed}, measured on {}: {}, {} cores, {:.0} GiB of memory, {}, load average {} before the \
         first figure. {}.",
        machine.commit.get(..12).unwrap_or(&machine.commit),
        machine.commit_date,
        machine.date,
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        machine.load,
        machine.programs.join(", ")
    );
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > 100 {
            lines.push('\n');
            column = 0;
        }
        let space = if column > 0 { " " } else { "" };
        // Writing to a `String` cannot fail.
        let _ = write!(lines, "{space}{word}");
        column += space.len() + width;
    }
    lines.push('\n');
    lines
}

/// Replaces the part between the two marker lines.
fn replace_generated(page: &str, generated: &str) -> anyhow::Result<String> {
    let missing = || format!("{OVERVIEW} lacks the line {BEGIN} or {END}");
    let (before, rest) = page.split_once(BEGIN).with_context(missing)?;
    let (_, after) = rest.split_once(END).with_context(missing)?;
    Ok(format!("{before}{BEGIN}\n\n{generated}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: &str = include_str!("../../../../../docs/reference/benchmark-method.md");
    const PAGE: &str = include_str!("../../../../../docs/reference/benchmark-figures.md");
    const SHOWN: &str = include_str!("../../../../../docs/benchmarks.md");

    fn describe_machine() -> MachineDescription {
        MachineDescription {
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            is_changed: false,
            commit_date: "2026-11-01".to_owned(),
            date: "2026-11-02".to_owned(),
            processor: "A processor".to_owned(),
            cores: 2,
            memory_gib: 23.5,
            kernel: "Linux 6.18".to_owned(),
            load: "0.10".to_owned(),
            programs: vec!["rustc 1.95.0".to_owned(), "git version 2.39".to_owned()],
        }
    }

    fn build_figures() -> Vec<MeasuredFigure> {
        let figure = |(name, value, unit): (&str, f64, &str)| MeasuredFigure {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
        };
        [
            ("tickets_20x50_wall", 12.0, "s"),
            ("floor_20x50_wall", 6.0, "s"),
            ("tool_search_content_600_p50", 14.0, "ms"),
            ("floor_rg_600_p50", 7.0, "ms"),
            ("durable_steps", 823.0, "per_second"),
        ]
        .map(figure)
        .to_vec()
    }

    #[test]
    fn floors_are_beside_their_figures() {
        let page = render_figures(&describe_machine(), &build_figures());
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `tickets_20x50_wall` | 12.0 s | 6.00 s (`floor_20x50_wall`) | 2.00 | ≤ 1.4 × floor: missed |",
                "| `tool_search_content_600_p50` | 14.0 ms | 7.00 ms (`floor_rg_600_p50`) | 2.00 | – |",
                "| `durable_steps` | 823 a second | – | – | – |",
            ]
        );
        assert!(
            page.contains("Commit `0123456789ab` of 2026-11-01, measured on 2026-11-02"),
            "{page}"
        );
        assert!(
            page.lines()
                .all(|line| line.starts_with('|') || line.chars().count() <= 100),
            "{page}"
        );
    }

    #[test]
    fn overview_replaces_what_was_there() {
        let page = format!("# A\n\n{BEGIN}\n\nold 22\n{END}\n\nrest\n");
        let new = render_overview(&describe_machine(), &build_figures());
        let once = replace_generated(&page, &new).unwrap();
        assert!(
            once.contains("`tickets_20x50_wall`") && once.ends_with("\n\nrest\n"),
            "{once}"
        );
        // Figures without a goal are on the other page.
        assert!(
            !once.contains("old 22") && !once.contains("durable_steps"),
            "{once}"
        );
        assert_eq!(replace_generated(&once, &new).unwrap(), once);
        assert!(replace_generated("# A\n", &new).is_err());
    }

    /// Returns the names of figures between backticks. A name that ends in `…` or has a placeholder counts up to
    /// it.
    fn list_described_names(page: &str) -> Vec<&str> {
        let quoted = page.split('`').skip(1).step_by(2);
        quoted
            .map(|name| name.split(['…', '<']).next().unwrap_or_default())
            .filter(|name| name.len() > 7 && name.contains('_'))
            .collect()
    }

    #[test]
    fn published_figures_are_described() {
        let described = list_described_names(METHOD);
        let rows = PAGE.lines().chain(SHOWN.lines());
        let rows = rows.filter(|line| line.starts_with("| `"));
        for row in rows {
            for name in row.split('`').skip(1).step_by(2) {
                let is_described = described.iter().any(|known| name.starts_with(known));
                assert!(is_described, "benchmark-method.md does not describe {name}");
            }
        }
    }

    #[test]
    fn references_are_described() {
        let described = list_described_names(METHOD);
        for reference in REFERENCES {
            for name in reference.floor.into_iter().chain([reference.figure]) {
                let is_described = described.iter().any(|known| name.starts_with(known));
                assert!(is_described, "benchmark-method.md does not describe {name}");
            }
        }
    }

    #[test]
    fn published_pages_are_of_one_run() {
        let machine = |page: &str| -> Vec<String> {
            let lines = page.lines().filter(|line| line.starts_with("Commit `"));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(machine(PAGE), machine(SHOWN));
        assert!(
            machine(PAGE).len() <= 1,
            "figures of several runs are on one page"
        );
        assert!(replace_generated(SHOWN, "").is_ok());
    }
}
