// The openai package: chat completions, with a tool loop as programs write it.
import OpenAI from "openai";
import { apiKey, baseURL, model, parameters, talk, weather } from "./talk.mjs";

const client = new OpenAI({ baseURL, apiKey });
const tools = [{ type: "function", function: { name: "weather", parameters } }];

async function message(messages, said) {
  const asked = { model, messages, ...(said.tools ? { tools } : {}) };
  if (said.stream) return (await client.chat.completions.stream(asked).finalChatCompletion()).choices[0].message;
  return (await client.chat.completions.create(asked)).choices[0].message;
}

await talk(async (history, said) => {
  const messages = [...(history ?? []), { role: "user", content: said.text }];
  for (;;) {
    const answer = await message(messages, said);
    messages.push(answer);
    if (!answer.tool_calls?.length) return [answer.content, messages];
    for (const call of answer.tool_calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: weather(JSON.parse(call.function.arguments)) });
    }
  }
});
