#!/usr/bin/env bash
# Checks every page of the console in a real Chromium: in five states (empty, one of each, many, failing, hostile text), at 1280
# and 390 pixels, light and dark. axe-core finds nothing, no policy is broken, no page is wider than its window; a live run is
# watched to its end, an approval is clicked, the keyboard works. Writes screenshots for the docs to docs/console/.
# Needs cargo and npm; installs Chromium with its driver from the distribution, and axe-core into .tools/axe.
set -euo pipefail
cd "$(dirname "$0")/.."

AXE_VERSION=4.14.1
axe=.tools/axe/$AXE_VERSION/axe.min.js

say() { printf 'console-check: %s\n' "$*" >&2; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
    say "installing chromium and chromium-driver"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null
fi
if [ ! -f "$axe" ]; then
    say "installing axe-core $AXE_VERSION into .tools/axe"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    (cd "$folder" && npm pack --silent "axe-core@$AXE_VERSION" >/dev/null && tar -xzf "axe-core-$AXE_VERSION.tgz")
    mkdir -p "$(dirname "$axe")"
    mv "$folder/package/axe.min.js" "$axe"
fi

target=${CARGO_TARGET_DIR:-target}
${CARGO:-cargo} build --quiet --locked --workspace --bin scenarios --bin journeyman
"$target/debug/scenarios" console-check --axe "$axe" --screenshots docs/console
