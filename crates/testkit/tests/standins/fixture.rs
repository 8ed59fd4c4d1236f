//! The demo's repository: its tests fail before the script's edit and pass after it.

use std::path::Path;
use std::process::Command;

use testkit::fixture;

fn tests_pass(directory: &Path) -> bool {
    let words: Vec<&str> = fixture::TEST_COMMAND.split(' ').collect();
    Command::new(words[0])
        .args(["-B"])
        .args(&words[1..])
        .current_dir(directory)
        .output()
        .unwrap()
        .status
        .success()
}

#[test]
fn fixture_tests_pass_only_after_edit() {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in fixture::list_shop_files() {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    assert!(!tests_pass(directory.path()));

    let steps = fixture::build_shop_script();
    let (_, input) = steps
        .iter()
        .flat_map(|step| &step.calls)
        .find(|(name, _)| name == "edit_file")
        .unwrap();
    let edits = input["edits"].as_str().unwrap();
    let search = edits
        .split_once("SEARCH\n")
        .unwrap()
        .1
        .split_once("\n=======")
        .unwrap()
        .0;
    let replace = edits
        .split_once("=======\n")
        .unwrap()
        .1
        .split_once("\n>>>>>>>")
        .unwrap()
        .0;
    let file = directory.path().join(input["path"].as_str().unwrap());
    let before = std::fs::read_to_string(&file).unwrap();
    assert_eq!(before.matches(search).count(), 1);
    std::fs::write(&file, before.replace(search, replace)).unwrap();
    assert!(tests_pass(directory.path()));
}
