//! `journeyman setup` at a terminal with the stand-ins and a browser that clicks every button.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

use crate::{
    program::{PATIENCE, Program},
    stage::{Stage, replace_setting},
    terminal::at_terminal_with,
};

pub(crate) type Environment = Vec<(String, String)>;

/// Removes the settings that the setup must find, and adds a browser.
pub(crate) fn build_setup_environment(stage: &Stage, forgotten: &[&str]) -> Environment {
    let browser = stage.path().join("browser");
    fs::write(&browser, e2e::BROWSER).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let mut environment = stage.environment();
    environment.retain(|(name, _)| !forgotten.iter().any(|key| name.ends_with(key)));
    environment.push(("BROWSER".to_owned(), browser.display().to_string()));
    environment
}

pub(crate) const OF_GITHUB: [&str; 6] = [
    "GITHUB_READER__APP_ID",
    "GITHUB_READER__PRIVATE_KEY",
    "GITHUB_WRITER__APP_ID",
    "GITHUB_WRITER__PRIVATE_KEY",
    "INGEST__GITHUB_WEBHOOK_SECRETS",
    "RULES__COMMIT_AUTHOR",
];

pub(crate) fn read_settings(stage: &Stage) -> String {
    fs::read_to_string(stage.path().join("journeyman.toml")).unwrap()
}

pub(crate) fn assert_only_we_may_read_secrets(folder: &Path, count: usize) {
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), count, "{files:?}");
    for file in files {
        assert_eq!(
            file.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{file:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_github_takes_two_clicks() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_GITHUB);
    let before = "# ours\n[ingest] # polls\npoll_interval_s = 30 # often\n";
    fs::write(stage.path().join("journeyman.toml"), before).unwrap();
    let asked = [
        ("Organization that owns the Apps", "a b\r"),
        ("is not the name of an organization", ""),
        ("Organization that owns the Apps", "no-such-account\r"),
        ("has no organization", ""),
        ("Organization that owns the Apps", "acme\r"),
    ];
    let ran = at_terminal_with(&["setup", "github"], &asked, &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "1/2 reader   created \"acme-journeyman-reader\" (id 1001)",
        "2/2 writer   created \"acme-journeyman\" (id 1002)",
        "reader   acme-journeyman-reader is installed at acme",
        "writer   acme-journeyman is installed at acme",
        "acme-journeyman-reader[bot] reads, acme-journeyman[bot] writes",
        "author   commits are by acme-journeyman[bot] <",
        "0 failed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let text = read_settings(&stage);
    for part in [
        "# ours\n[ingest] # polls\npoll_interval_s = 30 # often\n",
        "own_accounts = [\"acme-journeyman-reader[bot]\", \"acme-journeyman[bot]\"]",
        "[github_reader]\napp_id = 1001\n",
        "[github_writer]\napp_id = 1002\n",
        "commit_author = \"acme-journeyman[bot] <",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !text.contains("PRIVATE KEY") && !ran.out.contains("PRIVATE KEY"),
        "{text}"
    );
    assert_only_we_may_read_secrets(&stage.path().join(".journeyman/secrets"), 3);

    let apps = stage.github.registered_apps();
    let again = stage.run(&["setup", "github"], &environment).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(!again.out.contains("created"), "{}", again.out);
    assert_eq!(
        (read_settings(&stage), stage.github.registered_apps()),
        (text, apps)
    );
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_setup_resumes_at_second_click() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_GITHUB);
    let browser = fs::read_to_string(stage.path().join("browser")).unwrap();
    // This user stops after the first click: the second form is never sent.
    let once = browser
        .replace("while (form", "if (form")
        .replace("for link", "sys.exit()\nfor link");
    fs::write(stage.path().join("browser"), once).unwrap();
    let command = [
        "setup",
        "github",
        "--org",
        "acme",
        "--public-url",
        "https://jm.example",
    ];
    let left = [("1/2 reader   created", "\u{3}")];
    let ran = at_terminal_with(&command, &left, &environment, stage.path()).await;
    assert!(ran.code == Some(130) && !ran.out.contains("2/2"), "{ran:?}");
    let text = read_settings(&stage);
    assert!(
        text.contains("[github_reader]") && !text.contains("[github_writer]"),
        "{text}"
    );

    // The same state as after a crash between the key and the settings.
    fs::remove_file(stage.path().join("journeyman.toml")).unwrap();
    fs::write(stage.path().join("browser"), browser).unwrap();
    let opened = format!(
        "{}/apps/acme-journeyman-reader/installations/new",
        stage.github.api_url()
    );
    reqwest::get(opened).await.unwrap();
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("reader   its key was saved already (id 1001)"),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .contains("1/1 writer   created \"acme-journeyman\" (id 1002)"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("github reader events   subscribed to all 11"),
        "{}",
        ran.out
    );
    stage.assert_kept_protocols();
}

/// The stand-in's Apps belong to acme, so the returned code is of an App of another owner.
#[tokio::test(flavor = "multi_thread")]
async fn app_of_other_owner_is_not_kept() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_GITHUB);
    let command = ["setup", "github", "--org", "other"];
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let refused = "that came back is of \"acme\" and not of \"other\": nothing of it was kept";
    assert!(ran.err.contains(refused), "{ran:?}");
    assert!(!ran.out.contains("created"), "{ran:?}");
    for path in ["journeyman.toml", ".journeyman/secrets"] {
        assert!(!stage.path().join(path).exists(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_without_terminal_names_missing_flag() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_GITHUB);
    let ran = stage.run(&["setup", "github"], &environment).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let expected = "journeyman: --org is missing, and there is no terminal to ask at";
    assert_eq!(ran.complaints(), [expected]);
    let ran = stage.run(&["setup"], &environment).await;
    assert!(
        ran.code == Some(2) && ran.err.contains("`journeyman setup github`"),
        "{ran:?}"
    );
    let other = replace_setting(&environment, "GITHUB_READER__API_URL", "http://127.0.0.1:1");
    let ran = stage.run(&["setup", "github", "--org", "a b"], &other).await;
    assert_eq!(
        ran.complaints(),
        ["journeyman: --org: \"a b\" is not the name of an organization"]
    );
    assert!(
        !stage.path().join("journeyman.toml").exists(),
        "nothing was changed"
    );
}

pub(crate) const OF_JIRA: [&str; 8] = [
    "JIRA_READER__BASE_URL",
    "JIRA_READER__EMAIL",
    "JIRA_READER__API_TOKEN",
    "JIRA_WRITER__BASE_URL",
    "JIRA_WRITER__EMAIL",
    "JIRA_WRITER__API_TOKEN",
    "INGEST__JIRA_WEBHOOK_SECRETS",
    "INGEST__JIRA_TRIGGER_GROUP",
];

/// Lines that a user types to set up both accounts.
fn two_accounts(site: &str) -> Vec<(&'static str, String)> {
    let typed = |text: &str| format!("{text}\r");
    vec![
        ("Jira site", typed(site)),
        (
            "Address of the account that is the reader",
            typed(testkit::jira::READER_EMAIL),
        ),
        ("API token of reader@", typed(testkit::jira::READER_API_TOKEN)),
        ("Day on which this token ends", typed("2099-01-31")),
        (
            "Address of the account that is the writer",
            typed(testkit::jira::WRITER_EMAIL),
        ),
        ("API token of writer@", typed(testkit::jira::WRITER_API_TOKEN)),
        ("Day on which this token ends", typed("")),
        ("Jira group whose members may ask for work", typed("")),
    ]
}

pub(crate) fn borrow_steps<'a>(typed: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    typed.iter().map(|(text, keys)| (*text, keys.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_jira_forgets_administrators_token() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_JIRA);
    let mut typed = two_accounts(&stage.jira.url());
    typed.push((
        "Address of a Jira administrator",
        format!("{}\r", testkit::jira::ADMIN_EMAIL),
    ));
    typed.push((
        "used once and not kept",
        format!("{}\r", testkit::jira::ADMIN_API_TOKEN),
    ));
    let command = ["setup", "jira", "--public-url", "https://jm.example"];
    let ran = at_terminal_with(&command, &borrow_steps(&typed), &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let registered = "webhook  registered: https://jm.example/webhooks/jira for ENG";
    assert!(
        ran.out.contains(registered) && ran.out.contains("0 failed"),
        "{}",
        ran.out
    );
    let hook = (
        "https://jm.example/webhooks/jira".to_owned(),
        "project in (\"ENG\")".to_owned(),
    );
    assert_eq!(stage.jira.registered_webhooks(), std::slice::from_ref(&hook));
    let secrets = stage.path().join(".journeyman/secrets");
    assert_only_we_may_read_secrets(&secrets, 3);
    for part in [
        "groups   1 journeyman-users",
        "asks     members of the Jira group journeyman-users",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let text = read_settings(&stage);
    assert!(
        text.contains("jira_trigger_group = \"journeyman-users\""),
        "{text}"
    );
    assert_eq!(text.matches("expires = \"2099-01-31\"").count(), 1, "{text}");
    assert!(
        ran.out
            .contains("ok    jira reader token      it ends on 2099-01-31"),
        "{}",
        ran.out
    );
    let kept = fs::read_dir(&secrets)
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let all = kept.collect::<String>() + &text;
    assert!(all.contains(testkit::jira::READER_API_TOKEN) && !all.contains(testkit::jira::ADMIN_API_TOKEN));
    for token in [testkit::jira::READER_API_TOKEN, testkit::jira::ADMIN_API_TOKEN] {
        assert!(!ran.out.contains(token) && !text.contains(token), "{}", ran.out);
    }

    let token = stage.path().join("admin.token");
    fs::write(&token, testkit::jira::ADMIN_API_TOKEN).unwrap();
    let token = token.display().to_string();
    let admin = [
        "--admin-email",
        testkit::jira::ADMIN_EMAIL,
        "--admin-token-file",
        &token,
    ];
    let again = stage.run(&[&command[..], &admin].concat(), &environment).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.out.contains("webhook  brought up to date"), "{}", again.out);
    assert_eq!(
        (stage.jira.registered_webhooks(), read_settings(&stage)),
        (vec![hook], text)
    );
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_jira_answers_are_asked_again() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_JIRA);
    let line = |text: &str| format!("{text}\r");
    let nothing = String::new;
    let (reader, writer) = (
        "Address of the account that is the reader",
        "Address of the account that is the writer",
    );
    let typed = vec![
        ("Jira site", line("nowhere")),
        ("is not an address such as", nothing()),
        ("Jira site", line(&stage.jira.url())),
        (reader, line("reader")),
        ("is not a mail address", nothing()),
        (reader, line(testkit::jira::READER_EMAIL)),
        ("API token of reader@", line("")),
        ("this answer is empty", nothing()),
        ("API token of reader@", line("wrong-token")),
        ("jira refused the credentials", nothing()),
        // The mail address is proposed again.
        (reader, line("")),
        ("API token of reader@", line(testkit::jira::READER_API_TOKEN)),
        ("Day on which this token ends", line("soon")),
        ("is not a day of the form", nothing()),
        ("Day on which this token ends", line("")),
        (writer, line(testkit::jira::READER_EMAIL)),
        ("API token of reader@", line(testkit::jira::READER_API_TOKEN)),
        ("they must be two accounts", nothing()),
        (writer, line(testkit::jira::WRITER_EMAIL)),
        ("API token of writer@", line(testkit::jira::WRITER_API_TOKEN)),
        ("Day on which this token ends", line("")),
        ("Jira group whose members may ask for work", line("nobody")),
        ("Jira has no such group", nothing()),
        ("Jira group whose members may ask for work", line("1")),
        (
            "Address of a Jira administrator",
            line(testkit::jira::WRITER_EMAIL),
        ),
        ("used once and not kept", line(testkit::jira::WRITER_API_TOKEN)),
        ("Only Jira administrators can manage webhooks", nothing()),
        (
            "Address of a Jira administrator",
            line(testkit::jira::ADMIN_EMAIL),
        ),
        ("used once and not kept", line(testkit::jira::ADMIN_API_TOKEN)),
    ];
    let command = ["setup", "jira", "--public-url", "https://jm.example"];
    let ran = at_terminal_with(&command, &borrow_steps(&typed), &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "asks     members of the Jira group journeyman-users",
        "webhook  registered: ",
        "0 failed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(!ran.out.contains("wrong-token"), "{}", ran.out);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_jira_shows_refused_call_and_remedy() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &[]);
    let token = stage.path().join("token");
    fs::write(&token, testkit::jira::WRITER_API_TOKEN).unwrap();
    let token = token.display().to_string();
    let command = [
        "setup",
        "jira",
        "--public-url",
        "https://jm.example",
        "--admin-token-file",
        &token,
    ];
    let admin = [&command[..], &["--admin-email", testkit::jira::WRITER_EMAIL]].concat();
    let ran = stage.run(&admin, &environment).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in [
        "GET /rest/webhooks/1.0/webhook: jira forbids it: Only Jira administrators can manage webhooks.",
        "register the webhook https://jm.example/webhooks/jira at ",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let one = [
        "--reader-email",
        testkit::jira::WRITER_EMAIL,
        "--reader-token-file",
        &token,
    ];
    let ran = stage
        .run(&[&["setup", "jira"], &one[..]].concat(), &environment)
        .await;
    assert_eq!(
        ran.complaints(),
        ["journeyman: reader and writer are both Journeyman; they must be two accounts"]
    );
    let wrong = stage.run(&["setup", "jira", "--data-center"], &environment).await;
    assert!(
        wrong.code == Some(1) && wrong.err.contains("is a Jira Cloud; leave --data-center out"),
        "{wrong:?}"
    );
    assert_eq!(stage.jira.registered_webhooks(), []);
    assert!(
        !stage
            .path()
            .join(".journeyman/secrets/jira_reader.token")
            .exists()
    );
}

const OF_THE_MODEL: [&str; 4] = [
    "MODEL__DIALECT",
    "MODEL__NAME",
    "MODEL__BASE_URL",
    "MODEL__API_KEY",
];

#[tokio::test(flavor = "multi_thread")]
async fn setup_model_verifies_key_before_storing() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_THE_MODEL);
    let url = stage.model.url();
    let command = ["setup", "model", "--dialect", "anthropic", "--base-url", &url];
    let line = |text: &str| format!("{text}\r");
    let key = line(testkit::model::MODEL_API_KEY);
    // A flag answers for every round, so that a refused key ends the command only without a terminal.
    let typed = [
        ("The model", line("scripted-model")),
        ("API key", line("wrong")),
        ("scripted-model does not answer", String::new()),
        ("[scripted-model]", line("")),
        ("API key", "\u{3}".to_owned()),
    ];
    let ran = at_terminal_with(&command, &borrow_steps(&typed), &environment, stage.path()).await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let wrong_said = ran.out;
    assert!(
        !stage.path().join("journeyman.toml").exists() && !stage.path().join(".journeyman/secrets").exists()
    );
    let typed = [
        ("Provider of the model", line("claude")),
        (
            "is not one of anthropic, openai, openai-responses, bedrock",
            String::new(),
        ),
        ("Provider of the model", line("")),
        ("The model", line("scripted-model")),
        ("Address of the provider", line("models")),
        ("is not an address such as", String::new()),
        ("[https://api.anthropic.com]", line(&url)),
        ("API key", line("wrong")),
        ("scripted-model does not answer", String::new()),
        ("[anthropic]", line("")),
        ("[scripted-model]", line("")),
        ("Address of the provider", line("")),
        ("API key", key),
    ];
    let command = ["setup", "model"];
    let ran = at_terminal_with(&command, &borrow_steps(&typed), &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("its price is not known") && ran.out.contains("0 failed"),
        "{}",
        ran.out
    );
    let said = wrong_said + &ran.out;
    assert!(
        !said.contains(testkit::model::MODEL_API_KEY) && !said.contains("wrong"),
        "{said}"
    );
    assert_only_we_may_read_secrets(&stage.path().join(".journeyman/secrets"), 1);
    let text = read_settings(&stage);
    assert!(
        text.starts_with("[model]\ndialect = \"anthropic\"\nname = \"scripted-model\"\n"),
        "{text}"
    );
    let again = stage.run(&["setup", "model"], &environment).await;
    assert_eq!((again.code, read_settings(&stage)), (Some(0), text), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_model_keeps_nothing_of_other_dialect() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_THE_MODEL);
    let old = "[model]\ndialect = \"anthropic\"\nname = \"old-model\"\nbase_url = \"http://127.0.0.1:1\"\n\
               api_key = \"old-key\"\nthinking = \"adaptive\"\nmax_output_tokens = 8000\n";
    fs::write(stage.path().join("journeyman.toml"), old).unwrap();
    let key = stage.path().join("key");
    fs::write(&key, testkit::model::MODEL_API_KEY).unwrap();
    let url = stage.model.url();
    let other = [
        "setup",
        "model",
        "--dialect",
        "openai",
        "--name",
        "scripted-model",
        "--base-url",
        &url,
    ];
    let refused = stage.run(&other, &environment).await;
    assert!(
        refused.code == Some(2) && refused.err.contains("--api-key-file is missing"),
        "{refused:?}"
    );
    assert_eq!(read_settings(&stage), old);
    let with_key = [&other[..], &["--api-key-file", key.to_str().unwrap()]].concat();
    let set = stage.run(&with_key, &environment).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let text = read_settings(&stage);
    for part in [
        "\"openai\"",
        "\"scripted-model\"",
        url.as_str(),
        "max_output_tokens = 8000",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["anthropic", "old-model", "127.0.0.1:1\"", "old-key", "thinking"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_configures_everything_for_first_ticket() {
    let stage = Stage::start("").await;
    let forgotten = [&OF_GITHUB[..], &OF_JIRA, &OF_THE_MODEL, &["INGEST__OWN_ACCOUNTS"]].concat();
    let mut environment = build_setup_environment(&stage, &forgotten);
    for (name, value) in [
        ("ANTHROPIC_API_KEY", testkit::model::MODEL_API_KEY.to_owned()),
        ("ANTHROPIC_BASE_URL", stage.model.url()),
    ] {
        environment.push((name.to_owned(), value));
    }
    let mut typed = vec![
        ("Work with repositories of GitHub?", "y".to_owned()),
        ("Organization that owns the Apps", "acme\r".to_owned()),
        ("Take tickets from Jira?", "y".to_owned()),
    ];
    typed.extend(two_accounts(&stage.jira.url()));
    let ran = at_terminal_with(&["setup"], &borrow_steps(&typed), &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("claude-sonnet-5-5 answers; its price is known"),
        "{}",
        ran.out
    );
    assert!(
        !ran.out.contains("FAIL") && ran.out.contains("0 failed"),
        "{}",
        ran.out
    );
    let text = read_settings(&stage);
    let again = stage.run(&["setup"], &environment).await;
    assert_eq!(
        (again.code, read_settings(&stage)),
        (Some(0), text.clone()),
        "{again:?}"
    );
    // The stories start services with the written settings and those of tests alone.
    let written = list_setting_variables(&text);
    let of_stories: BTreeSet<String> = stage.environment().into_iter().map(|(name, _)| name).collect();
    let needed = [
        "RULES__DIR",
        "TELEMETRY__LOG_FILTER",
        "INGEST__CHECKS_SETTLE_S",
        "PLANNER__RETRY_BASE_MS",
    ];
    let needed: BTreeSet<String> = needed.map(|key| format!("JOURNEYMAN__{key}")).into();
    let ours: BTreeSet<String> = of_stories.difference(&needed).cloned().collect();
    // Expiry dates of tokens differ, and so do addresses, which the stand-ins replace.
    let may_differ = |name: &str| {
        name.ends_with("__EXPIRES") || name.ends_with("__API_URL") || name.ends_with("__GIT_URL")
    };
    let differ: Vec<&String> = written
        .symmetric_difference(&ours)
        .filter(|name| !may_differ(name))
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");

    // The first ticket works with these settings alone.
    for service in ["INGEST", "PLANNER", "EXECUTOR", "REPORTER", "EGRESS", "CONSOLE"] {
        environment = replace_setting(&environment, &format!("{service}__LISTEN"), "127.0.0.1:0");
    }
    environment = replace_setting(&environment, "INGEST__POLL_INTERVAL_S", "1");
    let mut up = Program::start("journeyman", &["up"], &environment, stage.path());
    up.until_output_contains("console at ").await;
    let key = stage.file_ticket();
    stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let opened = testkit::poll_until("a pull request", PATIENCE, async || {
        let pulls = stage.github.pull_requests(testkit::fixture::REPOSITORY);
        pulls.into_iter().next()
    });
    let opened = opened.await.unwrap();
    let console = up
        .out()
        .split("console at ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .to_owned();
    for part in [
        format!("]({console}/runs/jira%3A{key}%40"),
        format!("[how this works]({console}/reviewers)"),
    ] {
        assert!(opened.body.contains(&part), "{part}: {}", opened.body);
    }
    let page = reqwest::get(format!("{console}/reviewers"))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(page.contains("/stop") && page.contains("For reviewers"), "{page}");
    let commits = stage
        .github
        .commits(testkit::fixture::REPOSITORY, opened.number)
        .unwrap();
    assert!(
        commits[0].author.starts_with("acme-journeyman[bot] <"),
        "{commits:?}"
    );
    up.signal(rustix::process::Signal::TERM);
    let ended = up.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    stage.assert_kept_protocols();
}

/// Returns the settings of a file as variables.
fn list_setting_variables(text: &str) -> BTreeSet<String> {
    let sections: toml::Table = text.parse().unwrap();
    let keys = sections.iter().flat_map(|(section, keys)| {
        let keys = keys.as_table().unwrap().keys();
        keys.map(move |key| format!("JOURNEYMAN__{section}__{key}").to_uppercase())
    });
    keys.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn github_alone_is_a_complete_configuration() {
    let stage = Stage::start("").await;
    let rules = "repo: {owner: acme, name: shop}\n";
    fs::write(stage.path().join("configs/shop.yaml"), rules).unwrap();
    let environment = build_setup_environment(&stage, &OF_JIRA);
    let ran = stage.run(&["doctor"], &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("skip  Jira"), "{}", ran.out);
    fs::write(
        stage.path().join("configs/shop.yaml"),
        format!("{rules}jira: {{project_key: ENG}}\n"),
    )
    .unwrap();
    let ran = stage.run(&["doctor"], &environment).await;
    let failed = "the section is missing -> `journeyman setup jira`";
    assert!(ran.code == Some(1) && ran.out.contains(failed), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_adds_webhook_to_existing_app() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &[]);
    let command = ["setup", "github", "--public-url", "https://jm.example"];
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = "webhook  https://jm.example/webhooks/github; doctor says which events";
    assert!(ran.out.contains(said), "{}", ran.out);
    let hook = stage.github.hook_of(testkit::github::READER_APP_ID).unwrap();
    assert_eq!(
        (
            hook.url.as_str(),
            hook.content_type.as_str(),
            hook.insecure_ssl.as_str()
        ),
        ("https://jm.example/webhooks/github", "json", "0")
    );
    let secret = environment
        .iter()
        .find(|(name, _)| name.ends_with("GITHUB_WEBHOOK_SECRETS"));
    assert_eq!(hook.secret, secret.unwrap().1);
    assert!(stage.github.hook_of(testkit::github::WRITER_APP_ID).is_none());
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_calls_gateway_and_shows_site() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_JIRA);
    let mut command = vec!["setup", "jira", "--site", "https://acme.atlassian.net/"];
    let gateway = stage.jira.url();
    command.extend(["--gateway", &gateway]);
    let place = |name: &str, token: &str| {
        let path = stage.path().join(name);
        fs::write(&path, token).unwrap();
        path.display().to_string()
    };
    let reader = place("reader", testkit::jira::READER_API_TOKEN);
    let writer = place("writer", testkit::jira::WRITER_API_TOKEN);
    command.extend([
        "--reader-email",
        testkit::jira::READER_EMAIL,
        "--reader-token-file",
        &reader,
    ]);
    command.extend([
        "--writer-email",
        testkit::jira::WRITER_EMAIL,
        "--writer-token-file",
        &writer,
    ]);
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let missing = "journeyman: --requesters is missing, and there is no terminal to ask at";
    assert_eq!(ran.complaints(), [missing]);
    let nobody = [&command[..], &["--requesters", "nobody"]].concat();
    let ran = stage.run(&nobody, &environment).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let others = "--requesters nobody: Jira has no such group; it has journeyman-users";
    assert!(ran.err.contains(others), "{ran:?}");
    command.extend(["--requesters", "*"]);
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = read_settings(&stage);
    assert_eq!(
        text.matches("site_url = \"https://acme.atlassian.net\"").count(),
        2,
        "{text}"
    );
    assert_eq!(
        text.matches(&format!("base_url = \"{gateway}\"")).count(),
        2,
        "{text}"
    );
    let again = stage.run(&["setup", "jira"], &environment).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(read_settings(&stage), text, "once more changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_cluster_secrets_never_replaces_file() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &[]);
    let command = ["setup", "kubernetes", "--namespace", "jm"];
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let file = stage.path().join("journeyman-secrets.yaml");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    let text = fs::read_to_string(&file).unwrap();
    let token = fs::read_to_string(stage.path().join(".journeyman/secrets/operator.token")).unwrap();
    for (secret, is_in_the_file) in [
        (testkit::jira::READER_API_TOKEN, true),
        (testkit::jira::WRITER_API_TOKEN, true),
        (testkit::model::MODEL_API_KEY, true),
        (token.trim(), false),
    ] {
        assert_eq!(text.contains(secret), is_in_the_file, "{text}");
        assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{ran:?}");
    }
    assert_eq!(text.matches("namespace: jm}").count(), 5, "{text}");
    assert_only_we_may_read_secrets(&stage.path().join(".journeyman/secrets"), 2);
    let again = stage.run(&command, &environment).await;
    assert!(
        again.code == Some(1) && again.err.contains("is there already"),
        "{again:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    // The operator's token and the backup's key belong to the cluster of the file.
    let print = [&command[..], &["--output", "-"]].concat();
    let refused = stage.run(&print, &environment).await;
    assert!(
        refused.code == Some(1)
            && refused.out.is_empty()
            && refused.err.contains("operator.token is there already"),
        "{refused:?}"
    );
    let kept = fs::read_to_string(stage.path().join(".journeyman/secrets/operator.token")).unwrap();
    assert_eq!(kept, token);
    let elsewhere = [&["setup", "--data", "second"][..], &print[1..]].concat();
    let printed = stage.run(&elsewhere, &environment).await;
    assert!(
        printed.code == Some(0) && printed.out.starts_with("apiVersion: v1\nkind: Secret\n"),
        "{printed:?}"
    );
    assert!(
        printed.out.lines().all(|line| !line.starts_with("public")),
        "what is applied is Secrets alone: {}",
        printed.out
    );
}

/// Script that sends the form of a file, as a browser on another machine does, and prints GitHub's redirect
/// address.
const ELSEWHERE: &str = r#"
import html, re, sys, urllib.error, urllib.parse, urllib.request
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None
form = re.search(r'action="([^"]*)".*name="manifest" value="([^"]*)"', open(sys.argv[1]).read())
action, manifest = map(html.unescape, form.groups())
try:
    urllib.request.build_opener(Stay).open(action, urllib.parse.urlencode({"manifest": manifest}).encode(), timeout=30)
except urllib.error.HTTPError as error:
    print(error.headers["location"], end="\r")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn setup_elsewhere_uses_file_and_pasted_address() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &OF_GITHUB);
    fs::write(stage.path().join("elsewhere.py"), ELSEWHERE).unwrap();
    let api = stage.github.api_url();
    let paste = |role: &str| format!("!python3 elsewhere.py .journeyman/setup-{role}.html");
    let install = |slug: &str| format!("!curl -s {api}/apps/{slug}/installations/new >/dev/null");
    let typed = [
        ("setup-reader.html on another machine", "no address\r".to_owned()),
        ("that is not the address with code and state", paste("reader")),
        ("setup-writer.html on another machine", paste("writer")),
        ("2/2 writer", install("acme-journeyman-reader")),
        (
            "reader   acme-journeyman-reader is installed",
            install("acme-journeyman"),
        ),
    ];
    let command = ["setup", "github", "--org", "acme", "--no-browser"];
    let ran = at_terminal_with(&command, &borrow_steps(&typed), &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["1/2 reader   created", "2/2 writer   created", "0 failed"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}
