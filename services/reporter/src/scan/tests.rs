use super::*;

/// Returns up to 80 digits and letters without a pattern. Tests assemble credentials from them, so that scanners do
/// not report this file.
fn take_noise(length: usize) -> String {
    "Zk3vQ9xR7mT2bW8nL5cH4jD6gF1sPaYeUuIoOqEr0tKyVwXzCbNmGhJkLdSfA3Zx7Yw2Vu9Ts4Rq6Po8"[..length].to_owned()
}

fn take_hex_digits(length: usize) -> String {
    "3f9a1c7e5b2d8046f1e3a5c7092b4d6e8f1a3c5e7092b4d6f8e1a3c5d7092b4e6"[..length].to_owned()
}

fn take_uppercase_noise(length: usize) -> String {
    take_noise(80).to_ascii_uppercase()[..length].to_owned()
}

/// Pairs of a text with a credential, and the kind of the credential.
fn build_credential_corpus() -> Vec<(String, &'static str)> {
    let n = take_noise;
    let jwt = |text: &str| format!("ey{}.ey{}.{}", n(30), n(40), text);
    vec![
        (format!("token = \"ghp_{}\"", n(36)), "GitHub token"),
        (format!("ghs_{}", n(36)), "GitHub token"),
        (format!("ghs_123456_{}", jwt(&n(43))), "GitHub token"),
        (format!("x=github_pat_{}", n(60)), "GitHub token"),
        (format!("glpat-{}", n(20)), "GitLab token"),
        (format!("glptt-{}", take_hex_digits(40)), "GitLab token"),
        (format!("aws AKIA{}", take_uppercase_noise(16)), "AWS access key"),
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
        (format!("dapi{}", take_hex_digits(32)), "Databricks token"),
        (format!("hvs.{}", n(40)), "Vault token"),
        (format!("SG.{}.{}", n(22), n(43)), "SendGrid key"),
        (format!("shpat_{}", take_hex_digits(32)), "Shopify token"),
        ("-----BEGIN RSA PRIVATE KEY-----".to_owned(), "private key"),
        ("x -----BEGIN OPENSSH PRIVATE KEY-----".to_owned(), "private key"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----".to_owned(), "private key"),
        (jwt(&n(43)), "signed token (JWT)"),
        (format!("Authorization: Bearer {}", n(40)), "Authorization header"),
        (
            format!("postgres://app:{}@db.internal.example/shop", n(20)),
            "password in an address",
        ),
        (format!("jm_{}", take_hex_digits(64)), "Journeyman token"),
        (format!("ya29.{}", n(60)), "Google access token"),
        (
            format!("AWS_BEARER_TOKEN_BEDROCK=ABSK{}", n(80)),
            "AWS Bedrock key",
        ),
        (
            format!(
                "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}=",
                n(43)
            ),
            "Azure access key",
        ),
        (format!("{}AZDO9x3Q", n(76)), "Azure DevOps token"),
        (
            format!(
                "AZURE_DEVOPS_PAT={}",
                "k3vq2rx7mtwb5nlcahj4dsgfipz6yeuo".repeat(2)[..52].to_owned()
            ),
            "Azure DevOps token",
        ),
        (
            format!("AZURE_OPENAI_API_KEY: \"{}\"", take_hex_digits(32)),
            "Azure key",
        ),
        (format!("gsk_{}", n(52)), "Groq key"),
        (format!("xai-{}", n(80)), "xAI key"),
        (format!("pplx-{}", n(48)), "Perplexity key"),
        (format!("r8_{}", n(37)), "Replicate token"),
        (format!("MISTRAL_API_KEY={}", n(32)), "Mistral key"),
        (
            format!("lsv2_pt_{}_{}", take_hex_digits(32), take_hex_digits(10)),
            "LangSmith key",
        ),
        (format!("JIRA_PERSONAL_TOKEN=NDc{}", n(41)), "Atlassian token"),
        (format!("{{\"auth\": \"{}\"}}", n(24)), "registry password"),
        (
            format!("TWILIO_AUTH_TOKEN={}", take_hex_digits(32)),
            "Twilio token",
        ),
        (format!("key = {}-us21", take_hex_digits(32)), "Mailchimp key"),
        (
            "machine git.internal login bot password s3cr3t-Qp7".to_owned(),
            "password of a .netrc",
        ),
        (
            format!("    client-key-data: LS0tLS1{}", n(70)),
            "key of a kubeconfig",
        ),
        (
            format!("apiVersion: v1\nkind: Secret\ndata:\n  password: {}", n(20)),
            "Kubernetes Secret",
        ),
        (
            format!(
                "{{\"data\": {{\"password\": \"{}\"}}, \"kind\": \"Secret\"}}",
                n(20)
            ),
            "Kubernetes Secret",
        ),
        (
            format!("https://discord.com/api/webhooks/123456789012345678/{}", n(68)),
            "Discord webhook address",
        ),
        (format!("dp.pt.{}", n(43)), "Doppler token"),
        (format!("dp.st.dev.{}", n(43)), "Doppler token"),
        (format!("sbp_{}", take_hex_digits(40)), "Supabase token"),
        (format!("tskey-auth-{}-{}", n(12), n(32)), "Tailscale key"),
        (format!("pul-{}", take_hex_digits(40)), "Pulumi token"),
        (
            format!("CCIPAT_{}_{}", n(22), take_hex_digits(40)),
            "CircleCI token",
        ),
        (format!("CIRCLE_TOKEN={}", take_hex_digits(40)), "CircleCI token"),
        (
            format!(
                "pat-na1-{}-3f9a-4c7e-9b2d-{}",
                take_hex_digits(8),
                take_hex_digits(12)
            ),
            "HubSpot token",
        ),
        (format!("pat{}.{}", n(14), take_hex_digits(64)), "Airtable token"),
        (format!("ops_eyJ{}", n(80)), "1Password token"),
    ]
}

#[test]
fn credential_visible_only_on_page_is_found() {
    let token = format!("ghp_{}", take_noise(36));
    let spelled: String = token.chars().map(|c| format!("&#{};", u32::from(c))).collect();
    let hexed: String = token.chars().map(|c| format!("&#x{:X};", u32::from(c))).collect();
    let percent: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for text in [
        format!("see {spelled}"),
        format!("see {hexed}"),
        format!("see ghp&lowbar;{}", take_noise(36)),
        format!("[log](https://a.example/?t={percent})"),
        format!("https://a.example/?t={percent}"),
        format!("see gh**p\\_{}**", take_noise(36)),
        format!("`ghp_`{}", take_noise(36)),
    ] {
        assert_eq!(find_rendered(&text), Some("GitHub token"), "{text}");
        let shown = redact_rendered(&text);
        assert_eq!(find_rendered(&shown), None, "{text} became {shown}");
    }
    for text in [
        "100 % of A &amp; B",
        "a*b*c [x](https://a.example/?q=%20)",
        "snake\\_case",
    ] {
        assert_eq!(find_rendered(text), None, "{text}");
        assert_eq!(redact_rendered(text), text);
    }
}

#[test]
fn configured_credential_is_found_by_value() {
    let configured = secrecy::SecretString::from("correct horse battery");
    add_configured([&configured, &secrecy::SecretString::from("short")]);
    assert_eq!(
        find_credential("it is correct horse battery, isn't it"),
        Some("configured credential")
    );
    assert_eq!(
        redact_credentials("correct horse battery."),
        "[configured credential removed]."
    );
    assert_eq!(find_credential("a short word"), None);
}

#[test]
fn every_scan_rule_parses_and_compiles() {
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
    for (text, kind) in build_credential_corpus() {
        assert_eq!(find_credential(&text), Some(kind), "{text}");
    }
}

#[test]
fn credential_with_hidden_characters_is_found() {
    let wide: String = format!("ghp_{}", take_noise(36))
        .chars()
        .flat_map(|c| [c, '\0'])
        .collect();
    assert_eq!(find_credential(&wide), Some("GitHub token"));
    assert_eq!(
        find_credential(&format!("gh\u{200b}p_{}", take_noise(36))),
        Some("GitHub token")
    );
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
        "hashed_password = bcrypt_sha256_hash(password)",
        "self._auth = oauth2_session_factory(client)",
        "user_auth = settings_of_oauth2_client.auth",
        "auth: 'oauth2ClientCredentials',",
        "",
    ] {
        assert_eq!(find_credential(line), None, "{line}");
    }
}

#[test]
fn redaction_keeps_the_surrounding_words() {
    let token = format!("ghp_{}", take_noise(36));
    let text = format!("first {token}, then `{token}` and url https://a:{token}@b.example/x");
    let shown = redact_credentials(&text);
    assert!(
        !shown.contains(&token) && !shown.contains(&take_noise(10)),
        "{shown}"
    );
    assert!(
        shown.starts_with("first [GitHub token removed], then `[GitHub token removed]`"),
        "{shown}"
    );
    assert_eq!(redact_credentials("nothing here"), "nothing here");
    for (text, _) in build_credential_corpus() {
        assert_eq!(find_credential(&redact_credentials(&text)), None, "{text}");
    }
}
