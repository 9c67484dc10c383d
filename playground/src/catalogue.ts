// The bundles that this page offers: bundles.json beside it, written by the server or by the static build.

export interface Offer {
  name: string;
  mechanism: string;
  knob: string; // what the strength is called: λ, b, ε, d
  value: string;
  folder: string; // of the bundle, seen from the page
  url: string | null; // of its cloud half; null: it is computed in the page
}

export async function offers(): Promise<Offer[]> {
  const answer = await fetch("./bundles.json");
  if (!answer.ok) throw new Error(`the list of bundles cannot be loaded (${answer.status}).`);
  const found = (await answer.json()) as { bundles: Offer[] };
  if (found.bundles.length === 0) throw new Error("there is no bundle to play with.");
  return found.bundles;
}

/** Mechanisms without defence, in the order in which one is looked for to compare with. */
export const UNDEFENDED = ["dnn", "split", "none"];

/** What mechanisms are called here, in the order in which they are offered. */
export const TITLES: Record<string, string> = {
  phase: "phase: turned by a secret key, among decoys",
  ran: "ran: features against a decoder",
  filter: "filter: hides one label",
  "filter-linear": "filter-linear: hides one label",
  ars: "ars: shared representations",
  dnn: "dnn: no defence",
  none: "none: the record itself",
};
