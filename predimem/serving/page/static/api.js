// What the server is asked. The key goes into a header, never into an address.

const KEPT = "predimem-key"; // of this tab

export class Refused extends Error {}

export class Failed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function useKey(key) {
  if (key) sessionStorage.setItem(KEPT, key);
  else sessionStorage.removeItem(KEPT);
}

/** The answer of a GET. Throws Refused where a key is missing or wrong, Failed for any other answer than 200. */
async function get(address, patience_ms = 15000) {
  const key = sessionStorage.getItem(KEPT);
  const headers = key ? { Authorization: `Basic ${base64(`:${key}`)}` } : {};
  // Without `omit` the browser would ask for a password in a window of its own.
  const answer = await fetch(address, { headers, credentials: "omit", signal: AbortSignal.timeout(patience_ms) });
  if (answer.status === 401) throw new Refused(key ? "That is not the key." : "");
  if (!answer.ok) throw new Failed(answer.status, (await answer.text()).trim());
  return answer;
}

export async function json(address) {
  return (await get(address)).json();
}

export async function blob(address, patience_ms) {
  return (await get(address, patience_ms)).blob();
}

export const liveAddress = (id) => (id ? `/page/live/${encodeURIComponent(id)}.json` : "/page/live.json");
export const pastAddress = (id) => `/page/past/${encodeURIComponent(id)}.json`;

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
