//! Kustomize overlay with the manifests of this version.

use std::{fmt::Write as _, path::Path};

use super::{
    super::{super::folder::ConfiguredModel, KnownSettings},
    DeploymentFile, PRIVATE, PUBLIC,
    instances::{JiraInstance, SERVICES_OF_SITES, build_file_variable, build_mounted_path, list_secrets},
    quote_for_yaml,
    rules::ClusterRules,
    settings::ClusterSettings,
};

const KUSTOMIZATION: &str = "kustomization.yaml";
pub(super) const SECRETS: &str = "secrets.yaml";

/// Lists the files of `k8s/` that an overlay contains, with their texts.
macro_rules! manifests {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../k8s/", $path)))),*]
    };
}

/// The base, and the overlay for one node.
const MANIFESTS: [(&str, &str); 19] = manifests![
    "base/egress.yaml",
    "base/executor.yaml",
    "base/ingest.yaml",
    "base/kustomization.yaml",
    "base/namespace.yaml",
    "base/nats.yaml",
    "base/network.yaml",
    "base/planner.yaml",
    "base/redis.yaml",
    "base/reporter.yaml",
    "base/rules/defaults.yaml",
    "base/settings/executor.toml",
    "base/settings/journeyman.toml",
    "base/settings/nats-users.conf",
    "base/settings/nats.conf",
    "base/settings/routes-tls.conf",
    "base/settings/tls.conf",
    "overlays/laptop/kustomization.yaml",
    "overlays/laptop/nats.conf",
];
// Services with an image.
const SERVICES: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];

/// Registry and tag of the images.
#[derive(Clone, Copy)]
pub(super) struct ClusterImages<'a> {
    pub(super) registry: Option<&'a str>,
    pub(super) tag: &'a str,
}

impl ClusterImages<'_> {
    /// Name of a service's image without the tag.
    fn name(self, service: &str) -> String {
        match self.registry {
            Some(registry) => format!("{}/journeyman/{service}", registry.trim_end_matches('/')),
            None => format!("journeyman/{service}"),
        }
    }

    /// Names of all images, as part of a sentence.
    pub(super) fn describe(self) -> String {
        let names = SERVICES.map(|service| format!("{}:{}", self.name(service), self.tag));
        format!("the cluster must be able to pull {}", names.join(", "))
    }
}

/// Account with a token where the manifests expect an App's key or an API key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TokenPatch {
    deployment: &'static str,
    section: &'static str,
    /// Key that the manifests set.
    expected: &'static str,
    /// Key to set instead.
    key: &'static str,
    /// File in the Secret.
    file: &'static str,
}

impl TokenPatch {
    /// Name of the setting with the token.
    pub(super) fn setting(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    fn render(&self) -> String {
        let expected = format!("{}.{}", self.section, self.expected);
        let entries = [
            format!("{{name: {}, $patch: delete}}", build_file_variable(&expected)),
            format!(
                "{{name: {}, value: {}}}",
                build_file_variable(&self.setting()),
                build_mounted_path(self.file)
            ),
        ];
        render_env_patch(self.deployment, &entries)
    }
}

/// Strategic merge patch of the environment, whose entries are merged by name.
fn render_env_patch(deployment: &str, entries: &[String]) -> String {
    let mut text = format!(
        "  - patch: |\n      apiVersion: apps/v1\n      kind: Deployment\n      metadata: {{name: {deployment}}}\n      \
         spec:\n        template:\n          spec:\n            containers:\n              - name: {deployment}\n                \
         env:\n"
    );
    for entry in entries {
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "                  - {entry}");
    }
    text
}

/// Accounts of the setup whose credential the manifests expect under another key.
pub(super) fn list_token_patches(known: &KnownSettings, model: &ConfiguredModel) -> Vec<TokenPatch> {
    let mut patches = Vec::new();
    for (deployment, section, file, account) in [
        (
            "ingest",
            "github_reader",
            "github-reader-private-key",
            &known.github_reader,
        ),
        (
            "reporter",
            "github_writer",
            "github-writer-private-key",
            &known.github_writer,
        ),
    ] {
        if account.private_key.is_none() && account.token.is_some() {
            patches.push(TokenPatch {
                deployment,
                section,
                expected: "private_key",
                key: "token",
                file,
            });
        }
    }
    if model.api_key.is_none() && model.auth_token.is_some() {
        patches.push(TokenPatch {
            deployment: "planner",
            section: "model",
            expected: "api_key",
            key: "auth_token",
            file: "model-api-key",
        });
    }
    patches
}

/// Parts of an overlay.
pub(super) struct ClusterOverlay<'a> {
    pub(super) namespace: &'a str,
    pub(super) is_one_node: bool,
    pub(super) images: ClusterImages<'a>,
    pub(super) nats_users: &'a [String],
    pub(super) settings: &'a ClusterSettings,
    pub(super) rules: &'a ClusterRules,
    pub(super) tokens: &'a [TokenPatch],
    pub(super) instances: &'a [JiraInstance],
}

impl ClusterOverlay<'_> {
    /// Files of the overlay without the Secrets. The kustomization comes last, so that kubectl does not apply a part of them.
    pub(super) fn files(&self, folder: &Path) -> Vec<DeploymentFile> {
        let file = |path: &str, text: &str, mode: u32| DeploymentFile {
            path: folder.join(path),
            text: text.to_owned(),
            mode,
        };
        let mut files: Vec<DeploymentFile> = MANIFESTS
            .iter()
            .map(|(path, text)| file(&format!("k8s/{path}"), text, PUBLIC))
            .collect();
        files.push(file("journeyman.toml", &self.settings.services, PUBLIC));
        files.push(file("executor.toml", &self.settings.executor, PUBLIC));
        let rules = self.rules.files.iter();
        files.extend(rules.map(|(name, text)| file(&format!("rules/{name}"), text, PUBLIC)));
        // The Secrets must not get into a repository with the rest.
        files.push(file(".gitignore", &format!("{SECRETS}\n"), PRIVATE));
        files.push(file(KUSTOMIZATION, &self.render_kustomization(), PUBLIC));
        files
    }

    fn render_kustomization(&self) -> String {
        let base = if self.is_one_node {
            "k8s/overlays/laptop"
        } else {
            "k8s/base"
        };
        let mut text = format!(
            "# Journeyman on Kubernetes: kubectl apply -k this folder. k8s/ has the manifests of version {}.\n\
             apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: {}\nresources:\n  - {base}\n  - \
             {SECRETS} # not for a repository; a secret store may create the same Secrets\nimages:\n",
            env!("CARGO_PKG_VERSION"),
            self.namespace
        );
        // Writing to a `String` does not fail.
        for service in SERVICES {
            let _ = writeln!(
                text,
                "  - {{name: journeyman/{service}, newName: {}, newTag: {}}}",
                quote_for_yaml(&self.images.name(service)),
                quote_for_yaml(self.images.tag)
            );
        }
        text.push_str(
            "configMapGenerator:\n  - {name: journeyman-settings, behavior: replace, files: [journeyman.toml]}\n  - \
             {name: executor-settings, behavior: replace, files: [journeyman.toml=executor.toml]}\n  - name: nats-users\n    \
             behavior: merge\n    literals:\n",
        );
        for user in self.nats_users {
            let _ = writeln!(text, "      - {user}");
        }
        text.push_str("  - name: journeyman-rules\n    behavior: replace\n    files:\n");
        for (name, _) in &self.rules.files {
            let _ = writeln!(text, "      - {}", quote_for_yaml(&format!("rules/{name}")));
        }
        text.push_str("    options: {disableNameSuffixHash: true}\n");
        if !self.tokens.is_empty() || !self.instances.is_empty() {
            text.push_str("patches:\n");
        }
        text.extend(self.tokens.iter().map(TokenPatch::render));
        for service in SERVICES_OF_SITES {
            let secrets = list_secrets(self.instances, service);
            let entries: Vec<String> = secrets
                .iter()
                .map(|secret| format!("{{name: {}, value: {}}}", secret.variable(), secret.path()))
                .collect();
            if !entries.is_empty() {
                text += &render_env_patch(service, &entries);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bootstrap::rules::ConfiguredInstances;

    use super::{super::instances::tests::build_instance, *};

    fn list_files(folder: &Path, below: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder.join(below)).unwrap() {
            let path = below.join(entry.unwrap().file_name());
            if folder.join(&path).is_dir() {
                list_files(folder, &path, found)
            } else {
                found.insert(path.display().to_string());
            }
        }
    }

    #[test]
    fn overlay_contains_every_file_of_base() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../k8s"));
        let mut found = BTreeSet::new();
        for below in ["base", "overlays/laptop"] {
            list_files(folder, Path::new(below), &mut found);
        }
        let listed: BTreeSet<String> = MANIFESTS.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(listed, found);
    }

    #[test]
    fn token_replaces_key_of_app() {
        let mut known = KnownSettings::default();
        known.github_writer.token = Some("t".to_owned().into());
        let model = ConfiguredModel {
            auth_token: Some("t".to_owned().into()),
            ..ConfiguredModel::default()
        };
        let patches = list_token_patches(&known, &model);
        let settings: Vec<String> = patches.iter().map(TokenPatch::setting).collect();
        assert_eq!(settings, ["github_writer.token", "model.auth_token"]);
        let text = patches[0].render();
        for line in [
            "                  - {name: JOURNEYMAN__GITHUB_WRITER__PRIVATE_KEY__FILE, $patch: delete}",
            "                  - {name: JOURNEYMAN__GITHUB_WRITER__TOKEN__FILE, value: \
             /run/secrets/journeyman/github-writer-private-key}",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let reporter = MANIFESTS
            .iter()
            .find(|(path, _)| *path == "base/reporter.yaml")
            .unwrap();
        assert!(
            reporter
                .1
                .contains("name: JOURNEYMAN__GITHUB_WRITER__PRIVATE_KEY__FILE,")
        );
    }

    #[test]
    fn kustomization_names_files_and_images() {
        let settings = ClusterSettings {
            services: "# services\n".to_owned(),
            executor: "# executor\n".to_owned(),
        };
        let rules =
            ClusterRules::read(Path::new("/no/such/folder"), &ConfiguredInstances::default()).unwrap();
        let users = ["NATS_INGEST=U1".to_owned()];
        let overlay = ClusterOverlay {
            namespace: "jm",
            is_one_node: true,
            images: ClusterImages {
                registry: Some("registry.acme.example/"),
                tag: "1.2",
            },
            nats_users: &users,
            settings: &settings,
            rules: &rules,
            tokens: &[],
            instances: &[],
        };
        let files = overlay.files(Path::new("my-cluster"));
        let last = files.last().unwrap();
        assert_eq!(last.path, Path::new("my-cluster/kustomization.yaml"));
        for line in [
            "namespace: jm",
            "  - k8s/overlays/laptop",
            "  - {name: journeyman/egress, newName: \"registry.acme.example/journeyman/egress\", newTag: \"1.2\"}",
            "      - NATS_INGEST=U1",
            "      - \"rules/defaults.yaml\"",
        ] {
            assert!(
                last.text.lines().any(|found| found == line),
                "{line}: {}",
                last.text
            );
        }
        assert!(!last.text.contains("patches:"), "{}", last.text);
        let with_site = ClusterOverlay {
            instances: &[build_instance("dc")],
            ..overlay
        };
        let text = with_site.render_kustomization();
        for line in [
            "patches:",
            "      metadata: {name: ingest}",
            "                  - {name: JOURNEYMAN__JIRA__DC__READER__API_TOKEN__FILE, value: \
             /run/secrets/journeyman/jira.dc.reader-api-token}",
            "                  - {name: JOURNEYMAN__JIRA__DC__WRITER__API_TOKEN__FILE, value: \
             /run/secrets/journeyman/jira.dc.writer-api-token}",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        for path in [
            "journeyman.toml",
            "executor.toml",
            "k8s/base/ingest.yaml",
            ".gitignore",
        ] {
            let path = Path::new("my-cluster").join(path);
            assert!(files.iter().any(|file| file.path == path), "{}", path.display());
        }
    }
}
