"""The LiteLLM proxy for a benchmark: one worker, no database, no telemetry."""

import json
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from other_gateway import OtherGateway
from processes import Server, clean_environment, free_port, server_start, server_wait

LITELLM = OtherGateway(name="LiteLLM", package="litellm[proxy]", tested="1.106.2")
MODEL = "scripted-litellm"
READY_SECONDS = 90.0


def litellm_start(stack: ExitStack, upstream: Server, *, key: str) -> Server:
    """Start the proxy with one model routed to `upstream` and wait until it is ready.

    `key` is its master key, without which it refuses to start. The stack stops it. The configuration favours it: no
    verbose log, no access log, nothing fetched from the network.
    """
    LITELLM.require()
    home = Path(tempfile.mkdtemp(prefix="litellm-bench-"))
    stack.callback(shutil.rmtree, home, ignore_errors=True)
    route = {"model": f"openai/{MODEL}", "api_base": upstream.url + "/v1", "api_key": "x"}
    config = {
        "model_list": [{"model_name": MODEL, "litellm_params": route}],
        "litellm_settings": {"telemetry": False, "set_verbose": False},
        "general_settings": {"master_key": key},
    }
    (home / "config.yaml").write_text(json.dumps(config))
    env = clean_environment(
        LITELLM_MODE="PRODUCTION",
        LITELLM_LOG="ERROR",
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS="True",
        LITELLM_LOCAL_AUTOROUTER_PRESETS="True",
        LITELLM_LOCAL_BLOG_POSTS="True",
        LITELLM_LOCAL_POLICY_TEMPLATES="True",
        LITELLM_DISABLE_ACCESS_LOG_PATHS="/v1/chat/completions",
    )
    port = free_port()
    command = [str(LITELLM.folder / "litellm"), "--config", str(home / "config.yaml"), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--num_workers", "1", "--telemetry", "False"]
    server = server_start(stack, "LiteLLM", command, port=port, log=home / "proxy.log", env=env, cwd=home)
    server_wait(server, "/health/readiness", seconds=READY_SECONDS)
    return server
