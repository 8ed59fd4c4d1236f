//! Spans from executors, and the part that reaches a collector.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bootstrap::span_forwarder::SpanForwarder;
use domain::JobRequest;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::ResourceSpans,
};
use parking_lot::Mutex;
use proto::executor as wire;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use super::{
    pool::{build_caller, executors_with},
    *,
};
use crate::executors::{ExecutorFleet, OpeningCommit, RunCaller};

const TRACE: u128 = 5;
const CALL: u64 = 77;

/// Spans that have arrived at the collector.
#[derive(Clone, Default)]
struct SpanCollector(Arc<Mutex<Vec<ResourceSpans>>>);

#[tonic::async_trait]
impl TraceService for SpanCollector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().extend(request.into_inner().resource_spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl SpanCollector {
    async fn start() -> (Self, SpanForwarder) {
        let collector = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server =
            tonic::transport::Server::builder().add_service(TraceServiceServer::new(collector.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        (collector, SpanForwarder::new(&endpoint).unwrap())
    }

    /// Returns each span's service, instance, trace, id and name.
    fn spans(&self) -> Vec<(String, String, TraceId, SpanId, String)> {
        let mut found = Vec::new();
        for from in self.0.lock().iter() {
            let resource = &from.resource.as_ref().unwrap().attributes;
            let (service, instance) = (
                read_text_attribute(resource, "service.name"),
                read_text_attribute(resource, "service.instance.id"),
            );
            for span in from.scope_spans.iter().flat_map(|scope| &scope.spans) {
                let trace = TraceId::from_bytes(span.trace_id.as_slice().try_into().unwrap());
                let id = SpanId::from_bytes(span.span_id.as_slice().try_into().unwrap());
                found.push((service.clone(), instance.clone(), trace, id, span.name.clone()));
            }
        }
        found
    }

    fn everything(&self) -> String {
        format!("{:?}", self.0.lock())
    }
}

fn read_text_attribute(attributes: &[KeyValue], key: &str) -> String {
    let found: Vec<_> = attributes.iter().filter(|pair| pair.key == key).collect();
    match found.as_slice() {
        [pair] => match pair.value.as_ref().and_then(|value| value.value.clone()) {
            Some(Value::StringValue(text)) => text,
            other => panic!("{key}: {other:?}"),
        },
        other => panic!("{key}: {other:?}"),
    }
}

fn build_span(id: u64) -> wire::FinishedSpan {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let now = u64::try_from(now.as_nanos()).unwrap();
    wire::FinishedSpan {
        span_id: id.to_be_bytes().to_vec(),
        parent_span_id: CALL.to_be_bytes().to_vec(),
        name: "run_check".to_owned(),
        start_unix_nano: now - 1_000,
        end_unix_nano: now,
        ..wire::FinishedSpan::default()
    }
}

fn build_spans_response(spans: Vec<wire::FinishedSpan>, more: bool) -> wire::TakeSpansResponse {
    wire::TakeSpansResponse { spans, more }
}

fn build_attribute(key: &str, value: &str) -> wire::SpanAttribute {
    wire::SpanAttribute {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

/// Opens the workspace of a run and notes a call beneath a span of this planner, sampled or not.
async fn open_noted_call(executors: &ExecutorFleet, request: &JobRequest, flags: TraceFlags) -> RunCaller {
    let caller = build_caller(request);
    let opened = executors
        .open(&caller, request, OpeningCommit::default(), None)
        .await
        .unwrap();
    let context = SpanContext::new(
        TraceId::from(TRACE),
        SpanId::from(CALL),
        flags,
        false,
        TraceState::default(),
    );
    drop(executors.note_beneath(&opened.executor, &caller, &context));
    caller
}

#[tokio::test]
async fn spans_of_executor_reach_planners_collector() {
    let executor = FakeExecutor::start().await;
    executor.keep_spans([
        build_spans_response(vec![build_span(1)], true),
        build_spans_response(vec![build_span(2)], false),
    ]);
    let (collector, forwarder) = SpanCollector::start().await;
    let (executors, _stopped) = executors_with(vec![executor.url.clone()], Some(forwarder));
    let caller = open_noted_call(
        &executors,
        &build_job_request(Job::Implement),
        TraceFlags::SAMPLED,
    )
    .await;
    executors.finish_spans().await;
    let instance = executor.url.trim_start_matches("http://").to_owned();
    let expected = [1, 2].map(|id| {
        let (trace, id) = (TraceId::from(TRACE), SpanId::from(id));
        (
            "executor".to_owned(),
            instance.clone(),
            trace,
            id,
            "run_check".to_owned(),
        )
    });
    assert_eq!(collector.spans(), expected);
    let asked = executor.asked_for_spans();
    assert_eq!(asked.len(), 2, "and no more once there are none");
    assert_eq!(asked[0].trace_id, TRACE.to_be_bytes());
    assert_eq!(asked[0].fence, Some(caller.fence.into()));
}

#[tokio::test]
async fn calls_are_asked_for_without_shutdown() {
    let executor = FakeExecutor::start().await;
    executor.keep_spans([build_spans_response(vec![build_span(1)], false)]);
    let (collector, forwarder) = SpanCollector::start().await;
    let (executors, _stopped) = executors_with(vec![executor.url.clone()], Some(forwarder));
    open_noted_call(
        &executors,
        &build_job_request(Job::Implement),
        TraceFlags::SAMPLED,
    )
    .await;
    let arrived = async {
        while collector.spans().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), arrived)
        .await
        .unwrap();
}

#[tokio::test]
async fn nobody_is_asked_without_need() {
    let (keeper, sender) = (FakeExecutor::start().await, FakeExecutor::start().await);
    keeper.keep_spans([]);
    for (executor, flags, is_traced) in [
        (&sender, TraceFlags::SAMPLED, true),
        (&keeper, TraceFlags::default(), true),
        (&keeper, TraceFlags::SAMPLED, false),
    ] {
        let (_collector, forwarder) = SpanCollector::start().await;
        let forwarder = is_traced.then_some(forwarder);
        let (executors, _stopped) = executors_with(vec![executor.url.clone()], forwarder);
        open_noted_call(&executors, &build_job_request(Job::Implement), flags).await;
        executors.finish_spans().await;
        assert_eq!(executor.asked_for_spans(), []);
    }
}

#[tokio::test]
async fn hostile_executor_is_kept_to_its_part() {
    let secret = "Authorization: Bearer ghp_secret";
    let executor = FakeExecutor::start().await;
    let mut own_of_planner = build_span(CALL);
    own_of_planner.parent_span_id = vec![3; 8];
    let named = wire::FinishedSpan {
        name: secret.to_owned(),
        attributes: vec![
            build_attribute("service.name", "planner"),
            build_attribute("service.instance.id", "planner-1"),
            build_attribute("run", "jira:OTHER-1@1"),
            build_attribute("error", secret),
        ],
        ..build_span(2)
    };
    let many = (1_000..2_000).map(build_span).collect();
    let endless = (10_000..10_100).map(|id| build_spans_response(vec![build_span(id)], true));
    let first = [
        build_spans_response(vec![own_of_planner, named], true),
        build_spans_response(many, true),
    ];
    executor.keep_spans(first.into_iter().chain(endless));
    let (collector, forwarder) = SpanCollector::start().await;
    let (executors, _stopped) = executors_with(vec![executor.url.clone()], Some(forwarder));
    open_noted_call(
        &executors,
        &build_job_request(Job::Implement),
        TraceFlags::SAMPLED,
    )
    .await;
    executors.finish_spans().await;
    let spans = collector.spans();
    // One of the first response, 256 of the second, and one of each of 14 more responses.
    assert_eq!(spans.len(), 1 + 256 + 14);
    assert_eq!(executor.asked_for_spans().len(), 16);
    let instance = executor.url.trim_start_matches("http://");
    for (service, from, trace, id, name) in &spans {
        assert_eq!((service.as_str(), from.as_str()), ("executor", instance));
        assert_eq!(*trace, TraceId::from(TRACE));
        assert_ne!(*id, SpanId::from(CALL), "the planner's own span stays");
        assert!(["run_check", "unknown"].contains(&name.as_str()), "{name}");
    }
    let everything = collector.everything();
    for word in ["secret", "planner-1", "OTHER-1"] {
        assert!(!everything.contains(word), "{word}");
    }
}

#[tokio::test]
async fn answer_above_its_limit_is_not_read() {
    let executor = FakeExecutor::start().await;
    let large = wire::FinishedSpan {
        attributes: vec![build_attribute("x", &"x".repeat(300 * 1024))],
        ..build_span(1)
    };
    executor.keep_spans([
        build_spans_response(vec![large], false),
        build_spans_response(vec![build_span(2)], false),
    ]);
    let (collector, forwarder) = SpanCollector::start().await;
    let (executors, _stopped) = executors_with(vec![executor.url.clone()], Some(forwarder));
    open_noted_call(
        &executors,
        &build_job_request(Job::Implement),
        TraceFlags::SAMPLED,
    )
    .await;
    executors.finish_spans().await;
    assert_eq!(
        (executor.asked_for_spans().len(), collector.spans()),
        (1, Vec::new())
    );
}
