// Reads what happened in a thread of its own: 200,000 decisions are some 30 MB of JSON, and reading them would
// stop the page for a moment. Columns are handed over as arrays of numbers, without a copy.

self.onmessage = async ({ data: { id, url, headers, patience } }) => {
  try {
    const response = await fetch(url, { headers, cache: "no-store", signal: AbortSignal.timeout(patience) });
    if (!response.ok) {
      self.postMessage({ id, status: response.status, text: await response.text() });
      return;
    }
    const answer = await response.json();
    const moved = [];
    answer.points = columns(answer.points, moved);
    self.postMessage({ id, answer }, moved);
  } catch (error) {
    self.postMessage({ id, lost: String(error) });
  }
};

/** Lists of numbers as arrays of them, null as not a number; units are names, which no plot needs. */
function columns(found, moved) {
  const read = {};
  for (const [name, value] of Object.entries(found)) {
    if (name === "unit") continue;
    if (!Array.isArray(value)) {
      read[name] = columns(value, moved);
      continue;
    }
    read[name] = new Float64Array(value.length);
    for (let i = 0; i < value.length; i += 1) read[name][i] = value[i] === null ? NaN : value[i];
    moved.push(read[name].buffer);
  }
  return read;
}
