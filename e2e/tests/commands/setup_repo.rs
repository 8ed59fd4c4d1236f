//! `journeyman repo add`: rules from a checkout, and a forecast of the tickets.

use std::{fs, path::Path};

use crate::{checkout::run_git, stage::Stage};

/// Creates a checkout with plain commits on a branch `trunk`.
fn create_checkout(place: &Path) -> String {
    let folder = place.join("checkout");
    fs::create_dir(&folder).unwrap();
    run_git(&folder, &["init", "-q", "-b", "trunk"]);
    for (number, (path, text)) in [
        ("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n"),
        ("src/lib.rs", "//! A shop.\n"),
        ("README.md", "A shop.\n"),
        (".pre-commit-config.yaml", "repos: []\n"),
        ("PULL_REQUEST_TEMPLATE.md", "What and why\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        run_git(&folder, &["add", "."]);
        run_git(&folder, &["commit", "-q", "-m", &format!("Step {number}")]);
    }
    folder.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn repo_add_writes_rules_with_ticket_forecast() {
    let stage = Stage::start("").await;
    fs::remove_file(stage.path().join("configs/shop.yaml")).unwrap();
    let asks = stage.file_ticket();
    stage.jira.move_issue(&asks, "Ready for Agent", "Rita").unwrap();
    let waits = stage.jira.create_issue("ENG", "Explain the tax", "", "Bug", &[]);
    let skipped = stage
        .jira
        .create_issue("ENG", "Leave me", "", "Bug", &["skip-dispatch"]);
    let over = stage.jira.create_issue("ENG", "Round the tax", "", "Bug", &[]);
    stage.jira.move_issue(&over, "Done", "Rita").unwrap();
    let from = create_checkout(stage.path());
    let command = ["repo", "add", "acme/shop", "--from", &from, "--project", "ENG"];
    let ran = stage.run(&command, &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "branch   trunk\nmade of  Rust\ncommits  plain\n".to_owned(),
        "check    cargo test".to_owned(),
        format!("would start implement on jira:{asks} in acme/shop: "),
        format!("would leave jira:{waits} until a user asks for it (To Do): Explain the tax"),
        format!("would leave jira:{skipped} alone: "),
        format!("would have worked on jira:{over} in acme/shop if a user had asked (Done): Round the tax"),
    ] {
        assert!(ran.out.contains(&part), "{part}: {}", ran.out);
    }
    let path = stage.path().join("configs/acme-shop.yaml");
    let rules = fs::read_to_string(&path).unwrap();
    let expected = "repo:\n  owner: \"acme\"\n  name: \"shop\"\n  default_branch: \"trunk\"\njira:\n  project_key: \"ENG\"\n\
        commits:\n  style: plain\npull_request:\n  template_path: \"PULL_REQUEST_TEMPLATE.md\"\nci:\n  auto_fix: [pre-commit]\n";
    assert!(rules.ends_with(expected), "{rules}");
    let doctor = stage.run(&["doctor"], &stage.environment()).await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");

    let own = rules + "agent: {status: To Do}\n";
    fs::write(&path, &own).unwrap();
    let again = stage
        .run(&["repo", "add", "acme/shop"], &stage.environment())
        .await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.out.contains("already: they stay"), "{}", again.out);
    let now = format!("would start implement on jira:{waits} in acme/shop: Explain the tax");
    assert!(again.out.contains(&now), "{}", again.out);
    assert_eq!(fs::read_to_string(&path).unwrap(), own);
    assert_eq!(fs::read_dir(stage.path().join("configs")).unwrap().count(), 1);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn repo_add_org_previews_last_week() {
    let stage = Stage::start("").await;
    for name in ["acme/docs", "acme/old", "acme/other"] {
        stage
            .github
            .create_repository(name, &[("README.md", "x\n")])
            .unwrap();
    }
    stage.github.archive_repository("acme/old").unwrap();
    let of_docs = stage
        .jira
        .create_issue("ENG", "Explain the tax", "", "Bug", &["docs"]);
    stage.jira.move_issue(&of_docs, "Done", "Rita").unwrap();
    let of_shop = stage.file_ticket();
    let skipped = stage
        .jira
        .create_issue("ENG", "Leave me", "", "Bug", &["docs", "skip-dispatch"]);
    let add = async |more: &[&str]| {
        let select = ["repo", "add", "--org", "acme", "--filter", "!other"];
        let rules = ["--project", "ENG", "--assign-by", "label"];
        let command = [&select[..], &rules, more].concat();
        stage.run(&command, &stage.environment()).await
    };
    let configs = stage.path().join("configs");
    let count = || fs::read_dir(&configs).unwrap().count();
    let ran = add(&["--preview"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "found    2 repositories of acme; left out: 1 do not match, 1 archived".to_owned(),
        "kept     the rules of 1 repository".to_owned(),
        "week     3 tickets changed in the last 7 days; 2 would have started work if a user had asked"
            .to_owned(),
        "work     acme/docs: 1 ticket".to_owned(),
        format!("         jira:{of_docs} (Done): Explain the tax"),
        "work     acme/shop: 1 ticket".to_owned(),
        "left     1 ticket".to_owned(),
    ] {
        assert!(ran.out.lines().any(|found| found == line), "{line}: {}", ran.out);
    }
    for part in [
        format!("         jira:{of_shop} ("),
        format!("         jira:{skipped} (To Do): "),
        "would write ".to_owned(),
    ] {
        assert!(ran.out.contains(&part), "{part}: {}", ran.out);
    }
    assert_eq!(count(), 1, "a preview writes nothing");

    let ran = add(&[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rules = fs::read_to_string(configs.join("acme-docs.yaml")).unwrap();
    let expected = "repo:\n  owner: \"acme\"\n  name: \"docs\"\n  default_branch: \"main\"\njira:\n  project_key: \"ENG\"\n  \
                    labels: [\"docs\"]\n";
    assert!(rules.ends_with(expected), "{rules}");
    let doctor = stage.run(&["doctor"], &stage.environment()).await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let again = add(&[]).await;
    assert!(
        again.code == Some(0) && again.out.contains("kept     the rules of 2 repositories\n"),
        "{again:?}"
    );
    assert_eq!(count(), 2);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn repo_add_org_requires_selection_and_trigger() {
    let stage = Stage::start("").await;
    let add = async |arguments: &[&str]| {
        let command = [&["repo", "add"], arguments].concat();
        stage.run(&command, &stage.environment()).await
    };
    for (arguments, code, part) in [
        (&["--org", "acme"][..], 2, "--project KEY or --issue-label LABEL"),
        (&["--filter", "x", "--project", "ENG"][..], 2, "--org"),
        (&["--org", "acme", "acme/shop"][..], 2, "cannot be used with"),
        (
            &["--org", "acme", "--filter", "none-*", "--project", "ENG"][..],
            1,
            "no repository of acme is selected",
        ),
        (
            &["--org", "nobody", "--project", "ENG"][..],
            1,
            "the repositories of nobody cannot be listed",
        ),
    ] {
        let ran = add(arguments).await;
        assert!(
            ran.code == Some(code) && ran.err.contains(part),
            "{part}: {ran:?}"
        );
    }
    let template = stage.path().join("template.yaml");
    fs::write(&template, "repo: {owner: acme, name: '{{nmae}}'}\n").unwrap();
    let template = template.display().to_string();
    fs::remove_file(stage.path().join("configs/shop.yaml")).unwrap();
    let ran = add(&["--org", "acme", "--template", &template]).await;
    assert!(
        ran.code == Some(1) && ran.err.contains("unknown placeholder {{nmae}}"),
        "{ran:?}"
    );
    let configs = fs::read_dir(stage.path().join("configs")).unwrap();
    assert_eq!(configs.count(), 0, "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn repo_add_warns_of_conflicting_branches() {
    let stage = Stage::start("").await;
    fs::remove_file(stage.path().join("configs/shop.yaml")).unwrap();
    let from = create_checkout(stage.path());
    let folder = Path::new(&from);
    run_git(folder, &["branch", "fix"]);
    // A fetched branch that is not checked out.
    run_git(folder, &["update-ref", "refs/remotes/origin/feat", "trunk"]);
    // Neither branch conflicts with Journeyman's branch folders.
    run_git(folder, &["branch", "fixes"]);
    run_git(folder, &["branch", "chore/fix"]);
    let command = ["repo", "add", "acme/shop", "--from", &from, "--project", "ENG"];
    let ran = stage.run(&command, &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warned: Vec<&str> = ran
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("warning  "))
        .collect();
    let expected = ["feat", "fix"]
        .map(|branch| format!("the branch {branch} stands in the way of branches in the folder {branch}/"));
    assert_eq!(warned.len(), expected.len(), "{warned:#?}");
    for (line, start) in warned.iter().zip(&expected) {
        assert!(line.starts_with(start), "{start}: {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repo_add_requires_trigger_and_checkout() {
    let stage = Stage::start("").await;
    let add = async |arguments: &[&str]| {
        let command = [&["repo", "add", "acme/other"], arguments].concat();
        stage.run(&command, &stage.environment()).await
    };
    let ran = add(&[]).await;
    assert!(
        ran.code == Some(2) && ran.err.contains("--project KEY or --issue-label LABEL"),
        "{ran:?}"
    );
    let ran = add(&["--issue-label", "agent", "--from", "/no/such/folder"]).await;
    assert!(
        ran.code == Some(1) && ran.err.contains("/no/such/folder: no checkout with a commit"),
        "{ran:?}"
    );
    assert_eq!(
        fs::read_dir(stage.path().join("configs")).unwrap().count(),
        1,
        "nothing was written"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn repo_add_proposes_setup_of_repository() {
    let stage = Stage::start("").await;
    fs::remove_file(stage.path().join("configs/shop.yaml")).unwrap();
    let from = create_checkout(stage.path());
    let folder = Path::new(&from);
    fs::create_dir(folder.join(".devcontainer")).unwrap();
    let container = "// comments are allowed\n{\n  \"postCreateCommand\": {\"a\": \"npm ci\", \"b\": \"sudo apt-get update\"},\n}\n";
    fs::write(folder.join(".devcontainer/devcontainer.json"), container).unwrap();
    fs::write(folder.join(".tool-versions"), "nodejs 22.1.0\n").unwrap();
    run_git(folder, &["add", "."]);
    run_git(folder, &["commit", "-q", "-m", "Add a container"]);
    // Files that are not part of the commit have no influence.
    fs::create_dir_all(folder.join(".github/workflows")).unwrap();
    let steps = "jobs: {copilot-setup-steps: {steps: [{run: evil}]}}\n";
    fs::write(folder.join(".github/workflows/copilot-setup-steps.yml"), steps).unwrap();
    let command = ["repo", "add", "acme/shop", "--from", &from, "--project", "ENG"];
    let ran = stage.run(&command, &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "setup    npm ci (from .devcontainer/devcontainer.json)",
        "programs node",
        "left out `sudo apt-get update`",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let rules = fs::read_to_string(stage.path().join("configs/acme-shop.yaml")).unwrap();
    let expected = "  setup:\n    - \"npm ci\"\n  programs: [\"node\"]\n  network: [\"registry.npmjs.org\",";
    assert!(rules.contains(expected), "{rules}");
    assert!(!rules.contains("evil"), "{rules}");
}
