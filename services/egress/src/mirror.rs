//! A registry behind the proxy, with the credential that only this process holds.

use std::fmt;

use axum::http::{HeaderMap, HeaderValue, header};
use bootstrap::settings::TextList;
use domain::RepositoryName;
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::{Host, Url};
use webproxy::AddressRule;

use crate::rewrite::{AddressRewriter, filter_headers};

/// Response headers of a registry that package managers read.
const ANSWER_HEADERS: [&str; 23] = [
    "accept-ranges",
    "age",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "location",
    "npm-notice",
    "retry-after",
    "vary",
    "x-checksum-md5",
    "x-checksum-sha1",
    "x-checksum-sha256",
    "x-checksum-sha512",
    "x-pypi-last-serial",
    "x-repodata-checksum",
];
// Characters that some servers normalize to dots and slashes in a path.
const LIKE_DOT: [char; 3] = ['\u{2024}', '\u{fe52}', '\u{ff0e}'];
const LIKE_SLASH: [char; 6] = [
    '\u{2044}', '\u{2215}', '\u{29f8}', '\u{fe68}', '\u{ff0f}', '\u{ff3c}',
];

/// Number of times that a path is decoded in search of hidden segments. A path that is still encoded then is refused.
const MAX_DECODING: usize = 4;

/// The section `[egress.mirrors.<name>]`: a registry, and either `token` or `user` and `password`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorSettings {
    /// Base URL of the registry, `http://` or `https://`. The proxy requests nothing outside of it.
    pub url: String,
    /// Repositories that may use the mirror (`acme/shop`, `acme/*`). Without it, all may.
    #[serde(default)]
    pub repositories: Option<TextList>,
    /// Bearer token of the registry.
    #[serde(default)]
    pub token: Option<SecretString>,
    /// User for basic authentication, together with `password`.
    #[serde(default)]
    pub user: Option<String>,
    /// Password for basic authentication, together with `user`.
    #[serde(default)]
    pub password: Option<SecretString>,
}

/// A registry and the repositories that may use it.
pub(crate) struct RegistryMirror {
    name: String,
    /// Base URL; its path ends with a slash.
    base: Url,
    repositories: Option<Vec<String>>,
    credential: MirrorCredential,
}

enum MirrorCredential {
    Bearer(SecretString),
    Basic(String, SecretString),
}

/// Prints the name alone, never the credential.
impl fmt::Debug for RegistryMirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryMirror")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl RegistryMirror {
    /// Checks the settings of one mirror.
    ///
    /// # Errors
    /// The wrong key below `egress.mirrors.<name>` (none for the name itself), and the problem.
    pub(crate) fn new(
        name: &str,
        settings: &MirrorSettings,
        rule: &AddressRule,
    ) -> Result<Self, (Option<&'static str>, String)> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > 40 || !name.bytes().all(is_letter) {
            let problem = "a mirror's name must be lower-case letters, digits and hyphens, at most 40";
            return Err((None, problem.to_owned()));
        }
        let base = parse_base_url(&settings.url, rule).map_err(|problem| (Some("url"), problem))?;
        let repositories = settings.repositories.as_ref().map(parse_repositories).transpose();
        Ok(Self {
            name: name.to_owned(),
            base,
            repositories: repositories.map_err(|problem| (Some("repositories"), problem))?,
            credential: parse_credential(settings)
                .map_err(|(key, problem)| (Some(key), problem.to_owned()))?,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the settings name the repository or its owner. GitHub compares names without case.
    pub(crate) fn is_open_to(&self, repository: &RepositoryName) -> bool {
        let full = repository.to_string();
        let owner = full.split_once('/').map_or("", |(owner, _)| owner);
        let names = |pattern: &String| match pattern.split_once('/') {
            Some((opened, "*")) => opened.eq_ignore_ascii_case(owner),
            Some(_) => pattern.eq_ignore_ascii_case(&full),
            None => false,
        };
        self.repositories
            .as_ref()
            .is_none_or(|repositories| repositories.iter().any(names))
    }

    /// Returns the registry's URL for a path and query of the mirror, both as the client wrote them.
    ///
    /// `None` if any server could read the path as one that leaves the base.
    pub(crate) fn upstream(&self, rest: &str, query: Option<&str>) -> Option<Url> {
        if !stays_inside(rest) {
            return None;
        }
        let mut url = Url::parse(&format!("{}{rest}", self.base)).ok()?;
        url.set_query(query);
        url.set_fragment(None);
        // `Url::parse` resolves dot segments itself, so the result is compared with the base a second time.
        let is_beneath = url.origin() == self.base.origin() && url.path().starts_with(self.base.path());
        is_beneath.then_some(url)
    }

    /// Adds the credential to the request.
    pub(crate) fn authorize(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.credential {
            MirrorCredential::Bearer(token) => request.bearer_auth(token.expose_secret()),
            MirrorCredential::Basic(user, password) => {
                request.basic_auth(user, Some(password.expose_secret()))
            }
        }
    }

    /// Returns the rewriter from the registry's addresses to `http://<host>/mirror/<name>/`.
    pub(crate) fn rewriter(&self, host: &str) -> AddressRewriter {
        AddressRewriter::new(
            self.base.to_string(),
            format!("http://{host}/mirror/{}/", self.name),
        )
    }

    /// Returns an absolute `Location` for the response to `asked`. It becomes the mirror's address if it lies below
    /// the base.
    pub(crate) fn location(
        &self,
        value: &HeaderValue,
        asked: &Url,
        rewriter: &AddressRewriter,
    ) -> Option<HeaderValue> {
        let target = asked.join(value.to_str().ok()?).ok()?;
        HeaderValue::from_str(&rewriter.address(target.as_str())).ok()
    }
}

/// Selects the request headers for a registry. Any other header could be a credential of the sandbox, or name another
/// path.
pub(crate) fn request_headers(headers: &HeaderMap) -> HeaderMap {
    let passed = [
        header::ACCEPT,
        header::ACCEPT_LANGUAGE,
        header::CACHE_CONTROL,
        header::IF_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_NONE_MATCH,
        header::IF_RANGE,
        header::IF_UNMODIFIED_SINCE,
        header::RANGE,
        header::USER_AGENT,
    ];
    let mut kept = filter_headers(headers, |name| passed.contains(name));
    // Compressed bodies could not be rewritten.
    kept.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    kept
}

/// Selects the response headers for the client. Any other header may be a credential that the proxy's own one earned,
/// such as a session or a token for the next request.
pub(crate) fn answer_headers(headers: &HeaderMap) -> HeaderMap {
    filter_headers(headers, |name| ANSWER_HEADERS.contains(&name.as_str()))
}

fn parse_base_url(text: &str, rule: &AddressRule) -> Result<Url, String> {
    let mut url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must be an http:// or https:// URL".to_owned());
    }
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user || url.query().is_some() || url.fragment().is_some() {
        return Err("must have neither user, query nor fragment".to_owned());
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(_)) | None => None,
    };
    // Checked at the start: an address needs no resolver, so the check of resolved names would never see it.
    if let Some(address) = address.filter(|address| !rule.opens(*address)) {
        return Err(format!(
            "{address} is not public; name its network in egress.private_networks"
        ));
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

fn parse_repositories(list: &TextList) -> Result<Vec<String>, String> {
    let is_wrong = |text: &&String| {
        let sample = text
            .strip_suffix("/*")
            .map_or_else(|| (*text).clone(), |owner| format!("{owner}/x"));
        sample.parse::<RepositoryName>().is_err()
    };
    match list.iter().find(is_wrong) {
        Some(wrong) => Err(format!(
            "{wrong:?} must be a repository such as acme/shop or acme/*"
        )),
        None if list.is_empty() => {
            Err("must name a repository, or be left out: then it is open to all".to_owned())
        }
        None => Ok(list.to_vec()),
    }
}

fn parse_credential(settings: &MirrorSettings) -> Result<MirrorCredential, (&'static str, &'static str)> {
    let credential = match (&settings.token, &settings.user, &settings.password) {
        (Some(token), None, None) => MirrorCredential::Bearer(token.clone()),
        (None, Some(user), Some(password)) if !user.is_empty() && !user.contains(':') => {
            MirrorCredential::Basic(user.clone(), password.clone())
        }
        _ => return Err(("token", "must be set, or user and password instead of it")),
    };
    let (key, secret) = match &credential {
        MirrorCredential::Bearer(token) => ("token", token),
        MirrorCredential::Basic(_, password) => ("password", password),
    };
    let secret = secret.expose_secret();
    // Other bytes are not valid in a header, and reqwest would fail on every request.
    let is_usable = !secret.is_empty() && secret.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_usable
        .then_some(credential)
        .ok_or((key, "must be printable ASCII on one line"))
}

/// Returns true if no reading of the path, decoded up to four times, contains a dot segment, a control character or
/// bytes that are not UTF-8.
fn stays_inside(rest: &str) -> bool {
    // Some servers end a segment at a semicolon, a question mark or a number sign.
    let is_dots = |segment: &str| {
        let name = segment.split([';', '?', '#']).next().unwrap_or_default();
        matches!(name.replace(LIKE_DOT, ".").as_str(), "." | "..")
    };
    // Some servers accept a backslash as a separator.
    let is_separator = |c: char| matches!(c, '/' | '\\') || LIKE_SLASH.contains(&c);
    let mut path = rest.to_owned();
    for _ in 0..MAX_DECODING {
        if path.split(is_separator).any(is_dots) || path.chars().any(char::is_control) {
            return false;
        }
        // Old servers read overlong UTF-8 forms of a dot (`%c0%ae`) as a dot.
        let Ok(decoded) = percent_decode_str(&path).decode_utf8() else {
            return false;
        };
        if decoded == path {
            return true;
        }
        path = decoded.into_owned();
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: &str = "https://npm.example/acme/npm";

    fn build_mirror_settings() -> MirrorSettings {
        MirrorSettings {
            url: BASE.to_owned(),
            repositories: None,
            token: Some("secret".into()),
            user: None,
            password: None,
        }
    }

    fn build_mirror(settings: &MirrorSettings) -> Result<RegistryMirror, (Option<&'static str>, String)> {
        RegistryMirror::new("npm", settings, &AddressRule::default())
    }

    fn resolve_upstream(rest: &str, query: Option<&str>) -> Option<String> {
        let mirror = build_mirror(&build_mirror_settings()).unwrap();
        mirror.upstream(rest, query).map(String::from)
    }

    #[test]
    fn path_beneath_base_passes_unchanged() {
        for (rest, url) in [
            ("", "https://npm.example/acme/npm/"),
            ("left-pad", "https://npm.example/acme/npm/left-pad"),
            ("@acme%2fui", "https://npm.example/acme/npm/@acme%2fui"),
            ("a//b/", "https://npm.example/acme/npm/a//b/"),
            ("...", "https://npm.example/acme/npm/..."),
            ("a..b/.hidden", "https://npm.example/acme/npm/a..b/.hidden"),
            (
                "https://evil.example/x",
                "https://npm.example/acme/npm/https://evil.example/x",
            ),
            (
                "//evil.example/x",
                "https://npm.example/acme/npm///evil.example/x",
            ),
        ] {
            assert_eq!(resolve_upstream(rest, None).as_deref(), Some(url), "{rest}");
        }
        assert_eq!(
            resolve_upstream("-/search", Some("text=..%2f..&x=/../")).as_deref(),
            Some("https://npm.example/acme/npm/-/search?text=..%2f..&x=/../")
        );
    }

    #[test]
    fn path_with_possible_escape_is_refused() {
        for rest in [
            "..",
            "../other",
            "a/../../other",
            "./x",
            "%2e%2e/other",
            ".%2E/other",
            "..%2fother",
            "a%2f..%2f..%2fother",
            "%252e%252e/other",
            "%25252e%25252e%25252fother",
            "..\\other",
            "..%5cother",
            "a%5c..%5cother",
            "..;/other",
            "..;x=1/other",
            "%2e%2e%3b/other",
            "a/%09/b",
            "%00",
            "%2525252525252e",
            "..%3f/other",
            "%c0%ae%c0%ae/other",
            "%e0%80%ae%e0%80%ae/other",
            "%25c0%25ae%25c0%25ae/other",
            "%ff",
            "%ef%bc%8e%ef%bc%8e/other",
            "a%ef%bc%8f..%ef%bc%8fother",
            "\u{2024}\u{2024}/other",
            "%2e.%23",
        ] {
            assert_eq!(resolve_upstream(rest, None), None, "{rest}");
        }
    }

    /// Reads a path as lenient servers do: everything decoded, all separators equal, dot segments resolved.
    fn resolve_url_path(url: &Url) -> Vec<String> {
        let mut path = url.path().to_owned();
        for _ in 0..8 {
            path = percent_decode_str(&path).decode_utf8_lossy().into_owned();
        }
        let mut segments: Vec<String> = Vec::new();
        for segment in path.replace('\\', "/").split('/') {
            match segment.split(';').next().unwrap() {
                "" | "." => {}
                ".." => drop(segments.pop()),
                name => segments.push(name.to_owned()),
            }
        }
        segments
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn passed_path_stays_beneath_base_when_decoded(
            parts in prop::collection::vec(
                prop::sample::select(vec!["..", ".", "/", "\\", "%2e", "%2E", "%2f", "%5c", "%25", "2e", "2f", ";", "%3b", "a",
                    "@", "%252e", "?", "#", "%00", "%ff", ":", "//", "%"]),
                0..10,
            )
        ) {
            let mirror = build_mirror(&build_mirror_settings()).unwrap();
            if let Some(url) = mirror.upstream(&parts.concat(), None) {
                prop_assert_eq!(url.origin(), mirror.base.origin());
                let segments = resolve_url_path(&url);
                prop_assert!(segments.len() >= 2 && segments[..2] == ["acme", "npm"], "{} {:?}", url, segments);
            }
        }
    }

    #[test]
    fn mirror_opens_to_repositories_of_its_settings() {
        let open_to = |list: Option<&[&str]>, repository: &str| {
            let repositories = list.map(|list| TextList(list.iter().map(|&text| text.to_owned()).collect()));
            let settings = MirrorSettings {
                repositories,
                ..build_mirror_settings()
            };
            build_mirror(&settings)
                .unwrap()
                .is_open_to(&repository.parse().unwrap())
        };
        assert!(open_to(None, "acme/shop"));
        assert!(open_to(Some(&["acme/shop"]), "acme/shop"));
        assert!(open_to(Some(&["other/x", "acme/*"]), "Acme/Shop"));
        assert!(!open_to(Some(&["acme/shop"]), "acme/shop-two"));
        assert!(!open_to(Some(&["acme/*"]), "acme-two/shop"));
        assert!(open_to(Some(&["ghe:acme/*"]), "ghe:acme/shop"));
        assert!(!open_to(Some(&["acme/*", "acme/shop"]), "ghe:acme/shop"));
        assert!(!open_to(Some(&["ghe:acme/*", "ghe:acme/shop"]), "acme/shop"));
    }

    #[test]
    fn wrong_mirror_setting_names_its_key() {
        let key = |change: &dyn Fn(&mut MirrorSettings)| {
            let mut settings = build_mirror_settings();
            change(&mut settings);
            build_mirror(&settings).err().and_then(|(key, _)| key)
        };
        for url in [
            "npm.example",
            "ftp://npm.example/",
            "https://ada@npm.example/",
            "https://npm.example/?x=1",
            "http://10.0.0.1/",
            "http://169.254.169.254/",
            "http://2130706433/",
        ] {
            assert_eq!(
                key(&|settings| settings.url = url.to_owned()),
                Some("url"),
                "{url}"
            );
        }
        assert_eq!(key(&|settings| settings.token = None), Some("token"));
        assert_eq!(key(&|settings| settings.token = Some("".into())), Some("token"));
        assert_eq!(
            key(&|settings| settings.token = Some("two\nlines".into())),
            Some("token")
        );
        assert_eq!(
            key(&|settings| settings.user = Some("ada".to_owned())),
            Some("token")
        );
        let basic = |settings: &mut MirrorSettings, password: &str| {
            settings.token = None;
            settings.user = Some("ada".to_owned());
            settings.password = Some(password.into());
        };
        assert_eq!(key(&|settings| basic(settings, "")), Some("password"));
        assert_eq!(key(&|settings| basic(settings, "good")), None);
        for list in [vec![], vec!["acme"], vec!["*"], vec!["*/*"], vec!["acme/a/b"]] {
            let list: Vec<String> = list.into_iter().map(str::to_owned).collect();
            let set = |settings: &mut MirrorSettings| settings.repositories = Some(TextList(list.clone()));
            assert_eq!(key(&set), Some("repositories"), "{list:?}");
        }
        for name in ["", "NPM", "a/b", "..", "a_b"] {
            assert!(
                RegistryMirror::new(name, &build_mirror_settings(), &AddressRule::default()).is_err(),
                "{name}"
            );
        }
    }
}
