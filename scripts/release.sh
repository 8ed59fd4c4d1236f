#!/usr/bin/env bash
# Makes dist/journeyman-<version>-<target>.tar.gz, which is unpacked over a prefix such as /usr/local or ~/.local, the bill of materials
# of its programs, and dist/SHA256SUMS.
# The same checkout gives the same archive around its programs. Prints `release ok <file> <MB>`. PROFILE=dev builds faster, and larger.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
target=$(rustc -vV | sed -n 's/^host: //p')
name=journeyman-$version-$target

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
scripts/tree.sh "$work/$name" "$profile"
install -d "$work/$name/share/doc/journeyman"
install -m 0644 journeyman.example.toml "$work/$name/share/doc/journeyman/"
python3 scripts/sbom.py >"$work/$name/share/doc/journeyman/sbom.cdx.json"
# What it is linked to has to be on every Linux with glibc: the libraries that a manylinux wheel may use, too.
for program in "$work/$name"/bin/* "$work/$name"/libexec/journeyman/*; do
    foreign=$(ldd "$program" 2>/dev/null | awk '{print $1}' | grep -vE '^(linux-vdso|/lib64/ld-linux|/lib/ld-linux|lib(c|m|gcc_s|dl|pthread|rt|z)\.so|statically|not)' || true)
    [ -z "$foreign" ] || { echo "release: $program is linked to $foreign" >&2; exit 1; }
done

mkdir -p dist
stamp=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar --create --sort=name --mtime="@$stamp" --owner=0 --group=0 --numeric-owner --directory "$work" "$name" |
    gzip --no-name >"dist/$name.tar.gz"
python3 scripts/sbom.py >"dist/journeyman-$version.cdx.json"
(cd dist && for file in *.tar.gz *.whl *.cdx.json; do if [ -e "$file" ]; then sha256sum -- "$file"; fi; done >SHA256SUMS)

# As a user installs it.
mkdir "$work/prefix"
tar --extract --gzip --file "dist/$name.tar.gz" --strip-components=1 --directory "$work/prefix"
(cd "$work" && [ "$(env -i prefix/bin/journeyman --version)" = "journeyman $version" ])
[ -s "$work/prefix/share/doc/journeyman/html/setup.html" ]
(cd "$work" && env -i PATH=/usr/bin:/bin prefix/bin/journeyman doctor >doctor || true; grep -q '^ok    own programs ' doctor)
# The demo of the installed command, where the machine has its servers.
nats=${JOURNEYMAN_NATS_SERVER:-$(command -v nats-server || true)}
if [ -n "$nats" ] && { command -v redis-server || command -v valkey-server; } >/dev/null; then
    (cd "$work" && env -i PATH="$PATH" JOURNEYMAN_NATS_SERVER="$nats" prefix/bin/journeyman demo >demo || { cat demo >&2; exit 1; }
        tail -n 1 demo | grep -q '^demo ok ' || { cat demo >&2; exit 1; })
fi
echo "release ok dist/$name.tar.gz $(($(stat -c %s "dist/$name.tar.gz") / 1000000)) MB"
