// Talking to the server: JSON, lines of JSON, and errors in words.

const SILENT = "The server does not answer. Is crossgaze serve still running?";
const BROKEN = "The answer broke off in the middle. Is crossgaze serve still running?";

/** What went wrong, in words; status 0 is a server that does not answer. */
export class Trouble extends Error {
  constructor(words, status = 0) {
    super(words);
    this.status = status;
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Trouble(SILENT);
  }
  if (response.ok) return response;
  let words = `The server answered with ${response.status}.`;
  try {
    words = (await response.json()).error ?? words;
  } catch { /* not JSON: the status must do */ }
  throw new Trouble(words, response.status);
}

async function body(response) {
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch (error) {
    throw error.name === "AbortError" ? error : new Trouble(BROKEN);
  }
}

export const get = async (path, signal) => body(await request(path, { signal }));

export const post = async (path, value, signal) => body(await request(path, {
  signal,
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
}));

/** Search and give each line of the answer as it arrives; the last has stage "ranked". */
export async function* search(params, { picture, signal } = {}) {
  const query = new URLSearchParams(params);
  query.set("stream", "true");
  const sent = picture
    ? { method: "POST", body: picture, headers: { "Content-Type": picture.type || "image/jpeg" } }
    : {};
  const response = await request(`/search?${query}`, { ...sent, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", last = null;
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      throw error.name === "AbortError" ? error : new Trouble(BROKEN);
    }
    const parts = (rest + (piece.value ?? "")).split("\n");
    rest = parts.pop();
    for (const line of parts) {
      last = JSON.parse(line);
      if (last.error) throw new Trouble(last.error, 500);
      yield last;
    }
    if (piece.done) break;
  }
  if (last?.stage !== "ranked") throw new Trouble(BROKEN);
}

/** Follow how far the adding of a folder is; returns what ends it. A browser asks again by itself
 *  where nobody answers, but not where it was refused. */
export function follow(onJob, onSilence, onRefused) {
  const source = new EventSource("/index/events");
  source.onmessage = (event) => {
    const job = JSON.parse(event.data);
    if (job.state !== "running") source.close();
    onJob(job);
  };
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) onRefused();
    else onSilence(new Trouble(SILENT));
  };
  return () => source.close();
}

export const thumbnail = (photo, side) =>
  `/images/${photo.id}/thumbnail?side=${side}&v=${encodeURIComponent(photo.version)}`;
