//! Certificates as Kubernetes Secrets, with the names and keys that cert-manager uses.

use anyhow::Context;
use certs::{AUTHORITY, CERTIFICATE, KEY};

use super::folder::Made;

/// One Secret per service. None contains the authority's key.
pub(super) fn yaml(made: &[Made]) -> anyhow::Result<String> {
    let all: anyhow::Result<Vec<String>> = made.iter().map(secret).collect();
    Ok(all?.join("---\n").trim_end().to_owned())
}

fn secret(made: &Made) -> anyhow::Result<String> {
    let service = &made.leaf.service;
    let namespace = made.leaf.namespace().unwrap_or("journeyman");
    let mut text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {service}-tls, namespace: {namespace}}}\ntype: kubernetes.io/tls\n\
         stringData:\n"
    );
    for name in [CERTIFICATE, KEY, AUTHORITY] {
        let path = made.folder.join(name);
        let pem =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        text.push_str(&format!("  {name}: |\n"));
        for line in pem.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::certs::folder::Folder;

    #[test]
    fn secret_excludes_authority_key() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().to_owned());
        let leaves = certs::leaves("agents", &[]);
        let made = folder.init(&leaves, bootstrap::now(), 1).unwrap();
        let text = yaml(&made).unwrap();
        assert_eq!(text.matches("kind: Secret").count(), certs::SERVICES.len());
        assert!(
            text.contains("metadata: {name: reporter-tls, namespace: agents}"),
            "{text}"
        );
        let line = |path: &str| {
            let pem = std::fs::read_to_string(place.path().join(path)).unwrap();
            pem.lines().nth(1).unwrap().to_owned()
        };
        for path in ["planner/tls.crt", "redis/tls.key", "ca.crt"] {
            assert!(text.contains(&line(path)), "{path}");
        }
        assert!(!text.contains(&line("ca.key")));
    }
}
