// What the service is asked, and how: the key, what was refused, and what did not answer at all.

const KEY = "unfog-key";
const PATIENCE = 30_000; // milliseconds
const LONGER = 600_000; // for the past: the first time a long log is read for it
const base = new URL(".", document.baseURI);

/** The service said no. */
export class ServiceError extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

/** The service said nothing. */
export class NotAnsweringError extends Error {}

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

function headers() {
  const found = { Accept: "application/json" };
  if (key.get()) found.Authorization = `Bearer ${key.get()}`;
  return found;
}

/** The JSON at a path of the service. */
export async function get(path) {
  const asked = { headers: headers(), cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
  const response = await fetch(new URL(path, base), asked).catch((error) => {
    throw new NotAnsweringError(String(error));
  });
  if (!response.ok) throw new ServiceError(response.status, spoken(await response.text(), response.status));
  return response.json();
}

/** What a refusal says, whatever it is written in. */
function spoken(text, status) {
  try {
    const found = JSON.parse(text);
    return found.detail ?? found.title ?? `refused with ${status}`;
  } catch {
    return `refused with ${status}`;
  }
}

const problem = (name) => `v1/problems/${encodeURIComponent(name)}`;
const query = (given) => {
  const found = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== null));
  return found.size ? `?${found}` : "";
};

export const problems = () => get("v1/problems");
export const describe = (name) => get(problem(name));
export const diagnostics = (name) => get(`${problem(name)}/diagnostics`);
export const belief = (name, unit) => get(`${problem(name)}/belief${query({ unit })}`);

let reader = null;
let asked = 0;
const waiting = new Map();

/** What happened, its points as arrays of numbers; read beside the page, so that it never stops for them. */
export function history(name, unit, points) {
  reader ??= started();
  const url = new URL(`${problem(name)}/history${query({ unit, points })}`, base).href;
  return new Promise((resolve, reject) => {
    asked += 1;
    waiting.set(asked, { resolve, reject });
    reader.postMessage({ id: asked, url, headers: headers(), patience: LONGER });
  });
}

function started() {
  const found = new Worker(new URL("reader.js", import.meta.url));
  found.onmessage = ({ data: { id, answer, text, status, lost } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (answer) resolve(answer);
    else if (status) reject(new ServiceError(status, spoken(text, status)));
    else reject(new NotAnsweringError(lost));
  };
  return found;
}
