//! Services with a certificate, and the host names of each.

/// Services with a certificate: all that accept connections, and the planner, whose certificate executors
/// verify.
pub const SERVICES: [&str; 6] = ["planner", "executor", "reporter", "egress", "nats", "redis"];
/// Headless Service through which the servers of NATS find each other.
const NATS_PEERS: &str = "*.nats-peers";

/// Subject of the certificate of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSubject {
    /// Name of the service; its identity follows from it, see [`domain::service_identity`].
    pub service: String,
    /// Host names and addresses at which the service is reached.
    pub hosts: Vec<String>,
}

/// Subjects of all services in a namespace of Kubernetes. The certificates are valid for `further` hosts too.
pub fn list_service_subjects(namespace: &str, further: &[String]) -> Vec<CertificateSubject> {
    let leaf = |service: &'static str| {
        let peers = (service == "nats").then_some(NATS_PEERS);
        let names = [service].into_iter().chain(peers);
        let hosts = names.flat_map(|name| in_namespace(name, namespace));
        CertificateSubject {
            service: service.to_owned(),
            hosts: hosts.chain(further.iter().cloned()).collect(),
        }
    };
    SERVICES.into_iter().map(leaf).collect()
}

/// DNS names of a Kubernetes Service, from within the namespace and from other ones.
fn in_namespace(name: &str, namespace: &str) -> [String; 4] {
    [
        name.to_owned(),
        format!("{name}.{namespace}"),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ]
}

impl CertificateSubject {
    /// Namespace in the host names; `None` if they contain none.
    pub fn namespace(&self) -> Option<&str> {
        let prefix = format!("{}.", self.service);
        let mut inside = self.hosts.iter().filter_map(|host| host.strip_prefix(&prefix));
        inside.find_map(|rest| rest.strip_suffix(".svc"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_has_all_names_of_namespace() {
        let leaves = list_service_subjects("agents", &["127.0.0.1".to_owned()]);
        let services: Vec<&str> = leaves.iter().map(|leaf| leaf.service.as_str()).collect();
        assert_eq!(services, SERVICES);
        let reporter = &leaves[2];
        assert_eq!(
            reporter.hosts,
            [
                "reporter",
                "reporter.agents",
                "reporter.agents.svc",
                "reporter.agents.svc.cluster.local",
                "127.0.0.1",
            ]
        );
        assert_eq!(reporter.namespace(), Some("agents"));
        let nats = &leaves[4];
        assert!(
            nats.hosts.contains(&"*.nats-peers.agents.svc".to_owned()),
            "{nats:?}"
        );
        assert_eq!(nats.namespace(), Some("agents"));
    }
}
