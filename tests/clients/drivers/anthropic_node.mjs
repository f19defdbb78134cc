// The @anthropic-ai/sdk package: messages, with a tool loop as programs write it.
import Anthropic from "@anthropic-ai/sdk";
import { apiKey, host, model, parameters, talk, weather } from "./talk.mjs";

const client = new Anthropic({ baseURL: host, apiKey });
const tools = [{ name: "weather", input_schema: parameters }];

async function message(messages, said) {
  const asked = { model, max_tokens: 1000, messages, ...(said.tools ? { tools } : {}) };
  return said.stream ? client.messages.stream(asked).finalMessage() : client.messages.create(asked);
}

await talk(async (history, said) => {
  const messages = [...(history ?? []), { role: "user", content: said.text }];
  for (;;) {
    const answer = await message(messages, said);
    messages.push({ role: "assistant", content: answer.content });
    const calls = answer.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return [answer.content.map((block) => block.text ?? "").join(""), messages];
    const content = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: weather(call.input) }));
    messages.push({ role: "user", content });
  }
});
