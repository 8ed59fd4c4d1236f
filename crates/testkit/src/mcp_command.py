"""MCP server over standard input and output, as strict as the specification.

The first argument names its behavior: `good`, or one that does not follow the protocol. Violations of the
client end the server with exit code 9 and a line on standard error.
"""

import json
import os
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
READING = {"readOnlyHint": True}
TOOLS = [
    {"name": "check", "description": "Checks a text.", "inputSchema": SCHEMA, "annotations": READING},
    {"name": "place", "inputSchema": SCHEMA, "annotations": READING},
    {"name": "write", "inputSchema": SCHEMA},
    {"name": "fail", "inputSchema": SCHEMA},
    {"name": "refuse", "inputSchema": SCHEMA},
    {"name": "crash_once", "inputSchema": SCHEMA},
    {"name": "fork", "inputSchema": SCHEMA},
    {"name": "silent", "inputSchema": SCHEMA},
]


def refuse_client(problem):
    print("violation of the client: " + problem, file=sys.stderr, flush=True)
    sys.exit(9)


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    if message.get("jsonrpc") != "2.0":
        refuse_client("no JSON-RPC 2.0: " + line)
    return message


def read_request(*methods):
    message = read()
    if message.get("method") not in methods:
        refuse_client("%s instead of %s" % (message, methods))
    if "id" not in message or message["id"] is None:
        refuse_client("a request without id")
    return message


def ask_client():
    """Sends requests and notifications, which the client must answer in order."""
    send({"method": "notifications/message", "params": {"level": "info", "data": "Hello."}})
    send({"id": "a", "method": "ping"})
    answer = read()
    if answer.get("id") != "a" or answer.get("result") != {}:
        refuse_client("a ping was answered with %s" % answer)
    for method in ("sampling/createMessage", "elicitation/create", "roots/list"):
        send({"id": 7, "method": method, "params": {}})
        answer = read()
        if answer.get("id") != 7 or answer.get("error", {}).get("code") != -32601:
            refuse_client("%s was answered with %s" % (method, answer))


def shake_hands():
    request = read_request("initialize")
    params = request["params"]
    if params["protocolVersion"] != "2025-11-25" or params["capabilities"] != {} or not params["clientInfo"]["name"]:
        refuse_client("wrong parameters of initialize: %s" % params)
    version = "1999-01-01" if MODE == "old" else "2025-06-18"
    send(
        {
            "id": request["id"],
            "result": {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stand-in", "version": "1.2"},
            },
        }
    )
    message = read()
    if message != {"jsonrpc": "2.0", "method": "notifications/initialized"}:
        refuse_client("%s instead of notifications/initialized" % message)


def answer_text(request, text, is_error=False):
    send({"id": request["id"], "result": {"content": [{"type": "text", "text": text}], "isError": is_error}})


def list_page(request):
    # An empty cursor means the first page.
    start = int(request["params"].get("cursor") or "0")
    result = {"tools": TOOLS[start : start + 3]}
    if start + 3 < len(TOOLS):
        result["nextCursor"] = str(start + 3)
    elif MODE == "empty_cursor":
        result["nextCursor"] = ""
    elif MODE == "same_cursor":
        result["nextCursor"] = str(start)
    send({"id": request["id"], "result": result})


def call_tool(request):
    name, arguments = request["params"]["name"], request["params"]["arguments"]
    text = arguments.get("text", "")
    if name == "check":
        ask_client()
        answer_text(request, "checked " + text)
    elif name == "place":
        answer_text(request, json.dumps({"folder": os.getcwd(), "mode": os.environ.get("MODE")}))
    elif name == "write":
        with open("notes.txt", "a") as notes:
            notes.write(text + "\n")
        answer_text(request, "written")
    elif name == "fail":
        answer_text(request, "it failed", is_error=True)
    elif name == "refuse":
        error = {"code": -32603, "message": "disk is full"} if text else {"code": -32602, "message": "text is missing"}
        send({"id": request["id"], "error": error})
    elif name == "crash_once":
        if not os.path.exists("crashed.txt"):
            open("crashed.txt", "w").close()
            print("out of luck", file=sys.stderr, flush=True)
            sys.exit(3)
        answer_text(request, "alive")
    elif name == "fork":
        # The child keeps the server's output open.
        sleep = "import time; time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", sleep, text], start_new_session=True)
        answer_text(request, "forked")
    elif name == "silent":
        while True:
            time.sleep(600)
    else:
        refuse_client("no tool " + name)


def misbehave(request):
    if MODE == "endless":
        while True:
            sys.stdout.write("x" * 65536)
            sys.stdout.flush()
    elif MODE == "wrong_id":
        send({"id": request["id"] + 1, "result": {"content": []}})
    elif MODE == "banner":
        print("Welcome to the server!", flush=True)
    elif MODE == "chatter":
        while True:
            send({"method": "notifications/progress", "params": {}})
    elif MODE == "stderr":
        for _ in range(200):
            sys.stderr.write("noise " * 2000 + "\n")
        answer_text(request, "quiet now")
    else:
        return False
    return True


if MODE == "exit":
    print("no license found", file=sys.stderr, flush=True)
    sys.exit(7)
shake_hands()
while True:
    asked = read_request("tools/list", "tools/call")
    if not misbehave(asked):
        (list_page if asked["method"] == "tools/list" else call_tool)(asked)
