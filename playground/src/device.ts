// The device half: from a record to what leaves, and from an answer to class scores.

import { type Manifest, type Port, width } from "./manifest";
import type { Network, Values } from "./programs";
import { below, draw, orthogonal, turn } from "./randomness";

/** What only this page knows of one message. */
export interface Secrets {
  key: Float32Array | null; // with the record's own column first
}

export interface Message {
  payload: Float32Array;
  secrets: Secrets;
}

export interface Choice {
  angle: number; // degrees, where the key is a turn of the plane
  isPrivate: number; // the class of the record's first private label
}

/** Protect one record, (C, H, W) in [0, 1], among `decoys` of the same form. */
export async function protect(
  manifest: Manifest,
  device: Network,
  record: Float32Array,
  decoys: Float32Array[],
  choice: Choice,
): Promise<Message> {
  const inputs: Record<string, Values> = {};
  const secrets: Secrets = { key: null };
  const company = manifest.company;
  const order = company ? shuffled(company.rows) : [0];
  for (const port of device.program.inputs) inputs[port.name] = input(port);
  return { payload: await device.run(inputs), secrets };

  function input(port: Port): Values {
    switch (port.source) {
      case "record":
        return joined([record, ...decoys.slice(0, (company?.rows ?? 1) - 1)]);
      case "company":
        return BigInt64Array.from(order, BigInt);
      case "private":
        return oneHot(manifest, choice.isPrivate, width(port));
      case "drawn":
        if (port.law !== "orthogonal" && port.law !== "rotation") return draw(port.law!, width(port));
        return key(port);
      default:
        throw new Error(`this page cannot give the input ${port.name} (${port.source}).`);
    }
  }

  /** The key of this message; what reads the answer gets it with the record's own column first. */
  function key(port: Port): Float32Array {
    const d = port.shape[1]!;
    const mirrored = port.law === "orthogonal" && below(2) === 1;
    const found = d === 2 ? turn(choice.angle, mirrored) : orthogonal(d, port.law === "orthogonal");
    const own = order.indexOf(0);
    const columns = [own, ...Array.from({ length: d }, (_, i) => i).filter((i) => i !== own)];
    secrets.key = Float32Array.from({ length: d * d }, (_, i) => found[Math.floor(i / d) * d + columns[i % d]!]!);
    return Float32Array.from(found);
  }
}

/** Class scores from the cloud's answer. */
export async function finish(finisher: Network | null, answer: Float32Array, secrets: Secrets): Promise<Float32Array> {
  if (finisher === null) return answer;
  const inputs: Record<string, Values> = {};
  for (const port of finisher.program.inputs) inputs[port.name] = port.source === "answer" ? answer : secrets.key!;
  return finisher.run(inputs);
}

/** How likely each class of the first label is. */
export function likelihoods(manifest: Manifest, scores: Float32Array): { text: string; share: number }[] {
  const classes = manifest.labels[0]?.classes ?? [];
  const first = Array.from(scores.slice(0, classes.length));
  const top = Math.max(...first);
  const weights = first.map((score) => Math.exp(score - top));
  const sum = weights.reduce((a, b) => a + b, 0);
  return classes.map((text, i) => ({ text, share: weights[i]! / sum }));
}

function shuffled(count: number): number[] {
  const found = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const other = below(i + 1);
    [found[i], found[other]] = [found[other]!, found[i]!];
  }
  return found;
}

function joined(parts: Float32Array[]): Float32Array {
  const found = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    found.set(part, place);
    place += part.length;
  }
  return found;
}

function oneHot(manifest: Manifest, chosen: number, length: number): Float32Array {
  const found = new Float32Array(length);
  let place = 0;
  manifest.private.forEach((label, i) => {
    const classes = label.classes?.length ?? 1;
    if (label.classes) found[place + (i === 0 ? chosen : 0)] = 1;
    place += classes;
  });
  return found;
}
