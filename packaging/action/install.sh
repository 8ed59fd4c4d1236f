#!/usr/bin/env bash
# First step of action.yml: installs nats-server, redis-server and the command, and names them for the next steps.
# Inputs: PROGRAM, an installed command; VERSION, a release, or `checkout` for the sources of the action; RELEASE_URL.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)

fail() { printf '::error title=Journeyman::%s\n' "$*"; exit 1; }

"$here/scripts/setup.sh" servers
if [ -z "${JOURNEYMAN_NATS_SERVER:-}" ] && [ -x "$here/.tools/venv/bin/nats-server" ]; then
    echo "JOURNEYMAN_NATS_SERVER=$here/.tools/venv/bin/nats-server" >>"$GITHUB_ENV"
fi

# Before Linux 6.12 the sandbox of commands needs user namespaces, which Ubuntu forbids by this setting. The machine of a job at
# GitHub is made for that job; on other machines the operator decides.
restriction=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ "${RUNNER_ENVIRONMENT:-}" = github-hosted ] && [ "$(cat "$restriction" 2>/dev/null || echo 0)" = 1 ]; then
    sudo -n sysctl --quiet --write kernel.apparmor_restrict_unprivileged_userns=0
fi

download() {
    local version=${VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)}
    [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
        fail "there is no release for $(uname -s) on $(uname -m); use version: checkout on a runner with cargo"
    local name=journeyman-$version-x86_64-unknown-linux-gnu.tar.gz
    local from=${RELEASE_URL:-}
    if [ -z "$from" ]; then
        [ -n "${ACTION_REPOSITORY:-}" ] || fail "the repository of the action is not known; name the release by release-url"
        from=https://github.com/$ACTION_REPOSITORY/releases/download/v$version
    fi
    local work
    work=$(mktemp -d)
    for file in "$name" SHA256SUMS; do
        curl --fail --location --silent --show-error --retry 3 --output "$work/$file" "$from/$file" ||
            fail "$from/$file cannot be downloaded; use version: checkout to build the sources of the action"
    done
    (cd "$work" && grep -E "^[0-9a-f]{64} [ *]$name\$" SHA256SUMS | sha256sum --check --status --strict) ||
        fail "the checksum of $name is not the one in SHA256SUMS"
    mkdir -p "$prefix"
    tar --extract --gzip --file "$work/$name" --strip-components=1 --directory "$prefix"
    rm -rf "$work"
}

prefix=$RUNNER_TEMP/journeyman/installed
if [ -n "${PROGRAM:-}" ]; then
    [ -x "$PROGRAM" ] || fail "program: $PROGRAM is not an executable file"
    folder=$(dirname "$PROGRAM")
else
    if [ "${VERSION:-}" = checkout ]; then
        command -v cargo >/dev/null || fail "version: checkout needs cargo"
        "$here/scripts/tree.sh" "$prefix"
    else
        download
    fi
    folder=$prefix/bin
fi
"$folder/journeyman" --version
echo "$folder" >>"$GITHUB_PATH"
