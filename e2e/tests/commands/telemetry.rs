//! Telemetry of all processes over one whole ticket, as an OpenTelemetry collector receives it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use domain::StopReason;
use e2e::{NoteTicket, Options, ServiceMode, TestWorld};
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

const REGISTRY_TOKEN: &str = "registry-token-91ae04d7";

/// Received spans and metric names, with their services.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<(String, Span)>>>,
    metrics: Arc<Mutex<Vec<(String, String)>>>,
    /// Services by their instance id.
    instances: Arc<Mutex<BTreeMap<String, String>>>,
    everything: Arc<Mutex<String>>,
}

impl Collector {
    /// Listens on a free port and returns the endpoint.
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

    /// Returns the spans of a service with this name.
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
            self.instances
                .lock()
                .unwrap()
                .insert(find_instance_id(from.resource.as_ref()), service.clone());
            let metrics = from.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
            let mut known = self.metrics.lock().unwrap();
            known.extend(metrics.map(|metric| (service.clone(), metric.name)));
        }
        Ok(Response::new(Default::default()))
    }
}

fn service_name(resource: Option<&Resource>) -> String {
    find_attribute(resource, "service.name")
}

/// Returns the instance id. Without it the counters of two replicas would merge.
fn find_instance_id(resource: Option<&Resource>) -> String {
    find_attribute(resource, "service.instance.id")
}

fn find_attribute(resource: Option<&Resource>, name: &str) -> String {
    let attributes = resource.map(|resource| resource.attributes.as_slice());
    render_attributes(attributes.unwrap_or_default())
        .remove(name)
        .unwrap_or_default()
}

/// Returns the attributes as texts.
fn render_attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
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

/// Plays one ticket to its merge and requests a second one, with telemetry up to the last flush.
///
/// Returns the first ticket, its first run, the second ticket, and the logs. The untraced processes have no
/// collector.
async fn play_two_tickets(endpoint: String, untraced: &[&'static str]) -> (String, String, String, String) {
    let world = TestWorld::start(Options {
        mode: ServiceMode::Processes,
        untraced: untraced.to_vec(),
        // No server listens at the mirror; the request alone creates the span.
        rules: "executor:\n  setup:\n    - |\n      curl -sf $JOURNEYMAN_MIRRORS/team/rates.py || true\n"
            .to_owned(),
        settings: vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("EGRESS__PRIVATE_NETWORKS", "127.0.0.0/8".to_owned()),
            ("EGRESS__MIRRORS__TEAM__URL", "http://127.0.0.1:9/".to_owned()),
            ("EGRESS__MIRRORS__TEAM__TOKEN", REGISTRY_TOKEN.to_owned()),
        ],
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
    let number = world.github.pull_requests(fixture::REPOSITORY)[0].number;
    world.github.merge(fixture::REPOSITORY, number, "grace").unwrap();
    let end = world.run(&key, 2).await.unwrap();
    world.finished(&end).await.unwrap();
    let other = NoteTicket::ask(&world, 1).unwrap().key;
    let others = world.run(&other, 0).await.unwrap();
    world.finished(&others).await.unwrap();
    let mut logs = String::new();
    for service in ["ingest", "planner", "executor", "reporter", "egress"] {
        let log = world.logs().join(format!("{service}.log"));
        logs.push_str(&std::fs::read_to_string(log).unwrap());
    }
    world.stop().await.unwrap();
    (
        format!("jira:{key}"),
        run.to_string(),
        format!("jira:{other}"),
        logs,
    )
}

/// Checks that a ticket has one trace with one root, and that every parent exists.
fn assert_one_trace(collector: &Collector, ticket: &str) -> Vec<u8> {
    let spans = collector.spans.lock().unwrap().clone();
    let is_of = |span: &Span| {
        render_attributes(&span.attributes)
            .iter()
            .any(|(name, value)| match name.as_str() {
                "ticket" => value == ticket,
                "run" | "gen_ai.conversation.id" => value.split('@').next() == Some(ticket),
                _ => false,
            })
    };
    let own: Vec<_> = spans.iter().filter(|(_, span)| is_of(span)).collect();
    let trace = own[0].1.trace_id.clone();
    let elsewhere: Vec<_> = own.iter().filter(|(_, span)| span.trace_id != trace).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
    let all: Vec<_> = spans.iter().filter(|(_, span)| span.trace_id == trace).collect();
    for service in ["ingest", "planner", "executor", "reporter"] {
        assert!(all.iter().any(|(from, _)| from == service), "{ticket}: {service}");
    }
    let orphans: Vec<_> = all
        .iter()
        .filter(|(_, span)| all.iter().all(|(_, other)| other.span_id != span.parent_span_id))
        .collect();
    assert_eq!(orphans.len(), 1, "{orphans:#?}");
    let (service, root) = orphans[0];
    assert_eq!((service.as_str(), root.name.as_str()), ("ingest", "delivery"));
    assert!(root.parent_span_id.is_empty(), "{root:#?}");
    trace
}

/// Checks that each traced call of an executor contains the executor's spans once.
fn assert_calls_are_whole(collector: &Collector) {
    let spans = collector.spans.lock().unwrap().clone();
    let ids: BTreeSet<_> = spans.iter().map(|(_, span)| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "no span came twice");
    let is_call =
        |(service, span): &&(String, Span)| service == "planner" && span.name.starts_with("execute_tool ");
    let calls: Vec<_> = spans.iter().filter(is_call).collect();
    assert!(calls.len() >= 4, "{calls:#?}");
    for (_, call) in calls {
        let beneath = spans.iter().filter(|(service, span)| {
            service == "executor" && span.name == call.name && span.parent_span_id == call.span_id
        });
        assert_eq!(beneath.count(), 1, "{call:#?}");
    }
    for name in ["open_workspace", "run_check"] {
        assert!(!collector.spans("executor", name).is_empty(), "{name}");
    }
}

/// Checks the trace of a later event: it is separate until its ticket is known, and the ticket's trace then
/// links to it.
fn assert_later_events_are_linked(collector: &Collector, trace: &[u8]) {
    let spans = collector.spans.lock().unwrap().clone();
    let in_trace = || spans.iter().filter(|(_, span)| span.trace_id == trace);
    let linked: Vec<_> = in_trace()
        .filter(|(service, span)| service == "ingest" && span.name == "publish TRIGGERS")
        .flat_map(|(_, span)| &span.links)
        .collect();
    let is_delivery = |id: &[u8]| {
        spans
            .iter()
            .any(|(_, span)| span.span_id == id && (span.name == "delivery" || span.name == "handle"))
    };
    assert!(linked.len() >= 2, "the checks and the merge: {linked:#?}");
    assert!(
        linked.iter().all(|link| is_delivery(&link.span_id)),
        "{linked:#?}"
    );
}

fn assert_traces_hang_together(collector: &Collector, trace: &[u8], run: &str) {
    let spans = |service: &str, name: &str| {
        let mut spans = collector.spans(service, name);
        spans.retain(|span| span.trace_id == trace);
        spans
    };
    let tickets = spans("planner", "ticket");
    let is_parent = |child: &Span, parent: &Span| {
        child.trace_id == parent.trace_id && child.parent_span_id == parent.span_id
    };
    let asked = spans("planner", "execute_tool edit_file");
    let done = spans("executor", "execute_tool edit_file");
    assert_eq!((asked.len(), done.len()), (1, 1));
    assert!(is_parent(&done[0], &asked[0]), "the planner's call is the parent");
    assert!(
        tickets.iter().any(|ticket| is_parent(&asked[0], ticket)),
        "and the ticket's span is above it"
    );
    assert!(!spans("reporter", "reports").is_empty());
    let opened = spans("executor", "open_workspace");
    let cloned = spans("reporter", "git gate");
    assert!(
        cloned
            .iter()
            .any(|clone| opened.iter().any(|open| is_parent(clone, open))),
        "a clone is below the workspace that asked for it: {cloned:#?}"
    );

    let sessions = spans("egress", "egress session");
    assert!(
        sessions
            .iter()
            .any(|session| opened.iter().any(|open| is_parent(session, open))),
        "what a setup asks for is below the workspace: {sessions:#?}"
    );
    let asked = spans("egress", "egress");
    assert!(
        asked
            .iter()
            .any(|one| sessions.iter().any(|session| is_parent(one, session))),
        "{asked:#?}"
    );

    let chats = spans("planner", "chat scripted-model");
    // Intake and review add two replies to those of the work.
    let replies = fixture::build_shop_script().len() + 2;
    assert_eq!(chats.len(), replies, "one for each reply");
    assert!(
        chats
            .iter()
            .all(|chat| tickets.iter().any(|ticket| is_parent(chat, ticket)))
    );
    let attributes = render_attributes(&chats[0].attributes);
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
    let (_, description) = fixture::describe_shop_ticket();
    for private in [
        testkit::github::READER_TOKEN,
        testkit::github::WRITER_TOKEN,
        testkit::jira::READER_API_TOKEN,
        testkit::jira::WRITER_API_TOKEN,
        testkit::model::MODEL_API_KEY,
        "webhook-secret-of-the-stand-ins",
        REGISTRY_TOKEN,
        "PRIVATE KEY",
        "Bearer ",
        &description[..40],
    ] {
        assert!(!text.contains(private), "{what} hold {private:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_is_one_trace_without_secrets() {
    let (collector, endpoint) = Collector::start().await;
    let (ticket, run, other, logs) = Box::pin(play_two_tickets(endpoint, &[])).await;
    for service in ["ingest", "planner", "executor", "reporter"] {
        let spans = collector.spans.lock().unwrap();
        assert!(spans.iter().any(|(from, _)| from == service), "{service}");
    }
    let instances = collector.instances.lock().unwrap().clone();
    let services: BTreeSet<_> = instances.values().collect();
    assert!(
        services.len() >= 4 && services.len() == instances.len() && !instances.contains_key(""),
        "each process is an instance of its own: {instances:?}"
    );
    let trace = assert_one_trace(&collector, &ticket);
    assert_ne!(trace, assert_one_trace(&collector, &other), "two tickets");
    assert_later_events_are_linked(&collector, &trace);
    assert_traces_hang_together(&collector, &trace, &run);
    assert_calls_are_whole(&collector);
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

#[tokio::test(flavor = "multi_thread")]
async fn trace_stays_whole_without_executors_collector() {
    let (collector, endpoint) = Collector::start().await;
    let (ticket, run, other, logs) = Box::pin(play_two_tickets(endpoint, &["executor"])).await;
    let senders: BTreeSet<_> = collector.instances.lock().unwrap().values().cloned().collect();
    assert!(
        senders.contains("planner") && !senders.contains("executor"),
        "the executor itself sent nothing: {senders:?}"
    );
    let trace = assert_one_trace(&collector, &ticket);
    assert_ne!(trace, assert_one_trace(&collector, &other), "two tickets");
    assert_traces_hang_together(&collector, &trace, &run);
    assert_calls_are_whole(&collector);
    assert_nothing_private("spans and metrics", &collector.everything.lock().unwrap());
    assert_nothing_private("logs", &logs);
}
