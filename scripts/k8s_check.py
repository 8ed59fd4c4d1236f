"""Checks rendered Kubernetes documents: schema, capability table, settings, images, hardening."""

import json
import re
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import yaml

KUBERNETES_VERSION = "1.32"
SECRETS_DIR = "/run/secrets/journeyman/"
# The capability table: the one Secret of each service, and the settings that it may fill.
CAPABILITIES = {
    "ingest": ("ingest-secrets", {"ingest", "github_reader", "jira_reader", "nats", "redis", "proxy"}),
    "planner": ("planner-secrets", {"model", "mcp", "planner", "nats", "redis", "proxy"}),
    "executor": (None, set()),
    "reporter": ("reporter-secrets", {"github_writer", "jira_writer", "nats", "redis", "proxy"}),
    "egress": ("egress-secrets", {"egress", "proxy"}),
    "console": (None, set()),
}
# Keys of those Secrets that a component adds: outbound-proxy.
COMPONENT_KEYS = {"proxy-password"}
# Only where its component is.
OPTIONAL = {"console"}
# What the servers read: Redis the hashes of its users' passwords. NATS knows public keys only.
SERVER_SECRETS = {"redis": {"redis-acl"}}
# With the component `tls` each pod has a certificate of its own; ingest has the authority's, to know the servers by.
CERTIFICATES = {"ingest": ("nats-tls", ["ca.crt"])}
# What the egress proxy must not reach even without its own check.
PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]
EXECUTOR_SECTIONS = {"executor", "telemetry"}
SECRET_KEYS = {"nkey_seed", "private_key", "token", "api_token", "api_key", "grant_key", "github_webhook_secrets", "jira_webhook_secrets", "sha256", "password"}

problems: list[str] = []


def require(condition: object, problem: str) -> None:
    if not condition:
        problems.append(problem)


def known_sections() -> set[str]:
    source = Path("crates/bootstrap/src/settings.rs").read_text()
    names = re.search(r"const SECTIONS[^=]*= &?\[(.*?)\];", source, re.S)
    assert names, "the list of sections has moved"
    return set(re.findall(r'"(\w+)"', names[1]))


def example_settings() -> dict:
    """journeyman.example.toml with its commented-out settings switched on."""
    text = Path("journeyman.example.toml").read_text()
    return tomllib.loads(re.sub(r"^# ?(?=\[[\w.]+\]|[\w-]+ = )", "", text, flags=re.M))


# Custom resources of operators that a component asks for; their schemas are not Kubernetes' own.
CUSTOM = ("monitoring.coreos.com/", "keda.sh/", "cert-manager.io/")


def check_schema(where: str, document: dict) -> None:
    if document["apiVersion"].startswith(CUSTOM):
        return
    try:
        kubernetes_validate.validate(document, KUBERNETES_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        require(False, f"{where}: {'.'.join(map(str, error.path))}: {error.message}")


def secret_names(pod: dict) -> set[str]:
    """Every Secret that a pod can read, by whatever road."""
    names = set()
    for volume in pod.get("volumes", []):
        names.add(volume.get("secret", {}).get("secretName"))
        for source in volume.get("projected", {}).get("sources", []):
            names.add(source.get("secret", {}).get("name"))
    for container in containers(pod):
        names.update(source.get("secretRef", {}).get("name") for source in container.get("envFrom", []))
        for variable in container.get("env", []):
            names.add(variable.get("valueFrom", {}).get("secretKeyRef", {}).get("name"))
    return names - {None}


def without_certificate(where: str, name: str, pod: dict, names: set[str]) -> set[str]:
    """Those names without the one of the pod's certificate, of which it may mount no more than it needs."""
    secret, keys = CERTIFICATES.get(name, (f"{name}-tls", None))
    for volume in pod.get("volumes", []):
        if volume.get("secret", {}).get("secretName") == secret:
            mounted = volume["secret"].get("items")
            require(keys is None or [item["key"] for item in mounted or []] == keys, f"{where}: mounts more of {secret} than {keys}")
            return names - {secret}
    return names


def containers(pod: dict) -> list[dict]:
    return pod.get("initContainers", []) + pod["containers"]


def check_capabilities(where: str, service: str, pod: dict, example_secrets: dict) -> None:
    secret, sections = CAPABILITIES[service]
    wanted = {secret} - {None}
    names = without_certificate(where, service, pod, secret_names(pod))
    require(names == wanted, f"{where}: reads {sorted(names)}, may read {sorted(wanted)}")
    used = set()
    for container in containers(pod):
        for variable in container.get("env", []):
            name, value = variable["name"], variable.get("value", "")
            parts = name.lower().split("__")
            if parts[0] != "journeyman" or parts[-1] != "file":
                require(parts[-1] not in SECRET_KEYS, f"{where}: {name} holds a secret; mount a file")
                continue
            require(parts[1] in sections, f"{where}: {name} belongs to another service")
            require(value.startswith(SECRETS_DIR), f"{where}: {name} does not name a file below {SECRETS_DIR}")
            used.add(value.removeprefix(SECRETS_DIR))
    given = set(example_secrets.get(secret, ())) | (used & COMPONENT_KEYS)
    require(used == given, f"{where}: uses {sorted(used)}, secrets.example.yaml gives {sorted(given)}")


def check_image(where: str, service: str, pod: dict, targets: set[str]) -> None:
    require(service in targets, f"{where}: the Dockerfile has no target {service}")
    images = [container["image"] for container in containers(pod)]
    matches = len(set(images)) == 1 and re.fullmatch(rf"(\S+/)?journeyman/{service}:[\w.-]+", images[0])
    require(matches and not images[0].endswith(":latest"), f"{where}: the image must be journeyman/{service} with a tag: {images}")


def check_foreign_images(where: str, pod: dict) -> None:
    """Images of others have an exact version: a floating tag is another program tomorrow."""
    for image in (container["image"] for container in containers(pod)):
        is_ours = re.search(r"(^|/)journeyman/", image)
        is_exact = re.search(r":v?\d+\.\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$", image)
        require(is_ours or is_exact, f"{where}: the image must have an exact version: {image}")


def check_base_images() -> None:
    """The images that ours are built from have an exact version, too."""
    text = Path("Dockerfile").read_text()
    bases = re.findall(r"^(?:ARG \w+=|FROM )(\S+:\S+)", text, re.MULTILINE)
    require(len(bases) >= 3, "Dockerfile: its bases cannot be found")
    for image in bases:
        is_exact = re.search(r":\d+\.\d+(\.\d+)?-[\w.-]+(@sha256:[0-9a-f]{64})?$", image)
        require(is_exact, f"Dockerfile: the base must have an exact version: {image}")


def check_runner(where: str, pod: dict) -> None:
    """Commands run under a user of their own, in a container without an environment."""
    runner = next((container for container in containers(pod) if container["name"] == "runner"), {})
    user = runner.get("securityContext", {}).get("runAsUser")
    require(user and user != pod["securityContext"]["runAsUser"], f"{where}: the runner has the executor's user")
    require(not runner.get("env") and not runner.get("envFrom"), f"{where}: the runner has an environment")
    security = runner.get("securityContext", {})
    if "seccompProfile" in security or "procMount" in security:
        local = {"type": "Localhost", "localhostProfile": "journeyman/runner.json"}
        has_own_users = pod.get("hostUsers") is False
        require(has_own_users and security.get("seccompProfile") == local, f"{where}: the runner has other rights than those of the component namespaces")
    volumes = {mount["name"]: mount.get("readOnly", False) for mount in runner.get("volumeMounts", [])}
    require(volumes == {"data": True, "work": False, "runner-tmp": False}, f"{where}: the runner mounts {volumes}")


# What the launcher needs for namespaces, and what no process in a pod needs.
NAMESPACES = {"unshare", "clone", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "mount_setattr"}
NEVER = {"bpf", "perf_event_open", "kexec_load", "init_module", "finit_module", "delete_module", "keyctl", "add_key", "request_key", "setns", "userfaultfd",
         "io_uring_setup", "ptrace", "process_vm_readv", "process_vm_writev", "open_by_handle_at", "reboot", "swapon", "syslog", "settimeofday", "clock_settime"}


def check_self_test(where: str, pod: dict, documents: list[dict]) -> None:
    """An executor without a name service tries addresses, and each of them is one of a Service that is there."""
    if pod.get("dnsPolicy") != "None":
        return
    variables = {variable["name"]: variable.get("value", "") for variable in pod["containers"][0].get("env", [])}
    entries = [entry for entry in variables.get("JOURNEYMAN__EXECUTOR__FORBIDDEN_ADDRESSES", "").split(",") if entry]
    names = [entry for entry in entries if not re.fullmatch(r"[\d.]+:\d+", entry)]
    require(not names, f"{where}: without a name service executor.forbidden_addresses cannot name {names}")
    fixed = {document["spec"]["selector"]["app.kubernetes.io/name"]: f"{document['spec']['clusterIP']}:{document['spec']['ports'][0]['port']}"
             for document in documents if document["kind"] == "Service" and "." in str(document["spec"].get("clusterIP"))}
    for name in ("nats", "redis", "ingest"):
        require(fixed.get(name) in entries, f"{where}: executor.forbidden_addresses has no address of {name}")
    require("169.254.169.254:80" in entries and any(entry.endswith(":443") for entry in entries), f"{where}: executor.forbidden_addresses lacks the node's metadata or the API server")


def check_profile() -> None:
    """The seccomp profile of the component namespaces."""
    profile = json.loads(Path("k8s/components/namespaces/runner.json").read_text())
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    require(profile["defaultAction"] == "SCMP_ACT_ERRNO", "runner.json: allows what it does not name")
    require(NAMESPACES <= allowed, f"runner.json: lacks {sorted(NAMESPACES - allowed)}")
    require(not NEVER & allowed, f"runner.json: allows {sorted(NEVER & allowed)}")


def check_hardening(where: str, pod: dict) -> None:
    require(pod.get("automountServiceAccountToken") is False, f"{where}: mounts a service account token")
    require(pod.get("enableServiceLinks") is False, f"{where}: has service links")
    security = pod.get("securityContext", {})
    require(security.get("runAsNonRoot") is True and security.get("runAsUser"), f"{where}: may run as root")
    require(security.get("seccompProfile") == {"type": "RuntimeDefault"}, f"{where}: has no seccomp profile")
    for host in ("hostNetwork", "hostPID", "hostIPC"):
        require(not pod.get(host), f"{where}: {host}")
    for container in containers(pod):
        limits = container.get("securityContext", {})
        own = container["name"] == "runner" or not {"seccompProfile", "procMount"} & limits.keys()
        require(own, f"{where}: a seccomp profile of its own")
        require(limits.get("allowPrivilegeEscalation") is False, f"{where}: may gain privileges")
        require(limits.get("readOnlyRootFilesystem") is True, f"{where}: can write its root file system")
        require(limits.get("capabilities") == {"drop": ["ALL"]}, f"{where}: keeps capabilities")
        require(container.get("resources", {}).get("limits", {}).get("memory"), f"{where}: has no memory limit")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            require(probe in container, f"{where}: has no {probe}")
    for volume in pod.get("volumes", []):
        require("hostPath" not in volume, f"{where}: mounts a path of the host")
        require("sizeLimit" in volume.get("emptyDir", {"sizeLimit": 0}), f"{where}: {volume['name']} has no size limit")


def check_settings(where: str, name: str, text: str, known: set[str], example: dict) -> None:
    settings = tomllib.loads(text)
    allowed = EXECUTOR_SECTIONS if name.startswith("executor-") else known
    if name.startswith("executor-"):
        level = settings["executor"].get("min_level")
        require(level in ("L2", "L3"), f"{where}: executor.min_level is {level}, must be L2 or L3")
        forbidden = str(settings["executor"].get("forbidden_addresses"))
        for name in ("kubernetes.default", "169.254.169.254", "nats", "redis", "ingest"):
            require(name in forbidden, f"{where}: executor.forbidden_addresses does not name {name}")
    for section, values in settings.items():
        require(section in known, f"{where}: [{section}] is not a section")
        require(section in allowed or section not in known, f"{where}: [{section}] is not the executor's")
        for key, value in values.items():
            require(key in example.get(section, {}), f"{where}: {section}.{key} is not in journeyman.example.toml")
            inner = value.values() if isinstance(value, dict) else []
            keys = {key}.union(*(nested for nested in inner if isinstance(nested, dict)))
            require(not keys & SECRET_KEYS, f"{where}: {section}.{key} holds a secret; mount a file")


def check_policies(where: str, documents: list[dict]) -> None:
    policies = {document["metadata"]["name"]: document["spec"] for document in documents if document["kind"] == "NetworkPolicy"}
    # A policy engine without IPv6 may give up on such a range, and then enforce nothing at all.
    ranges = {peer for spec in policies.values() for rule in spec.get("egress", []) for peer in map(str, rule.get("to", []))}
    is_dual = any(name.endswith("-ipv6") for name in policies)
    require(is_dual or not any("::" in peer for peer in ranges), f"{where}: an IPv6 range outside of the component ipv6")
    ports = [port for spec in policies.values() for rule in spec.get("egress", []) + spec.get("ingress", []) for port in rule.get("ports", [])]
    require(not any("endPort" in port for port in ports), f"{where}: a range of ports, which not every policy engine knows")
    deny = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    require(policies.get("deny-all") == deny, f"{where}: nothing denies all traffic")
    ways_out = reached(policies, "executor")
    allowed = [(7404, "reporter"), (3128, "egress"), (53, "kube-dns")]
    others = {port for port, peer in ways_out if not any(port == known and name in peer for known, name in allowed)}
    require(not others, f"{where}: the executor reaches ports {sorted(others)}")
    require(any(port == 3128 for port, _ in ways_out), f"{where}: the executor does not reach the egress proxy")
    # It may say what it measured; the component collector lets it.
    inside = {peer for port, peer in reached(policies, "egress") if "ipBlock" not in peer and port != 53 and (port, "'collector'" in peer) != (4317, True)}
    require(not inside, f"{where}: the egress proxy reaches {sorted(inside)}")
    for _, peer in reached(policies, "egress"):
        open_to_all = "'0.0.0.0/0'" in peer and not all(private in peer for private in PRIVATE)
        require(not open_to_all, f"{where}: the egress proxy reaches private networks")
    for service in ("ingest", "planner", "reporter", "console", "collector"):
        for port, peer in reached(policies, service):
            is_open = "'0.0.0.0/0'" in peer and not all(private in peer for private in PRIVATE)
            require(not is_open, f"{where}: {service} reaches private networks at port {port}")
    # The console connects to a login provider, wherever that is.
    for way in ("outbound-proxy", "https-private", "https-outside-ipv6"):
        missing = [service for service in ("ingest", "planner", "reporter", "console") if way in policies and not selects(policies[way]["podSelector"], service)]
        require(not missing, f"{where}: the policy {way} leaves out {missing}")
    # Whoever scrapes reaches the port too, and opens no session there without a grant.
    doors = [spec for name, spec in policies.items() if name != "scrape"]
    callers = {str(rule.get("from")) for spec in doors if selects(spec["podSelector"], "egress") for rule in spec.get("ingress", [])}
    require(len(callers) == 1 and "executor" in str(callers), f"{where}: the egress proxy is called by {sorted(callers)}")


def reached(policies: dict, service: str) -> set[tuple]:
    """Each port and peer that a service may connect to."""
    ways = set()
    for spec in policies.values():
        if selects(spec["podSelector"], service):
            for rule in spec.get("egress", []):
                ways.update((port.get("port"), str(peer)) for port in rule["ports"] for peer in rule["to"])
    return ways


def selects(selector: dict, service: str) -> bool:
    label = "app.kubernetes.io/name"
    if selector.get("matchLabels", {label: service}).get(label, service) != service:
        return False
    expressions = selector.get("matchExpressions", [])
    return bool(selector) and all(service in expression["values"] for expression in expressions if expression["key"] == label)


def check_tls(where: str, documents: list[dict]) -> None:
    """With the component `tls` nothing inside is left that speaks plainly, and who makes the Secrets makes all of them."""
    workloads = {document["metadata"]["name"]: document["spec"]["template"]["spec"] for document in documents if document["kind"] in ("Deployment", "StatefulSet")}
    for name, pod in workloads.items():
        first = pod["containers"][0]
        variables = {variable["name"]: variable.get("value", "") for variable in first.get("env", [])}
        mounts = [mount["mountPath"] for mount in first["volumeMounts"] if mount["name"] == "tls"]
        require(mounts == ["/run/tls"], f"{where}: {name} mounts no certificate")
        require("grpc" not in str([first[probe] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]), f"{where}: {name} is probed by gRPC, which knows no TLS")
        if name in CAPABILITIES and name != "ingest":
            require("JOURNEYMAN__TLS__CERT" in variables, f"{where}: {name} has no [tls]")
        if name in ("ingest", "planner", "reporter"):
            require(variables.get("JOURNEYMAN__NATS__URL", "").startswith("tls://"), f"{where}: {name} speaks plainly to NATS")
            require(variables.get("JOURNEYMAN__REDIS__URL", "").startswith("rediss://"), f"{where}: {name} speaks plainly to Redis")
    nats = next(document["data"] for document in documents if document["kind"] == "ConfigMap" and "nats-settings" in document["metadata"]["name"])
    require("cert_file" in nats["tls.conf"] and "cert_file" in nats["routes-tls.conf"], f"{where}: NATS has no certificate")
    made = {document["spec"]["secretName"] for document in documents if document["kind"] == "Certificate"}
    used = {name for pod in workloads.values() for name in secret_names(pod) if name.endswith("-tls")}
    require(not made or used <= made, f"{where}: no Certificate makes {sorted(used - made)}")


def check_file(path: Path, known: set[str], example: dict, example_secrets: dict, targets: set[str]) -> int:
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    services = set()
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        where = f"{path.stem}: {kind}/{name}"
        check_schema(where, document)
        require(kind != "Secret", f"{where}: secret values do not belong here")
        if kind in ("Deployment", "StatefulSet"):
            pod = document["spec"]["template"]["spec"]
            check_hardening(where, pod)
            if name in CAPABILITIES:
                services.add(name)
                check_capabilities(where, name, pod, example_secrets)
                check_image(where, name, pod, targets)
                if name == "executor":
                    check_runner(where, pod)
                    check_self_test(where, pod, documents)
            else:
                check_foreign_images(where, pod)
                may_read = SERVER_SECRETS.get(name, set())
                names = without_certificate(where, name, pod, secret_names(pod))
                require(names == may_read, f"{where}: reads {sorted(names)}, may read {sorted(may_read)}")
        for text in document.get("data", {}).values() if "-settings" in name and "nats" not in name else ():
            check_settings(where, name, text, known, example)
    require(services - OPTIONAL == set(CAPABILITIES) - OPTIONAL, f"{path.stem}: has {sorted(services)}, wanted the five services")
    check_policies(path.stem, documents)
    if path.stem.startswith("component-tls"):
        check_tls(path.stem, documents)
    return len(documents)


def main() -> int:
    example = example_settings()
    known = known_sections()
    require(set(example) == known, f"journeyman.example.toml: sections differ by {sorted(set(example) ^ known)}")
    secrets = yaml.safe_load_all(Path("k8s/secrets.example.yaml").read_text())
    example_secrets = {secret["metadata"]["name"]: secret["stringData"] for secret in secrets}
    targets = set(re.findall(r"^FROM \S+ AS (\w+)$", Path("Dockerfile").read_text(), re.M))
    check_profile()
    check_base_images()
    files = [Path(name) for name in sys.argv[1:]]
    count = sum(check_file(path, known, example, example_secrets, targets) for path in files)
    for problem in problems:
        print(f"k8s-check: {problem}", file=sys.stderr)
    if problems:
        return 1
    print(f"k8s ok documents={count}")
    return 0


sys.exit(main())
