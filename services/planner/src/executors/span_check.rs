//! Validation of spans from an executor. It is less trusted than the planner, and the spans end in a
//! collector.

use std::time::{Duration, SystemTime};

use bootstrap::span_buffer::KeptSpan;
use domain::{RunId, TicketKey};
use opentelemetry::trace::{SpanId, TraceId};
use proto::executor as wire;

// Maximum age of a span when the planner requests it, its own duration included.
const OLDEST: Duration = Duration::from_secs(6 * 3600);
// Largest lead of an executor's clock.
const AHEAD: Duration = Duration::from_secs(300);
// Maximum length of a tool's name.
const TOOL_CHARACTERS: usize = 64;
// Attributes of one span that the check reads.
const MOST_ATTRIBUTES: usize = 16;

const TOOL_SPAN: &str = "execute_tool";
// Name of a span that this release does not know: the trace keeps its place, not its name.
const UNKNOWN_SPAN: &str = "unknown";

/// Conditions for a span of an executor.
pub(super) struct SpanTerms<'a> {
    /// Trace that the planner requested.
    pub(super) trace: TraceId,
    pub(super) ticket: &'a TicketKey,
    pub(super) now: SystemTime,
    /// Returns true for spans of this planner that executors know.
    pub(super) is_ours: &'a dyn Fn(SpanId) -> bool,
}

/// Reason to refuse a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanRefusal {
    /// The id or parent is missing, both are equal, or the id belongs to a span of this planner.
    Identity,
    /// The span ends before it begins, or has a time outside of the run.
    Time,
}

/// Validates a span for the collector. Its texts are words of this release, run ids of the ticket, and tool
/// names.
pub(super) fn check_span(span: wire::FinishedSpan, terms: &SpanTerms<'_>) -> Result<KeptSpan, SpanRefusal> {
    let id = span_id(&span.span_id)?;
    let parent = span_id(&span.parent_span_id)?;
    if id == parent || (terms.is_ours)(id) {
        return Err(SpanRefusal::Identity);
    }
    let start = parse_time(span.start_unix_nano)?;
    let end = parse_time(span.end_unix_nano)?;
    let is_past = start.checked_add(OLDEST).is_none_or(|until| until < terms.now);
    let is_ahead = end > terms.now + AHEAD;
    if end < start || is_past || is_ahead {
        return Err(SpanRefusal::Time);
    }
    Ok(KeptSpan {
        trace: terms.trace,
        id,
        parent,
        is_parent_remote: (terms.is_ours)(parent),
        name: replace_name(&span.name),
        start,
        end,
        attributes: filter_attributes(span.attributes, terms.ticket),
        is_failed: span.failed,
    })
}

fn span_id(bytes: &[u8]) -> Result<SpanId, SpanRefusal> {
    let id = <[u8; 8]>::try_from(bytes).map(SpanId::from_bytes);
    id.ok()
        .filter(|id| *id != SpanId::INVALID)
        .ok_or(SpanRefusal::Identity)
}

fn parse_time(unix_nanoseconds: u64) -> Result<SystemTime, SpanRefusal> {
    let since = Duration::from_nanos(unix_nanoseconds);
    SystemTime::UNIX_EPOCH.checked_add(since).ok_or(SpanRefusal::Time)
}

fn replace_name(name: &str) -> String {
    let is_known = match name.strip_prefix(TOOL_SPAN).map(|rest| rest.strip_prefix(' ')) {
        Some(Some(tool)) => is_tool(tool),
        Some(None) => false,
        None => matches!(name, "open_workspace" | "run_check"),
    };
    if is_known { name } else { UNKNOWN_SPAN }.to_owned()
}

fn is_tool(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=TOOL_CHARACTERS).contains(&name.len()) && name.bytes().all(is_plain)
}

fn filter_attributes(found: Vec<wire::SpanAttribute>, ticket: &TicketKey) -> Vec<(String, String)> {
    let is_allowed = |attribute: &wire::SpanAttribute| match attribute.key.as_str() {
        "run" => attribute
            .value
            .parse::<RunId>()
            .is_ok_and(|run| run.ticket() == ticket),
        "gen_ai.operation.name" => attribute.value == TOOL_SPAN,
        "gen_ai.tool.name" => is_tool(&attribute.value),
        _ => false,
    };
    let mut allowed: Vec<(String, String)> = Vec::new();
    // A duplicate key would let a collector choose which value counts.
    for attribute in found.into_iter().take(MOST_ATTRIBUTES).filter(is_allowed) {
        if allowed.iter().all(|(key, _)| *key != attribute.key) {
            allowed.push((attribute.key, attribute.value));
        }
    }
    allowed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CALL: u64 = 77;

    fn build_fixed_time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    fn count_nanoseconds(time: SystemTime) -> u64 {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        u64::try_from(since.as_nanos()).unwrap()
    }

    fn build_finished_span() -> wire::FinishedSpan {
        wire::FinishedSpan {
            span_id: 9_u64.to_be_bytes().to_vec(),
            parent_span_id: CALL.to_be_bytes().to_vec(),
            name: "execute_tool read_file".to_owned(),
            start_unix_nano: count_nanoseconds(build_fixed_time()) - 2_000_000_000,
            end_unix_nano: count_nanoseconds(build_fixed_time()) - 1_000_000_000,
            attributes: vec![
                build_attribute("run", "jira:ENG-1@7"),
                build_attribute("gen_ai.operation.name", "execute_tool"),
                build_attribute("gen_ai.tool.name", "read_file"),
            ],
            failed: false,
        }
    }

    fn build_attribute(key: &str, value: &str) -> wire::SpanAttribute {
        wire::SpanAttribute {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    fn check_changed_span(change: impl FnOnce(&mut wire::FinishedSpan)) -> Result<KeptSpan, SpanRefusal> {
        let mut span = build_finished_span();
        change(&mut span);
        let terms = SpanTerms {
            trace: TraceId::from(5),
            ticket: &TicketKey::jira("ENG-1").unwrap(),
            now: build_fixed_time(),
            is_ours: &|id| id == SpanId::from(CALL),
        };
        check_span(span, &terms)
    }

    #[test]
    fn honest_span_passes_as_it_is() {
        let passed = check_changed_span(|_| ()).unwrap();
        assert_eq!(passed.trace, TraceId::from(5));
        assert_eq!((passed.id, passed.parent), (SpanId::from(9), SpanId::from(CALL)));
        assert!(passed.is_parent_remote && !passed.is_failed);
        assert_eq!(passed.name, "execute_tool read_file");
        assert_eq!(passed.attributes.len(), 3, "{passed:?}");
        assert_eq!(passed.end, build_fixed_time() - Duration::from_secs(1));
        for name in ["open_workspace", "run_check"] {
            assert_eq!(
                check_changed_span(|span| span.name = name.to_owned())
                    .unwrap()
                    .name,
                name
            );
        }
    }

    #[test]
    fn ids_that_mislead_are_refused() {
        let cases: [fn(&mut wire::FinishedSpan); 7] = [
            |span| span.span_id.clear(),
            |span| span.span_id = vec![0; 8],
            |span| span.span_id = vec![1; 9],
            |span| span.parent_span_id.clear(),
            |span| span.parent_span_id = vec![0; 8],
            |span| span.parent_span_id = span.span_id.clone(),
            // The span would replace the planner's own.
            |span| (span.span_id, span.parent_span_id) = (CALL.to_be_bytes().to_vec(), vec![3; 8]),
        ];
        for (number, case) in cases.into_iter().enumerate() {
            assert_eq!(check_changed_span(case), Err(SpanRefusal::Identity), "{number}");
        }
    }

    #[test]
    fn times_outside_of_run_are_refused() {
        let cases: [fn(&mut wire::FinishedSpan); 5] = [
            |span| span.end_unix_nano = span.start_unix_nano - 1,
            |span| span.start_unix_nano = 0,
            |span| {
                span.start_unix_nano = count_nanoseconds(build_fixed_time() - Duration::from_secs(7 * 3600))
            },
            |span| span.end_unix_nano = count_nanoseconds(build_fixed_time() + Duration::from_secs(301)),
            |span| span.end_unix_nano = u64::MAX,
        ];
        for (number, case) in cases.into_iter().enumerate() {
            assert_eq!(check_changed_span(case), Err(SpanRefusal::Time), "{number}");
        }
        assert!(
            check_changed_span(
                |span| span.end_unix_nano = count_nanoseconds(build_fixed_time() + Duration::from_secs(60))
            )
            .is_ok()
        );
    }

    #[test]
    fn words_of_executor_are_not_repeated() {
        let names = [
            "",
            "Authorization: Bearer abc",
            "execute_tool",
            "execute_tool ",
            "execute_toolread_file",
            "execute_tool Read File",
            "execute_tool <script>",
            "open_workspace now",
            &format!("execute_tool {}", "x".repeat(65)),
        ];
        for name in names {
            let passed = check_changed_span(|span| span.name = name.to_owned()).unwrap();
            assert_eq!(passed.name, UNKNOWN_SPAN, "{name}");
        }
        let passed = check_changed_span(|span| {
            span.attributes = vec![
                build_attribute("service.name", "planner"),
                build_attribute("service.instance.id", "planner-1"),
                build_attribute("run", "jira:ENG-2@7"),
                build_attribute("run", "a secret"),
                build_attribute("gen_ai.operation.name", "chat"),
                build_attribute("gen_ai.tool.name", &"x".repeat(65)),
                build_attribute("gen_ai.tool.name", "read_file"),
                build_attribute("gen_ai.tool.name", "edit_file"),
                build_attribute("error", "a secret"),
            ];
        });
        let kept = [("gen_ai.tool.name".to_owned(), "read_file".to_owned())];
        assert_eq!(passed.unwrap().attributes, kept);
        let many = check_changed_span(|span| {
            span.attributes
                .splice(0..0, vec![build_attribute("x", "y"); 100])
                .for_each(drop)
        });
        assert!(
            many.unwrap().attributes.is_empty(),
            "only the first are looked at"
        );
    }

    proptest! {
        #[test]
        fn fuzz_texts_stay_short_and_plain(name in ".{0,300}", key in ".{0,40}", value in ".{0,300}") {
            let attributes = ["run", "gen_ai.operation.name", "gen_ai.tool.name", key.as_str()]
                .map(|key| build_attribute(key, &value));
            let passed = check_changed_span(|span| {
                span.name.clone_from(&name);
                span.attributes = attributes.to_vec();
            })
            .unwrap();
            let texts = passed.attributes.iter().map(|(_, value)| value).chain([&passed.name]);
            for text in texts {
                prop_assert!(text.len() <= 80 || text.starts_with("jira:ENG-1@"), "{}", text);
            }
        }
    }
}
