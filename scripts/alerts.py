#!/usr/bin/env python3
"""Checks the alerts with promtool: the rules of the PrometheusRule, the cases of tests/*.yaml, and that each alert has a case that fires it
and a heading in docs/runbook.md. Prints `alerts ok rules=N`. Needs promtool (Debian: package prometheus) and PyYAML."""

import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
MONITORING = ROOT / "k8s/components/monitoring"


def main():
    groups = yaml.safe_load((MONITORING / "rules.yaml").read_text())["spec"]
    alerts = {rule["alert"] for group in groups["groups"] for rule in group["rules"]}
    headings = {line[3:].strip() for line in (ROOT / "docs/runbook.md").read_text().splitlines() if line.startswith("## ")}
    fired = set()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rules.yaml").write_text(yaml.safe_dump(groups))
        subprocess.run(["promtool", "check", "rules", "rules.yaml"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        annotations = {rule["alert"]: rule["annotations"] for group in groups["groups"] for rule in group["rules"]}
        for case in sorted((MONITORING / "tests").glob("*.yaml")):
            tests = yaml.safe_load(case.read_text())
            for test in tests["tests"]:
                for asked in test["alert_rule_test"]:
                    fired |= {asked["alertname"]} if asked["exp_alerts"] else set()
            for group in groups["groups"]:
                for rule in group["rules"]:
                    rule.pop("annotations", None)
            # The texts are for people; the cases are about when.
            (Path(folder) / "rules.yaml").write_text(yaml.safe_dump(groups))
            (Path(folder) / case.name).write_text(case.read_text())
            subprocess.run(["promtool", "test", "rules", case.name], cwd=folder, check=True)
    for name, what in [("no case fires", alerts - fired), ("no heading in docs/runbook.md for", alerts - headings)]:
        if what:
            sys.exit(f"alerts: {name} {', '.join(sorted(what))}")
    wrong = [name for name, texts in annotations.items() if not texts["runbook_url"].endswith("#" + name.lower())]
    if wrong:
        sys.exit(f"alerts: runbook_url of {', '.join(wrong)} names another heading")
    print(f"alerts ok rules={len(alerts)}")


if __name__ == "__main__":
    main()
