//! Removal of text in commit messages that triggers actions on a push: mentions, trailers for credit or
//! orders, and marks that disable continuous integration.

// Words that request a skip, in marks such as `[skip ci]`, `[ci skip]`, `[no ci]`, `[skip azurepipelines]`.
const SKIPPING: [&str; 2] = ["skip", "no"];
// Names in such a mark, from the documentation of GitHub Actions, GitLab, Azure Pipelines, Bitbucket,
// `CircleCI`, Travis CI, `AppVeyor`, Buildkite, Netlify, Vercel, Cloudflare and AWS.
const SKIPPED: [&str; 32] = [
    "action",
    "actions",
    "all",
    "appveyor",
    "azp",
    "azpipelines",
    "azurepipelines",
    "build",
    "builds",
    "buildkite",
    "cd",
    "cf",
    "check",
    "checks",
    "ci",
    "circle",
    "circleci",
    "cloudflare",
    "codebuild",
    "codepipeline",
    "deploy",
    "drone",
    "gitlab",
    "jenkins",
    "netlify",
    "pages",
    "pipeline",
    "render",
    "semaphore",
    "travis",
    "vercel",
    "workflows",
];
// Maximum bytes between the brackets of a mark.
const MARK_BYTES: usize = 60;
// The mark of Azure Pipelines without brackets.
const AZURE_MARK: &str = "***no_ci***";
// Trailers that act: GitHub reads `skip-checks`, and release-please reads `release-as`.
const ORDER_TRAILERS: [&str; 2] = ["skip-checks", "release-as"];
// The trailer that maps a commit to its run. Only the planner writes it, so `clean_body` removes it from a
// model's text.
const RUN_TRAILER: &str = "journeyman-run";

/// Returns the first part of a whole message that triggers an action: a mention, a mark, or a trailer that
/// gives an order.
///
/// Trailers for credit are valid in a commit of the planner. Only [`clean_body`] removes them.
#[must_use]
pub fn find_order(message: &str) -> Option<String> {
    let mut found = None;
    drop_mentions(message, &mut found);
    drop_trailers(message, |key| ORDER_TRAILERS.contains(&key), &mut found);
    drop_marks(message, &mut found);
    found
}

/// Removes orders and credit from the body of a message that a model wrote.
///
/// Mentions lose the `@`, marks get round brackets, and trailers for credit or orders are removed, because a
/// model is not allowed to give either. The result is stable: a second pass changes nothing.
#[must_use]
pub fn clean_body(body: &str) -> String {
    let is_order = |key: &str| key.ends_with("-by") || key == RUN_TRAILER || ORDER_TRAILERS.contains(&key);
    let mut found = None;
    // Mentions go first: without the `@`, a line such as `@reviewed-by: Rita` becomes a trailer that the next
    // step has to remove.
    let text = drop_mentions(body, &mut found);
    let text = drop_trailers(&text, is_order, &mut found);
    drop_marks(&text, &mut found)
}

/// Removes orders and credit from a whole message. The first line cannot contain a trailer.
#[must_use]
pub fn clean_message(message: &str) -> String {
    match message.split_once('\n') {
        // A mark may begin in the subject and end in the body.
        Some((subject, body)) => clean_marks(&format!("{}\n{}", clean_subject(subject), clean_body(body))),
        None => clean_subject(message),
    }
}

/// Removes mentions and marks from the first line of a message.
#[must_use]
pub fn clean_subject(subject: &str) -> String {
    let mut found = None;
    let text = drop_mentions(subject, &mut found);
    let text = drop_marks(&text, &mut found);
    let mut order = None;
    drop_trailers(&text, |key| ORDER_TRAILERS.contains(&key), &mut order);
    match order {
        // Without colons the line is not a trailer, and the message keeps a subject.
        Some(_) => text.replace(": ", " ").replace(':', " "),
        None => text,
    }
}

/// Puts marks into round brackets. Needed for the text of a pull request, which becomes the message of its
/// squashed commit.
#[must_use]
pub fn clean_marks(text: &str) -> String {
    drop_marks(text, &mut None)
}

/// Removes the `@` of mentions by GitHub's grammar: no ASCII letter, digit or underscore precedes it.
fn drop_mentions(text: &str, found: &mut Option<String>) -> String {
    let mut clean = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let names = c == '@' && rest.starts_with(|next: char| next.is_ascii_alphanumeric());
        // A mail address such as `ada@acme.example` is not a mention.
        let is_apart = !clean.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
        if names && is_apart {
            let is_part = |next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '/' | '_');
            let end = rest.find(|next| !is_part(next)).unwrap_or(rest.len());
            found.get_or_insert_with(|| format!("@{}", &rest[..end]));
            // A repeated sign such as `@@ada` would form a mention again.
            clean.truncate(clean.trim_end_matches('@').len());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Removes the lines that are trailers for which `is_order` holds.
fn drop_trailers(text: &str, is_order: impl Fn(&str) -> bool, found: &mut Option<String>) -> String {
    let is_kept = |line: &&str| {
        let Some((key, _)) = line.split_once(':') else {
            return true;
        };
        let key = key.trim().to_ascii_lowercase();
        // Prose may contain a colon as well. Only letters, digits and hyphens form the key of a trailer.
        let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        !(is_key && is_order(&key))
    };
    let lines: Vec<&str> = text.split('\n').collect();
    if let Some(order) = lines.iter().find(|line| !is_kept(line)) {
        found.get_or_insert_with(|| order.trim().chars().take(MARK_BYTES).collect());
    }
    lines.into_iter().filter(is_kept).collect::<Vec<_>>().join("\n")
}

/// Puts marks into round brackets.
fn drop_marks(text: &str, found: &mut Option<String>) -> String {
    let mut clean = String::with_capacity(text.len());
    // A stack of open brackets, because a mark can be nested: `[ci [skip ci]]`.
    let mut open = Vec::new();
    for c in text.chars() {
        if c == '[' {
            open.push(clean.len());
        }
        if let Some(start) = open.pop_if(|_| c == ']')
            && is_mark(&clean[start + 1..])
        {
            found.get_or_insert_with(|| format!("{}]", &clean[start..]));
            clean.replace_range(start..=start, "(");
            clean.push(')');
        } else {
            clean.push(c);
        }
    }
    let lower = clean.to_ascii_lowercase();
    for (at, mark) in lower.match_indices(AZURE_MARK) {
        found.get_or_insert_with(|| clean[at..at + mark.len()].to_owned());
        // Only the underscore is replaced, which keeps the length: the positions of later matches stay valid.
        let sign = at + "***no".len();
        clean.replace_range(sign..=sign, " ");
    }
    clean
}

/// Returns true for bracket content that requests a skip: at least one skip word, and otherwise only names of
/// skippable systems.
fn is_mark(words: &str) -> bool {
    if words.len() > MARK_BYTES {
        // Separators vary: `[ci-skip]`, `[skip ci]`, `[CF-Pages-Skip]`.
        return false;
    }
    let words = words.to_ascii_lowercase();
    let words: Vec<&str> = words
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let (skipping, skipped): (Vec<&str>, Vec<&str>) =
        words.into_iter().partition(|word| SKIPPING.contains(word));
    !skipping.is_empty() && !skipped.is_empty() && skipped.iter().all(|word| SKIPPED.contains(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_in_messages_are_found() {
        let cases = [
            ("fix: x\n\ncc @acme/core, please", "@acme/core"),
            ("fix: x\n\n\u{8c22}\u{8c22}@ada", "@ada"),
            ("fix: x [skip ci]", "[skip ci]"),
            ("fix: x\n\n[CI-Skip]", "[CI-Skip]"),
            ("fix: x\n\n[no ci]", "[no ci]"),
            ("fix: x\n\n[skip azurepipelines]", "[skip azurepipelines]"),
            ("fix: x\n\n[CF-Pages-Skip]", "[CF-Pages-Skip]"),
            ("fix: x\n\n***NO_CI***", "***NO_CI***"),
            ("fix: x\n\n\nskip-checks: true", "skip-checks: true"),
            ("feat: x\n\nRelease-As: 9.9.9", "Release-As: 9.9.9"),
        ];
        for (message, order) in cases {
            assert_eq!(find_order(message).as_deref(), Some(order), "{message}");
        }
    }

    #[test]
    fn honest_messages_stay_as_they_are() {
        let honest = [
            "Write to ada@acme.example, or use core@7.1.",
            "Skips entries [0] that are [not there], as in `list[skip]`.",
            "[skip] and [ci] are no mark; neither is [skip empty lines].",
            "The cache is refreshed by: the worker.\n\nNote: nothing else changes.",
            "BREAKING CHANGE: totals are cents.",
            "Three stars: ***no***.",
        ];
        for message in honest {
            assert_eq!(clean_body(message), message);
            assert_eq!(find_order(message), None, "{message}");
        }
    }

    #[test]
    fn model_gives_no_credit() {
        let message = "Counts pieces.\n\nCo-authored-by: Eve <eve@example.com>\nSigned-Off-By: Ada <ada@acme.example>\n\
            Journeyman-Run: jira:ENG-1@9\n@reviewed-by: Rita\nThe end.";
        assert_eq!(clean_body(message), "Counts pieces.\n\nThe end.");
        assert_eq!(clean_subject("Use @property [skip ci]"), "Use property (skip ci)");
    }

    #[test]
    fn nested_marks_leave_none_behind() {
        assert_eq!(clean_marks("[ci [skip ci]]"), "(ci (skip ci))");
        assert_eq!(clean_marks("[[skip ci]](x)"), "((skip ci))(x)");
        assert_eq!(clean_body("@@ada ***@***no_ci***"), "ada ***@***no ci***");
    }

    #[test]
    fn mark_across_subject_and_body_is_cleaned() {
        let clean = clean_message("fix: x [skip-checks\n]");
        assert_eq!(clean, "fix: x (skip-checks\n)");
        assert_eq!(find_order(&clean), None);
        assert_eq!(clean_subject("skip-checks: true"), "skip-checks true");
    }

    proptest! {
        #[test]
        fn clean_text_has_no_orders(text in "(?s)(\\[|\\]|@|skip|no|ci|-by|signed|:|\n| |\\*\\*\\*|_|a|\u{8c22}|release-as|skip-checks){0,24}") {
            let clean = clean_body(&text);
            prop_assert_eq!(find_order(&clean), None);
            prop_assert_eq!(clean_body(&clean), clean.clone());
            let subject = clean_subject(&text.replace('\n', " "));
            prop_assert_eq!(clean_subject(&subject), subject.clone());
            prop_assert_eq!(find_order(&subject), None);
            prop_assert_eq!(find_order(&clean_message(&text)), None);
        }
    }
}
