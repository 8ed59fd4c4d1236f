//! Values of the Helm chart.

use super::{
    instances::{JiraInstance, SERVICES_OF_SITES, list_secrets},
    overlay::ClusterImages,
    quote_for_yaml,
    rules::ClusterRules,
    settings::ClusterSettings,
};

/// Renders the values of `charts/journeyman`. The chart makes no Secret.
pub(super) fn render_values(
    images: ClusterImages<'_>,
    nats_users: &[String],
    settings: &ClusterSettings,
    rules: &ClusterRules,
    instances: &[JiraInstance],
) -> String {
    let mut text = format!(
        "# Values of the chart journeyman, version {}. Its Secrets are in a file of their own.\nimage:\n  registry: {}\n  tag: \
         {}\n",
        env!("CARGO_PKG_VERSION"),
        quote_for_yaml(images.registry.unwrap_or_default().trim_end_matches('/')),
        quote_for_yaml(images.tag)
    );
    text += &format!("settings: {}\n", render_text(&settings.services, 2));
    text += &format!("executorSettings: {}\n", render_text(&settings.executor, 2));
    text.push_str("rules:\n");
    for (name, rules) in &rules.files {
        text += &format!("  {}: {}\n", quote_for_yaml(name), render_text(rules, 4));
    }
    text.push_str("natsUsers:\n");
    for user in nats_users {
        if let Some((name, key)) = user.strip_prefix("NATS_").and_then(|user| user.split_once('=')) {
            text += &format!("  {}: {key}\n", name.to_lowercase());
        }
    }
    for service in SERVICES_OF_SITES {
        let secrets = list_secrets(instances, service);
        if !secrets.is_empty() {
            text += &format!("{service}:\n  env:\n");
        }
        for secret in secrets {
            let (name, value) = (quote_for_yaml(&secret.variable()), quote_for_yaml(&secret.path()));
            text += &format!("    - {{name: {name}, value: {value}}}\n");
        }
    }
    text
}

/// Value of a key as a block of lines, or as a JSON string where YAML accepts no block.
fn render_text(text: &str, indent: usize) -> String {
    let is_plain =
        |c: char| c == '\n' || !(c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}'));
    if text.trim().is_empty() || !text.chars().all(is_plain) {
        return quote_for_yaml(text);
    }
    // The number says where the text begins, so that a first line may begin with spaces.
    let mut block = "|2".to_owned();
    for line in text.trim_end().lines() {
        block.push('\n');
        if !line.is_empty() {
            block += &" ".repeat(indent);
            block += line;
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use bootstrap::rules::ConfiguredInstances;
    use serde::Deserialize;

    use super::{super::instances::tests::build_instance, *};

    #[test]
    fn blocks_read_back_as_their_texts() {
        #[derive(Debug, Deserialize)]
        struct TextBlocks {
            texts: BTreeMap<String, String>,
        }
        let texts = [
            "repo: {owner: acme, name: shop}\n",
            "  begins: with spaces\n\nends: after a blank line\n",
            "tab:\tin it\n",
            "\n",
        ];
        let mut yaml = "texts:\n".to_owned();
        for (number, text) in texts.iter().enumerate() {
            yaml += &format!("  t{number}: {}\n", render_text(text, 4));
        }
        let read: TextBlocks = serde_saphyr::from_str(&yaml).unwrap();
        let read: Vec<&str> = read.texts.values().map(String::as_str).collect();
        assert_eq!(read, texts, "{yaml}");
    }

    #[test]
    fn values_have_images_settings_and_users() {
        let settings = ClusterSettings {
            services: "# services\n\n[nats]\n".to_owned(),
            executor: "# executor\n".to_owned(),
        };
        let rules =
            ClusterRules::read(Path::new("/no/such/folder"), &ConfiguredInstances::default()).unwrap();
        let images = ClusterImages {
            registry: None,
            tag: "1.2",
        };
        let users = ["NATS_INGEST=U1", "NATS_BACKUP=U2"].map(str::to_owned);
        let text = render_values(images, &users, &settings, &rules, &[]);
        let start = "image:\n  registry: \"\"\n  tag: \"1.2\"\nsettings: |2\n  # services\n\n  [nats]\nexecutorSettings: \
                     |2\n  # executor\nrules:\n  \"defaults.yaml\": |2\n    # A file without `repo:`";
        assert!(text.contains(start), "{text}");
        assert!(
            text.ends_with("natsUsers:\n  ingest: U1\n  backup: U2\n"),
            "{text}"
        );
        let with_site = render_values(images, &users, &settings, &rules, &[build_instance("dc")]);
        let added = with_site.strip_prefix(&text).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(added).unwrap();
        assert_eq!(
            read["reporter"]["env"],
            serde_json::json!([{"name": "JOURNEYMAN__JIRA__DC__WRITER__API_TOKEN__FILE",
                "value": "/run/secrets/journeyman/jira.dc.writer-api-token"}])
        );
        assert_eq!(read["ingest"]["env"].as_array().unwrap().len(), 2, "{added}");
    }
}
