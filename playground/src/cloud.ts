// The cloud half: at a server over the Open Inference Protocol v2, or, in the static build, in this page as well.

import { type Manifest, width } from "./manifest";
import type { Network } from "./programs";

/** A request as it goes over the network. */
export interface Sent {
  url: string;
  headers: Record<string, string>;
  body: Uint8Array<ArrayBuffer>;
  head: number; // bytes of JSON at the start of the body
}

export interface Cloud {
  readonly remote: boolean;
  ask(payload: Float32Array, seen: (sent: Sent) => void): Promise<Float32Array>;
}

/** The request for one payload: JSON, then the tensor as little-endian bytes. */
export function request(url: string, manifest: Manifest, payload: Float32Array): Sent {
  const port = manifest.programs.cloud!.inputs[0]!;
  const output = manifest.programs.cloud!.outputs[0]!;
  const shape = [payload.length / width(port), ...port.shape.slice(1)];
  const tensor = new Uint8Array(payload.length * 4);
  const view = new DataView(tensor.buffer);
  payload.forEach((value, i) => view.setFloat32(4 * i, value, true));
  const parameters = { binary_data_size: tensor.length };
  const json = new TextEncoder().encode(
    JSON.stringify({
      inputs: [{ name: port.name, datatype: "FP32", shape, parameters }],
      outputs: [{ name: output.name, parameters: { binary_data: true } }],
    }),
  );
  const body = new Uint8Array(json.length + tensor.length);
  body.set(json);
  body.set(tensor, json.length);
  return {
    url: `${url}/v2/models/${manifest.name}/infer`,
    headers: { "content-type": "application/octet-stream", "inference-header-content-length": String(json.length) },
    body,
    head: json.length,
  };
}

/** The first tensor of an answer. */
export function readAnswer(bytes: ArrayBuffer, head: number): Float32Array {
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 0, head))) as {
    outputs: { parameters?: { binary_data_size?: number } }[];
  };
  const size = json.outputs[0]?.parameters?.binary_data_size;
  if (size === undefined || head + size > bytes.byteLength) throw new Error("the server's answer is incomplete.");
  const view = new DataView(bytes, head, size);
  return Float32Array.from({ length: size / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

export class Server implements Cloud {
  readonly remote = true;

  constructor(
    private readonly url: string,
    private readonly manifest: Manifest,
  ) {}

  async ask(payload: Float32Array, seen: (sent: Sent) => void): Promise<Float32Array> {
    const sent = request(this.url, this.manifest, payload);
    seen(sent);
    const answer = await fetch(sent.url, { method: "POST", headers: sent.headers, body: sent.body });
    if (!answer.ok) {
      const { error } = (await answer.json().catch(() => ({ error: `error ${answer.status}` }))) as { error: string };
      throw new Error(`the server says: ${error}`);
    }
    const head = Number(answer.headers.get("inference-header-content-length"));
    return readAnswer(await answer.arrayBuffer(), head);
  }
}

export class Here implements Cloud {
  readonly remote = false;

  constructor(
    private readonly manifest: Manifest,
    private readonly network: Network,
  ) {}

  async ask(payload: Float32Array, seen: (sent: Sent) => void): Promise<Float32Array> {
    seen(request("", this.manifest, payload));
    return this.network.run({ [this.network.program.inputs[0]!.name]: payload });
  }
}
