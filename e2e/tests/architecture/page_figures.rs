//! Readability of the pages: sentence length, passives, address of the reader, tables and page length.
//!
//! Fenced code counts nowhere, a code span counts as one word, and a link counts as its text. Sentences end at `.`, `!` or `?`
//! before white space; rows of tables and headings are no sentences.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

use crate::{
    book::list_book_pages,
    find_repository_root,
    language::{compute_percent, list_breaches},
};

/// Mean of the words in a sentence.
const SENTENCE_WORDS: f64 = 15.0;
/// Share of sentences above [`LONG_SENTENCE`], in percent.
const LONG_SENTENCES: f64 = 4.0;
/// Words from which on a sentence counts as long.
const LONG_SENTENCE: usize = 30;
/// Share of sentences with a passive, in percent.
const PASSIVES: f64 = 20.0;
/// Least number of words such as "you" and "your", per 1,000 words in sentences.
const READER_WORDS: f64 = 10.0;
/// Share of words in tables outside of the reference, in percent.
const TABLE_WORDS: f64 = 15.0;
/// Median of the words on a page.
const PAGE_WORDS: usize = 600;
/// Lines of a page that a reader sees without scrolling.
const FIRST_SCREEN: usize = 30;

/// Past participles without the ending `ed` that occur in English passives.
const IRREGULAR_PARTICIPLES: &str = "arisen awoken beaten become been begun bent bet bitten bled blown born borne bought bound bred \
    broken brought built burnt burst cast caught chosen clung come cost crept cut dealt done drawn driven drunk dug eaten fallen \
    fed felt fled flown forbidden forgotten forgiven fought found frozen given gone ground grown heard held hidden hit hung hurt \
    kept knit known laid led left lent let lit lost made meant met mown paid proven put quit read ridden risen run said sat sawn \
    seen sent set sewn shaken shaven shed shone shot shown shrunk shut slain slept slid slung slit smitten sold sought sown sped \
    spent spilt spit split spoken spread sprung spun stolen stood stuck stung stunk struck strung striven sung sunk swept swollen \
    sworn swum swung taken taught thought thrown thrust told torn trodden understood upheld upset woken won worn wound woven \
    written wrung";

struct PagePatterns {
    fence: Regex,
    code: Regex,
    link: Regex,
    word: Regex,
    paragraph: Regex,
    sentence_end: Regex,
    passive: Regex,
    reader: Regex,
}

impl PagePatterns {
    fn new() -> Self {
        let pattern = |text: &str| Regex::new(text).unwrap();
        let participles: Vec<&str> = IRREGULAR_PARTICIPLES.split_whitespace().collect();
        Self {
            fence: pattern("(?s)```.*?```"),
            code: pattern("`[^`]*`"),
            link: pattern(r"\[([^\]]*)\]\([^)]*\)"),
            word: pattern(r"[A-Za-z][\w'’-]*"),
            paragraph: pattern(r"\n\s*\n|\n\s*[-*] |\n\d+\. "),
            sentence_end: pattern(r"[.!?]\s+"),
            passive: pattern(&format!(
                r"(?i)\b(?:am|are|were|being|is|been|was|be)\b\s+(?:\w+ed|{})\b",
                participles.join("|")
            )),
            reader: pattern(r"(?i)\byou(?:rs?)?\b"),
        }
    }

    fn count_words(&self, text: &str) -> usize {
        self.word.find_iter(text).count()
    }

    /// Returns the sentences of a page without its code.
    fn split_sentences(&self, page: &str) -> Vec<String> {
        let is_text = |line: &&str| !line.trim_start().starts_with('|') && !line.starts_with('#');
        let lines: Vec<&str> = page.lines().filter(is_text).collect();
        let joined = lines.join("\n");
        let linked = self.link.replace_all(&joined, "$1");
        let text = self.code.replace_all(&linked, "code");
        let mut sentences = Vec::new();
        for paragraph in self.paragraph.split(&text) {
            let paragraph = paragraph.replace('\n', " ");
            let mut start = 0;
            for end in self.sentence_end.find_iter(&paragraph) {
                sentences.push(paragraph[start..end.end()].to_owned());
                start = end.end();
            }
            sentences.push(paragraph[start..].to_owned());
        }
        sentences
    }
}

#[derive(Default)]
struct PageFigures {
    sentences: usize,
    sentence_words: usize,
    long_sentences: usize,
    passives: usize,
    reader_words: usize,
    words: usize,
    table_words: usize,
}

impl PageFigures {
    fn of_page(page: &str, patterns: &PagePatterns) -> Self {
        let text = patterns.fence.replace_all(page, "");
        let mut figures = Self::default();
        for line in text.lines() {
            let words = patterns.count_words(&patterns.code.replace_all(line, "code"));
            figures.words += words;
            if line.trim_start().starts_with('|') {
                figures.table_words += words;
            }
        }
        for sentence in patterns.split_sentences(&text) {
            let words = patterns.count_words(&sentence);
            // Shorter ones are labels of lists and pictures.
            if words < 3 {
                continue;
            }
            figures.sentences += 1;
            figures.sentence_words += words;
            figures.long_sentences += usize::from(words > LONG_SENTENCE);
            figures.passives += usize::from(patterns.passive.is_match(&sentence));
            figures.reader_words += patterns.reader.find_iter(&sentence).count();
        }
        figures
    }

    fn add(&mut self, other: &Self) {
        self.sentences += other.sentences;
        self.sentence_words += other.sentence_words;
        self.long_sentences += other.long_sentences;
        self.passives += other.passives;
        self.reader_words += other.reader_words;
        self.words += other.words;
        self.table_words += other.table_words;
    }
}

/// Returns the pages that people write: the generated help and the contents have another form.
fn list_written_pages() -> Vec<PathBuf> {
    let mut pages = list_book_pages();
    let is_other = |page: &Path| {
        ["commands.md", "SUMMARY.md", "capabilities.md"]
            .iter()
            .any(|name| page.ends_with(name))
    };
    pages.retain(|page| !is_other(page));
    pages
}

/// Returns the pages of one part of the contents.
fn list_part(part: &str) -> BTreeSet<PathBuf> {
    let docs = find_repository_root().join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let (_, rest) = contents.split_once(&format!("\n# {part}\n")).unwrap();
    let pages = rest.split("\n# ").next().unwrap_or_default();
    let links = pages.split("](").skip(1);
    links
        .filter_map(|link| Some(docs.join(link.split(')').next()?)))
        .collect()
}

#[test]
fn pages_read_like_well_liked_ones() {
    let patterns = PagePatterns::new();
    let reference = list_part("Reference");
    let (mut all, mut tasks) = (PageFigures::default(), PageFigures::default());
    let mut lengths = Vec::new();
    for page in list_written_pages() {
        let figures = PageFigures::of_page(&fs::read_to_string(&page).unwrap(), &patterns);
        lengths.push(figures.words);
        all.add(&figures);
        if !reference.contains(&page) {
            tasks.add(&figures);
        }
    }
    lengths.sort_unstable();
    let ceilings = [
        (
            "words in a sentence",
            compute_percent(all.sentence_words, all.sentences) / 100.0,
            SENTENCE_WORDS,
        ),
        (
            "% long sentences",
            compute_percent(all.long_sentences, all.sentences),
            LONG_SENTENCES,
        ),
        (
            "% sentences with a passive",
            compute_percent(all.passives, all.sentences),
            PASSIVES,
        ),
        (
            "% words in tables outside of the reference",
            compute_percent(tasks.table_words, tasks.words),
            TABLE_WORDS,
        ),
    ];
    let mut breaches = list_breaches(&ceilings);
    let reader_words = 10.0 * compute_percent(all.reader_words, all.sentence_words);
    if reader_words < READER_WORDS {
        breaches.push(format!(
            "words for the reader per 1,000: {reader_words:.1}, at least {READER_WORDS}"
        ));
    }
    let median = lengths[lengths.len() / 2];
    if median > PAGE_WORDS {
        breaches.push(format!("{median} words on the median page, at most {PAGE_WORDS}"));
    }
    assert!(breaches.is_empty(), "{breaches:#?}");
}

#[test]
fn task_pages_show_command_or_picture_first() {
    let tasks = ["Start", "Use", "Operate", "Security"].map(list_part);
    let has_example = |page: &PathBuf| {
        let text = fs::read_to_string(page).unwrap();
        let mut first = text.lines().take(FIRST_SCREEN);
        first.any(|line| line.trim_start().starts_with("```") || line.contains("!["))
    };
    let pages = tasks.iter().flatten();
    let without: Vec<&PathBuf> = pages.filter(|page| !has_example(page)).collect();
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn figures_of_page_are_counted_by_hand() {
    let page = "# A title\n\nYou run `one two` here. It is written by [a person](x.md)!\n\n| a | b |\n|---|---|\n\n\
        ```\nyou are told\n```\n\n- Two words\n- You were told one thing\n";
    let figures = PageFigures::of_page(page, &PagePatterns::new());
    assert_eq!(
        (figures.sentences, figures.sentence_words),
        (3, 4 + 6 + 5),
        "the list item of two words is a label"
    );
    assert_eq!((figures.passives, figures.reader_words), (2, 2));
    assert_eq!((figures.words, figures.table_words), (2 + 4 + 8 + 2 + 2 + 5, 2));
}
