// The HTTP interface of `discreet serve`, for Node and browsers:
//   const client = new Client("https://example.org", { key: "dk_…", deadline: 200, fallback: "none" });
//   const decision = await client.decide({ age: 41, device: "phone" });
//   await client.observe(decision, { loss: 0 });
// Times are in milliseconds. A call ends at its deadline, with all its retries.

import { Billboard } from "./discreet.js";

export * from "./discreet.js";

/** A request that the service refused, with its words, or did not answer: `status` is undefined. */
export class ServiceError extends Error {
  constructor(message, { status, code, field } = {}) {
    super(message);
    Object.assign(this, { name: "ServiceError", status, code, field });
  }
}

const BUSY = [429, 503]; // these ask the client to try again later
const [FIRST_WAIT, LONGEST_WAIT] = [100, 10_000];
const UNREADABLE = "unreadable";

/** Whether the service gave no answer that says what is wrong with the request. */
export function unavailable({ status, code }) {
  return !status || status >= 500 || [408, 429].includes(status) || code === "idempotency_key_used";
}

export class Client {
  #url;
  #headers;
  #publicKey;
  #times;
  #texts = new Map();

  constructor(url, { key, publicKey, timeout = 10_000, retries = 3, deadline, fallback } = {}) {
    if (!/^https?:\/\/./.test(url)) throw new TypeError(`url must begin with http:// or https://; got ${url}.`);
    for (const time of [timeout, deadline ?? 1]) {
      if (!(time > 0)) throw new TypeError(`times must be positive milliseconds; got ${time}.`);
    }
    this.#url = url.replace(/\/$/, "");
    this.#headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    this.#publicKey = publicKey;
    this.#times = { timeout, retries, deadline: deadline ?? Infinity };
    this.fallback = fallback; // an action, or a Billboard that decides here
  }

  /** Choose an action, of `actions` if these are offered (names, or items { id, …features }); with
   * `ranking` the decision has all of them in a sampled order, the chosen one first. It counts once,
   * even after network failures. */
  async decide(context, { user, sticky, deferred, actions, ranking, idempotencyKey = randomName() } = {}) {
    const body = { context, user, sticky, deferred: deferred || undefined, actions, ranking: ranking || undefined };
    try {
      const made = await this.#post("/v1/decide", body, { "Idempotency-Key": idempotencyKey });
      const { decision: id, action, release, stored } = made;
      if (typeof id !== "string") throw unreadable();
      return { id, action, release, stored, fallback: false, ...(ranking && { ranking: made.ranking }) };
    } catch (error) {
      if (this.fallback === undefined || !(error instanceof ServiceError && unavailable(error))) throw error;
      const board = this.fallback instanceof Billboard ? this.fallback : null;
      const [action, release] = board ? [board.sample(context, undefined, actions), board.number] : [this.fallback, -1];
      return { id: "", action, release, stored: false, fallback: true };
    }
  }

  /** A slot for a decision that a Billboard makes; draw with `u` if the ticket has one. */
  async ticket({ user, sticky } = {}) {
    const { ticket: id, ...rest } = await this.#post("/v1/tickets", { user, sticky });
    return { id, ...rest };
  }

  /** Report a loss or a reward, and guardrails by name; a ticket needs its context and action as well. */
  async observe(decision, { loss, reward, context, action, guardrails }) {
    if (decision.fallback) return; // it took no slot
    await this.#post("/v1/observe", { decision: idOf(decision), loss, reward, context, action, guardrails });
  }

  /** Report many: [{ decision, loss }, …]; a status for each, in order. */
  async observeMany(observations) {
    const listed = observations.map((each) => ({ ...each, decision: idOf(each.decision) }));
    return (await this.#post("/v1/observe:batch", { observations: listed })).results;
  }

  /** Say that a deferred decision was shown. */
  async activate(decision) {
    if (!decision.fallback) await this.#post("/v1/activate", { decision: idOf(decision) });
  }

  /** The actions in use whose name contains `part`. */
  actions = (part = "", { limit = 100 } = {}) => this.#get(`/v1/actions?${new URLSearchParams({ q: part, limit })}`);
  status = () => this.#get("/v1/status");
  lift = () => this.#get("/v1/lift");
  releases = () => this.#get("/v1/releases");
  schema = () => this.#get("/v1/schema");
  ledger = () => this.#get("/v1/ledger");

  /** A Billboard of everything that is published now, verified; only what is new is fetched. */
  async refresh() {
    if (this.#publicKey === undefined) throw new TypeError("refresh needs the publicKey of the service's operator.");
    const { releases, current } = await this.releases();
    const texts = await Promise.all(
      // A document that was seen is not fetched again, so that another history does not verify.
      releases.map(({ number }) => this.#texts.get(number) ?? this.#get(`/v1/releases/${number}`, String)),
    );
    const board = await Billboard.from(texts, this.#publicKey, current);
    this.#texts = new Map(releases.map(({ number }, place) => [number, texts[place]]));
    return board;
  }

  #get(path, read) {
    return this.#request("GET", path, undefined, {}, read);
  }

  #post(path, body, headers = {}) {
    return this.#request("POST", path, encoded(body), { "Content-Type": "application/json", ...headers });
  }

  async #request(method, path, body, given, read = asJson) {
    const { timeout, retries, deadline } = this.#times;
    const [end, headers] = [performance.now() + deadline, { ...this.#headers, ...given }];
    for (let attempt = 0; ; attempt++) {
      const left = Math.max(1, Math.ceil(Math.min(timeout, end - performance.now())));
      const signal = AbortSignal.timeout(left);
      const { status, asked, text } = await fetch(this.#url + path, { method, body, headers, signal, redirect: "error" })
        .then(async (answer) => ({
          status: answer.status,
          asked: Number(answer.headers.get("Retry-After") ?? 0) * 1000 || 0,
          text: await answer.text(),
        }))
        .catch((error) => ({ asked: 0, text: reasonOf(error) }));
      if (status < 300) return read(text);
      const wait = Math.min(Math.max(FIRST_WAIT * 2 ** attempt * (0.5 + Math.random() / 2), asked), LONGEST_WAIT);
      const again = status === undefined || BUSY.includes(status);
      if (!again || attempt === retries || performance.now() + wait >= end) {
        throw status === undefined ? silence(method, this.#url + path, attempt, text) : refusal(status, text);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

const idOf = (decision) => (typeof decision === "string" ? decision : decision.id);

function randomName() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** JSON of a body; what JSON cannot say is refused, since it would arrive as null. */
function encoded(body) {
  return JSON.stringify(body, (_, value) => {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new TypeError("numbers must be finite; one is not.");
    }
    return value;
  });
}

const unreadable = () =>
  new ServiceError("answer must be that of discreet serve; it is not.", { code: UNREADABLE });

function asJson(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    throw unreadable();
  }
}

/** Why there was no answer: the code of the system, such as ECONNREFUSED, where the platform tells it. */
const reasonOf = ({ name, cause }) => cause?.code ?? cause?.errors?.[0]?.code ?? name;

function silence(method, url, attempt, why) {
  const { origin, pathname } = new URL(url); // without what may be secret
  const advice =
    why === "ECONNREFUSED"
      ? "Nothing listens there: start discreet serve, or correct the address."
      : "Check that it runs and the address is right.";
  const message = `service must answer; ${method} ${origin}${pathname} failed ${attempt + 1} times (${why}). ${advice}`;
  return new ServiceError(message, { code: why });
}

function refusal(status, text) {
  try {
    const { code, message, field } = JSON.parse(text).error;
    return new ServiceError(String(message), { status, code, field });
  } catch {
    const message = `request must succeed; the service answered ${status}. Ask its operator.`;
    return new ServiceError(message, { status });
  }
}
