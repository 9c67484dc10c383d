// A page opened from disk may not start a worker, and the search runs in one. Here it runs in a hidden frame instead.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source === inside) {
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
          this.onmessage?.(event);
        }
      });
      inside.document.open();
      inside.document.write(`<html><body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...files) => files.reduce((before, file) => before.then(() => new Promise((loaded) => {
          const script = document.createElement("script");
          script.src = file;
          script.onload = loaded;
          document.body.appendChild(script);
        })), Promise.resolve());
      <\/script><script src="${url}"><\/script></body></html>`);
      inside.document.close();
      this.ready = new Promise((loaded) => { inside.onload = loaded; });
    }

    postMessage(data) {
      this.ready.then(() => {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", structuredClone({ data })));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
