"""`/mcp`: the memory tools, memories and documents of the key's owner for clients of the Model Context Protocol
(streamable HTTP).

protocol: JSON-RPC messages, versions, handshake, envelopes. tools, resources, prompts: the methods offered.
rights: the current rights of a key. api: the HTTP endpoint. The server is stateless (docs/decisions/0010-mcp.md)."""
