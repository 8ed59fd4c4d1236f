//! Loading of settings, in rising priority: defaults, `journeyman.toml`, `JOURNEYMAN__SECTION__KEY`.

use std::{
    collections::HashMap,
    ffi::OsString,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use config::{Config, ConfigError, Environment, File, FileFormat};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use crate::{secret_files, suggestion::find_nearest};

/// Top-level sections. An unknown one is refused, so that a misspelled section is not ignored.
const SECTIONS: &[&str] = &[
    "nats",
    "redis",
    "telemetry",
    "git",
    "proxy",
    "tls",
    "rules",
    "folder",
    "ingest",
    "github",
    "github_reader",
    "jira",
    "jira_reader",
    "planner",
    "model",
    "mcp",
    "executor",
    "reporter",
    "github_writer",
    "jira_writer",
    "console",
    "egress",
    "cli",
];

const PREFIX: &str = "JOURNEYMAN";
/// Start of the names of variables that are settings.
const VARIABLE_PREFIX: &str = "JOURNEYMAN__";
const FILE_SUFFIX: &str = "__FILE";

/// Wrong or missing setting: one line that names the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct Error {
    /// Dotted key such as `ingest.listen`, or the file.
    pub key: String,
    /// Description of the problem and its remedy.
    pub problem: String,
}

impl Error {
    /// Makes an error about one key.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            problem: problem.into(),
        }
    }
}

/// List of texts: a TOML array, or one text separated by commas, as in environment variables. Empty texts are
/// dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextList(pub Vec<String>);

impl std::ops::Deref for TextList {
    type Target = [String];
    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for TextList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        let texts = match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(text) => text.split(',').map(str::to_owned).collect(),
            OneOrMany::Many(texts) => texts,
        };
        let trimmed = texts.into_iter().map(|text| text.trim().to_owned());
        Ok(Self(trimmed.filter(|text| !text.is_empty()).collect()))
    }
}

/// Variables of the process's environment, without those that are not UTF-8: other programs may set any bytes.
///
/// # Errors
/// A setting (`JOURNEYMAN__…`) that is not UTF-8, by the name of its variable.
pub fn read_environment() -> Result<Vec<(String, String)>, Error> {
    decode_variables(std::env::vars_os())
}

fn decode_variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, Error> {
    let mut decoded = Vec::new();
    for (name, value) in variables {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => decoded.push((name, value)),
            (Ok(name), Err(_)) if name.starts_with(VARIABLE_PREFIX) => {
                return Err(Error::new(name, "is not UTF-8: set it in this encoding"));
            }
            (Err(name), _) if name.as_bytes().starts_with(VARIABLE_PREFIX.as_bytes()) => {
                let name = name.to_string_lossy();
                return Err(Error::new(name, "the name of this variable is not UTF-8"));
            }
            (Ok(_) | Err(_), Ok(_) | Err(_)) => {}
        }
    }
    Ok(decoded)
}

/// Loads the settings of `C` like [`load_settings`], with the environment of the process.
///
/// # Errors
/// As for [`load_settings`] and [`read_environment`].
pub fn load_process_settings<C: DeserializeOwned>(file: Option<&Path>) -> Result<C, Error> {
    load_settings(file, read_environment()?)
}

/// Loads the settings of `C`; `file` must exist when given.
///
/// `JOURNEYMAN__A__B__FILE=/path` sets `a.b` to the trimmed content of a file, for mounted secrets.
/// `OTEL_EXPORTER_OTLP_ENDPOINT` sets `telemetry.otlp_endpoint`. In the settings file,
/// `private_key = { file = "/path" }` reads a secret from a separate file.
///
/// # Errors
/// The first wrong or missing setting, by key.
pub fn load_settings<C: DeserializeOwned>(
    file: Option<&Path>,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<C, Error> {
    let mut builder = Config::builder();
    if let Some(path) = file {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Error::new(&name, error.to_string()))?;
        builder = builder.add_source(File::from_str(&text, FileFormat::Toml));
    }
    let environment = Environment::with_prefix(PREFIX)
        .prefix_separator("__")
        .separator("__")
        .source(Some(resolve_environment(env)?));
    let mut settings = builder
        .add_source(environment)
        .build()
        .map_err(|error| from_config(error, file))?;
    // Each service deserializes only its sections and ignores the others, so a misspelled one is found
    // here alone.
    refuse_unknown_sections(&settings, file)?;
    let mut unread = secret_files::resolve_secret_files(&mut settings.cache);
    serde_path_to_error::deserialize(settings).map_err(|error| {
        let error = from_path(error);
        match unread.remove(&error.key) {
            Some(problem) => Error::new(error.key, problem),
            None => error,
        }
    })
}

/// Files with secrets that a settings file names.
///
/// # Errors
/// A file that cannot be read.
pub fn secret_files(file: &Path) -> Result<Vec<PathBuf>, Error> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| Error::new(&name, error.to_string()))?;
    let read = Config::builder().add_source(File::from_str(&text, FileFormat::Toml));
    let mut settings = read.build().map_err(|error| from_config(error, Some(file)))?;
    Ok(secret_files::list_secret_files(&mut settings.cache))
}

fn resolve_environment(
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<HashMap<String, String>, Error> {
    let mut resolved = HashMap::new();
    for (name, value) in env {
        if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
            resolved
                .entry(format!("{PREFIX}__TELEMETRY__OTLP_ENDPOINT"))
                // The variable of Journeyman wins, in whichever order the environment lists the two.
                .or_insert(value);
        } else if let Some(key) = name
            .strip_suffix(FILE_SUFFIX)
            .filter(|key| key.starts_with(VARIABLE_PREFIX))
        {
            let content = std::fs::read_to_string(&value)
                .map_err(|error| Error::new(&name, format!("cannot read {value}: {error}")))?;
            resolved.insert(key.to_owned(), content.trim().to_owned());
        } else if name.starts_with(VARIABLE_PREFIX) {
            resolved.insert(name, value);
        }
    }
    Ok(resolved)
}

fn refuse_unknown_sections(settings: &Config, file: Option<&Path>) -> Result<(), Error> {
    let sections = settings
        .cache
        .clone()
        .into_table()
        .map_err(|error| from_config(error, file))?;
    match sections
        .keys()
        .find(|section| !SECTIONS.contains(&section.as_str()))
    {
        Some(unknown) => {
            let meant = find_nearest(unknown, SECTIONS.iter().copied());
            let meant = meant.map(|section| format!("did you mean [{section}]? "));
            let all = SECTIONS.join(", ");
            let problem = format!("no such section; {}there are {all}", meant.unwrap_or_default());
            Err(Error::new(unknown, problem))
        }
        None => Ok(()),
    }
}

fn from_config(error: ConfigError, file: Option<&Path>) -> Error {
    let key = file.map_or_else(|| "environment".to_owned(), |path| path.display().to_string());
    Error::new(key, one_line(&hide_shown_lines(&error.to_string())))
}

/// Removes the lines in which the TOML parser shows the file, such as `12 | token = "…`: they may contain a secret.
fn hide_shown_lines(text: &str) -> String {
    let is_gutter = |before: &str| before.chars().all(|c| c == ' ' || c.is_ascii_digit());
    let is_shown = |line: &&str| line.split_once('|').is_some_and(|(before, _)| is_gutter(before));
    text.lines()
        .filter(|line| !is_shown(line))
        .collect::<Vec<_>>()
        .join("\n")
}

fn from_path(error: serde_path_to_error::Error<ConfigError>) -> Error {
    let path = error.path().to_string();
    let problem = one_line(&error.into_inner().to_string());
    // The config crate appends the key in its own spelling; the path above has it already.
    let problem = problem.split(" for key `").next().unwrap_or_default().to_owned();
    match missing_field(&problem) {
        Some(field) if path == "." => Error::new(field, "is missing"),
        Some(field) if path.rsplit('.').next() == Some(field) => Error::new(path, "is missing"),
        Some(field) => Error::new(format!("{path}.{field}"), "is missing"),
        None => Error::new(path, suggest_field(problem)),
    }
}

/// Replaces the list of all fields after an unknown one by the field that was probably meant.
fn suggest_field(problem: String) -> String {
    // Names are in backticks: the unknown one first, then those that serde expected.
    let mut names = problem.split('`').skip(1).step_by(2);
    let unknown = names.next().filter(|_| problem.starts_with("unknown field `"));
    match unknown.and_then(|unknown| Some((unknown, find_nearest(unknown, names)?))) {
        Some((unknown, nearest)) => format!("unknown field `{unknown}`; did you mean `{nearest}`?"),
        None => problem,
    }
}

fn missing_field(problem: &str) -> Option<&str> {
    // The first text is serde's, the second one that of the config crate.
    let rest = problem
        .split("missing field `")
        .nth(1)
        .or_else(|| problem.split("missing configuration field \"").nth(1))?;
    let field = rest.split(['`', '"']).next()?;
    field.rsplit('.').next()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Sample {
        ingest: Ingest,
        #[serde(default)]
        telemetry: crate::telemetry::Settings,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ingest {
        listen: SocketAddr,
        #[serde(default)]
        slots: usize,
        secret: String,
    }

    fn load_text(toml: &str, env: &[(&str, &str)]) -> Result<Sample, Error> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journeyman.toml");
        std::fs::write(&file, toml).unwrap();
        load_settings(
            Some(&file),
            env.iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
        )
    }

    const FILE: &str =
        "[ingest]\nlisten = \"127.0.0.1:1\"\nsecret = \"from file\"\n[planner]\nanything = 1\n";

    #[test]
    fn missing_secret_file_fails_only_its_reader() {
        #[derive(Debug, Deserialize)]
        struct Reader {
            github_reader: Account,
        }
        #[derive(Debug, Deserialize)]
        struct Writer {
            github_writer: Account,
        }
        #[derive(Debug, Deserialize)]
        struct Account {
            private_key: String,
        }
        let folder = tempfile::tempdir().unwrap();
        let (key, file) = (folder.path().join("key"), folder.path().join("journeyman.toml"));
        std::fs::write(&key, "secret\n").unwrap();
        let text = format!(
            "[github_reader]\nprivate_key = {{ file = {key:?} }}\n[github_writer]\nprivate_key = {{ file = \"/no/such\" }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let reader: Reader = load_settings(Some(&file), []).unwrap();
        assert_eq!(reader.github_reader.private_key, "secret");
        let error = load_settings::<Writer>(Some(&file), []).map(|it| it.github_writer.private_key);
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("github_writer.private_key: cannot read /no/such: "),
            "{error}"
        );
        let named = secret_files(&file).unwrap();
        assert!(named.len() == 2 && named.contains(&key), "{named:?}");
        let over = [(
            "JOURNEYMAN__GITHUB_WRITER__PRIVATE_KEY".to_owned(),
            "given".to_owned(),
        )];
        let writer: Writer = load_settings(Some(&file), over).unwrap();
        assert_eq!(writer.github_writer.private_key, "given");
    }

    #[test]
    fn environment_wins_over_the_file() {
        let sample = load_text(
            FILE,
            &[
                ("JOURNEYMAN__INGEST__SLOTS", "8"),
                ("JOURNEYMAN__INGEST__SECRET", "12"),
            ],
        );
        let sample = sample.unwrap();
        assert_eq!((sample.ingest.slots, sample.ingest.secret.as_str()), (8, "12"));
        assert_eq!(sample.ingest.listen.port(), 1);
    }

    #[test]
    fn foreign_variable_of_other_encoding_is_skipped() {
        use std::os::unix::ffi::OsStringExt;

        let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let other = bytes(b"caf\xe9");
        let foreign = [
            (
                OsString::from("JOURNEYMAN__NATS__URL"),
                OsString::from("nats://here"),
            ),
            (OsString::from("LESSOPEN"), other.clone()),
            (other.clone(), OsString::from("1")),
            // Paths of any encoding, which the argument parser reads.
            (OsString::from("JOURNEYMAN_CONFIG"), other.clone()),
        ];
        let ours = ("JOURNEYMAN__NATS__URL".to_owned(), "nats://here".to_owned());
        assert_eq!(decode_variables(foreign).unwrap(), [ours]);
        for (name, value, key) in [
            (
                OsString::from("JOURNEYMAN__REPORTER__DATA_DIR"),
                other,
                "JOURNEYMAN__REPORTER__DATA_DIR",
            ),
            (
                bytes(b"JOURNEYMAN__JIRA__\xe9__BASE_URL"),
                OsString::from("1"),
                "JOURNEYMAN__JIRA__\u{fffd}__BASE_URL",
            ),
        ] {
            let error = decode_variables([(name, value)]).unwrap_err();
            assert_eq!(error.key, key);
            assert!(error.problem.contains("not UTF-8"), "{error}");
        }
    }

    #[test]
    fn secret_is_read_from_mounted_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "mounted\n").unwrap();
        let env = [("JOURNEYMAN__INGEST__SECRET__FILE", path.to_str().unwrap())];
        assert_eq!(load_text(FILE, &env).unwrap().ingest.secret, "mounted");
    }

    #[test]
    fn standard_otlp_variable_sets_endpoint() {
        let sample = load_text(FILE, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317")]).unwrap();
        assert_eq!(
            sample.telemetry.otlp_endpoint.as_deref(),
            Some("http://collector:4317")
        );
    }

    #[test]
    fn wrong_setting_error_names_its_key() {
        let cases = [
            ("[ingest]\nlisten = \"here\"\nsecret = \"x\"\n", "ingest.listen"),
            ("[ingest]\nlisten = \"127.0.0.1:1\"\n", "ingest.secret"),
            (
                "[ingest]\nlisten = \"127.0.0.1:1\"\nsecret = \"x\"\nslotz = 1\n",
                "ingest.slotz",
            ),
            (
                "[ingest]\nlisten = \"127.0.0.1:1\"\nsecret = \"x\"\nslots = \"many\"\n",
                "ingest.slots",
            ),
            ("[ingets]\n", "ingets"),
            ("", "ingest"),
        ];
        for (toml, key) in cases {
            let error = load_text(toml, &[]).unwrap_err();
            assert_eq!(error.key, key, "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }

    #[test]
    fn misspelled_setting_suggests_nearest() {
        for (toml, said) in [
            (
                "[ingest]\nlisten = \"127.0.0.1:1\"\nsecret = \"x\"\nslotz = 1\n",
                "ingest.slotz: unknown field `slotz`; did you mean `slots`?",
            ),
            (
                "[ingets]\n",
                "ingets: no such section; did you mean [ingest]? there are nats, ",
            ),
            ("[shop]\n", "shop: no such section; there are nats, "),
        ] {
            let error = load_text(toml, &[]).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let far = "[ingest]\nlisten = \"127.0.0.1:1\"\nsecret = \"x\"\nwidth = 1\n";
        let error = load_text(far, &[]).unwrap_err().to_string();
        assert!(error.contains("expected one of `listen`"), "{error}");
    }

    #[test]
    fn invalid_toml_file_is_named() {
        let error = load_text("[ingest\n", &[]).unwrap_err();
        assert!(error.key.ends_with("journeyman.toml"), "{error}");
    }

    #[test]
    fn invalid_toml_error_shows_no_secret() {
        for (toml, line) in [
            ("[ingest]\nsecret = \"wonderland\n", 2),
            ("[ingest]\nsecret = wonderland\n", 2),
            ("[ingest]\nsecret = \"a\"\nsecret = \"wonderland\"\n", 3),
        ] {
            let problem = load_text(toml, &[]).unwrap_err().problem;
            assert!(problem.contains(&format!("at line {line}, column ")), "{problem}");
            assert!(!problem.contains("wonderland"), "{problem}");
        }
    }
}
