export class CorruptRelease extends Error {}
export class Unverified extends Error {}
export class InvalidContext extends Error {}

export type Action = string | number;
/** Columns by name, or a list of numbers, as the schema of the experiment declares. */
export type Context = Readonly<Record<string, unknown>> | readonly number[];
/** An action that only one request has, with its features. */
export type Item = Readonly<Record<string, unknown>> & { readonly id: string };
/** The actions to choose from. */
export type Offer = readonly (Action | Item)[];
/** Two numbers in [0, 1). */
export type Draw = readonly [number, number];

export function canonical(value: unknown): string;
export function verify(text: string, publicKey: string): Promise<Record<string, unknown>>;
export function featuresOf(features: unknown, context: Context): number[];

/** A verified chain of releases, and the policy that it stands for. */
export class Billboard {
  static open(url: string, publicKey: string, headers?: Record<string, string>): Promise<Billboard>;
  static from(documents: string | readonly string[], publicKey: string, current?: number): Promise<Billboard>;
  private constructor();
  /** The document in force; 0 while nothing is released. */
  readonly number: number;
  readonly epoch: number;
  /** What `sample` returns, in the order of `probabilities`. */
  readonly actions: readonly Action[];
  readonly budget: { readonly epsilon: number; readonly delta: number };
  readonly participation: { readonly batches: number; readonly records: number } | null;
  probabilities(context: Context, actions?: Offer): number[];
  sample(context: Context, u?: Draw, actions?: Offer): Action;
}
