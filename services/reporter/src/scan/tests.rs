use super::*;

/// Digits and letters without a pattern, 80 characters of them. Put together here, so that no scanner takes this file
/// for a leak.
fn noise(length: usize) -> String {
    "Zk3vQ9xR7mT2bW8nL5cH4jD6gF1sPaYeUuIoOqEr0tKyVwXzCbNmGhJkLdSfA3Zx7Yw2Vu9Ts4Rq6Po8"[..length].to_owned()
}

fn hex(length: usize) -> String {
    "3f9a1c7e5b2d8046f1e3a5c7092b4d6e8f1a3c5e7092b4d6f8e1a3c5d7092b4e6"[..length].to_owned()
}

fn upper(length: usize) -> String {
    noise(80).to_ascii_uppercase()[..length].to_owned()
}

/// A text with a credential, and its kind.
fn corpus() -> Vec<(String, &'static str)> {
    let n = noise;
    let jwt = |text: &str| format!("ey{}.ey{}.{}", n(30), n(40), text);
    vec![
        (format!("token = \"ghp_{}\"", n(36)), "GitHub token"),
        (format!("ghs_{}", n(36)), "GitHub token"),
        (format!("ghs_123456_{}", jwt(&n(43))), "GitHub token"),
        (format!("x=github_pat_{}", n(60)), "GitHub token"),
        (format!("glpat-{}", n(20)), "GitLab token"),
        (format!("glptt-{}", hex(40)), "GitLab token"),
        (format!("aws AKIA{}", upper(16)), "AWS access key"),
        (format!("AWS_SECRET_ACCESS_KEY={}", n(40)), "AWS secret key"),
        (format!("MY_AWS_SECRET_KEY: \"{}\"", n(40)), "AWS secret key"),
        (format!("AIza{}", n(35)), "Google key"),
        (format!("AccountKey={}==;", n(80) + "Zk3vQ9"), "Azure storage key"),
        (format!("key: sk-ant-api03-{}", n(40)), "Anthropic key"),
        (format!("OPENAI_API_KEY=sk-{}", n(48)), "API key"),
        (format!("HF_TOKEN=hf_{}", n(34)), "Hugging Face token"),
        (format!("sk_live_{}", n(24)), "Stripe key"),
        (format!("xoxb-123456789012-{}", n(24)), "Slack token"),
        (format!("xapp-1-A0B1C2-{}", n(20)), "Slack token"),
        (
            format!("https://hooks.slack.com/services/T0/B0/{}", n(40)),
            "Slack webhook address",
        ),
        (format!("ATATT3{}", n(60)), "Atlassian token"),
        (format!("npm_{}", n(36)), "npm token"),
        (
            format!("//registry.npm.example/:_authToken={}", n(36)),
            "npm token",
        ),
        (format!("pypi-AgEIcHlwaS5vcmc{}", n(60)), "PyPI token"),
        (format!("dckr_pat_{}", n(27)), "Docker Hub token"),
        (format!("dapi{}", hex(32)), "Databricks token"),
        (format!("hvs.{}", n(40)), "Vault token"),
        (format!("SG.{}.{}", n(22), n(43)), "SendGrid key"),
        (format!("shpat_{}", hex(32)), "Shopify token"),
        ("-----BEGIN RSA PRIVATE KEY-----".to_owned(), "private key"),
        ("x -----BEGIN OPENSSH PRIVATE KEY-----".to_owned(), "private key"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----".to_owned(), "private key"),
        (jwt(&n(43)), "signed token (JWT)"),
        (format!("Authorization: Bearer {}", n(40)), "Authorization header"),
        (
            format!("postgres://app:{}@db.internal.example/shop", n(20)),
            "password in an address",
        ),
        (format!("jm_{}", hex(64)), "Journeyman token"),
    ]
}

#[test]
fn every_rule_of_the_file_is_read_and_compiles() {
    let count = include_str!("rules.toml").matches("[[rules]]").count();
    assert_eq!(RULES.rules.len(), count);
    for rule in &RULES.rules {
        assert!(rule.regex().is_some(), "{}", rule.id);
        assert!(!rule.keywords.is_empty(), "{}", rule.id);
    }
    let ids: BTreeSet<&str> = RULES.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids.len(), count, "ids are unique");
}

#[test]
fn credentials_of_many_issuers_are_found() {
    for (text, kind) in corpus() {
        assert_eq!(find(&text), Some(kind), "{text}");
    }
}

#[test]
fn a_credential_is_found_between_characters_that_nobody_sees() {
    let wide: String = format!("ghp_{}", noise(36))
        .chars()
        .flat_map(|c| [c, '\0'])
        .collect();
    assert_eq!(find(&wide), Some("GitHub token"));
    assert_eq!(find(&format!("gh\u{200b}p_{}", noise(36))), Some("GitHub token"));
}

#[test]
fn ordinary_text_is_not_a_credential() {
    for line in [
        "ghp_ is the prefix of a token",
        "class=\"sk-navigation-with-a-very-long-name-and-no-number\"",
        "task-1234567890-1234567890-1234567890-12",
        "AKIAshort",
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
        "const KEY_LENGTH = 32; // they key is derived",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "commit 1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
        "550e8400-e29b-41d4-a716-446655440000",
        "postgres://user:password@localhost:5432/test",
        "https://user:${DB_PASSWORD_OF_THE_TEAM_1}@db.example/x",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "fn eyebrow() -> Result<Keyboard, MonkeyError>",
        "hf_hub_download(repo_id='bert-base-uncased-2-of-2', filename='x')",
        "describe_the_api_orgs_with_long_names_and_1_number",
        "discord: see docs/bots.md for 3 examples",
        "",
    ] {
        assert_eq!(find(line), None, "{line}");
    }
}

#[test]
fn what_is_removed_leaves_the_words_around_it() {
    let token = format!("ghp_{}", noise(36));
    let text = format!("first {token}, then `{token}` and url https://a:{token}@b.example/x");
    let shown = redact(&text);
    assert!(!shown.contains(&token) && !shown.contains(&noise(10)), "{shown}");
    assert!(
        shown.starts_with("first [GitHub token removed], then `[GitHub token removed]`"),
        "{shown}"
    );
    assert_eq!(redact("nothing here"), "nothing here");
    for (text, _) in corpus() {
        assert_eq!(find(&redact(&text)), None, "{text}");
    }
}
