import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
/** A running server, for `npm run dev`. */
const server = process.env.LANDFALL_URL ?? 'http://127.0.0.1:3002';

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: {
    alias: {
      '@landfall/client': path('../clients/typescript/src'),
    },
    dedupe: ['react', 'react-dom', 'tus-js-client'],
  },
  build: {
    outDir: path('../crates/server/src/http/console/dist'),
    emptyOutDir: true,
    target: 'es2023',
    // The server serves these files without folders.
    assetsDir: 'assets',
    // An inlined asset would need exceptions in the policy of the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  worker: { format: 'es' },
  server: {
    proxy: Object.fromEntries(['/api', '/auth', '/healthz', '/readyz'].map(prefix => [prefix, { target: server, changeOrigin: true, headers: { origin: server } }])),
  },
});
