//! Wording of the planner's own answers to tool calls.

use std::fmt::Write as _;

use domain::check::{ChangeFinding, CheckOutcome};
use domain::{
    ChangeDoubt, ChangeProof, LostHunk, MergeSide, MetadataPattern, OutOfScopeFile, RedCheck, ReturnReason,
    ReviewObjection, ToolCall, ToolResult, text::escape_hidden,
};

use super::mcp;
use super::refusals::{self, BranchFreedom};
use crate::run::{ArgumentProblem, CallAnswer};

/// Answer to a call whose result is lost although the workspace is still open.
pub(crate) const INTERRUPTED_CALL: &str = "The result of this call did not arrive; whether it took effect is not known. Read \
     the files before you repeat it.";
/// Answer to a call that exceeded its limit.
pub(crate) const TOO_LONG: &str = "The call took too long and was cut.";

const NAME_CHARS: usize = 80;
const OUTSIDE_FILES: usize = 20;
const LOST_HUNKS: usize = 30;

/// Renders the planner's answer to a call for the model.
pub(crate) fn render_answer(call: &ToolCall, answer: &CallAnswer) -> ToolResult {
    match answer {
        CallAnswer::TruncatedReply => ToolResult::error(
            "Not run: the reply was truncated at its token limit. Work in smaller steps and call the tool again.",
        ),
        CallAnswer::NoObject => ToolResult::error(
            "Not run: the arguments are not a JSON object. Call the tool again with valid JSON.",
        ),
        CallAnswer::UnknownTool { tools } => {
            let name: String = call.name.chars().take(NAME_CHARS).collect();
            ToolResult::error(format!(
                "There is no tool {name:?}. Available tools: {}.",
                tools.join(", ")
            ))
        }
        CallAnswer::LostTwice => ToolResult::error(
            "Not run again: the machine with the workspace stopped twice while this call ran, so the call itself probably \
             causes it. The workspace was restored to its last saved state. Read the files, and reach your goal in \
             another way.",
        ),
        CallAnswer::Argument(wrong) => ToolResult::error(render_argument(wrong)),
        CallAnswer::Misnamed { right } => ToolResult::error(format!(
            "Not done: this does not follow the repository's rules. The right form:\n\n{right}"
        )),
        CallAnswer::Unmet(pattern) => ToolResult::error(format!(
            "Not done: the server would refuse it. {} Call the tool again with such a text.",
            render_requirement(pattern)
        )),
        CallAnswer::OtherBranch { branch } => ToolResult::error(refusals::render_other_branch(branch)),
        CallAnswer::Noted => ToolResult::ok("Noted."),
        CallAnswer::OutOfScope(outside) => ToolResult::error(format!(
            "Not done: {} belongs to the module {:?}, which this kind of ticket does not change. If the ticket cannot be done \
             without it, call widen_scope with that module and the reason first.",
            outside.path, outside.module
        )),
        CallAnswer::ExitsOnly { tools } => ToolResult::error(format!(
            "Not run: what is left is enough to end the work and for nothing else. Call one of: {}.",
            tools.join(", ")
        )),
        CallAnswer::AskedAlready => ToolResult::error(
            "People were asked once in this run and are not asked again. Decide on what you know and name your assumption \
             under `decisions`, or give up.",
        ),
        CallAnswer::ReadOnly => ToolResult::error(
            "Not run: nothing may be changed in this conversation. Read what you need and hand in your answer.",
        ),
        CallAnswer::ReadOnlyServers => ToolResult::error(
            "Not run: in this conversation only tools of MCP servers that declare to change nothing may be called.",
        ),
        CallAnswer::UnknownOutcome { server } => ToolResult::interrupted(mcp::render_unknown_outcome(server)),
    }
}

/// Renders a pattern of the server as a sentence.
pub(super) fn render_requirement(pattern: &MetadataPattern) -> String {
    let words = escape_hidden(&pattern.words());
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

fn render_argument(wrong: &ArgumentProblem) -> String {
    match wrong {
        ArgumentProblem::Malformed(problem) => {
            format!("The arguments do not fit the tool: {problem}. Call it again.")
        }
        ArgumentProblem::Scope => "`scope` is missing: the commit messages of this repository name one, as in fix(cart): …. Give the part \
             of the code that the change is about, in one word."
            .to_owned(),
        ArgumentProblem::Title => "title must be one line of 5 to 120 characters: what the change does.".to_owned(),
        ArgumentProblem::Summary => {
            "summary must have 10 to 8000 characters: what was changed, why, and how it was tested."
                .to_owned()
        }
        ArgumentProblem::Evidence => "evidence must have 10 to 4000 characters: what shows it.".to_owned(),
        ArgumentProblem::Questions => {
            "Ask one to three questions of 5 to 1000 characters, each with at most six short options."
                .to_owned()
        }
        ArgumentProblem::Criteria(missing) => append_points(
            "`criteria` needs one row for each of these points of the ticket; say under `shown_by` what shows it, or that it is \
             not done:",
            missing,
        ),
        ArgumentProblem::Replies(open) => {
            let open: Vec<String> = open.iter().map(u64::to_string).collect();
            format!(
                "`replies` needs exactly one entry for each comment of the review, and none for others; without one: {}",
                if open.is_empty() {
                    "none".to_owned()
                } else {
                    open.join(", ")
                }
            )
        }
        ArgumentProblem::Found => "each of `questions` needs the question and its answer".to_owned(),
        ArgumentProblem::Unseen(quote) => format!(
            "no tool has shown {quote:?}. Quote under `citations` what you have read, in its own words, or leave it out"
        ),
        ArgumentProblem::Quote(quote) => format!(
            "the ticket does not contain {quote:?}. Quote its own words under `criteria`, or leave the point out"
        ),
        ArgumentProblem::Decline => {
            "`decline` needs a `decline_kind` and a `reason` of 10 to 2000 characters for the people of the ticket".to_owned()
        }
        ArgumentProblem::Demonstration => {
            "Each entry of `demonstrations` needs a command that runs the changed code, not one that prints files or its own \
             words, and under `prints` 2 to 200 characters of its output that are not in the command. Without such a command \
             leave `demonstrations` out."
                .to_owned()
        }
        ArgumentProblem::Citation(known) => {
            if known.is_empty() {
                "no earlier work or ticket is known that this one repeats; choose another decision".to_owned()
            } else {
                format!("`repeats` must be one of: {}", known.join(", "))
            }
        }
        ArgumentProblem::OneLiner => "`one_liner` must be one line of 5 to 300 characters".to_owned(),
        ArgumentProblem::UnknownModule { known } => {
            if known.is_empty() {
                "The rules of this repository know no modules; every file may be changed.".to_owned()
            } else {
                format!("There is no such module. Choose from: {}.", known.join(", "))
            }
        }
        ArgumentProblem::Reason => {
            "reason must have 10 to 500 characters: why the ticket needs a change there.".to_owned()
        }
        ArgumentProblem::UnknownAttachment { known } => {
            if known.is_empty() {
                "No text is attached to the ticket.".to_owned()
            } else {
                format!("There is no such attachment. Choose from: {}.", known.join(", "))
            }
        }
        ArgumentProblem::NoTextAttachment => {
            "This attachment is not a text; the ticket says what is known of it.".to_owned()
        }
        ArgumentProblem::Issues { most } => {
            format!("`issues` must have 1 to {most} entries, each with a title and a text")
        }
        ArgumentProblem::Plan => "goal, approach and at least one step must not be empty.".to_owned(),
        ArgumentProblem::Objection => "Each objection needs the path of a file of the diff, a trigger (the input or situation that shows it) and a reason, \
              of 5 to 1000 characters each. Leave out what is about other files."
            .to_owned(),
        ArgumentProblem::NotAdded(path, line) => format!(
            "{path}:{line} is not a line that the pull request adds, or it is not new since your last review. Comment only on \
             lines that begin with + in the diff; put the rest into the summary, or leave it out"
        ),
        ArgumentProblem::Range => {
            "start_line must be above line, at most 20 lines in all; leave it out for a comment on one line".to_owned()
        }
        ArgumentProblem::Suggestion => {
            "suggestion must be the code that replaces exactly the commented lines, at most 2000 characters and without code \
             fences; leave it out when these lines alone cannot say it"
                .to_owned()
        }
        ArgumentProblem::Verdicts(missing) => append_points(
            "`criteria` needs one entry with a verdict for each of these points of the ticket:",
            missing,
        ),
        ArgumentProblem::NoLabels => "labels must be a list of texts".to_owned(),
        ArgumentProblem::UnknownTicket(shown) if shown.is_empty() => {
            "no other ticket was shown; leave duplicate_of out".to_owned()
        }
        ArgumentProblem::UnknownTicket(shown) => {
            format!(
                "duplicate_of must be one of: {}; or leave it out",
                shown.join(", ")
            )
        }
        ArgumentProblem::UnknownChoice { field, allowed, .. } if allowed.is_empty() => {
            format!("Nothing can be chosen for {field:?} on this ticket; leave it out.")
        }
        ArgumentProblem::UnknownChoice {
            field,
            value,
            allowed,
        } => format!(
            "There is no {value:?} for {field:?}. Choose from: {}.",
            allowed.join(", ")
        ),
        ArgumentProblem::Parts { most: 0 } => "This ticket cannot be split; leave `parts` out.".to_owned(),
        ArgumentProblem::Parts { most } => format!(
            "`parts` must have 2 to {most} entries, each with a title and a text; leave it out for a ticket that is not too large \
             and for one that repeats another"
        ),
    }
}

/// Renders a text with the points of a ticket below it.
fn append_points(words: &str, points: &[String]) -> String {
    let points: Vec<String> = points.iter().map(|point| format!("\n- {point}")).collect();
    format!("{words}\n{}", points.concat())
}

/// Renders the note that the workspace's changes could not be stored.
pub(super) fn render_unkept(reason: &str) -> String {
    format!(
        "[The changes in the workspace could not be saved: {reason}. They cannot be pushed, and they are lost if the \
         workspace is. Correct the cause; the next change is saved again.]"
    )
}

/// Renders the note that a reply does not have the requested form.
pub(super) fn render_unusable(problem: &ArgumentProblem) -> String {
    let problem = if let ArgumentProblem::Malformed(problem) = problem {
        problem.clone()
    } else {
        render_argument(problem)
    };
    format!(
        "Your reply cannot be used: {problem}. Reply again with one JSON object of the form that was asked for, complete and \
         corrected, and nothing around it."
    )
}

/// Renders the results of the checks for the reviewer.
pub(super) fn render_proof(proof: &ChangeProof) -> String {
    let mut text = String::new();
    for row in &proof.rows {
        let base = row.base.map_or("not run", CheckOutcome::as_str);
        let _ = writeln!(
            text,
            "- `{}`: {base} on the base, {} with the change, {} passed",
            row.command,
            row.head.as_str(),
            row.passed
        );
        let broken = if row.has_base_result() {
            "fails only with the change"
        } else {
            "fails with the change, no result on the base"
        };
        for (name, tests) in [
            (broken, &row.broken),
            ("ran before and does not run with the change", &row.missing),
            ("failed before and passes now", &row.mended),
            ("fails without the change too", &row.still_failing),
        ] {
            for test in tests {
                let _ = writeln!(text, "  - {name}: {test}");
            }
        }
    }
    for seen in &proof.demonstrations {
        let verdict = if seen.is_shown {
            "with the change and not without it"
        } else {
            "as the author says, which was not seen"
        };
        let _ = writeln!(text, "- `{}` prints {:?} {verdict}", seen.command, seen.prints);
    }
    for finding in &proof.findings {
        let _ = writeln!(text, "- {}: {}", render_place(finding), finding.words);
    }
    if text.is_empty() {
        text.push_str("Nothing could be run.\n");
    }
    text
}

/// Renders the reason that the work is returned, and the next step.
pub(super) fn render_return(why: &ReturnReason, ground: BranchFreedom<'_>) -> String {
    match why {
        ReturnReason::Refused(refusal) => refusals::render_refused_change(refusal, ground),
        ReturnReason::Feedback { feedback, .. } => format!(
            "A person read the change and asks for this before it is pushed:\n\n{feedback}\n\nMake these changes, then \
             call finish again."
        ),
        ReturnReason::Red { checks } => render_red_checks(checks),
        ReturnReason::Weakened { findings } => render_weakened(findings),
        ReturnReason::Questioned { doubts } => render_doubts(doubts),
        ReturnReason::HunksLost { hunks, marked_files } => render_lost_hunks(hunks, marked_files),
        ReturnReason::OutOfScope { files } => render_scope_return(files),
        ReturnReason::Replan { feedback, .. } => format!(
            "A person read the plan and asks for this:\n\n{feedback}\n\nChange the plan, then call submit_plan again with the \
             whole of it."
        ),
        ReturnReason::Reviewed { objections } => render_objections(objections),
        ReturnReason::Unkept { reason } => format!("{}\n\nThen call finish again.", render_unkept(reason)),
        ReturnReason::NothingChanged => {
            "The workspace holds no change. Make the change and call finish again; if none is needed or possible, call \
             give_up."
                .to_owned()
        }
    }
}

fn render_red_checks(checks: &[RedCheck]) -> String {
    let is_compared = checks
        .iter()
        .all(|check| describe_missing_base(check.base).is_none());
    let lead = if is_compared {
        "Checks are worse with your change than before it."
    } else {
        "Checks do not pass with your change."
    };
    let mut text = format!("{lead} They ran in a fresh copy of the files.\n");
    for check in checks {
        let _ = write!(text, "\n`{}`: ", check.command);
        if !check.tests.is_empty() {
            let _ = writeln!(text, "{}", check.tests.join(", "));
        }
        if let Some(note) = describe_missing_base(check.base) {
            let _ = writeln!(text, "{note}");
        }
        if check.missing_count > 0 {
            let named = if check.missing.is_empty() {
                String::new()
            } else {
                format!(": {}", check.missing.join(", "))
            };
            let _ = writeln!(
                text,
                "{} test(s) that ran before do not run any more{named}",
                check.missing_count
            );
        }
        let _ = writeln!(text, "The end of its output:\n\n{}", check.output_tail);
    }
    text.push_str("\nCorrect the change, then call finish again.");
    text
}

/// Renders the reason why a check cannot be compared with its run on the base; `None` if it can.
fn describe_missing_base(base: Option<CheckOutcome>) -> Option<String> {
    let why = match base {
        Some(CheckOutcome::Green | CheckOutcome::Red) => return None,
        Some(CheckOutcome::Inert) => "it could not be run there",
        Some(CheckOutcome::Timeout) => "it did not end in time there",
        Some(CheckOutcome::Infra) => "it lacked memory, disk or network there",
        Some(CheckOutcome::NoTests) => "it ran no test there",
        None => "its result there is not known",
    };
    Some(format!(
        "It has no result without your change to compare with: {why}. So each of its failures counts."
    ))
}

fn render_lost_hunks(hunks: &[LostHunk], marked_files: &[String]) -> String {
    let mut text = String::new();
    if !marked_files.is_empty() {
        let _ = writeln!(
            text,
            "These files still have markers of the conflict: {}.\n",
            marked_files.join(", ")
        );
    }
    if !hunks.is_empty() {
        text.push_str("The result lacks changes of a side, and `dropped` does not name them:\n");
    }
    for hunk in hunks.iter().take(LOST_HUNKS) {
        let side = match hunk.side {
            MergeSide::PullRequest => "the pull request",
            MergeSide::Base => "the base branch",
        };
        let what = match (hunk.lines.is_empty(), hunk.is_removal) {
            (true, false) => "changed the file, and the result has another version of it",
            (true, true) => "removed the file, and the result has it",
            (false, false) => "added lines that are missing or occur too rarely",
            (false, true) => "removed lines that are back",
        };
        let _ = writeln!(text, "\n- `{}`: {side} {what}", hunk.path);
        for line in &hunk.lines {
            let _ = writeln!(text, "    {line}");
        }
    }
    if hunks.len() > LOST_HUNKS {
        let _ = writeln!(text, "\n{} more.", hunks.len() - LOST_HUNKS);
    }
    text.push_str(
        "\nKeep each change, or name its path, one of these lines and the reason under `dropped`. Then call finish again.",
    );
    text
}

fn render_scope_return(files: &[OutOfScopeFile]) -> String {
    let mut text =
        "The change touches files of modules that this kind of ticket does not change:\n".to_owned();
    for file in files.iter().take(OUTSIDE_FILES) {
        let _ = write!(text, "\n- {} (module {})", file.path, file.module);
    }
    let more = files.len().saturating_sub(OUTSIDE_FILES);
    if more > 0 {
        let _ = write!(text, "\n- and {more} more");
    }
    text.push_str(
        "\n\nTake that back if the ticket can be done without it. If it cannot, call widen_scope with the module and the \
         reason. Then call finish again; as it is, a person must approve the change.",
    );
    text
}

fn render_objections(objections: &[ReviewObjection]) -> String {
    let mut text = "A reviewer read the change and objects:\n".to_owned();
    for objection in objections {
        let line = objection
            .line
            .map_or_else(String::new, |line| format!(" line {line}"));
        let _ = write!(
            text,
            "\n- {}{line}: {} It shows with: {}",
            objection.path, objection.why, objection.trigger
        );
    }
    text.push_str(
        "\n\nCheck each of them against the code. Correct what is right, and call finish again; where the reviewer is wrong, leave \
         the code as it is and say why under `decisions`.",
    );
    text
}

fn render_doubts(doubts: &[ChangeDoubt]) -> String {
    let mut text = "Before the change is delivered, check these points:\n".to_owned();
    for doubt in doubts {
        let doubt = match doubt {
            ChangeDoubt::NoCode => {
                "No line of code differs, only comments, blank lines or prose. That repairs nothing that runs.".to_owned()
            }
            ChangeDoubt::TooLarge { lines } => format!(
                "{lines} lines differ, which is far more than the ticket seems to need. Leave out what it does not ask for, \
                 and files that commands wrote."
            ),
            ChangeDoubt::Uncovered => {
                "The ticket reports a bug, and no test fails without your change. Add a test that fails without it and passes \
                 with it, in the place where the repository keeps such tests."
                    .to_owned()
            }
        };
        let _ = write!(text, "\n- {doubt}");
    }
    text.push_str(
        "\n\nCorrect the change if that is right, then call finish again. If it is right as it is, call finish and say why \
         under `decisions`.",
    );
    text
}

/// Renders the place of a finding; line 0 means the whole file.
fn render_place(finding: &ChangeFinding) -> String {
    match finding.line {
        0 => finding.path.clone(),
        line => format!("{} line {line}", finding.path),
    }
}

fn render_weakened(findings: &[ChangeFinding]) -> String {
    let mut text =
        "The change weakens checks of the repository, so it needs a person's approval as it is:\n".to_owned();
    for finding in findings {
        let _ = write!(text, "\n- {}: {}", render_place(finding), finding.words);
    }
    text.push_str(
        "\n\nTake that back if the ticket does not ask for it, and call finish again. If it is needed, call finish as it is \
         and say why under `decisions`.",
    );
    text
}

#[cfg(test)]
mod tests {
    use domain::CheckRow;
    use domain::check::EvidenceLevel;
    use insta::assert_snapshot;

    use super::*;

    fn build_red_check(base: Option<CheckOutcome>) -> RedCheck {
        RedCheck {
            command: "pytest".to_owned(),
            base,
            tests: vec!["test_total".to_owned()],
            missing_count: 0,
            missing: Vec::new(),
            output_tail: "1 failed".to_owned(),
        }
    }

    #[test]
    fn failing_check_is_compared_with_results_only() {
        assert_snapshot!(render_red_checks(&[build_red_check(Some(CheckOutcome::Red))]), @r"
        Checks are worse with your change than before it. They ran in a fresh copy of the files.

        `pytest`: test_total
        The end of its output:

        1 failed

        Correct the change, then call finish again.
        ");
        assert_snapshot!(render_red_checks(&[build_red_check(Some(CheckOutcome::Timeout))]), @r"
        Checks do not pass with your change. They ran in a fresh copy of the files.

        `pytest`: test_total
        It has no result without your change to compare with: it did not end in time there. So each of its failures counts.
        The end of its output:

        1 failed

        Correct the change, then call finish again.
        ");
        let unknown = render_red_checks(&[build_red_check(Some(CheckOutcome::Green)), build_red_check(None)]);
        assert!(
            unknown.starts_with("Checks do not pass") && unknown.contains("there is not known"),
            "{unknown}"
        );
    }

    #[test]
    fn reviewer_sees_whether_base_has_result() {
        let proof = |base| ChangeProof {
            level: EvidenceLevel::E1,
            rows: vec![CheckRow {
                command: "pytest".to_owned(),
                base,
                head: CheckOutcome::Red,
                passed: 3,
                broken: vec!["test_total".to_owned()],
                missing_count: 0,
                missing: Vec::new(),
                mended: Vec::new(),
                still_failing: Vec::new(),
                flaky: Vec::new(),
                reason: String::new(),
                setup_hint: None,
            }],
            demonstrations: Vec::new(),
            findings: Vec::new(),
            outside: Vec::new(),
            unnoticed: Vec::new(),
            shown_by: None,
            unrepaired: Vec::new(),
            skipped_checks: Vec::new(),
        };
        let compared = render_proof(&proof(Some(CheckOutcome::Green)));
        assert!(
            compared.contains("fails only with the change: test_total"),
            "{compared}"
        );
        let uncompared = render_proof(&proof(Some(CheckOutcome::Infra)));
        assert!(
            uncompared.contains("fails with the change, no result on the base: test_total"),
            "{uncompared}"
        );
    }
}
