// Calls Daybook's native API with the page's cookie: JSON in, JSON out, errors as ApiError.

import { parsed } from "./parts.js";

export class ApiError extends Error {
  constructor(code, message, { status = 0, details = {}, retryAfter = 0 } = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.details = details;
    this.retryAfter = retryAfter;
  }
}

function csrfToken() {
  const found = document.cookie.split("; ").find((pair) => pair.startsWith("daybook_csrf="));
  return found ? decodeURIComponent(found.slice("daybook_csrf=".length)) : "";
}

async function refusal(response) {
  const retryAfter = Number(response.headers.get("retry-after")) || 0;
  const status = response.status;
  try {
    const { error } = await response.json();
    const message = status === 401 ? "You are signed out." : error.message; // the server's is for clients with a key
    return new ApiError(error.code, message, { status, details: error.details ?? {}, retryAfter });
  } catch {
    // A proxy responds like this while Daybook restarts.
    const away = [502, 503, 504].includes(status) && "connection";
    const code = away || ({ 401: "unauthorized", 403: "forbidden", 404: "not_found", 413: "too_large" }[status] ?? "error");
    return new ApiError(code, `The server answered ${status}.`, { status, retryAfter });
  }
}

// Returns the raw response, for streams; throws ApiError for errors and for a broken connection.
export async function request(method, path, body, { headers = {}, signal } = {}) {
  const options = { method, signal, credentials: "same-origin", headers: { ...headers } };
  if (method !== "GET") options.headers["X-CSRFToken"] = csrfToken();
  if (body instanceof Blob || body instanceof URLSearchParams) options.body = body; // sent with its own type
  else if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("connection", "The connection broke off.");
  }
  if (response.status === 401) document.dispatchEvent(new CustomEvent("signed-out"));
  if (!response.ok) throw await refusal(response);
  return response;
}

export async function call(method, path, body, options) {
  const response = await request(method, path, body, options);
  return response.status === 204 ? null : response.json();
}

// Undoes a change. Throws ApiError if nothing was undone.
export async function undo(path, body = {}) {
  const result = await call("POST", path, body);
  if (!result.undone.length) throw new ApiError("conflict", "It has been changed since; see the history of the memory.");
}

// Runs an action that may be refused. Resolves to its ApiError, or to null if it succeeded.
export async function refused(work) {
  try {
    await work();
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

// Shows an error in the [data-error] element of a place.
export function showError(place, words) {
  const said = place.querySelector("[data-error]");
  said.textContent = words;
  said.hidden = false;
}

// Runs an action that may be refused: shows an error in the place, and disables the button, if there is one, meanwhile.
export async function attempt(place, button, work) {
  if (button?.disabled) return; // the keyboard can submit a form whose button is disabled
  place.querySelector("[data-error]").hidden = true;
  if (button) button.disabled = true;
  const error = await refused(work).finally(() => button && (button.disabled = false));
  if (error) showError(place, error.message);
}

const PATIENCE = 12; // attempts to reconnect, about two minutes

// Resolves to whether to retry after this error and number of consecutive failures, when it is time to do so.
export async function comesBack(error, failures) {
  if (!(error instanceof ApiError) || !["connection", "overloaded"].includes(error.code) || failures > PATIENCE) return false;
  await new Promise((resolve) => setTimeout(resolve, Math.min(250 * 2 ** failures, 15000)));
  return true;
}

// Returns the nodes of a fragment that is rendered and escaped by the server.
export async function fragment(path) {
  const response = await request("GET", path);
  return parsed(await response.text());
}

// Returns the nodes of a fragment, or null if the request failed: for what is not essential. The page stays as it is, and
// shows elsewhere that it is offline.
export async function tryFragment(path) {
  let nodes = null;
  await refused(async () => (nodes = await fragment(path)));
  return nodes;
}
