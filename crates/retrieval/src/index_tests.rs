//! Index of small trees in memory.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    ops::ControlFlow,
    path::Path,
    sync::Arc,
};

use tempfile::TempDir;

use crate::{
    AttributeRules, BlobId, ChunkKind, CodeDefinition, CodeIndex, ContentSource, Error, IndexSkip,
    IndexedTree, ModuleFolders, SearchAnswer, SearchQuery, SearchRequest, SharedReadFailure, TreeFile,
    UpdateProgress, UpdateSummary,
};

/// Contents by id, and the number of reads.
#[derive(Default)]
struct Memory {
    contents: HashMap<BlobId, Vec<u8>>,
    reads: usize,
}

/// Contents by path.
type Files = BTreeMap<String, Vec<u8>>;

fn collect_files<const N: usize>(files: [(&str, &str); N]) -> Files {
    files
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .collect()
}

impl Memory {
    fn tree(&mut self, files: &Files) -> Vec<TreeFile> {
        let file = |(path, content): (&String, &Vec<u8>)| {
            let blob = compute_blob_id(content);
            self.contents.insert(blob, content.clone());
            TreeFile {
                path: path.clone(),
                blob,
            }
        };
        files.iter().map(file).collect()
    }
}

/// Id of a content, different for the contents of one test.
fn compute_blob_id(content: &[u8]) -> BlobId {
    let mut id = [0_u8; 20];
    for (at, byte) in content.iter().enumerate() {
        let slot = &mut id[at % 20];
        *slot = slot.wrapping_mul(31).wrapping_add(*byte).wrapping_add(at as u8);
    }
    id[0] = id[0].wrapping_add(content.len() as u8);
    BlobId(id)
}

impl ContentSource for Memory {
    fn read(&mut self, blob: BlobId, max: u64) -> Result<Vec<u8>, SharedReadFailure> {
        self.reads += 1;
        let content = self.contents.get(&blob).ok_or(SharedReadFailure::Missing)?;
        if content.len() as u64 > max {
            return Err(SharedReadFailure::TooLarge);
        }
        Ok(content.clone())
    }

    /// Finds `fn name` up to the next line that is `}`.
    fn outline(&mut self, _path: &str, text: &str) -> Vec<CodeDefinition> {
        let lines: Vec<&str> = text.lines().collect();
        let mut found = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            if let Some(rest) = line.strip_prefix("fn ") {
                let end = lines[at..]
                    .iter()
                    .position(|line| *line == "}")
                    .map_or(at, |end| at + end);
                found.push(CodeDefinition {
                    name: rest.split('(').next().unwrap().to_owned(),
                    line: at + 1,
                    end: end + 1,
                    depth: 0,
                    signature: (*line).to_owned(),
                });
            }
        }
        found
    }
}

struct World {
    memory: Memory,
    index: CodeIndex,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self {
            memory: Memory::default(),
            index: CodeIndex::open(folder.path()).unwrap(),
            folder,
        }
    }

    fn update(&mut self, files: &Files) -> (Arc<IndexedTree>, UpdateSummary) {
        let tree = self.memory.tree(files);
        let attributes = AttributeRules::default();
        let go_on = &mut |_| ControlFlow::Continue(());
        self.index
            .update(&tree, &attributes, &mut self.memory, go_on)
            .unwrap()
    }

    fn search(&self, tree: &Arc<IndexedTree>, text: &str) -> SearchAnswer {
        self.search_with(tree, text, |_| {})
    }

    fn search_with(
        &self,
        tree: &Arc<IndexedTree>,
        text: &str,
        change: impl FnOnce(&mut SearchRequest<'_>),
    ) -> SearchAnswer {
        let (query, modules) = (SearchQuery::from_text(text), ModuleFolders::default());
        let read = |blob: BlobId| self.memory.contents.get(&blob).cloned();
        let mut request = SearchRequest::new(&query, &modules);
        change(&mut request);
        self.index.search(tree, &request, &read).unwrap()
    }

    fn paths(&self, tree: &Arc<IndexedTree>, text: &str) -> Vec<String> {
        let found = self.search(tree, text).found;
        found.into_iter().map(|found| found.path).collect()
    }
}

/// Function with a body that is long enough for a separate chunk.
fn render_function(name: &str, body: &str) -> String {
    let filler: String = (0..45)
        .map(|at| format!("    step_{at}(\"some filling of this body number {at}\");\n"))
        .collect();
    format!("/// Does {name}.\nfn {name}() {{\n    {body}\n{filler}}}\n\n")
}

fn build_shop_files() -> Files {
    let cart = render_function("cart_total", "sum(items) - discount")
        + &render_function("empty_cart", "clear(items)");
    let refund = render_function(
        "refund_order",
        "fail(\"cannot refund an order that was never paid\"); cart_total()",
    );
    let mut files = collect_files([
        ("Cargo.toml", "[package]\nname = \"shop\"\n"),
        ("src/user.rs", "fn login() {\n}\n"),
        (
            "docs/refunds.md",
            "# Refunds\n\nA refund gives the money of an order back.\n",
        ),
        (
            "tests/refund.rs",
            "fn refund_order_gives_money_back() {\n    refund_order();\n}\n",
        ),
    ]);
    files.insert("src/cart.rs".to_owned(), cart.into_bytes());
    files.insert("src/refund.rs".to_owned(), refund.into_bytes());
    files
}

#[test]
fn each_mention_finds_chunk_with_reason() {
    let mut world = World::new();
    let (tree, updated) = world.update(&build_shop_files());
    assert_eq!((updated.indexed, updated.skipped), (6, 0));
    let first = |text: &str| {
        let found = world.search(&tree, text).found;
        let first = found.first().unwrap_or_else(|| panic!("nothing for {text}"));
        (
            first.path.clone(),
            first.symbol.clone(),
            first.start,
            first.reason.clone(),
        )
    };
    let (path, symbol, start, reason) = first("It panicked at src/cart.rs:60:9");
    assert_eq!(
        (path.as_str(), symbol.as_str(), start),
        ("src/cart.rs", "empty_cart", 51)
    );
    assert!(reason.starts_with("named in the text"), "{reason}");
    let (path, symbol, _, reason) = first("`cart_total` is negative");
    assert_eq!((path.as_str(), symbol.as_str()), ("src/cart.rs", "cart_total"));
    assert!(reason.contains("defines cart_total"), "{reason}");
    let (path, _, _, reason) = first("I get: Error: cannot refund an order that was never paid 17");
    assert_eq!(path, "src/refund.rs");
    assert!(
        reason.contains("has the message \"cannot refund an order that was never paid\""),
        "{reason}"
    );
    let (path, _, _, reason) = first("Refunds of orders give too little");
    assert_eq!(path, "src/refund.rs", "code comes before tests and prose");
    assert!(reason.contains("words: "), "{reason}");
}

#[test]
fn unrelated_text_has_no_confident_match() {
    let mut world = World::new();
    let (tree, _) = world.update(&build_shop_files());
    for text in [
        "",
        "the of and",
        "Kubernetes ingress annotations",
        "src/nowhere.rs is broken",
    ] {
        assert_eq!(world.search(&tree, text), SearchAnswer::default(), "{text}");
    }
}

#[test]
fn unchanged_file_is_read_once() {
    let mut world = World::new();
    let (first, _) = world.update(&build_shop_files());
    let reads = world.memory.reads;
    let (again, updated) = world.update(&build_shop_files());
    assert_eq!(
        updated,
        UpdateSummary {
            known: 6,
            ..UpdateSummary::default()
        }
    );
    assert_eq!(world.memory.reads, reads);
    assert_eq!(
        world.search(&first, "`cart_total`"),
        world.search(&again, "`cart_total`")
    );

    let mut changed = build_shop_files();
    changed.insert(
        "src/cart.rs".to_owned(),
        render_function("basket_sum", "sum(items)").into_bytes(),
    );
    let (second, updated) = world.update(&changed);
    assert_eq!((updated.known, updated.indexed), (5, 1));
    assert_eq!(world.paths(&first, "`basket_sum`"), Vec::<String>::new());
    assert_eq!(
        world.paths(&second, "`basket_sum`").first().unwrap(),
        "src/cart.rs"
    );
    assert!(
        world.search(&first, "`cart_total`").found[0]
            .reason
            .contains("defines")
    );

    // The same holds after a restart.
    let memory = std::mem::take(&mut world.memory);
    let folder = world.folder;
    drop(world.index);
    let index = CodeIndex::open(folder.path()).unwrap();
    let mut world = World {
        memory,
        index,
        folder,
    };
    let (_, updated) = world.update(&changed);
    assert_eq!(updated.known, 6);
}

#[test]
fn a_broken_index_is_built_again() {
    let find = |folder: &Path, wanted: &str| {
        let mut found = Vec::new();
        let mut queue = vec![folder.to_owned()];
        while let Some(folder) = queue.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    queue.push(path);
                } else if path.file_name().unwrap().to_str().unwrap().starts_with(wanted) {
                    found.push(path);
                }
            }
        }
        found
    };
    for wanted in ["catalog.", "meta.json"] {
        for content in ["", "garbage\n", "{}"] {
            let mut world = World::new();
            world.update(&build_shop_files());
            drop(world.index);
            for path in find(world.folder.path(), wanted) {
                fs::write(path, content).unwrap();
            }
            world.index = CodeIndex::open(world.folder.path()).unwrap();
            let (tree, updated) = world.update(&build_shop_files());
            assert_eq!(updated.indexed, 6, "{wanted} {content}");
            assert_eq!(world.paths(&tree, "`cart_total`").first().unwrap(), "src/cart.rs");
        }
    }
}

#[test]
fn another_version_of_the_index_goes() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("v0/index")).unwrap();
    let index = CodeIndex::open(folder.path()).unwrap();
    assert!(!folder.path().join("v0").exists());
    assert_eq!((index.files(), index.chunks()), (0, 0));
}

#[test]
fn hostile_files_are_indexed_or_skipped() {
    let mut world = World::new();
    let mut all = build_shop_files();
    let hostile: Vec<(&str, Vec<u8>, Option<IndexSkip>)> = vec![
        ("binary.rs", b"fn a() {\0}".to_vec(), Some(IndexSkip::Binary)),
        ("line.js", vec![b'x'; 400_000], Some(IndexSkip::LongLines)),
        (
            "large.txt",
            b"word word\n".repeat(60_000),
            Some(IndexSkip::TooLarge),
        ),
        ("latin.rs", b"fn caf\xe9() {\n    \xff\xfe\n}\n".to_vec(), None),
        (
            "deep.rs",
            [b"(\n".repeat(100_000), b"fn x()\n".to_vec()].concat(),
            None,
        ),
        ("breaks.md", b"#\n# \n#######\n\r\n```\n".repeat(4000), None),
        ("empty.rs", b"\n \n".to_vec(), Some(IndexSkip::Empty)),
        ("same.rs", "fn same() {}\n".repeat(5000).into_bytes(), None),
        ("bidi\u{202e}\n.rs", b"fn bidi() {\n}\n".to_vec(), None),
    ];
    for (path, content, _) in &hostile {
        all.insert((*path).to_owned(), content.clone());
    }
    let (tree, updated) = world.update(&all);
    let skipped = hostile.iter().filter(|(.., skip)| skip.is_some()).count();
    assert_eq!((updated.skipped, updated.indexed), (skipped, all.len() - skipped));
    for (path, _, skip) in &hostile {
        assert_eq!(tree.skip(path), *skip, "{path}");
    }
    assert_eq!(world.paths(&tree, "`cart_total`").first().unwrap(), "src/cart.rs");
    assert_eq!(world.paths(&tree, "`bidi`").first().unwrap(), "bidi\u{202e}\n.rs");
    assert!(world.search(&tree, &"a`b\"/:.(".repeat(5000)).found.len() <= 10);
}

#[test]
fn interrupted_update_leaves_index_unchanged() {
    let mut world = World::new();
    let tree = world.memory.tree(&build_shop_files());
    let mut seen = Vec::new();
    let mut stop = |progress: UpdateProgress| {
        seen.push((progress.done, progress.all));
        if progress.done == 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let cut = world
        .index
        .update(&tree, &AttributeRules::default(), &mut world.memory, &mut stop);
    assert!(matches!(cut, Err(Error::Interrupted)));
    assert_eq!(seen, [(0, 6), (1, 6), (2, 6), (3, 6)]);
    assert_eq!((world.index.files(), world.index.chunks()), (0, 0));
    let (_, updated) = world.update(&build_shop_files());
    assert_eq!(updated.indexed, 6);
}

#[test]
fn unreadable_file_is_retried_by_next_update() {
    let mut world = World::new();
    let tree = world.memory.tree(&build_shop_files());
    let missing = tree.iter().find(|file| file.path == "src/cart.rs").unwrap().blob;
    let content = world.memory.contents.remove(&missing).unwrap();
    let go_on = &mut |_| ControlFlow::Continue(());
    let attributes = AttributeRules::default();
    let (_, updated) = world
        .index
        .update(&tree, &attributes, &mut world.memory, go_on)
        .unwrap();
    assert_eq!((updated.indexed, updated.unread), (5, 1));
    world.memory.contents.insert(missing, content);
    let (_, updated) = world.update(&build_shop_files());
    assert_eq!((updated.indexed, updated.known), (1, 5));
}

#[test]
fn tidy_deletes_many_unused_files() {
    let mut world = World::new();
    let old: Files = (0..2500)
        .map(|at| {
            (
                format!("src/old_{at}.rs"),
                format!("fn old_{at}() {{\n}}\n").into_bytes(),
            )
        })
        .collect();
    let (tree, _) = world.update(&old);
    world.index.tidy().unwrap();
    assert_eq!(world.index.files(), 2500, "it is in use");
    drop(tree);
    let (tree, _) = world.update(&build_shop_files());
    world.index.tidy().unwrap();
    assert_eq!(world.index.files(), 6);
    assert_eq!(world.paths(&tree, "`cart_total`").first().unwrap(), "src/cart.rs");
    let (_, updated) = world.update(&old);
    assert_eq!(updated.indexed, 2500);
}

#[test]
fn module_cap_follows_rules_or_packages() {
    let mut world = World::new();
    let mut all = Files::new();
    for module in ["alpha", "beta", "gamma"] {
        for at in 0..8 {
            let body = render_function(&format!("convert_currency_{at}"), "rate * amount");
            all.insert(format!("{module}/src/money_{at}.rs"), body.into_bytes());
        }
        all.insert(format!("{module}/Cargo.toml"), b"[package]\n".to_vec());
    }
    let (tree, _) = world.update(&all);
    let answer = world.search(&tree, "Currency amounts are converted with a wrong rate");
    assert_eq!(answer.found.len(), 10);
    assert!(answer.is_truncated);
    for module in ["alpha", "beta", "gamma"] {
        let of_module = answer
            .found
            .iter()
            .filter(|found| found.path.starts_with(module))
            .count();
        assert!((2..=4).contains(&of_module), "{module}: {of_module}");
    }
    let modules = ModuleFolders::new(["beta/".to_owned()]);
    let query = SearchQuery::from_text("Currency amounts are converted with a wrong rate");
    let read = |blob: BlobId| world.memory.contents.get(&blob).cloned();
    let answer = world
        .index
        .search(&tree, &SearchRequest::new(&query, &modules), &read)
        .unwrap();
    assert_eq!(answer.found.len(), 4);
    assert!(answer.found.iter().all(|found| found.path.starts_with("beta/")));
}

#[test]
fn kinds_and_scopes_narrow_a_search() {
    let mut world = World::new();
    let (tree, _) = world.update(&build_shop_files());
    let of = |kind| -> Vec<String> {
        let found = world
            .search_with(&tree, "refund_order", |request| request.kind = kind)
            .found;
        found.into_iter().map(|found| found.path).collect()
    };
    assert_eq!(of(ChunkKind::Test), ["tests/refund.rs"]);
    assert_eq!(of(ChunkKind::Docs), ["docs/refunds.md"]);
    assert_eq!(of(ChunkKind::Definition).first().unwrap(), "src/refund.rs");
    assert!(
        !of(ChunkKind::Usage).contains(&"src/refund.rs".to_owned()),
        "{:?}",
        of(ChunkKind::Usage)
    );
    assert!(of(ChunkKind::Usage).contains(&"tests/refund.rs".to_owned()));
    let scoped = world.search_with(&tree, "refund_order", |request| {
        request.scope = Some(&|path| path.starts_with("docs/"))
    });
    assert_eq!(scoped.found.len(), 1);
}

#[test]
fn candidates_include_their_text() {
    let mut world = World::new();
    let (tree, _) = world.update(&build_shop_files());
    let answer = world.search_with(&tree, "refund an order", |request| {
        request.max = 1;
        request.candidates = 50;
    });
    assert_eq!(answer.found.len(), 1);
    assert!(answer.candidates.len() > 2);
    let refund = answer
        .candidates
        .iter()
        .find(|one| one.found.path == "src/refund.rs")
        .unwrap();
    assert!(refund.text.contains("never paid"));
}

#[test]
fn connected_files_find_each_other() {
    let mut world = World::new();
    let mut all = build_shop_files();
    let helper = render_function("apply_rounding_rule", "ceil(value)");
    all.insert("lib/numbers.rs".to_owned(), helper.into_bytes());
    let caller = render_function("invoice_sum", "apply_rounding_rule(total)");
    all.insert("src/invoice.rs".to_owned(), caller.into_bytes());
    let (tree, _) = world.update(&all);
    let before = world.search(&tree, "`invoice_sum` is off by a cent, value rounding");
    world.index.connect(&tree).unwrap();
    let after = world.search(&tree, "`invoice_sum` is off by a cent, value rounding");
    assert_eq!(before.found[0].path, "src/invoice.rs");
    let helper = after
        .found
        .iter()
        .find(|found| found.path == "lib/numbers.rs")
        .unwrap();
    assert!(
        helper.reason.contains("shares names") || helper.score > 0.0,
        "{}",
        helper.reason
    );
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(12))]

    #[test]
    fn reindexed_tree_gives_same_answer(
        texts in proptest::collection::vec("(fn [a-c]{3}\\(\\)\n|[a-e]{3,5} |\n|\\PC){1,40}", 1..8),
        asked in "([a-e]{3,5} |`[a-c]{3}` ){1,5}",
    ) {
        let all: Files = texts
            .iter()
            .enumerate()
            .map(|(at, text)| (format!("src/file_{at}.rs"), text.clone().into_bytes()))
            .collect();
        let (mut one, mut other) = (World::new(), World::new());
        let (first, updated) = one.update(&all);
        let (second, same) = other.update(&all);
        proptest::prop_assert_eq!(updated, same);
        proptest::prop_assert_eq!(one.search(&first, &asked), other.search(&second, &asked));
        let (again, nothing) = one.update(&all);
        proptest::prop_assert_eq!(nothing.indexed, 0);
        proptest::prop_assert_eq!(one.search(&first, &asked), one.search(&again, &asked));
    }
}
