// Builds the page into the Python package: the same sources give the same bytes. `node build.mjs [FOLDER]`
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../src/dicot/explorer/assets"));
mkdirSync(target, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.ts" },
  outdir: target,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome123", "firefox120", "safari17.5"], // the first ones with the CSS function light-dark()
  charset: "ascii",
  legalComments: "none",
  supported: { "inline-script": false }, // "</script>" is escaped, so that the exported page can hold the script
});
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/app.css" },
  outdir: target,
  bundle: true,
  minify: true,
  target: ["chrome123", "firefox120", "safari17.5"],
  charset: "utf8",
  legalComments: "none",
});
copyFileSync(join(here, "index.html"), join(target, "index.html"));
