#!/usr/bin/env bash
# Second step of action.yml: settings and rules from its inputs, then one watch that ends when nothing is new.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
state=$RUNNER_TEMP/journeyman

fail() { printf '::error title=Journeyman::%s\n' "$*"; exit 1; }

[ -n "${MODEL_KEY:-}" ] || fail "model-key is empty; add the key to the secrets of the repository and pass it to the action"
[ -n "${TOKEN:-}" ] || fail "github-token is empty"
case $MODEL_DIALECT in
    anthropic) usual=claude-sonnet-5-5 ;;
    openai) usual=gpt-6.1-sol ;;
    openai-responses) usual=gpt-6.1-sol ;;
    *) fail "model-dialect is $MODEL_DIALECT; it must be anthropic, openai or openai-responses" ;;
esac

# The rules of the repository, and the keys that only the job knows. JSON is valid YAML, and needs no quoting here.
mkdir -p "$state/data"
rm -rf "$state/rules"
mkdir -p "$state/rules"
python3 - "$state/rules" "${GITHUB_WORKSPACE:-.}/$RULES_FILE" <<'PY' || fail "the rules could not be written; the lines above say why"
import json, os, pathlib, re, sys, urllib.request

rules, own = map(pathlib.Path, sys.argv[1:])
owner, name = os.environ["GITHUB_REPOSITORY"].split("/")
branch = os.environ.get("DEFAULT_BRANCH")
if not branch:
    # Some events have no repository in their payload.
    url = f"{os.environ['GITHUB_API_URL']}/repos/{owner}/{name}"
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "User-Agent": "journeyman-action"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        branch = json.load(answer)["default_branch"]
(rules / "repository.yaml").write_text(json.dumps({"repo": {"owner": owner, "name": name, "default_branch": branch}}))
if own.is_file():
    text = own.read_text()
    if re.search(r"^repo\s*:", text, re.MULTILINE):
        sys.exit(f"{own} has the key repo; leave it out, the repository is the one of the workflow")
else:
    text = json.dumps({"issues": {"labels": [os.environ["LABEL"]]}})
(rules / "defaults.yaml").write_text(text)
PY

export JOURNEYMAN__RULES__DIR=$state/rules
export JOURNEYMAN__RULES__COMMIT_AUTHOR=$COMMIT_AUTHOR
for account in READER WRITER; do
    export "JOURNEYMAN__GITHUB_${account}__API_URL=$GITHUB_API_URL"
    export "JOURNEYMAN__GITHUB_${account}__GIT_URL=$GITHUB_SERVER_URL"
    export "JOURNEYMAN__GITHUB_${account}__TOKEN=$TOKEN"
done
export JOURNEYMAN__INGEST__OWN_ACCOUNTS=$MENTION
export JOURNEYMAN__INGEST__CHECKS_ABSENT_S=$WAIT_FOR_CHECKS
export JOURNEYMAN__REPORTER__RUN_URL=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID
if [ -n "${ACTION_REPOSITORY:-}" ]; then
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)
    export JOURNEYMAN__REPORTER__GUIDE_URL=https://github.com/$ACTION_REPOSITORY/blob/v$version/docs/reviewers.md
fi
export JOURNEYMAN__MODEL__DIALECT=$MODEL_DIALECT
export JOURNEYMAN__MODEL__NAME=${MODEL_NAME:-$usual}
export JOURNEYMAN__MODEL__API_KEY=$MODEL_KEY
if [ -n "${MODEL_BASE_URL:-}" ]; then export JOURNEYMAN__MODEL__BASE_URL=$MODEL_BASE_URL; fi
# Only the settings above have the credentials from here on.
unset MODEL_KEY TOKEN

# A settings file of the repository is not meant for this command, which reads one from its working folder.
cd "$state"
# The log quotes text of others; it must not become commands of the runner.
quiet=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
echo "::stop-commands::$quiet"
set +e
# In the foreground the signal reaches the command alone, which ends its servers in order.
timeout --foreground --signal=INT --kill-after=2m "${TIME_LIMIT}m" \
    journeyman watch --once --interval 15 --data "$state/data" 2>&1 | tee "$state/log"
code=${PIPESTATUS[0]}
set -e
echo "::$quiet::"

if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    {
        echo '### Journeyman'
        echo '```'
        # Failed runs and reads have a line of the command itself.
        grep -E '^journeyman: |opened http|run finished: completed|waits for: ' "$state/log" || echo 'nothing was due'
        echo '```'
    } >>"$GITHUB_STEP_SUMMARY"
fi
case $code in
    0) ;;
    124) echo "::warning title=Journeyman::the time limit of $TIME_LIMIT minutes ended this job; the next one continues" ;;
    *) fail "journeyman ended with $code; the log above says why" ;;
esac
