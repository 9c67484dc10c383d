// What the page shows of tensors, answers and requests.

import type { Sent } from "./cloud";

const DUMPED = 1536;

/** A tensor as a field of cells, dark for low values. */
export function showTensor(canvas: HTMLCanvasElement, values: Float32Array): void {
  const across = Math.ceil(Math.sqrt(values.length));
  const down = Math.ceil(values.length / across);
  const context = canvas.getContext("2d")!;
  const [low, high] = extent(values);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const [w, h] = [canvas.width / across, canvas.height / down];
  values.forEach((value, i) => {
    const level = high > low ? (value - low) / (high - low) : 0.5;
    context.fillStyle = `hsl(${180 - 130 * level} 70% ${15 + 70 * level}%)`;
    context.fillRect((i % across) * w, Math.floor(i / across) * h, Math.ceil(w), Math.ceil(h));
  });
}

function extent(values: Float32Array): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

/** The classes, likeliest first, with bars. */
export function showAnswer(list: HTMLElement, classes: { text: string; share: number }[]): void {
  const top = [...classes].sort((a, b) => b.share - a.share).slice(0, 5);
  list.replaceChildren(
    ...top.map(({ text, share }) => {
      const item = document.createElement("li");
      const name = document.createElement("b");
      name.textContent = text;
      const bar = document.createElement("span");
      bar.className = "bar";
      bar.style.setProperty("--share", String(share));
      const number = document.createElement("span");
      number.textContent = `${(100 * share).toFixed(share > 0.1 ? 0 : 1)} %`;
      item.append(name, bar, number);
      return item;
    }),
  );
}

/** A request as text: its line, its headers, its JSON, and its tensor in hexadecimal. */
export function dump(sent: Sent): string {
  const json = new TextDecoder().decode(sent.body.slice(0, sent.head));
  const headers = Object.entries(sent.headers).map(([name, value]) => `${name}: ${value}`);
  const tensor = sent.body.slice(sent.head);
  const lines: string[] = [];
  for (let at = 0; at < Math.min(tensor.length, DUMPED); at += 16) {
    const bytes = Array.from(tensor.slice(at, at + 16), (byte) => byte.toString(16).padStart(2, "0"));
    lines.push(`${at.toString(16).padStart(6, "0")}  ${bytes.join(" ")}`);
  }
  const rest = tensor.length > DUMPED ? [`… ${(tensor.length - DUMPED).toLocaleString("en")} bytes more`] : [];
  return [`POST ${new URL(sent.url || "/", location.href).pathname}`, ...headers, "", json, "", ...lines, ...rest].join("\n");
}
