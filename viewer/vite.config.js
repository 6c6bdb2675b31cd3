import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// One file that opens from disk: every script and style inline, nothing fetched.
export default defineConfig({
  base: "./",
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2020", cssCodeSplit: false, assetsInlineLimit: 1 << 24, modulePreload: false },
});
