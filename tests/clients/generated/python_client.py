"""Use the Python client generated from docs/api/openapi.json: `python_client.py ADDRESS KEY`. Every answer is typed."""

import sys
from typing import Any

from daybook_client import AuthenticatedClient
from daybook_client.api.memories import memory_add, memory_list, memory_search
from daybook_client.api.sessions import session_create, turn_create
from daybook_client.models import (
    Error,
    FoundMemoryList,
    Memory,
    MemoryIn,
    MemoryList,
    SearchIn,
    Session,
    SessionIn,
    Turn,
    TurnIn,
)

address, key = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=key)


def typed(answer: Any, kind: Any) -> Any:
    assert isinstance(answer, kind), answer
    return answer


memory = typed(memory_add.sync(client=client, body=MemoryIn(content="Grows tomatoes.", category="garden")), Memory)
assert memory.created_at.year > 2000
assert memory.id in [row.id for row in typed(memory_list.sync(client=client), MemoryList).data]
found = typed(memory_search.sync(client=client, body=SearchIn(query="tomatoes")), FoundMemoryList)
assert found.data[0].content == "Grows tomatoes."
session = typed(session_create.sync(client=client, body=SessionIn(agent="assistant")), Session)
turn = typed(turn_create.sync(session.id, client=client, body=TurnIn(content="Thank you.")), Turn)
assert turn.content == "You are welcome."
refused = typed(session_create.sync(client=client, body=SessionIn(agent="nobody")), Error)
assert refused.error.code
sys.stdout.write("ok")
