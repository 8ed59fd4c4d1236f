//! Words in the message of a commit that act when it is pushed: mentions, trailers that give credit or orders, and marks that
//! make continuous integration stay away.

/// Words that skip something, in brackets: `[skip ci]`, `[ci skip]`, `[no ci]`, `[skip azurepipelines]`.
const SKIPPING: [&str; 2] = ["skip", "no"];
/// Names in such a mark, by the documentation of GitHub Actions, GitLab, Azure Pipelines, Bitbucket, `CircleCI`, Travis CI,
/// `AppVeyor`, Buildkite, Netlify, Vercel, Cloudflare and AWS.
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
/// Bytes between the brackets of a mark.
const MARK_BYTES: usize = 60;
/// The mark of Azure Pipelines without brackets.
const AZURE_MARK: &str = "***no_ci***";
/// Trailers by which GitHub and programs for releases act.
const ORDER_TRAILERS: [&str; 2] = ["skip-checks", "release-as"];
/// The trailer by which the run of a commit is known.
const RUN_TRAILER: &str = "journeyman-run";

/// Finds the first words of a whole message that act: a mention, a mark, or a trailer that gives an order.
///
/// Trailers that give credit are right in a commit of the planner, and are left to [`clean_body`].
#[must_use]
pub fn find_order(message: &str) -> Option<String> {
    let mut found = None;
    drop_mentions(message, &mut found);
    drop_trailers(message, |key| ORDER_TRAILERS.contains(&key), &mut found);
    drop_marks(message, &mut found);
    found
}

/// Cleans the body of a message by a model.
///
/// Mentions lose their sign, marks get round brackets, and trailers that give credit or an order are removed, because a model
/// gives neither. A second pass changes nothing.
#[must_use]
pub fn clean_body(body: &str) -> String {
    let is_order = |key: &str| key.ends_with("-by") || key == RUN_TRAILER || ORDER_TRAILERS.contains(&key);
    let mut found = None;
    let text = drop_mentions(body, &mut found);
    let text = drop_trailers(&text, is_order, &mut found);
    drop_marks(&text, &mut found)
}

/// Cleans a whole message: its first line holds no trailer.
#[must_use]
pub fn clean_message(message: &str) -> String {
    match message.split_once('\n') {
        Some((subject, body)) => format!("{}\n{}", clean_subject(subject), clean_body(body)),
        None => clean_subject(message),
    }
}

/// Cleans the first line of a message.
#[must_use]
pub fn clean_subject(subject: &str) -> String {
    let mut found = None;
    let text = drop_mentions(subject, &mut found);
    let text = drop_marks(&text, &mut found);
    let mut order = None;
    drop_trailers(&text, |key| ORDER_TRAILERS.contains(&key), &mut order);
    match order {
        // Without its colon the line is no trailer, and the message keeps a subject.
        Some(_) => text.replacen(':', "", 1),
        None => text,
    }
}

/// Puts marks into round brackets: the text of a pull request becomes the message of its squashed commit.
#[must_use]
pub fn clean_marks(text: &str) -> String {
    drop_marks(text, &mut None)
}

/// Takes the sign from mentions, by GitHub's grammar: no ASCII letter, digit or underscore stands before it.
fn drop_mentions(text: &str, found: &mut Option<String>) -> String {
    let mut clean = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let names = c == '@' && rest.starts_with(|next: char| next.is_ascii_alphanumeric());
        let is_apart = !clean.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
        if names && is_apart {
            let is_part = |next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '/' | '_');
            let end = rest.find(|next| !is_part(next)).unwrap_or(rest.len());
            found.get_or_insert_with(|| format!("@{}", &rest[..end]));
            clean.truncate(clean.trim_end_matches('@').len());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Takes lines out that are such trailers.
fn drop_trailers(text: &str, is_order: impl Fn(&str) -> bool, found: &mut Option<String>) -> String {
    let is_kept = |line: &&str| {
        let Some((key, _)) = line.split_once(':') else {
            return true;
        };
        let key = key.trim().to_ascii_lowercase();
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
        let sign = at + "***no".len();
        clean.replace_range(sign..=sign, " ");
    }
    clean
}

/// True for words in brackets that skip something: one that skips, and otherwise only names of what is skipped.
fn is_mark(words: &str) -> bool {
    if words.len() > MARK_BYTES {
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
