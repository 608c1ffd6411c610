// Opens a page in a real Chromium, asks it what is asked for and prints the answers as JSON.
//
// usage: node page.mjs CHROMIUM PROFILE URL WIDTH HEIGHT EXPRESSION... [--screenshot FILE]
//
// Chromium is driven through a pipe (its DevTools protocol), so that no port is open. What the page logs and what it asks the network for
// is among the answers.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

const given = process.argv.slice(2);
const at = given.indexOf("--screenshot");
const picture = at < 0 ? null : given.splice(at, 2)[1];
const [chromium, profile, url, width, height, ...expressions] = given;
const browser = spawn(
  chromium,
  ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--user-data-dir=" + profile,
    "--no-first-run", "--disable-background-networking", "--disable-component-update"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
const [, , , to, from] = browser.stdio;
const waiting = new Map();
const logged = [];
const requested = [];
let last = 0;
let loaded;
const isLoaded = new Promise((resolve) => (loaded = resolve));
let pending = "";
from.setEncoding("utf8");
from.on("data", (data) => {
  const parts = (pending + data).split("\0");
  pending = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    if (message.id) waiting.get(message.id)(message);
    else if (message.method === "Page.loadEventFired") loaded();
    else if (message.method === "Network.requestWillBeSent") requested.push(message.params.request.url);
    else if (message.method === "Log.entryAdded") logged.push(message.params.entry.text);
    else if (message.method === "Runtime.exceptionThrown") logged.push(message.params.exceptionDetails.exception?.description ?? "exception");
    else if (message.method === "Runtime.consoleAPICalled") logged.push(message.params.type);
  }
});

function ask(method, params = {}, sessionId) {
  last += 1;
  const id = last;
  to.write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((resolve, reject) =>
    waiting.set(id, (message) => (message.error ? reject(new Error(JSON.stringify(message.error))) : resolve(message.result))),
  );
}

const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
for (const domain of ["Page", "Network", "Log", "Runtime"]) await ask(domain + ".enable", {}, sessionId);
await ask("Emulation.setDeviceMetricsOverride",
  { width: Number(width), height: Number(height), deviceScaleFactor: 1, mobile: Number(width) < 700 }, sessionId);
if (process.env.DARK) {
  await ask("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "dark" }] }, sessionId);
}
await ask("Page.navigate", { url }, sessionId);
await isLoaded;
const answers = [];
for (const expression of expressions) {
  const { result, exceptionDetails } = await ask("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true }, sessionId);
  answers.push(exceptionDetails ? { failed: exceptionDetails.exception?.description } : (result.value ?? null));
}
if (picture) {
  const { data } = await ask("Page.captureScreenshot", {}, sessionId);
  writeFileSync(picture, Buffer.from(data, "base64"));
}
process.stdout.write(JSON.stringify({ answers, logged, requested }));
await ask("Browser.close");
