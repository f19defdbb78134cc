"""The LiteLLM proxy for a benchmark: its own virtual environment, one worker, no database, no telemetry.

It is installed with pip in `.bench/`, which git ignores, and is never a dependency of the product.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from processes import REPO, BenchError, Server, clean_environment, free_port, server_start, server_wait

VENV = REPO / ".bench" / "litellm-venv"
VERSION = "1.106.2"
MODEL = "scripted-litellm"
READY_SECONDS = 90.0


def litellm_version() -> str:
    """Return the installed version, or "" if the installation is missing or incomplete."""
    python = VENV / "bin" / "python"
    if not (VENV / "bin" / "litellm").exists() or not python.exists():
        return ""
    code = "import importlib.metadata as m; print(m.version('litellm'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def litellm_install() -> str:
    """Install the proxy into its own environment (minutes, about 750 MB) and return the version.

    Install VERSION if the package index has it, else the newest. Raises BenchError if neither can be installed.
    """
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for package in (f"litellm[proxy]=={VERSION}", "litellm[proxy]"):
        if subprocess.run([*pip, package], check=False).returncode == 0:
            return litellm_version()
    raise BenchError("pip cannot install LiteLLM; see its output above")


def litellm_start(stack: ExitStack, upstream: Server, *, key: str) -> Server:
    """Start the proxy with one model routed to `upstream` and wait until it is ready.

    `key` is its master key, without which it refuses to start. The stack stops it. The configuration favours it: no
    verbose log, no access log, nothing fetched from the network.
    """
    if not litellm_version():
        print("installing LiteLLM for this benchmark (once) …", file=sys.stderr)
        litellm_install()
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
    command = [str(VENV / "bin" / "litellm"), "--config", str(home / "config.yaml"), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--num_workers", "1", "--telemetry", "False"]
    server = server_start(stack, "LiteLLM", command, port=port, log=home / "proxy.log", env=env, cwd=home)
    server_wait(server, "/health/readiness", seconds=READY_SECONDS)
    return server
