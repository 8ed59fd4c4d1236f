#!/usr/bin/env python3
"""Plays the bench's 20 tickets of 50 turns with Journeyman and then with mini-swe-agent, on this machine in the same hour and with the same
scripted model. Prints `peer NAME VALUE UNIT` lines, the last ones with the ratios; `make peers` builds the scenarios and runs it. Installs
mini-swe-agent from PyPI into an environment of its own below .tools. Without PyPI it prints `peers: not run: …` and ends well.

    scripts/peers/mini_swe_agent.py SCENARIOS [--tickets 20]
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VERSION = "2.4.6"
ENVIRONMENT = ROOT / ".tools/peers/mini-swe-agent"
INSTALL_S = 900
TICKET_S = 900
END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
SHOP = ROOT / "crates/testkit/data/shop"
# One agent, as its users start it: with the prompts of its own command. The limits of cost do not apply to a scripted model.
AGENT = """
import sys, pathlib, yaml
import minisweagent
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

folder, url, key = sys.argv[1:]
config = yaml.safe_load((pathlib.Path(minisweagent.__file__).parent / "config/mini.yaml").read_text())
agent = {name: config["agent"][name] for name in ("system_template", "instance_template")}
model = dict(config["model"], model_name="openai/scripted", cost_tracking="ignore_errors")
model["model_kwargs"] = dict(model.get("model_kwargs", {}), api_base=url, api_key=key)
environment = LocalEnvironment(cwd=folder, env=config["environment"]["env"])
end = DefaultAgent(LitellmModel(**model), environment, **agent, cost_limit=0.0).run("Cart total ignores the quantity")
if end.get("exit_status") != "Submitted":
    sys.exit(f"the agent ended with {end}")
"""


class NotRun(Exception):
    """The peer cannot be installed here."""


def show(name: str, value: float, unit: str) -> None:
    print(f"peer {name} {value:.3g} {unit}" if value < 1000 else f"peer {name} {value:.0f} {unit}", flush=True)


def find_python() -> str:
    """The system's Python, as the bench uses it: a version manager's shim would cost the peer time that is not its own."""
    for candidate in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.access(candidate, os.X_OK) and Path(candidate).read_bytes()[:2] != b"#!":
            return candidate
    return sys.executable


def install() -> Path:
    python = ENVIRONMENT / "venv/bin/python"
    stamp = ENVIRONMENT / f"installed-{VERSION}"
    if stamp.exists():
        return python
    ENVIRONMENT.mkdir(parents=True, exist_ok=True)
    print(f"# installing mini-swe-agent {VERSION} below {ENVIRONMENT.relative_to(ROOT)}", flush=True)
    steps = [
        [find_python(), "-m", "venv", "--clear", str(ENVIRONMENT / "venv")],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"mini-swe-agent=={VERSION}"],
    ]
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=INSTALL_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotRun(f"mini-swe-agent cannot be installed from PyPI: {error}") from error
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise NotRun(f"mini-swe-agent cannot be installed from PyPI: {last}")
    stamp.touch()
    return python


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.example", *arguments], cwd=folder, check=True, capture_output=True)


def make_forge(folder: Path) -> Path:
    """A bare repository with the files of the bench's project."""
    source, forge = folder / "source", folder / "forge.git"
    for path in SHOP.rglob("*"):
        if path.is_file():
            name = path.relative_to(SHOP)
            target = source / (".gitignore" if str(name) == "gitignore" else name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    git(source, "init", "--quiet", "--initial-branch", "main")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message", "The shop")
    git(folder, "clone", "--quiet", "--bare", "source", "forge.git")
    return forge


def play_ticket(python: Path, forge: Path, folder: Path, number: int, model: dict) -> subprocess.Popen:
    """Starts an agent on a clone of its own, as a user starts one for each ticket."""
    checkout = folder / f"ticket-{number}"
    clone = f"git clone --quiet --shared {forge} {checkout} && cd {checkout} && git switch --quiet --create fix/{number}"
    environment = os.environ | {
        "HOME": str(folder), "MSWEA_SILENT_STARTUP": "1", "MSWEA_CONFIGURED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.example", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.example",
        "NO_PROXY": "127.0.0.1",
    }
    run = [str(python), "-c", AGENT, str(checkout), model["url"], model["key"]]
    log = (folder / f"ticket-{number}.log").open("wb")
    with log:
        return subprocess.Popen(["sh", "-c", f'{clone} && exec "$@"', "sh", *run], env=environment, stdout=log, stderr=log)


def play_tickets(python: Path, scenarios: str, tickets: int) -> tuple[float, float]:
    """Returns wall and CPU seconds of all agents, without the model's process."""
    serve = [scenarios, "peer-model", "--tool", "bash", "--end", END]
    with tempfile.TemporaryDirectory() as temporary, subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        folder = Path(temporary)
        try:
            model = json.loads(server.stdout.readline())
            forge = make_forge(folder)
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            agents = [play_ticket(python, forge, folder, number, model) for number in range(tickets)]
            for number, agent in enumerate(agents):
                if agent.wait(timeout=TICKET_S) != 0:
                    sys.exit(f"peers: ticket {number} failed:\n{(folder / f'ticket-{number}.log').read_text()[-2000:]}")
            wall = time.monotonic() - start
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            pushed = subprocess.run(["git", "branch", "--list", "fix/*"], cwd=forge, capture_output=True, text=True, check=True).stdout
            if len(pushed.splitlines()) != tickets:
                sys.exit(f"peers: {len(pushed.splitlines())} of {tickets} changes were pushed")
        finally:
            for agent in locals().get("agents", []):
                if agent.poll() is None:
                    agent.kill()
            server.stdin.close()
        if server.wait(timeout=30) != 0:
            sys.exit(f"peers: the model refused a request: {server.stdout.read().strip()}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def play_journeyman(scenarios: str) -> dict[str, float]:
    """The figures of the bench's part with many tickets."""
    done = subprocess.run([scenarios, "bench", "tickets"], capture_output=True, text=True, timeout=1800)
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        sys.exit(f"peers: the bench failed\n{done.stderr[-2000:]}")
    lines = (line.split() for line in done.stdout.splitlines() if line.startswith("bench "))
    return {name: float(value) for _, name, value, _ in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", help="built program with the scenarios")
    parser.add_argument("--tickets", type=int, default=20, help="tickets at once; the ratios need 20, as in the bench")
    arguments = parser.parse_args()
    try:
        python = install()
    except NotRun as reason:
        print(f"peers: not run: {reason}")
        return
    scenarios = str(Path(arguments.scenarios).resolve())
    if arguments.tickets != 20:
        wall, cpu = play_tickets(python, scenarios, arguments.tickets)
        show(f"mini_swe_agent_{arguments.tickets}x50_wall", wall, "s")
        show(f"mini_swe_agent_{arguments.tickets}x50_cpu", cpu, "s")
        return
    figures = play_journeyman(scenarios)
    wall, cpu = play_tickets(python, scenarios, arguments.tickets)
    show("mini_swe_agent_20x50_wall", wall, "s")
    show("mini_swe_agent_20x50_cpu", cpu, "s")
    for name in ("tickets_20x50_without_checks", "tickets_20x50"):
        show(f"ratio_{name}_wall", wall / figures[f"{name}_wall"], "times")
        own = figures[f"{name}_cpu_services"] + figures[f"{name}_cpu_nats_redis"]
        show(f"ratio_{name}_cpu", cpu / own, "times")


if __name__ == "__main__":
    main()
