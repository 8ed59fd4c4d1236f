//! Essence of a job's log: the step that failed, its first error, and its end.

// Characters kept of one log, and of all logs of a commit.
const CHARS: usize = 64 * 1024;
pub(crate) const ALL_CHARS: usize = 192 * 1024;
// Characters kept of the command of a step.
const COMMAND_CHARS: usize = 4_000;
// Lines kept before and after the first error.
const BEFORE: usize = 15;
const AFTER: usize = 150;

/// Essence of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEssence {
    /// Step that failed; empty when the log does not show steps.
    pub(crate) step: String,
    /// Full command of the step; empty for a single line, which the step name contains.
    pub(crate) command: String,
    pub(crate) text: String,
}

/// Extracts the essence of a log of GitHub Actions or of any other CI, within `room` characters.
pub(crate) fn extract_essence(raw: &str, room: usize) -> LogEssence {
    // Escape sequences go first: without their first character, which is hidden, the rest would remain as text.
    let clean = domain::text::remove_hidden(&without_escapes(raw));
    let lines: Vec<&str> = clean.lines().map(without_time).collect();
    let (step, lines) = find_failing_step(&lines);
    LogEssence {
        step: step.chars().take(200).collect(),
        command: extract_command(lines).chars().take(COMMAND_CHARS).collect(),
        text: shorten_log(lines, room.min(CHARS)),
    }
}

/// Name and lines of the step that failed; every line for a log without a step marked as failed.
fn find_failing_step<'a>(lines: &'a [&'a str]) -> (&'a str, &'a [&'a str]) {
    let Some(error) = lines.iter().rposition(|line| line.starts_with("##[error]")) else {
        return ("", lines);
    };
    let begins = |line: &&str| line.starts_with("##[group]Run ");
    let start = lines[..error].iter().rposition(begins);
    let end = lines[error..]
        .iter()
        .position(begins)
        .map_or(lines.len(), |after| error + after);
    match start {
        Some(start) => (
            lines[start].trim_start_matches("##[group]Run ").trim(),
            &lines[start..end],
        ),
        None => ("", lines),
    }
}

/// Command of the step: the lines that Actions prints before the shell and the output. The first line is the step
/// name.
fn extract_command(lines: &[&str]) -> String {
    let Some(first) = lines.first().and_then(|line| line.strip_prefix("##[group]Run ")) else {
        return String::new();
    };
    let is_command = |line: &&&str| !line.starts_with("shell: ") && !line.starts_with("##[");
    let rest: Vec<&str> = lines[1..].iter().take_while(is_command).copied().collect();
    let has_shell = lines[1..]
        .get(rest.len())
        .is_some_and(|next| next.starts_with("shell: "));
    // Actions prints the first line as the name, and repeats it for commands of several lines.
    match rest.as_slice() {
        [again, _, ..] if has_shell && again.trim() == first.trim() => rest.join("\n"),
        _ => String::new(),
    }
}

/// Whole text when it fits, else the part around the first error and the end; the end alone without an error.
fn shorten_log(lines: &[&str], most: usize) -> String {
    let chars = |lines: &[&str]| lines.iter().map(|line| line.chars().count() + 1).sum::<usize>();
    if chars(lines) <= most {
        return lines.join("\n");
    }
    let Some(first) = lines.iter().position(|line| is_error(line)) else {
        let tail = take_fitting_lines(lines, most, true);
        let left_out = lines.len() - tail.len();
        return format!("({left_out} lines are left out)\n{}", tail.join("\n"));
    };
    let from = first.saturating_sub(BEFORE);
    let to = (first + AFTER).min(lines.len());
    let head = take_fitting_lines(&lines[from..to], most / 2, false);
    let tail = take_fitting_lines(&lines[to..], most / 2, true);
    let left_out = lines.len() - head.len() - tail.len();
    format!(
        "{}\n({left_out} lines are left out)\n{}",
        head.join("\n"),
        tail.join("\n")
    )
}

/// As many whole lines as fit, from the start or from the end.
fn take_fitting_lines<'a>(lines: &'a [&'a str], most: usize, is_end: bool) -> &'a [&'a str] {
    let mut room = most;
    let mut fits = |line: &&&str| {
        let length = line.chars().count() + 1;
        let has_room = length <= room;
        room = room.saturating_sub(length);
        has_room
    };
    if is_end {
        let count = lines.iter().rev().take_while(&mut fits).count();
        &lines[lines.len() - count..]
    } else {
        &lines[..lines.iter().take_while(&mut fits).count()]
    }
}

fn is_error(line: &str) -> bool {
    let lower = line.to_lowercase();
    ["error", "fail", "panicked", "traceback"]
        .iter()
        .any(|word| lower.contains(word))
}

/// Line without the timestamp prefix of Actions: `2026-11-21T10:00:00.0000000Z `.
fn without_time(line: &str) -> &str {
    match line.split_once(' ') {
        Some((time, rest)) if time.len() >= 20 && time.ends_with('Z') && time.contains('T') => rest,
        _ => line,
    }
}

/// Text without ANSI escape sequences (colors, cursor movement).
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                if rest.next() == Some('[') {
                    for c in rest.by_ref() {
                        if c.is_ascii_alphabetic() {
                            break;
                        }
                    }
                }
            }
            '\r' => {}
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: &str = "2026-11-21T10:00:00.0000000Z";

    #[test]
    fn failing_step_loses_times_and_colors() {
        let raw = format!(
            "{T} ##[group]Run actions/checkout\n{T} ok\n{T} ##[group]Run pytest\n{T} \u{1b}[31mE   1 != 2\u{1b}[0m\r\n\
             {T} ##[error]Process completed with exit code 1.\n{T} ##[group]Run cleanup\n{T} bye\n"
        );
        let essence = extract_essence(&raw, ALL_CHARS);
        assert_eq!(essence.step, "pytest");
        assert_eq!(
            essence.text,
            "##[group]Run pytest\nE   1 != 2\n##[error]Process completed with exit code 1."
        );
    }

    #[test]
    fn multi_line_step_command_is_complete() {
        let raw = format!(
            "{T} ##[group]Run cd shop\n{T} \u{1b}[36;1mcd shop\u{1b}[0m\n{T} \u{1b}[36;1mpytest -x\u{1b}[0m\n{T} shell: bash -e\n\
             {T} ##[endgroup]\n{T} E 1 != 2\n{T} ##[error]exit 1\n"
        );
        assert_eq!(extract_essence(&raw, CHARS).command, "cd shop\npytest -x");
        let one = raw.replace(" \u{1b}[36;1mpytest -x\u{1b}[0m\n", " shell: sh\n");
        assert_eq!(
            extract_essence(&one, CHARS).command,
            "",
            "the name of the step says it"
        );
    }

    #[test]
    fn long_log_keeps_first_error_and_end() {
        let noise = |from: usize| {
            (from..from + 20_000)
                .map(|n| format!("line {n}\n"))
                .collect::<String>()
        };
        let raw = format!("{}AssertionError: here\n{}the end", noise(0), noise(50_000));
        let text = extract_essence(&raw, ALL_CHARS).text;
        assert!(text.chars().count() <= CHARS + 100, "{}", text.len());
        assert!(text.contains("AssertionError: here") && text.ends_with("the end"));
        assert!(text.contains("line 19999") && text.contains("lines are left out"));
        let little = extract_essence(&raw, 2_000).text;
        assert!(little.chars().count() <= 2_100, "{}", little.len());
        assert!(little.contains("AssertionError: here") && little.ends_with("the end"));
    }

    #[test]
    fn long_log_without_error_keeps_end() {
        let raw: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let text = extract_essence(&raw, 2_000).text;
        assert!(text.chars().count() <= 2_100, "{}", text.len());
        assert!(text.starts_with('(') && text.ends_with("line 19999"));
        assert!(text.lines().count() > 100, "{text}");
    }

    #[test]
    fn foreign_ci_log_stays_unchanged() {
        let essence = extract_essence("make: *** [test] Error 1", ALL_CHARS);
        assert_eq!(essence.step, "");
        assert_eq!(essence.text, "make: *** [test] Error 1");
    }
}
