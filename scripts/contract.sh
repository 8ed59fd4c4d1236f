#!/usr/bin/env bash
# Compares the stand-ins of GitHub and Jira and our two clients with what the vendors publish.
# Needs cargo, python3 with venv and the package registries; installs into .tools/contract.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.tools/contract
record=$tools/exchanges.jsonl
target=${CARGO_TARGET_DIR:-target}
cargo=${CARGO:-cargo}

install() {
    mkdir -p "$tools"
    if ! cmp -s scripts/contract/requirements.txt "$tools/installed.txt" ||
        ! cmp -s scripts/contract/package-lock.json "$tools/installed.json"; then
        echo "contract: installing the descriptions and the clients into .tools/contract" >&2
        python3 -m venv --clear "$tools/venv"
        "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r scripts/contract/requirements.txt
        cp scripts/contract/package.json scripts/contract/package-lock.json "$tools"
        (cd "$tools" && PATH=$tools/venv/bin:$PATH npm ci --ignore-scripts --no-audit --no-fund --loglevel error)
        cp scripts/contract/requirements.txt "$tools/installed.txt"
        cp scripts/contract/package-lock.json "$tools/installed.json"
    fi
    # Node looks for packages beside the script that wants them.
    cp scripts/contract/*.mjs scripts/contract/*.py scripts/contract/excused.json "$tools"
}

install
PATH=$tools/venv/bin:$PATH
rm -f "$record"
export JOURNEYMAN_EXCHANGES=$record
$cargo test --quiet --locked -p testkit -p github -p jira
$cargo build --quiet --locked -p testkit --bins
python "$tools/clients.py" "$target/debug/standins"
node "$tools/check.mjs" "$record"
