// Noise, keys and masks: from the browser's cryptographic source, never from Math.random.

import type { Law } from "./manifest";

/** `count` numbers, uniform on [0, 1), with 53 bits each. */
export function uniform(count: number): Float64Array {
  const found = new Float64Array(count);
  const most = 8192; // getRandomValues gives at most 65,536 bytes
  for (let start = 0; start < count; start += most) {
    const words = new Uint32Array(2 * Math.min(most, count - start));
    crypto.getRandomValues(words);
    for (let i = 0; i < words.length / 2; i++) {
      found[start + i] = ((words[2 * i]! >>> 5) * 2 ** 26 + (words[2 * i + 1]! >>> 6)) / 2 ** 53;
    }
  }
  return found;
}

/** Independent N(0, 1) by Box and Muller. */
export function normal(count: number): Float32Array {
  const half = Math.ceil(count / 2);
  const u = uniform(2 * half);
  const found = new Float32Array(2 * half);
  for (let i = 0; i < half; i++) {
    const radius = Math.sqrt(-2 * Math.log(1 - u[i]!));
    found[i] = radius * Math.cos(2 * Math.PI * u[half + i]!);
    found[half + i] = radius * Math.sin(2 * Math.PI * u[half + i]!);
  }
  return found.slice(0, count);
}

/** `count` numbers of a law that draws them one by one. */
export function draw(law: Law, count: number): Float32Array {
  switch (law) {
    case "normal":
      return normal(count);
    case "uniform":
      return Float32Array.from(uniform(count));
    case "bits":
      return Float32Array.from(uniform(count), (u) => (u < 0.5 ? 0 : 1));
    case "ones":
      return new Float32Array(count).fill(1);
    case "laplace":
      return Float32Array.from(uniform(count), (u) => (u < 0.5 ? Math.log(1 - 2 * u) : -Math.log(2 * u - 1 || 2 ** -53)));
    default:
      throw new Error(`no numbers are drawn one by one for a ${law} matrix.`);
  }
}

/** A d × d matrix from O(d), or SO(d) without `reflections`, row by row: Gram–Schmidt on a normal matrix is Haar. */
export function orthogonal(d: number, reflections: boolean): Float64Array {
  const columns: number[][] = [];
  while (columns.length < d) {
    const column = Array.from(normal(d));
    for (const known of columns) {
      const along = known.reduce((sum, value, i) => sum + value * column[i]!, 0);
      known.forEach((value, i) => (column[i] = column[i]! - along * value));
    }
    const length = Math.hypot(...column);
    if (length > 1e-3) columns.push(column.map((value) => value / length));
  }
  const key = Float64Array.from({ length: d * d }, (_, i) => columns[i % d]![Math.floor(i / d)]!);
  if (!reflections && determinant(key, d) < 0) for (let row = 0; row < d; row++) key[row * d] = -key[row * d]!;
  return key;
}

/** The turn of the plane by an angle in degrees, [[cos, −sin], [sin, cos]]; mirrored, its second column is negative. */
export function turn(degrees: number, mirrored: boolean): Float64Array {
  const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  const sign = mirrored ? -1 : 1;
  return Float64Array.of(c, -s * sign, s, c * sign);
}

/** A whole number below `most`. */
export function below(most: number): number {
  return Math.floor(uniform(1)[0]! * most);
}

export function determinant(matrix: Float64Array, d: number): number {
  const a = Float64Array.from(matrix);
  let product = 1;
  for (let i = 0; i < d; i++) {
    let pivot = i;
    for (let row = i + 1; row < d; row++) if (Math.abs(a[row * d + i]!) > Math.abs(a[pivot * d + i]!)) pivot = row;
    if (pivot !== i) {
      for (let column = 0; column < d; column++) {
        [a[i * d + column], a[pivot * d + column]] = [a[pivot * d + column]!, a[i * d + column]!];
      }
      product = -product;
    }
    product *= a[i * d + i]!;
    for (let row = i + 1; row < d; row++) {
      const factor = a[row * d + i]! / a[i * d + i]!;
      for (let column = i; column < d; column++) a[row * d + column] = a[row * d + column]! - factor * a[i * d + column]!;
    }
  }
  return product;
}
