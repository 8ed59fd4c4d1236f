#!/usr/bin/env bash
# Builds every image and pushes it, with provenance and a bill of materials of the build.
# Usage: scripts/release-images.sh REGISTRY VERSION; prints `image <name>` for each. Needs Docker with buildx, and a login.
set -euo pipefail
cd "$(dirname "$0")/.."
registry=${1:?which registry} version=${2:?which version}
commit=$(git rev-parse HEAD)

docker buildx create --name journeyman-release --driver docker-container >/dev/null 2>&1 || true
# One builder: the first target compiles, and the others take the programs from its cache.
for target in ingest planner executor reporter egress console cli; do
    image=$registry/journeyman/$target:$version
    docker buildx build --builder journeyman-release --target "$target" --build-arg COMMIT="$commit" --tag "$image" \
        --label "org.opencontainers.image.source=${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-}" \
        --label "org.opencontainers.image.revision=$commit" --label "org.opencontainers.image.version=$version" \
        --label org.opencontainers.image.licenses=Apache-2.0 --provenance=mode=max --sbom=true --push .
    echo "image $image"
done
