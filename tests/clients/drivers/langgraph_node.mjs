// LangChain's agent in JavaScript, which LangGraph runs and whose messages it keeps by their ids:
// `node langgraph_node.mjs chat|responses`.
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import { apiKey, baseURL, model, parameters, talk, weather } from "./talk.mjs";

const chosen = new ChatOpenAI({
  model,
  apiKey,
  configuration: { baseURL },
  useResponsesApi: process.argv[2] === "responses",
});
const lookup = tool(weather, { name: "weather", description: "How warm it is.", schema: parameters });

async function run(agent, messages, stream) {
  if (!stream) return (await agent.invoke({ messages })).messages;
  let state;
  for await (const [mode, part] of await agent.stream({ messages }, { streamMode: ["messages", "values"] })) {
    if (mode === "values") state = part;
  }
  return state.messages;
}

await talk(async (history, said) => {
  const agent = createAgent({ model: chosen, tools: said.tools ? [lookup] : [] });
  const messages = await run(agent, [...(history ?? []), new HumanMessage(said.text)], said.stream);
  return [messages.at(-1).text, messages];
});
