import { Action, Billboard, Context, Draw, Item, Offer } from "./discreet.js";

export * from "./discreet.js";

export class ServiceError extends Error {
  constructor(message: string, told?: { status?: number; code?: string; field?: string });
  /** The HTTP status; undefined without an answer. */
  readonly status?: number;
  /** Of the service; without an answer the reason, such as ECONNREFUSED. */
  readonly code?: string;
  readonly field?: string;
}

/** Whether the service gave no answer that says what is wrong with the request. */
export function unavailable(error: { status?: number; code?: string }): boolean;

export interface ClientOptions {
  /** An API key, `dk_…`. */
  key?: string;
  /** Of the operator, for `refresh`: 64 hex digits. */
  publicKey?: string;
  /** Milliseconds for one attempt. */
  timeout?: number;
  retries?: number;
  /** Milliseconds for a whole call with its retries. */
  deadline?: number;
  /** What `decide` answers if the service does not. */
  fallback?: Action | Billboard;
}

export interface Decision {
  readonly id: string;
  readonly action: Action;
  /** The document whose policy chose; −1 for a fallback action. */
  readonly release: number;
  readonly stored: boolean;
  readonly fallback: boolean;
  /** Of `ranking: true`: all that was offered in a sampled order, the chosen action first. */
  readonly ranking?: readonly Action[];
}

export interface Ticket {
  readonly id: string;
  readonly release: number;
  readonly stored: boolean;
  /** Of the control share: play this one. */
  readonly action: Action | null;
  /** Of a sticky ticket: draw with it. */
  readonly u: Draw | null;
}

export interface Outcome {
  loss?: number;
  reward?: number;
  /** Of the plan's guardrails, by name; null or left out where one is not known. */
  guardrails?: Record<string, number | null>;
  /** With a ticket only. */
  context?: Context;
  action?: Action | Item;
}

export interface Result {
  status: number;
  stored?: boolean;
  error?: { code: string; message: string; field?: string };
}

type Answer = Promise<Record<string, unknown>>;

export class Client {
  constructor(url: string, options?: ClientOptions);
  fallback?: Action | Billboard;
  decide(
    context: Context,
    options?: {
      user?: string;
      sticky?: string;
      deferred?: boolean;
      actions?: Offer;
      ranking?: boolean;
      idempotencyKey?: string;
    },
  ): Promise<Decision>;
  ticket(options?: { user?: string; sticky?: string }): Promise<Ticket>;
  observe(decision: Decision | Ticket | string, outcome: Outcome): Promise<void>;
  observeMany(
    observations: readonly (Outcome & { decision: Decision | string })[],
  ): Promise<Result[]>;
  activate(decision: Decision | string): Promise<void>;
  /** Everything that is published, verified; decides without the service. */
  refresh(): Promise<Billboard>;
  actions(part?: string, options?: { limit?: number }): Answer;
  status(): Answer;
  lift(): Answer;
  releases(): Answer;
  schema(): Answer;
  ledger(): Answer;
}
