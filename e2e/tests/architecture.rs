//! Promised structure of the workspace, checked with `cargo metadata` and the sources.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

#[path = "architecture/book.rs"]
mod book;
#[path = "architecture/contract.rs"]
mod contract;
#[path = "architecture/failpoint_sites.rs"]
mod failpoint_sites;
#[path = "architecture/language.rs"]
mod language;
#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/page_figures.rs"]
mod page_figures;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

const SERVICES: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];

fn load_metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        // With one platform, cargo needs no dependencies of the others.
        let options = [
            "--locked",
            "--offline",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ];
        MetadataCommand::new()
            .other_options(options.map(str::to_owned))
            .exec()
            .unwrap()
    })
}

#[test]
fn docs_cover_every_event_and_job() {
    let read = |path: &str| fs::read_to_string(find_repository_root().join(path)).unwrap();
    let events = read("docs/events.md");
    let kinds = fs::read_dir(find_repository_root().join("services/ingest/src/events")).unwrap();
    let mut known = 0;
    for kind in kinds {
        let name = kind.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        if name != "mod" && !name.ends_with("tests") {
            known += 1;
            assert!(
                events.contains(&format!("| `{name}` |")),
                "docs/events.md has no row of the kind {name}"
            );
        }
    }
    assert_eq!(
        events.matches("` |\n").count(),
        known,
        "docs/events.md has rows of no kind"
    );
    let (jobs, upkeep) = (read("docs/jobs/README.md"), read("docs/jobs/upkeep.md"));
    for job in domain::Job::ALL {
        let page = find_repository_root().join(format!("docs/jobs/{job}.md"));
        assert!(
            jobs.contains(job.as_str()),
            "docs/jobs/README.md does not name {job}"
        );
        assert!(
            page.exists() || upkeep.contains(&format!("| `{job}` |")),
            "{job} has no page"
        );
    }
}

/// Returns the names of tests, figures and metrics that a text has between backticks.
fn list_long_names(text: &str) -> BTreeSet<String> {
    let is_name = |name: &&str| {
        name.matches('_').count() > 3
            && !name.starts_with('_')
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    text.split('`').filter(is_name).map(str::to_owned).collect()
}

#[test]
fn docs_name_existing_tests() {
    let is_of_benchmarks = |page: &PathBuf| {
        page.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("benchmark"))
    };
    let (benchmarks, pages): (Vec<_>, Vec<_>) =
        book::list_book_pages().into_iter().partition(is_of_benchmarks);
    let read_all = |pages: &[PathBuf]| -> String {
        let texts = pages.iter().map(|page| fs::read_to_string(page).unwrap());
        texts.collect::<Vec<_>>().join("\n")
    };
    let figures = list_long_names(&read_all(&benchmarks));
    let mut named = list_long_names(&read_all(&pages));
    named.retain(|name| !figures.contains(name) && !name.starts_with("journeyman_"));
    assert!(named.len() > 80, "{named:?}");
    let files = ["crates", "services", "e2e"]
        .iter()
        .flat_map(|part| rust_files(&find_repository_root().join(part)));
    let code: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    named.retain(|name| !code.contains(&format!("fn {name}(")));
    assert!(named.is_empty(), "no test has these names: {named:?}");
}

fn find_repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn list_direct_dependencies(package: &Package) -> BTreeSet<&str> {
    let normal = |kind| matches!(kind, DependencyKind::Normal | DependencyKind::Build);
    package
        .dependencies
        .iter()
        .filter(|dep| normal(dep.kind))
        .map(|dep| dep.name.as_str())
        .collect()
}

fn index_members(metadata: &Metadata) -> BTreeMap<String, &Package> {
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.to_string(), package))
        .collect()
}

/// Returns every workspace crate that `name` reaches through normal dependencies.
fn find_reachable_crates<'m>(members: &'m BTreeMap<String, &'m Package>, name: &str) -> BTreeSet<&'m str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(next) = open.pop() {
        for dependency in list_direct_dependencies(members[&next]) {
            if let Some((known, _)) = members.get_key_value(dependency)
                && seen.insert(known.as_str())
            {
                open.push(known.clone());
            }
        }
    }
    seen
}

#[test]
fn no_service_depends_on_another_service() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    for service in SERVICES {
        let reached = find_reachable_crates(&members, service);
        for other in SERVICES {
            assert!(!reached.contains(other), "{service} depends on {other}");
        }
        assert!(!reached.contains("testkit"), "{service} ships test doubles");
    }
}

/// Archive and wheel have the demo's stand-ins; images and the default build have none.
#[test]
fn stand_ins_reach_command_by_demo_feature_alone() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    let command = members["journeyman"];
    let testkit = command
        .dependencies
        .iter()
        .find(|dependency| dependency.name == "testkit");
    assert!(testkit.is_some_and(|dependency| dependency.optional));
    for dependency in list_direct_dependencies(command) {
        let is_member = dependency != "testkit" && members.contains_key(dependency);
        assert!(
            !is_member || !find_reachable_crates(&members, dependency).contains("testkit"),
            "{dependency} ships test doubles"
        );
    }
    for (feature, enabled) in &command.features {
        let names_it = enabled.iter().any(|name| name == "dep:testkit" || name == "demo");
        assert_eq!(names_it, feature == "demo", "{feature}");
    }
}

#[test]
fn build_images_name_one_rust_version() {
    let files = [
        "Dockerfile",
        ".devcontainer/Dockerfile",
        ".github/workflows/release.yml",
    ];
    let images = files.map(|file| {
        let text = fs::read_to_string(find_repository_root().join(file)).unwrap();
        let (_, rest) = text.split_once("rust:").unwrap();
        rest.split_whitespace().next().unwrap().to_owned()
    });
    assert!(images.iter().all(|image| *image == images[0]), "{images:?}");
}

#[test]
fn amazon_libraries_come_with_bedrock_alone() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    // Images, archive, wheel and `make test` build these packages with their default features.
    for name in ["planner", "journeyman"] {
        let default = &members[name].features["default"];
        assert!(default.iter().any(|feature| feature == "bedrock"), "{name}");
    }
    for (name, package) in &members {
        for dependency in &package.dependencies {
            let is_product = dependency.kind == DependencyKind::Normal && dependency.name.starts_with("aws-");
            assert!(
                !is_product || (name == "planner" && dependency.optional),
                "{name} always has {}",
                dependency.name
            );
        }
    }
}

#[test]
fn each_capability_is_held_by_one_service() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    let holders = |needle: &str| -> Vec<&str> {
        SERVICES
            .into_iter()
            .filter(|service| list_direct_dependencies(members[*service]).contains(needle))
            .collect()
    };
    assert_eq!(holders("github"), ["ingest", "reporter"]);
    assert_eq!(holders("jira"), ["ingest", "reporter"]);
    assert_eq!(holders("mcp"), ["planner"]);
    assert_eq!(holders("lease"), ["ingest", "planner", "reporter"]);
    assert_eq!(holders("queue"), ["ingest", "planner", "reporter"]);
    assert_eq!(
        holders("reqwest"),
        ["planner", "egress"],
        "the planner talks to the model, egress to registries; other clients live in their crates"
    );
    assert_eq!(
        holders("ssh-key"),
        ["reporter"],
        "the reporter alone signs commits, after its checks"
    );
    let executor = find_reachable_crates(&members, "executor");
    for forbidden in ["queue", "lease", "github", "jira"] {
        assert!(!executor.contains(forbidden), "executor reaches {forbidden}");
    }
    for client in ["github", "jira"] {
        assert!(
            !find_reachable_crates(&members, client).contains("lease"),
            "{client} reaches lease"
        );
    }
    let egress = find_reachable_crates(&members, "egress");
    assert_eq!(
        egress,
        ["bootstrap", "domain", "grant", "webproxy"].into(),
        "egress knows grants and registries, nothing else"
    );
}

#[test]
fn console_depends_on_api_and_oidc_alone() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    let reached = find_reachable_crates(&members, "journeyman-console");
    assert_eq!(reached, ["api", "bootstrap", "domain", "webproxy"].into());
    let folder = find_repository_root().join("services/console/src");
    let calls = |file: &PathBuf| fs::read_to_string(file).unwrap().contains("reqwest");
    let callers: Vec<_> = rust_files(&folder).into_iter().filter(calls).collect();
    assert_eq!(callers, [folder.join("oidc.rs")], "one file has an HTTP client");
}

#[test]
fn client_commands_compile_no_service() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    let dependencies = members["journeyman"].dependencies.iter();
    let always = dependencies.filter(|dep| !dep.optional && dep.kind == DependencyKind::Normal);
    let always = always.filter_map(|dep| members.get_key_value(dep.name.as_str()));
    let reached: BTreeSet<_> = always
        .flat_map(|(name, _)| {
            find_reachable_crates(&members, name)
                .into_iter()
                .chain([name.as_str()])
        })
        .collect();
    let expected = [
        "api",
        "bootstrap",
        "certs",
        "domain",
        "failpoint",
        "grant",
        "lease",
        "queue",
        "webproxy",
    ];
    assert_eq!(reached, expected.into());
}

#[test]
fn one_crate_names_each_technology() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    let users = |needle: &str| -> Vec<&str> {
        let uses = members
            .iter()
            .filter(|(_, package)| list_direct_dependencies(package).contains(needle));
        uses.map(|(name, _)| name.as_str()).collect()
    };
    assert_eq!(users("async-nats"), ["queue"]);
    assert_eq!(users("redis"), ["lease"]);
    assert_eq!(users("landlock"), ["executor", "reporter"]);
    assert_eq!(users("tantivy"), ["retrieval"]);
    assert_eq!(users("tonic-prost"), ["proto"]);
}

#[test]
fn the_domain_is_data_and_pure_functions() {
    let metadata = load_metadata();
    let members = index_members(metadata);
    let allowed: BTreeSet<&str> = [
        "percent-encoding",
        "regex",
        "serde",
        "serde_json",
        "strum",
        "thiserror",
        "time",
    ]
    .into();
    let found = list_direct_dependencies(members["domain"]);
    assert!(found.is_subset(&allowed), "{found:?}");
    refuse_words(&find_repository_root().join("crates/domain/src"), &IMPURE);
    refuse_words(&find_repository_root().join("crates/pullrequest/src"), &IMPURE);
    refuse_words(&find_repository_root().join("crates/api/src/view"), &IMPURE);
    refuse_words(&find_repository_root().join("services/planner/src/run"), &IMPURE);
}

const IMPURE: [&str; 10] = [
    "tokio",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "SystemTime::now",
    "now_utc",
    "bootstrap::now",
    "reqwest",
    "async fn",
];

fn refuse_words(folder: &Path, words: &[&str]) {
    let files = rust_files(folder);
    assert!(!files.is_empty(), "{} has no sources", folder.display());
    for file in files {
        for (number, line) in production_lines(&file).iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in words {
                assert!(!code.contains(word), "{}:{}: {word}", file.display(), number + 1);
            }
        }
    }
}

#[test]
fn no_code_calls_a_merge_endpoint() {
    let words = [
        "/merge\"",
        "/merge`",
        "}/merge",
        "/merges",
        "mergePullRequest",
        "PullRequestAutoMerge",
        "merge_pull_request(",
    ];
    for folder in [
        "crates/github",
        "crates/jira",
        "crates/queue",
        "crates/git",
        "services",
        "cli",
    ] {
        for file in rust_files(&find_repository_root().join(folder)) {
            for (number, line) in production_lines(&file).iter().enumerate() {
                for word in words {
                    assert!(!line.contains(word), "{}:{}: {word}", file.display(), number + 1);
                }
            }
        }
    }
}

/// An error's text describes the error alone, so a log line must also contain the causes.
// A listener that only chooses a port is dropped within as many statements.
const MOST_STATEMENTS: usize = 3;

/// Returns variables of listeners on a port of the system's choice that the text drops to reuse the port.
fn list_dropped_listeners(text: &str) -> Vec<&str> {
    let chosen = text.split_inclusive(';').filter(|statement| {
        statement.contains("TcpListener::bind(")
            && (statement.contains(":0\"") || statement.contains("LOCALHOST, 0)"))
    });
    let names = chosen.filter_map(|statement| {
        let (_, rest) = statement.rsplit_once("let ")?;
        let (name, value) = rest.split_once('=')?;
        // The listener of such a statement is gone at its end.
        let is_gone = value.contains(".local_addr()");
        let name = name.trim().trim_start_matches("mut ");
        let (_, after) = text.split_once(statement)?;
        // A listener that is used before it is dropped serves a test itself.
        let dropped = format!("drop({name});");
        let is_dropped = after
            .split_inclusive(';')
            .take(MOST_STATEMENTS)
            .any(|next| next.contains(&dropped));
        (is_gone || is_dropped).then_some(name)
    });
    names.collect()
}

#[test]
fn free_ports_are_reserved_until_their_use() {
    // The system gives such a port to any connection, so `servers::free_port` chooses it, or port 1 refuses.
    for file in rust_files(&find_repository_root()) {
        let text = fs::read_to_string(&file).unwrap();
        let found = list_dropped_listeners(&text);
        let is_this = file.ends_with("e2e/tests/architecture.rs");
        assert!(found.is_empty() || is_this, "{}: {found:?}", file.display());
    }
    let bind = "let free = TcpListener::bind(\"127.0.0.1:0\").await?;";
    assert_eq!(list_dropped_listeners(&format!("{bind} drop(free);")), ["free"]);
    assert!(list_dropped_listeners(&format!("{bind} serve(free);")).is_empty());
    let gone = "let port = TcpListener::bind((LOCALHOST, 0))?.local_addr()?;";
    assert_eq!(list_dropped_listeners(gone), ["port"]);
}

#[test]
fn errors_are_logged_with_their_causes() {
    let mut seen = 0;
    for folder in ["crates", "services", "cli"] {
        for file in rust_files(&find_repository_root().join(folder)) {
            // The stand-ins and server launchers are for developers, who see the whole error.
            let is_for_tests = ["crates/testkit", "crates/servers", "/tests/"];
            if is_for_tests
                .iter()
                .any(|part| file.display().to_string().contains(part))
            {
                continue;
            }
            for (number, line) in production_lines(&file).iter().enumerate() {
                let place = format!("{}:{}", file.display(), number + 1);
                let bare = [
                    "%error,",
                    "%failure,",
                    "%trouble,",
                    "?error,",
                    "?failure,",
                    "?trouble,",
                ];
                let bare = bare.iter().find(|word| line.contains(**word));
                assert!(
                    bare.is_none(),
                    "{place}: {bare:?} instead of error = %format_error_chain(&error)"
                );
                seen += usize::from(line.contains("error = %format_error_chain("));
            }
        }
    }
    assert!(seen > 50, "the log lines are not read as expected: {seen}");
}

/// A copy of a limit in a text stays behind when the constant changes.
#[test]
fn texts_take_size_limits_from_constants() {
    let literal = regex::Regex::new(r#""[^"]*\b\d[\d,]* (?:KiB|MiB|GiB)\b"#).unwrap();
    assert!(literal.is_match(r#"format!("the pack is larger than 256 MiB")"#));
    assert!(!literal.is_match(r#"format!("the pack is larger than {} MiB", MAX >> 20)"#));
    for folder in ["crates", "services", "cli"] {
        for file in rust_files(&find_repository_root().join(folder)) {
            let path = file.display().to_string();
            if path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("crates/testkit") {
                continue;
            }
            for (number, line) in production_lines(&file).iter().enumerate() {
                let is_comment = line.trim_start().starts_with("//");
                assert!(
                    is_comment || !literal.is_match(line),
                    "{path}:{}: the text states a limit, which its constant must give: {line}",
                    number + 1
                );
            }
        }
    }
}

/// Files besides reports and effects that compose, store or send texts for users.
const WORDLESS: [&str; 7] = [
    "board.rs",
    "cleared_text.rs",
    "performer.rs",
    "retry.rs",
    "rounds.rs",
    "notification.rs",
    "effect_error.rs",
];

/// Returns string literals that read like sentences. Log messages, `Debug` and `Display` of errors, and
/// hidden marks in comments are left out.
fn find_sentences(lines: &[String]) -> Vec<String> {
    let mut in_log = false;
    let mut found = Vec::new();
    let code = lines.iter().filter(|line| !line.trim_start().starts_with("//"));
    for line in code {
        in_log |= line.contains("tracing::");
        if !in_log && !line.trim_start().starts_with("#[error(") {
            let words = line.split('"').skip(1).step_by(2);
            let is_sentence =
                |words: &&str| words.contains(' ') && !words.contains("<!--") && !words.contains("-->");
            found.extend(words.filter(is_sentence).map(str::to_owned));
        }
        in_log &= !line.trim_end().ends_with(';');
    }
    found
}

/// Every text for Jira or GitHub is an `Outgoing` from `message`, from the model, or from a stored copy of
/// either. The reason of a missing effect comes from `message` or from the service that refused.
#[test]
fn tracker_texts_come_from_message_module() {
    let folder = find_repository_root().join("services/reporter/src");
    let reasons = [
        "::Refused(",
        "::Failed(",
        "::Missing(",
        "::Unknown(",
        "detail = ",
        "detail: ",
    ];
    let mut seen = 0;
    for file in rust_files(&folder) {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        // An inspector's verdict is a detail that `message` quotes.
        if name.starts_with("message") || name.starts_with("inspect") || name.contains("test") {
            continue;
        }
        let text = production_lines(&file).join("\n");
        for reason in reasons {
            for (at, _) in text.match_indices(reason) {
                let said = text[at + reason.len()..].trim_start();
                let is_worded_here = said.starts_with('"') || said.starts_with("format!(");
                assert!(
                    !is_worded_here,
                    "{name}: {}",
                    said.lines().next().unwrap_or_default()
                );
                seen += 1;
            }
        }
        for maker in ["ClearedText::without_credentials(", "ClearedText::by_the_model("] {
            for (at, _) in text.match_indices(maker) {
                let said = text[at + maker.len()..].trim_start_matches('&');
                let known = [
                    "message::",
                    // It composes texts from `message`.
                    "reports::render_comment(",
                    "text)",
                    "body, SecretPlace::Body",
                    "label.clone(), SecretPlace::Label",
                ];
                let is_known = known.iter().any(|known| said.starts_with(known));
                assert!(is_known, "{name}: {}", said.lines().next().unwrap_or_default());
                seen += 1;
            }
        }
    }
    let mut wordless = rust_files(&folder.join("reports"));
    wordless.extend(rust_files(&folder.join("effects")));
    wordless.extend(WORDLESS.map(|name| folder.join(name)));
    for file in wordless {
        let is_test = file.to_string_lossy().contains("tests");
        let sentences = find_sentences(&production_lines(&file));
        assert!(
            is_test || sentences.is_empty(),
            "{}: {sentences:?}",
            file.display()
        );
    }
    assert!(seen > 40, "the reporter is not read as expected: {seen}");
}

#[test]
fn reporter_alone_opens_local_folders() {
    let openers = SERVICES.into_iter().filter(|service| {
        let files = rust_files(&find_repository_root().join("services").join(service).join("src"));
        // An operator who runs a tool of the executor by hand names its folder.
        let mut files = files
            .iter()
            .filter(|file| !file.ends_with("workspace/adoption.rs"));
        files.any(|file| {
            production_lines(file)
                .join("\n")
                .contains("FolderRepository::open(")
        })
    });
    assert_eq!(openers.collect::<Vec<_>>(), ["reporter"]);
}

#[test]
fn executor_has_no_secret_settings() {
    for file in rust_files(&find_repository_root().join("services/executor/src")) {
        if file.file_name().is_some_and(|name| name == "config.rs") {
            let text = production_lines(&file).join("\n");
            assert!(!text.contains("SecretString"), "{}", file.display());
        }
    }
}

/// `make test` does not run code in documentation, because rustdoc would start for each library.
#[test]
fn doc_comments_contain_no_code() {
    for file in rust_files(&find_repository_root()) {
        let text = fs::read_to_string(&file).unwrap();
        let mut is_open = false;
        for (number, line) in text.lines().map(str::trim_start).enumerate() {
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(kind) = doc.and_then(|doc| doc.trim_start().strip_prefix("```")) else {
                continue;
            };
            is_open = !is_open;
            assert!(
                !is_open || kind == "text",
                "{}:{}: write the example as a test, or mark the block as text",
                file.display(),
                number + 1
            );
        }
    }
}

#[test]
fn product_files_stay_below_line_limit() {
    let mut breaches = Vec::new();
    for file in rust_files(&find_repository_root()) {
        let name = file
            .strip_prefix(find_repository_root())
            .unwrap()
            .display()
            .to_string();
        let is_test = name.contains("/tests/") || name.ends_with("tests.rs") || name.starts_with("e2e/");
        let lines = production_lines(&file);
        if lines.len() > 600 && !is_test {
            breaches.push(format!(
                "{name}: {} lines without tests, at most 600",
                lines.len()
            ));
        }
    }
    assert!(breaches.is_empty(), "{breaches:#?}");
}

/// Returns the lines without test items.
fn production_lines(file: &Path) -> Vec<String> {
    without_test_items(&fs::read_to_string(file).unwrap())
}

fn without_test_items(text: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push(line.to_owned());
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let mut item = lines
            .by_ref()
            .skip_while(|line| line.trim_start().starts_with("#["));
        let first = item.next().unwrap_or_default();
        if !first.ends_with(';') {
            let _ = item.find(|line| *line == end);
        }
    }
    kept
}

#[test]
fn only_items_of_tests_escape_source_checks() {
    let text = "mod a;\n#[cfg(test)]\nmod tests;\nfn one() {}\n#[cfg(test)]\n#[allow(dead_code)]\nmod more {\n    fn x() {\n    }\n}\nfn two() {}";
    assert_eq!(without_test_items(text), ["mod a;", "fn one() {}", "fn two() {}"]);
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                open.push(path);
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn heavy_crates_have_one_copy() {
    let metadata = load_metadata();
    for name in [
        "tokio",
        "hyper",
        "reqwest",
        "rustls",
        "ring",
        "prost",
        "tonic",
        "axum",
        "opentelemetry",
        "opentelemetry_sdk",
        "git2",
    ] {
        let versions: Vec<_> = metadata
            .packages
            .iter()
            .filter(|package| package.name == name)
            .map(|package| &package.version)
            .collect();
        assert!(versions.len() == 1, "{name}: {versions:?}");
    }
}

#[test]
fn dependencies_have_allowed_source_and_license() {
    let deny = fs::read_to_string(find_repository_root().join("deny.toml")).unwrap();
    let allowed = extract_quoted_strings(&deny, "allow = [", "]");
    let banned = extract_quoted_strings(&deny, "deny = [", "\n]");
    assert!(
        allowed.len() > 5 && banned.len() == 3,
        "deny.toml is not read as expected"
    );
    let built = built_packages();
    for package in &load_metadata().packages {
        let Some(source) = &package.source else { continue };
        assert!(
            source.repr.starts_with("registry+"),
            "{} comes from {source}",
            package.name
        );
        if built.contains(&package.name.to_string()) {
            assert!(
                !banned.contains(&package.name.to_string()),
                "{} is banned",
                package.name
            );
            let licence = package.license.clone().unwrap_or_default();
            assert!(is_allowed(&licence, &allowed), "{}: {licence:?}", package.name);
        }
    }
}

/// Returns the packages that are built. `cargo metadata` also lists optional dependencies that no crate
/// enables.
fn built_packages() -> BTreeSet<String> {
    let tree = [
        "tree",
        "--locked",
        "--offline",
        "--workspace",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let output = std::process::Command::new(env!("CARGO"))
        .args(tree)
        .current_dir(find_repository_root())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 100, "the dependency tree is not read as expected");
    names
}

fn extract_quoted_strings(text: &str, from: &str, to: &str) -> Vec<String> {
    let section = text.split_once(from).unwrap().1.split_once(to).unwrap().0;
    section.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns true if every `AND` part of an SPDX expression has an allowed `OR` choice. Parentheses group
/// choices.
fn is_allowed(licence: &str, allowed: &[String]) -> bool {
    let choices = |part: &str| {
        part.replace(['(', ')'], " ")
            .replace('/', " OR ")
            .split(" OR ")
            .any(|choice| allowed.contains(&choice.trim().to_owned()))
    };
    licence.split(" AND ").all(choices)
}
