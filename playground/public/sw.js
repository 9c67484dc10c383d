// Keeps the page and its networks, so that it works without a connection. Requests to the cloud are never kept.
const CACHE = `sfumato-${new URL(self.location.href).searchParams.get("v")}`;

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("message", (event) => {
  event.waitUntil(
    (async () => {
      const cache = await caches.open(CACHE);
      for (const url of event.data) if (!(await cache.match(url))) await cache.add(url).catch(() => undefined);
      event.source?.postMessage("kept");
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== self.location.origin) return;
  event.respondWith(
    (async () => (await (await caches.open(CACHE)).match(event.request, { ignoreSearch: true })) ?? fetch(event.request))(),
  );
});
