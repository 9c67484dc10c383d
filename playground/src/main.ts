import { type Offer, offers, TITLES, UNDEFENDED } from "./catalogue";
import { type Cloud, Here, type Sent, Server } from "./cloud";
import { finish, likelihoods, protect } from "./device";
import { type Manifest, readManifest } from "./manifest";
import { Pad } from "./pad";
import { Network } from "./programs";
import { below, uniform } from "./randomness";
import { dump, showAnswer, showTensor } from "./readout";
import { fromDrawing, fromPicture, meanSquaredError, show } from "./records";
import { write } from "./strokes";

interface Loaded {
  manifest: Manifest;
  device: Network;
  finisher: Network | null;
  attacker: Network | null;
  cloud: Cloud | null;
}

const get = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const mechanism = get<HTMLSelectElement>("mechanism");
const strength = get<HTMLSelectElement>("strength");
const known = get<HTMLSelectElement>("private");
const dial = get<HTMLInputElement>("dial");
const status = get("status");

let all: Offer[] = [];
let picture: ImageBitmap | null = null; // an opened picture takes the place of the drawing
let latest = 0;
const loaded = new Map<string, Promise<Loaded>>();
const pad = new Pad(get<HTMLCanvasElement>("pad"), () => {
  picture = null;
  void run();
});

function load(offer: Offer): Promise<Loaded> {
  const known = loaded.get(offer.name);
  if (known) return known;
  const found = (async (): Promise<Loaded> => {
    const answer = await fetch(`${offer.folder}manifest.json`);
    if (!answer.ok) throw new Error(`${offer.name}: the manifest cannot be loaded (${answer.status}).`);
    const manifest = readManifest(await answer.text());
    const network = (name: "device" | "cloud" | "finish" | "attacker"): Promise<Network> | null => {
      const program = manifest.programs[name];
      return program ? Network.load(offer.folder, program) : null;
    };
    const cloud = manifest.programs.cloud
      ? offer.url === null
        ? new Here(manifest, (await network("cloud"))!)
        : new Server(offer.url, manifest)
      : null;
    const [device, finisher, attacker] = await Promise.all([network("device"), network("finish"), network("attacker")]);
    return { manifest, device: device!, finisher, attacker, cloud };
  })();
  loaded.set(offer.name, found);
  found.catch(() => loaded.delete(offer.name));
  return found;
}

function chosen(): Offer {
  return all.find((offer) => offer.mechanism === mechanism.value && offer.value === strength.value) ?? all[0]!;
}

function record(shape: number[]): Float32Array {
  return picture === null ? fromDrawing(pad.canvas, shape) : fromPicture(picture, shape);
}

/** Written digits that stand in for other records of this device. */
function decoys(count: number, shape: number[]): Float32Array[] {
  return Array.from({ length: count }, () => fromDrawing(write(String(below(10)), 280, uniform(4)), shape));
}

async function run(): Promise<void> {
  const turn = ++latest;
  try {
    const { manifest, device, finisher, attacker, cloud } = await load(chosen());
    fitControls(manifest);
    const shape = manifest.preprocessing.shape;
    const x = record(shape);
    const choice = { angle: Number(dial.value), isPrivate: Number(known.value || 0) };
    const message = await protect(manifest, device, x, decoys((manifest.company?.rows ?? 1) - 1, shape), choice);
    if (turn !== latest) return;
    showTensor(get<HTMLCanvasElement>("payload"), message.payload);
    const form = manifest.programs.device!.outputs[0]!.shape.slice(1).join(" × ");
    get("payload-note").textContent = `${form} numbers, ${(4 * message.payload.length).toLocaleString("en")} bytes`;
    await Promise.all([answered(manifest, cloud, finisher, message, turn), attacked(attacker, message.payload, x, shape, turn)]);
    if (turn === latest) status.textContent = "";
  } catch (error) {
    if (turn === latest) status.textContent = error instanceof Error ? error.message : String(error);
  }
}

async function answered(
  manifest: Manifest,
  cloud: Cloud | null,
  finisher: Network | null,
  message: Awaited<ReturnType<typeof protect>>,
  turn: number,
): Promise<void> {
  if (cloud === null) {
    get("answer").replaceChildren();
    get("answer-note").textContent = "This mechanism trains no receiver: whoever gets the release trains one.";
    return;
  }
  const answer = await cloud.ask(message.payload, (sent) => report(sent, cloud.remote));
  const scores = await finish(finisher, answer, message.secrets);
  if (turn !== latest) return;
  showAnswer(get("answer"), likelihoods(manifest, scores));
  get("answer-note").textContent = finisher
    ? "The answer comes back turned as well; this page turns it back."
    : `${manifest.labels[0]?.name ?? ""}, computed from what left.`;
}

function report(sent: Sent, remote: boolean): void {
  get("network").textContent = dump(sent);
  const size = sent.body.length.toLocaleString("en");
  get("network-summary").textContent = remote
    ? `One request, ${size} bytes: the protected tensor and nothing else. The input, noise and keys stay here.`
    : `There is no server behind this page: the cloud half runs here as well. These ${size} bytes would be sent.`;
}

async function attacked(
  attacker: Network | null,
  payload: Float32Array,
  x: Float32Array,
  shape: number[],
  turn: number,
): Promise<void> {
  const open = all.find((offer) => offer.mechanism === UNDEFENDED.find((name) => all.some((o) => o.mechanism === name)));
  if (attacker) {
    const rebuilt = await attacker.run({ [attacker.program.inputs[0]!.name]: payload });
    if (turn !== latest) return;
    show(get<HTMLCanvasElement>("rebuilt"), rebuilt, shape);
    get("rebuilt-error").textContent = `error ${meanSquaredError(rebuilt, x).toFixed(3)}`;
  }
  if (!open) return;
  const { manifest, device, attacker: plain } = await load(open);
  if (!plain) return;
  const features = await protect(manifest, device, x, [], { angle: 0, isPrivate: 0 });
  const seen = await plain.run({ [plain.program.inputs[0]!.name]: features.payload });
  if (turn !== latest) return;
  show(get<HTMLCanvasElement>("open"), seen, shape);
  get("open-error").textContent = `error ${meanSquaredError(seen, x).toFixed(3)}`;
  get("attack-note").textContent =
    `Computed in this page by trained decoders. The picture without protection is made from features (${open.mechanism}) that are never sent.`;
}

function fitControls(manifest: Manifest): void {
  const turned = manifest.company?.rows === 2;
  get("dial-label").hidden = !turned;
  const label = manifest.programs.device!.inputs.some((port) => port.source === "private") ? manifest.private[0] : undefined;
  get("private-label").hidden = !label?.classes;
  if (label?.classes && known.dataset.of !== manifest.name) {
    const before = known.value;
    known.replaceChildren(...label.classes.map((text, i) => option(String(i), `${label.name}: ${text}`)));
    known.value = label.classes[Number(before)] ? before || "0" : "0";
    known.dataset.of = manifest.name;
  }
  get("guarantee").textContent = `${manifest.guarantee.kind}: ${manifest.guarantee.statement}`;
}

function option(value: string, text: string): HTMLOptionElement {
  const found = document.createElement("option");
  [found.value, found.textContent] = [value, text];
  return found;
}

function fillStrengths(): void {
  const own = all.filter((offer) => offer.mechanism === mechanism.value);
  strength.replaceChildren(...own.map((offer) => option(offer.value, offer.knob ? `${offer.knob} = ${offer.value}` : "–")));
  strength.disabled = own.length < 2;
}

function writeDigit(digit: string): void {
  picture = null;
  pad.put(write(digit, pad.canvas.width, uniform(4)));
  void run();
}

async function openPicture(file: File): Promise<void> {
  try {
    picture = await createImageBitmap(file);
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = pad.canvas.width;
    const side = Math.min(picture.width, picture.height);
    const [x, y] = [(picture.width - side) / 2, (picture.height - side) / 2];
    canvas.getContext("2d")!.drawImage(picture, x, y, side, side, 0, 0, canvas.width, canvas.height);
    pad.put(canvas);
    await run();
  } catch {
    status.textContent = `${file.name} is no picture that this browser can open.`;
  }
}

function listen(): void {
  mechanism.addEventListener("change", () => {
    fillStrengths();
    void run();
  });
  strength.addEventListener("change", () => void run());
  known.addEventListener("change", () => void run());
  dial.addEventListener("input", () => {
    get("dial-value").textContent = `${dial.value}°`;
    void run();
  });
  get("clear").addEventListener("click", () => {
    picture = null;
    pad.clear();
    void run();
  });
  get("sample").addEventListener("click", () => writeDigit(String(below(10))));
  get<HTMLInputElement>("file").addEventListener("change", (event) => {
    const file = (event.target as HTMLInputElement).files?.[0];
    if (file) void openPicture(file);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey || event.altKey;
    if (typing) return;
    if (/^\d$/.test(event.key)) writeDigit(event.key);
    if (event.key === "Delete") get("clear").click();
  });
}

/** Everything that the page has fetched or could fetch is kept, so that it works without a connection. */
async function keep(): Promise<void> {
  if (!("serviceWorker" in navigator) || !isSecureContext) return;
  const own = performance.getEntriesByType("resource").map((entry) => entry.name);
  const build = [...own].sort().join("|");
  const version = Array.from(build).reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) >>> 0, 7);
  await navigator.serviceWorker.register(`./sw.js?v=${version}`);
  const worker = (await navigator.serviceWorker.ready).active;
  const files: string[] = [];
  for (const offer of all) {
    const { manifest } = await load(offer);
    const programs = Object.entries(manifest.programs).filter(([name]) => name !== "cloud" || offer.url === null);
    files.push(`${offer.folder}manifest.json`, ...programs.map(([, program]) => offer.folder + program!.file));
  }
  const here = [location.pathname, "./", "./bundles.json", ...own.filter((url) => url.startsWith(location.origin)), ...files];
  navigator.serviceWorker.addEventListener("message", () => (document.documentElement.dataset.kept = "yes"));
  worker?.postMessage(here.map((url) => new URL(url, location.href).href));
}

async function start(): Promise<void> {
  try {
    all = await offers();
  } catch (error) {
    status.textContent = error instanceof Error ? error.message : String(error);
    return;
  }
  const order = Object.keys(TITLES);
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  const names = [...new Set(all.map((offer) => offer.mechanism))].sort((a, b) => place(a) - place(b));
  mechanism.replaceChildren(...names.map((name) => option(name, TITLES[name] ?? name)));
  fillStrengths();
  listen();
  writeDigit("7");
  await load(chosen()).catch(() => undefined);
  document.documentElement.dataset.ready = "yes";
  await keep().catch(() => undefined);
}

void start();
