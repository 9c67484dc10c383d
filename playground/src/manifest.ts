// A bundle as docs/bundle.md describes it: what this page needs of manifest.json, read and checked.

export type Source = "record" | "private" | "drawn" | "company" | "payload" | "answer" | "kept" | "class";
export type Law = "normal" | "laplace" | "uniform" | "bits" | "ones" | "orthogonal" | "rotation";

export interface Port {
  name: string;
  dtype: "float32" | "int64";
  shape: number[]; // the first length is free: -1
  axis: string;
  source?: Source;
  law?: Law | null;
}

export interface Program {
  file: string;
  sha256: string;
  inputs: Port[];
  outputs: Port[];
}

export interface Label {
  name: string;
  classes?: string[];
  number?: { mean: number; deviation: number };
}

export interface Company {
  rows: number;
  reflections: boolean;
}

export interface Manifest {
  name: string;
  mechanism: string;
  programs: Partial<Record<"device" | "cloud" | "finish" | "attacker", Program>>;
  preprocessing: { kind: string; shape: number[] };
  labels: Label[];
  private: Label[];
  company: Company | null;
  guarantee: { kind: string; statement: string };
}

const VERSION = 1;

/** What is wrong with a document that should be a manifest, or the manifest. */
export function readManifest(text: string): Manifest {
  const found = JSON.parse(text) as Partial<Manifest> & { format?: string; version?: number };
  if (found.format !== "sfumato-bundle") throw new Error("this is no bundle of sfumato.");
  if (found.version !== VERSION) throw new Error(`the bundle has version ${found.version}; this page reads ${VERSION}.`);
  if (!found.programs?.device) throw new Error(`${found.name}: the bundle has no device half.`);
  if (found.preprocessing?.kind !== "image") {
    throw new Error(`${found.name}: this page takes pictures, and the bundle wants ${found.preprocessing?.kind}.`);
  }
  return found as Manifest;
}

/** How many numbers one row of a port has. */
export function width(port: Port): number {
  return port.shape.slice(1).reduce((product, length) => product * length, 1);
}
