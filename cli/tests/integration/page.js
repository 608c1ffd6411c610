// What tests ask the page of `rpd view`: what is at a time of a row, what was drawn and asked. It is in every document of the browser before the
// page's own scripts; nothing of it is in the page.

(() => {
  // What a canvas was told to draw, whatever the page says of that: pictures of rows, and the texts of the last frame.
  const drawn = { blits: 0, labels: 0 };
  const patch = (method, did) => {
    const original = CanvasRenderingContext2D.prototype[method];
    CanvasRenderingContext2D.prototype[method] = function (...given) {
      did(this.canvas.id);
      return original.apply(this, given);
    };
  };
  patch("putImageData", (id) => (drawn.blits += id === "events" ? 1 : 0));
  patch("clearRect", (id) => id === "texts" && (drawn.labels = 0));
  patch("fillText", (id) => (drawn.labels += id === "texts" ? 1 : 0));

  const of = ({ app, server }) => {
    const { timeline } = app;
    return {
      at: (row, time) => timeline.runOf(row, time).run ?? null,
      under: (x, y) => timeline.at(x, y),
      state: () => app.state(),
      server,
      counts: () => ({ frames: timeline.frames, blits: drawn.blits, labels: drawn.labels, requests: server.requests, bytes: server.bytes, kept: timeline.cache.bytes }),
      isWhole: () => Boolean(timeline.isWhole && !timeline.pending),
      name: (number) => timeline.nameOf(number),
      groups: () => app.trace.groups,
      lines: () => timeline.lines.map(({ sort, row, top, height, track, counter, group, isPinned }) => ({ sort, row, top: isPinned ? top : top - timeline.scroll, height, track: (track ?? counter)?.key, group: group.key, isPinned: Boolean(isPinned) })),
      shift: () => app.compare?.shift ?? 0,
      choose: (event) => app.select({ event }).then(() => null),
      worked: () => [...timeline.worked.values()].flat().flatMap((of) => of.tracks),
      stack: (key, time) => {
        const counter = timeline.groups.flatMap((group) => group.counters).find((one) => one.key === key);
        const stack = timeline.stackOf(counter);
        return stack.before(time).live.map((block) => [stack.event[block], stack.bytes[block]]);
      },
      block: (x, y) => timeline.blockAt(x, y),
      counters: () => timeline.groups.flatMap((group) => group.counters),
      links: () => timeline.links.filter((link) => timeline.box(link)).length,
      dependencies: () => timeline.dependencies().length,
      theme: () => timeline.pixels,
      pixel: (x, y) => timeline.picture[Math.round(y * timeline.ratio) * timeline.canvases.events.width + Math.round(x * timeline.ratio)],
      back: () => timeline.pixels.back,
      labels: () => timeline.texts,
      overlaid: (x, y, width, height) => {
        const copy = document.createElement("canvas");
        [copy.width, copy.height] = [width, height].map((number) => Math.max(1, Math.round(number * timeline.ratio)));
        const context = copy.getContext("2d", { willReadFrequently: true });
        context.drawImage(timeline.canvases.overlay, -Math.round(x * timeline.ratio), -Math.round(y * timeline.ratio));
        return context.getImageData(0, 0, copy.width, copy.height).data.filter((value, at) => at % 4 === 3 && value).length;
      },
    };
  };
  // The same of the ranks of a dataset.
  const ofRanks = ({ state, said }) => {
    const tracks = () => document.getElementById("tracks").getBoundingClientRect();
    return {
      isWhole: () => Boolean(state().data && state().done === state().data.tracks.length && !state().waiting),
      order: () => state().layout.rows.filter((row) => row.track !== null).map((row) => state().data.tracks[row.track].rank),
      height: () => state().layout.track,
      chosen: () => [state().chosen, state().at],
      said,
      place: (track, share) => {
        const { layout, left, width } = state();
        const row = layout.rows.find((one) => one.track === track);
        return [tracks().left + left + share * width, tracks().top + row.y - document.getElementById("tracks").scrollTop + row.height / 2];
      },
      pixel: ([x, y]) => {
        const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
        context.drawImage(document.getElementById("paint"), -Math.round((x - tracks().left) * devicePixelRatio), -Math.round((y - tracks().top) * devicePixelRatio));
        return Array.from(context.getImageData(0, 0, 1, 1).data);
      },
    };
  };
  let made;
  Object.defineProperty(window, "rpdTest", { get: () => (made ??= window.rpd && (window.rpd.ranks ? ofRanks(window.rpd.ranks) : of(window.rpd))) });
})();
