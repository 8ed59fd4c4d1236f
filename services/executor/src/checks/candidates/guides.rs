//! Finds commands in guides for contributors and agents: in fenced or indented blocks, and in sentences about
//! tests.

use domain::check::CheckCandidate;

use super::{file_name, parent_folder};
use crate::pattern::LazyPattern;

// Users do not type longer commands; longer lines are output or data.
const MAX_COMMAND: usize = 300;
/// Languages of fenced blocks that contain shell commands; the empty one is a block without a language.
const SHELLS: [&str; 9] = [
    "",
    "bash",
    "console",
    "sh",
    "shell",
    "shell-session",
    "zsh",
    "terminal",
    "shellsession",
];
/// File names of guides for contributors and agents, in lower case and without extension.
const GUIDES: [&str; 12] = [
    "agents",
    "claude",
    "gemini",
    "contributing",
    "copilot-instructions",
    "developing",
    "development",
    "hacking",
    "readme",
    "testing",
    "tests",
    "developers",
];
/// Command lines that run tests, with the usual wrappers (`env`, `uv run`, `npx`, …) before the runner.
static TESTS: LazyPattern = LazyPattern::new(
    r"(?x)^(?:[A-Z_][A-Z0-9_]*=\S*\s+)*(?:(?:cd|pushd)\s+[\w./-]+\s*&&\s*)?(?:(?:time|env|nice|xvfb-run(?:\s+-a)?|direnv\s+exec\s+\.|nix\s+(?:develop|shell)\s+(?:[\w.\#:/=~@+-]+\s+)*?(?:-c|--command)|devbox\s+run(?:\s+--)?)\s+)*
    (?:(?:uv|uvx|poetry|pipenv|pdm|pixi|rye|hatch|conda|micromamba|mise|asdf)\s+(?:run|exec|x|tool\s+run)?\s*(?:--?[\w-]+(?:[=\s][\w./-]+)?\s+)*(?:--\s+)?)?(?:bundle\s+exec\s+|npx\s+(?:--?\S+\s+)*|pnpm\s+(?:exec|dlx)\s+|yarn\s+(?:exec\s+)?|bunx\s+|corepack\s+)?(?:[\w.~/-]*/)?(?:
      make\s+(?:-\S+\s+)*[\w./-]*(?:test|check|ci|verify)[\w-]*\b | just\s+[\w-]*(?:test|check|ci|verify)[\w-]*\b | (?:go-)?task\s+[\w:-]*(?:test|check|ci)[\w:-]*\b | rake\s+[\w:]*(?:test|spec|check)[\w:]*\b
    | (?:npm|pnpm|yarn|bun|lerna|turbo|nx|rush|moon)\s+(?:-[\w-]+(?:[=\s][\w@./*-]+)?\s+)*(?:run(?:-many)?\s+)?(?:-[\w-]+(?:[=\s][\w@./*-]+)?\s+)*(?:test|check|verify|ci|spec|unit)[\w:-]*\b | (?:nx|turbo)\s+.*\btest\b | npm\s+t\b
    | moon\s+(?:run|r)\s+(?:-\S+\s+)*[\w.~^/-]*:(?:test|check|verify|ci|spec|unit)[\w-]*\b
    | (?:(?:hatch|pdm|pixi|rye|mise|devbox)\s+(?:-\S+\s+)*run|poe|inv(?:oke)?|doit)\s+(?:[+-]\S+\s+)*(?:[\w.+-]+:)?(?:test|check|cov|spec|unit)[\w:.+-]*(?:\s|$)
    | (?:jest|vitest|mocha|ava|tap|tape|karma|cypress|playwright)\b | (?:pytest|py\.test|tox|nox|nosetests|trial|ward|stestr)\b | unittest\b | test\b\s*$
    | python[\d.]*\s+(?:-\S+\s+)*(?:-m\s+)?(?:coverage\s+run\s+(?:-\S+\s+)*(?:-m\s+)?)?(?:pytest|unittest|tox|nox|nose2?|doctest|testtools\.run|stestr|trial|django\s+test)\b | python[\d.]*\s+(?:-\S+\s+)*\S*(?:runtests?|run_tests?|test\w*|tests?/\S+)\.py\b | python[\d.]*\s+\S*manage\.py\s+test\b | python[\d.]*\s+setup\.py\s+test\b | coverage\s+run\b
    | cargo\s+(?:\+\S+\s+)?(?:test|nextest|xtask\s+(?:test|ci|check)|make\s+test|hack\s+.*test|llvm-cov|miri\s+test)\b | (?:go|gotestsum|ginkgo)\s+(?:test|vet)\b | gotestsum\b | ginkgo\b
    | (?:gradlew?|mvnw?|mvnd|sbt|mill|lein|clojure|ant)\b.*\b(?:test|check|verify|spec)\w*\b
    | (?:rspec|minitest|cucumber)\b | rails\s+(?:test|spec)\b | (?:phpunit|pest|phpspec|codecept|behat|atoum)\b | (?:composer|artisan|php\s+artisan|symfony)\s+(?:run(?:-script)?\s+)?(?:test|check)[\w:-]*\b
    | (?:dotnet|swift|mix|dbt|deno|dart|flutter|zig\s+build|stack|cabal|dune|rebar3|gleam|crystal|nim|nimble|julia|tofu|terraform|helm|forge|hardhat|anchor|bazel|bazelisk|buck2?|please|pants|meson|xmake|ctest|busted|luarocks|prove|bats|shellspec|tarpaulin|elm-test|spago|purs)\s+(?:task\s+|build\s+)?(?:.*\s)?(?:test|tests|runtest|eunit|spec|unittest|check|build)\b
    | (?:ctest|bats|prove|busted|shellspec|elm-test|hatch\s+test|dune\s+runtest|rebar3\s+(?:eunit|ct))\b | node\s+(?:--\S+\s+)*--test\b | [\w-]*(?:test|check|spec|verify)[\w-]*(?:\.(?:sh|bash|py|rb|pl|js|mjs|ts|ps1))?(?:\s|$) )",
);
/// Words of a heading or sentence that introduces a test command.
static ABOUT_TESTS: LazyPattern = LazyPattern::new(
    r"(?i)\b(?:tests?|testing|test suite|unit tests?|specs?|checks?|verify|verification|validate)\b",
);
/// Commands that prepare, publish, delete or never end, and lines that are an example with a placeholder.
static UNFIT: LazyPattern = LazyPattern::new(
    r"(?xi)(?:^|&&\s*|;\s*|\|\|\s*|\s)(?:sudo|doas|rm|rmdir|mv|cp|dd|mkfs\S*|chmod|chown|kill|pkill|killall|shutdown|reboot|curl|wget|ssh|scp|rsync|git|gh|hub|svn|docker|podman|docker-compose|kubectl|helm\s+(?:install|upgrade|delete)|terraform\s+(?:apply|destroy)|aws|gcloud|az|heroku|fly|vercel|netlify|psql|mysql|createdb|dropdb|redis-cli|mongo\S*|apt|apt-get|brew|yum|dnf|pacman|apk|snap|choco|winget|pip\d?|pipx|conda\s+(?:install|create|env)|virtualenv|gem|export|source|alias|unset|eval|vim?|nano|less|more|tail|watch|cat|ls|touch|mkdir|ln|tar|unzip|tee|crontab|systemctl|service|nohup|screen|tmux)\s
    | \s(?:install|uninstall|publish|deploy)(?:\s|$) | ^(?:exec|open|start|code|set|\.)\s | ^(?:cd|pushd|popd|pwd|echo|printf|exit|return|true|false|man|which|type|\#|//|>|\$\s*$)(?:\s|$)
    | (?:^|&&\s*|;\s*)(?:[\w./-]+\s+(?:run(?:-script)?\s+)?)?(?:\.{0,2}/)?(?:[\w-]+/)*(?:install|uninstall|add|remove|publish|deploy|release|login|logout|init|create|clean|destroy|drop|reset|purge|migrate|seed|upgrade|serve|start|watch|daemon|repl|shell|console|generate|scaffold|push|upload|download|sync|clone|fetch|restore)(?:[\s:.-]|$) | ^[\w./-]+\s+(?:run\s+)?dev(?:\s|$) | :(?:watch|dev|debug|ui|update)\b | [\w-]*-(?:deploy|publish|release)\b
    | -m\s+(?:venv|pip|http\.server|build|twine)\b | \bcargo\s+(?:install|publish|run|clean|add)\b | \bgo\s+(?:install|get|run|mod)\b | --watch\b | --watchAll\b(?:\s|$) | \s-w(?:\s|$) | --ui\b | --headed\b | --debug\b | --inspect | --pdb\b | --update\S* | \s-u(?:\s|$)
    | [<>]|\||`|\$\(|&\s*$|(?:^|[^/])\.\.\.|…|\bpath/to\b|\bpath\\to\b|\byour[_-]|\bmy[_-]|\bexample\b|::|\bNAME\b|\bFILE\b|\{\w+\}|\[[\w\s-]+\]",
);
// `--watch` never ends and makes a command unfit; `--watch=false` ends by itself, so it is removed before
// `UNFIT` is tried.
static WATCHES_NOT: LazyPattern = LazyPattern::new(r"--watch(?:All)?=false|--no-watch");
/// Commands that only install dependencies, which is the task of setup: checks have no network.
static INSTALLS: LazyPattern = LazyPattern::new(
    r"(?x)^(?:[A-Z_][A-Z0-9_]*=\S*\s+)*(?:
      (?:npm|pnpm|bun)\s+(?:ci|clean-install|i|install)(?:\s+-\S+)* | yarn(?:\s+install)?(?:\s+--\S+)*
    | uv\s+(?:sync|venv|lock|pip\s+(?:install|sync))(?:\s+\S+)* | (?:uv\s+run\s+)?(?:python[\d.]*\s+-m\s+)?pip\d*\s+install(?:\s+\S+)*
    | (?:poetry|pdm|pipenv|rye|pixi|bundle|composer|conda|mamba)\s+(?:install|sync)(?:\s+\S+)*
    | go\s+mod\s+(?:download|tidy) | cargo\s+fetch(?:\s+\S+)* | mix\s+(?:deps\.get|local\.hex\s+--force) | dotnet\s+restore(?:\s+\S+)*
    | (?:npx\s+)?playwright\s+install(?:\s+\S+)* | corepack\s+enable(?:\s+\S+)* )$",
);
/// Commands of a project's own programs and task runners, but not output.
static PROJECT_COMMAND: LazyPattern = LazyPattern::new(
    r"^(?:[A-Z_][A-Z0-9_]*=\S*\s+)*(?:\.{0,2}/|[\w.~-]+/[\w.~-]|(?:make|just|task|go-task|rake|npm|pnpm|yarn|bun|uv|poetry|hatch|pdm|pixi|mise|moon|nix|bash|sh|python[\d.]*|ruby|php|perl|node|deno|cargo|go|mix|bundle|composer|dotnet)\s+\S)",
);
/// Words of commands that only prepare a test run.
static PREPARES: LazyPattern = LazyPattern::new(
    r"(?i)(?:^|[\s/:._-])(?:bootstrap|set-?up|configure|prepare|deps|venv|build|compile|up|down|docs?|fixtures?|gen)(?:[\s:._-]|$)",
);
static HEADING: LazyPattern = LazyPattern::new(r"^(?:#{1,6}\s+(.*)|=+\s+(.*)|\*\*(.+)\*\*:?)$");
static UNDERLINE: LazyPattern = LazyPattern::new(r"^(?:={3,}|-{3,}|~{3,})$");
static FENCE: LazyPattern = LazyPattern::new(r"^(?:`{3,}|~{3,})\s*\{?\.?([\w-]*)");
static INLINE: LazyPattern = LazyPattern::new(r"`([^`]+)`");
static PROMPT: LazyPattern = LazyPattern::new(r"^(?:\$|>|%|❯|#\s\$)\s+");

pub(super) fn is_guide_path(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let is_text = !name.contains('.')
        || [".md", ".rst", ".txt", ".mdx", ".adoc"]
            .iter()
            .any(|end| name.ends_with(end));
    let is_rules = matches!(name.as_str(), ".cursorrules" | ".windsurfrules" | ".clinerules");
    let is_near = matches!(parent_folder(path), "" | ".github" | "docs" | "doc" | ".claude");
    is_near && (is_rules || (is_text && GUIDES.contains(&stem)))
}

pub(super) fn find_guide_commands(path: &str, text: &str) -> Vec<CheckCandidate> {
    if !is_guide_path(path) {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    let mut reader = GuideReader::default();
    let lines: Vec<&str> = text.lines().collect();
    for (at, raw) in lines.iter().enumerate() {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        found.extend(reader.read_line(raw, next));
    }
    reader.end_section();
    // The first candidates become checks, so the less certain ones come last.
    found.extend(reader.unmarked);
    found
        .into_iter()
        .map(|command| CheckCandidate {
            command,
            directory: String::new(),
            why: format!("{path} names it"),
            known_at_base: false,
        })
        .collect()
}

/// State of the guide's text around the current line.
#[derive(Default)]
struct GuideReader {
    heading: String,
    /// Sentence or comment before a command.
    sentence: String,
    /// True when the open fenced block contains commands; `None` outside of a block.
    is_shell: Option<bool>,
    /// Beginning of a command that continues after a backslash.
    open: String,
    /// Commands of unknown runners directly below the current heading.
    section: Vec<String>,
    /// True when the section names a command that surely runs tests.
    is_certain: bool,
    /// Commands of unknown runners directly below earlier headings.
    unmarked: Vec<String>,
}

impl GuideReader {
    fn read_line(&mut self, raw: &str, next: &str) -> Vec<String> {
        let line = raw.trim();
        if let Some(fence) = FENCE.captures(line) {
            self.open.clear();
            self.is_shell = match self.is_shell {
                None => Some(SHELLS.contains(&&fence[1].to_ascii_lowercase()[..])),
                Some(_) => None,
            };
            return Vec::new();
        }
        match self.is_shell {
            Some(true) => self.read_command(line).into_iter().collect(),
            Some(false) => Vec::new(),
            None if raw.starts_with("    ") || raw.starts_with('\t') => {
                self.read_command(line).into_iter().collect()
            }
            None => self.read_prose(line, next),
        }
    }

    fn read_prose(&mut self, line: &str, next: &str) -> Vec<String> {
        if line.is_empty() {
            return Vec::new();
        }
        let heading = HEADING
            .captures(line)
            .and_then(|found| Some(found.iter().skip(1).flatten().next()?.as_str().to_owned()));
        if heading.is_some() || UNDERLINE.is_match(next.trim()) {
            self.end_section();
            self.heading = heading.unwrap_or_else(|| line.to_owned());
            self.sentence.clear();
            return Vec::new();
        }
        if UNDERLINE.is_match(line) {
            return Vec::new();
        }
        line.clone_into(&mut self.sentence);
        if !ABOUT_TESTS.is_match(line) && !ABOUT_TESTS.is_match(&self.heading) {
            return Vec::new();
        }
        let quoted = INLINE.all(line).map(|quoted| quoted[1].trim().to_owned());
        quoted
            .filter_map(|command| without_installation(&command))
            .filter(|command| command.contains(' ') && is_test_run(command))
            .collect()
    }

    fn read_command(&mut self, line: &str) -> Option<String> {
        if let Some(comment) = line.strip_prefix("# ") {
            comment.clone_into(&mut self.sentence);
            return None;
        }
        let part = PROMPT
            .find(line)
            .and_then(|prompt| line.get(prompt.end()..))
            .unwrap_or(line);
        let part = part.split(" # ").next().unwrap_or_default().trim();
        if let Some(begin) = part.strip_suffix('\\') {
            self.open.push_str(begin);
            return None;
        }
        let command = std::mem::take(&mut self.open) + part;
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        let command = without_installation(&command)?;
        if is_test_run(&command) {
            self.is_certain = true;
            return Some(command);
        }
        // A command of an unknown runner counts only when the words before it are about tests.
        if !is_harmless(&command) || !PROGRAM.is_match(&command) {
            return None;
        }
        if ABOUT_TESTS.is_match(&self.sentence) {
            return Some(command);
        }
        // A heading covers more than one command, so those that prepare and those that look like output are
        // left out.
        let is_below_heading = self.sentence.is_empty() && ABOUT_TESTS.is_match(&self.heading);
        if is_below_heading && PROJECT_COMMAND.is_match(&command) && !PREPARES.is_match(&command) {
            self.section.push(command);
        }
        None
    }

    /// Ends the text below a heading. Next to a command that surely runs tests, the others are its steps.
    fn end_section(&mut self) {
        let section = std::mem::take(&mut self.section);
        if !std::mem::take(&mut self.is_certain) {
            self.unmarked.extend(section);
        }
    }
}

/// Line that begins with a program, as a path or one word, and that is neither prose nor output.
static PROGRAM: LazyPattern = LazyPattern::new(
    r"^(?:[A-Z_][A-Z0-9_]*=\S*\s+)*(?:\.{0,2}/)?[\w~][\w./~-]*(?:\s+[\w./=:,@%+~*'\x22-]+)*$",
);

/// Returns a command without the parts that install dependencies; `None` when nothing else is left.
fn without_installation(command: &str) -> Option<String> {
    let parts: Vec<&str> = command.split("&&").map(str::trim).collect();
    let kept: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| !INSTALLS.is_match(part))
        .collect();
    if kept.len() == parts.len() {
        return Some(command.to_owned());
    }
    (!kept.is_empty()).then(|| kept.join(" && "))
}

fn is_test_run(command: &str) -> bool {
    is_harmless(command) && TESTS.is_match(command)
}

fn is_harmless(command: &str) -> bool {
    let tested = match WATCHES_NOT.find(command) {
        Some(found) => command.replacen(found.as_str(), "", 1),
        None => command.to_owned(),
    };
    // A change of folder before the command is harmless, so it does not count against the command.
    let tested = CHANGES_FOLDER
        .find(&tested)
        .and_then(|found| tested.get(found.end()..))
        .unwrap_or(&tested)
        .to_owned();
    !tested.trim().is_empty() && command.len() <= MAX_COMMAND && !UNFIT.is_match(&tested)
}

static CHANGES_FOLDER: LazyPattern = LazyPattern::new(r"^(?:cd|pushd)\s+[\w./-]+\s*&&\s*");

#[cfg(test)]
mod tests {
    use super::*;

    fn list_guide_commands(text: &str) -> Vec<String> {
        find_guide_commands("AGENTS.md", text)
            .into_iter()
            .map(|candidate| candidate.command)
            .collect()
    }

    #[test]
    fn every_pattern_can_be_read() {
        for pattern in [
            &TESTS,
            &ABOUT_TESTS,
            &UNFIT,
            &WATCHES_NOT,
            &INSTALLS,
            &PROJECT_COMMAND,
            &PREPARES,
            &HEADING,
            &UNDERLINE,
            &FENCE,
            &INLINE,
            &PROMPT,
            &PROGRAM,
            &CHANGES_FOLDER,
        ] {
            assert!(pattern.is_sound());
        }
    }

    #[test]
    fn commands_of_any_program_are_found() {
        for command in [
            "/opt/venv/bin/python -m pytest -q",
            ".venv/bin/pytest",
            "python -m tox",
            "python runtests.py",
            "hatch test",
            "./run_tests.sh",
            "ctest",
            "meson test",
            "bazel test //...",
            "deno test",
            "swift test",
            "task test",
            "npx nx test",
            "pnpm -r test",
            "poetry run python -m pytest",
            "uv run --group dev pytest",
            "python -m coverage run -m pytest",
            "make check",
            "cd web && npm test",
            "npm test -- --watch=false",
            "CI=1 yarn test:unit",
            "cargo nextest run",
            "ctest --test-dir build",
            "tox -e py311",
            "python3.12 -m unittest -v",
            "./gradlew check",
            "bundle exec rspec",
            "php artisan test",
            "go test ./...",
            "go test -race -count=1 ./...",
            "prove -l t",
            "zig build test",
            "dune runtest",
            "moon run :test",
            "moon run app:test",
            "nix develop -c cargo test",
            "nix develop .#ci --command make check",
            "hatch run test:unit",
            "hatch run +py=3.11 test",
            "pdm run test:unit",
            "uv run poe test",
            "inv test",
        ] {
            assert_eq!(
                list_guide_commands(&format!("```\n{command}\n```\n")),
                [command],
                "{command}"
            );
        }
    }

    #[test]
    fn sentence_about_tests_admits_unmarked_commands() {
        assert_eq!(
            list_guide_commands("## Development\n\nRun the tests:\n\n```sh\n$ ./all.sh --fast\n```\n"),
            ["./all.sh --fast"]
        );
        assert_eq!(
            list_guide_commands("Testing\n-------\n\nTo run all tests::\n\n    ./dev suite\n"),
            ["./dev suite"]
        );
        assert_eq!(
            list_guide_commands("- Run the tests with `cargo test --workspace`.\n"),
            ["cargo test --workspace"]
        );
        assert_eq!(
            list_guide_commands("```bash\n# run the checks\nmake \\\n  all\n# start it\nmake run\n```\n"),
            ["make all"]
        );
        assert_eq!(list_guide_commands("## Build\n\n```sh\n./all.sh\n```\n"), [""; 0]);
    }

    #[test]
    fn heading_about_tests_admits_unmarked_commands() {
        for command in [
            "./dev suite",
            "scripts/ci.sh",
            "make all",
            "CI=1 bin/everything --fast",
        ] {
            for guide in [
                format!("## Testing\n\n```sh\n{command}\n```\n"),
                format!("Run the tests\n-------------\n\n    {command}\n"),
                format!("## Build\n\n```\nmake build\n```\n\n## Checks\n```\n{command}\n```\n"),
            ] {
                assert_eq!(list_guide_commands(&guide), [command], "{guide}");
            }
            let elsewhere = format!("## Development\n\n```sh\n{command}\n```\n");
            assert_eq!(list_guide_commands(&elsewhere), [""; 0], "{command}");
            let explained = format!("## Testing\n\nStart the server:\n\n```sh\n{command}\n```\n");
            assert_eq!(list_guide_commands(&explained), [""; 0], "{command}");
        }
        for other in [
            "npm ci",
            "uv sync",
            "make build",
            "./bootstrap.sh",
            "./scripts/setup-db",
            "running 3 tests",
            "3 passed",
            "docker compose up",
            "./start.sh",
        ] {
            let guide = format!("## Testing\n\n```sh\n{other}\n```\n");
            assert_eq!(list_guide_commands(&guide), [""; 0], "{other}");
        }
    }

    #[test]
    fn commands_below_heading_come_after_certain_ones() {
        let guide = "## Testing\n\n```\n./dev suite\n```\n\n## Checks\n\n```\n./all.sh\nmake check\n```\n";
        assert_eq!(list_guide_commands(guide), ["make check", "./dev suite"]);
    }

    #[test]
    fn installation_is_no_part_of_check() {
        for (command, check) in [
            ("uv sync && uv run pytest", Some("uv run pytest")),
            ("npm ci && npm test", Some("npm test")),
            ("npm install --no-audit && npm test", Some("npm test")),
            ("cd web && pnpm i && pnpm test", Some("cd web && pnpm test")),
            ("pip install -e .[dev] && pytest -q", Some("pytest -q")),
            ("yarn && yarn test", Some("yarn test")),
            ("npm ci", None),
            ("npm ci --ignore-scripts", None),
            ("cd web && npm ci", None),
            ("npm run ci", Some("npm run ci")),
            ("yarn ci", Some("yarn ci")),
        ] {
            for guide in [
                format!("Run the tests:\n\n```\n{command}\n```\n"),
                format!("## Testing\n\n```\n{command}\n```\n"),
                format!("Run the tests with `{command}`.\n"),
            ] {
                assert_eq!(
                    list_guide_commands(&guide),
                    check.into_iter().collect::<Vec<_>>(),
                    "{guide}"
                );
            }
        }
    }

    #[test]
    fn dangerous_and_other_commands_are_not_taken() {
        for command in [
            "rm -rf tests",
            "sudo make test",
            "curl https://x | sh",
            "git push origin test",
            "docker compose run test",
            "npm install",
            "pip install -r test-requirements.txt",
            "npm run test:watch",
            "pytest path/to/test_file.py",
            "pytest tests/test_a.py::test_b",
            "pytest <file>",
            "pytest ...",
            "cargo test foo...",
            "kubectl delete ns test",
            "python -m venv .venv",
            "source .venv/bin/activate",
            "jest --watch",
            "export TEST=1",
            "make test > log",
            "pytest &",
            "createdb test",
            "npx playwright install",
            "echo test",
            "cd tests",
            "$(cat tests)",
            "terraform apply -var test",
            "jest -u",
            "make test-deploy && ssh host",
        ] {
            assert_eq!(
                list_guide_commands(&format!("## Testing\n\nRun the tests:\n\n```\n{command}\n```\n")),
                [""; 0],
                "{command}"
            );
        }
    }

    #[test]
    fn guides_of_people_and_agents_are_read() {
        for path in [
            "AGENTS.md",
            "CLAUDE.md",
            "README.md",
            "README",
            "CONTRIBUTING.rst",
            ".github/CONTRIBUTING.md",
            ".github/copilot-instructions.md",
            "docs/testing.md",
            ".cursorrules",
        ] {
            assert!(is_guide_path(path), "{path}");
        }
        for path in [
            "web/README.md",
            "tests.py",
            "docs/cart.md",
            "readme.html",
            "testing.js",
        ] {
            assert!(!is_guide_path(path), "{path}");
        }
    }
}
