// The MCP SDK: messages become calls of the memory tools.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { apiKey, host, talk } from "./talk.mjs";

const headers = { Authorization: `Bearer ${apiKey}` };
const client = new Client({ name: "tests", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${host}/mcp`), { requestInit: { headers } }));

await talk(async (history, said) => {
  const remembering = said.text.match(/remember this: (.*)$/);
  const called = remembering
    ? { name: "add_memory", arguments: { content: remembering[1], target: "user" } }
    : { name: "search_memories", arguments: { query: said.text } };
  const result = await client.callTool(called);
  if (result.isError) throw new Error(JSON.stringify(result));
  return [JSON.stringify(result.structuredContent), null];
});
await client.close();
