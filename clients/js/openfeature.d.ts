import type { EvaluationContext, JsonValue, Provider, ResolutionDetails, TrackingEventDetails } from "@openfeature/server-sdk";
import { Action } from "./discreet.js";

export interface ExperimentFlag {
  url: string;
  key?: string;
  /** The value of each action; without them the value is the action itself. */
  values?: Readonly<Record<string, JsonValue>>;
  /** An action that everybody gets without asking. */
  fixed?: Action;
  /** The tracking event that reports outcomes; by default the flag's name. */
  event?: string;
  /** Milliseconds for one request; 500 by default. */
  deadline?: number;
}

export class DiscreetProvider implements Provider {
  constructor(flags: Readonly<Record<string, ExperimentFlag>>, options?: { refresh?: number });
  readonly runsOn: "server";
  readonly metadata: { readonly name: "discreet" };
  readonly hooks: [];
  readonly events: NonNullable<Provider["events"]>;
  initialize(): Promise<void>;
  onClose(): Promise<void>;
  resolveBooleanEvaluation(name: string, value: boolean, context: EvaluationContext): Promise<ResolutionDetails<boolean>>;
  resolveStringEvaluation(name: string, value: string, context: EvaluationContext): Promise<ResolutionDetails<string>>;
  resolveNumberEvaluation(name: string, value: number, context: EvaluationContext): Promise<ResolutionDetails<number>>;
  resolveObjectEvaluation<T extends JsonValue>(name: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>>;
  track(name: string, context: EvaluationContext, details: TrackingEventDetails): void;
}
