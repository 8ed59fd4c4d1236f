//! Parsing and selection of rules.

use super::*;

const ACME_DATA: &str = include_str!("../../testdata/acme-data.yaml");
const ACME_CI: &str = include_str!("../../testdata/acme-ci.yaml");

fn parse_book(files: &[(&str, &str)]) -> RulesBook {
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    RulesBook::parse(&files, &ConfiguredInstances::default())
}

#[test]
fn both_documented_fragments_load_unchanged() {
    let book = parse_book(&[("acme-ci.yaml", ACME_CI), ("acme-data.yaml", ACME_DATA)]);
    assert_eq!(book.problems(), []);
    let rules = book.for_ticket(&"jira:AENG-1".parse().unwrap()).unwrap();
    assert_eq!(rules.repository().unwrap().to_string(), "acme/data");
    assert_eq!(rules.target_branch(), "develop");
    assert_eq!(rules.ci.auto_fix, ["pre-commit", "dbt_compile"]);
    assert_eq!(rules.dbt.projects[0].path, "dbt-databricks");
    assert_eq!(rules.skip.labels, ["no-automation", "manual-only"]);
}

#[test]
fn a_repository_overrides_the_organisation() {
    let defaults = "agent:\n  max_turns: 20\nskip:\n  labels: [a]\n";
    let shop = "repo: {owner: acme, name: shop}\nskip:\n  labels: [b]\n";
    let book = parse_book(&[("0.yaml", defaults), ("shop.yaml", shop)]);
    let rules = book.for_repository(&"acme/shop".parse().unwrap()).unwrap();
    assert_eq!(
        (rules.agent.max_turns, rules.skip.labels.as_slice()),
        (20, ["b".to_owned()].as_slice())
    );
}

#[test]
fn mcp_servers_are_allowed_by_distinct_names() {
    let problem = |servers: &str| {
        let shop = format!("repo: {{owner: acme, name: shop}}\nagent:\n  mcp: {servers}\n");
        let book = parse_book(&[("shop.yaml", &shop)]);
        book.problems().first().map(|problem| problem.key.clone())
    };
    assert_eq!(problem("[docs, issue-tracker]"), None);
    let many = (0..11)
        .map(|number| format!("s{number}"))
        .collect::<Vec<_>>()
        .join(", ");
    for wrong in [
        "[docs, docs]",
        "[Docs]",
        "[my_docs]",
        "[\"\"]",
        &format!("[{many}]"),
    ] {
        assert_eq!(problem(wrong).as_deref(), Some("agent.mcp"), "{wrong}");
    }
}

#[test]
fn mcp_command_of_rules_is_validated() {
    let problem = |command: &str| {
        let shop = format!(
            "repo: {{owner: acme, name: shop}}\nagent:\n  mcp: [lint]\n  mcp_commands:\n    {command}\n"
        );
        let book = parse_book(&[("shop.yaml", &shop)]);
        let problem = book.problems().first();
        problem.map(|problem| (problem.key.clone(), problem.problem.clone()))
    };
    assert_eq!(problem("lint: {command: [python3, tools/lint.py]}"), None);
    let (key, words) = problem("lint: {command: [a], environment: {API_TOKEN: s3cret}}").unwrap();
    assert_eq!(key, "agent.mcp_commands");
    assert!(
        words.contains("lint.environment") && words.contains("API_TOKEN") && !words.contains("s3cret"),
        "{words}"
    );
    for wrong in [
        "Lint: {command: [a]}",
        "lint: {command: []}",
        "lint: {command: [a], auth_token: s3cret}",
    ] {
        let (key, words) = problem(wrong).unwrap();
        assert!(
            key.starts_with("agent.mcp_commands") && !words.contains("s3cret"),
            "{wrong}: {key} {words}"
        );
    }
}

#[test]
fn invalid_file_disables_only_its_repository() {
    let bad = "repo:\n  owner: acme\n  name: bad\nagent:\n  statsu: x\n";
    let book = parse_book(&[
        ("bad.yaml", bad),
        ("shop.yaml", "repo: {owner: acme, name: shop}\n"),
    ]);
    assert!(book.for_repository(&"acme/shop".parse().unwrap()).is_some());
    let [problem] = book.problems() else {
        panic!("{:?}", book.problems())
    };
    assert_eq!(
        (problem.file.as_str(), problem.line, problem.key.as_str()),
        ("bad.yaml", 5, "agent.statsu")
    );
    assert_eq!(problem.repository.as_ref().unwrap().to_string(), "acme/bad");
    let said = "unknown key; did you mean agent.status? docs/rules.md lists the keys";
    assert_eq!(problem.problem, said);
}

#[test]
fn broken_defaults_disable_all_inheriting_repositories() {
    let shop = "repo: {owner: acme, name: shop}\n";
    for broken in [
        "skip:\n  lables: [no-automation]\n",
        "skip: [no-automation\n",
        "agent:\n  max_turns: many\n",
    ] {
        let book = parse_book(&[("0.yaml", broken), ("shop.yaml", shop)]);
        assert_eq!(book.repositories().count(), 0, "{broken}");
        let [cause, effect] = book.problems() else {
            panic!("{:?}", book.problems())
        };
        assert_eq!(cause.file, "0.yaml");
        assert!(cause.line > 0, "{cause:?}");
        assert_eq!(effect.repository.as_ref().unwrap().to_string(), "acme/shop");
        assert!(effect.problem.contains("0.yaml"), "{effect:?}");
    }
}

#[test]
fn unparsable_repository_file_disables_no_other() {
    let book = parse_book(&[
        ("bad.yaml", "repo:\n  owner: acme\n  name: [bad\n"),
        ("shop.yaml", "repo: {owner: acme, name: shop}\n"),
    ]);
    assert_eq!(book.repositories().count(), 1);
    assert_eq!(book.problems().len(), 1);
}

#[test]
fn file_of_another_encoding_disables_its_repository_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("bad.yaml"),
        b"repo: {owner: acme, name: bad}\n# caf\xe9\n",
    )
    .unwrap();
    std::fs::write(
        folder.path().join("shop.yaml"),
        "repo: {owner: acme, name: shop}\n",
    )
    .unwrap();
    let read = || RulesBook::read(folder.path(), &ConfiguredInstances::default()).unwrap();
    let book = read();
    assert_eq!(book.repositories().count(), 1);
    let problem = &book.problems()[0];
    assert_eq!(
        (problem.file.as_str(), problem.line),
        ("bad.yaml", 2),
        "{problem:?}"
    );
    // Such a file without `repo:` may forbid something to every repository.
    std::fs::write(folder.path().join("all.yaml"), b"agent: {status: \xff}\n").unwrap();
    let book = read();
    assert_eq!((book.repositories().count(), book.problems().len()), (0, 3));
}

#[test]
fn invalid_value_is_reported_at_its_line() {
    let place = |files: &[(&str, &str)]| {
        let book = parse_book(files);
        let problem = book.problems()[0].clone();
        (problem.file, problem.line, problem.key)
    };
    let at = |file: &str, line, key: &str| (file.to_owned(), line, key.to_owned());
    let shop = "# the shop\nrepo:\n  owner: acme\n  name: shop\nskip:\n  labels: [x]\nagent:\n  status: Go\n  max_turns: 151\n";
    assert_eq!(
        place(&[("shop.yaml", shop)]),
        at("shop.yaml", 9, "agent.max_turns")
    );
    let plain = "repo: {owner: acme, name: shop}\n";
    assert_eq!(
        place(&[
            ("0.yaml", "skip:\n  labels: []\nagent: {max_turns: 151}\n"),
            ("shop.yaml", plain)
        ]),
        at("0.yaml", 3, "agent.max_turns")
    );
    let wrong_type = "repo: {owner: acme, name: shop}\nagent:\n  max_turns: many\n";
    assert_eq!(
        place(&[("shop.yaml", wrong_type)]),
        at("shop.yaml", 3, "agent.max_turns")
    );
    assert_eq!(
        place(&[("one.yaml", plain), ("two.yaml", plain)]),
        at("two.yaml", 1, "repo.name")
    );
}

#[test]
fn invalid_values_are_named_by_key() {
    let cases = [
        (
            "repo: {owner: acme, name: shop}\nagent: {max_turns: 151}\n",
            "agent.max_turns",
        ),
        ("repo: {owner: acme, name: 'sh op'}\n", "repo.name"),
        (
            "repo: {owner: acme, name: shop}\nbranching: {pattern: 'x'}\n",
            "branching.pattern",
        ),
    ];
    for (text, key) in cases {
        let book = parse_book(&[("a.yaml", text)]);
        assert_eq!(book.problems()[0].key, key);
        assert_eq!(book.repositories().count(), 0);
    }
}

#[test]
fn repository_of_unconnected_instance_is_refused() {
    let here = "repo: {owner: acme, name: shop}\njira: {project_key: ENG}\n";
    for (key, there) in [
        (
            "repo.instance",
            "repo: {owner: acme, name: other, instance: ghe}\n",
        ),
        (
            "jira.instance",
            "repo: {owner: acme, name: other}\njira: {project_key: OPS, instance: dc}\n",
        ),
    ] {
        let book = parse_book(&[("here.yaml", here), ("there.yaml", there)]);
        let problems: Vec<_> = book
            .problems()
            .iter()
            .map(|problem| problem.key.as_str())
            .collect();
        assert_eq!(problems, [key]);
        assert_eq!(book.repositories().count(), 1);
        assert!(book.for_ticket(&"jira+dc:OPS-1".parse().unwrap()).is_none());
        assert!(
            book.for_ticket(&"github+ghe:acme/other#7".parse().unwrap())
                .is_none()
        );
    }
}

#[test]
fn same_project_on_two_instances_differs() {
    let files = [
        (
            "here.yaml",
            "repo: {owner: acme, name: shop}\njira: {project_key: ENG}\n",
        ),
        (
            "there.yaml",
            "repo: {owner: acme, name: shop, instance: ghe}\njira: {project_key: ENG, instance: dc}\n",
        ),
        ("local.yaml", "repo: {folder: shelf}\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let instance = |name: &str| std::iter::once(name.parse().unwrap()).collect();
    let connections = ConfiguredInstances {
        github: instance("ghe"),
        jira: instance("dc"),
        folders: instance("shelf"),
    };
    let book = RulesBook::parse(&files, &connections);
    assert_eq!(book.problems(), []);
    let repository = |ticket: &str| {
        let rules = book.for_ticket(&ticket.parse().unwrap())?;
        Some(rules.repository().unwrap().to_string())
    };
    assert_eq!(repository("jira:ENG-1").as_deref(), Some("acme/shop"));
    assert_eq!(repository("jira+dc:ENG-1").as_deref(), Some("ghe:acme/shop"));
    assert_eq!(
        repository("github+ghe:acme/shop#7").as_deref(),
        Some("ghe:acme/shop")
    );
    assert_eq!(repository("jira+other:ENG-1"), None);
    assert_eq!(
        repository("folder:shelf#1").as_deref(),
        Some("folder:local/shelf")
    );
    assert_eq!(repository("folder:shop#1"), None);
}

#[test]
fn two_files_cannot_claim_one_project() {
    let one = "repo: {owner: acme, name: one}\njira: {project_key: ENG}\n";
    let two = "repo: {owner: acme, name: two}\njira: {project_key: ENG}\n";
    let book = parse_book(&[("one.yaml", one), ("two.yaml", two)]);
    assert_eq!(
        book.for_ticket(&"jira:ENG-1".parse().unwrap()).unwrap().repo.name,
        "one"
    );
    assert_eq!(book.problems()[0].key, "jira.project_key");
}

#[test]
fn changed_file_applies_without_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    std::fs::write(&file, "repo: {owner: acme, name: shop}\n").unwrap();
    let settings = Settings {
        dir: folder.path().to_owned(),
        ..Settings::default()
    };
    let store = RulesStore::open(&settings, ConfiguredInstances::default()).unwrap();
    std::fs::write(&file, "repo: {owner: acme, name: shop}\nagent: {status: Go}\n").unwrap();
    store.reload();
    assert_eq!(store.book().repositories().next().unwrap().agent.status, "Go");
}

#[test]
fn commit_author_of_settings_yields_to_rules() {
    let folder = tempfile::tempdir().unwrap();
    let text = "repo: {owner: acme, name: shop}\n";
    let own = "repo: {owner: acme, name: own}\ncommits: {author: 'Own <own@acme.example>', co_author_requester: false}\n";
    std::fs::write(folder.path().join("own.yaml"), own).unwrap();
    let settings = Settings {
        dir: folder.path().to_owned(),
        commit_author: Some("Bot <bot@acme.example>".parse().unwrap()),
    };
    let store = RulesStore::open(&settings, ConfiguredInstances::default()).unwrap();
    let author = |name: &str| {
        let rules = store.book();
        let rules = rules.for_repository(&name.parse().unwrap()).unwrap();
        rules.commits.author().to_string()
    };
    assert_eq!(author("acme/own"), "Own <own@acme.example>");
    std::fs::write(folder.path().join("shop.yaml"), text).unwrap();
    store.reload();
    assert_eq!(author("acme/shop"), "Bot <bot@acme.example>");
    let wrong = "repo: {owner: acme, name: bad}\ncommits: {author: Nobody}\n";
    let book = RulesBook::parse(
        &[("bad.yaml".to_owned(), wrong.to_owned())],
        &ConfiguredInstances::default(),
    );
    let [problem] = book.problems() else {
        panic!("{book:?}")
    };
    assert_eq!((problem.line, problem.key.as_str()), (2, "commits.author"));
}

/// Two repositories with a component and a label, and one without selectors.
const SHARED: [(&str, &str); 3] = [
    (
        "cart.yaml",
        "repo: {owner: acme, name: cart}\njira: {project_key: ENG, components: [Cart], labels: [basket]}\n",
    ),
    (
        "docs.yaml",
        "repo: {owner: acme, name: docs}\njira: {project_key: ENG, components: [Manual]}\n",
    ),
    (
        "rest.yaml",
        "repo: {owner: acme, name: rest}\njira: {project_key: ENG}\n",
    ),
];

#[test]
fn components_and_labels_select_shared_repository() {
    let chosen = |files: &[(&str, &str)], components: &[&str], labels: &[&str]| {
        let book = parse_book(files);
        assert_eq!(book.problems(), []);
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let marks = domain::TicketMarks {
            components: &owned(components),
            labels: &owned(labels),
            fields: &[],
        };
        let place = book.place(&"jira:ENG-1".parse().unwrap(), marks);
        match (place.rules(), place.problem()) {
            (Some(rules), None) => rules.repo.name.clone(),
            (None, Some(domain::SkipReason::UnclearRepository { choices })) => {
                let names: Vec<_> = choices.into_iter().map(|choice| choice.repository).collect();
                names.join(" or ")
            }
            other => panic!("{other:?}"),
        }
    };
    for (components, labels, repository) in [
        (&["cart"][..], &[][..], "cart"),
        (&[], &["basket"], "cart"),
        (&[], &["Basket"], "rest"),
        (&["Manual", "Tax"], &["other"], "docs"),
        (&[], &[], "rest"),
        (&["Manual"], &["basket"], "acme/cart or acme/docs"),
    ] {
        assert_eq!(
            chosen(&SHARED, components, labels),
            repository,
            "{components:?} {labels:?}"
        );
    }
    // Without such a repository, a ticket that matches none of them is not assigned.
    assert_eq!(chosen(&SHARED[..2], &["Tax"], &[]), "acme/cart or acme/docs");
    assert_eq!(chosen(&SHARED[..1], &[], &[]), "acme/cart");
}

#[test]
fn field_selects_repository_of_shared_project() {
    let tax = "repo: {owner: acme, name: tax}\njira: {project_key: ENG, field: {name: Service, values: [Tax, VAT]}}\n";
    let book = parse_book(&[SHARED[0], SHARED[2], ("tax.yaml", tax)]);
    assert_eq!(book.problems(), []);
    let ticket = "jira:ENG-1".parse().unwrap();
    assert_eq!(book.fields_of(&ticket), ["Service"]);
    let chosen = |name: &str, value: &str| {
        let fields = [(name.to_owned(), value.to_owned())];
        let place = book.place(
            &ticket,
            domain::TicketMarks {
                fields: &fields,
                ..domain::TicketMarks::default()
            },
        );
        place.rules().map(|rules| rules.repo.name.clone())
    };
    assert_eq!(chosen("service", "vat").as_deref(), Some("tax"));
    assert_eq!(chosen("Service", "Cart").as_deref(), Some("rest"));
    assert_eq!(chosen("Team", "Tax").as_deref(), Some("rest"));
}

#[test]
fn two_files_claiming_same_selector_are_refused() {
    let first =
        "repo: {owner: acme, name: tax}\njira: {project_key: ENG, field: {name: Service, values: [Tax]}}\n";
    let second = "repo: {owner: acme, name: vat}\njira: {project_key: ENG, field: {name: Service, values: [VAT, TAX]}}\n";
    let both = parse_book(&[("first.yaml", first), ("second.yaml", second)]);
    assert_eq!(both.problems()[0].key, "jira.field");
    let empty = "repo: {owner: acme, name: tax}\njira: {project_key: ENG, field: {name: Service}}\n";
    assert_eq!(
        parse_book(&[("empty.yaml", empty)]).problems()[0].key,
        "jira.field"
    );
    for (jira, key) in [
        ("{project_key: ENG, components: [CART]}", "jira.components"),
        ("{project_key: ENG, labels: [other, basket]}", "jira.labels"),
    ] {
        let second = format!("repo: {{owner: acme, name: other}}\njira: {jira}\n");
        let book = parse_book(&[SHARED[0], ("second.yaml", second.as_str())]);
        let keys: Vec<_> = book
            .problems()
            .iter()
            .map(|problem| problem.key.as_str())
            .collect();
        assert_eq!(keys, [key]);
    }
}

#[test]
fn called_issue_is_on_jira_of_rules() {
    let dc: InstanceName = "dc".parse().unwrap();
    let connections = ConfiguredInstances {
        jira: BTreeSet::from([dc]),
        ..ConfiguredInstances::default()
    };
    let files = [
        (
            "shop.yaml",
            "repo: {owner: acme, name: shop}\njira: {project_key: ENG}\n",
        ),
        (
            "web.yaml",
            "repo: {owner: acme, name: web}\njira: {project_key: ENG, instance: dc}\n",
        ),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let book = RulesBook::parse(&files, &connections);
    assert_eq!(book.problems(), []);
    for (repository, issue) in [
        ("acme/shop", "jira:ENG-1"),
        ("acme/web", "jira+dc:ENG-1"),
        ("acme/unknown", "jira:ENG-1"),
    ] {
        let called = book.called_issue(&repository.parse().unwrap(), "ENG-1").unwrap();
        assert_eq!(called.to_string(), issue, "{repository}");
    }
    assert!(book.called_issue(&"acme/web".parse().unwrap(), "ENG").is_err());
}

#[test]
fn key_source_is_own_file_or_last_defaults() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a-defaults.yaml", "agent: {status: Ready}\nskip: {labels: [a]}\n"),
        ("b-defaults.yaml", "agent:\n  max_turns: 5\n  status: Go\n"),
        ("bad.yaml", "repo: [\n"),
        (
            "shop.yaml",
            "repo: {owner: acme, name: shop}\njira:\n  project_key: ENG\n",
        ),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let find = |repository: &str, key: &str| {
        let repository = repository.parse().unwrap();
        let found = RulesBook::find_key_source(folder.path(), &repository, key).unwrap();
        found.map(|source| (source.file, source.line))
    };
    let place = |file: &str, line| Some((file.to_owned(), line));
    assert_eq!(find("acme/shop", "jira.project_key"), place("shop.yaml", 3));
    assert_eq!(find("acme/shop", "agent.status"), place("b-defaults.yaml", 3));
    assert_eq!(find("acme/shop", "skip.labels"), place("a-defaults.yaml", 2));
    assert_eq!(find("acme/shop", "jira.labels"), None);
    assert_eq!(find("acme/other", "agent.status"), None);
}

#[test]
fn problem_shows_known_position_only() {
    let shown = |line, key: &str| {
        let problem = FileProblem {
            file: "shop.yaml".to_owned(),
            line,
            key: key.to_owned(),
            problem: "is not valid".to_owned(),
            repository: None,
        };
        problem.to_string()
    };
    assert_eq!(shown(3, "ci.checks"), "shop.yaml:3 ci.checks: is not valid");
    assert_eq!(shown(0, "ci.checks"), "shop.yaml ci.checks: is not valid");
    assert_eq!(shown(3, ""), "shop.yaml:3: is not valid");
    assert_eq!(shown(0, ""), "shop.yaml: is not valid");
}
