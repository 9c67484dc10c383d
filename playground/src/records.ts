// Between pictures and records: what a canvas shows becomes numbers in [0, 1], channels first.

const BOX = 20 / 28; // digits of the usual sets fill this part of the picture

/** A drawing (white strokes on black) as the usual sets of digits have it: scaled to a box, its mass in the middle. */
export function fromDrawing(canvas: HTMLCanvasElement, shape: number[]): Float32Array {
  const [channels, height, width] = shape as [number, number, number];
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  const ink = greys(context.getImageData(0, 0, canvas.width, canvas.height).data);
  const box = bounds(ink, canvas.width, canvas.height);
  if (box === null) return new Float32Array(channels * height * width);
  const small = blank(width, height);
  const scale = (BOX * Math.min(width, height)) / Math.max(box.width, box.height);
  const [w, h] = [Math.max(1, Math.round(box.width * scale)), Math.max(1, Math.round(box.height * scale))];
  const scaled = shrunk(canvas, box, w, h);
  const [x, y] = massCentre(greys(scaled.getContext("2d")!.getImageData(0, 0, w, h).data), w, h);
  small.drawImage(scaled, Math.round(width / 2 - x), Math.round(height / 2 - y));
  const found = greys(small.getImageData(0, 0, width, height).data);
  return repeated(found, channels);
}

/** A photograph: its central square, in the record's size and colours. */
export function fromPicture(picture: CanvasImageSource & { width: number; height: number }, shape: number[]): Float32Array {
  const [channels, height, width] = shape as [number, number, number];
  const side = Math.min(picture.width, picture.height);
  const box = { x: (picture.width - side) / 2, y: (picture.height - side) / 2, width: side, height: side };
  const small = shrunk(picture, box, width, height);
  const data = small.getContext("2d")!.getImageData(0, 0, width, height).data;
  if (channels === 1) return greys(data);
  const found = new Float32Array(3 * width * height);
  for (let i = 0; i < width * height; i++) for (let c = 0; c < 3; c++) found[c * width * height + i] = data[4 * i + c]! / 255;
  return found;
}

/** Numbers in [0, 1] as pixels of a canvas. */
export function show(canvas: HTMLCanvasElement, values: ArrayLike<number>, shape: number[]): void {
  const [channels, height, width] = shape as [number, number, number];
  const small = blank(width, height);
  const image = small.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) {
      image.data[4 * i + c] = 255 * Math.min(1, Math.max(0, values[(channels === 3 ? c : 0) * width * height + i]!));
    }
    image.data[4 * i + 3] = 255;
  }
  small.putImageData(image, 0, 0);
  const context = canvas.getContext("2d")!;
  context.imageSmoothingEnabled = false;
  context.drawImage(small.canvas, 0, 0, canvas.width, canvas.height);
}

/** The luminance of RGBA pixels, in [0, 1]. */
export function greys(data: ArrayLike<number>): Float32Array {
  return Float32Array.from(
    { length: data.length / 4 },
    (_, i) => (0.299 * data[4 * i]! + 0.587 * data[4 * i + 1]! + 0.114 * data[4 * i + 2]!) / 255,
  );
}

/** The rectangle that holds what is not black, or null. */
export function bounds(
  ink: Float32Array,
  width: number,
  height: number,
): { x: number; y: number; width: number; height: number } | null {
  let [left, right, top, bottom] = [width, -1, height, -1];
  ink.forEach((value, i) => {
    if (value <= 0.1) return;
    const [x, y] = [i % width, Math.floor(i / width)];
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
  });
  return right < 0 ? null : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

/** The centre of mass, in pixels. */
export function massCentre(ink: Float32Array, width: number, height: number): [number, number] {
  let [x, y, mass] = [0, 0, 0];
  ink.forEach((value, i) => {
    x += value * ((i % width) + 0.5);
    y += value * (Math.floor(i / width) + 0.5);
    mass += value;
  });
  return mass === 0 ? [width / 2, height / 2] : [x / mass, y / mass];
}

export function meanSquaredError(one: ArrayLike<number>, other: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += (one[i]! - other[i]!) ** 2;
  return sum / one.length;
}

function repeated(values: Float32Array, times: number): Float32Array {
  const found = new Float32Array(values.length * times);
  for (let i = 0; i < times; i++) found.set(values, i * values.length);
  return found;
}

function blank(width: number, height: number): CanvasRenderingContext2D {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = "black";
  context.fillRect(0, 0, width, height);
  return context;
}

/** A part of a picture in another size, halved step by step so that thin strokes stay. */
function shrunk(
  picture: CanvasImageSource,
  box: { x: number; y: number; width: number; height: number },
  width: number,
  height: number,
): HTMLCanvasElement {
  let [w, h] = [Math.ceil(box.width), Math.ceil(box.height)];
  let context = blank(w, h);
  context.drawImage(picture, box.x, box.y, box.width, box.height, 0, 0, w, h);
  while (w > 2 * width && h > 2 * height) {
    const next = blank(Math.ceil(w / 2), Math.ceil(h / 2));
    next.drawImage(context.canvas, 0, 0, next.canvas.width, next.canvas.height);
    [context, w, h] = [next, next.canvas.width, next.canvas.height];
  }
  const last = blank(width, height);
  last.drawImage(context.canvas, 0, 0, width, height);
  return last.canvas;
}
