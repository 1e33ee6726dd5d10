// A Worker for pages that a browser opens from a folder, where it refuses real ones: the script runs in a hidden frame.
// The search of the site is such a script.  Pages of a server keep the browser's own Worker.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.appendChild(this.frame);
    const inside = this.frame.contentWindow;
    this.ready = new Promise(resolve => { inside.frameReady = resolve; });
    window.addEventListener("message", event => {
      if (event.source !== inside) return;
      const message = new MessageEvent("message", { data: event.data });
      this.dispatchEvent(message);
      if (this.onmessage) this.onmessage(message);
    });
    inside.document.open();
    inside.document.write(`<html><body><script>
      var frameReady = window.frameReady;
      window.postMessage = data => parent.postMessage(data, "*");
      window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(resolve => {
        const script = document.createElement("script");
        script.src = url;
        script.onload = resolve;
        document.body.appendChild(script);
      })), Promise.resolve());
      <\/script><script src="${url}" onload="frameReady()"><\/script></body></html>`);
    inside.document.close();
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
