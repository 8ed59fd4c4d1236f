//! Plants secrets wherever an executor could have some, and searches for them in all output.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    path::Path,
    process::{Command, Stdio},
};

use super::{process::Process, *};

/// Sandbox level at which attempts run.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Full,
    Pod,
    Runner,
}

/// Planted secrets, which share one word, with the output so far.
struct Canary {
    word: String,
    tokens: Vec<String>,
    seen: Vec<(String, String)>,
}

impl Canary {
    fn new() -> Self {
        // A random word, because commands may be able to read this file.
        let word = format!("{:016x}", RandomState::new().build_hasher().finish());
        Self {
            word,
            tokens: vec!["gate-grant".to_owned()],
            seen: Vec::new(),
        }
    }

    fn value(&self, of: &str) -> String {
        format!("canary-{of}-{}", self.word)
    }

    fn plant(&self, path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        fs::write(
            path,
            format!("def canary():\n    return '{}'\n", self.value(&name)),
        )
        .unwrap();
    }

    fn saw(&mut self, what: impl Into<String>, text: impl Into<String>) {
        self.seen.push((what.into(), text.into()));
    }

    /// Returns the leaked secrets with the place of each leak.
    fn found(&self) -> Vec<String> {
        let secrets = || self.tokens.iter().chain([&self.word]);
        let found = self.seen.iter().filter_map(|(what, text)| {
            let at = secrets().find_map(|secret| text.find(secret.as_str()))?;
            let around: String = text[..at].chars().rev().take(80).collect();
            let around: String = around.chars().rev().collect();
            Some(format!("{what}: …{around}"))
        });
        found.collect()
    }

    async fn call(&mut self, session: &Session, name: &str, input: Value) -> String {
        let id = format!("call-{}", self.seen.len());
        let result = session.call(&id, name, input.clone()).await;
        self.saw(format!("{name} {input}"), format!("{result:?}"));
        result.content
    }
}

/// Returns an input with this path for every tool that takes a path.
fn build_path_inputs(path: &str) -> Vec<(&'static str, Value)> {
    let edits = "<<<<<<< SEARCH\ndef canary():\n    return ''\n=======\nx\n>>>>>>> REPLACE";
    let patch = format!(
        "--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n def canary():\n-    return ''\n+    return 1\n"
    );
    vec![
        ("read_file", json!({ "path": path })),
        ("list_directory", json!({ "path": path })),
        ("outline", json!({ "path": path })),
        ("edit_file", json!({ "path": path, "edits": edits })),
        ("apply_patch", json!({ "patch": patch })),
        (
            "search_content",
            json!({ "pattern": "canary", "file_pattern": path }),
        ),
        ("search_files", json!({ "pattern": path })),
        ("create_branch", json!({ "branch_name": path })),
    ]
}

/// An executor that is surrounded by secrets.
struct Planted {
    world: World,
    process: Process,
    places: Vec<PathBuf>,
    _runner: Option<runners::Runner>,
}

async fn start_planted_process(level: Level, canary: &Canary) -> Planted {
    let mut runner = None;
    let mut places = Vec::new();
    let started = process::start_process("debug", |folder, lines, command| {
        for path in [
            "hidden/file.py",
            "own/beside.py",
            "home/.ssh/id_ed25519",
            "home/.netrc",
            "home/.git-credentials",
            "home/.aws/credentials",
        ] {
            canary.plant(&folder.join(path));
            places.push(folder.join(path));
        }
        lines.push_str(&format!("hidden = [{:?}]\n", folder.join("hidden")));
        lines.push_str(match level {
            Level::Full => "slots = 2\n",
            // At this level the kernel does not limit root's processes.
            Level::Pod => "slots = 2\nwithout = [\"namespaces\"]\nallow_unlimited_processes = true\n",
            Level::Runner => "slots = 1\nwithout = [\"namespaces\"]\n",
        });
        if level == Level::Runner {
            let (started, socket) = runners::start_runner(folder);
            lines.push_str(&format!("runner_socket = {socket:?}\nmin_level = \"L2\"\n"));
            runner = Some(started);
        }
        let log = fs::File::create(folder.join("own.log")).unwrap();
        command
            .env("HOME", folder.join("home"))
            .env("GITHUB_TOKEN", canary.value("environment"))
            .env("JOURNEYMAN__MODEL__API_KEY", canary.value("settings"))
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null());
    });
    let (world, process) = started.await;
    Planted {
        world,
        process,
        places,
        _runner: runner,
    }
}

/// Opens a workspace of another repository that contains a secret. Its path is returned unless the runner
/// holds it.
async fn open_another(planted: &mut Planted, canary: &mut Canary, level: Level) {
    let world = &planted.world;
    let remote = world.folder.path().join("remote/acme");
    let copied = Command::new("cp")
        .arg("-r")
        .args([remote.join("shop.git"), remote.join("other.git")])
        .status();
    assert!(copied.unwrap().success());
    let fence = RunFence::new(1, 5, 1);
    let grant = |workspace: Option<String>| Grant {
        audience: GrantAudience::Executor,
        run: build_run_id(2),
        repository: "acme/other".parse().unwrap(),
        workspace,
        fence,
        network: Vec::new(),
    };
    let sign = |grant: Grant| {
        world
            .signer
            .sign(&grant, bootstrap::read_wall_clock())
            .unwrap()
            .expose_secret()
            .to_owned()
    };
    let spec = WorkspaceSpec {
        run_id: build_run_id(2).to_string(),
        fence: Some(fence.into()),
        repository: "acme/other".to_owned(),
        gate_url: world.gate.url.clone(),
        gate_grant: "gate-grant".to_owned(),
        base_branch: "main".to_owned(),
        ..WorkspaceSpec::default()
    };
    let token = sign(grant(None));
    let opened = world
        .client
        .clone()
        .open_workspace(add_bearer_token(&token, open_request(spec, Vec::new())))
        .await;
    let id = opened.unwrap().into_inner().workspace_id;
    let session = Session {
        client: world.client.clone(),
        token: sign(grant(Some(id.clone()))),
        fence,
        id,
    };
    let secret = json!({ "path": "secret.py", "content": format!("def canary():\n    return '{}'\n", canary.value("other")) });
    session.ok("c1", "write_file", secret).await;
    canary.tokens.extend([token, session.token.clone()]);
    if level == Level::Runner {
        session.close().await;
        planted
            .places
            .push(world.folder.path().join("runner/work/1/tree/secret.py"));
    } else {
        let workspaces = fs::read_dir(world.folder.path().join("own/workspaces")).unwrap();
        let places = workspaces.map(|entry| entry.unwrap().path().join("tree/secret.py"));
        planted.places.extend(places.filter(|place| place.exists()));
        assert!(
            planted
                .places
                .iter()
                .any(|place| place.ends_with("tree/secret.py"))
        );
    }
}

/// Returns commands that search for the secrets everywhere.
fn build_search_commands(planted: &Planted) -> Vec<String> {
    let folder = planted.world.folder.path().display();
    let executor = planted.process.0.id();
    let places: Vec<_> = planted
        .places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    let places = places.join(" ");
    [
        "env; set; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; true".to_owned(),
        format!("cat /proc/{executor}/environ /proc/{executor}/maps; ls -l /proc/{executor}/fd /proc/{executor}/cwd/; true"),
        format!("cat {places}; head {places}; tail -c 99 {places}; cp {places} .; ln {places} .; tar cf all.tar {places}; true"),
        format!("grep -rhs '[c]anary' {folder} \"$HOME\" \"$TMPDIR\" \"$(git rev-parse --git-common-dir)\" /dev/shm /run /var/tmp; ls -laR {folder}; true"),
        format!(
            "git config -l --show-origin; git remote -v; git config --system -l; git -C {folder}/own/mirrors/acme/shop.git config -l; \
             G=$(git rev-parse --git-common-dir); cat $G/config $G/objects/info/alternates; cat $(cat $G/objects/info/alternates)/../config; \
             printf 'protocol=https\\nhost=github.com\\n\\n' | timeout 5 git credential fill; true"
        ),
        "python3 -c 'import os, pwd; print(dict(os.environ)); print(open(pwd.getpwuid(os.getuid()).pw_dir + \"/.netrc\").read())'; true".to_owned(),
    ]
    .into()
}

async fn attempt_secret_leaks(planted: &Planted, canary: &mut Canary) {
    let world = &planted.world;
    let look = build_search_commands(planted);
    let opened = world.open_with(1, |spec| {
        spec.egress_url = "http://127.0.0.1:1".to_owned();
        spec.egress_grant = canary.value("egress");
        spec.setup = vec![look.join("; "), "false".to_owned()];
    });
    let (session, answer) = opened.await;
    let setup = answer.setup.clone().unwrap();
    assert!(
        setup.failed && setup.log_tail.contains("No such file") || setup.log_tail.contains("denied"),
        "{setup:?}"
    );
    canary.saw("setup", format!("{answer:?}"));
    canary.tokens.push(session.token.clone());
    let mirror = world.folder.path().join("own/mirrors/acme/shop.git/config");
    let remote = format!(
        "[remote \"origin\"]\n\turl = https://x:{}@github.com/acme/shop\n",
        canary.value("remote")
    );
    fs::write(&mirror, fs::read_to_string(&mirror).unwrap() + &remote).unwrap();
    for command in look {
        let said = canary
            .call(&session, "run_command", json!({ "command": command }))
            .await;
        assert!(said.starts_with("exit code: 0"), "{said}");
    }
    let executor = planted.process.0.id();
    let mut paths: Vec<_> = planted
        .places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    paths.extend([
        mirror.display().to_string(),
        format!("/proc/{executor}/environ"),
        "/proc/self/environ".to_owned(),
    ]);
    let links: Vec<_> = paths
        .iter()
        .enumerate()
        .map(|(number, path)| format!("ln -s {path} leak{number}.py"))
        .collect();
    canary
        .call(&session, "run_command", json!({ "command": links.join("; ") }))
        .await;
    for (number, path) in paths.iter().enumerate() {
        let ways = [
            path.clone(),
            format!("{}{path}", "../".repeat(12)),
            format!("leak{number}.py"),
            format!("/proc/self/root{path}"),
        ];
        for (name, input) in ways.iter().flat_map(|path| build_path_inputs(path)) {
            canary.call(&session, name, input).await;
        }
    }
    for (name, input) in [
        ("search_content", json!({ "pattern": "canary" })),
        ("outline", json!({})),
        ("write_file", json!({ "path": "mine.txt", "content": "mine\n" })),
        ("diff", json!({})),
        ("commit_changes", json!({ "message": "All of it" })),
        ("write_file", json!({ "path": "mine.txt", "content": "again\n" })),
        ("undo", json!({})),
        ("diff", json!({})),
    ] {
        canary.call(&session, name, input).await;
    }
    record_snapshot(&session, canary, world).await;
    said_beside(&session, canary, &world.status_token()).await;
    session.close().await;
}

/// Records a snapshot with every object in its pack.
async fn record_snapshot(session: &Session, canary: &mut Canary, world: &World) {
    let (info, pack) = session.snapshot().await;
    canary.saw("snapshot", format!("{info:?}"));
    let copy = world.folder.path().join("unpacked.git");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(world.folder.path().join("remote/acme/shop.git"))
        .arg(&copy)
        .status();
    assert!(copied.unwrap().success());
    let file = world.folder.path().join("pack");
    fs::write(&file, pack).unwrap();
    let git = |arguments: &[&str], input: Stdio| {
        let output = Command::new("git")
            .arg("-C")
            .arg(&copy)
            .args(arguments)
            .stdin(input)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&["unpack-objects", "-q"], fs::File::open(&file).unwrap().into());
    let objects = git(&["cat-file", "--batch-all-objects", "--batch"], Stdio::null());
    assert!(
        objects.contains("mine\n") && objects.contains(&info.snapshot_commit),
        "{objects}"
    );
    canary.saw("objects of the snapshot", objects);
}

/// Records the diff, the statuses and refusals.
async fn said_beside(session: &Session, canary: &mut Canary, status_token: &str) {
    let mut client = session.client.clone();
    let diff = session.call("diff", "diff", json!({})).await.content;
    assert!(diff.contains("+mine"), "{diff}");
    canary.saw("difference", diff);
    let watched = client
        .watch_status(add_bearer_token(status_token, WatchStatusRequest {}))
        .await;
    let status = watched.unwrap().into_inner().message().await.unwrap();
    canary.saw("status", format!("{status:?}"));
    let (head, _) = session.token.split_at(session.token.len() - 4);
    let wrong = Session {
        token: format!("{head}AAAA"),
        ..session.clone()
    };
    let refused = wrong
        .start("x", "read_file", &json!({ "path": "README.md" }))
        .await
        .err()
        .unwrap();
    canary.saw("refusal", format!("{refused:?}"));
    canary.tokens.push(head.to_owned());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executor_output_leaks_no_secret() {
    for (level, name) in [
        (Level::Full, "L1 with namespaces"),
        (Level::Pod, "L1"),
        (Level::Runner, "L2"),
    ] {
        if level == Level::Runner && !runners::is_root("46+ canaries") {
            continue;
        }
        let mut canary = Canary::new();
        let mut planted = start_planted_process(level, &canary).await;
        open_another(&mut planted, &mut canary, level).await;
        attempt_secret_leaks(&planted, &mut canary).await;
        let log = fs::read_to_string(planted.world.folder.path().join("own.log")).unwrap();
        assert!(log.contains("tool call ended") && log.contains("DEBUG"), "{log}");
        let calls = canary.seen.len();
        canary.saw("log", log);
        let found = canary.found();
        assert!(found.is_empty(), "{name}: {found:#?}");
        println!("| 46+ canary in environment, files, grants: {calls} looks | {name} | held |");
    }
}
