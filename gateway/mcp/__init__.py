"""`/mcp`: the memory tools, memories and documents of the key's owner, for clients of the Model Context
Protocol (streamable HTTP).
messages: JSON-RPC. protocol: versions, handshake, envelopes. tools, resources, prompts: what is offered and done.
rights: what a key may use now. cursors: pages. api: the HTTP edge.
No process keeps anything between two requests (docs/decisions/0010-mcp.md)."""
