//! Network isolation of the model's commands. A command of a ticket, and a pod without network policies, try
//! every address of the system under test, the stand-ins and the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::Context;
use serde_json::Value;

use crate::cluster_test::{
    kubectl,
    names::{CONTROL_PORT, INSIDE, OUTSIDE, PLANTED_PORT},
};

/// Start of the last line that [`build_reach_command`] prints. The command's text does not contain it, so an echo of the
/// command is not mistaken for its output.
pub(crate) const MARK: &str = "tried all";
/// Destinations that executors may reach: git gate, egress proxy and DNS.
const ALLOWED: [(&str, u16); 3] = [("reporter", 7404), ("egress", 3128), ("kube-dns", 53)];
/// Port of the kubelet API.
const KUBELET: u16 = 10250;
/// Address of the metadata service in clouds.
const METADATA: &str = "169.254.169.254:80";

/// Names such as `service/nats`, `pod/nats-0` and `node/one`, by address.
pub(crate) type ReachTargets = BTreeMap<String, String>;

/// Destinations that a command reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReachVerdict {
    /// Permitted services with their port.
    pub(crate) reached: BTreeSet<String>,
    /// Forbidden destinations by name and port.
    pub(crate) forbidden: BTreeSet<String>,
}

/// Lists every address to try.
///
/// # Errors
/// When the cluster does not answer.
pub(crate) async fn list_targets() -> anyhow::Result<ReachTargets> {
    let mut found = ReachTargets::from([(METADATA.to_owned(), "metadata".to_owned())]);
    for (namespace, kinds) in [
        (INSIDE, "services,pods"),
        (OUTSIDE, "services,pods"),
        ("default", "services"),
    ] {
        add_addresses(&mut found, &kubectl::get_json(&["-n", namespace, kinds]).await?);
    }
    let name_service = kubectl::get_json(&["-n", "kube-system", "services", "-l", "k8s-app=kube-dns"]);
    add_addresses(&mut found, &name_service.await?);
    add_addresses(&mut found, &kubectl::get_json(&["nodes"]).await?);
    Ok(found)
}

/// Adds the addresses and ports of each service, pod and node.
fn add_addresses(found: &mut ReachTargets, list: &Value) {
    for item in list["items"].as_array().into_iter().flatten() {
        let kind = item["kind"].as_str().unwrap_or_default().to_lowercase();
        let name = format!("{kind}/{}", item["metadata"]["name"].as_str().unwrap_or_default());
        let (addresses, ports) = match kind.as_str() {
            "service" => (
                vec![&item["spec"]["clusterIP"]],
                list_tcp_ports(&item["spec"]["ports"], "port"),
            ),
            "pod" => (vec![&item["status"]["podIP"]], ports_of_pod(&item["spec"])),
            _ => (
                list_internal_addresses(&item["status"]["addresses"]),
                vec![KUBELET],
            ),
        };
        let addresses = addresses.into_iter().filter_map(Value::as_str);
        for address in addresses.filter(|address| !matches!(*address, "None" | "")) {
            for port in &ports {
                found.insert(format!("{address}:{port}"), name.clone());
            }
        }
    }
}

fn list_internal_addresses(addresses: &Value) -> Vec<&Value> {
    let all = addresses.as_array().into_iter().flatten();
    all.filter(|address| address["type"] == "InternalIP")
        .map(|address| &address["address"])
        .collect()
}

fn list_tcp_ports(list: &Value, key: &str) -> Vec<u16> {
    let all = list.as_array().into_iter().flatten();
    let tcp = all.filter(|port| port["protocol"].as_str().is_none_or(|name| name == "TCP"));
    tcp.filter_map(|port| port[key].as_u64()?.try_into().ok())
        .collect()
}

fn ports_of_pod(spec: &Value) -> Vec<u16> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers
        .flat_map(|container| list_tcp_ports(&container["ports"], "containerPort"))
        .collect()
}

/// Builds a command that connects to all addresses at once and prints its own address and each reached one.
pub(crate) fn build_reach_command(targets: &ReachTargets) -> String {
    // The pod's line in `/etc/hosts` contains its address.
    let mut script = String::from("grep -w \"$(cat /etc/hostname)\" /etc/hosts | sed \"s/^/own /\"\n");
    for address in targets.keys() {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
        let _ = writeln!(
            script,
            "(timeout 3 bash -c \"exec 3<>/dev/tcp/{host}/{port}\" 2>/dev/null && echo reached {address}) &"
        );
    }
    // The quotes split the mark, so that the command's text does not contain it.
    format!("bash -c '{script}wait\necho tried \"all\" {}'", targets.len())
}

/// Interprets the output of the command. The pod's own ports are always reachable and do not count.
///
/// # Errors
/// When the output is incomplete.
pub(crate) fn read_verdict(targets: &ReachTargets, output: &str) -> anyhow::Result<ReachVerdict> {
    anyhow::ensure!(
        output.contains(&format!("{MARK} {}", targets.len())),
        "the command did not try all: {output}"
    );
    let own: Vec<&str> = find_words_after(output, "own ").collect();
    let mut verdict = ReachVerdict {
        reached: BTreeSet::new(),
        forbidden: BTreeSet::new(),
    };
    for address in find_words_after(output, "reached ") {
        let what = targets
            .get(address)
            .with_context(|| format!("{address} was not asked for"))?;
        let (host, port) = address.rsplit_once(':').context("an address without a port")?;
        if own.contains(&host) {
            continue;
        }
        if let Some(service) = find_allowed_service(what, port) {
            verdict.reached.insert(format!("{service}:{port}"));
        } else {
            verdict.forbidden.insert(format!("{what}:{port}"));
        }
    }
    Ok(verdict)
}

fn find_words_after<'a>(output: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let rests = output
        .lines()
        .filter_map(move |line| line.trim().strip_prefix(word));
    rests.filter_map(|rest| rest.split_whitespace().next())
}

/// Returns the permitted service with this name and port, if any.
fn find_allowed_service(what: &str, port: &str) -> Option<&'static str> {
    let (_, name) = what.split_once('/').unwrap_or(("", what));
    let is_it = |service: &str, number: u16| {
        // Pods have the name of their workload with a suffix.
        let rest = name.strip_prefix(service);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) && port == number.to_string()
    };
    let found = ALLOWED
        .into_iter()
        .find(|(service, number)| is_it(service, *number));
    found.map(|(service, _)| service)
}

/// Selects the addresses that the pod of the stand-ins must reach: the planted port and the API server. They
/// prove that unreachable addresses elsewhere are the effect of a policy.
pub(crate) fn select_control_addresses(targets: &ReachTargets) -> Vec<&str> {
    let is_control = |(address, what): &(&String, &String)| {
        let planted = *what == "pod/stand-ins" && address.ends_with(&format!(":{PLANTED_PORT}"));
        planted || *what == "service/kubernetes"
    };
    targets
        .iter()
        .filter(is_control)
        .map(|(address, _)| address.as_str())
        .collect()
}

/// Returns the API server's proxy path to the control port of the stand-ins.
pub(crate) fn control_path(rest: &str) -> String {
    format!("/api/v1/namespaces/{OUTSIDE}/pods/http:stand-ins:{CONTROL_PORT}/proxy/{rest}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build_reach_targets() -> ReachTargets {
        let mut found = ReachTargets::new();
        add_addresses(
            &mut found,
            &json!({"items": [
                {"kind": "Service", "metadata": {"name": "reporter"}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 7404, "protocol": "TCP"}]}},
                {"kind": "Service", "metadata": {"name": "executor"}, "spec": {"clusterIP": "None", "ports": [{"port": 7403}]}},
                {"kind": "Service", "metadata": {"name": "kube-dns"}, "spec": {"clusterIP": "10.0.0.2", "ports": [
                    {"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}},
                {"kind": "Pod", "metadata": {"name": "nats-0"}, "spec": {"containers": [{"ports": [{"containerPort": 4222}, {"containerPort": 8222}]}]},
                    "status": {"podIP": "10.1.0.1"}},
                {"kind": "Pod", "metadata": {"name": "executor-a"}, "spec": {"containers": [{"ports": [{"containerPort": 7403}]}, {}]},
                    "status": {"podIP": "10.1.0.2"}},
                {"kind": "Pod", "metadata": {"name": "executor-b"}, "spec": {"containers": [{"ports": [{"containerPort": 7403}]}]},
                    "status": {"podIP": "10.1.0.3"}},
                {"kind": "Pod", "metadata": {"name": "stand-ins"}, "spec": {"containers": [{"ports": [{"containerPort": 9999}]}]},
                    "status": {"podIP": "10.1.0.4"}},
                {"kind": "Node", "metadata": {"name": "one"}, "status": {"addresses": [
                    {"type": "InternalIP", "address": "10.2.0.1"}, {"type": "Hostname", "address": "one"}]}},
            ]}),
        );
        found
    }

    #[test]
    fn command_tries_every_port_of_cluster() {
        let addresses: Vec<String> = build_reach_targets().into_keys().collect();
        let wanted = [
            "10.0.0.1:7404",
            "10.0.0.2:53",
            "10.1.0.1:4222",
            "10.1.0.1:8222",
            "10.1.0.2:7403",
            "10.1.0.3:7403",
            "10.1.0.4:9999",
            "10.2.0.1:10250",
        ];
        assert_eq!(addresses, wanted);
        let command = build_reach_command(&build_reach_targets());
        assert!(
            wanted
                .iter()
                .all(|address| command.contains(&format!("echo reached {address})")))
        );
        assert!(
            !command.contains(MARK),
            "the command would be taken for its output"
        );
    }

    #[test]
    fn verdict_permits_gate_dns_own_ports() {
        let output = "own 10.1.0.2\texecutor-a\nreached 10.0.0.1:7404\nreached 10.0.0.2:53\nreached 10.1.0.2:7403\ntried all 8";
        let fine = read_verdict(&build_reach_targets(), output).unwrap();
        assert!(fine.forbidden.is_empty(), "{fine:?}");
        assert_eq!(
            fine.reached,
            ["kube-dns:53", "reporter:7404"].map(str::to_owned).into()
        );
        let worse = output.replace(
            "tried",
            "reached 10.1.0.3:7403\nreached 10.1.0.1:8222\nreached 10.2.0.1:10250\ntried",
        );
        let wanted = ["node/one:10250", "pod/executor-b:7403", "pod/nats-0:8222"];
        assert_eq!(
            read_verdict(&build_reach_targets(), &worse).unwrap().forbidden,
            wanted.map(str::to_owned).into()
        );
    }

    #[test]
    fn an_output_that_was_cut_proves_nothing() {
        assert!(read_verdict(&build_reach_targets(), "own 10.1.0.2\ntried all 7").is_err());
        assert!(read_verdict(&build_reach_targets(), "").is_err());
    }

    #[test]
    fn controls_contain_planted_port() {
        assert_eq!(
            select_control_addresses(&build_reach_targets()),
            ["10.1.0.4:9999"]
        );
    }
}
