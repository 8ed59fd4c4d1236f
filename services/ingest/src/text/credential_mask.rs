//! Removal of credentials from attached texts: logs and traces often contain them, and the text goes to a model.
//!
//! It finds the common forms of tokens, keys and passwords. It is hygiene, not a boundary.

/// Text in place of a credential.
const MASK: &str = "[credential removed]";
// Prefixes of tokens, each with the least number of characters that follow it.
const PREFIXES: &[(&str, usize)] = &[
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 40),
    ("glpat-", 20),
    ("xoxa-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xoxs-", 20),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk_live_", 20),
    ("rk_live_", 20),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 35),
    ("ATATT3", 40),
    ("npm_", 36),
    ("pypi-", 40),
    ("dop_v1_", 40),
    ("eyJhbGciOi", 30),
];
// Names before a value that is a credential, in lower case.
const NAMES: &[&str] = &[
    "authorization: bearer ",
    "authorization: basic ",
    "authorization: token ",
    "x-api-key: ",
    "x-auth-token: ",
    "private-token: ",
    "set-cookie: ",
    "cookie: ",
    "password=",
    "passwd=",
    "secret=",
    "api_key=",
    "apikey=",
    "access_token=",
    "client_secret=",
    "secret_access_key=",
];
const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";

/// Replaces credentials in a text, line by line. The number of lines stays.
pub(crate) fn mask_credentials(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        let body = line.strip_suffix('\n').unwrap_or(line);
        let begins = body.contains(KEY_BEGIN) && body.contains("PRIVATE KEY");
        let ends = body.contains(KEY_END);
        if in_key || begins {
            in_key = !ends;
            masked.push_str(MASK);
        } else {
            masked.push_str(&mask_line(body));
        }
        masked.push_str(end);
    }
    masked
}

fn mask_line(line: &str) -> String {
    let with_names = mask_named_values(line);
    let with_logins = mask_logins(&with_names);
    mask_tokens(&with_logins)
}

/// Masks the value after each name, up to a space or quotation mark; after the name of a header with cookies, all pairs.
fn mask_named_values(line: &str) -> String {
    // Lower case of ASCII alone, so that positions stay the same.
    let lower = line.to_ascii_lowercase();
    // All places are found first: a search behind each one would take the square of the time in a long line.
    let found = NAMES.iter().flat_map(|name| {
        let places = lower.match_indices(name);
        places.map(|(start, _)| (start, start + name.len()))
    });
    let mut found: Vec<(usize, usize)> = found.collect();
    found.sort_unstable();
    let mut masked = String::with_capacity(line.len());
    let mut at = 0;
    for (start, from) in found {
        if start < at {
            continue;
        }
        let rest = &line[from..];
        let length = if lower[..from].ends_with("cookie: ") {
            measure_cookies(rest)
        } else {
            rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '&' | '<' | ','))
                .unwrap_or(rest.len())
        };
        masked.push_str(&line[at..from]);
        if length > 0 {
            masked.push_str(MASK);
        }
        at = from + length;
    }
    masked.push_str(&line[at..]);
    masked
}

/// Length of the pairs of a header with cookies. Each of them but the last one ends with a semicolon.
fn measure_cookies(text: &str) -> usize {
    let header = text.split(['"', '\'', '<']).next().unwrap_or_default();
    let mut length = 0;
    for word in header.split_inclusive(char::is_whitespace) {
        let pair = word.trim_end();
        if !pair.ends_with(';') {
            return length + pair.len();
        }
        length += word.len();
    }
    length
}

/// Masks user and password in addresses.
fn mask_logins(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        masked.push_str(before);
        let authority = after
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>'))
            .unwrap_or(after.len());
        rest = match after[..authority].rfind('@') {
            Some(login) if after[..login].contains(':') => {
                masked.push_str(MASK);
                &after[login..]
            }
            Some(_) | None => after,
        };
    }
    masked.push_str(rest);
    masked
}

/// Masks tokens by their prefixes, at the start of a word.
fn mask_tokens(line: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut masked = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(is_word) {
        let length = rest[start..]
            .find(|c: char| !is_word(c))
            .unwrap_or(rest.len() - start);
        let word = &rest[start..start + length];
        let is_token = PREFIXES
            .iter()
            .any(|(prefix, least)| word.strip_prefix(prefix).is_some_and(|more| more.len() >= *least));
        masked.push_str(&rest[..start]);
        masked.push_str(if is_token { MASK } else { word });
        rest = &rest[start + length..];
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_of_common_forms_are_masked() {
        let token = format!("ghp_{}", "a1".repeat(18));
        let cases = [
            (
                format!("GET / token={token}; x"),
                format!("GET / token={MASK}; x"),
            ),
            (
                "> Authorization: Bearer abc.def.ghi\" 200".to_owned(),
                format!("> Authorization: Bearer {MASK}\" 200"),
            ),
            (
                "db password=hunter2 ok".to_owned(),
                format!("db password={MASK} ok"),
            ),
            (
                "fetch https://ada:hunter2@git.example/x.git failed".to_owned(),
                format!("fetch https://{MASK}@git.example/x.git failed"),
            ),
            (
                "curl -H 'Cookie: theme=dark; sid=hunter2&1' -H 'Accept: */*'".to_owned(),
                format!("curl -H 'Cookie: {MASK}' -H 'Accept: */*'"),
            ),
            (
                "cookie: lang=en; sid=hunter2 was refused".to_owned(),
                format!("cookie: {MASK} was refused"),
            ),
            ("key AKIAABCDEFGHIJKLMNOP.".to_owned(), format!("key {MASK}")),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nAAAA\n-----END RSA PRIVATE KEY-----\nb".to_owned(),
                format!("a\n{MASK}\n{MASK}\n{MASK}\n{MASK}\nb"),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(mask_credentials(&text), expected);
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "",
            "a@b.example wrote: the password is wrong\n\n",
            "see https://a.example/x@y and ghp_short",
            "task-ghp_x: Authorization: required",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n",
            "AKIArtikel",
        ] {
            assert_eq!(mask_credentials(text), text);
        }
    }

    #[test]
    fn long_line_of_credentials_is_masked() {
        const COUNT: usize = 100_000;
        let masked = mask_credentials(&"secret=a ".repeat(COUNT));
        assert_eq!(masked, format!("secret={MASK} ").repeat(COUNT));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

        #[test]
        fn fuzz_masking_keeps_lines(text in "(?s)([a-z:/@= \n]|ghp_|password=|://|-----BEGIN X PRIVATE KEY|\u{e4}){0,60}") {
            let masked = mask_credentials(&text);
            prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
        }
    }
}
