// Genkit with its plugin for OpenAI-compatible servers.
import { openAICompatible } from "@genkit-ai/compat-oai";
import { genkit, z } from "genkit";
import { apiKey, baseURL, model, talk, weather } from "./talk.mjs";

const ai = genkit({ plugins: [openAICompatible({ name: "daybook", apiKey, baseURL })] });
const lookup = ai.defineTool(
  { name: "weather", description: "How warm it is.", inputSchema: z.object({ place: z.string() }), outputSchema: z.string() },
  async (given) => weather(given),
);

await talk(async (history, said) => {
  const asked = { model: `daybook/${model}`, messages: history ?? [], prompt: said.text, tools: said.tools ? [lookup] : [] };
  const answer = said.stream ? await ai.generateStream(asked).response : await ai.generate(asked);
  return [answer.text, answer.messages];
});
