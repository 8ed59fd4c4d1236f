//! Search in many files by several threads, with results in the order of the files.

use std::{
    io::{self, BufReader, Read},
    iter::Fuse,
    path::{Path, PathBuf},
};

use domain::cause::format_error_chain;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    shared_work::{MAX_THREADS, share_work},
    workspace::WorkspaceRoot,
};

/// Limit of matching lines in an answer.
const MAX_FOUND: usize = 300;
/// Limit of matching lines in one file.
pub(super) const MAX_IN_FILE: usize = 100;
/// Limit of a shown line in characters; the part around the match is shown.
const MAX_LINE: usize = 300;
/// Limit of all shown lines, in bytes.
const MAX_SHOWN: usize = 40 * 1024;
// Limit in bytes for the memory of each thread of a search. A file with a longer line is not searched to its end.
const MAX_LONGEST: usize = 16 * 1024 * 1024;
// Number of files that a thread takes at a time.
const STEP_FILES: usize = 32;

/// File to search.
pub(super) struct SearchTask {
    pub(super) path: PathBuf,
    /// Number of vendored and generated files up to this one.
    pub(super) foreign: usize,
}

/// Line that a search found.
pub(super) enum ShownLine {
    Match(String),
    Context(String),
    /// Gap between lines that do not follow each other.
    Break,
}

/// Number of matches, and the size of their lines in the answer.
#[derive(Clone, Copy, Default)]
pub(super) struct ShownAmount {
    pub(super) matches: usize,
    bytes: usize,
}

impl ShownAmount {
    /// Returns true when the answer shows no more matches.
    pub(super) fn is_full(self) -> bool {
        self.matches >= MAX_FOUND || self.bytes >= MAX_SHOWN
    }

    /// Adds a line, with its line end.
    pub(super) fn add_line(&mut self, line: &ShownLine) {
        match line {
            ShownLine::Match(text) => {
                self.matches += 1;
                self.bytes += text.len() + 1;
            }
            ShownLine::Context(text) => self.bytes += text.len() + 1,
            ShownLine::Break => {}
        }
    }

    fn add(&mut self, other: Self) {
        self.matches += other.matches;
        self.bytes += other.bytes;
    }
}

/// Lines that a search found in one file.
pub(super) struct FileMatches {
    pub(super) path: PathBuf,
    /// Number of vendored and generated files up to this one.
    pub(super) foreign: usize,
    pub(super) lines: Vec<ShownLine>,
    /// True when the search did not reach the end of the file.
    pub(super) has_failed: bool,
}

/// Result of a search in some successive files.
#[derive(Default)]
pub(super) struct StepMatches {
    /// Number of files that could be opened.
    pub(super) searched: usize,
    /// Files with lines or a failure.
    pub(super) files: Vec<FileMatches>,
    amount: ShownAmount,
}

impl StepMatches {
    fn add_file(&mut self, file: FileMatches, amount: ShownAmount) {
        self.searched += 1;
        self.amount.add(amount);
        if file.has_failed || !file.lines.is_empty() {
            self.files.push(file);
        }
    }
}

/// Files of a search in their order, and the results so far.
struct TaskQueue<I> {
    tasks: Fuse<I>,
    /// Number of steps that threads took.
    steps: usize,
    /// True when the last file is taken.
    is_ended: bool,
    amount: ShownAmount,
    /// Results with the numbers of their steps.
    found: Vec<(usize, StepMatches)>,
}

impl<I: Iterator<Item = SearchTask>> TaskQueue<I> {
    fn new(tasks: I) -> Self {
        Self {
            tasks: tasks.fuse(),
            steps: 0,
            is_ended: false,
            amount: ShownAmount::default(),
            found: Vec::new(),
        }
    }

    /// Returns true while the answer may show a further file. Steps are taken in order, so the matches of all steps so
    /// far come before those of a further one.
    fn has_more(&self) -> bool {
        !self.is_ended && !self.amount.is_full()
    }

    /// Takes the next files, with the number of the step.
    fn take_step(&mut self) -> Option<(usize, Vec<SearchTask>)> {
        if !self.has_more() {
            return None;
        }
        let tasks: Vec<SearchTask> = self.tasks.by_ref().take(STEP_FILES).collect();
        self.is_ended = tasks.len() < STEP_FILES;
        let number = self.steps;
        self.steps += 1;
        Some((number, tasks))
    }

    /// Adds the result of a step. Returns true while the answer may show a further file.
    fn finish_step(&mut self, number: usize, step: StepMatches) -> bool {
        self.amount.add(step.amount);
        self.found.push((number, step));
        self.has_more()
    }

    /// Returns the results in the order of the files.
    fn into_ordered(mut self) -> Vec<StepMatches> {
        self.found.sort_by_key(|(number, _)| *number);
        self.found.into_iter().map(|(_, step)| step).collect()
    }
}

/// Search for lines in files.
#[derive(Clone, Copy)]
pub(super) struct FileSearch<'a> {
    pub(super) root: &'a WorkspaceRoot,
    pub(super) regex: &'a RegexMatcher,
    /// Lines to show before and after each match.
    pub(super) context: usize,
    pub(super) cancel: &'a CancellationToken,
}

impl FileSearch<'_> {
    /// Searches the files by several threads, at least up to a limit of the answer. The results are in the order of the
    /// files.
    pub(super) fn run(&self, tasks: impl Iterator<Item = SearchTask> + Send) -> Vec<StepMatches> {
        let queue = Mutex::new(TaskQueue::new(tasks));
        let mut searcher = self.build_searcher();
        // A search in few files, or with many matches, ends here. The start of a thread takes as long as a step.
        if self.search_step(&mut searcher, self.regex, &queue) {
            share_work(MAX_THREADS, || {
                // A clone, because threads that share a matcher wait for its memory.
                let (mut searcher, regex) = (self.build_searcher(), self.regex.clone());
                while self.search_step(&mut searcher, &regex, &queue) {}
            });
        }
        queue.into_inner().into_ordered()
    }

    fn build_searcher(&self) -> Searcher {
        SearcherBuilder::new()
            // A NUL byte marks a binary file.
            .binary_detection(BinaryDetection::quit(0))
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .heap_limit(Some(MAX_LONGEST))
            .before_context(self.context)
            .after_context(self.context)
            .build()
    }

    /// Searches the next files. Returns true while the answer may show a further file.
    fn search_step<I: Iterator<Item = SearchTask>>(
        &self,
        searcher: &mut Searcher,
        regex: &RegexMatcher,
        queue: &Mutex<TaskQueue<I>>,
    ) -> bool {
        let taken = queue.lock().take_step();
        let Some((number, tasks)) = taken else {
            return false;
        };
        let mut step = StepMatches::default();
        for task in tasks {
            if step.amount.is_full() || self.cancel.is_cancelled() {
                break;
            }
            // A process may have deleted the file since the listing.
            if let Ok(file) = self.root.open_file(&task.path) {
                let (found, amount) = search_one_file(searcher, regex, task, file);
                step.add_file(found, amount);
            }
        }
        queue.lock().finish_step(number, step)
    }
}

fn search_one_file(
    searcher: &mut Searcher,
    regex: &RegexMatcher,
    task: SearchTask,
    file: impl Read,
) -> (FileMatches, ShownAmount) {
    let mut found = FileMatches {
        path: task.path,
        foreign: task.foreign,
        lines: Vec::new(),
        has_failed: false,
    };
    let mut amount = ShownAmount::default();
    let sink = LineCollector {
        regex,
        path: &found.path,
        lines: &mut found.lines,
        amount: &mut amount,
    };
    // The searcher reads the first three bytes alone, to recognize an encoding.
    let buffered = BufReader::new(file);
    if let Err(error) = searcher.search_reader(regex, buffered, sink) {
        tracing::debug!(error = %format_error_chain(&error), "a file could not be searched");
        found.has_failed = true;
    }
    (found, amount)
}

/// Collects the matching lines of one file.
struct LineCollector<'a> {
    regex: &'a RegexMatcher,
    path: &'a Path,
    lines: &'a mut Vec<ShownLine>,
    amount: &'a mut ShownAmount,
}

impl LineCollector<'_> {
    fn render_line(&self, number: Option<u64>, mark: char, text: &str) -> String {
        format!(
            "{}{mark}{}{mark} {text}",
            self.path.display(),
            number.unwrap_or(0)
        )
    }

    fn push(&mut self, line: ShownLine) {
        self.amount.add_line(&line);
        self.lines.push(line);
    }
}

impl Sink for LineCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        let (bytes, number) = (line.bytes(), line.line_number());
        let at = self.regex.find(bytes).ok().flatten().map_or(0, |at| at.start());
        let shown = self.render_line(number, ':', &excerpt_line(bytes, at));
        self.push(ShownLine::Match(shown));
        Ok(self.amount.matches < MAX_IN_FILE && !self.amount.is_full())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if *line.kind() != SinkContextKind::Other {
            let shown = self.render_line(line.line_number(), '-', &excerpt_line(line.bytes(), 0));
            self.push(ShownLine::Context(shown));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.push(ShownLine::Break);
        Ok(true)
    }
}

/// Returns a line, or the part of a long line around the match.
fn excerpt_line(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if text.chars().count() <= MAX_LINE {
        return text.to_owned();
    }
    let before = String::from_utf8_lossy(&line[..at]).chars().count();
    let start = before.saturating_sub(MAX_LINE / 3);
    let part: String = text.chars().skip(start).take(MAX_LINE).collect();
    let (front, back) = (
        if start > 0 { "[…] " } else { "" },
        if start + MAX_LINE < text.chars().count() {
            " […]"
        } else {
            ""
        },
    );
    format!("{front}{part}{back}")
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, iter};

    use grep_regex::RegexMatcherBuilder;

    use super::*;

    fn build_task(number: usize) -> SearchTask {
        SearchTask {
            path: PathBuf::from(format!("{number}.py")),
            foreign: 0,
        }
    }

    fn build_step(count: usize) -> StepMatches {
        let mut step = StepMatches::default();
        (0..count).for_each(|_| step.amount.add_line(&ShownLine::Match("x".to_owned())));
        step
    }

    #[test]
    fn files_behind_limit_are_never_listed() {
        let listed = Cell::new(0);
        let endless = iter::from_fn(|| {
            listed.set(listed.get() + 1);
            Some(build_task(listed.get()))
        });
        let mut queue = TaskQueue::new(endless);
        let (first, tasks) = queue.take_step().unwrap();
        let (second, _) = queue.take_step().unwrap();
        assert_eq!((tasks.len(), listed.get()), (STEP_FILES, 2 * STEP_FILES));
        assert!(queue.finish_step(second, build_step(MAX_FOUND - 1)));
        assert!(!queue.finish_step(first, build_step(1)));
        assert!(queue.take_step().is_none());
        assert_eq!(listed.get(), 2 * STEP_FILES);
        let counts: Vec<usize> = queue
            .into_ordered()
            .iter()
            .map(|step| step.amount.matches)
            .collect();
        assert_eq!(counts, [1, MAX_FOUND - 1]);
    }

    #[test]
    fn step_with_last_file_ends_search() {
        for (files, steps) in [(0, 1), (STEP_FILES - 1, 1), (STEP_FILES, 2), (STEP_FILES + 1, 2)] {
            let mut queue = TaskQueue::new((0..files).map(build_task));
            let mut taken = 0;
            while let Some((number, _)) = queue.take_step() {
                assert_eq!(number, taken);
                taken += 1;
                assert_eq!(queue.finish_step(number, StepMatches::default()), taken < steps);
            }
            assert_eq!(taken, steps, "{files}");
        }
    }

    /// Text whose reads are counted.
    struct CountedReads<'a> {
        text: &'a [u8],
        reads: &'a Cell<usize>,
    }

    impl Read for CountedReads<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.reads.set(self.reads.get() + 1);
            self.text.read(buffer)
        }
    }

    #[test]
    fn small_file_takes_two_reads() {
        let folder = tempfile::TempDir::new().unwrap();
        let search = FileSearch {
            root: &WorkspaceRoot::open(folder.path()).unwrap(),
            regex: &RegexMatcherBuilder::new().crlf(true).build("needle").unwrap(),
            context: 0,
            cancel: &CancellationToken::new(),
        };
        let reads = Cell::new(0);
        let file = CountedReads {
            text: &b"text\nneedle\n".repeat(50),
            reads: &reads,
        };
        let (found, amount) =
            search_one_file(&mut search.build_searcher(), search.regex, build_task(0), file);
        assert_eq!((found.lines.len(), amount.matches), (50, 50));
        // The content, and its end.
        assert_eq!(reads.get(), 2);
    }
}
