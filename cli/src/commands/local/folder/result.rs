//! Result of a run in a folder: the change with its evidence, places, cost, and the next commands.

use std::path::Path;

use anyhow::Context;
use domain::{
    ChangedFileSize, CheckRow, SpendSum, check::CheckOutcome, describe_evidence, text::format_duration,
};
use git::FolderHead;

use super::{
    super::{print_result, print_styled},
    brief_view::{choose_level_emphasis, with_lines},
    interactive_run::AttendedRun,
    setup_plan::render_flags,
    shell_words::quote_for_shell,
};
use crate::terminal_line::{
    TerminalLine,
    TextEmphasis::{Faint, Plain, Strong},
};

// Most files that the end lists.
const MAX_FILES: usize = 20;

/// Circumstances of a result that the run itself does not know.
pub(super) struct ResultFrame<'a> {
    /// Git with the options that reach the folder, as a user at the terminal calls it.
    pub(super) git: &'a str,
    /// Start of the work.
    pub(super) head: &'a FolderHead,
    /// True when no branch is written.
    pub(super) dry_run: bool,
    /// True when the branch is checked out at the end.
    pub(super) accept: bool,
}

/// Prints the result, and for a dry run also the text and the patch.
pub(super) fn print_run_result(outcome: &AttendedRun, frame: &ResultFrame<'_>) -> anyhow::Result<()> {
    render_result(outcome, frame).iter().for_each(print_styled);
    for line in render_setup_advice(outcome.checks()) {
        print_result(&line);
    }
    if let (Some(patch), true) = (&outcome.patch, frame.dry_run) {
        for file in [&patch.with_file_name("description.md"), patch] {
            let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            print_result("");
            print_result(&String::from_utf8_lossy(&bytes));
        }
    }
    Ok(())
}

/// Command that checks the change out; `None` without a branch, and for a dry run, which writes none.
pub(super) fn render_switch_command(outcome: &AttendedRun, frame: &ResultFrame<'_>) -> Option<String> {
    let branch = outcome.branch.as_deref().filter(|_| !frame.dry_run)?;
    Some(format!("{} switch {}", frame.git, quote_for_shell(branch)))
}

/// Lines about the change, its places and cost, and the commands that read and take it.
fn render_result(outcome: &AttendedRun, frame: &ResultFrame<'_>) -> Vec<TerminalLine> {
    let mut lines = Vec::new();
    if let (Some(title), Some(_)) = (&outcome.title, &outcome.branch) {
        lines.push(TerminalLine::default());
        lines.push(TerminalLine::default().with(Strong, title));
        lines.extend(render_changed_files(&outcome.changed));
    }
    if let Some(proof) = &outcome.proof {
        let emphasis = choose_level_emphasis(proof.level, &proof.rows);
        lines.push(TerminalLine::labeled("evidence").with(emphasis, describe_evidence(&**proof)));
    }
    let took = match outcome.duration_ms {
        0 => String::new(),
        ms => format!(", {}", format_duration(ms)),
    };
    let cost = render_cost(outcome.replies);
    lines.push(TerminalLine::labeled("cost").with(Plain, &format!("{cost}{took}")));
    if let Some(branch) = &outcome.branch {
        let note = if frame.dry_run {
            " (not written: --dry-run)"
        } else {
            ""
        };
        lines.push(TerminalLine::labeled("branch").with(Plain, &format!("{branch}{note}")));
    }
    if let Some(patch) = &outcome.patch {
        // The receipt names the patch alone. The reporter writes the text next to it.
        let text = patch.with_file_name("description.md");
        for (label, path) in [("patch", patch), ("text", &text)] {
            lines.push(TerminalLine::labeled(label).with(Plain, &path.display().to_string()));
        }
    }
    let commands = list_next_commands(outcome, frame);
    if !commands.is_empty() {
        lines.push(TerminalLine::default());
    }
    lines.extend(commands);
    lines
}

fn render_changed_files(files: &[ChangedFileSize]) -> Vec<TerminalLine> {
    let mut lines: Vec<TerminalLine> = files
        .iter()
        .take(MAX_FILES)
        .map(|file| {
            let line = TerminalLine::default().with(Plain, &format!("  {}", file.path));
            with_lines(line, file.added as usize, file.removed as usize)
        })
        .collect();
    let rest = files.len().saturating_sub(MAX_FILES);
    if rest > 0 {
        lines.push(TerminalLine::default().with(Faint, &format!("  … and {rest} more")));
    }
    lines
}

/// Commands that show, check out and apply the change, each with its effect.
fn list_next_commands(outcome: &AttendedRun, frame: &ResultFrame<'_>) -> Vec<TerminalLine> {
    let git = frame.git;
    let mut commands = Vec::new();
    if let (Some(branch), Some(switch)) = (&outcome.branch, render_switch_command(outcome, frame)) {
        let base = frame.head.revision();
        let range = quote_for_shell(&format!("{base}...{branch}"));
        commands.push((format!("{git} diff {range}"), "shows the change"));
        if frame.accept {
            commands.push((format!("{git} switch -"), "returns to the previous branch"));
        } else {
            commands.push((switch, "checks it out"));
        }
    }
    if let Some(patch) = &outcome.patch {
        let patch = quote_for_shell(&patch.display().to_string());
        commands.push((format!("{git} am {patch}"), "applies it to another branch"));
    }
    let labels = ["next"].into_iter().chain(std::iter::repeat(""));
    commands
        .iter()
        .zip(labels)
        .map(|((command, effect), label)| {
            TerminalLine::labeled(label)
                .with(Plain, command)
                .with(Faint, &format!("  # {effect}"))
        })
        .collect()
}

/// Git for the folder as the user calls it from the current directory.
pub(super) fn find_git_command(folder: &Path) -> String {
    name_git_command(folder, std::env::current_dir().ok().as_deref())
}

/// `git`, with the folder when the user is elsewhere.
fn name_git_command(folder: &Path, current: Option<&Path>) -> String {
    if current.is_some_and(|current| current.starts_with(folder)) {
        "git".to_owned()
    } else {
        format!("git -C {}", quote_for_shell(&folder.display().to_string()))
    }
}

fn render_cost(sum: SpendSum) -> String {
    let dollars = crate::timeline::format_dollars(sum.spend.cost_usd.micros());
    let count = |replies| match replies {
        1 => "1 reply".to_owned(),
        replies => format!("{replies} replies"),
    };
    match (sum.replies, u64::from(sum.spend.unpriced)) {
        (0, _) => "nothing: the model did not reply".to_owned(),
        (replies, 0) => format!("{dollars} for {} of the model", count(replies)),
        (replies, unpriced) if unpriced == replies => {
            format!("unknown, like the price of the model ({})", count(replies))
        }
        (replies, unpriced) => format!(
            "{dollars} for {}, without the cost of {unpriced} of them, whose price is unknown",
            count(replies)
        ),
    }
}

/// Advice about the checks that could not run with the change; empty when every check ran.
pub(super) fn render_setup_advice(rows: &[CheckRow]) -> Vec<String> {
    let not_run: Vec<&CheckRow> = rows
        .iter()
        .filter(|row| row.head == CheckOutcome::Inert)
        .collect();
    let mut lines: Vec<String> = not_run.iter().map(|row| render_failed_check(row)).collect();
    if lines.is_empty() {
        return lines;
    }
    lines.push(
        "the work happens in a copy of the commit: what git ignores (node_modules, .venv, target) is not in it"
            .to_owned(),
    );
    let mut hints = not_run.iter().filter_map(|row| row.setup_hint.as_ref());
    let flags = match hints.find(|hint| !hint.commands.is_empty()) {
        Some(hint) => render_flags(hint),
        None => "--setup COMMAND --allow HOST".to_owned(),
    };
    lines.push(format!(
        "to install it there, give the command again with {flags}"
    ));
    lines
}

fn render_failed_check(row: &CheckRow) -> String {
    match (&row.setup_hint, row.reason.is_empty()) {
        (Some(hint), _) => format!("`{}` cannot be run here: {}", row.command, hint.sentence()),
        (None, false) => format!("`{}` cannot be run here: {}", row.command, row.reason),
        (None, true) => format!("`{}` cannot be run here", row.command),
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        ChangeProof, Dollars, FileRole, ModelSpend, SetupHint, ShownBy, StopReason, check::EvidenceLevel,
    };

    use super::*;

    fn build_outcome() -> AttendedRun {
        let proof = ChangeProof {
            level: EvidenceLevel::E3,
            rows: Vec::new(),
            demonstrations: Vec::new(),
            findings: Vec::new(),
            outside: Vec::new(),
            unnoticed: Vec::new(),
            shown_by: Some(ShownBy::OwnTests),
            unrepaired: Vec::new(),
            skipped_checks: Vec::new(),
        };
        AttendedRun {
            reason: Some(StopReason::Completed),
            title: Some("fix(cart): Count every piece".to_owned()),
            changed: vec![ChangedFileSize {
                path: "shop/cart.py".to_owned(),
                added: 3,
                removed: 1,
                role: FileRole::Product,
            }],
            proof: Some(Box::new(proof)),
            branch: Some("fix/shop-1".to_owned()),
            patch: Some("/state/my results/change.patch".into()),
            duration_ms: 5_210,
            replies: SpendSum {
                replies: 1,
                spend: ModelSpend {
                    cost_usd: Dollars::from_micros(31_200),
                    ..ModelSpend::default()
                },
            },
            ..AttendedRun::default()
        }
    }

    fn build_head() -> FolderHead {
        FolderHead {
            branch: "main".to_owned(),
            commit: "3f2c9d01a6be".repeat(4)[..40].parse().unwrap(),
        }
    }

    fn render_text(outcome: &AttendedRun, dry_run: bool, accept: bool) -> String {
        let frame = ResultFrame {
            git: "git",
            head: &build_head(),
            dry_run,
            accept,
        };
        let lines = render_result(outcome, &frame);
        let lines: Vec<String> = lines.iter().map(|line| line.render(false)).collect();
        lines.join("\n")
    }

    #[test]
    fn result_ends_with_commands_that_take_it() {
        assert_eq!(
            render_text(&build_outcome(), false, false),
            "
fix(cart): Count every piece
  shop/cart.py +3 −1
evidence A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.
cost     $0.0312 for 1 reply of the model, 5.2 s
branch   fix/shop-1
patch    /state/my results/change.patch
text     /state/my results/description.md

next     git diff main...fix/shop-1  # shows the change
         git switch fix/shop-1  # checks it out
         git am '/state/my results/change.patch'  # applies it to another branch"
        );
    }

    #[test]
    fn commands_fit_dry_run_and_accepted_branch() {
        let dry = render_text(&build_outcome(), true, false);
        assert!(
            dry.contains("branch   fix/shop-1 (not written: --dry-run)"),
            "{dry}"
        );
        assert!(
            dry.contains("next     git am") && !dry.contains("git switch"),
            "{dry}"
        );
        let accepted = render_text(&build_outcome(), false, true);
        assert!(
            accepted.contains("git diff main...fix/shop-1") && accepted.contains("git switch -  #"),
            "{accepted}"
        );
    }

    #[test]
    fn switch_command_needs_written_branch() {
        let git = name_git_command(Path::new("/home/ada/my shop"), None);
        let switch = |outcome: &AttendedRun, dry_run| {
            let frame = ResultFrame {
                git: &git,
                head: &build_head(),
                dry_run,
                accept: false,
            };
            render_switch_command(outcome, &frame)
        };
        let command = "git -C '/home/ada/my shop' switch fix/shop-1";
        assert_eq!(switch(&build_outcome(), false).as_deref(), Some(command));
        assert_eq!(switch(&build_outcome(), true), None);
        assert_eq!(switch(&AttendedRun::default(), false), None);
    }

    #[test]
    fn run_without_change_names_its_cost_alone() {
        let outcome = AttendedRun {
            title: Some("Unused".to_owned()),
            ..AttendedRun::default()
        };
        assert_eq!(
            render_text(&outcome, false, false),
            "cost     nothing: the model did not reply"
        );
    }

    #[test]
    fn git_command_names_folder_of_another_place() {
        let folder = Path::new("/home/ada/my shop");
        assert_eq!(
            name_git_command(folder, Some(Path::new("/home/ada/my shop/src"))),
            "git"
        );
        assert_eq!(
            name_git_command(folder, Some(Path::new("/home/ada"))),
            "git -C '/home/ada/my shop'"
        );
    }

    #[test]
    fn unknown_cost_is_not_zero() {
        let of = |micros, replies, unpriced| {
            render_cost(SpendSum {
                replies,
                spend: ModelSpend {
                    cost_usd: Dollars::from_micros(micros),
                    unpriced,
                    ..ModelSpend::default()
                },
            })
        };
        assert_eq!(of(12_345, 3, 0), "$0.0123 for 3 replies of the model");
        assert!(of(0, 0, 0).starts_with("nothing"));
        assert!(of(0, 3, 3).starts_with("unknown"));
        assert!(of(12_345, 3, 1).contains("without the cost of 1 of them"));
    }

    fn build_check_row(head: CheckOutcome, setup_hint: Option<SetupHint>) -> CheckRow {
        CheckRow {
            command: "npm test".to_owned(),
            base: Some(head),
            head,
            passed: 0,
            broken: Vec::new(),
            missing_count: 0,
            missing: Vec::new(),
            mended: Vec::new(),
            still_failing: Vec::new(),
            flaky: Vec::new(),
            reason: "Cannot find module 'x'".to_owned(),
            setup_hint,
        }
    }

    #[test]
    fn advice_names_setup_that_would_help() {
        let hint = SetupHint {
            missing: "the package `x`".to_owned(),
            commands: vec!["npm ci".to_owned()],
            registry: "npm".to_owned(),
        };
        let advice = render_setup_advice(&[build_check_row(CheckOutcome::Inert, Some(hint))]).join("\n");
        assert!(advice.contains("the package `x` is missing here"), "{advice}");
        assert!(advice.ends_with("with --setup 'npm ci' --allow npm"), "{advice}");
        let plain = render_setup_advice(&[build_check_row(CheckOutcome::Inert, None)]).join("\n");
        assert!(plain.contains("Cannot find module 'x'") && plain.contains("--setup COMMAND"));
        assert!(render_setup_advice(&[build_check_row(CheckOutcome::Red, None)]).is_empty());
    }
}
