// The drawing pad: pointer and touch, white on black. Digits can be written by key.

const PEN = 20;

export class Pad {
  private readonly context: CanvasRenderingContext2D;
  private at: [number, number] | null = null;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly changed: () => void,
  ) {
    this.context = canvas.getContext("2d", { willReadFrequently: true })!;
    this.clear();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.at = this.place(event);
      this.line(this.at);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.at === null) return;
      const to = this.place(event);
      this.line(to);
      this.at = to;
    });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => {
        if (this.at !== null) this.changed();
        this.at = null;
      });
    }
  }

  clear(): void {
    this.context.fillStyle = "black";
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  /** Put another canvas in the place of the drawing. */
  put(picture: HTMLCanvasElement): void {
    this.clear();
    this.context.drawImage(picture, 0, 0, this.canvas.width, this.canvas.height);
  }

  private place(event: PointerEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  private line(to: [number, number]): void {
    Object.assign(this.context, { strokeStyle: "white", lineWidth: PEN, lineCap: "round", lineJoin: "round" });
    this.context.beginPath();
    this.context.moveTo(...(this.at ?? to));
    this.context.lineTo(...to);
    this.context.stroke();
  }
}
