#!/usr/bin/env python3
"""Prints a bill of materials in CycloneDX 1.5 for the programs: every package of Cargo.lock with version and checksum. Needs no network."""

import json
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def component(package):
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    known = {"type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl}
    if "checksum" in package:
        known["hashes"] = [{"alg": "SHA-256", "content": package["checksum"]}]
    return known


def main():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    packages = sorted(lock["package"], key=lambda package: (package["name"], package["version"]))
    json.dump({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "journeyman", "version": version}},
        "components": [component(package) for package in packages if "source" in package],
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
