// What all pages that carry their trace have: columns in base64 of compressed bytes, with numbers of seven bits a byte, the lowest first; and what
// they answer in place of a server.

/** What went wrong, in words for people. */
export class Failure extends Error {}

/** The answers that are the same in all of them. */
export const carried = {
  requests: 0,
  /** Whether it answers what the file has to be read for. */
  readsFile: false,
  bytes: 0,
  /** Number of what the page shows. @type {number | null} */
  version: null,
  stale() {},
  alive: async () => undefined,
};

/** Bytes of base64. */
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

/** The bytes of a column; its elements go away. @param {string} name @returns {Promise<Uint8Array>} */
export async function column(name) {
  const elements = [...document.querySelectorAll(`script[data-column="${name}"]`)];
  if (!elements.length) throw new Error(`the page lacks its column ${name}: it is cut off`);
  const parts = elements.map((element) => {
    const part = bytesOf(element.textContent);
    element.remove();
    return part;
  });
  const bytes = new Response(new Blob(parts).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  // Firefox's error is that of something that was aborted.
  return new Uint8Array(await bytes.catch(() => Promise.reject(new Error(`the page's column ${name} is damaged or cut off`))));
}

/** Reads numbers one after another. */
export class Numbers {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  /** The next one, below 2^53. */
  next() {
    let number = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new Error("the page is cut off");
      number += (byte & 127) * scale;
      if (byte < 128) return number;
      scale *= 128;
    }
  }

  /** The next one that may be negative. */
  signed() {
    const number = this.next();
    return number % 2 ? -(number + 1) / 2 : number / 2;
  }

  /** The next one that may be negative, of 64 bits. @returns {bigint} */
  long() {
    let number = 0n;
    let shift = 0n;
    for (;;) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new Error("the page is cut off");
      number |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, (number >> 1n) ^ -(number & 1n));
      shift += 7n;
    }
  }
}
