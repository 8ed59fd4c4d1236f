#!/usr/bin/env bash
# Plays tickets with services of the previous release beside those of this one: the last tag, or the commit in PREVIOUS.
# Builds it under the target folder, from its own source and lock file. Arguments: names of cases, or --keep FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
previous=${PREVIOUS:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if [ -z "$previous" ]; then
    echo "skew-check: there is no tag; name the previous release: make skew-check PREVIOUS=<commit>" >&2
    exit 2
fi
commit=$(git rev-parse --verify --quiet "$previous^{commit}") || {
    echo "skew-check: $previous is not a commit of this repository" >&2
    exit 2
}
source=$target/previous/source
bins=$target/previous/bin/$commit

build() {
    rm -rf "$source"
    mkdir -p "$source" "$bins.part"
    # Times of now: cargo takes a file for known when it is older than what was built of another commit.
    git archive "$commit" | tar -xm -C "$source"
    CARGO_TARGET_DIR=$target/previous/build "$cargo" build --quiet --locked --manifest-path "$source/Cargo.toml" \
        -p ingest -p planner -p executor -p reporter -p egress --bins
    find "$target/previous/build/debug" -maxdepth 1 -type f -executable -exec cp -t "$bins.part" {} +
    cp "$source/journeyman.example.toml" "$bins.part"
    mv "$bins.part" "$bins"
}

if [ ! -d "$bins" ]; then
    echo "skew-check: building $previous ($commit)" >&2
    rm -rf "$bins.part"
    build
fi
$cargo build --quiet --locked --workspace --bins
exec "$target/debug/scenarios" skew --previous "$bins" --example "$bins/journeyman.example.toml" "$@"
