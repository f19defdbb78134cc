"""The TensorZero gateway for a benchmark: a compiled gateway (Rust). It stores nothing here, since its observability
needs ClickHouse; so it shows what translating and passing on a request costs a compiled program.

Its package starts an HTTP server inside a Python process, which only waits."""

import re
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic

from other_gateway import OtherGateway
from processes import BenchError, Server, clean_environment, server_start

TENSORZERO = OtherGateway(name="TensorZero", package="tensorzero", tested="2026.6.0", with_packages=("openai",))
MODEL = "tensorzero::model_name::scripted"
READY_SECONDS = 30.0
_PROGRAM = """
import sys, threading
from openai import OpenAI
from tensorzero import patch_openai_client
client = patch_openai_client(OpenAI(api_key="x"), config_file=sys.argv[1], async_setup=False)
print("listening at", client.base_url, flush=True)
threading.Event().wait()
"""
_CONFIG = """
[gateway]
observability.enabled = false

[models.scripted]
routing = ["upstream"]

[models.scripted.providers.upstream]
type = "openai"
model_name = "scripted-tensorzero"
api_base = "{url}/v1/"
api_key_location = "none"
"""


def tensorzero_start(stack: ExitStack, upstream: Server) -> Server:
    """Start the gateway with one model routed to `upstream` and wait until it is ready. The stack stops it."""
    TENSORZERO.require()
    home = Path(tempfile.mkdtemp(prefix="tensorzero-bench-"))
    stack.callback(shutil.rmtree, home, ignore_errors=True)
    (home / "tensorzero.toml").write_text(_CONFIG.format(url=upstream.url))
    command = [str(TENSORZERO.folder / "python"), "-c", _PROGRAM, str(home / "tensorzero.toml")]
    log = home / "gateway.log"
    server = server_start(stack, TENSORZERO.name, command, port=0, log=log, env=clean_environment(), cwd=home)
    deadline = monotonic() + READY_SECONDS
    while not (found := re.search(r"listening at (http://\S+)/v1", log.read_text())):
        if server.process.poll() is not None or monotonic() > deadline:
            raise BenchError(f"TensorZero did not start: {server.last_words()}")
        Event().wait(0.1)
    return replace(server, url=found.group(1))
