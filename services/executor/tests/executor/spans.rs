//! Tests of the spans that an executor holds for planners, and of their owners.

use std::{sync::Arc, time::SystemTime};

use bootstrap::span_buffer::{KeptSpan, SpanBuffer, SpanLimits};
use opentelemetry::trace::{SpanId, TraceId};
use proto::executor::{TakeSpansRequest, TakeSpansResponse};

use tonic::Response;

use super::*;

fn keep_span(buffer: &SpanBuffer, trace: u128, id: u64) {
    buffer.keep(KeptSpan {
        trace: TraceId::from(trace),
        id: SpanId::from(id),
        parent: SpanId::from(7),
        is_parent_remote: true,
        name: "run_check".to_owned(),
        start: SystemTime::UNIX_EPOCH,
        end: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
        attributes: vec![("run".to_owned(), build_run_id(1).to_string())],
        is_failed: false,
    });
}

async fn take_spans(
    world: &World,
    token: &str,
    fence: RunFence,
    trace: &[u8],
) -> Result<TakeSpansResponse, Status> {
    let message = TakeSpansRequest {
        fence: Some(fence.into()),
        trace_id: trace.to_vec(),
    };
    let taken = world
        .client
        .clone()
        .take_spans(add_bearer_token(token, message))
        .await;
    taken.map(Response::into_inner)
}

/// Makes a call within the trace; `flags` are those of the W3C Trace Context.
async fn call_beneath(session: &Session, id: &str, trace: u128, flags: &str) {
    let call = CallToolRequest {
        workspace_id: session.id.clone(),
        fence: Some(session.fence.into()),
        call_id: id.to_owned(),
        name: "read_file".to_owned(),
        input_json: json!({ "path": "README.md" }).to_string(),
        commit_time_s: 1_790_000_000,
        commit_author: String::new(),
        server: None,
    };
    let mut request = add_bearer_token(&session.token, call);
    let parent = format!("00-{trace:032x}-00000000000000aa-{flags}");
    request
        .metadata_mut()
        .insert("traceparent", parent.parse().unwrap());
    let answers = session.client.clone().call_tool(request).await.unwrap();
    await_result(answers.into_inner()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_reach_only_naming_tickets() {
    let buffer: Arc<SpanBuffer> = SpanBuffer::install();
    let world = World::start(2).await;
    let (own, other) = (world.open(1).await, world.open(2).await);
    // Traces of this test only, because the buffer belongs to the whole process.
    let (trace, unrecorded) = (0x5eed_0001_u128, 0x5eed_0002_u128);
    call_beneath(&own, "a", trace, "01").await;
    call_beneath(&other, "a", trace + 7, "01").await;
    call_beneath(&own, "b", unrecorded, "00").await;
    for id in 1..=300 {
        keep_span(&buffer, trace, id);
    }
    keep_span(&buffer, unrecorded, 1);
    let bytes = trace.to_be_bytes();
    let fence = own.fence;
    let code = |taken: Result<TakeSpansResponse, Status>| taken.unwrap_err().code();
    assert_eq!(
        code(take_spans(&world, &world.status_token(), fence, &bytes).await),
        Code::Unauthenticated
    );
    assert_eq!(
        code(take_spans(&world, "nonsense", fence, &bytes).await),
        Code::Unauthenticated
    );
    let gate = world.token(&build_run_id(1), None, fence, GrantAudience::Gate);
    assert_eq!(
        code(take_spans(&world, &gate, fence, &bytes).await),
        Code::Unauthenticated
    );
    let newer = RunFence::new(9, 9, 9);
    assert_eq!(
        code(take_spans(&world, &own.token, newer, &bytes).await),
        Code::PermissionDenied
    );
    let older = RunFence::new(1, 1, 1);
    let stale = world.token(&build_run_id(1), None, older, GrantAudience::Executor);
    assert_eq!(
        code(take_spans(&world, &stale, older, &bytes).await),
        Code::FailedPrecondition
    );
    assert_eq!(
        code(take_spans(&world, &own.token, fence, b"short").await),
        Code::InvalidArgument
    );
    let nothing = TakeSpansResponse::default();
    assert_eq!(
        take_spans(&world, &other.token, fence, &bytes).await.unwrap(),
        nothing
    );
    let named = unrecorded.to_be_bytes();
    assert_eq!(
        take_spans(&world, &own.token, fence, &named).await.unwrap(),
        nothing
    );

    own.close().await;
    let grant = world.token(&build_run_id(1), None, fence, GrantAudience::Executor);
    let first = take_spans(&world, &grant, fence, &bytes).await.unwrap();
    assert_eq!((first.spans.len(), first.more), (256, true));
    assert_eq!(first.spans[0].span_id, 1_u64.to_be_bytes());
    assert_eq!(first.spans[0].parent_span_id, 7_u64.to_be_bytes());
    assert_eq!(first.spans[0].end_unix_nano, 1_000_000_000);
    let rest = take_spans(&world, &grant, fence, &bytes).await.unwrap();
    assert_eq!((rest.spans.len(), rest.more), (44, false));
    assert_eq!(take_spans(&world, &grant, fence, &bytes).await.unwrap(), nothing);
    let mut statuses = {
        let request = add_bearer_token(&world.status_token(), WatchStatusRequest {});
        world
            .client
            .clone()
            .watch_status(request)
            .await
            .unwrap()
            .into_inner()
    };
    assert!(statuses.message().await.unwrap().unwrap().keeps_spans);
    // Cleans up: executors of other tests would wait for planners to fetch these spans.
    let all = SpanLimits {
        spans: 10,
        bytes: 10_000,
    };
    assert_eq!(buffer.take(TraceId::from(unrecorded), all).spans.len(), 1);
}
