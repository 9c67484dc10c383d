// The page in a real browser: node run.mjs URL CHROMIUM SHOTS [--static]. Every check that fails ends the run.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [url, executablePath, shots, kind] = process.argv.slice(2);
const isStatic = kind === "--static";
mkdirSync(shots, { recursive: true });
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const asked = [];
  const problems = [];
  page.on("request", (request) => asked.push(request));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.goto(url);
  await page.waitForSelector("html[data-ready=yes]", { timeout: 60_000 });
  return { context, page, asked, problems };
}

const answer = (page) => page.locator("#answer li:first-child b");

/** Choose by value and wait for the answer of that choice. */
async function choose(page, mechanism, value) {
  await page.selectOption("#mechanism", mechanism);
  if (value && (await page.locator("#strength").isEnabled())) await page.selectOption("#strength", value);
}

/** Draw with the mouse, as a person would. */
async function draw(page, strokes) {
  await page.click("#clear");
  const box = await page.locator("#pad").boundingBox();
  for (const stroke of strokes) {
    const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
    await page.mouse.move(...at(stroke[0]));
    await page.mouse.down();
    for (const point of stroke.slice(1)) await page.mouse.move(...at(point), { steps: 12 });
    await page.mouse.up();
  }
}

const SEVEN = [[[0.25, 0.2], [0.75, 0.2], [0.45, 0.85]]];
const ONE = [[[0.5, 0.15], [0.5, 0.85]]];

const { context, page, asked, problems } = await open({ viewport: { width: 1280, height: 900 } });
const digits = (await page.locator("#mechanism option").evaluateAll((all) => all.map((one) => one.value))).filter((name) =>
  ["ran", "phase", "dnn"].includes(name),
);
assert.ok(digits.length > 0, "no mechanism here serves the digit");
for (const name of digits) {
  await choose(page, name);
  for (const [strokes, wanted] of [[SEVEN, "7"], [ONE, "1"]]) {
    await draw(page, strokes);
    await page.waitForFunction((text) => document.querySelector("#answer li:first-child b")?.textContent === text, wanted, {
      timeout: 15_000,
    });
  }
  console.log(`${name}: a drawn 7 and a drawn 1 are read`);
}

// Only the protected tensor was posted: JSON that names it, and its bytes.
const posts = asked.filter((request) => request.method() === "POST");
assert.equal(posts.length > 0, !isStatic, "requests to the cloud");
for (const post of posts) {
  const body = post.postDataBuffer();
  const head = Number(post.headers()["inference-header-content-length"]);
  const json = JSON.parse(body.subarray(0, head).toString());
  assert.deepEqual(json.inputs.map((input) => input.name), ["payload"]);
  const numbers = json.inputs[0].shape.reduce((a, b) => a * b, 1);
  assert.equal(body.length, head + 4 * numbers, "bytes beside the tensor");
}
const pixels = await page.evaluate(() => {
  const pad = document.getElementById("pad");
  return Array.from(pad.getContext("2d").getImageData(0, 0, pad.width, pad.height).data.filter((_, i) => i % 4 === 0));
});
const edge = pixels.findIndex((value, at) => at >= 32 && value > 0 && pixels[at - 1] === 0);
assert.ok(edge > 0, "there is a drawing");
for (const post of posts) {
  const drawn = Buffer.from(pixels.slice(edge - 32, edge + 32)); // black, then white
  assert.ok(!post.postDataBuffer().includes(drawn), "pixels were posted");
}
const outside = asked.filter((request) => new URL(request.url()).origin !== new URL(url).origin && !request.url().startsWith("blob:"));
assert.deepEqual(outside.map((request) => request.url()), [], "requests to other places");
console.log(`${posts.length} requests to the cloud hold the payload alone; none went elsewhere`);

if (await page.locator('#mechanism option[value="phase"]').count()) {
  await choose(page, "phase", "2");
  await page.waitForSelector("#dial-label:not([hidden])");
  const before = await page.locator("#payload").evaluate((canvas) => canvas.toDataURL());
  await page.locator("#dial").focus();
  for (let i = 0; i < 30; i++) await page.keyboard.press("ArrowRight");
  await page.waitForTimeout(800);
  assert.notEqual(await page.locator("#payload").evaluate((canvas) => canvas.toDataURL()), before);
  assert.equal(await page.locator("#dial-value").textContent(), "70°");
}
await page.locator("#pad").focus();
await page.keyboard.press("3");
await choose(page, digits.includes("phase") ? "phase" : digits[0]);
await page.waitForTimeout(1_000);
await page.screenshot({ path: `${shots}/playground-desktop.png`, fullPage: true });

// Offline: the page comes from the browser's own store; the cloud half cannot be asked, unless it is here.
await page.waitForSelector("html[data-kept=yes]", { timeout: 30_000 });
await context.setOffline(true);
await page.reload();
await page.waitForSelector("html[data-ready=yes]", { timeout: 30_000 });
await page.waitForFunction(() => document.getElementById("payload-note").textContent !== "", undefined, { timeout: 15_000 });
const said = await page.locator("#status").textContent();
if (isStatic) assert.equal(said, "");
console.log("offline: the page opens and protects");
await context.close();
assert.deepEqual(problems.filter((text) => !/ERR_INTERNET_DISCONNECTED|Failed to fetch/.test(text)), []);

const phone = await open({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
await phone.page.waitForSelector("#answer li");
const wide = await phone.page.evaluate(() => document.documentElement.scrollWidth - 390);
assert.ok(wide <= 0, `the page is ${wide} px wider than a phone`);
await phone.page.screenshot({ path: `${shots}/playground-phone.png`, fullPage: true });
const dark = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
await dark.page.waitForSelector("#answer li");
await dark.page.screenshot({ path: `${shots}/playground-dark.png` });
await browser.close();
console.log("all well");
