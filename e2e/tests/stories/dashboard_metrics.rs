//! Coverage of dashboards and alerts: a story scrapes every metric of an expression, with the labels that the
//! expression names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use domain::StopReason;
use e2e::{Options, ServiceMode, TestWorld};
use serde_json::{Value, json};
use testkit::{ScriptStep, fixture};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::{comment_with, decisions::extract_approval_target, end_of, only_pull_request};

// Metrics that this story does not cause, with the test that does; docs/reference/metrics.md documents name and
// labels of each.
const ELSEWHERE: [(&str, &str); 7] = [
    (
        "journeyman_wakeups_swept_total",
        "a wake-up has to be lost: services/ingest/src/maintenance/sweeper.rs",
    ),
    (
        "journeyman_records_newer_total",
        "a newer release has to write: crates/queue/tests/queue",
    ),
    (
        "journeyman_budgets_refused_total",
        "a budget has to be spent: e2e/tests/stories/budgets.rs",
    ),
    (
        "journeyman_budgets_near_limit_total",
        "a budget has to be nearly spent: e2e/tests/stories/budgets.rs",
    ),
    (
        "journeyman_model_turns_without_cache_read_total",
        "a provider has to lose its cache: services/planner/src/telemetry.rs",
    ),
    (
        "journeyman_context_steps_total",
        "a conversation has to be long: e2e/tests/stories/agents.rs",
    ),
    (
        "journeyman_effects_doubles_deleted_total",
        "a comment has to stand there twice: services/reporter/src/interleave_tests.rs",
    ),
];
/// Metrics that the exporter adds.
const OF_THE_EXPORTER: [&str; 2] = ["target_info", "otel_scope_info"];
/// Metrics of Prometheus itself.
const OF_PROMETHEUS: [&str; 1] = ["up"];
/// Words of the query language at places where a metric could be.
const WORDS: [&str; 13] = [
    "and", "or", "unless", "by", "on", "without", "ignoring", "bool", "offset", "sum", "max", "min", "avg",
];

fn find_monitoring_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../k8s/components/monitoring")
}

/// Returns every expression of the dashboards and alerts.
fn list_expressions() -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(find_monitoring_folder().join("dashboards")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        let panels = dashboard["panels"].as_array().unwrap().clone();
        let targets = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().unwrap());
        found.extend(targets.map(|target| target["expr"].as_str().unwrap().to_owned()));
    }
    let rules = fs::read_to_string(find_monitoring_folder().join("rules.yaml")).unwrap();
    let mut lines = rules.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(expression) = line.trim_start().strip_prefix("expr:") else {
            continue;
        };
        let mut expression = expression.trim().trim_start_matches('|').to_owned();
        let indent = line.len() - line.trim_start().len();
        while let Some(more) = lines.next_if(|more| more.len() - more.trim_start().len() > indent) {
            expression.push_str(more.trim_start());
            expression.push(' ');
        }
        found.push(expression);
    }
    assert!(found.len() > 40, "{}", found.len());
    found
}

/// Returns the metrics of an expression, each with its required labels: in its braces, and in the enclosing
/// `by` or `on`.
fn metrics_of(expression: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut rest = expression;
    // Labels of the open groups, innermost last, and those of the next group.
    let (mut groups, mut next): (Vec<Vec<String>>, Vec<String>) = (Vec::new(), Vec::new());
    while let Some(first) = rest.chars().next() {
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
        let word = word.into_iter().next().unwrap_or_default();
        let after = &rest[word.len()..];
        let is_call = after.trim_start().starts_with('(');
        match first {
            '(' => groups.push(std::mem::take(&mut next)),
            ')' => drop(groups.pop()),
            '[' => rest = &rest[rest.find(']').unwrap()..],
            '"' => rest = &rest[1 + rest[1..].find('"').unwrap()..],
            'a'..='z' if matches!(word, "by" | "on") => {
                let (labels, behind) = after.trim_start()[1..].split_once(')').unwrap();
                next.extend(labels.split(',').map(|label| label.trim().to_owned()));
                rest = behind;
                continue;
            }
            // Labels that an aggregation or comparison leaves out need not exist.
            'a'..='z' if matches!(word, "ignoring" | "without") => {
                rest = after.split_once(')').unwrap().1;
                continue;
            }
            'a'..='z' if !is_call && !WORDS.contains(&word) => {
                let labels = metrics.entry(word.to_owned()).or_default();
                labels.extend(groups.iter().flatten().cloned());
                if let Some(matchers) = after.strip_prefix('{') {
                    let (matchers, behind) = matchers.split_once('}').unwrap();
                    let name = |matcher: &str| matcher.split(['=', '!']).next().unwrap().trim().to_owned();
                    labels.extend(matchers.split("\",").map(name));
                    rest = behind;
                    continue;
                }
            }
            _ => {}
        }
        rest = if word.is_empty() {
            &rest[rest.chars().next().unwrap().len_utf8()..]
        } else {
            after
        };
    }
    metrics
}

#[test]
fn expression_parser_finds_metrics_with_labels() {
    let found = |text: &str| {
        let metrics = metrics_of(text).into_iter();
        metrics
            .map(|(name, labels)| format!("{name}[{}]", labels.into_iter().collect::<Vec<_>>().join(",")))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        found("sum by (a, le) (rate(x_total{b=~\"c,d|e\", f!=\"g\"}[5m])) / 1e6 > 3"),
        "x_total[a,b,f,le]"
    );
    assert_eq!(
        found("max by (p) (x) > 0 and on (p) max by (p) (y{s=\"free\"}) == 0"),
        "x[p] y[p,s]"
    );
    assert_eq!(
        found("x{s=\"used\"} / ignoring (s) sum without (s) (x) > 0.7"),
        "x[s]"
    );
    assert_eq!(found("absent(up{pod=~\"planner-.*\"} == 1)"), "up[pod]");
}

/// Scraped series names with all labels that occurred.
#[derive(Default)]
struct Scraped(BTreeMap<String, BTreeSet<String>>);

impl Scraped {
    async fn add(&mut self, addresses: &[String]) {
        for address in addresses {
            let answer = reqwest::get(format!("http://{address}/metrics")).await.unwrap();
            let text = answer.text().await.unwrap();
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let end = line.find(['{', ' ']).unwrap();
                let labels = self.0.entry(line[..end].to_owned()).or_default();
                if let Some((inner, _)) = line[end..]
                    .strip_prefix('{')
                    .and_then(|rest| rest.rsplit_once('}'))
                {
                    let pairs = inner.split("\",");
                    labels.extend(pairs.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())));
                }
            }
        }
    }

    fn has_live_decision(&self) -> bool {
        self.0
            .get("journeyman_runs_live")
            .is_some_and(|labels| labels.contains("journeyman_state"))
    }
}

/// Starts a registry that answers every request.
async fn start_registry() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let mut connection = BufReader::new(connection);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n")
                && connection.read_line(&mut head).await.is_ok_and(|count| count > 0)
            {}
            let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
            let _ = connection.write_all(answer.as_bytes()).await;
        }
    });
    url
}

/// Returns the fixture's script with a failing tool call.
fn build_failing_script() -> Vec<ScriptStep> {
    let mut script = vec![ScriptStep::call("read_file", json!({"path": "no/such/file"}))];
    let steps = fixture::build_shop_script().into_iter().enumerate();
    // The first step expects the result of the failed call.
    script.extend(steps.map(|(number, step)| if number == 0 { step_one() } else { step }));
    script
}

fn step_one() -> ScriptStep {
    ScriptStep::call(
        "search_content",
        json!({"pattern": "def total", "file_pattern": "*.py"}),
    )
    .and_call("run_command", json!({"command": fixture::TEST_COMMAND}))
}

async fn start_measured_world() -> (TestWorld, Vec<String>) {
    let registry = start_registry().await;
    let executor = format!("127.0.0.1:{}", servers::free_port().unwrap());
    let fetch = |url: &str| {
        format!(
            "python3 -c \"import os, urllib.request as r; r.urlopen(os.path.expandvars('{url}')).read()\""
        )
    };
    let setup = format!(
        "{} && ! {}",
        fetch("$JOURNEYMAN_MIRRORS/team/a"),
        fetch("http://elsewhere.example/")
    );
    let world = TestWorld::start(Options {
        mode: ServiceMode::Processes,
        // A poll finds the first event.
        no_webhooks: true,
        script: Some(build_failing_script()),
        rules: format!(
            "agent:\n  approval: plan\nexecutor:\n  network: [packages.example]\n  setup:\n    - |\n      {setup}\n"
        ),
        settings: vec![
            ("INGEST__POLL_INTERVAL_S", "1".to_owned()),
            ("JIRA_READER__EXPIRES", "2099-01-31".to_owned()),
            ("EXECUTOR__METRICS_LISTEN", executor.clone()),
            ("EGRESS__PRIVATE_NETWORKS", "127.0.0.0/8".to_owned()),
            ("EGRESS__MIRRORS__TEAM__URL", registry),
            (
                "EGRESS__MIRRORS__TEAM__TOKEN",
                "a-token-of-the-registry".to_owned(),
            ),
        ],
        ..Options::default()
    });
    let world = world.await.unwrap();
    let listen = |service: &str| world.setting(&format!("{service}__LISTEN")).unwrap().to_owned();
    let mut addresses: Vec<String> = ["INGEST", "PLANNER", "REPORTER", "EGRESS"].map(listen).to_vec();
    addresses.push(executor);
    (world, addresses)
}

/// Plays a ticket from a poll over an approval to its merge, with a refused webhook, a failing tool and a
/// closed egress; and a second ticket whose model fails.
async fn play_measured_tickets(world: &TestWorld, addresses: &[String]) -> Scraped {
    let mut scraped = Scraped::default();
    let key = world.ask().unwrap();
    let asked = comment_with(world, &key, "Decide in a comment").await;
    world
        .until("a run that waits for a decision is measured", async || {
            scraped.add(addresses).await;
            scraped.has_live_decision().then_some(())
        })
        .await
        .unwrap();
    world.send_webhooks(&world.url);
    let refused = reqwest::Client::new().post(format!("{}/webhooks/github", world.url));
    let refused = refused
        .header("x-github-event", "ping")
        .header("x-github-delivery", "1")
        .header("x-hub-signature-256", "sha256=00")
        .body("{}");
    assert_eq!(refused.send().await.unwrap().status(), 401);
    let approve = format!("/approve {}", extract_approval_target(&asked));
    world.jira.comment_as(&key, "ada", &approve).unwrap();
    assert_eq!(end_of(world, &key, 0).await, StopReason::Completed);
    assert!(world.run_ci().await.unwrap());
    assert_eq!(end_of(world, &key, 1).await, StopReason::Completed);
    let number = only_pull_request(world).number;
    world.github.merge(fixture::REPOSITORY, number, "grace").unwrap();
    assert_eq!(end_of(world, &key, 2).await, StopReason::Completed);
    world.model.garble_next(20);
    let other = world.ask_for_note(2).unwrap();
    let end = end_of(world, &other, 0).await;
    assert!(matches!(end, StopReason::ModelFailed { .. }), "{end:?}");
    scraped.add(addresses).await;
    scraped
}

/// Returns the rows of the page of metrics, by Prometheus name without unit and `_total`.
fn read_documented_metrics() -> BTreeMap<String, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/metrics.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut found = BTreeMap::new();
    for row in rows {
        let names = row.split('|').nth(1).unwrap();
        for name in names.split('`').skip(1).step_by(2) {
            found.insert(name.replace('.', "_"), row.to_owned());
        }
    }
    found
}

/// Returns the page's row for a series. The page leaves out the suffix and unit that the exporter appends.
fn row_of<'a>(documented: &'a BTreeMap<String, String>, series: &str) -> Option<&'a String> {
    let ends = ["_bucket", "_count", "_sum", "_total"];
    let name = ends.iter().find_map(|end| series.strip_suffix(end));
    let name = name.unwrap_or(series);
    let without = ["_seconds", "_bytes"]
        .iter()
        .find_map(|unit| name.strip_suffix(unit));
    let names = [Some(series), Some(name), without];
    names.into_iter().flatten().find_map(|name| documented.get(name))
}

/// True if a name breaks the scheme: our metrics begin with `journeyman`, those of the OpenTelemetry
/// conventions keep their names.
fn breaks_the_scheme(name: &str) -> bool {
    const OF_CONVENTIONS: [&str; 4] = ["gen_ai_", "error_type", "otel_scope_", "le"];
    !name.starts_with("journeyman_") && !OF_CONVENTIONS.iter().any(|start| name.starts_with(start))
}

#[tokio::test(flavor = "multi_thread")]
async fn story_measures_every_dashboard_metric() {
    let (world, addresses) = start_measured_world().await;
    let scraped = play_measured_tickets(&world, &addresses).await;
    world.stop().await.unwrap();
    let documented = read_documented_metrics();
    let mut problems = BTreeSet::new();
    for expression in list_expressions() {
        for (name, labels) in metrics_of(&expression) {
            if OF_PROMETHEUS.contains(&name.as_str()) {
                continue;
            }
            let Some(row) = row_of(&documented, &name) else {
                problems.insert(format!("{name}: docs/reference/metrics.md does not name it"));
                continue;
            };
            let is_elsewhere = ELSEWHERE.iter().any(|(known, _)| *known == name);
            match scraped.0.get(&name) {
                Some(_) if is_elsewhere => {
                    problems.insert(format!("{name}: it is measured here, so it needs no exception"));
                }
                Some(measured) => {
                    let missing: Vec<_> = labels.difference(measured).collect();
                    if !missing.is_empty() {
                        problems.insert(format!("{name}: no label {missing:?} among {measured:?}"));
                    }
                }
                None if is_elsewhere => {
                    let in_row = |label: &&String| {
                        let row = row.replace('.', "_");
                        row.contains(&format!("`{label}`")) || row.contains("the same")
                    };
                    let missing: Vec<_> = labels.iter().filter(|label| !in_row(label)).collect();
                    if !missing.is_empty() {
                        problems.insert(format!(
                            "{name}: docs/reference/metrics.md gives it no {missing:?}"
                        ));
                    }
                }
                None => {
                    problems.insert(format!("{name}: no service measures it"));
                }
            }
        }
    }
    for (name, labels) in scraped
        .0
        .iter()
        .filter(|(name, _)| !OF_THE_EXPORTER.contains(&name.as_str()))
    {
        if breaks_the_scheme(name) || row_of(&documented, name).is_none() {
            problems.insert(format!(
                "{name}: not of our scheme, or not on docs/reference/metrics.md"
            ));
        }
        for label in labels.iter().filter(|label| breaks_the_scheme(label)) {
            problems.insert(format!("{name}: its label {label} is not of our scheme"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
