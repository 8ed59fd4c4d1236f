#!/usr/bin/env python3
"""Asks the OSV database (which has all RustSec advisories) about every crate of Cargo.lock. Prints one line for each advisory and ends with
`advisories ok crates=N`, or with status 1 when a crate has a vulnerability that deny.toml does not ignore. Without a database it prints
`advisories: not run: …` and ends well, unless JOURNEYMAN_ADVISORIES=required. Needs no other package.

    scripts/advisories.py [--self-test]
"""
import json
import os
import sys
import threading
import tomllib
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATABASE = os.environ.get("JOURNEYMAN_ADVISORIES_URL", "https://api.osv.dev")
# What the database takes in one request.
BATCH = 1000
TIMEOUT_S = 20


class NotReachable(Exception):
    """No database answered as one does."""


def ask(url: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except (OSError, ValueError) as error:
        raise NotReachable(f"{url}: {error}") from error


def read_crates(lockfile: str) -> list[dict]:
    """The crates that come from a registry; our own have no source."""
    return [package for package in tomllib.loads(lockfile)["package"] if package.get("source", "").startswith("registry+")]


def find_advisories(database: str, crates: list[dict]) -> dict[str, set[str]]:
    """The crates that each advisory is about."""
    found: dict[str, set[str]] = {}
    for start in range(0, len(crates), BATCH):
        part = crates[start : start + BATCH]
        queries = [{"package": {"name": crate["name"], "ecosystem": "crates.io"}, "version": crate["version"]} for crate in part]
        results = ask(f"{database}/v1/querybatch", {"queries": queries}).get("results")
        if not isinstance(results, list) or len(results) != len(part):
            raise NotReachable(f"{database}: an answer without a result for each crate")
        for crate, result in zip(part, results):
            for advisory in result.get("vulns", []):
                found.setdefault(advisory["id"], set()).add(f"{crate['name']} {crate['version']}")
    return found


def read_kind(details: dict) -> str:
    """`unmaintained`, `unsound` or `notice` for what RustSec only informs of, else `vulnerability`."""
    kinds = [affected.get("database_specific", {}).get("informational") for affected in details.get("affected", [])]
    return next((kind for kind in kinds if kind), "vulnerability")


def check(database: str, lockfile: str, ignored: set[str]) -> int:
    crates = read_crates(lockfile)
    failed, seen = False, set()
    for advisory, of in sorted(find_advisories(database, crates).items(), key=lambda pair: (not pair[0].startswith("RUSTSEC"), pair[0])):
        details = ask(f"{database}/v1/vulns/{advisory}")
        names = {advisory, *details.get("aliases", [])}
        # One flaw has an entry of RustSec and one of GitHub.
        if details.get("withdrawn") or names & seen:
            continue
        seen |= names
        kind = "ignored by deny.toml" if names & ignored else read_kind(details)
        print(f"advisories: {advisory} ({kind}) {', '.join(sorted(of))}: {details.get('summary', '')}")
        failed |= kind == "vulnerability"
    print("advisories: at least one crate has a vulnerability" if failed else f"advisories ok crates={len(crates)}")
    return 1 if failed else 0


def test_itself() -> None:
    """Plays the database on loopback."""
    details = {
        "RUSTSEC-1": {"summary": "reads too far", "aliases": ["GHSA-1"], "affected": [{"database_specific": {}}]},
        "GHSA-1": {"summary": "reads too far", "aliases": ["RUSTSEC-1"]},
        "RUSTSEC-2": {"summary": "nobody maintains it", "affected": [{"database_specific": {"informational": "unmaintained"}}]},
        "RUSTSEC-3": {"summary": "taken back", "withdrawn": "2026-01-01T00:00:00Z"},
    }
    asked = []

    class Database(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            queries = json.loads(self.rfile.read(int(self.headers["content-length"])))["queries"]
            asked.extend(query["package"]["name"] for query in queries)
            known = {"bad": ["GHSA-1", "RUSTSEC-1"], "old": ["RUSTSEC-2", "RUSTSEC-3"]}
            self.reply({"results": [{"vulns": [{"id": name} for name in known[query["package"]["name"]]]} if query["package"]["name"] in known else {} for query in queries]})

        def do_GET(self) -> None:
            self.reply(details[self.path.rsplit("/", 1)[1]])

        def reply(self, body: dict) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Database)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    database = f"http://127.0.0.1:{server.server_port}"

    def lock(*names: str) -> str:
        crate = '[[package]]\nname = "{}"\nversion = "1.0.0"\nsource = "registry+https://example"\n'
        return '[[package]]\nname = "ours"\nversion = "0.1.0"\n' + "".join(crate.format(name) for name in names)

    assert check(database, lock("good"), set()) == 0
    assert check(database, lock("good", "old"), set()) == 0, "an informational advisory fails nothing"
    assert check(database, lock("bad"), set()) == 1
    assert check(database, lock("bad"), {"RUSTSEC-1"}) == 0
    assert check(database, lock(*["good"] * 1500, "bad"), set()) == 1, "the second batch"
    assert "ours" not in asked
    server.shutdown()
    server.server_close()
    try:
        check(database, lock("good"), set())
    except NotReachable:
        return
    raise AssertionError("the database does not listen any more")


def main() -> int:
    if "--self-test" in sys.argv[1:]:
        test_itself()
        print("advisories self-test ok")
        return 0
    deny = tomllib.loads((ROOT / "deny.toml").read_text())
    entries = deny["advisories"].get("ignore", [])
    ignored = {entry if isinstance(entry, str) else entry["id"] for entry in entries}
    try:
        return check(DATABASE, (ROOT / "Cargo.lock").read_text(), ignored)
    except NotReachable as error:
        print(f"advisories: not run: database not reachable ({error})")
        return 1 if os.environ.get("JOURNEYMAN_ADVISORIES") == "required" else 0


if __name__ == "__main__":
    sys.exit(main())
