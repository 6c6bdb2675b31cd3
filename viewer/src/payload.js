// The data in the page: JSON, compressed by gzip, in base64 (src/report/render/page/html.c writes it).

export class NoData extends Error {}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function unpack(base64) {
  if (typeof DecompressionStream === "undefined")
    throw new NoData("This browser cannot unpack the page's data; one from 2023 or later can.");
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return withFrames(JSON.parse(await new Response(stream).text()));
}

// Stacks in the page hold their frames by number: most stacks share most of their frames.
function withFrames({ frames = [], ...payload }) {
  for (const run of payload.document.runs.length ? payload.document.runs : [payload.document])
    for (const site of run.sites)
      site.stack = site.stack.map((frame) => (typeof frame === "number" ? frames[frame] : frame));
  return payload;
}

function packedIn(html) {
  return /<script type="application\/octet-stream"[^>]*>([\w+/=\s]*)<\/script>/.exec(html)?.[1].trim();
}

/** {document, parts[], order[]} of this page. */
export async function ownPayload() {
  const text = document.getElementById("gpumemtrace-data").textContent.trim();
  if (!text || text.startsWith("@"))
    throw new NoData("This is the empty template: gpumem-report html -o OUT FILE fills it.");
  return unpack(text);
}

/** The same of another page's text, or of what gpumem-report --json printed. */
export async function payloadOf(text) {
  const packed = text.trimStart().startsWith("{") ? null : packedIn(text);
  if (packed) return unpack(packed);
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new NoData("That file is neither a page of gpumem-report html nor JSON of --json.");
  }
  if (value?.schema_version !== 1)
    throw new NoData("That file is JSON, but not a document of gpumem-report --json.");
  return { document: value, parts: [], order: [] };
}
