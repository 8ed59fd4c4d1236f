//! `JUnit` XML, as Gradle, Maven Surefire, pytest, Jest reporters and many others write it.

use domain::check::TestReport;
use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

use super::{failed, message};

/// How a case ended, as far as its elements have told.
#[derive(Default)]
struct Case {
    id: String,
    /// `failure` or `error`, with its words.
    problem: Option<String>,
    is_skipped: bool,
}

/// Nothing for a text that is not such a report.
pub(crate) fn parse(xml: &str) -> Option<TestReport> {
    let mut reader = Reader::from_str(xml);
    let (mut report, mut case, mut is_report) = (report(), None::<Case>, false);
    let mut words = None::<String>;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => match tag.local_name().as_ref() {
                "testsuite" | "testsuites" => is_report = true,
                "testcase" => case = Some(begun(&tag)),
                name => words = words.or_else(|| noted(name, &tag, &mut case)),
            },
            Ok(Event::Empty(tag)) => match tag.local_name().as_ref() {
                "testsuite" | "testsuites" => is_report = true,
                "testcase" => count(begun(&tag), &mut report),
                name => tell(noted(name, &tag, &mut case), &mut case),
            },
            Ok(Event::Text(text)) => add(&mut words, &text.xml_content(XmlVersion::Implicit1_0)),
            Ok(Event::CData(text)) => add(&mut words, &text.xml_content(XmlVersion::Implicit1_0)),
            Ok(Event::End(tag)) => match tag.local_name().as_ref() {
                "testcase" => case.take().into_iter().for_each(|case| count(case, &mut report)),
                "failure" | "error" => tell(words.take(), &mut case),
                _ => {}
            },
            // A report that was cut tells of the tests before; the case that it was cut in proves nothing.
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    is_report.then_some(report)
}

fn report() -> TestReport {
    TestReport {
        runner: "junit".to_owned(),
        ..TestReport::default()
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok()??;
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}

fn begun(tag: &BytesStart<'_>) -> Case {
    let (class, name) = (
        attribute(tag, "classname"),
        attribute(tag, "name").unwrap_or_default(),
    );
    let id = match class.filter(|class| !class.is_empty()) {
        Some(class) => format!("{class}.{name}"),
        None => name,
    };
    Case {
        id,
        ..Case::default()
    }
}

/// Marks the case; the first words of a problem.
fn noted(name: &str, tag: &BytesStart<'_>, case: &mut Option<Case>) -> Option<String> {
    let case = case.as_mut()?;
    match name {
        "skipped" => case.is_skipped = true,
        "failure" | "error" => {
            case.problem.get_or_insert_default();
            return Some(attribute(tag, "message").unwrap_or_default());
        }
        _ => {}
    }
    None
}

fn add(words: &mut Option<String>, text: &str) {
    if let Some(words) = words.as_mut().filter(|words| words.len() < 4096) {
        words.push('\n');
        words.extend(text.chars().take(4096));
    }
}

fn tell(words: Option<String>, case: &mut Option<Case>) {
    if let (Some(words), Some(problem)) = (words, case.as_mut().and_then(|case| case.problem.as_mut()))
        && problem.is_empty()
    {
        *problem = message(words.lines(), |line| line.trim_start().starts_with("at "));
    }
}

fn count(case: Case, report: &mut TestReport) {
    match case.problem {
        Some(words) => {
            report.failed = report.failed.saturating_add(1);
            report.failing.push(failed(case.id, words));
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
    use crate::checks::report::tests::{counts, failing, fixture};

    #[test]
    fn reports_of_gradle_and_maven_are_read() {
        let gradle = parse(&fixture("gradle.xml")).unwrap();
        assert_eq!(counts(&gradle), (1, 1, 1));
        assert_eq!(failing(&gradle), ["com.acme.CartTest.emptyCart()"]);
        assert!(
            gradle.failing[0]
                .message
                .starts_with("java.util.NoSuchElementException: No value present")
        );
        let surefire = parse(&fixture("surefire.xml")).unwrap();
        assert_eq!(counts(&surefire), (2, 2, 0));
        assert_eq!(
            failing(&surefire),
            ["com.acme.CartTest.total", "com.acme.CartTest.count"]
        );
        assert!(
            surefire.failing[0]
                .message
                .starts_with("expected: <30> but was: <0>")
        );
    }

    #[test]
    fn another_document_is_no_report_and_a_cut_one_tells_what_came_before() {
        assert_eq!(parse("<html><body>testcase</body></html>"), None);
        assert_eq!(parse("no xml"), None);
        let whole = fixture("surefire.xml");
        let cut = &whole[..whole.find("name=\"count\"").unwrap()];
        assert_eq!(parse(cut).unwrap().failed, 1);
    }

    #[test]
    fn entities_are_not_expanded_without_bound() {
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><testsuite><testcase name="&b;"><failure>&b;</failure></testcase></testsuite>"#;
        let report = parse(bomb).unwrap();
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
            let whole = fixture("surefire.xml");
            let at = (0..=start.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
            let _ = parse(&format!("{}{noise}{}", &whole[..at], &whole[at..]));
        }
    }
}
