// Digits as a hand might write them: strokes on a unit square, slightly different each time.

type Point = [number, number];

const STROKES: Record<string, Point[][]> = {
  "0": [arc(0.5, 0.5, 0.27, 0.38, -90, 270)],
  "1": [[[0.38, 0.26], [0.54, 0.12], [0.54, 0.88]]],
  "2": [[...arc(0.5, 0.33, 0.25, 0.22, -170, 40), [0.26, 0.87], [0.76, 0.86]]],
  "3": [[...arc(0.47, 0.3, 0.23, 0.19, -150, 90), ...arc(0.47, 0.68, 0.26, 0.2, -90, 150)]],
  "4": [[[0.62, 0.12], [0.24, 0.6], [0.8, 0.6]], [[0.62, 0.12], [0.62, 0.9]]],
  "5": [[[0.72, 0.14], [0.35, 0.14], [0.31, 0.46], ...arc(0.47, 0.65, 0.26, 0.22, -110, 140)]],
  "6": [[[0.64, 0.12], [0.4, 0.36], ...arc(0.5, 0.66, 0.23, 0.22, -160, 200)]],
  "7": [[[0.25, 0.16], [0.75, 0.16], [0.45, 0.88]]],
  "8": [[...arc(0.5, 0.3, 0.2, 0.18, 90, 450), ...arc(0.5, 0.69, 0.24, 0.2, -90, 270)]],
  "9": [[...arc(0.5, 0.33, 0.22, 0.21, 0, 360), [0.72, 0.4], [0.64, 0.88]]],
};

function arc(x: number, y: number, a: number, b: number, from: number, to: number): Point[] {
  return Array.from({ length: 25 }, (_, i) => {
    const angle = ((from + ((to - from) * i) / 24) * Math.PI) / 180;
    return [x + a * Math.cos(angle), y + b * Math.sin(angle)] as Point;
  });
}

/** A digit on a square canvas; `hand` are four numbers in [0, 1) for slant, width, thickness and turn. */
export function write(digit: string, side: number, hand: ArrayLike<number>): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d")!;
  context.fillStyle = "black";
  context.fillRect(0, 0, side, side);
  const [slant, wide, thick, turned] = [0.3 * (hand[0]! - 0.3), 0.8 + 0.35 * hand[1]!, 0.06 + 0.03 * hand[2]!, 0.25 * (hand[3]! - 0.5)];
  context.translate(side / 2, side / 2);
  context.rotate(turned);
  context.transform(0.9 * wide, 0, -slant, 0.9, 0, 0);
  Object.assign(context, { strokeStyle: "white", lineWidth: thick * side, lineCap: "round", lineJoin: "round" });
  for (const stroke of STROKES[digit]!) {
    context.beginPath();
    stroke.forEach(([x, y], i) => context[i === 0 ? "moveTo" : "lineTo"]((x - 0.5) * side, (y - 0.5) * side));
    context.stroke();
  }
  return canvas;
}
