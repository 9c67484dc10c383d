import { describe, expect, it } from "vitest";
import { readAnswer, request } from "../src/cloud";
import { readManifest } from "../src/manifest";
import { dump } from "../src/readout";

const port = (name: string, shape: number[]) => ({ name, dtype: "float32", shape, axis: "batch", source: "payload" });
const document = {
  format: "sfumato-bundle",
  version: 1,
  name: "digits",
  mechanism: "ran",
  programs: {
    device: { file: "device.onnx", sha256: "", inputs: [port("record", [-1, 1, 2, 2])], outputs: [port("payload", [-1, 3])] },
    cloud: { file: "cloud.onnx", sha256: "", inputs: [port("payload", [-1, 3])], outputs: [port("scores", [-1, 2])] },
  },
  preprocessing: { kind: "image", shape: [1, 2, 2] },
  labels: [{ name: "odd", classes: ["no", "yes"] }],
  private: [],
  company: null,
  guarantee: { kind: "empirical", statement: "" },
};

describe("what is sent", () => {
  it("is the payload and its description, and nothing else", () => {
    const manifest = readManifest(JSON.stringify(document));
    const sent = request("/models/digits", manifest, Float32Array.of(1.5, -2, 0.25));
    expect(sent.url).toBe("/models/digits/v2/models/digits/infer");
    expect(sent.headers["inference-header-content-length"]).toBe(String(sent.head));
    const json = JSON.parse(new TextDecoder().decode(sent.body.slice(0, sent.head)));
    expect(json).toEqual({
      inputs: [{ name: "payload", datatype: "FP32", shape: [1, 3], parameters: { binary_data_size: 12 } }],
      outputs: [{ name: "scores", parameters: { binary_data: true } }],
    });
    const view = new DataView(sent.body.buffer, sent.head);
    expect([0, 4, 8].map((at) => view.getFloat32(at, true))).toEqual([1.5, -2, 0.25]);
    expect(sent.body.length).toBe(sent.head + 12);
  });

  it("is shown byte for byte", () => {
    (globalThis as { location?: unknown }).location = { href: "http://127.0.0.1/playground/" };
    const manifest = readManifest(JSON.stringify(document));
    const text = dump(request("", manifest, Float32Array.of(1)));
    expect(text).toContain("POST /v2/models/digits/infer");
    expect(text).toContain("000000  00 00 80 3f");
  });
});

describe("an answer", () => {
  it("is read behind its JSON", () => {
    const json = new TextEncoder().encode('{"outputs":[{"parameters":{"binary_data_size":8}}]}');
    const bytes = new Uint8Array(json.length + 8);
    bytes.set(json);
    new DataView(bytes.buffer).setFloat32(json.length + 4, 7, true);
    expect(Array.from(readAnswer(bytes.buffer, json.length))).toEqual([0, 7]);
    expect(() => readAnswer(bytes.buffer.slice(0, json.length + 4), json.length)).toThrow(/incomplete/);
  });
});

describe("a manifest", () => {
  it("of another version or kind is refused", () => {
    expect(() => readManifest(JSON.stringify({ ...document, version: 2 }))).toThrow(/version 2/);
    expect(() => readManifest(JSON.stringify({ ...document, preprocessing: { kind: "table", shape: [4] } }))).toThrow(/pictures/);
    expect(() => readManifest("{}")).toThrow(/no bundle/);
  });
});
