// A turn as a stream of events that outlives a reload and a short loss of connection:
// when it breaks off it goes on from the last event that was seen.

import { ApiError, call, comesBack, request } from "./api.js";
import { eventsOf } from "./sse.js";

const FINAL = new Set(["done", "error"]);

const turnPath = (session, turn) => `/api/sessions/${session}/turns/${turn}`;

// Starts a turn. Throws ApiError when it is refused before it began.
export async function* startTurn(session, body) {
  const response = await request("POST", `/api/sessions/${session}/turns`, { ...body, stream: true });
  yield* untilFinal(response, session, null);
}

// Follows a turn that is already running, from its beginning.
export async function* followTurn(session, turn) {
  yield* untilFinal(null, session, turn);
}

export function stopTurn(session, turn) {
  return call("POST", `${turnPath(session, turn)}/stop`, {});
}

async function* untilFinal(response, session, turn) {
  let last = 0;
  let failures = 0;
  for (;;) {
    try {
      response ??= await request("GET", `${turnPath(session, turn)}/events?after=${encodeURIComponent(last)}`);
      for await (const event of eventsOf(response)) {
        failures = 0;
        // Only text moves the place: what else happened may be told ahead of it, and telling it twice does no harm.
        if (event.type === "delta" && event.id !== null) last = event.id;
        if (event.type === "started") turn = event.data.turn.id;
        yield event;
        if (FINAL.has(event.type)) return;
      }
    } catch (error) {
      if (error instanceof ApiError && !["connection", "overloaded"].includes(error.code)) {
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

// There are no events to follow: the turn ended while nobody looked.
async function* finished(session, turn, refusal) {
  const data = await call("GET", turnPath(session, turn));
  if (data.state === "running") throw refusal;
  yield { type: "done", id: null, data };
}
