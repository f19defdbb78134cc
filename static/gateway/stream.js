// A turn as a stream of events that survives a reload and a short loss of connection. The answer arrives as HTML rendered
// by the server; after a reconnect, the server sends all of it again.

import { ApiError, call, comesBack, request } from "./api.js";
import { eventsOf } from "./sse.js";

const FINAL = new Set(["done", "error"]);

const turnPath = (session, turn) => `/api/sessions/${session}/turns/${turn}`;

// Starts a turn. Throws ApiError if it is refused before it starts.
export async function* startTurn(session, body) {
  const response = await request("POST", `/api/sessions/${session}/turns`, { ...body, stream: true, render: "html" });
  yield* untilFinal(response, session, null);
}

// Follows a running turn from its beginning.
export async function* followTurn(session, turn) {
  yield* untilFinal(null, session, turn);
}

export function stopTurn(session, turn) {
  return call("POST", `${turnPath(session, turn)}/stop`, {});
}

async function* untilFinal(response, session, turn) {
  let failures = 0;
  for (;;) {
    try {
      response ??= await request("GET", `${turnPath(session, turn)}/events?render=html`);
      for await (const event of eventsOf(response)) {
        failures = 0;
        if (event.type === "started") turn = event.data.turn.id;
        yield event;
        if (FINAL.has(event.type)) return;
      }
    } catch (error) {
      if (error instanceof ApiError && !["connection", "overloaded", "rate_limited"].includes(error.code)) {
        yield* finished(session, turn, error);
        return;
      }
    }
    response = null;
    const broken = new ApiError("connection", "The connection broke off.");
    if (!turn) throw broken;
    yield { type: "waiting", data: { failures } };
    if (!(await comesBack(broken, ++failures))) throw broken;
  }
}

// There are no events to follow, since the turn has ended.
async function* finished(session, turn, refusal) {
  const data = await call("GET", turnPath(session, turn));
  if (data.state === "running") throw refusal;
  yield { type: "done", id: null, data };
}
