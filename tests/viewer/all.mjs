// All tests of the page. all.mjs NODE_MODULES FOLDER
import { runAll } from "./harness.mjs";
import "./overview.mjs";
import "./timeline.mjs";
import "./stack.mjs";
import "./ranges.mjs";
import "./flame.mjs";
import "./map.mjs";
import "./sites.mjs";
import "./compare.mjs";
import "./page.mjs";
import "./large.mjs";
import "./readers.mjs";

await runAll();
