#!/usr/bin/env bash
# Builds the command with what belongs to it, and lays it out below a folder as it is installed:
#   bin/journeyman, libexec/journeyman/{launcher,parser,inspector}, share/man/man1, completions for bash, fish and zsh, and the
#   documentation of this version as HTML in share/doc/journeyman/html, to which `journeyman doctor` links.
# Usage: scripts/tree.sh FOLDER [PROFILE]; PROFILE is release unless given.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?which folder}
profile=${2:-release}
case $profile in dev) built=debug ;; *) built=$profile ;; esac
built=${CARGO_TARGET_DIR:-target}/$built

# The commit that each start logs, with -dirty for a checkout that was changed.
JOURNEYMAN_COMMIT=${JOURNEYMAN_COMMIT:-$(git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)}
export JOURNEYMAN_COMMIT
# One call: the programs share nearly all of their crates.
${CARGO:-cargo} build --quiet --locked --profile "$profile" -p journeyman -p executor -p reporter \
    --features journeyman/demo --bin journeyman --bin launcher --bin parser --bin inspector
install -d "$folder"/bin "$folder"/libexec/journeyman "$folder"/share/{man/man1,bash-completion/completions,fish/vendor_completions.d,zsh/site-functions}
install -m 0755 "$built/journeyman" "$folder/bin/"
install -m 0755 "$built/launcher" "$built/parser" "$built/inspector" "$folder/libexec/journeyman/"
if [ "$profile" = dev ]; then strip --strip-debug "$folder"/bin/* "$folder"/libexec/journeyman/*; fi
"$folder/bin/journeyman" man "$folder/share/man/man1"
"$folder/bin/journeyman" completions bash >"$folder/share/bash-completion/completions/journeyman"
"$folder/bin/journeyman" completions fish >"$folder/share/fish/vendor_completions.d/journeyman.fish"
"$folder/bin/journeyman" completions zsh >"$folder/share/zsh/site-functions/_journeyman"
html=$folder/share/doc/journeyman/html
install -d "$html/console" "$html/schemas"
install -m 0644 docs/console/*.png "$html/console/"
install -m 0644 docs/schemas/*.json "$html/schemas/"
install -m 0644 docs/openapi.json "$html/"
# The pages link only to files that are there already.
"$folder/bin/journeyman" docs --html "$html" >/dev/null
