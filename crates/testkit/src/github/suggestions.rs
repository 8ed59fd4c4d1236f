//! Suggestions in review comments, applied as the button on GitHub's page applies them.

use anyhow::{Context as _, ensure};

use super::FakeGitHub;
use super::repository;

impl FakeGitHub {
    /// Applies the suggestion of a review comment as a user: replaces the comment's lines in a commit on the
    /// head branch and returns the commit's id.
    ///
    /// # Errors
    /// When the comment does not exist or suggests nothing, or its lines have changed since.
    pub fn apply_suggestion(
        &self,
        repository: &str,
        number: u64,
        comment: u64,
        by: &str,
    ) -> anyhow::Result<String> {
        let (path, branch, line, sha) = {
            let mut world = self.hub.world();
            let repo = world.repo(repository)?;
            let path = repo.path.clone();
            let pull = repo.pull(number)?;
            let mut said = pull
                .reviews
                .iter()
                .flat_map(|review| review.lines.iter().map(move |line| (review, line)));
            let (review, line) = said
                .find(|(_, line)| line.id == comment)
                .context("there is no such comment")?;
            (path, pull.head.clone(), line.clone(), review.sha.clone())
        };
        let suggested = parse_suggested_lines(&line.body).context("the comment suggests nothing")?;
        let of = |files: std::collections::BTreeMap<String, String>| files.get(&line.path).cloned();
        let then = of(repository::read_files(&path, &sha)?).context("the file was not there")?;
        let now = of(repository::read_files(&path, &branch)?).context("the file is gone")?;
        let (first, last) = (line.start.unwrap_or(line.line), line.line);
        // GitHub offers no button on an outdated comment.
        ensure!(
            select_lines(&then, first, last)? == select_lines(&now, first, last)?,
            "the lines changed since: the comment is outdated"
        );
        let text = replace_lines(&now, first, last, &suggested)?;
        let message = format!("Apply the suggestion of a review\n\nBy {by}");
        self.commit(repository, &branch, &message, &[(&line.path, &text)])
    }
}

/// Returns the lines of a comment's first suggestion block.
fn parse_suggested_lines(body: &str) -> Option<Vec<&str>> {
    let mut rest = body.lines().skip_while(|line| line.trim_end() != "```suggestion");
    rest.next()?;
    let code: Vec<&str> = rest
        .by_ref()
        .take_while(|line| line.trim_end() != "```")
        .collect();
    Some(code)
}

fn compute_line_index(line: u64) -> anyhow::Result<usize> {
    usize::try_from(line)?.checked_sub(1).context("lines begin at 1")
}

fn select_lines(text: &str, first: u64, last: u64) -> anyhow::Result<Vec<&str>> {
    let all: Vec<&str> = text.lines().collect();
    let lines = all.get(compute_line_index(first)?..usize::try_from(last)?);
    Ok(lines.context("the file has no such lines")?.to_vec())
}

fn replace_lines(text: &str, first: u64, last: u64, by: &[&str]) -> anyhow::Result<String> {
    let mut all: Vec<&str> = text.lines().collect();
    select_lines(text, first, last)?;
    all.splice(
        compute_line_index(first)?..usize::try_from(last)?,
        by.iter().copied(),
    );
    // `lines` drops a final newline, which must survive.
    Ok(all.join("\n") + if text.ends_with('\n') { "\n" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_replaces_exactly_its_comments_lines() {
        let body = "Better:\n\n```suggestion\nx\n  y\n\nz\n```\nSee above.";
        let code = parse_suggested_lines(body).unwrap();
        assert_eq!(code, ["x", "  y", "", "z"]);
        assert_eq!(
            replace_lines("a\nb\nc\nd\n", 2, 3, &code).unwrap(),
            "a\nx\n  y\n\nz\nd\n"
        );
        assert_eq!(replace_lines("a\nb", 2, 2, &[]).unwrap(), "a");
        assert!(replace_lines("a\n", 1, 2, &code).is_err() && replace_lines("a\n", 0, 1, &code).is_err());
        assert_eq!(parse_suggested_lines("```\nx\n```"), None);
    }
}
