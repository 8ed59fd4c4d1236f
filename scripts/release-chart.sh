#!/usr/bin/env bash
# Packages the chart with the registry of the release as its default, and pushes it to oci://REGISTRY/charts.
# Usage: scripts/release-chart.sh REGISTRY VERSION; prints `chart <file>`. Needs helm 3.8 or newer, and a login.
set -euo pipefail
cd "$(dirname "$0")/.."
registry=${1:?which registry} version=${2:?which version}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp -R charts/journeyman "$work/"
sed -i "s|^  registry: \"\"\$|  registry: \"$registry\"|" "$work/journeyman/values.yaml"
grep -q "^  registry: \"$registry\"\$" "$work/journeyman/values.yaml" || { echo "release-chart: values.yaml has no registry" >&2; exit 1; }
helm package "$work/journeyman" --version "$version" --app-version "$version" --destination "$work"
helm push "$work/journeyman-$version.tgz" "oci://$registry/charts"
echo "chart oci://$registry/charts/journeyman:$version"
