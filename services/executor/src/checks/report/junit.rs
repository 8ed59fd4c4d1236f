//! Parser of `JUnit` XML, which Gradle, Maven Surefire, pytest, Jest reporters and many others write.

use domain::check::TestReport;
use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

use super::{failed_test, first_message_lines, new_report, parse_number};

/// State of a test case while its elements are read.
#[derive(Default)]
struct JunitCase {
    id: String,
    /// Message of a `failure` or `error` element.
    problem: Option<String>,
    is_skipped: bool,
}

/// Result of reading a file that matches a pattern of report files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReportFile {
    /// A complete report.
    Report(TestReport),
    /// An XML document that is not a test report.
    Other,
    /// An empty file, a file that is not XML, or an incomplete one. The tests before its end may be named.
    Broken(TestReport),
}

/// Reads a file that matches a pattern of report files. An incomplete file leaves the result of the tests
/// unknown.
pub(crate) fn read_file(xml: &str) -> ReportFile {
    let mut reader = Reader::from_str(xml);
    let mut state = ReadState::default();
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                state.depth += 1;
                state.start(&tag);
            }
            Ok(Event::Empty(tag)) => {
                state.has_root = true;
                state.empty(&tag);
            }
            Ok(Event::Text(text)) => {
                append_text(&mut state.message, &text.xml_content(XmlVersion::Implicit1_0))
            }
            Ok(Event::CData(text)) => {
                append_text(&mut state.message, &text.xml_content(XmlVersion::Implicit1_0))
            }
            Ok(Event::End(tag)) => {
                state.depth = state.depth.saturating_sub(1);
                state.end(tag.local_name().as_ref());
            }
            // A stream that ends inside an element, or without any element, is incomplete: the command was
            // interrupted while it wrote.
            Ok(Event::Eof) if state.depth == 0 && state.has_root => break,
            Ok(Event::Eof) | Err(_) => return ReportFile::Broken(mark_incomplete(state.report)),
            Ok(_) => {}
        }
    }
    if state.is_report {
        ReportFile::Report(state.report)
    } else {
        ReportFile::Other
    }
}

/// Marks a report as incomplete. Neither the case in which it ends nor the report as a whole proves anything.
fn mark_incomplete(report: TestReport) -> TestReport {
    TestReport {
        collection_error: true,
        ..report
    }
}

#[derive(Default)]
struct ReadState {
    report: TestReport,
    case: Option<JunitCase>,
    message: Option<String>,
    suites: Vec<OpenSuite>,
    depth: usize,
    has_root: bool,
    is_report: bool,
}

/// Sums from the attributes of a suite, for suites without cases.
#[derive(Default)]
struct OpenSuite {
    passed: u32,
    failed: u32,
    skipped: u32,
    has_content: bool,
}

impl ReadState {
    fn start(&mut self, tag: &BytesStart<'_>) {
        self.has_root = true;
        match tag.local_name().as_ref() {
            "testsuite" | "testsuites" => {
                self.begin();
                self.open_suite(tag);
            }
            "testcase" => {
                self.mark_content();
                self.case = Some(begin_case(tag));
            }
            name => {
                self.message = self
                    .message
                    .take()
                    .or_else(|| mark_case(name, tag, &mut self.case))
            }
        }
    }

    fn empty(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            "testsuite" | "testsuites" => {
                self.begin();
                self.open_suite(tag);
                self.close_suite();
            }
            "testcase" => {
                self.mark_content();
                count_case(begin_case(tag), &mut self.report);
            }
            name => set_message(mark_case(name, tag, &mut self.case), &mut self.case),
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "testsuite" | "testsuites" => self.close_suite(),
            "testcase" => {
                if let Some(case) = self.case.take() {
                    count_case(case, &mut self.report);
                }
            }
            "failure" | "error" => set_message(self.message.take(), &mut self.case),
            _ => {}
        }
    }

    fn begin(&mut self) {
        self.is_report = true;
        if self.report.runner.is_empty() {
            self.report = new_report("junit");
        }
    }

    fn mark_content(&mut self) {
        if let Some(suite) = self.suites.last_mut() {
            suite.has_content = true;
        }
    }

    fn open_suite(&mut self, tag: &BytesStart<'_>) {
        self.mark_content();
        let count = |name| read_attribute(tag, name).map_or(0, |count| parse_number(count.trim()));
        let failed = count("failures").saturating_add(count("errors"));
        let skipped = count("skipped").max(count("disabled"));
        self.suites.push(OpenSuite {
            passed: count("tests").saturating_sub(failed).saturating_sub(skipped),
            failed,
            skipped,
            has_content: false,
        });
    }

    /// Adds the sums of a suite that contains neither cases nor suites. Otherwise the cases are counted.
    fn close_suite(&mut self) {
        if let Some(suite) = self.suites.pop().filter(|suite| !suite.has_content) {
            self.report.passed = self.report.passed.saturating_add(suite.passed);
            self.report.failed = self.report.failed.saturating_add(suite.failed);
            self.report.skipped = self.report.skipped.saturating_add(suite.skipped);
        }
    }
}

fn read_attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok()??;
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}

fn begin_case(tag: &BytesStart<'_>) -> JunitCase {
    let (class, name) = (
        read_attribute(tag, "classname"),
        read_attribute(tag, "name").unwrap_or_default(),
    );
    let id = match class.filter(|class| !class.is_empty()) {
        Some(class) => format!("{class}.{name}"),
        None => name,
    };
    JunitCase {
        id,
        ..JunitCase::default()
    }
}

/// Marks the case as skipped or failed. Returns the `message` attribute of a problem.
fn mark_case(name: &str, tag: &BytesStart<'_>, case: &mut Option<JunitCase>) -> Option<String> {
    let case = case.as_mut()?;
    match name {
        "skipped" => case.is_skipped = true,
        "failure" | "error" => {
            case.problem.get_or_insert_default();
            return Some(read_attribute(tag, "message").unwrap_or_default());
        }
        _ => {}
    }
    None
}

fn append_text(message: &mut Option<String>, text: &str) {
    if let Some(message) = message.as_mut().filter(|message| message.len() < 4096) {
        message.push('\n');
        message.extend(text.chars().take(4096));
    }
}

fn set_message(message: Option<String>, case: &mut Option<JunitCase>) {
    if let (Some(message), Some(problem)) = (message, case.as_mut().and_then(|case| case.problem.as_mut()))
        && problem.is_empty()
    {
        *problem = first_message_lines(message.lines(), |line| line.trim_start().starts_with("at "));
    }
}

fn count_case(case: JunitCase, report: &mut TestReport) {
    match case.problem {
        Some(message) => {
            report.failed = report.failed.saturating_add(1);
            report.failing.push(failed_test(case.id, message));
        }
        None if case.is_skipped => {
            report.skipped = report.skipped.saturating_add(1);
            report.skipping.push(case.id);
        }
        None => {
            report.passed = report.passed.saturating_add(1);
            report.passing.push(case.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    fn parse_report(xml: &str) -> Option<TestReport> {
        match read_file(xml) {
            ReportFile::Report(report) => Some(report),
            ReportFile::Other | ReportFile::Broken(_) => None,
        }
    }

    #[test]
    fn reports_of_gradle_and_maven_are_read() {
        let gradle = parse_report(&read_fixture("gradle.xml")).unwrap();
        assert_eq!(count_results(&gradle), (1, 1, 1));
        assert_eq!(list_failing_tests(&gradle), ["com.acme.CartTest.emptyCart()"]);
        assert!(
            gradle.failing[0]
                .message
                .starts_with("java.util.NoSuchElementException: No value present")
        );
        let surefire = parse_report(&read_fixture("surefire.xml")).unwrap();
        assert_eq!(count_results(&surefire), (2, 2, 0));
        assert_eq!(
            list_failing_tests(&surefire),
            ["com.acme.CartTest.total", "com.acme.CartTest.count"]
        );
        assert!(
            surefire.failing[0]
                .message
                .starts_with("expected: <30> but was: <0>")
        );
    }

    #[test]
    fn another_document_is_no_report() {
        assert_eq!(read_file("<html><body>testcase</body></html>"), ReportFile::Other);
        for broken in [
            "",
            " \n",
            "no xml",
            "<?xml version=\"1.0\"?>",
            "<testsuite",
            "<testsuite></testcase>",
        ] {
            assert!(matches!(read_file(broken), ReportFile::Broken(_)), "{broken}");
        }
    }

    #[test]
    fn truncated_report_names_failures_before_its_end() {
        let whole = read_fixture("surefire.xml");
        let cut = &whole[..whole.find("name=\"count\"").unwrap()];
        let ReportFile::Broken(report) = read_file(cut) else {
            panic!("{cut}");
        };
        assert!(report.failed == 1 && report.collection_error);
    }

    #[test]
    fn sums_count_where_cases_are_not_named() {
        let suites = r#"<testsuites><testsuite name="a" tests="6" failures="1" skipped="1"/><testsuite tests="2"><testcase name="b"/></testsuite></testsuites>"#;
        assert_eq!(count_results(&parse_report(suites).unwrap()), (5, 1, 1));
    }

    #[test]
    fn entities_are_not_expanded_without_bound() {
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><testsuite><testcase name="&b;"><failure>&b;</failure></testcase></testsuite>"#;
        let report = parse_report(bomb).unwrap();
        assert!(
            report
                .failing
                .iter()
                .all(|test| test.id.len() < 100 && test.message.len() < 100)
        );
    }

    proptest! {
        #[test]
        fn no_text_stops_the_reader(start in 0usize..900, noise in "\\PC{0,60}") {
            let whole = read_fixture("surefire.xml");
            let at = (0..=start.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
            let _ = read_file(&format!("{}{noise}{}", &whole[..at], &whole[at..]));
        }

        #[test]
        fn report_truncated_anywhere_is_no_report(
            name in proptest::sample::select(vec!["surefire.xml", "gradle.xml"]),
            share in 0.0f64..1.0,
        ) {
            let whole = read_fixture(name);
            let whole = whole.trim_end();
            let cut = (whole.len() as f64 * share) as usize;
            let at = (0..=cut).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
            prop_assert!(matches!(read_file(&whole[..at]), ReportFile::Broken(_)), "{}", &whole[..at]);
        }
    }
}
