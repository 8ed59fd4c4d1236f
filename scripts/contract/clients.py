"""Starts the stand-ins and lets clients of others drive them: PyGithub, octokit, jira and jira.js."""

import json
import os
import subprocess
import sys

import jira_client
import pygithub_client

HERE = os.path.dirname(os.path.abspath(__file__))


def run_node(script, begin):
    subprocess.run(["node", os.path.join(HERE, script)], input=json.dumps(begin), text=True, check=True)


def main(standins):
    server = subprocess.Popen([standins], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        begin = json.loads(server.stdout.readline())
        pygithub_client.drive(begin["github"])
        run_node("octokit_client.mjs", begin["github"])
        jira_client.drive(begin["jira"])
        run_node("jirajs_client.mjs", begin["jira"])
    finally:
        server.stdin.close()
        status = server.wait()
    sys.exit(status)


main(sys.argv[1])
