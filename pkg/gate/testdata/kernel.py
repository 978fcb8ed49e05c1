# SPDX-License-Identifier: Apache-2.0
#
# Runs the cells of a JSON list, from stdin, in an ipykernel, and prints what each of them showed: stdout, stderr,
# the forms of its displays and its result, and its error.
import json
import os
import sys
import tempfile

from jupyter_client import KernelManager


def run(client, code):
    shown = {"stdout": "", "stderr": "", "displays": [], "error": None}
    ids, clear = {}, False
    request = client.execute(code, allow_stdin=False, stop_on_error=False)
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] == "idle":
            break
        if clear and kind in ("display_data", "stream", "execute_result"):
            shown["displays"], ids, clear = [], {}, False
        if kind == "stream":
            shown[content["name"]] += content["text"]
        elif kind in ("display_data", "execute_result"):
            name = content.get("transient", {}).get("display_id")
            ids[name] = len(shown["displays"])
            shown["displays"].append(content["data"])
        elif kind == "update_display_data":
            shown["displays"][ids[content["transient"]["display_id"]]] = content["data"]
        elif kind == "clear_output":
            clear = True
    reply = client.get_shell_msg(timeout=60)
    while reply["parent_header"].get("msg_id") != request:
        reply = client.get_shell_msg(timeout=60)
    reply = reply["content"]
    if reply["status"] == "error":
        shown["error"] = [reply["ename"], reply["evalue"]]
    return shown


cells = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as home:
    os.environ.update(HOME=home, IPYTHONDIR=home, JUPYTER_RUNTIME_DIR=home, PYDEVD_DISABLE_FILE_VALIDATION="1")
    os.makedirs(home + "/work")
    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    nowhere = open(os.devnull, "w")  # what children write there is not a cell's output
    manager.start_kernel(cwd=home + "/work", stdout=nowhere, stderr=nowhere)
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    try:
        json.dump([run(client, cell) for cell in cells], sys.stdout)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
