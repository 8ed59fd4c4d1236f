#!/usr/bin/env python3
"""Keeps charts/journeyman equal to k8s/base.

`scripts/chart.py` writes the rendered base to the chart's files/base.yaml; `scripts/chart.py --check BASE.yaml` fails when the chart with
default values renders anything else than BASE.yaml, plus Helm's own labels, when the schema of the values takes what it must not, or when a
value has no effect. Prints `chart ok objects=N values=N`. Needs kubectl, PyYAML and helm-python-sdk."""

import copy
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts/journeyman"
LABELS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart"}


def rendered_base():
    return subprocess.run(["kubectl", "kustomize", ROOT / "k8s/base"], check=True, capture_output=True, text=True).stdout


def by_name(documents):
    return {(document["kind"], document["metadata"]["name"]): document for document in documents if document}


def render(chart, values=None):
    parts = chart.render(values, name="journeyman", namespace="journeyman")
    manifests = (text for path, text in parts.items() if path.endswith(".yaml"))
    return [document for text in manifests for document in yaml.safe_load_all(text) if document]


def without_helm(document):
    document = copy.deepcopy(document)
    labels = document["metadata"].get("labels", {})
    for label in LABELS:
        labels.pop(label, None)
    if not labels:
        document["metadata"].pop("labels", None)
    return document


def differences(wanted, found, where=""):
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys(), key=str):
            yield from differences(wanted.get(key), found.get(key), f"{where}.{key}")
    elif wanted != found:
        yield f"{where}: {str(wanted)[:60]!r} is {str(found)[:60]!r}"


SERVICES = ("ingest", "planner", "executor", "reporter", "egress")
# A change of each value, and a word that must then be in what is rendered.
CHANGES = [
    ({"image": {"registry": "registry.example"}}, "registry.example/journeyman/planner:"),
    ({"image": {"tag": "9.9.9"}}, "journeyman/executor:9.9.9"),
    ({"image": {"pullPolicy": "Always"}}, "imagePullPolicy': 'Always'"),
    ({"image": {"pullSecrets": [{"name": "pull-me"}]}}, "pull-me"),
    ({"settings": "# settings-of-mine"}, "# settings-of-mine"),
    ({"executorSettings": "# executors-of-mine"}, "# executors-of-mine"),
    ({"rules": {"shop.yaml": "repo: {}"}}, "shop.yaml"),
    ({"natsUsers": {"planner": "UPLANNER"}}, "UPLANNER"),
    ({"existingSecret": {"ingest": "ingest-of-mine"}}, "ingest-of-mine"),
    ({"existingSecret": {"redis": "redis-of-mine"}}, "redis-of-mine"),
    *[({name: {"replicas": 77}}, "'replicas': 77") for name in (*SERVICES, "nats")],
    *[({name: {"resources": {"limits": {"memory": "77Gi"}}}}, "77Gi") for name in SERVICES],
    *[({name: {"env": [{"name": "OF_MINE", "value": name}]}}, f"{{'name': 'OF_MINE', 'value': '{name}'}}")
      for name in SERVICES],
    *[({name: {"patch": {"metadata": {"annotations": {"patched": name}}}}}, f"'patched': '{name}'")
      for name in (*SERVICES, "nats", "redis")],
    ({"nats": {"storage": {"size": "77Gi"}}}, "77Gi"),
    ({"nats": {"storage": {"className": "fast"}}}, "'storageClassName': 'fast'"),
    ({"namespace": {"create": True}}, "'kind': 'Namespace'"),
    ({"extraObjects": [{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "{{ .Release.Name }}-mine"}}]}, "journeyman-mine"),
    ({"test": {"image": "doctor/of-mine"}}, "doctor/of-mine"),
]
# What these switch off must be gone.
WITHOUT = [
    ({"nats": {"enabled": False}}, "StatefulSet"),
    ({"redis": {"enabled": False}}, "redis-acl"),
    ({"networkPolicies": {"enabled": False}}, "NetworkPolicy"),
]
WRONG = [{"images": {}}, {"planner": {"replica": 2}}, {"settings": {}}, {"nats": {"enabled": "maybe"}}, {"ingest": {"replicas": -1}}, {"ingest": {"env": [{}]}}]


def check(base_text):
    from helm_python import Chart, HelmError
    problems = []
    if (CHART / "files/base.yaml").read_text() != base_text:
        problems.append("files/base.yaml is not the rendered base; run scripts/chart.py")
    chart = Chart.load(str(CHART))
    base = by_name(document for document in yaml.safe_load_all(base_text) if document["kind"] != "Namespace")
    objects = by_name(document for document in render(chart) if "helm.sh/hook" not in document["metadata"].get("annotations", {}))
    for name in base.keys() ^ objects.keys():
        problems.append(f"{name}: in one of chart and base alone")
    for name in base.keys() & objects.keys():
        problems.extend(f"{name[0]}/{name[1]}{text}" for text in differences(base[name], without_helm(objects[name])))
    # The test of the chart checks ingest, so it has the variables of ingest.
    ingest = base["Deployment", "ingest"]["spec"]["template"]["spec"]["containers"][0]["env"]
    tests = [document for document in render(chart) if document["kind"] == "Pod"]
    if [test["spec"]["containers"][0]["env"] for test in tests] != [ingest]:
        problems.append("templates/tests/doctor.yaml has other variables than ingest")
    for values, word in CHANGES:
        if word not in str(render(chart, values)):
            problems.append(f"{values} changes nothing")
    for values, word in WITHOUT:
        if word in str(render(chart, values)):
            problems.append(f"{values} leaves {word}")
    for values in WRONG:
        try:
            chart.validate_schema(values)
            problems.append(f"the schema takes {values}")
        except HelmError:
            pass
    for problem in problems[:20]:
        print(f"chart: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"chart ok objects={len(objects)} values={len(CHANGES) + len(WITHOUT)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(Path(sys.argv[2]).read_text())
    else:
        (CHART / "files/base.yaml").write_text(rendered_base())
