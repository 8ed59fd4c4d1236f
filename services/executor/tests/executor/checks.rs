//! Tests of checks in scratch trees: their input, their isolation, and their leftovers.

use proto::executor::{
    BaseTree, BaseWith, CheckOutcome, CheckResult, CheckTree, FindChecksRequest, HeadTree, HeadWithout,
    InspectChangeRequest, InspectChangeResponse, RunCheckRequest, RunCheckResponse, Severity,
    check_tree::Kind, run_check_response,
};

use super::*;

const CART: &str = "def total(items):\n    return sum(items)\n";
const TEST: &str = "import unittest\nfrom cart import total\n\nclass Cart(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n";
const SUITE: &str = "python3 -m unittest -v";

fn select_base_tree() -> Kind {
    Kind::Base(BaseTree {})
}

pub(super) fn select_head_tree() -> Kind {
    Kind::Head(HeadTree {})
}

impl Session {
    fn check_request(&self, id: &str, tree: Kind, command: &str) -> Request<RunCheckRequest> {
        let request = RunCheckRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
            call_id: id.to_owned(),
            command: command.to_owned(),
            tree: Some(CheckTree { kind: Some(tree) }),
            ..RunCheckRequest::default()
        };
        add_bearer_token(&self.token, request)
    }

    async fn start_check(&self, id: &str, tree: Kind, command: &str) -> Streaming<RunCheckResponse> {
        let request = self.check_request(id, tree, command);
        self.client.clone().run_check(request).await.unwrap().into_inner()
    }

    pub(super) async fn check(&self, id: &str, tree: Kind, command: &str) -> CheckResult {
        self.try_check(id, tree, command).await.unwrap()
    }

    async fn try_check(&self, id: &str, tree: Kind, command: &str) -> Result<CheckResult, Status> {
        let request = self.check_request(id, tree, command);
        let mut stream = self.client.clone().run_check(request).await?.into_inner();
        while let Some(message) = stream.message().await? {
            if let Some(run_check_response::Event::Result(result)) = message.event {
                return Ok(result);
            }
        }
        panic!("the check ended without a result")
    }

    async fn inspect(&self) -> InspectChangeResponse {
        let request = InspectChangeRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
            ticket_text: String::new(),
        };
        let request = add_bearer_token(&self.token, request);
        self.client
            .clone()
            .inspect_change(request)
            .await
            .unwrap()
            .into_inner()
    }

    pub(super) async fn write(&self, id: &str, path: &str, content: &str) -> ToolResult {
        self.ok(id, "write_file", json!({ "path": path, "content": content }))
            .await
    }
}

fn count_check_folders(world: &World) -> usize {
    std::fs::read_dir(world.folder.path().join("data/checks"))
        .unwrap()
        .count()
}

async fn with_setup(world: &World, commands: &[&str]) -> Session {
    let setup: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
    let opened = world.open_with(1, |spec| spec.setup = setup);
    let (session, answer) = opened.await;
    assert!(!answer.setup.unwrap().failed);
    session
}

/// Returns worlds at the levels of this machine: with namespaces, without, and with a runner where the user
/// permits it.
pub(super) async fn start_level_worlds() -> Vec<(World, Option<runners::Runner>)> {
    let mut worlds = vec![
        (World::start(1).await, None),
        (
            World::start_without(1, vec![executor::ConfinementMechanism::Namespaces]).await,
            None,
        ),
    ];
    if runners::is_root("checks at a runner") {
        let (world, runner) = runners::start_runner_world(vec![]).await;
        worlds.push((world, Some(runner)));
    }
    worlds
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tree_kinds_show_their_files() {
    for (world, _runner) in start_level_worlds().await {
        let session = world.open(1).await;
        session.write("1", "cart.py", CART).await;
        let written = session.write("2", "test_cart.py", TEST).await;

        let on_head = session.check("k1", select_head_tree(), SUITE).await;
        assert_eq!(on_head.outcome(), CheckOutcome::Green, "{}", on_head.output_tail);
        assert_eq!((on_head.tests.unwrap().passed, on_head.exit_code), (1, Some(0)));
        assert_eq!(
            on_head.tree, written.tree,
            "evidence names the files that the model wrote last"
        );

        let on_base = session.check("k2", select_base_tree(), SUITE).await;
        assert_eq!(
            on_base.outcome(),
            CheckOutcome::NoTests,
            "{}",
            on_base.output_tail
        );

        let paths = vec!["test_cart.py".to_owned()];
        let with_test = session
            .check("k3", Kind::BaseWith(BaseWith { paths }), SUITE)
            .await;
        assert_eq!(with_test.outcome(), CheckOutcome::Red);
        let tests = with_test.tests.unwrap();
        assert!(tests.collection_error && tests.failing.is_empty(), "{tests:?}");

        let change = session.inspect().await;
        let hunk = change.hunks.iter().position(|hunk| !hunk.is_test).unwrap();
        let without = HeadWithout {
            head_tree: change.tree,
            hunk: u32::try_from(hunk).unwrap(),
        };
        let reverted = session
            .check(
                "k4",
                Kind::HeadWithout(without),
                "test ! -e cart.py && ls test_cart.py",
            )
            .await;
        assert_eq!(reverted.exit_code, Some(0), "{}", reverted.output_tail);
        assert_eq!(reverted.tree, with_test.tree, "the same files by two ways");
        assert!(
            on_base.tree != on_head.tree && with_test.tree != on_head.tree && with_test.tree != on_base.tree
        );
        assert_eq!(count_check_folders(&world), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_and_workspace_stay_separate() {
    for (world, _runner) in start_level_worlds().await {
        let session = world.open(1).await;
        session.write("1", "mine.txt", "mine").await;
        let act = "rm README.md; echo theirs > mine.txt; echo x > made; mkdir -p ignored; echo x > ignored/made; \
                   echo x > \"$HOME/made\"; git status --short | head -1; chmod 000 ignored";
        let acted = session.check("k1", select_head_tree(), act).await;
        assert_eq!(acted.exit_code, Some(0), "{}", acted.output_tail);
        let seen = session
            .shell(
                "2",
                "cat mine.txt README.md; ls ignored made \"$HOME/made\" 2>&1 | grep -c 'No such'",
            )
            .await;
        assert!(seen.contains("mine# Shop\n3\n"), "{seen}");
        // The next check does not find the leftovers of this one.
        let next = session
            .check(
                "k2",
                select_head_tree(),
                "ls made ignored \"$HOME/made\" 2>/dev/null; cat mine.txt",
            )
            .await;
        assert_eq!(next.output_tail.trim(), "mine");
        assert_eq!(count_check_folders(&world), 0);
    }
}

/// The first tool call prepares the launcher for the next command in the background, while the check begins.
#[tokio::test(flavor = "multi_thread")]
async fn command_after_first_check_stays_in_workspace() {
    for (world, _runner) in start_level_worlds().await {
        for number in 1..=10 {
            let session = world.open(number).await;
            session.ok("0", "list_directory", json!({})).await;
            let checked = session.check("k1", select_base_tree(), "true").await;
            assert_eq!(checked.exit_code, Some(0), "workspace {number}");
            session.shell("1", "echo x > made").await;
            let seen = session.shell("2", "cat made").await;
            assert_eq!(seen.trim(), "exit code: 0\nx", "workspace {number}");
            session.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_sees_unchanged_setup_only() {
    for (world, _runner) in start_level_worlds().await {
        let setup = [
            "mkdir -p ignored/bin",
            "printf '#!/bin/sh\\necho tool\\n' > ignored/bin/tool; chmod +x ignored/bin/tool",
            "pwd > ignored/place; echo kept > ignored/other; ln -s other ignored/link; echo home > \"$HOME/installed\"",
        ];
        let session = with_setup(&world, &setup).await;
        let look = "ignored/bin/tool; test \"$(cat ignored/place)\" = \"$(pwd)\" && echo same; cat ignored/link \"$HOME/installed\"; ls ignored";
        let clean = session.check("k1", select_base_tree(), look).await;
        assert_eq!(
            clean.output_tail, "tool\nsame\nkept\nhome\nbin\nlink\nother\nplace\n",
            "{}",
            clean.reason
        );
        assert!(clean.tampered.is_empty(), "{:?}", clean.tampered);
        let act = "printf '#!/bin/sh\\necho PASSED\\n' > ignored/bin/tool; echo x > ignored/new; mv ignored/other ignored/x; cp -p ignored/x ignored/other";
        session.shell("1", act).await;
        let after = session.check("k2", select_base_tree(), "ls ignored").await;
        assert_eq!(after.output_tail, "link\nplace\n");
        assert_eq!(after.tampered.len(), 2, "{:?}", after.tampered);
        assert!(after.tampered.contains(&"ignored/bin/tool".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_check_runs_once() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let first = session
        .check("k1", select_head_tree(), "date +%s%N; echo '1 passed in 0.1s'")
        .await;
    let again = session.check("k1", select_head_tree(), "something else").await;
    assert_eq!(first, again);
    assert_eq!(first.outcome(), CheckOutcome::Green);

    let mut running = session
        .start_check("k2", select_head_tree(), "echo begun; sleep 7531")
        .await;
    let begun = running.message().await.unwrap().unwrap().event.unwrap();
    assert!(matches!(begun, run_check_response::Event::Output(chunk) if chunk.data == b"begun\n"));
    drop(running);
    assert!(session.shell("1", "cat README.md").await.contains("# Shop"));
    wait_until_gone("sleep 7531").await;
    let cut = session
        .check("k2", select_head_tree(), "echo begun; sleep 7531")
        .await;
    assert_eq!((cut.outcome(), cut.exit_code), (CheckOutcome::Infra, None));
    assert_eq!(count_check_folders(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_command_runs_in_folder_and_limit() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    session.write("1", "api/x.txt", "").await;
    let mut request = session.check_request(
        "k1",
        select_head_tree(),
        "WORD=3 && A=1 sh -c 'echo $A' && ls && echo \"$WORD passed in 0.1s\"",
    );
    request.get_mut().directory = "api".to_owned();
    let mut stream = session
        .client
        .clone()
        .run_check(request)
        .await
        .unwrap()
        .into_inner();
    let result = loop {
        if let Some(run_check_response::Event::Result(result)) =
            stream.message().await.unwrap().unwrap().event
        {
            break result;
        }
    };
    assert_eq!(result.output_tail, "1\nx.txt\n3 passed in 0.1s\n");
    assert_eq!(result.outcome(), CheckOutcome::Green);
    let absent = session
        .check("k2", select_head_tree(), "no-such-runner --all")
        .await;
    assert_eq!(absent.outcome(), CheckOutcome::Inert, "{}", absent.output_tail);
    let mut slow = session.check_request("k3", select_head_tree(), "echo slow; sleep 600");
    slow.get_mut().limit_s = 1;
    let mut stream = session.client.clone().run_check(slow).await.unwrap().into_inner();
    while let Some(message) = stream.message().await.unwrap() {
        if let Some(run_check_response::Event::Result(result)) = message.event {
            assert_eq!(
                (result.outcome(), result.output_tail.as_str()),
                (CheckOutcome::Timeout, "slow\n")
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_check_request_can_be_repeated() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    session.write("1", "cart.py", CART).await;
    let stale = HeadWithout {
        head_tree: "a".repeat(40),
        hunk: 0,
    };
    let out = BaseWith {
        paths: vec!["../x".to_owned()],
    };
    let change = session.inspect().await;
    let beyond = HeadWithout {
        head_tree: change.tree,
        hunk: 99,
    };
    for (number, tree) in [
        Kind::HeadWithout(stale),
        Kind::BaseWith(out),
        Kind::HeadWithout(beyond),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = session.try_check("k1", tree, "true").await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{number}: {refused}");
    }
    assert_eq!(
        session
            .try_check("k1", select_head_tree(), " ")
            .await
            .unwrap_err()
            .code(),
        Code::InvalidArgument
    );
    let large = "x".repeat(200 << 10);
    for (command, reason) in [("true\0", "a NUL character"), (large.as_str(), "too long")] {
        let refused = session
            .try_check("k1", select_head_tree(), command)
            .await
            .unwrap_err();
        assert!(refused.message().contains(reason), "{refused}");
    }
    assert_eq!(
        session
            .try_check("", select_head_tree(), "true")
            .await
            .unwrap_err()
            .code(),
        Code::InvalidArgument
    );
    let mut foreign = session.clone();
    foreign.token = world.token(
        &build_run_id(2),
        Some(session.id.clone()),
        session.fence,
        GrantAudience::Executor,
    );
    assert_eq!(
        foreign
            .try_check("k1", select_head_tree(), "true")
            .await
            .unwrap_err()
            .code(),
        Code::NotFound
    );
    foreign.token = "none".to_owned();
    assert_eq!(
        foreign
            .try_check("k1", select_head_tree(), "true")
            .await
            .unwrap_err()
            .code(),
        Code::Unauthenticated
    );
    assert_eq!(
        session
            .check("k1", select_head_tree(), "cat cart.py")
            .await
            .output_tail,
        CART
    );
    assert_eq!(count_check_folders(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn written_reports_override_printed_tests() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let xml = r#"<testsuite><testcase classname="A" name="b"><failure message="no"/></testcase></testsuite>"#;
    let mut request = session.check_request(
        "k1",
        select_head_tree(),
        &format!("mkdir out; echo '{xml}' > out/a.xml; echo '9 passed in 0.1s'"),
    );
    request.get_mut().reports = vec!["out/*.xml".to_owned()];
    let mut stream = session
        .client
        .clone()
        .run_check(request)
        .await
        .unwrap()
        .into_inner();
    while let Some(message) = stream.message().await.unwrap() {
        if let Some(run_check_response::Event::Result(result)) = message.event {
            assert_eq!(result.outcome(), CheckOutcome::Red);
            assert_eq!(result.tests.unwrap().failing[0].id, "A.b");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inspection_reports_size_and_findings() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    session.write("1", "cart.py", CART).await;
    session
        .write(
            "2",
            "tests/test_cart.py",
            &TEST.replace("    def", "    @unittest.skip('no')\n    def"),
        )
        .await;
    session.write("3", "Makefile", "test:\n\tpytest || true\n").await;
    let change = session.inspect().await;
    assert_eq!((change.files, change.product_lines, change.test_lines), (3, 4, 7));
    assert_eq!(change.test_files, ["tests/test_cart.py"]);
    let found: Vec<(&str, Severity)> = change
        .findings
        .iter()
        .map(|finding| (finding.kind.as_str(), finding.severity()))
        .collect();
    assert_eq!(
        found,
        [
            ("new_tests_skipped", Severity::Block),
            ("failure_hidden", Severity::Flag),
            ("test_skipped", Severity::Flag)
        ]
    );
    let request = FindChecksRequest {
        workspace_id: session.id.clone(),
        fence: Some(session.fence.into()),
        commands: vec!["just ci".to_owned()],
        reports: Vec::new(),
    };
    let answer = session
        .client
        .clone()
        .find_checks(add_bearer_token(&session.token, request))
        .await
        .unwrap();
    let commands: Vec<String> = answer
        .into_inner()
        .candidates
        .into_iter()
        .map(|found| found.command)
        .collect();
    // The Makefile comes from the model, not from the base.
    assert_eq!(commands, ["just ci"]);
}

/// Waits for the first output of a check.
async fn wait_until_begun(check: &mut Streaming<RunCheckResponse>) {
    let begun = check.message().await.unwrap().unwrap().event.unwrap();
    assert!(matches!(begun, run_check_response::Event::Output(chunk) if chunk.data == b"begun\n"));
}

/// Opens a workspace whose checks run side by side; `None`, printed, where the machine cannot do that.
async fn open_for_side_by_side(world: &World, what: &str) -> Option<Session> {
    let (session, answer) = world.open_with(1, |_| {}).await;
    if answer.checks_at_once < 2 {
        println!("{what}: not run, because checks run one after the other here");
        return None;
    }
    Some(session)
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_and_tools_run_side_by_side() {
    let world = World::start(4).await;
    let Some(session) = open_for_side_by_side(&world, "checks side by side").await else {
        return;
    };
    session.write("1", "mine.txt", "mine").await;
    let mut first = session
        .start_check("k1", select_head_tree(), "echo begun; sleep 7541")
        .await;
    wait_until_begun(&mut first).await;
    // Neither this check nor the tools wait for the first one, which does not end by itself.
    let second = session.check("k2", select_base_tree(), "ls").await;
    assert_eq!(second.output_tail, "AGENTS.md\nREADME.md\n");
    assert!(session.shell("2", "cat mine.txt").await.ends_with("mine"));
    session.write("3", "later.txt", "later").await;
    assert_eq!(count_check_folders(&world), 1);
    drop(first);
    let cut = session.check("k1", select_head_tree(), "true").await;
    assert_eq!((cut.outcome(), cut.exit_code), (CheckOutcome::Infra, None));
    wait_until_gone("sleep 7541").await;
    assert_eq!(count_check_folders(&world), 0);
}

/// A check that runs beside another one finds neither its files nor its processes, and neither does a command of
/// the workspace. All of them have the same path.
#[tokio::test(flavor = "multi_thread")]
async fn neighbor_of_check_is_invisible() {
    let world = World::start(4).await;
    let Some(session) = open_for_side_by_side(&world, "neighbor of a check").await else {
        return;
    };
    let mark = "exec 2> /dev/null; echo x > mark; echo x > \"$HOME/mark\"; echo x > \"$TMPDIR/mark\"; echo x > /tmp/mark; echo x > ../mark; \
                mkdir -p ../results; ipcmk -M 100 > /dev/null; echo begun; sleep 7542";
    let mut neighbor = session.start_check("k1", select_head_tree(), mark).await;
    wait_until_begun(&mut neighbor).await;
    let data = world.folder.path().join("data");
    let look = format!(
        "pwd; ls mark \"$HOME/mark\" \"$TMPDIR/mark\" /tmp/mark ../mark 2>/dev/null; ls {0}/checks 2>/dev/null; \
         ls {0}/workspaces; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep [7]542'; \
         tail -n +2 /proc/sysvipc/shm | wc -l; echo y > mark",
        data.display()
    );
    let seen = session.check("k2", select_head_tree(), &look).await;
    let place = data.join("workspaces/acme.shop.0/tree");
    let place = place.canonicalize().unwrap();
    let expected = format!("{}\nacme.shop.0\n0\n0\n", place.display());
    assert_eq!(seen.output_tail, expected);
    let in_workspace = session.shell("1", &look).await;
    assert_eq!(in_workspace, format!("exit code: 0\n{expected}"));
    // The marks of the workspace and of the second check are not those of the first one.
    let third = session
        .check("k3", select_base_tree(), "ls mark 2>&1 | grep -c 'No such'")
        .await;
    assert_eq!(third.output_tail, "1\n");
    drop(neighbor);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_beside_another_keeps_disk_limit() {
    let world = World::start_as(4, |_, settings| settings.limits.disk_mib = 16).await;
    let Some(session) = open_for_side_by_side(&world, "disk limit of a check").await else {
        return;
    };
    let mut neighbor = session
        .start_check("k1", select_head_tree(), "echo begun; sleep 7543")
        .await;
    wait_until_begun(&mut neighbor).await;
    for (id, folder) in [("k2", "."), ("k3", "$TMPDIR"), ("k4", "$HOME")] {
        let fill = format!("head -c 48000000 /dev/zero > \"{folder}/big\"; sleep 600");
        let filled = session.check(id, select_head_tree(), &fill).await;
        assert!(
            filled.output_tail.contains("more than 16 MiB of files"),
            "{folder}: {} {}",
            filled.output_tail,
            filled.reason
        );
    }
    // The files of the checks do not count for the workspace.
    assert_eq!(session.shell("1", "echo here").await, "exit code: 0\nhere\n");
    drop(neighbor);
}

/// Prints another number in each run.
const CLOCK: &str = "date +%s%N";

impl Session {
    /// Runs a check on the base, for which a kept result is enough.
    async fn check_base(&self, id: &str, command: &str) -> String {
        let mut request = self.check_request(id, select_base_tree(), command);
        request.get_mut().may_be_kept = true;
        let mut stream = self.client.clone().run_check(request).await.unwrap().into_inner();
        while let Some(message) = stream.message().await.unwrap() {
            if let Some(run_check_response::Event::Result(result)) = message.event {
                return result.output_tail;
            }
        }
        panic!("the check ended without a result")
    }

    /// Returns the commands whose results on the base are kept, of these.
    async fn known_at_base(&self, commands: &[&str]) -> Vec<String> {
        let request = FindChecksRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
            commands: commands.iter().map(ToString::to_string).collect(),
            reports: Vec::new(),
        };
        let request = add_bearer_token(&self.token, request);
        let answer = self
            .client
            .clone()
            .find_checks(request)
            .await
            .unwrap()
            .into_inner();
        let known = answer.candidates.into_iter().filter(|found| found.known_at_base);
        known.map(|found| found.command).collect()
    }
}

async fn open_with_setup(world: &World, number: u64, setup: &str) -> Session {
    let setup = vec![setup.to_owned()];
    let opened = world.open_with(number, |spec| spec.setup = setup);
    opened.await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_base_result_serves_other_runs() {
    let world = World::start(4).await;
    let first = world.open(1).await;
    assert_eq!(first.known_at_base(&[CLOCK]).await, Vec::<String>::new());
    let printed = first.check_base("k1", CLOCK).await;
    let second = world.open(2).await;
    if second.known_at_base(&[CLOCK]).await.is_empty() {
        println!("kept results: not run, because commands have no namespaces here");
        return;
    }
    assert_eq!(second.known_at_base(&[CLOCK, "date"]).await, [CLOCK]);
    assert_eq!(second.check_base("k1", CLOCK).await, printed);
    // A check that is to confirm the result runs, and so does one of other files or after another setup.
    let confirmed = second.check("k2", select_base_tree(), CLOCK).await;
    assert_ne!(confirmed.output_tail, printed);
    assert_eq!(second.check_base("k3", CLOCK).await, confirmed.output_tail);
    let on_head = second.check("k4", select_head_tree(), CLOCK).await;
    assert_ne!(on_head.output_tail, confirmed.output_tail);
    let prepared = open_with_setup(&world, 3, "mkdir ignored").await;
    assert_ne!(prepared.check_base("k1", CLOCK).await, confirmed.output_tail);
}

/// A result counts for other runs only if the model had no influence on it.
#[tokio::test(flavor = "multi_thread")]
async fn influenced_base_result_is_not_kept() {
    let world = World::start(4).await;
    let setup = "mkdir ignored; echo x > ignored/tool; echo x > \"$HOME/tool\"";
    for (number, act) in [
        (1, "echo y > ignored/tool"),
        (2, "rm ignored/tool"),
        (3, "rm \"$HOME/tool\""),
        (4, "rm -r ignored"),
    ] {
        let session = open_with_setup(&world, number, setup).await;
        session.shell("1", act).await;
        session.check_base("k1", CLOCK).await;
        assert!(session.known_at_base(&[CLOCK]).await.is_empty(), "{act}");
        session.close().await;
    }
    let session = open_with_setup(&world, 5, setup).await;
    session.shell("1", "echo x > README.md").await;
    let paths = vec!["README.md".to_owned()];
    for (id, tree) in [
        ("k1", select_head_tree()),
        ("k2", Kind::BaseWith(BaseWith { paths })),
    ] {
        session.check(id, tree, CLOCK).await;
        assert!(session.known_at_base(&[CLOCK]).await.is_empty(), "{id}");
    }
    // A run that its limit ended says nothing about the code.
    let mut slow = session.check_request("k3", select_base_tree(), "sleep 600");
    slow.get_mut().limit_s = 1;
    let mut stream = session.client.clone().run_check(slow).await.unwrap().into_inner();
    while stream.message().await.unwrap().is_some() {}
    assert!(session.known_at_base(&["sleep 600"]).await.is_empty());
    // Anyone may have written a commit that is not on the base branch.
    let beside = setups::commit_beside(&world, &[("README.md", "# Other\n")]);
    let opened = world.open_with(6, |spec| spec.base_commit = beside);
    let (session, _) = opened.await;
    session.check_base("k1", CLOCK).await;
    assert!(
        session.known_at_base(&[CLOCK]).await.is_empty(),
        "not on the branch"
    );
    let shared = World::start_without(1, vec![executor::ConfinementMechanism::Namespaces]).await;
    let session = shared.open(1).await;
    session.check_base("k1", CLOCK).await;
    assert!(
        session.known_at_base(&[CLOCK]).await.is_empty(),
        "processes are shared"
    );
}

/// One check fits here, so the second one waits for the first, which takes longer than the second one's limit.
#[tokio::test(flavor = "multi_thread")]
async fn limit_of_waiting_check_begins_with_it() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let mut first = session
        .start_check("k1", select_head_tree(), "echo begun; sleep 2")
        .await;
    wait_until_begun(&mut first).await;
    let mut second = session.check_request("k2", select_head_tree(), "echo ran");
    second.get_mut().limit_s = 1;
    let mut stream = session
        .client
        .clone()
        .run_check(second)
        .await
        .unwrap()
        .into_inner();
    // A check that a caller gives up while it waits is not recorded, so that it can be repeated.
    drop(session.start_check("k3", select_head_tree(), "echo ran").await);
    let mut answers = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        answers.extend(message.event);
    }
    let Some(run_check_response::Event::Result(result)) = answers.pop() else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (result.exit_code, result.output_tail.as_str()),
        (Some(0), "ran\n")
    );
    let repeated = session.check("k3", select_head_tree(), "echo repeated").await;
    assert_eq!(repeated.output_tail, "repeated\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn crashed_check_is_cleaned_at_start() {
    let world = World::start_as(1, |folder, _| {
        std::fs::create_dir_all(folder.join("data/checks/old/second/tree")).unwrap();
    })
    .await;
    world.open(1).await;
    assert_eq!(count_check_folders(&world), 0);
}
