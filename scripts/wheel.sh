#!/usr/bin/env bash
# Builds the wheel into dist/, installs it into an empty environment, and looks whether what it carries is there and starts.
# Prints `wheel ok <file> <MB>`. PROFILE=dev builds faster, and larger. Needs python3 with venv; maturin comes from PyPI into .tools/wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
MATURIN=1.16.0
profile=${PROFILE:-release}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# The commit that each start logs, with -dirty for a checkout that was changed.
JOURNEYMAN_COMMIT=${JOURNEYMAN_COMMIT:-$(git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)}
export JOURNEYMAN_COMMIT

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
if [ "$(.tools/wheel/bin/maturin --version 2>/dev/null || true)" != "maturin $MATURIN" ]; then
    mkdir -p .tools
    python3 -m venv .tools/wheel
    .tools/wheel/bin/pip install --quiet --disable-pip-version-check "maturin==$MATURIN"
fi

# The binary itself is maturin's; all else is data, which lands below the environment's folder.
scripts/tree.sh "$work/tree" "$profile"
rm -rf packaging/wheel/data
mkdir -p packaging/wheel/data/data
cp -R "$work/tree/libexec" "$work/tree/share" packaging/wheel/data/data/
# The build's output names crates; only a failure is of interest.
if ! (cd packaging/wheel && ../../.tools/wheel/bin/maturin build --profile "$profile" --out "$work/wheel") >"$work/log" 2>&1; then
    cat "$work/log" >&2
    exit 1
fi
wheel=$(echo "$work"/wheel/journeyman-"$version"-*.whl)

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"
# Nothing of this checkout may be found.
cd "$work"
[ "$(env -i venv/bin/journeyman --version)" = "journeyman $version" ]
for helper in launcher parser inspector; do [ -x "venv/libexec/journeyman/$helper" ]; done
[ -s venv/share/man/man1/journeyman-up.1 ]
[ -s venv/share/doc/journeyman/html/setup.html ]
env -i PATH=/usr/bin:/bin venv/bin/journeyman doctor >doctor || true
grep -q '^ok    nats-server ' doctor || { cat doctor >&2; exit 1; }
grep -q '^ok    own programs ' doctor || { cat doctor >&2; exit 1; }
env -i venv/bin/journeyman demo --help >/dev/null
cd - >/dev/null
mkdir -p dist
cp "$wheel" dist/
echo "wheel ok dist/$(basename "$wheel") $(($(stat -c %s "$wheel") / 1000000)) MB"
