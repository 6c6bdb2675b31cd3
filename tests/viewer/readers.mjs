// Exports in the programs that people open them with: speedscope in the browser, and a decoder of
// profile.proto that is not ours. Both are npm packages of the viewer's lock file.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { blank, documentOf, holds, modules, pathOf, same, sum, test } from "./harness.mjs";

const driver = (document) => document.sites.filter((site) => site.level === "driver");

/** The rows of speedscope's Sandwich view of an export: what each function holds in all, by name. */
async function sandwich(name) {
  const page = await blank();
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  await page.goto(`${pathToFileURL(join(modules, "speedscope/dist/release/index.html"))}`);
  await page.locator("input[type=file]").first().setInputFiles(pathOf(name));
  await page.getByText("Sandwich").click();
  await page.getByText("Symbol Name").waitFor();
  const rows = await page.locator("table tr").evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
  same(said.filter((line) => /Tried to end|still open|[Ee]rror|skipp/.test(line)).slice(0, 3), [], "complaints of speedscope");
  return rows.filter((row) => row.length === 3 && row[0] !== "Total");
}

test("speedscope: collapsed stacks add up to the live bytes", async () => {
  const rows = await sandwich("train.collapsed");
  const live = sum(driver(documentOf("train")), (site) => site.live_bytes);
  const root = rows.find((row) => row[2].startsWith("<module>"));
  same(Number(root[0].split(" ")[0].replaceAll(",", "")), live, "the outermost frame");
  holds(rows.some((row) => /train/.test(row[2])), "functions of the program");
});

test("speedscope: pprof, with units", async () => {
  const rows = await sandwich("train.pprof");
  const live = sum(driver(documentOf("train")), (site) => site.live_bytes);
  const root = rows.find((row) => row[2].startsWith("<module>"));
  same(root[0].split(" ").slice(0, 2).join(" "), `${(live / 2 ** 20).toFixed(2)} MB`, "the outermost frame");
});

test("speedscope: the trace's slices follow each other without a gap or an overlap", async () => {
  const rows = await sandwich("train.perfetto");
  holds(rows.length > 0, "slices");
});

test("pprof-format decodes the profile: sums of every sample type are the document's", async () => {
  const { Profile } = createRequire(join(modules, "index.js"))("pprof-format");
  const profile = Profile.decode(gunzipSync(readFileSync(pathOf("train.pprof"))));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const sites = driver(documentOf("train"));
  const expected = { inuse_objects: "live_count", inuse_space: "live_bytes", alloc_objects: "allocations", alloc_space: "allocated_bytes" };
  const types = profile.sampleType.map((type) => text(type.type));
  for (const [type, key] of Object.entries(expected)) {
    const at = types.indexOf(type);
    holds(at >= 0, `sample type ${type}`);
    same(sum(profile.sample, (sample) => Number(sample.value[at])), sum(sites, (site) => site[key]), type);
  }
  const functions = new Map(profile.function.map((one) => [String(one.id), one]));
  const locations = new Set(profile.location.map((one) => String(one.id)));
  for (const location of profile.location) for (const line of location.line) holds(functions.has(String(line.functionId)), "every function is there");
  for (const sample of profile.sample) for (const id of sample.locationId) holds(locations.has(String(id)), "every location is there");
});
