#!/usr/bin/env python3
"""Checks of a release that need no account.

`release_check.py check [TAG]` compares the versions that files name, and plays every step of the release workflow with programs that only
record their arguments; prints `release-check ok steps=N`. `release_check.py notes VERSION` prints the section of the changelog. The check
needs PyYAML."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ("ingest", "planner", "executor", "reporter", "egress", "console", "cli")
# Files that name the version, each with a pattern whose group is the version.
NAMED = {
    "charts/journeyman/Chart.yaml": r"^(?:version|appVersion): (\S+)$",
    "charts/journeyman/files/base.yaml": r"image: journeyman/\w+:(\S+)$",
    "k8s/base/kustomization.yaml": r"newTag: \"?([^\s\"]+)",
    "k8s/components/console/kustomization.yaml": r"newTag: \"?([^\s\"]+)",
    "compose.yaml": r"JOURNEYMAN_VERSION:-([^}]+)}",
    "Makefile": r"-t journeyman/\$\$service:(\S+)",
    "packaging/action/journeyman.yml": r"uses: OWNER/journeyman@v(\S+)$",
    "docs/action.md": r"uses: OWNER/journeyman@v(\S+)$",
}
# Files that name the image with the compiler. The release and the images have the same one, and contributors too. The first one counts;
# Dependabot raises it and the second one together, and a person the third.
COMPILERS = ("Dockerfile", ".devcontainer/Dockerfile", ".github/workflows/release.yml")
# Replacement of the programs that are not run: it records its arguments. `make wheel release` also leaves what it would build.
RECORDER = """#!/bin/sh
printf '%s' "$(basename "$0")" >>"$RECORD"; printf '\\037%s' "$@" >>"$RECORD"; printf '\\036' >>"$RECORD"
case "$(basename "$0") $1" in
    "make wheel") mkdir -p dist; cd dist
        for file in journeyman-$VERSION-x86_64-unknown-linux-gnu.tar.gz journeyman-$VERSION-py3-none-manylinux_2_36_x86_64.whl journeyman-$VERSION.cdx.json; do
            echo "$file" >"$file"
        done
        sha256sum -- * >SHA256SUMS ;;
    "git rev-parse") echo 0123456789012345678901234567890123456789 ;;
    "helm package") for last in "$@"; do :; done; echo chart >"$last/journeyman-$VERSION.tgz" ;;
esac
"""
RECORDED = ("docker", "helm", "gh", "git", "make", "apt-get", "pipx", "uv")


def read_version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def find_notes(wanted):
    """The section of a version in the changelog, without its heading."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## (?:Unreleased: )?\[?{re.escape(wanted)}\]?.*?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def version_problems(tag):
    wanted = read_version()
    for path, pattern in NAMED.items():
        found = re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE)
        if not found:
            yield f"{path} names no version"
        for other in sorted(set(found) - {wanted}):
            yield f"{path} names {other}, and Cargo.toml {wanted}"
    compilers = {path: sorted(set(re.findall(r"rust:[\w.-]+", (ROOT / path).read_text()))) for path in COMPILERS}
    leading = compilers[COMPILERS[0]]
    if len(leading) != 1:
        yield f"{COMPILERS[0]} must name one image with the compiler: {leading}"
    for path in COMPILERS[1:]:
        if compilers[path] != leading:
            yield f"{path} names {' and '.join(compilers[path]) or 'no image with the compiler'}; edit it to {' or '.join(leading)}"
    if not find_notes(wanted):
        yield f"CHANGELOG.md has no section for {wanted}"
    if tag and tag != f"v{wanted}":
        yield f"the tag is {tag}, and the version {wanted}"
    if tag and f"## Unreleased: {wanted}" in (ROOT / "CHANGELOG.md").read_text():
        yield f"CHANGELOG.md calls {wanted} unreleased"


def expand_expressions(text, contexts):
    def value(found):
        name = found[1].strip()
        if name not in contexts:
            raise SystemExit(f"release-check: the dry run does not know {name}")
        return contexts[name]
    return re.sub(r"\$\{\{(.*?)\}\}", value, str(text))


def play_workflow(workflow, folder):
    """Runs the steps of every job in the order of its needs. Returns the calls of the recorded programs, and the number of steps."""
    tree, programs, record = folder / "tree", folder / "programs", folder / "record"
    for part in ("scripts", "charts", "packaging"):
        shutil.copytree(ROOT / part, tree / part)
    for part in ("Cargo.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / part, tree)
    programs.mkdir()
    for path in [programs / name for name in RECORDED] + [tree / ".ci/run", tree / "scripts/release-check.sh"]:
        path.parent.mkdir(exist_ok=True)
        path.write_text(RECORDER)
        path.chmod(0o755)
    tag = f"v{read_version()}"
    contexts = {"github.ref_name": tag, "github.repository_owner": "Acme", "github.token": "token", "github.actor": "ada"}
    shared = {name: expand_expressions(value, contexts) for name, value in workflow["env"].items()}
    base = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "RECORD": str(record), "VERSION": read_version(),
            "GITHUB_WORKSPACE": str(tree), "GITHUB_REPOSITORY": "Acme/journeyman", "GITHUB_SERVER_URL": "https://github.com"}
    kept = folder / "artifact"
    waiting, done, steps = dict(workflow["jobs"]), set(), 0
    while waiting:
        ready = [name for name, job in waiting.items() if set(as_list(job.get("needs"))) <= done]
        if not ready:
            raise SystemExit(f"release-check: the jobs {sorted(waiting)} need each other")
        name = ready[0]
        job = waiting.pop(name)
        # Each job is a new machine.
        shutil.rmtree(tree / "dist", ignore_errors=True)
        for step in job["steps"]:
            steps += 1
            action = step.get("uses", "").split("@")[0]
            if action == "actions/upload-artifact":
                shutil.copytree(tree / expand_expressions(step["with"]["path"], contexts), kept)
            elif action == "actions/download-artifact":
                shutil.copytree(kept, tree / expand_expressions(step["with"]["path"], contexts))
            elif "run" in step:
                own = {key: expand_expressions(value, contexts) for key, value in step.get("env", {}).items()}
                command = ["bash", "-eo", "pipefail", "-c", expand_expressions(step["run"], contexts)]
                ran = subprocess.run(command, cwd=tree, env=base | shared | own, capture_output=True, text=True)
                if ran.returncode:
                    raise SystemExit(f"release-check: {name}: {step['run'].strip()}\n{ran.stdout}{ran.stderr}")
        done.add(name)
    calls = [call.split("\x1f") for call in record.read_text().split("\x1e") if call]
    return calls, steps


def as_list(value):
    return value if isinstance(value, list) else [value] if value else []


def outcome_problems(workflow, calls):
    """Problems of a release by the calls that its steps made."""
    tag, registry = f"v{read_version()}", "ghcr.io/acme"
    pushed = [call for call in calls if call[0] == "docker" and "--push" in call]
    wanted = [f"{registry}/journeyman/{name}:{read_version()}" for name in IMAGES]
    if [call[call.index("--tag") + 1] for call in pushed] != wanted:
        yield f"these images are pushed: {pushed}"
    for call in pushed:
        if "--provenance=mode=max" not in call or "--sbom=true" not in call:
            yield f"an image has no provenance or no bill of materials: {call}"
    if not any(call[:2] == ["helm", "push"] and call[-1] == f"oci://{registry}/charts" for call in calls):
        yield "the chart is not pushed"
    pages = [call for call in calls if call[:3] == ["gh", "release", "create"]]
    files = " ".join(pages[0]) if len(pages) == 1 and pages[0][3] == tag else ""
    for part in (".tar.gz", ".whl", ".cdx.json", "SHA256SUMS"):
        if part not in files:
            yield f"the release page has no {part}"
    if not any(call[:2] == ["uv", "publish"] and call[-1].endswith(".whl") for call in calls):
        yield "the wheel is not published"
    attested = [step["with"]["subject-path"] for step in workflow["jobs"]["programs"]["steps"]
                if step.get("uses", "").startswith("actions/attest-build-provenance@")]
    if attested != ["dist/*"]:
        yield f"there is provenance for {attested} in place of dist/*"
    writers = sorted(name for name, job in workflow["jobs"].items() if job.get("permissions", {}).get("contents") == "write")
    if writers != ["publish"]:
        yield f"these jobs may write contents: {writers}"


def check_release(tag):
    import yaml
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    problems = list(version_problems(tag))
    with tempfile.TemporaryDirectory() as folder:
        calls, steps = play_workflow(workflow, Path(folder))
    problems.extend(outcome_problems(workflow, calls))
    for problem in problems:
        print(f"release-check: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"release-check ok steps={steps}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["notes", wanted]:
            print(find_notes(wanted) or sys.exit(f"CHANGELOG.md has no section for {wanted}"))
        case ["check", *tag]:
            check_release("".join(tag))
        case _:
            sys.exit(__doc__)
