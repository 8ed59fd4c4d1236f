#!/bin/sh
# First service of compose.yaml: makes the keys between the services at the first start, and gives each volume to its user.
# Usage: prepare.sh FOLDER, with a folder for each service in it. A later start keeps the keys.
set -eu
umask 077
out=${1:-/keys}

# The value after a label, in the part of the output that a comment with this name begins.
entry() {
    awk -v part="# $1" -v label="$2" 'index($0, "# ") == 1 { found = index($0, part) == 1; next } found && $1 == label { print $2; exit }'
}

if [ ! -s "$out/operator/token" ]; then
    for folder in ingest planner reporter executor egress nats redis operator; do mkdir -p "$out/$folder"; done

    keys=$(journeyman service-keys)
    for service in ingest planner reporter; do
        echo "$keys" | entry "$service-secrets" nats-nkey-seed: >"$out/$service/nats-nkey-seed"
        echo "$keys" | entry "$service-secrets" redis-password: >"$out/$service/redis-password"
    done
    echo "$keys" | awk '/^users.acl:/ { inside = 1; next } inside && !NF { exit } inside { sub(/^  /, ""); print }' >"$out/redis/users.acl"
    # The permissions name variables, whose values are the public keys.
    journeyman nats-users >"$out/nats/users.conf"
    for public in $(echo "$keys" | grep '^NATS_'); do
        sed -i "s/\$${public%%=*}\$/${public#*=}/" "$out/nats/users.conf"
    done

    grant=$(journeyman grant-key)
    echo "$grant" | sed -n 's/^grant_key = "\(.*\)"$/\1/p' >"$out/planner/grant-key"
    for service in executor reporter egress; do
        echo "$grant" | awk -F'"' '/^\[executor/ { getline; print $2; exit }' >"$out/$service/grant-public-key"
    done

    head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$out/operator/github-webhook-secret"
    cp "$out/operator/github-webhook-secret" "$out/ingest/github-webhook-secret"
    token=$(journeyman token operator --role operator)
    echo "$token" | sed -n 's/^sha256 = "\(.*\)"$/\1/p' >"$out/ingest/operator-sha256"
    for file in "$out"/*/*; do [ -s "$file" ] || { echo "prepare: $file is empty" >&2; exit 1; }; done
    # Written last: its presence means that every key is there.
    echo "$token" | sed -n 2p >"$out/operator/token"
fi

if [ "$(id -u)" = 0 ]; then
    chown -R 65532:65532 "$out/ingest" "$out/planner" "$out/reporter" "$out/executor" "$out/egress" "$out/operator"
    # The images of NATS and Redis start as other users.
    chmod -R a+rX "$out/nats" "$out/redis"
    for folder in /data/executor /data/reporter; do [ ! -d "$folder" ] || chown 65532:65532 "$folder"; done
fi
