// Networks in ONNX Runtime, inside this page. A network is loaded once, and only if its digest is the manifest's.

import * as ort from "onnxruntime-web/wasm";
import runtime from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import type { Port, Program } from "./manifest";

ort.env.wasm.wasmPaths = { wasm: runtime };
ort.env.wasm.numThreads = 1; // several need headers that a static page cannot send

export type Values = Float32Array | BigInt64Array;

export class Network {
  private constructor(
    private readonly session: ort.InferenceSession,
    readonly program: Program,
  ) {}

  static async load(folder: string, program: Program): Promise<Network> {
    const answer = await fetch(folder + program.file);
    if (!answer.ok) throw new Error(`${program.file} cannot be loaded (${answer.status}).`);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const wrong = (await digest(bytes)) !== program.sha256;
    if (wrong) throw new Error(`${program.file} is not the file that the manifest describes.`);
    return new Network(await ort.InferenceSession.create(bytes), program);
  }

  /** The first output, for inputs by name. */
  async run(inputs: Record<string, Values>): Promise<Float32Array> {
    const feeds: Record<string, ort.Tensor> = {};
    for (const port of this.program.inputs) {
      const values = inputs[port.name];
      if (values === undefined) throw new Error(`the input ${port.name} is missing.`);
      feeds[port.name] = new ort.Tensor(port.dtype, values as never, [rows(port, values), ...port.shape.slice(1)]);
    }
    const found = await this.session.run(feeds);
    return found[this.program.outputs[0]!.name]!.data as Float32Array;
  }
}

function rows(port: Port, values: Values): number {
  return values.length / port.shape.slice(1).reduce((product, length) => product * length, 1);
}

/** SHA-256, hexadecimal. Browsers give it to pages from https or this machine only. */
async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  if (!crypto.subtle) throw new Error("the browser checks digests on https and localhost only: open the page there.");
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
