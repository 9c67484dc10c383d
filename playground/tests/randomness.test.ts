import { describe, expect, it } from "vitest";
import { determinant, draw, normal, orthogonal, turn, uniform } from "../src/randomness";

const mean = (values: ArrayLike<number>): number => Array.from(values).reduce((a, b) => a + b, 0) / values.length;

describe("randomness", () => {
  it("draws uniform numbers below one, more than one call of the source gives", () => {
    const found = uniform(20_000);
    expect(Math.min(...found)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...found)).toBeLessThan(1);
    expect(mean(found)).toBeCloseTo(0.5, 1);
  });

  it("draws normal numbers of mean 0 and deviation 1", () => {
    const found = normal(40_001);
    expect(found.length).toBe(40_001);
    expect(Math.abs(mean(found))).toBeLessThan(0.03);
    expect(mean(found.map((value) => value * value))).toBeCloseTo(1, 1);
  });

  it("draws Laplace numbers of mean 0, mean distance 1", () => {
    const found = draw("laplace", 40_000);
    expect(Math.abs(mean(found))).toBeLessThan(0.04);
    expect(mean(found.map(Math.abs))).toBeCloseTo(1, 1);
    expect(Array.from(found).every(Number.isFinite)).toBe(true);
  });

  it("draws bits and ones as they are called", () => {
    expect(new Set(draw("bits", 200))).toEqual(new Set([0, 1]));
    expect(Array.from(draw("ones", 3))).toEqual([1, 1, 1]);
  });

  it("makes orthogonal keys, with and without reflections", () => {
    const signs = new Set<number>();
    for (let i = 0; i < 40; i++) {
      const key = orthogonal(3, true);
      for (let a = 0; a < 3; a++) {
        for (let b = 0; b < 3; b++) {
          const product = [0, 1, 2].reduce((sum, row) => sum + key[row * 3 + a]! * key[row * 3 + b]!, 0);
          expect(product).toBeCloseTo(a === b ? 1 : 0, 5);
        }
      }
      signs.add(Math.sign(determinant(key, 3)));
      expect(determinant(orthogonal(3, false), 3)).toBeCloseTo(1, 5);
    }
    expect(signs).toEqual(new Set([-1, 1]));
  });

  it("turns the plane by the angle of the dial", () => {
    expect(Array.from(turn(90, false)).map(Math.round).map((v) => v + 0)).toEqual([0, -1, 1, 0]);
    expect(determinant(turn(33, true), 2)).toBeCloseTo(-1, 6);
  });
});
