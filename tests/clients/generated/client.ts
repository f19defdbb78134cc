// Uses the types that were generated from docs/api/openapi.json. It must compile: every answer has a type of its own.
import createClient from "openapi-fetch";
import type { components, paths } from "./daybook";

declare const process: { argv: string[]; stdout: { write(text: string): void } };
const [address, key] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${key}` } });

type Memory = components["schemas"]["Memory"];

async function main(): Promise<void> {
  const added = await client.POST("/api/memories", { body: { content: "Keeps bees.", category: "garden" } });
  const memory: Memory = added.data!;
  const listed = await client.GET("/api/memories", { params: { query: { category: "garden" } } });
  const contents: string[] = listed.data!.data.map((row) => row.content);
  if (!contents.includes(memory.content)) throw new Error("not listed");
  const refused = await client.POST("/api/sessions", { body: { agent: "nobody" } });
  const message: string = refused.error!.error.message;
  if (!message) throw new Error("no message");
  process.stdout.write("ok");
}

void main();
