// What the JavaScript drivers share: see talk.py, which does the same.
import { readFileSync } from "node:fs";

export const given = JSON.parse(readFileSync(0, "utf8"));
export const baseURL = given.base_url;
export const host = baseURL.replace(/\/v1$/, "");
export const apiKey = given.key;
export const model = "assistant";
export const weather = ({ place }) => `21 degrees in ${place}`;
export const parameters = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };

export async function talk(ask) {
  let histories = [null];
  const answers = [];
  for (const said of given.say) {
    histories = histories.slice(0, (said.after ?? histories.length - 1) + 1);
    const [answer, history] = await ask(histories.at(-1), said);
    histories.push(history);
    answers.push(answer);
  }
  process.stdout.write(JSON.stringify(answers));
}
