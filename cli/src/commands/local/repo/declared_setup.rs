//! Setup that a repository declares for other tools: a development container, the steps of GitHub's coding agent,
//! versions of tools, manifests with lock files.

use std::collections::BTreeSet;

use executor::{SETUP_FOLDERS, is_setup_source, propose_setup};
use serde_json::{Map, Value};

use super::super::folder::{find_registry_hosts, name_registry, quote_for_shell};

const COPILOT_STEPS: [&str; 2] = [
    ".github/workflows/copilot-setup-steps.yml",
    ".github/workflows/copilot-setup-steps.yaml",
];
const DEV_CONTAINERS: [&str; 2] = [".devcontainer/devcontainer.json", ".devcontainer.json"];
const TOOL_VERSIONS: &str = ".tool-versions";
const MISE_FILES: [&str; 3] = ["mise.toml", ".mise.toml", ".config/mise.toml"];
/// Keys of commands that a development container runs once, in their order.
const CONTAINER_COMMANDS: [&str; 3] = ["onCreateCommand", "updateContentCommand", "postCreateCommand"];
// Maximum number of commands, and of characters in one of them.
const MAX_COMMANDS: usize = 20;
const MAX_COMMAND: usize = 4_000;

/// Programs that need rights or services that a sandbox lacks.
const FOREIGN_PROGRAMS: &[&str] = &[
    "apk",
    "apt",
    "apt-get",
    "brew",
    "dnf",
    "docker",
    "docker-compose",
    "gh",
    "podman",
    "service",
    "sudo",
    "systemctl",
    "yum",
];
/// Programs that install packages, with the name of their registry.
const INSTALLERS: &[(&str, &str)] = &[
    ("bun", "npm"),
    ("npm", "npm"),
    ("npx", "npm"),
    ("pnpm", "npm"),
    ("yarn", "npm"),
    ("pdm", "pypi"),
    ("pip", "pypi"),
    ("pip3", "pypi"),
    ("pipenv", "pypi"),
    ("poetry", "pypi"),
    ("uv", "pypi"),
    ("cargo", "cargo"),
    ("go", "go"),
    ("bundle", "rubygems"),
    ("gem", "rubygems"),
    ("composer", "packagist"),
    ("gradle", "maven"),
    ("gradlew", "maven"),
    ("mvn", "maven"),
    ("mvnw", "maven"),
    ("mix", "hex"),
    ("dotnet", "nuget"),
];
/// Names of tools in files of versions, with their programs.
const TOOLS: &[(&str, &str)] = &[
    ("bun", "bun"),
    ("deno", "deno"),
    ("dotnet", "dotnet"),
    ("elixir", "elixir"),
    ("erlang", "erl"),
    ("go", "go"),
    ("golang", "go"),
    ("gradle", "gradle"),
    ("java", "java"),
    ("maven", "mvn"),
    ("node", "node"),
    ("nodejs", "node"),
    ("php", "php"),
    ("pnpm", "pnpm"),
    ("poetry", "poetry"),
    ("python", "python3"),
    ("ruby", "ruby"),
    ("rust", "cargo"),
    ("uv", "uv"),
    ("yarn", "yarn"),
];
/// Actions that install a tool, with its program.
const ACTIONS: &[(&str, &str)] = &[
    ("actions/setup-dotnet", "dotnet"),
    ("actions/setup-go", "go"),
    ("actions/setup-java", "java"),
    ("actions/setup-node", "node"),
    ("actions/setup-python", "python3"),
    ("actions-rs/toolchain", "cargo"),
    ("actions-rust-lang/setup-rust-toolchain", "cargo"),
    ("astral-sh/setup-uv", "uv"),
    ("denoland/setup-deno", "deno"),
    ("dtolnay/rust-toolchain", "cargo"),
    ("erlef/setup-beam", "elixir"),
    ("oven-sh/setup-bun", "bun"),
    ("pnpm/action-setup", "pnpm"),
    ("ruby/setup-ruby", "ruby"),
    ("shivammathur/setup-php", "php"),
];
/// Actions without an effect on the tools: the workspace has the files already.
const NEUTRAL_ACTIONS: &[&str] = &["actions/cache", "actions/checkout", "gradle/actions/setup-gradle"];

/// Proposal for `executor` of the rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::commands::local) struct DeclaredSetup {
    /// Commands, in their order.
    pub(in crate::commands::local) commands: Vec<String>,
    /// File that declares the commands.
    pub(in crate::commands::local) source: String,
    /// Programs of the declared tools.
    pub(super) programs: BTreeSet<String>,
    /// Hosts of the registries that the commands need.
    pub(super) hosts: Vec<String>,
    /// Declarations that have no counterpart, each with the reason.
    pub(super) left_out: Vec<String>,
}

/// True for a file that declares a setup, or whose text shows which packages a repository needs.
pub(super) fn is_declaration(path: &str) -> bool {
    COPILOT_STEPS.contains(&path)
        || DEV_CONTAINERS.contains(&path)
        || MISE_FILES.contains(&path)
        || path == TOOL_VERSIONS
        || (is_in_setup_folder(path) && is_setup_source(path))
}

/// Reads the declarations of a repository. `texts` are the files that [`is_declaration`] accepts.
pub(super) fn read_declared_setup(paths: &[String], texts: &[(String, String)]) -> DeclaredSetup {
    let find_text = |wanted: &[&str]| {
        let found = texts.iter().find(|(path, _)| wanted.contains(&path.as_str()));
        found.map(|(path, text)| (path.as_str(), text.as_str()))
    };
    let mut setup = DeclaredSetup::default();
    if let Some((path, text)) = find_text(&COPILOT_STEPS) {
        setup.read_copilot_steps(path, text);
    }
    // One declaration is enough: two of them would install the same packages twice.
    if setup.commands.is_empty()
        && let Some((path, text)) = find_text(&DEV_CONTAINERS)
    {
        setup.read_dev_container(path, text);
    }
    if let Some((_, text)) = find_text(&[TOOL_VERSIONS]) {
        let names = text.lines().filter_map(|line| line.split_whitespace().next());
        setup.add_tools(names);
    }
    if let Some((path, text)) = find_text(&MISE_FILES) {
        setup.read_mise_file(path, text);
    }
    if setup.commands.is_empty() {
        setup.propose_by_lock_files(paths, texts);
    }
    setup.add_registries();
    setup
}

impl DeclaredSetup {
    /// Renders the section `executor` of the rules; empty without a proposal.
    pub(super) fn render_rules(&self) -> serde_json::Result<String> {
        // Every JSON value is also a valid YAML value.
        let mut text = String::new();
        if !self.commands.is_empty() {
            text += &format!(
                "  # From {}. The sandbox runs these commands after each checkout: read them first.\n  setup:\n",
                self.source
            );
            for command in &self.commands {
                text += &format!("    - {}\n", serde_json::to_string(command)?);
            }
        }
        if !self.programs.is_empty() {
            text += &format!("  programs: {}\n", serde_json::to_string(&self.programs)?);
        }
        if !self.hosts.is_empty() {
            text += &format!("  network: {}\n", serde_json::to_string(&self.hosts)?);
        }
        Ok(if text.is_empty() {
            text
        } else {
            format!("executor:\n{text}")
        })
    }

    /// Reads the steps of the only job that GitHub's coding agent runs.
    fn read_copilot_steps(&mut self, path: &str, text: &str) {
        let Ok(workflow) = serde_saphyr::from_str::<Value>(text) else {
            self.left_out.push(format!("{path}: it is not YAML"));
            return;
        };
        let job = &workflow["jobs"]["copilot-setup-steps"];
        for step in job["steps"].as_array().into_iter().flatten() {
            if let Some(action) = step["uses"].as_str() {
                self.read_action(path, action, step);
            } else if let Some(script) = step["run"].as_str() {
                match render_step(&inherit_values(&workflow, job, step), script) {
                    Ok(command) => self.add_command(path, &command),
                    Err(reason) => self.leave_out(path, script, reason),
                }
            }
        }
    }

    fn read_action(&mut self, path: &str, action: &str, step: &Value) {
        let name = action.split('@').next().unwrap_or(action).to_ascii_lowercase();
        if NEUTRAL_ACTIONS.contains(&name.as_str()) {
            return;
        }
        let Some((_, program)) = ACTIONS.iter().find(|(known, _)| *known == name) else {
            self.leave_out(path, action, "the action has no counterpart");
            return;
        };
        self.programs.insert((*program).to_owned());
        // The one installing action that also installs the packages.
        let inputs = &step["with"];
        let cached = &inputs["bundler-cache"];
        // The runner passes every value as text.
        let is_bundled = cached.as_bool() == Some(true) || cached.as_str() == Some("true");
        if *program == "ruby" && is_bundled {
            let command = match inputs["working-directory"].as_str() {
                Some(folder) => format!("set -e\ncd {}\nbundle install", quote_for_shell(folder)),
                None => "bundle install".to_owned(),
            };
            self.add_command(path, &command);
        }
    }

    fn read_dev_container(&mut self, path: &str, text: &str) {
        let Ok(container) = serde_json::from_str::<Value>(&strip_comments(text)) else {
            self.left_out
                .push(format!("{path}: it is not JSON with comments"));
            return;
        };
        for key in CONTAINER_COMMANDS {
            for command in list_container_commands(&container[key]) {
                self.add_command(path, &command);
            }
        }
    }

    fn read_mise_file(&mut self, path: &str, text: &str) {
        match toml::from_str::<Value>(text) {
            Ok(file) => {
                let tools = file["tools"].as_object();
                self.add_tools(tools.into_iter().flatten().map(|(name, _)| name.as_str()));
            }
            Err(_) => self.left_out.push(format!("{path}: it is not TOML")),
        }
    }

    fn propose_by_lock_files(&mut self, paths: &[String], texts: &[(String, String)]) {
        let near = paths.iter().filter(|path| is_in_setup_folder(path));
        let Some(hint) = propose_setup(near.cloned().collect(), texts) else {
            return;
        };
        if hint.commands.is_empty() {
            return;
        }
        self.source = format!("the manifests: a clone lacks {}", hint.missing);
        self.commands = hint.commands;
        let hosts = find_registry_hosts(&name_registry(&hint.registry)).unwrap_or_default();
        self.hosts.extend(hosts.iter().map(|host| (*host).to_owned()));
    }

    fn add_tools<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for name in names {
            // A pool without a listed program ends every run, so only tools with a known program are listed.
            let known = TOOLS.iter().find(|(known, _)| *known == name);
            self.programs
                .extend(known.map(|(_, program)| (*program).to_owned()));
        }
    }

    fn add_command(&mut self, path: &str, command: &str) {
        let folders = ["${containerWorkspaceFolder}", "${localWorkspaceFolder}"];
        let command = folders.iter().fold(command.trim().to_owned(), |text, folder| {
            text.replace(folder, ".")
        });
        if command.is_empty() {
            return;
        }
        let foreign = list_programs(&command).find(|program| FOREIGN_PROGRAMS.contains(program));
        if let Some(program) = foreign {
            let reason = format!("a sandbox has no `{program}`: put its result into the executor's image");
            return self.leave_out(path, &command, &reason);
        }
        if command.contains("${{") || command.contains("${local") || command.contains("${container") {
            return self.leave_out(path, &command, "it uses values that exist only at its own runner");
        }
        if command.chars().count() > MAX_COMMAND || self.commands.len() >= MAX_COMMANDS {
            let limits = format!("a setup has at most {MAX_COMMANDS} commands of {MAX_COMMAND} characters");
            return self.leave_out(path, &command, &limits);
        }
        self.source = path.to_owned();
        self.commands.push(command);
    }

    fn leave_out(&mut self, path: &str, declaration: &str, reason: &str) {
        let line = declaration.trim().lines().next().unwrap_or_default();
        let line: String = line.chars().take(80).collect();
        self.left_out.push(format!("`{line}` of {path}: {reason}"));
    }

    fn add_registries(&mut self) {
        let programs = self.commands.iter().flat_map(|command| list_programs(command));
        let registries: BTreeSet<&str> = programs
            .filter_map(|program| INSTALLERS.iter().find(|(known, _)| *known == program))
            .map(|(_, registry)| *registry)
            .collect();
        let hosts = registries.into_iter().filter_map(find_registry_hosts).flatten();
        let new: Vec<String> = hosts
            .map(|host| (*host).to_owned())
            .filter(|host| !self.hosts.contains(host))
            .collect();
        self.hosts.extend(new);
    }
}

fn is_in_setup_folder(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    SETUP_FOLDERS.contains(&folder)
}

/// Words of a command that may be programs, without their folders.
fn list_programs(command: &str) -> impl Iterator<Item = &str> {
    command
        .split(|letter: char| letter.is_whitespace() || ";&|()`\"'".contains(letter))
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .filter(|word| !word.is_empty())
}

/// Step with a script, with the folder, shell and variables that its workflow and its job give to all steps.
fn inherit_values(workflow: &Value, job: &Value, step: &Value) -> Value {
    let mut whole = step.clone();
    for key in ["shell", "working-directory"] {
        let outer = [job, workflow].map(|level| &level["defaults"]["run"][key]);
        let given = outer.into_iter().find(|value| !value.is_null());
        if let Some(given) = given.filter(|_| step[key].is_null()) {
            whole[key] = given.clone();
        }
    }
    let mut variables = Map::new();
    for level in [workflow, job] {
        for (name, value) in level["env"].as_object().into_iter().flatten() {
            // Few steps need a secret that all of them get.
            if value.as_str().is_none_or(|text| !text.contains("${{")) {
                variables.insert(name.clone(), value.clone());
            }
        }
    }
    for (name, value) in step["env"].as_object().into_iter().flatten() {
        variables.insert(name.clone(), value.clone());
    }
    whole["env"] = Value::Object(variables);
    whole
}

/// Command of a step with a script, as its runner would start it.
fn render_step(step: &Value, script: &str) -> Result<String, &'static str> {
    if !step["if"].is_null() {
        return Err("it has a condition");
    }
    if !matches!(step["shell"].as_str(), None | Some("bash" | "sh")) {
        return Err("it is for another shell");
    }
    let script = script.trim();
    // A runner ends a script at its first failure.
    let mut command = if script.contains('\n') {
        format!("set -e\n{script}")
    } else {
        script.to_owned()
    };
    let variables = step["env"].as_object();
    for (name, value) in variables.into_iter().flatten().rev() {
        let is_name = name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return Err("its variables cannot be read"),
        };
        if !is_name {
            return Err("its variables cannot be read");
        }
        command = format!("export {name}={}\n{command}", quote_for_shell(&value));
    }
    match &step["working-directory"] {
        Value::Null => Ok(command),
        Value::String(folder) => Ok(format!("set -e\ncd {}\n{command}", quote_for_shell(folder))),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err("its folder cannot be read")
        }
    }
}

/// Commands in each form of a development container: a text for a shell, words, or named commands.
fn list_container_commands(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(words) => {
            let words: Vec<String> = words
                .iter()
                .filter_map(Value::as_str)
                .map(quote_for_shell)
                .collect();
            vec![words.join(" ")]
        }
        Value::Object(named) => named.values().flat_map(list_container_commands).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Turns JSON with comments and trailing commas into JSON.
fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut is_string = false;
    while let Some(letter) = letters.next() {
        match (is_string, letter) {
            (true, '\\') => {
                out.push(letter);
                out.extend(letters.next());
            }
            (_, '"') => {
                is_string = !is_string;
                out.push(letter);
            }
            (false, '/') if letters.peek() == Some(&'/') => {
                // Without the line feed, the rest of the line is the comment.
                while letters.peek().is_some_and(|next| *next != '\n') {
                    letters.next();
                }
            }
            (false, '/') if letters.peek() == Some(&'*') => {
                letters.next();
                let mut before = ' ';
                for next in letters.by_ref() {
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
                out.push(' ');
            }
            (false, '}' | ']') => {
                let end = out.trim_end().len();
                if out.trim_end().ends_with(',') {
                    out.truncate(end - 1);
                }
                out.push(letter);
            }
            (true | false, _) => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_files(files: &[(&str, &str)]) -> DeclaredSetup {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let texts: Vec<(String, String)> = files
            .iter()
            .filter(|(path, _)| is_declaration(path))
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        read_declared_setup(&paths, &texts)
    }

    fn build_npm_files() -> Vec<(&'static str, &'static str)> {
        vec![
            ("package.json", r#"{"devDependencies": {"left-pad": "1"}}"#),
            ("package-lock.json", "{}"),
        ]
    }

    #[test]
    fn dev_container_commands_are_taken_in_every_form() {
        let text = "\u{feff}// https://aka.ms/devcontainer.json\n{\n  \"image\": \"x:1\", /* not taken */\n  \
                    \"onCreateCommand\": \"pip install -e '.[test]' // no comment\",\n  \
                    \"updateContentCommand\": [\"npm\", \"ci\", \"--prefix\", \"my web\"],\n  \
                    \"postCreateCommand\": {\"db\": \"sudo service postgresql start\", \"web\": [\"make\", \"deps\",],},\n}\n";
        let setup = read_files(&[(".devcontainer/devcontainer.json", text)]);
        assert_eq!(
            setup.commands,
            [
                "pip install -e '.[test]' // no comment",
                "npm ci --prefix 'my web'",
                "make deps"
            ]
        );
        assert_eq!(setup.source, ".devcontainer/devcontainer.json");
        assert_eq!(setup.left_out.len(), 1, "{:?}", setup.left_out);
        assert!(setup.left_out[0].contains("sudo"), "{:?}", setup.left_out);
        assert!(
            setup.hosts.contains(&"pypi.org".to_owned())
                && setup.hosts.contains(&"registry.npmjs.org".to_owned())
        );
    }

    #[test]
    fn copilot_steps_win_over_other_declarations() {
        let text = "name: Copilot\non: workflow_dispatch\njobs:\n  other:\n    steps:\n      - run: rm -rf x\n  \
                    copilot-setup-steps:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      \
                    - uses: actions/setup-node@v4\n        with: {node-version: 22}\n      \
                    - run: npm ci\n      - name: Two\n        working-directory: web app\n        env: {CI: true}\n        \
                    run: |\n          npm run a\n          npm run b\n      - run: echo ${{ secrets.X }}\n      \
                    - if: runner.os == 'Linux'\n        run: echo\n      - uses: acme/private@v1\n";
        let mut files = build_npm_files();
        files.push((COPILOT_STEPS[0], text));
        files.push((DEV_CONTAINERS[1], r#"{"postCreateCommand": "make"}"#));
        let setup = read_files(&files);
        assert_eq!(
            setup.commands,
            [
                "npm ci",
                "set -e\ncd 'web app'\nexport CI=true\nset -e\nnpm run a\nnpm run b"
            ]
        );
        assert_eq!(setup.programs, ["node".to_owned()].into());
        assert_eq!(setup.left_out.len(), 3, "{:?}", setup.left_out);
    }

    #[test]
    fn ruby_action_installs_gems_of_its_folder() {
        let rows: [(&str, &[&str]); 5] = [
            ("bundler-cache: true", &["bundle install"]),
            ("bundler-cache: 'true'", &["bundle install"]),
            (
                "bundler-cache: true, working-directory: api",
                &["set -e\ncd api\nbundle install"],
            ),
            ("bundler-cache: false", &[]),
            ("ruby-version: '3.4'", &[]),
        ];
        for (inputs, commands) in rows {
            let step = format!("- uses: ruby/setup-ruby@v1\n        with: {{{inputs}}}\n");
            let text = format!("jobs:\n  copilot-setup-steps:\n    steps:\n      {step}");
            let setup = read_files(&[(COPILOT_STEPS[0], &text)]);
            assert_eq!(setup.commands, commands, "{inputs}");
            assert_eq!(setup.programs, ["ruby".to_owned()].into(), "{inputs}");
        }
    }

    #[test]
    fn copilot_steps_inherit_values_of_their_job() {
        let text = "env: {CI: true, LEVEL: workflow}\ndefaults:\n  run: {working-directory: web, shell: pwsh}\n\
                    jobs:\n  copilot-setup-steps:\n    env: {LEVEL: job, TOKEN: '${{ secrets.X }}'}\n    \
                    defaults:\n      run: {shell: bash}\n    steps:\n      - run: npm ci\n      \
                    - run: make deps\n        working-directory: api\n        env: {LEVEL: step}\n";
        let setup = read_files(&[(COPILOT_STEPS[0], text)]);
        assert_eq!(
            setup.commands,
            [
                "set -e\ncd web\nexport CI=true\nexport LEVEL=job\nnpm ci",
                "set -e\ncd api\nexport CI=true\nexport LEVEL=step\nmake deps"
            ]
        );
        assert!(setup.left_out.is_empty(), "{:?}", setup.left_out);
    }

    #[test]
    fn tool_versions_name_programs() {
        let setup = read_files(&[
            (
                ".tool-versions",
                "# tools\nnodejs 22.1.0\nterraform 1.9\npython 3.12.1\n",
            ),
            ("mise.toml", "[tools]\ngo = \"1.23\"\n\"pipx:black\" = \"24\"\n"),
        ]);
        let expected = ["go", "node", "python3"].map(str::to_owned);
        assert_eq!(setup.programs, expected.into());
        assert_eq!(
            setup.render_rules().unwrap(),
            "executor:\n  programs: [\"go\",\"node\",\"python3\"]\n"
        );
    }

    #[test]
    fn lock_file_is_last_resort() {
        let setup = read_files(&build_npm_files());
        assert_eq!(setup.commands, ["npm ci"]);
        let text = setup.render_rules().unwrap();
        assert!(text.contains("  setup:\n    - \"npm ci\"\n"), "{text}");
        assert!(text.contains("  network: [\"registry.npmjs.org\""), "{text}");
        assert_eq!(read_files(&[("main.c", "")]), DeclaredSetup::default());
        assert_eq!(DeclaredSetup::default().render_rules().unwrap(), "");
    }

    #[test]
    fn broken_declarations_are_named() {
        for (path, text) in [
            (DEV_CONTAINERS[0], "{\"image\": "),
            (COPILOT_STEPS[1], "a: [1\n"),
            (MISE_FILES[0], "[tools"),
        ] {
            let setup = read_files(&[(path, text)]);
            assert_eq!(setup.left_out.len(), 1, "{path}");
            assert!(setup.left_out[0].starts_with(path), "{:?}", setup.left_out);
        }
    }

    #[test]
    fn nested_rules_text_stays_one_value() {
        let setup = DeclaredSetup {
            commands: vec!["echo '\"'\nexecutor: {pool: root}".to_owned()],
            source: "x".to_owned(),
            ..DeclaredSetup::default()
        };
        let value: Value = serde_saphyr::from_str(&setup.render_rules().unwrap()).unwrap();
        assert_eq!(value["executor"]["setup"][0], setup.commands[0]);
        assert!(value["executor"]["pool"].is_null());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_declaration_of_any_text_is_read(text in "(?s).{0,200}", place in 0_usize..4) {
            let path = [DEV_CONTAINERS[0], COPILOT_STEPS[0], MISE_FILES[0], TOOL_VERSIONS][place];
            let setup = read_files(&[(path, &text)]);
            prop_assert!(setup.commands.len() <= MAX_COMMANDS);
        }

        #[test]
        fn fuzz_json_without_comments_stays_same(text in "[a-z/*, \"\\\\{}\\[\\]]{0,60}") {
            let value = serde_json::json!({ "text": text, "list": [text, 1] });
            let stripped = strip_comments(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&stripped).unwrap(), value);
        }
    }
}
