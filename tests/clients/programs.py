"""The clients that are tested with Daybook: what is installed for each, and how to have a conversation with it.

A library has a driver in drivers/ that has whole conversations. A command line program is started once per turn, or
gets its input line by line. The settings and command lines are those of docs/clients.md."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clients import obedient_model

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / ".clients"
DRIVERS = Path(__file__).parent / "drivers"
COLUMNS = ("remembered", "streamed", "tools", "loop", "regenerated", "forked")
TURN_SECONDS = 120
_DOCUMENTED = re.compile(r"<!-- tried: (\S+) -->\n+```\w*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn of a conversation. `after` is the number of earlier turns that it follows (None: all)."""

    text: str
    stream: bool = False
    tools: bool = False
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Daybook's address and key for a client, and an empty folder."""

    address: str  # without a trailing slash
    key: str
    folder: Path

    def environment(self, **more: str) -> dict[str, str]:
        """Return a program's environment: its own home, and nothing personal of the user who runs the tests."""
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "SSL_CERT_FILE") if name in os.environ}
        home = str(self.folder)
        return inherited | {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "CI": "true"} | more

    def documented(self, name: str) -> str:
        """Return a block of docs/clients.md with this address and key."""
        blocks: dict[str, str] = dict(_DOCUMENTED.findall((ROOT / "docs/clients.md").read_text()))
        return blocks[name].replace("http://127.0.0.1:8000", self.address).replace("dbk_…", self.key)

    def documented_environment(self, name: str, **more: str) -> dict[str, str]:
        """Return the environment with the variables that a block of docs/clients.md exports."""
        found = re.findall(r"\b([A-Z][A-Z_]+)=(\S+)", self.documented(name))
        return self.environment(**{**dict(found), **more})


Talk = Callable[[Workspace, Path, Sequence[Turn]], list[str]]
"""Have a conversation using the packages installed in a folder; return the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client, its packages on PyPI or npm (none: those of the contributor's environment), and the columns of the
    table that it can be tested for."""

    name: str
    talk: Talk
    api: str
    pypi: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    columns: tuple[str, ...] = COLUMNS

    @property
    def folder(self) -> Path:
        """The folder it is installed in; clients with the same packages share a folder."""
        return INSTALLED / re.sub(r"\W+", "-", "".join((*self.pypi, *self.npm)[:1])).strip("-")

    @property
    def version(self) -> str:
        """The tested version, or "" for that of the contributor's environment."""
        return next((package.rpartition("==")[2] or package.rpartition("@")[2] for package in self.pypi), "") or next(
            (package.rpartition("@")[2] for package in self.npm), ""
        )


def install(client: Client) -> str:
    """Install a client if necessary. Return why that is impossible, or ""."""
    return install_packages(client.folder, pypi=client.pypi, npm=client.npm)


def install_packages(folder: Path, *, pypi: Sequence[str] = (), npm: Sequence[str] = ()) -> str:
    """Install packages from PyPI and npm in a separate folder. Return why that is impossible, or ""."""
    done = folder / ".installed"
    wanted = json.dumps([pypi, npm])
    if not (pypi or npm) or (done.exists() and done.read_text() == wanted):
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    uv = str(ROOT / ".venv/bin/uv")
    commands = []
    if pypi:
        commands.append([uv, "venv", "-q", "--allow-existing", "--python", "3.11", str(folder)])
        commands.append([uv, "pip", "install", "-q", "--python", str(folder / "bin/python"), *pypi])
    if npm:
        commands.append(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *npm])
    for command in commands:
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        except FileNotFoundError:
            return f"{command[0]} is not installed"
        if result.returncode:
            return f"{command[0]} could not install it: {result.stderr.strip().splitlines()[-1:]}"
    done.write_text(wanted)
    return ""


def run_program(command: Sequence[str], workspace: Workspace, env: dict[str, str], stdin: str = "") -> str:
    """Run a program to its end in the workspace's folder; return its output."""
    folder = workspace.folder / "work"
    folder.mkdir(exist_ok=True)
    result = subprocess.run(
        command, cwd=folder, env=env, input=stdin, capture_output=True, text=True, timeout=TURN_SECONDS, check=False
    )
    assert result.returncode == 0, f"{command} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


def driver(script: str, *arguments: str) -> Talk:
    """Return a function that has a conversation through a library's driver."""

    def talk(workspace: Workspace, installed: Path, turns: Sequence[Turn]) -> list[str]:
        driver_turns = [
            {"text": turn.text, "stream": turn.stream, "tools": turn.tools}
            | ({} if turn.after is None else {"after": turn.after})
            for turn in turns
        ]
        stdin = json.dumps({"base_url": f"{workspace.address}/v1", "key": workspace.key, "say": driver_turns})
        if script.endswith(".mjs"):  # Node looks for packages next to the script
            for file in DRIVERS.glob("*.mjs"):
                shutil.copy(file, installed)
            command = ["node", str(installed / script), *arguments]
        else:
            python = installed / "bin/python" if (installed / "bin").exists() else ROOT / ".venv/bin/python"
            command = [str(python), str(DRIVERS / script), *arguments]
        answers = json.loads(run_program(command, workspace, workspace.environment(), stdin).splitlines()[-1])
        return [str(answer) for answer in answers]

    return talk


def llm(workspace: Workspace, installed: Path, turns: Sequence[Turn]) -> list[str]:
    """Simon Willison's `llm`."""
    (workspace.folder / "extra-openai-models.yaml").write_text(workspace.documented("llm/extra-openai-models.yaml"))
    (workspace.folder / "keys.json").write_text(json.dumps({"daybook": workspace.key}))
    env = workspace.environment(LLM_USER_PATH=str(workspace.folder))
    tool = 'def weather(place: str) -> str:\n    "How warm it is"\n    return f"21 degrees in {place}"\n'
    answers = []
    for index, turn in enumerate(turns):
        options = [*(["-c"] if index else ["-m", "daybook"]), *([] if turn.stream else ["--no-stream"])]
        options += ["--functions", tool] if turn.tools else []
        answers.append(run_program([str(installed / "bin/llm"), "prompt", *options, turn.text], workspace, env).strip())
    return answers


def aider(workspace: Workspace, installed: Path, turns: Sequence[Turn]) -> list[str]:
    """aider, which gets its input line by line."""
    env = workspace.documented_environment("aider")
    command = [
        str(installed / "bin/aider"), "--model", "openai/assistant", "--no-git", "--yes-always", "--no-check-update",
        "--no-show-model-warnings", "--analytics-disable", "--no-fancy-input", "--no-pretty", "--no-detect-urls",
        *([] if any(turn.stream for turn in turns) else ["--no-stream"]),
    ]  # fmt: skip
    printed = run_program(command, workspace, env, "".join(f"{turn.text}\n" for turn in turns) + "/exit\n")
    return re.findall(r"^> \n(.*?)\n+Tokens:", printed, re.DOTALL | re.MULTILINE)


def codex(workspace: Workspace, installed: Path, turns: Sequence[Turn]) -> list[str]:
    """Codex CLI."""
    (workspace.folder / "config.toml").write_text(workspace.documented("codex/config.toml"))
    env = workspace.environment(CODEX_HOME=str(workspace.folder), DAYBOOK_KEY=workspace.key)
    answers = []
    for index, turn in enumerate(turns):
        options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        words = [*(["resume", "--last"] if index else []), turn.text]
        command = [str(installed / "node_modules/.bin/codex"), "exec", *options, *words]
        answers.append(run_program(command, workspace, env).strip())
    return answers


def claude_code(workspace: Workspace, installed: Path, turns: Sequence[Turn]) -> list[str]:
    """Claude Code."""
    env = workspace.documented_environment(
        "claude-code",
        ANTHROPIC_MODEL="assistant",
        ANTHROPIC_DEFAULT_HAIKU_MODEL="assistant",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )
    answers = []
    for index, turn in enumerate(turns):
        options = ["-p", *(["-c"] if index else []), "--allowedTools", "Bash", "--", turn.text]
        answers.append(run_program([str(installed / "node_modules/.bin/claude"), *options], workspace, env).strip())
    return answers


def opencode(workspace: Workspace, installed: Path, turns: Sequence[Turn]) -> list[str]:
    """opencode."""
    (workspace.folder / "work").mkdir(exist_ok=True)
    (workspace.folder / "work/opencode.json").write_text(workspace.documented("opencode/opencode.json"))
    env = workspace.environment(DAYBOOK_KEY=workspace.key, OPENCODE_DISABLE_AUTOUPDATE="1", NO_COLOR="1")
    answers = []
    for index, turn in enumerate(turns):
        command = [str(installed / "node_modules/.bin/opencode"), "run", *(["-c"] if index else []), turn.text]
        answers.append(run_program(command, workspace, env).strip())
    return answers


def qwen_code(workspace: Workspace, installed: Path, turns: Sequence[Turn]) -> list[str]:
    """Qwen Code."""
    env = workspace.documented_environment("qwen-code")
    answers = []
    for index, turn in enumerate(turns):
        options = ["--auth-type", "openai", *(["--continue"] if index else []), "--yolo", "-p", turn.text]
        answers.append(run_program([str(installed / "node_modules/.bin/qwen"), *options], workspace, env).strip())
    return answers


_AGENT = ("remembered", "tools")  # a shell command; agents decide themselves whether to stream
_AGENTS_SDK = ("openai-agents==0.24.0",)
_AGENTS_JS = ("@openai/agents@0.20.0", "openai@7.59.0", "zod@4.6.7")
_GENKIT = ("genkit@1.42.0", "@genkit-ai/compat-oai@1.42.0")
_PYDANTIC = ("pydantic-ai-slim[openai,anthropic]==2.68.0",)
_LANGCHAIN_JS = ("langchain@1.5.14", "@langchain/openai@1.6.0", "@langchain/core@1.4.0", "@langchain/langgraph@1.7.3")
_AI_SDK = ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/openai-compatible@3.0.92", "@ai-sdk/anthropic@4.0.105")
CHAT, RESPONSES, MESSAGES = "chat completions", "responses", "messages"
CLIENTS: tuple[Client, ...] = (
    Client(name="openai (Python)", api=CHAT, talk=driver("openai_python.py")),
    Client(name="openai (Python), responses", api=RESPONSES, talk=driver("openai_responses.py")),
    Client(name="openai (Node)", api=CHAT, talk=driver("openai_node.mjs"), npm=("openai@7.59.0",)),
    Client(name="anthropic (Python)", api=MESSAGES, talk=driver("anthropic_python.py")),
    Client(
        name="anthropic (Node)", api=MESSAGES, talk=driver("anthropic_node.mjs"), npm=("@anthropic-ai/sdk@1.15.0",)
    ),
    Client(name="Agents SDK, chat", api=CHAT, talk=driver("agents_python.py", "chat"), pypi=_AGENTS_SDK),
    Client(name="Agents SDK", api=RESPONSES, talk=driver("agents_python.py", "responses"), pypi=_AGENTS_SDK),
    Client(
        name="Agents SDK (Node), chat", api=CHAT, talk=driver("agents_node.mjs", "chat_completions"), npm=_AGENTS_JS
    ),
    Client(name="Agents SDK (Node)", api=RESPONSES, talk=driver("agents_node.mjs", "responses"), npm=_AGENTS_JS),
    Client(name="AI SDK, compatible", api=CHAT, talk=driver("ai_sdk_node.mjs", "compatible"), npm=_AI_SDK),
    Client(name="AI SDK, openai", api=RESPONSES, talk=driver("ai_sdk_node.mjs", "responses"), npm=_AI_SDK),
    Client(name="AI SDK, anthropic", api=MESSAGES, talk=driver("ai_sdk_node.mjs", "anthropic"), npm=_AI_SDK),
    Client(name="LangChain", api=CHAT, talk=driver("langchain_python.py"), pypi=("langchain-openai==1.7.3",)),
    Client(name="LangGraph (Node), chat", api=CHAT, talk=driver("langgraph_node.mjs", "chat"), npm=_LANGCHAIN_JS),
    Client(name="LangGraph (Node)", api=RESPONSES, talk=driver("langgraph_node.mjs", "responses"), npm=_LANGCHAIN_JS),
    Client(name="Genkit", api=CHAT, talk=driver("genkit_node.mjs"), npm=_GENKIT),
    Client(name="pydantic-ai, chat", api=CHAT, talk=driver("pydantic_ai_python.py", "chat"), pypi=_PYDANTIC),
    Client(name="pydantic-ai", api=RESPONSES, talk=driver("pydantic_ai_python.py", "responses"), pypi=_PYDANTIC),
    Client(
        name="pydantic-ai, anthropic", api=MESSAGES, talk=driver("pydantic_ai_python.py", "anthropic"), pypi=_PYDANTIC
    ),
    Client(
        name="llm", api=CHAT, talk=llm, pypi=("llm==0.36",), columns=("remembered", "streamed", "tools", "loop")
    ),
    Client(name="aider", api=CHAT, talk=aider, pypi=("aider-chat==0.86.2",), columns=("remembered", "streamed")),
    Client(name="opencode", api=CHAT, talk=opencode, npm=("opencode-ai@1.18.33",), columns=_AGENT),
    Client(name="Qwen Code", api=CHAT, talk=qwen_code, npm=("@qwen-code/qwen-code@0.24.4",), columns=_AGENT),
    Client(name="Codex CLI", api=RESPONSES, talk=codex, npm=("@openai/codex@0.171.0",), columns=_AGENT),
    Client(
        name="Claude Code", api=MESSAGES, talk=claude_code, npm=("@anthropic-ai/claude-code@2.1.332",), columns=_AGENT
    ),
    Client(name="MCP (Python)", api="MCP", talk=driver("mcp_python.py"), columns=("remembered",)),
    Client(
        name="MCP (Node)", api="MCP", talk=driver("mcp_node.mjs"), npm=("@modelcontextprotocol/sdk@1.32.2",),
        columns=("remembered",),
    ),
)  # fmt: skip

SHELL_CLIENTS = {client.name for client in CLIENTS if client.columns == _AGENT}
TOOL_ANSWERS = {
    obedient_model.TOOL: "It says: 21 degrees in York",
    obedient_model.LOOP: "It says: 21 degrees in York; 21 degrees in Bath",
    obedient_model.SHELL: "The sum is 42.",
}
