// The AI SDK with one of its providers: `node ai_sdk_node.mjs compatible|responses|anthropic`.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { apiKey, baseURL, model, parameters, talk, weather } from "./talk.mjs";

const chosen = {
  compatible: () => createOpenAICompatible({ name: "daybook", baseURL, apiKey })(model),
  responses: () => createOpenAI({ baseURL, apiKey })(model),
  anthropic: () => createAnthropic({ baseURL, apiKey })(model),
}[process.argv[2]]();
const lookup = tool({ description: "How warm it is.", inputSchema: jsonSchema(parameters), execute: async (given) => weather(given) });

await talk(async (history, said) => {
  const messages = [...(history ?? []), { role: "user", content: said.text }];
  const asked = { model: chosen, messages, stopWhen: stepCountIs(5), ...(said.tools ? { tools: { weather: lookup } } : {}) };
  const result = said.stream ? streamText(asked) : await generateText(asked);
  if (said.stream) for await (const part of result.fullStream) if (part.type === "error") throw part.error;
  return [await result.text, [...messages, ...(await result.response).messages]];
});
