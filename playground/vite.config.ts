import { defineConfig } from "vite";

// "make playground" puts the page where the server finds it, "make playground-static" where it stands alone.
export default defineConfig(({ mode }) => ({
  base: "./",
  build: {
    outDir: mode === "static" ? "../build/playground/page" : "../src/sfumato/deploy/page",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy forbids data: scripts
    chunkSizeWarningLimit: 1200,
  },
}));
