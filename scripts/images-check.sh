#!/usr/bin/env bash
# Builds every target of the Dockerfile and starts each image: its version, its answer to missing settings, its user, its bill of materials, and
# for the executor the static launcher. Prints `image <name> <MB>` and `images ok images=N`.
#
# TARGETS names some of the targets instead of all seven; `stand-ins` is an eighth, for `make cluster-test`. PROFILE=dev takes the programs of a
# debug build, without their symbols: quicker to make, larger. In an engine that ran before, the images stay.
#
# It needs no registry: the base is made by debootstrap unless RUNTIME_BASE names one, and the programs are those of this checkout, built for
# release. Where no Docker engine runs, one is started for the time of the check, with a folder of its own and no network of its own.
# Needs root for that; installs docker.io and debootstrap where apt-get can.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'images-check: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
TARGETS=${TARGETS:-ingest planner executor reporter egress console cli}
PROFILE=${PROFILE:-release}
DOCKER=/usr/bin/docker
[ -x "$DOCKER" ] || DOCKER=$(command -v docker || true)

work=$(mktemp -d)
engine=
# Only the engine that was started here is stopped.
cleanup() {
    if [ -n "$engine" ]; then kill "$engine" 2>/dev/null || true; wait "$engine" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap cleanup EXIT INT TERM

need() {
    command -v "$1" >/dev/null && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "$1 is missing; install it (Debian: $2)"
    say "installing $2"
    apt-get update -qq
    env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

if [ -z "$DOCKER" ] || ! "$DOCKER" info >/dev/null 2>&1; then
    need dockerd docker.io
    DOCKER=/usr/bin/docker
    export DOCKER_HOST="unix://$work/docker.sock"
    say "starting a Docker engine for the time of this check"
    dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" --host "$DOCKER_HOST" \
        --iptables=false --bridge=none >"$work/log" 2>&1 &
    engine=$!
    for _ in $(seq 60); do
        "$DOCKER" info >/dev/null 2>&1 && break
        kill -0 "$engine" 2>/dev/null || fail "the engine ended: $(tail -n 1 "$work/log")"
        sleep 0.5
    done
    "$DOCKER" info >/dev/null 2>&1 || fail "the engine does not answer: $(tail -n 1 "$work/log")"
fi

say "building the programs"
programs=() bins=()
for name in $TARGETS; do
    case $name in
        executor) programs+=(executor launcher parser) ;;
        reporter) programs+=(reporter inspector) ;;
        cli) programs+=(journeyman) ;;
        stand-ins) programs+=(scenarios) ;;
        *) programs+=("$name") ;;
    esac
done
for program in "${programs[@]}"; do bins+=(--bin "$program"); done
# The whole workspace in one call, so that there is one set of features.
CARGO_PROFILE_RELEASE_LTO=off cargo build --quiet --locked --profile "$PROFILE" --workspace "${bins[@]}"
target=${CARGO_TARGET_DIR:-target}/${PROFILE/dev/debug}
mkdir -p "$work/programs/out"
for program in "${programs[@]}"; do cp "$target/$program" "$work/programs/out/"; done
strip "$work"/programs/out/*
python3 scripts/sbom.py >"$work/programs/out/sbom.cdx.json"
tar -C "$work/programs" -c . | "$DOCKER" import - journeyman-programs:check >/dev/null

base=${RUNTIME_BASE:-}
if [ -z "$base" ]; then
    need debootstrap debootstrap
    say "making a base"
    debootstrap --variant=minbase --include=ca-certificates,git bookworm "$work/base" >"$work/debootstrap.log" 2>&1 ||
        fail "debootstrap: $(tail -n 1 "$work/debootstrap.log")"
    rm -rf "$work"/base/var/cache/apt/* "$work"/base/var/lib/apt/lists/* "$work"/base/usr/share/{doc,man,locale}/*
    tar -C "$work/base" -c . | "$DOCKER" import - journeyman-base:check >/dev/null
    base=journeyman-base:check
fi

run() { "$DOCKER" run --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges "$@"; }

for name in $TARGETS; do
    image=journeyman/$name:$VERSION
    DOCKER_BUILDKIT=1 "$DOCKER" build --quiet --network none --target "$name" --tag "$image" \
        --build-arg RUST_IMAGE="$base" --build-arg RUNTIME_BASE="$base" --build-arg EXECUTOR_BASE="$base" \
        --build-arg PROGRAMS=journeyman-programs:check --build-arg STAND_INS=journeyman-programs:check . >/dev/null || fail "$name does not build"
    program=$name
    case $name in cli) program=journeyman ;; stand-ins) program=scenarios ;; esac
    run --entrypoint "/usr/local/bin/$program" "$image" --version | grep -qx "$program $VERSION" || fail "$name: --version is not $program $VERSION"
    [ "$(run --entrypoint /usr/bin/id "$image" -u)" = 65532 ] || fail "$name does not run as 65532"
    run --entrypoint /bin/cat "$image" /usr/share/doc/journeyman/sbom.cdx.json | python3 -c '
import json, sys
bill = json.load(sys.stdin)
sys.exit(not any(part["name"] == "tokio" and part["hashes"] for part in bill["components"]))' || fail "$name has no bill of materials"
    if [ "$name" != cli ] && [ "$name" != stand-ins ]; then
        # Without settings a service says which one is missing and ends with 64.
        set +e
        run "$image" >"$work/out" 2>&1
        code=$?
        set -e
        [ "$code" = 64 ] || fail "$name without settings ends with $code: $(tail -n 1 "$work/out")"
    fi
    "$DOCKER" image inspect --format "image $name {{.Size}}" "$image" | awk '{printf "image %s %d MB\n", $2, $3 / 1000000}'
done
for name in executor reporter stand-ins; do
    case " $TARGETS " in *" $name "*) ;; *) continue ;; esac
    run --entrypoint /usr/bin/git "journeyman/$name:$VERSION" --version >/dev/null || fail "the image of $name has no git"
done
if [[ " $TARGETS " == *" executor "* ]]; then
    run --entrypoint /bin/cat "journeyman/executor:$VERSION" /usr/local/bin/launcher >"$work/launcher"
    file=$(ldd "$work/launcher" 2>&1 || true)
    case $file in *"not a dynamic"*|*"statically linked"*) ;; *) fail "the launcher is not static: $file" ;; esac
fi
printf 'images ok images=%d\n' "$(wc -w <<<"$TARGETS")"
