import { describe, expect, it } from "vitest";
import { finish, likelihoods, protect } from "../src/device";
import type { Manifest } from "../src/manifest";
import type { Network, Values } from "../src/programs";
import { bounds, greys, massCentre, meanSquaredError } from "../src/records";

const port = (name: string, shape: number[], source: string, law: string | null = null) =>
  ({ name, dtype: "float32", shape, axis: "batch", source, law }) as never;

/** A network that keeps what it was asked. */
function recorder(inputs: unknown[], answer: number[]): { network: Network; asked: Record<string, Values>[] } {
  const asked: Record<string, Values>[] = [];
  const program = { inputs, outputs: [port("out", [-1, answer.length], "payload")] };
  const run = async (given: Record<string, Values>) => {
    asked.push(given);
    return Float32Array.from(answer);
  };
  return { network: { program, run } as unknown as Network, asked };
}

const manifest = {
  company: { rows: 2, reflections: true },
  private: [{ name: "ge5", classes: ["no", "yes"] }],
  labels: [{ name: "odd", classes: ["no", "yes"] }],
} as unknown as Manifest;

describe("phase in the page", () => {
  it("gives the record its own column of the key back, wherever it stands among its company", async () => {
    const orders = new Set<string>();
    for (let i = 0; i < 30; i++) {
      const { network, asked } = recorder(
        [port("record", [-1, 1, 1, 1], "record"), port("rows", [-1, 2], "company"), port("key", [-1, 2, 2], "drawn", "orthogonal")],
        [0],
      );
      const message = await protect(manifest, network, Float32Array.of(0.5), [Float32Array.of(0.9)], { angle: 30, isPrivate: 0 });
      const { record, rows, key } = asked[0]! as { record: Float32Array; rows: BigInt64Array; key: Float32Array };
      expect(Array.from(record)).toEqual([0.5, Math.fround(0.9)]);
      const order = Array.from(rows, Number);
      orders.add(order.join());
      const own = order.indexOf(0);
      const kept = message.secrets.key!;
      expect([kept[0], kept[2]]).toEqual([key[own], key[2 + own]]);
      const { network: finisher, asked: last } = recorder([port("answer", [-1, 2, 1], "answer"), port("key", [-1, 2, 2], "kept")], [1]);
      await finish(finisher, Float32Array.of(1, 2), message.secrets);
      expect(last[0]!.key).toBe(kept);
    }
    expect(orders).toEqual(new Set(["0,1", "1,0"]));
  });
});

describe("the device half", () => {
  it("is told the private class as one of its classes, and draws noise anew", async () => {
    const { network, asked } = recorder([port("private", [-1, 2], "private"), port("noise", [-1, 8], "drawn", "normal")], [0]);
    const alone = { ...manifest, company: null } as Manifest;
    for (let i = 0; i < 2; i++) await protect(alone, network, Float32Array.of(1), [], { angle: 0, isPrivate: 1 });
    expect(Array.from(asked[0]!.private as Float32Array)).toEqual([0, 1]);
    expect(asked[0]!.noise).not.toEqual(asked[1]!.noise);
  });

  it("turns scores into shares of the classes", () => {
    const found = likelihoods(manifest, Float32Array.of(0, Math.log(3)));
    expect(found.map(({ share }) => share)).toEqual([expect.closeTo(0.25), expect.closeTo(0.75)]);
  });
});

describe("records", () => {
  it("are found by their ink", () => {
    const ink = Float32Array.of(0, 0, 0, 0, 1, 1, 0, 0, 0);
    expect(bounds(ink, 3, 3)).toEqual({ x: 1, y: 1, width: 2, height: 1 });
    expect(bounds(new Float32Array(9), 3, 3)).toBeNull();
    expect(massCentre(ink, 3, 3)).toEqual([2, 1.5]);
  });

  it("are grey by luminance, and errors are means of squares", () => {
    expect(greys([255, 0, 0, 255])[0]).toBeCloseTo(0.299);
    expect(meanSquaredError([0, 1], [1, 1])).toBe(0.5);
  });
});
