//! Checks of the files of the machine that commands can read.

use super::*;

/// Files planted below a home folder, at paths that no list of credentials contains.
const AT_HOME: [&str; 6] = [
    ".dbt/profiles.yml",
    "notes.txt",
    ".config/git/credentials",
    ".cargo/credentials.toml",
    ".password-store/key.gpg",
    "projects/other/.env",
];

/// File with the secret in a folder of data, where this test may write; removed when dropped.
struct Data(PathBuf);

impl Data {
    fn plant(folder: &str, name: &str) -> Option<Self> {
        let path = Path::new(folder).join(format!("journeyman-test-{name}-{}", std::process::id()));
        fs::write(&path, CANARY).is_ok().then_some(Self(path))
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn check_09_homes_and_data_unreachable() {
    at_each_level("9 homes, data folders, services", Needs::Files, |world, level| {
        let home = world.path("home");
        for name in AT_HOME {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, CANARY).unwrap();
        }
        let name = level.name().replace(|letter: char| !letter.is_alphanumeric(), "");
        let folders = [
            "/srv",
            "/mnt",
            "/media",
            "/var/lib",
            "/var/log",
            "/var/spool",
            "/var/tmp",
            "/tmp",
            "/run",
        ];
        let data: Vec<Data> = folders
            .iter()
            .filter_map(|folder| Data::plant(folder, &name))
            .collect();
        assert!(!data.is_empty(), "no folder of data can be written here");
        let planted = AT_HOME.map(|name| home.join(name)).into_iter();
        let paths: Vec<PathBuf> = planted.chain(data.iter().map(|data| data.0.clone())).collect();
        world.all_denied(
            level,
            &format!("for path in {paths:?}:\n    attempt(path.replace(' ', '_'), lambda: read(path))\n"),
        );
    });
}

#[test]
fn exposed_paths_readable_except_hidden() {
    at_each_level("9 exposed and hidden places", Needs::Files, |world, level| {
        let shared = world.path("shared");
        fs::create_dir_all(shared.join("private")).unwrap();
        for (name, text) in [("list", "public"), ("key", CANARY), ("private/key", CANARY)] {
            fs::write(shared.join(name), text).unwrap();
        }
        let arguments = [("--expose", ""), ("--hide", "key"), ("--hide", "private")];
        let mut command = world.command("exec", level);
        for (option, name) in arguments {
            command.arg(option).arg(shared.join(name));
        }
        let script =
            format!("cd {shared:?} && cat list && ! touch new && ! grep -q . key && ! grep -rq . private");
        let (code, text) = read_safe_output(command.args(["--", "bash", "-c", &script]).output().unwrap());
        assert!(
            code == 0 && text.contains("public"),
            "{}: {code} {text}",
            level.name()
        );
    });
}

#[test]
fn check_09_namespaces_hide_machine_files() {
    for level in list_reached_levels(Needs::Processes)
        .into_iter()
        .filter(|level| level.has_namespaces())
    {
        let world = World::new();
        let text = world.shell(
            level,
            "ls /; ls -A /root /home /srv /var 2> /dev/null; test -e $HOME/notes.txt || echo none",
        );
        let known = [
            "bin", "dev", "etc", "gnu", "home", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc",
            "root", "sbin", "snap", "sys", "tmp", "usr", "var",
        ];
        // Folders of `PATH` are visible at any location.
        let path = world.shell(level, "echo $PATH");
        let on_path = |name: &str| {
            path.split(':')
                .any(|folder| folder.split('/').nth(1) == Some(name))
        };
        let root: Vec<&str> = text
            .lines()
            .take_while(|line| !line.is_empty() && !line.starts_with('/'))
            .collect();
        assert!(
            root.contains(&"usr") && root.iter().all(|name| known.contains(name) || on_path(name)),
            "{text}"
        );
        assert!(text.ends_with("none\n"), "{text}");
        print_result_row("9 the rest of the machine does not exist", level.name(), "held");
    }
}
