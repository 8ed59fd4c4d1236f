//! What a collector of OpenTelemetry receives from the processes over one whole ticket.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use domain::StopReason;
use e2e::{Mode, Options, World};
use opentelemetry_proto::tonic::{
    collector::{
        metrics::v1::{
            ExportMetricsServiceRequest, ExportMetricsServiceResponse,
            metrics_service_server::{MetricsService, MetricsServiceServer},
        },
        trace::v1::{
            ExportTraceServiceRequest, ExportTraceServiceResponse,
            trace_service_server::{TraceService, TraceServiceServer},
        },
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::Span,
};
use testkit::fixture;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, transport::server::TcpIncoming};

/// What has arrived: spans and names of metrics, with the service.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<(String, Span)>>>,
    metrics: Arc<Mutex<Vec<(String, String)>>>,
    everything: Arc<Mutex<String>>,
}

impl Collector {
    /// Listens on a free port and gives the endpoint.
    async fn start() -> (Self, String) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(collector.clone()))
            .add_service(MetricsServiceServer::new(collector.clone()))
            .serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(server);
        (collector, endpoint)
    }

    /// The spans of one service with this name.
    fn spans(&self, service: &str, name: &str) -> Vec<Span> {
        let spans = self.spans.lock().unwrap();
        let found = spans
            .iter()
            .filter(|(from, span)| from == service && span.name == name);
        found.map(|(_, span)| span.clone()).collect()
    }

    fn has_metric(&self, service: &str, name: &str) -> bool {
        let metrics = self.metrics.lock().unwrap();
        metrics
            .iter()
            .any(|(from, found)| from == service && found == name)
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let request = request.into_inner();
        self.everything.lock().unwrap().push_str(&format!("{request:?}"));
        for from in request.resource_spans {
            let service = service_name(from.resource.as_ref());
            let spans = from.scope_spans.into_iter().flat_map(|scope| scope.spans);
            let mut known = self.spans.lock().unwrap();
            known.extend(spans.map(|span| (service.clone(), span)));
        }
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let request = request.into_inner();
        self.everything.lock().unwrap().push_str(&format!("{request:?}"));
        for from in request.resource_metrics {
            let service = service_name(from.resource.as_ref());
            let metrics = from.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
            let mut known = self.metrics.lock().unwrap();
            known.extend(metrics.map(|metric| (service.clone(), metric.name)));
        }
        Ok(Response::new(Default::default()))
    }
}

fn service_name(resource: Option<&Resource>) -> String {
    let attributes = resource.map(|resource| resource.attributes.as_slice());
    texts(attributes.unwrap_or_default())
        .remove("service.name")
        .unwrap_or_default()
}

/// Attributes as texts.
fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: Option<&AnyValue>| match value.and_then(|value| value.value.clone()) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .iter()
        .map(|pair| (pair.key.clone(), text(pair.value.as_ref())))
        .collect()
}

/// Plays the whole story with telemetry on, to the last flush.
async fn play(endpoint: String) -> (String, String) {
    let world = World::start(Options {
        mode: Mode::Processes,
        settings: vec![("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)],
        ..Options::default()
    })
    .await
    .unwrap();
    let key = world.file_ticket();
    world.ask_for_work(&key).unwrap();
    let run = world.run(&key, 0).await.unwrap();
    assert_eq!(world.finished(&run).await.unwrap().1, StopReason::Completed);
    assert!(world.run_ci().await.unwrap());
    let ready = world.run(&key, 1).await.unwrap();
    world.finished(&ready).await.unwrap();
    let mut logs = String::new();
    for service in ["ingest", "planner", "executor", "reporter"] {
        let log = world.logs().join(format!("{service}.log"));
        logs.push_str(&std::fs::read_to_string(log).unwrap());
    }
    world.stop().await.unwrap();
    (run.to_string(), logs)
}

fn assert_traces_hang_together(collector: &Collector, run: &str) {
    let deliveries = collector.spans("ingest", "delivery");
    let tickets = collector.spans("planner", "ticket");
    assert!(!deliveries.is_empty() && !tickets.is_empty());
    let linked = tickets.iter().flat_map(|ticket| &ticket.links).any(|link| {
        deliveries
            .iter()
            .any(|delivery| delivery.trace_id == link.trace_id)
    });
    assert!(linked, "a ticket's span links to the delivery that woke it");
    let is_parent = |child: &Span, parent: &Span| {
        child.trace_id == parent.trace_id && child.parent_span_id == parent.span_id
    };
    let asked = collector.spans("planner", "execute_tool edit_file");
    let done = collector.spans("executor", "execute_tool edit_file");
    assert_eq!((asked.len(), done.len()), (1, 1));
    assert!(is_parent(&done[0], &asked[0]), "the planner's call is the parent");
    assert!(
        tickets.iter().any(|ticket| is_parent(&asked[0], ticket)),
        "and the ticket's span is above it"
    );
    assert!(!collector.spans("reporter", "reports").is_empty());

    let chats = collector.spans("planner", "chat scripted-model");
    // The first look and the review come to the replies of the work.
    let replies = fixture::script().len() + 2;
    assert_eq!(chats.len(), replies, "one for each reply");
    assert!(
        chats
            .iter()
            .all(|chat| tickets.iter().any(|ticket| is_parent(chat, ticket)))
    );
    let attributes = texts(&chats[0].attributes);
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "anthropic"),
        ("gen_ai.request.model", "scripted-model"),
        ("gen_ai.conversation.id", run),
    ] {
        assert_eq!(
            attributes.get(name).map(String::as_str),
            Some(value),
            "{attributes:#?}"
        );
    }
    for name in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(attributes[name].parse::<u64>().unwrap() > 0, "{attributes:#?}");
    }
}

fn assert_nothing_private(what: &str, text: &str) {
    let (_, description) = fixture::ticket();
    for private in [
        testkit::github::READER_TOKEN,
        testkit::github::WRITER_TOKEN,
        testkit::jira::READER_API_TOKEN,
        testkit::jira::WRITER_API_TOKEN,
        testkit::model::MODEL_API_KEY,
        "webhook-secret-of-the-stand-ins",
        "PRIVATE KEY",
        "Bearer ",
        &description[..40],
    ] {
        assert!(!text.contains(private), "{what} hold {private:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_one_story_over_four_services_and_tells_no_secret() {
    let (collector, endpoint) = Collector::start().await;
    let (run, logs) = play(endpoint).await;
    for service in ["ingest", "planner", "executor", "reporter"] {
        let spans = collector.spans.lock().unwrap();
        assert!(spans.iter().any(|(from, _)| from == service), "{service}");
    }
    assert_traces_hang_together(&collector, &run);
    for (service, metric) in [
        ("planner", "gen_ai.client.token.usage"),
        ("planner", "gen_ai.execute_tool.duration"),
        ("planner", "journeyman.runs.finished"),
        ("ingest", "journeyman.deliveries"),
    ] {
        assert!(collector.has_metric(service, metric), "{service}: {metric}");
    }
    assert_nothing_private("spans and metrics", &collector.everything.lock().unwrap());
    assert_nothing_private("logs", &logs);
}
