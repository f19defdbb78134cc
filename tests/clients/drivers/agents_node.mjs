// OpenAI's Agents SDK in JavaScript: `node agents_node.mjs chat_completions|responses`.
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { apiKey, baseURL, model, parameters, talk, weather } from "./talk.mjs";

setTracingDisabled(true);
setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey }));
setOpenAIAPI(process.argv[2]);
const lookup = tool({
  name: "weather",
  description: "How warm it is.",
  parameters: { ...parameters, additionalProperties: false },
  execute: weather,
});

await talk(async (history, said) => {
  const agent = new Agent({ name: "helper", model, tools: said.tools ? [lookup] : [] });
  const result = await run(agent, [...(history ?? []), { role: "user", content: said.text }], { stream: said.stream });
  if (said.stream) await result.completed;
  return [result.finalOutput, result.history];
});
