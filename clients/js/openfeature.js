// An OpenFeature provider for @openfeature/server-sdk: an evaluation is a decision, a tracked event
// is its loss or reward.
//   const flags = { greeting: { url: "https://example.org", key: "dk_…" } };
//   await OpenFeature.setProviderAndWait(new DiscreetProvider(flags));
// A person, named by the targeting key, keeps the decision until a new release is served.

import { Client, ServiceError, unavailable } from "./client.js";

const REMEMBERED = 100_000; // people of a flag; whoever asked longest ago is forgotten first
const WAITING = 10_000; // requests beside evaluations; more are dropped, so that memory stays bounded
const [READY, STALE, ERROR, CHANGED] = ["READY", "STALE", "ERROR", "CONFIGURATION_CHANGED"].map(
  (name) => `PROVIDER_${name}`,
);
const TYPES = {
  boolean: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  object: (value) => typeof value === "object" && value !== null,
};

/** An error that becomes the details of an evaluation. */
class FlagError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Handlers of events, as OpenFeature calls them. */
class Events {
  #handlers = new Map();
  getHandlers = (event) => [...(this.#handlers.get(event) ?? [])];
  addHandler = (event, handler) => this.#handlers.set(event, [...this.getHandlers(event), handler]);
  removeHandler = (event, handler) =>
    this.#handlers.set(event, this.getHandlers(event).filter((each) => each !== handler));
  removeAllHandlers = (event) => (event ? this.#handlers.delete(event) : this.#handlers.clear());
  emit = (event, details) => this.getHandlers(event).forEach((handler) => handler(details));
}

/** One flag: what its service says of itself, and what was shown to whom. */
class Flag {
  facts = null;
  state = READY;
  looked = performance.now();
  #looking = null;
  #held = new Map();

  constructor(name, { url, key, values, fixed, event = name, deadline = 500 }) {
    Object.assign(this, { name, values, fixed, event });
    this.client = new Client(url, { key, deadline });
  }

  value(action, type) {
    const value = this.values ? this.values[action] : action;
    if (TYPES[type](value)) return value;
    throw new FlagError("TYPE_MISMATCH", "flag must be evaluated as the type of its values; it is not.");
  }

  /** Ask which release is served; one at a time, so that no older answer comes last. */
  look() {
    this.#looking ??= this.#look().finally(() => (this.#looking = null));
    return this.#looking;
  }

  async #look() {
    const [status, schema] = await Promise.all([this.client.status(), this.client.schema()]);
    if (!schema.features || status.serving === undefined) throw new ServiceError("status must be that of discreet serve; it is not.");
    const actions = schema.actions ?? Array.from({ length: schema.n_actions }, (_, action) => action);
    if (this.values && !actions.every((action) => action in this.values)) {
      throw new TypeError(`values of flag ${this.name} must have every action of the experiment, ${actions.join(", ")}.`);
    }
    const changed = this.facts !== null && this.facts.release !== status.serving;
    const outcome = schema.outcome.kind === "Reward" ? "reward" : "loss";
    const columns = columnsOf(schema.features);
    this.facts = { release: status.serving, byUser: status.unit === "user", actions, outcome, columns };
    return changed;
  }

  held(person) {
    return this.#held.get(person);
  }

  /** The decision for a person and OpenFeature's reason; the same until a release comes. */
  async decide({ targetingKey: person, ...attributes }) {
    const [held, facts] = [this.held(person), this.facts];
    if (held?.release === facts.release) return [held.decision, "CACHED"];
    let decision;
    try {
      decision = await this.#asked(facts, person, attributes);
    } catch (error) {
      if (held && error instanceof ServiceError && unavailable(error)) return [held.decision, "STALE"];
      throw error;
    }
    this.#held.delete(person); // so that it becomes the newest
    this.#held.set(person, { decision, release: facts.release });
    if (this.#held.size > REMEMBERED) this.#held.delete(this.#held.keys().next().value);
    return [decision, "SPLIT"];
  }

  async #asked({ release, byUser, columns }, person, attributes) {
    const known = Object.entries(attributes).filter(([name]) => columns?.includes(name));
    const context = columns ? Object.fromEntries(known) : attributes.features;
    const given = { user: byUser ? person : undefined, sticky: person };
    // Other processes ask under the same name, so that a person takes one slot for each release.
    const idempotencyKey = await hashed(`${this.name}\0${release}\0${person}`);
    try {
      return await this.client.decide(context, { ...given, idempotencyKey });
    } catch (error) {
      if (error.code !== "idempotency_key_used") throw error;
    }
    // The person counts in a batch that is over: show the same, and let it count no more.
    return { ...(await this.client.decide(context, { ...given, deferred: true })), stored: false };
  }
}

export class DiscreetProvider {
  runsOn = "server";
  metadata = { name: "discreet" };
  hooks = [];
  events = new Events();
  #flags;
  #refresh;
  #sending = new Set();

  /** `flags` says which experiment decides which flag; `refresh` is in milliseconds. */
  constructor(flags, { refresh = 60_000 } = {}) {
    this.#flags = new Map(Object.entries(flags).map(([name, each]) => [name, new Flag(name, each)]));
    this.#refresh = refresh;
  }

  /** Ask every experiment what it is; fails if one does not answer. */
  async initialize() {
    for (const flag of this.#flags.values()) {
      if (flag.fixed !== undefined) continue;
      flag.state = ERROR;
      await flag.look().catch((error) => {
        const code = isRefused(error) ? "PROVIDER_FATAL" : "PROVIDER_NOT_READY";
        throw new FlagError(code, `flag ${flag.name}: ${error.message}`);
      });
      flag.state = READY;
    }
  }

  /** Wait until the outcomes under way are sent. */
  async onClose() {
    await Promise.allSettled([...this.#sending]);
  }

  resolveBooleanEvaluation = (name, value, context) => this.#resolve("boolean", name, value, context);
  resolveStringEvaluation = (name, value, context) => this.#resolve("string", name, value, context);
  resolveNumberEvaluation = (name, value, context) => this.#resolve("number", name, value, context);
  resolveObjectEvaluation = (name, value, context) => this.#resolve("object", name, value, context);

  /** Report an outcome for the flags of this event; returns at once. */
  track(name, context, details = {}) {
    for (const flag of this.#flags.values()) {
      const held = flag.held(context?.targetingKey);
      const { loss, reward, value } = details;
      const named = loss !== undefined || reward !== undefined;
      if (name !== flag.event || !held?.decision.stored || !(named || value !== undefined)) continue;
      const outcome = named ? { loss, reward } : { [flag.facts.outcome]: value };
      this.#beside(() => flag.client.observe(held.decision, outcome));
    }
  }

  async #resolve(type, name, fallback, context = {}) {
    try {
      return await this.#resolved(type, name, context);
    } catch (error) {
      const { code, message } = asFlagError(error);
      return { value: fallback, reason: "ERROR", errorCode: code, errorMessage: message };
    }
  }

  async #resolved(type, name, context) {
    const flag = this.#flags.get(name);
    if (!flag) throw new FlagError("FLAG_NOT_FOUND", `flag must be one of the provider's; ${name} is not.`);
    if (flag.fixed !== undefined) {
      return { value: flag.value(flag.fixed, type), reason: "STATIC", variant: String(flag.fixed) };
    }
    this.#lookAgain(flag);
    if (!flag.facts) throw new FlagError("PROVIDER_NOT_READY", "experiment must have answered once; it has not yet.");
    for (const action of flag.facts.actions) flag.value(action, type); // before a slot is taken
    if (!context.targetingKey) throw new FlagError("TARGETING_KEY_MISSING", "context must have a targeting key; it has none.");
    const [{ action, release, stored }, reason] = await flag.decide(context);
    return { value: flag.value(action, type), reason, variant: String(action), flagMetadata: { release, stored } };
  }

  /** Ask for a newer release beside this evaluation, if it is time. */
  #lookAgain(flag) {
    const [now, wait] = [performance.now(), flag.facts ? this.#refresh : Math.min(1000, this.#refresh)];
    if (now - flag.looked < wait) return;
    flag.looked = now;
    this.#beside(() => this.#look(flag));
  }

  async #look(flag) {
    let [changed, state, message] = [false, READY, undefined];
    try {
      changed = await flag.look();
    } catch (error) {
      state = !flag.facts || isRefused(error) ? ERROR : STALE;
      message = `flag ${flag.name}: ${error.message}`;
    }
    const before = flag.state;
    flag.state = state;
    const all = [...this.#flags.values()].every((each) => each.state === state);
    if (state !== before && (message || all)) this.events.emit(state, { flagsChanged: [flag.name], message });
    if (changed) this.events.emit(CHANGED, { flagsChanged: [flag.name] });
  }

  /** Nobody waits for it, and a loss that is refused disturbs nobody. */
  #beside(work) {
    if (this.#sending.size >= WAITING) return;
    const kept = work().catch(() => {}).finally(() => this.#sending.delete(kept));
    this.#sending.add(kept);
  }
}

const isRefused = (error) => !(error instanceof ServiceError) || [401, 403].includes(error.status);

/** The words of the service may repeat a value, and applications log these messages. */
function asFlagError(error) {
  if (error instanceof FlagError) return error;
  if (error instanceof TypeError) return new FlagError("INVALID_CONTEXT", "attributes must be numbers, text and lists; some are not.");
  if (!(error instanceof ServiceError) || error.code === "unreadable") {
    return new FlagError("PARSE_ERROR", "answer must be that of discreet serve; it is not.");
  }
  const { status, code, field } = error;
  if (status === 422) {
    return new FlagError("INVALID_CONTEXT", `context must fit the schema of the experiment; ${field ?? "a field"} does not.`);
  }
  return new FlagError("GENERAL", `experiment must decide; it did not (${code ?? status ?? "no answer"}).`);
}

/** The names of a context's columns; undefined if it is a list of numbers, the attribute features. */
function columnsOf({ fields, context }) {
  return fields ? fields.map(({ name }) => name) : context && columnsOf(context);
}

async function hashed(text) {
  const buffer = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
