//! Certificates as Kubernetes Secrets, with the names and keys that cert-manager uses.

use anyhow::Context;
use certs::{AUTHORITY, CERTIFICATE, KEY};

use super::folder::StoredCertificate;

/// One Secret per service. None contains the authority's key.
pub(super) fn render_secrets(made: &[StoredCertificate]) -> anyhow::Result<String> {
    let all: anyhow::Result<Vec<String>> = made.iter().map(render_secret).collect();
    Ok(all?.join("---\n").trim_end().to_owned())
}

fn render_secret(made: &StoredCertificate) -> anyhow::Result<String> {
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
        // A block scalar of YAML requires the indentation on each line.
        for line in pem.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::certs::folder::CertificateFolder;

    #[test]
    fn secret_excludes_authority_key() {
        let place = tempfile::tempdir().unwrap();
        let folder = CertificateFolder::new(place.path().to_owned());
        let leaves = certs::list_service_subjects("agents", &[]);
        let made = folder.init(&leaves, bootstrap::read_wall_clock(), 1).unwrap();
        let text = render_secrets(&made).unwrap();
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
