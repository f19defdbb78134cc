"""A model server that does what the person says, for programs whose requests cannot be scripted: it saves what it is
asked to remember, answers from injected memories, and calls the client's tools.

Use `with serving_obedient_model() as upstream:` as with tests.upstream_server, on which it is based."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from tests.upstream_server import ReceivedRequest, Upstream, UpstreamServer, serving_upstream

CAT = "My cat is called Biscuit."
REMEMBER = f"Please remember this: {CAT}"
THANKS = "Thank you."
ASK = "What is my cat called?"
TOOL = "Use your tool: how warm is it in York?"
LOOP = "Use your tool: how warm is it in York, and then in Bath?"
SHELL = "Use your tool: print 40 plus 2."
REMEMBERED = "Your cat is called Biscuit."
PLACES = ("York", "Bath")
# The names of coding agents' shell tools, and the arguments of each for a command.
_COMMAND = "echo sum=$((40+2))"
_SHELLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda command: {"command": command, "description": "Add"},
    "bash": lambda command: {"command": command, "description": "Add"},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-c", command]},
    # Qwen Code 0.24 may miss the output of a command that ends immediately.
    "run_shell_command": lambda command: {"command": f"{command}; sleep 1", "is_background": False},
}


class ObedientModel(Upstream):
    """A server whose answers depend on the request instead of a script."""

    def _next_step(self, request: ReceivedRequest) -> dict[str, Any]:
        return answer(request.body)


def serving_obedient_model() -> AbstractContextManager[UpstreamServer]:
    """Run a server in a thread of this process."""
    return serving_upstream(ObedientModel)


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Return the step that answers a request."""
    messages = body["messages"]
    offered = {tool["function"]["name"] for tool in body.get("tools", ()) if tool.get("type") == "function"}
    user_index = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=0)
    text = _text(messages[user_index])
    results = [_text(message) for message in messages[user_index + 1 :] if message["role"] == "tool"]
    if CAT in text and "remember this" in text:
        return _save(offered, bool(results))
    if ASK in text:
        return {"text": REMEMBERED if "Biscuit" in json.dumps(messages) else "I do not know."}
    if SHELL in text:
        return _shell(offered, results)
    if LOOP in text or TOOL in text:
        return _weather(offered, results, PLACES if LOOP in text else PLACES[:1])
    return {"text": "You are welcome." if THANKS in text else "Very well."}


def _save(offered: set[str], saved: bool) -> dict[str, Any]:
    if saved or "add_memory" not in offered:
        return {"text": "Noted."}
    return {"calls": [{"name": "add_memory", "arguments": {"content": "Has a cat called Biscuit.", "target": "user"}}]}


def _weather(offered: set[str], results: list[str], places: tuple[str, ...]) -> dict[str, Any]:
    if len(results) < len(places):
        name = next((name for name in offered if "weather" in name), "")
        if not name:
            return {"text": "There is no such tool."}
        return {"calls": [{"name": name, "arguments": {"place": places[len(results)]}}]}
    return {"text": "It says: " + "; ".join(results)}


def _shell(offered: set[str], results: list[str]) -> dict[str, Any]:
    if results:
        found = re.search(r"sum=(\d+)", results[-1])
        return {"text": f"The sum is {found[1]}." if found else f"The shell said: {results[-1]}"}
    name = next((name for name in _SHELLS if name in offered), "")
    if not name:
        return {"text": f"There is no shell among {', '.join(sorted(offered))}."}
    return {"calls": [{"name": name, "arguments": _SHELLS[name](_COMMAND)}]}


def _text(message: dict[str, Any]) -> str:
    return "\n".join(_texts(message.get("content")))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        yield str(part.get("text", ""))
