// A billboard of discreet: verify what was published, evaluate the policy here, send no context.
//   const board = await Billboard.open("https://example.org", PUBLIC_KEY);
//   const action = board.sample({ age: 41, device: "phone" });
//   const film = films.sample({ age: 41 }, undefined, ["Heat", { id: "new", year: 1999 }]);
// Signatures are checked by the platform: Chrome 137, Firefox 129, Safari 17, Node 20 or later, on
// https or localhost. Where it cannot, Unverified is thrown: show a default action then.

export class CorruptRelease extends Error {} // altered, cut short, reordered, of another service
export class Unverified extends Error {} // this platform cannot check signatures
export class InvalidContext extends Error {} // a context or an offer breaks the rules of the plan

function must(holds, message, Kind = CorruptRelease) {
  if (!holds) throw new Kind(`${message}.`);
}

/** The one text of a document: keys (all ASCII) sorted, no blanks, no decimals. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const pairs = Object.keys(value).sort().map((key) => `${ascii(key)}:${canonical(value[key])}`);
    return `{${pairs.join(",")}}`;
  }
  if (typeof value === "string") return ascii(value);
  const plain = value === null || typeof value === "boolean" || Number.isSafeInteger(value);
  must(plain, "document must hold no decimals; it does. Fetch it again");
  return String(value);
}

const ascii = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, escaped);
const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
const hexOf = (buffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
const encoded = (text) => new TextEncoder().encode(text);
const digest = async (text) => hexOf(await crypto.subtle.digest("SHA-256", encoded(text)));

async function isSigned(text, signature, publicKey) {
  must(/^[0-9a-f]{64}$/.test(publicKey), "public key must be 64 lower-case hex digits", TypeError);
  const secure = globalThis.crypto?.subtle;
  must(secure, "page must be on https or localhost to check signatures; it is not", Unverified);
  if (!/^[0-9a-f]{128}$/.test(signature)) return false;
  const key = await secure
    .importKey("raw", bytesOf(publicKey), "Ed25519", false, ["verify"])
    .catch(() => must(false, "platform must know Ed25519; it does not. Update it", Unverified));
  return secure.verify("Ed25519", key, bytesOf(signature), encoded(text));
}

/** The document of a published text, without its signature; CorruptRelease if anything is off. */
export async function verify(text, publicKey) {
  const signed = await Promise.resolve(text).then(JSON.parse).catch(() => null);
  const whole = signed !== null && typeof signed === "object" && canonical(signed) === text;
  must(whole, "document must be one canonical JSON object; it is not. Fetch it again");
  const { signature, ...document } = signed;
  const genuine = await isSigned(canonical(document), signature, publicKey);
  must(genuine, "document must be signed by the expected key; it is not. Fetch it again");
  const ours = document.format === "discreet-signed-release/1";
  must(ours, "document must be of format discreet-signed-release/1; it is not. Update this file");
  must((document.key ?? publicKey) === publicKey, "genesis must name its own key; it does not");
  must(KINDS.includes(document.kind), "document must be of a known kind; it is not. Update this file");
  return document;
}

const KINDS = ["genesis", "release", "burn", "actions", "restore"];

/** Verified links {digest, document, inner} in order; a restore cuts back to what was kept. What is
 * inside a genesis or a change of actions has a digest of its own, which the next change names. */
async function chainOf(texts, publicKey) {
  let links = [];
  for (const text of texts) {
    const document = await verify(text, publicKey);
    const first = document.kind === "genesis" && document.number === 0;
    must(first !== (links.length > 0), "chain must begin with its one genesis; it does not");
    must(!first || isBounded(document), "genesis must bound what users contribute, and them alone");
    const inside = document.change ?? (first ? document.plan : null);
    const inner = inside && (await digest(canonical(inside)));
    const kept = first ? [] : before(links, document);
    links = [...kept, { digest: await digest(text), document, inner }];
  }
  return links;
}

/** Whether the plan says how often one user contributes, if and only if the unit is a user. */
function isBounded({ unit, plan, max_batches }) {
  const { batches_per_user: M = null, records_per_batch: k = null } = plan;
  const whole = [M, k].every(Number.isInteger) && M > 0 && k > 0;
  const told = unit === "user" ? whole : M === null && k === null;
  return told && max_batches === null && plan.unit === unit;
}

function before(links, { kind, number, epoch, previous, kept, ...rest }) {
  const [first, last] = [links[0].document, links.at(-1)];
  const gap = number - last.document.number; // above 1: a restore after some that we never saw
  let follows = gap === 1 && previous === last.digest;
  if (kind === "restore") {
    links = until(links, kept.number);
    follows = (follows || gap > 1) && links.at(-1).digest === kept.digest;
  }
  follows &&= kind === "restore" ? epoch > last.document.epoch : epoch === last.document.epoch;
  follows &&= ["experiment", "unit", "schema"].every((name) => rest[name] === first[name]);
  must(follows, `document ${number} must follow the one before; it does not`);
  must(kind !== "release" || fits(links, rest.release), "release must have its batch's records");
  must(kind !== "release" || hasBlocks(links, rest.release), "release must have its batch's actions");
  must(kind !== "actions" || isChange(links, rest.change), "change of actions must make sense");
  return links;
}

/** Whether a release has the records of its batch, of a later one if some were burned since the
 * last restore, or fewer by a clock. */
function fits(links, { records }) {
  const { plan } = links[0].document;
  const next = links.filter(({ document }) => document.release).length + 1;
  const burned = links.reduce(
    (count, { document: { kind, burned } }) =>
      kind === "restore" ? 0 : count + (kind === "burn" ? burned.length : 0),
    0,
  );
  if (plan.close_every) return records >= 1 && records <= nominal(plan, next + burned);
  return Array.from({ length: burned + 1 }, (_, k) => nominal(plan, next + k)).includes(records);
}

const releasesOf = (links) => links.map(({ document }) => document.release).filter(Boolean);
const changesOf = (links) => links.map(({ document }) => document.change).filter(Boolean);

/** Whether a release has weights for the actions after some of the changes before it, and for no
 * fewer than the release before. */
function hasBlocks(links, { predictor: { weights } }) {
  const [{ plan }, changes] = [links[0].document, changesOf(links)];
  if (plan.actions?.rows) return weights.shape[0] === 1;
  const before = releasesOf(links).at(-1)?.predictor.weights.shape[0] ?? 0;
  const after = (k) => knownActions(plan, changes.slice(0, k)).blocks;
  const possible = [0, ...changes.keys()].map((_, k) => after(k));
  return weights.shape[0] >= before && possible.includes(weights.shape[0]);
}

/** Whether a change follows those before it, adds what is new and removes what is in use. */
function isChange(links, { number, releases, plan, previous, added, removed, rows, batch }) {
  const [{ document: genesis, inner }, changes] = [links[0], changesOf(links)];
  const items = genesis.plan.actions?.rows;
  const { used } = knownActions(genesis.plan, changes);
  const [gone, joined] = [new Set(removed), new Set(added)];
  const shaped = items ? rows?.shape[1] === items.shape[1] && rows.shape[0] === added.length : !rows;
  let follows = number === changes.length + 1 && releases === releasesOf(links).length;
  follows &&= plan === inner && previous === links.findLast((link) => link.inner).inner;
  follows &&= Boolean(genesis.plan.actions) && gone.size + joined.size > 0;
  follows &&= gone.size === removed.length && joined.size === added.length;
  follows &&= shaped && (batch === null) === Boolean(items) && removed.every((name) => used.has(name));
  return follows && added.every((name) => !used.has(name) || (items && gone.has(name)));
}

/** The actions in use by name, each with its block, or with what reads the features of an item; and
 * how many blocks there are. */
function knownActions({ actions, n_actions }, changes) {
  if (actions?.rows) {
    const reader = ({ rows }, made) => (place) => () =>
      (made ??= rowsOf(decode(rows), rows.shape[1]))[place];
    const own = reader(actions);
    const used = new Map(actions.ids.map((id, place) => [id, own(place)]));
    for (const change of changes) {
      const joined = reader(change);
      change.removed.forEach((id) => used.delete(id));
      change.added.forEach((id, place) => used.set(id, joined(place)));
    }
    return { used, blocks: 1 };
  }
  const places = new Map((actions ?? [...Array(n_actions).keys()]).map((name, place) => [name, place]));
  const gone = new Set();
  for (const { added, removed } of changes) {
    added.filter((name) => !places.has(name)).forEach((name) => places.set(name, places.size));
    added.forEach((name) => gone.delete(name));
    removed.forEach((name) => gone.add(name));
  }
  return { used: new Map([...places].filter(([name]) => !gone.has(name))), blocks: places.size };
}

/** Lengths of the batches of an imported log: each has three quarters of the rows up to its end. */
function logBatches(rows, first, longest) {
  const before = Math.floor(rows / 4) >= first ? Math.floor(rows / 4) : 0;
  const [length, n] = [rows - before, Math.ceil((rows - before) / longest)];
  const parts = Array.from({ length: n }, (_, k) => Math.floor(length / n) + (k < length % n));
  return before ? [...logBatches(before, first, longest), ...parts] : parts;
}

/** B_m, before a horizon cuts it. */
function nominal({ first_batch, growth, longest_batch, imported = 0 }, m) {
  const log = logBatches(imported, first_batch, longest_batch ?? 2 ** 40); // before those of decisions
  if (m <= log.length) return log[m - 1];
  let [n, longest] = [first_batch, longest_batch ?? 2 ** 22];
  for (let k = 1; k < m - log.length && n < longest; k++) n = Math.max(n + 1, Math.ceil(+growth * n));
  return Math.min(n, longest);
}

function until(links, number) {
  const place = links.findIndex((link) => link.document.number === number);
  must(place >= 0, `document ${number} must be in the chain; it is not. Fetch them again`);
  return links.slice(0, place + 1);
}

/** integer · 2^exponent, in two factors: one alone may be below the smallest number. */
const decode = ({ integers, exponent: e }) =>
  integers.map((integer) => integer * 2 ** (e >> 1) * 2 ** (e - (e >> 1)));
const rowsOf = (flat, width) =>
  Array.from({ length: flat.length / width }, (_, i) => flat.slice(i * width, (i + 1) * width));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const dot = (left, right) => sum(left.map((value, i) => value * right[i]));

/** Features (1, c̄)/√2 with c̄ = c / max(1, ‖c‖), of an array or of an object with named fields. */
export function featuresOf(spec, context) {
  const c = spec.kind === "UnitBall" ? plainArray(spec, context) : namedFields(spec, context);
  const top = Math.max(1, ...c.map(Math.abs)); // so that no square overflows
  const unit = c.map((value) => value / top);
  const norm = Math.max(Math.hypot(...unit), 1 / top);
  return [Math.SQRT1_2, ...unit.map((value) => Math.SQRT1_2 * (value / norm))];
}

/** φ(c, a) of the features of a context and of an action: both, and some of their products. */
function jointRow(joint, context, action) {
  const [x, z] = [context.slice(1), action.slice(1)];
  const all = x.flatMap((left) => z.map((right) => left * right));
  const made = folded(joint, all, z.length);
  const share = Math.sqrt(1 / (made.length ? 3 : 2));
  const parts = [...x, ...z, ...made.map((value) => Math.SQRT2 * value)];
  return [Math.SQRT1_2, ...parts.map((value) => share * value)];
}

/** All products, none, those of named pairs of fields, or sums of them with signs ±1. */
function folded({ context, action, interactions }, all, width) {
  if (interactions === "all") return all;
  if (interactions === "none") return [];
  if (Array.isArray(interactions)) {
    const [rows, columns] = [spansOf(context), spansOf(action)];
    return interactions.flatMap(([left, right]) =>
      rows(left).flatMap((i) => columns(right).map((j) => all[i * width + j])),
    );
  }
  const made = new Array(interactions).fill(0);
  const { places, factors } = foldOf(all.length, interactions);
  all.forEach((value, k) => (made[places[k]] += factors[k] * value));
  return made;
}

/** Products are dealt out in the order of a public hash; sums of n are divided by √n. */
function foldOf(count, width) {
  const name = `${count} to ${width}`;
  if (FOLDS.has(name)) return FOLDS.get(name);
  const hashes = Array.from({ length: count }, (_, k) => scrambled(k));
  const order = [...hashes.keys()].sort((i, j) => hashes[i] - hashes[j] || i - j);
  const [places, sizes] = [new Array(count), new Array(width).fill(0)];
  order.forEach((k, rank) => sizes[(places[k] = rank % width)]++);
  const factors = hashes.map((h, k) => (h & 1 ? 1 : -1) / Math.sqrt(sizes[places[k]]));
  FOLDS.set(name, { places, factors });
  return FOLDS.get(name);
}
const FOLDS = new Map();

/** Where a field stands among the numbers of a context or an action, its square included. */
function spansOf({ kind, fields, squares }) {
  if (kind === "UnitBall") return (column) => [column];
  const widths = fields.map(
    (field) =>
      WIDTHS[field.kind](field) + (field.indicator ? 1 : 0) + (squares && field.kind === "Number" ? 1 : 0),
  );
  return (name) => {
    const place = fields.findIndex((field) => field.name === name);
    const start = sum(widths.slice(0, place));
    return Array.from({ length: widths[place] }, (_, k) => start + k);
  };
}

function plainArray({ dimension }, context) {
  const fits = context?.length === dimension && Array.from(context).every(Number.isFinite);
  must(fits, `context must be ${dimension} finite numbers; it is not`, InvalidContext);
  return Array.from(context);
}

function namedFields({ fields, squares, products = [] }, context) {
  const need = (holds, name, rule) =>
    must(holds, `feature ${JSON.stringify(name)} must be ${rule}; it is not`, InvalidContext);
  const named = typeof context === "object" && context !== null && !Array.isArray(context);
  must(named, "context must be an object with named features; it is not", InvalidContext);
  const names = fields.map((field) => field.name);
  for (const name of Object.keys(context)) need(names.includes(name), name, "in the schema");
  const vectors = new Map(); // of each field, its indicator included and its square left out
  const all = fields.flatMap((field) => {
    const { kind, name, stand_in, indicator } = field;
    let value = Object.hasOwn(context, name) ? context[name] : undefined;
    if (isMissing(value)) value = typed(field, stand_in);
    const gap = isMissing(value);
    need(!gap || indicator, name, "given");
    const vector = gap ? new Array(WIDTHS[kind](field)).fill(0) : ENCODERS[kind](field, value, need);
    vectors.set(name, indicator ? [...vector, gap ? 1 : 0] : vector);
    if (!squares || kind !== "Number") return vectors.get(name);
    return [...vectors.get(name), gap ? 0 : 1.5 * vector[0] ** 2 - 0.5];
  });
  const units = new Map(fields.map(({ name, parts }) => [name, parts?.length ?? 1]));
  const squared = squares ? fields.filter(({ kind }) => kind === "Number").length : 0;
  const outer = (left, right) => left.flatMap((value) => right.map((each) => value * each));
  const made = products.flatMap((each) => each.map((name) => vectors.get(name)).reduce(outer));
  const areas = products.map((each) => each.reduce((area, name) => area * units.get(name), 1));
  const length = Math.sqrt(sum([...units.values(), squared, ...areas]));
  return [...all, ...made].map((part) => part / length);
}

const isMissing = (value) => value === undefined || value === null || Number.isNaN(value);
/** The stand-in of a number is written as text, as all decimals are. */
const typed = ({ kind }, value) => (kind === "Number" && value != null ? Number(value) : value);
const isObject = (value) => typeof value === "object" && value !== null;
const oneHot = (width, place) => Array.from({ length: width }, (_, i) => (i === place ? 1 : 0));
const WIDTHS = {
  Number: () => 1,
  Flag: () => 1,
  Category: ({ values, other }) => values.length + (other ? 1 : 0),
  Hashed: ({ width }) => width,
  Date: ({ parts }) => 2 * parts.length,
};

/** (field, value, need) -> coordinates, by the rules of discreet.features. */
const ENCODERS = {
  Number({ name, clip, log, ...field }, value, need) {
    const [low, high] = [Number(field.low), Number(field.high)];
    const number = clip ? Math.min(Math.max(value, low), high) : value;
    const inside = Number.isFinite(value) && number >= low && number <= high;
    need(inside, name, `a number in [${low}, ${high}]`);
    const [at, from, to] = log ? [number, low, high].map(Math.log) : [number, low, high];
    return [2 * ((at - from) / (to - from)) - 1];
  },
  Flag({ name }, value, need) {
    need([true, false, 1, 0].includes(value), name, "true or false, or 1 or 0");
    return [value ? 1 : -1];
  },
  Category({ name, values, other }, value, need) {
    const words = typeof values[0] === "string";
    const alike = words ? typeof value === "string" : Number.isInteger(value);
    need(values.includes(value) || (other && alike), name, `one of ${values.join(", ")}`);
    const place = values.includes(value) ? values.indexOf(value) : values.length;
    return oneHot(values.length + (other ? 1 : 0), place);
  },
  Hashed({ name, width }, value, need) {
    const known = typeof value === "string" || Number.isSafeInteger(value);
    need(known, name, "a word or a whole number below 2**53");
    return oneHot(width, hash(`${name}=${value}`) % width);
  },
  Date({ name, parts }, value, need) {
    const found = typeof value === "string" ? placesOf(value) : {};
    need(parts.every((part) => found[part] !== undefined), name, "an ISO 8601 date, with its time");
    const turns = parts.map((part) => (2 * Math.PI * found[part]) / CYCLES[part]);
    return turns.flatMap((turn) => [Math.cos(turn), Math.sin(turn)]);
  },
};

/** CRC-32 of the UTF-8 bytes, mixed by the finaliser of MurmurHash3. */
function hash(text) {
  let h = -1;
  for (const byte of encoded(text)) {
    h ^= byte;
    for (let bit = 0; bit < 8; bit++) h = (h >>> 1) ^ (h & 1 ? 0xedb88320 : 0);
  }
  return scrambled(~h);
}

/** The finaliser of MurmurHash3. */
function scrambled(h) {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

const CYCLES = { month: 12, day: 31, weekday: 7, hour: 24 };
const DAY = /^([1-9]\d{3})-(\d\d)-(\d\d)/;
const TIME = /^(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/;

/** The place of each part in its cycle, read as written; none for text that is no date. */
function placesOf(text) {
  const [, year, month, day] = DAY.exec(text) ?? [];
  const time = TIME.exec(text.slice(10));
  const date = new Date(Date.UTC(year, month - 1, day)); // NaN if there is no year
  if (!time || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== Number(day)) return {};
  const [hour, minute, second] = time.slice(1, 4).map((each) => Number(each ?? 0));
  if (hour > 23 || minute > 59 || second > 59) return {};
  const places = { month: month - 1, day: day - 1, weekday: (date.getUTCDay() + 6) % 7 };
  return time[1] === undefined ? places : { ...places, hour };
}

const LINKS = {
  identity: (score) => score,
  logistic: (score) => 1 / (1 + Math.exp(-score)),
  clip: (score) => Math.max(Math.min(score, 1), 0),
};

/** All releases so far: scores, losses and radii of what is offered, b: {row, places} for actions
 * with blocks of weights, {rows} of pairs for items with features. */
class Released {
  constructor(plan, releases) {
    Object.assign(this, { nominal: (m) => nominal(plan, m), cache: {} });
    const share = (age) => (plan.half_life ? 2 ** (-age / plan.half_life) : 1);
    this.items = releases.map(({ records, predictor: { link, weights }, gram }, place) => ({
      share: share(releases.length - 1 - place), // what it still counts beside the newest
      records,
      link: LINKS[link],
      weights: rowsOf(decode(weights), weights.shape[1]),
      gram: gram && { ...gram, values: decode(gram.values) },
    }));
    this.remembered = this.items.slice(plan.half_life ? -5 * plan.half_life - 1 : 0);
    this.rounds = sum(this.remembered.map((item) => item.share * item.records));
    const signal = releases.at(-1)?.statistics?.signal;
    this.signal = signal && decode(signal);
  }

  /** The same releases where so many actions are offered: a formula's A. */
  offering = (count) => Object.create(this, { actions: { value: count } });

  /** A release from before an action joined predicts for it the mean over those that it knows. */
  scores(b, item = this.items.at(-1)) {
    const { weights } = item;
    if (b.rows) return b.rows.map((row) => dot(weights[0], row));
    const mean = () => weights[0].map((_, i) => sum(weights.map((each) => each[i])) / weights.length);
    return b.places.map((place) => dot(weights[place] ?? (item.mean ??= mean()), b.row));
  }

  losses = (b, item = this.items.at(-1)) => this.scores(b, item).map(item.link);

  /** r_a = √max(φᵀ(ΣG̃ + I)⁻¹φ, 0). */
  radii(b) {
    const inverses = (this.cache.inverses ??= this.inverseBlocks());
    const square = (row, inverse) => dot(row, inverse ? inverse.map((each) => dot(each, row)) : row);
    const shared = inverses.length === 1;
    const squares = b.rows
      ? b.rows.map((row) => square(row, inverses[0]))
      : b.places.map((place) => square(b.row, inverses[shared ? 0 : place])); // unknown: M = I
    return squares.map((each) => Math.sqrt(Math.max(each, 0)));
  }

  inverseBlocks() {
    const p = this.items.at(-1).weights[0].length;
    const { dense, step, values } = this.items.at(-1).gram;
    const size = dense ? Math.sqrt(values.length) : p;
    const wide = this.items.map(({ gram }) => (dense ? widened(gram.values, size) : gram.values));
    const counted = (place) => this.items.map(({ share }, k) => share * (wide[k][place] ?? 0));
    const total = values.map((_, place) => sum(counted(place)));
    const matrices = rowsOf(rowsOf(total, size), size).map((matrix) => shifted(matrix, 1));
    if (!dense) return matrices.map((matrix) => definiteInverse(matrix, +step));
    const blocks = rowsOf(inverted(matrices[0], false), p);
    return blocks.map((rows, a) => rows.map((row) => row.slice(a * p, (a + 1) * p)));
  }
}

/** A square matrix with zeros for what joined later. */
function widened(values, size) {
  const own = Math.sqrt(values.length);
  const at = (i, j) => (i < own && j < own ? values[i * own + j] : 0);
  return Array.from({ length: size * size }, (_, k) => at(Math.floor(k / size), k % size));
}

const shifted = (matrix, by) =>
  matrix.map((row, i) => row.map((value, j) => (i === j ? value + by : value)));
/** The inverse, after a shift by step·2^j·I for the smallest j that makes it positive definite. */
const definiteInverse = (matrix, step, shift = 0) =>
  inverted(shifted(matrix, shift), true) ?? definiteInverse(matrix, step, 2 * shift || step);

/** Gauss–Jordan: pivots as they come, null unless all are positive; or the largest first. */
function inverted(matrix, definite) {
  const rows = matrix.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))]);
  for (let k = 0; k < rows.length; k++) {
    if (definite && !(rows[k][k] > 0)) return null;
    const sizes = rows.map((row, i) => (i < k ? -1 : Math.abs(row[k])));
    const pivot = definite ? k : sizes.indexOf(Math.max(...sizes));
    [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
    rows[k] = rows[k].map((value) => value / rows[k][k]);
    for (let i = 0; i < rows.length; i++) {
      const factor = rows[i][k];
      if (i !== k) rows[i] = rows[i].map((value, j) => value - factor * rows[k][j]);
    }
  }
  return rows.map((row) => row.slice(rows.length));
}

function softmax(logits) {
  const top = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - top));
  const total = sum(weights);
  return weights.map((weight) => weight / total);
}

const gapWeight = ({ scale, exponent }, { rounds }) => scale * Math.max(1, rounds) ** exponent;
const even = (chosen) => chosen.map((each) => (each ? 1 / chosen.filter(Boolean).length : 0));
/** Even probabilities among the minimisers, up to 1e-12 relative. */
function evenSplit(values) {
  const least = Math.min(...values);
  return even(values.map((value) => value - least <= 1e-12 * (1 + Math.abs(least))));
}

/** share(gap) for each action, and what is left of 1 for the first minimiser. */
function restOnBest(losses, share) {
  const least = Math.min(...losses);
  const shares = losses.map((loss) => share(loss - least));
  shares[losses.indexOf(least)] += 1 - sum(shares);
  return shares;
}

/** {a : g_a − w_a ≤ min_b (g_b + w_b)}. */
function surviving({ width }, released, b) {
  const [scores, radii] = [released.scores(b), released.radii(b)];
  const bar = Math.min(...scores.map((score, a) => score + width * radii[a]));
  return scores.map((score, a) => score - width * radii[a] <= bar);
}

/** Logits after one update with the losses, less a bonus for actions of little mass. */
const updated = (logits, losses, mass, reach, rate) =>
  logits.map((logit, a) => {
    const bonus = Math.min(reach / (1 + mass[a]), 1);
    return logit - rate * Math.max(losses[a] - bonus, 0);
  });

/** (parameters, released, features) -> probabilities, by the formulas of discreet.policies. */
const POLICIES = {
  Uniform: (_, { actions }) => new Array(actions).fill(1 / actions),
  Greedy: (_, released, b) => evenSplit(released.losses(b)),
  SquareCB(parameters, released, b) {
    const gamma = gapWeight(parameters, released);
    return restOnBest(released.losses(b), (gap) => 1 / (released.actions + gamma * gap));
  },
  FastCB(parameters, released, b) {
    const [losses, gamma] = [released.losses(b), gapWeight(parameters, released)];
    const best = Math.min(...losses);
    if (!(best > 0)) return evenSplit(losses);
    return restOnBest(losses, (gap) => best / (released.actions * best + gamma * gap));
  },
  LinUCB({ width }, released, b) {
    const radii = released.radii(b);
    return evenSplit(released.losses(b).map((loss, a) => loss - width * radii[a]));
  },
  RegCB: (parameters, released, b) => even(surviving(parameters, released, b)),
  AdaCB(parameters, released, b) {
    const [alive, gamma] = [surviving(parameters, released, b), gapWeight(parameters, released)];
    const losses = released.losses(b).map((loss, a) => (alive[a] ? loss : Infinity));
    return restOnBest(losses, (gap) => 1 / (alive.filter(Boolean).length + gamma * gap));
  },
  VanillaPO(parameters, released, b) {
    const [losses, { length, rate }] = [released.losses(b), vanilla(parameters, released)];
    const parts = mixture(length).map(([k, weight]) =>
      softmax(losses.map((loss) => -k * (rate * loss))).map((share) => weight * share),
    );
    return losses.map((_, a) => sum(parts.map((part) => part[a])) / length);
  },
  BonusPO({ error_bound, rate_scale, bonus_scale }, released, b) {
    const { actions, items } = released;
    const [previous, length] = [released.nominal(items.length), released.nominal(items.length + 1)];
    const gamma = Math.min(length, Math.sqrt((actions * previous) / error_bound));
    const rate = rate_scale * Math.min(1, Math.sqrt((2 * Math.log(actions)) / length));
    const gaps = released.losses(b).map((loss, _, losses) => loss - Math.min(...losses));
    let [logits, mass] = [gaps.map(() => 0), gaps.map(() => 0)];
    for (let step = 0; step < length; step++) {
      const current = softmax(logits);
      logits = updated(logits, gaps, mass, (2 * bonus_scale * length) / gamma, rate);
      mass = mass.map((each, a) => each + current[a]);
    }
    return mass.map((each) => each / length);
  },
  AdaptivePO(parameters, released, b) {
    const { clear, replay, newest } = adaptive(parameters, released, b);
    return replay.map((share, a) => clear * share + (1 - clear) * newest[a]);
  },
  ReplayBonusPO({ learning_rate, bonus }, released, b) {
    let current = POLICIES.Uniform({}, released);
    let [logits, mass, rounds] = [current.map(() => 0), current.map(() => 0), 0];
    for (const item of released.remembered) {
      const records = item.share * item.records;
      rounds += records;
      const reach = bonus * Math.sqrt(rounds / released.actions);
      const rate = (learning_rate ?? 0.5 / released.actions) * records;
      logits = updated(logits, released.losses(b, item), mass, reach, rate);
      mass = mass.map((each, a) => each + records * current[a]);
      current = softmax(logits);
    }
    return current;
  },
};

/** λ, and the two rules that AdaptivePO chooses between; without a signal λ is 1. */
function adaptive(parameters, released, b) {
  const [clear, ...errors] = released.signal ?? [1];
  const bonus = parameters.bonus / Math.sqrt(1 + released.rounds / 10_000);
  const replay = POLICIES.ReplayBonusPO({ ...parameters, bonus }, released, b);
  if (clear === 1) return { clear, replay, newest: replay };
  const [losses, least] = [released.losses(b), Math.min(...released.losses(b))];
  const error = (place) => parameters.scale * (errors[place] ?? Math.max(...errors));
  const logits = losses.map((loss, i) => -0.5 * ((loss - least) / error(b.places[i])) ** 2);
  return { clear, replay, newest: softmax(logits) };
}

function vanilla({ scale, rollout, error_bound = 1 }, released) {
  const { actions, items } = released;
  const length = released.nominal(items.length + (rollout === "previous" ? 0 : 1));
  return { length, rate: scale * Math.min(1 / actions, 1 / Math.sqrt(actions * length * error_bound)) };
}

/** Nodes k and weights w with Σ w·g(k) = Σ_{k<B} g(k): Gauss rules on dyadic panels. */
function mixture(length, start = 0) {
  if (start === length) return [];
  const stop = Math.min(length, start ? 2 * start : 16);
  const panel = countingRule(stop - start).map(([k, weight]) => [start + k, weight]);
  return [...panel, ...mixture(length, stop)];
}

/** Gauss rule of 14 nodes for Σ_{k<N} g(k), from the discrete Chebyshev polynomials. */
function countingRule(N) {
  if (N <= 16) return Array.from({ length: N }, (_, k) => [k, 1]);
  const beta = (k) => (k ** 2 * (N ** 2 - k ** 2)) / (4 * (4 * k ** 2 - 1));
  const betas = Array.from({ length: 14 }, (_, k) => (k ? beta(k) : 0));
  return betas.map((_, index) => {
    let [low, high] = [-N, N / 2]; // midpoints are never 0, where the count below would fail
    for (let turn = 0; turn < 80; turn++) {
      const x = (low + high) / 2;
      let [below, pivot] = [0, 1];
      for (const each of betas) below += (pivot = -x - each / pivot) < 0 ? 1 : 0; // roots below x
      [low, high] = below > index ? [low, x] : [x, high];
    }
    let [older, old, total] = [0, 1, 1]; // the orthonormal polynomials at the root
    for (let k = 1; k < 14; k++) {
      const now = (low * old - Math.sqrt(betas[k - 1]) * older) / Math.sqrt(betas[k]);
      [older, old, total] = [old, now, total + now ** 2];
    }
    return [low + (N - 1) / 2, N / total];
  });
}

/** The first action whose cumulative probability exceeds u. */
function draw(probabilities, u) {
  let [goal, running] = [u * sum(probabilities), 0];
  return probabilities.slice(0, -1).filter((each) => (running += each) <= goal).length;
}

/** A number in [0, 1) from 53 random bits. */
function uniform() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return ((high >>> 5) * 2 ** 26 + (low >>> 6)) / 2 ** 53;
}

/** A verified chain of releases, and the policy that it stands for. */
export class Billboard {
  /** From the address of a service; ``headers`` may carry an API key. */
  static async open(url, publicKey, headers = {}) {
    const get = async (path) => {
      const answer = await fetch(`${url.replace(/\/$/, "")}/v1/releases${path}`, { headers }).catch((error) => error);
      must(answer.ok, `service must answer; ${url} said ${answer.status ?? answer.cause?.code ?? answer.name}`, Error);
      return answer.text();
    };
    const { releases, current } = JSON.parse(await get(""));
    const texts = await Promise.all(releases.map(({ number }) => get(`/${number}`)));
    return Billboard.from(texts, publicKey, current);
  }

  /** From the texts of all documents in order: a list, or one text with a document a line. */
  static async from(documents, publicKey, current) {
    const texts = typeof documents === "string" ? documents.trimEnd().split("\n") : documents;
    const links = await chainOf(texts, publicKey);
    must(links.length, "documents must begin with a genesis; there are none. Fetch them again");
    return new Billboard(current === undefined ? links : until(links, current));
  }

  constructor(links) {
    const [{ plan }, { number, epoch }] = [links[0].document, links.at(-1).document];
    const releases = releasesOf(links);
    Object.assign(this, { plan, number, epoch, released: new Released(plan, releases) });
    this.used = knownActions(plan, changesOf(links)).used;
    this.actions = [...this.used.keys()];
    const figure = (text) => Number(text.replace("inf", "Infinity"));
    this.budget = { epsilon: figure(plan.budget.epsilon), delta: figure(plan.budget.delta) };
    const { batches_per_user: batches, records_per_batch: records } = plan;
    this.participation = batches ? { batches, records } : null; // how often one user contributes
    this.kind = releases.length ? plan.policy.kind : "Uniform"; // before the first: all alike
    const read = ([name, text]) => [name, name === "rollout" ? text : text && Number(text)];
    this.parameters = Object.fromEntries(Object.entries(plan.policy).map(read));
  }

  /** The probability of each action that is offered, in the order of ``actions``: names, or items
   * {id, …features} that only this request has. Without it all that are in use are offered. */
  probabilities(context, actions) {
    const offer = this.offered(context, actions);
    const least = this.least(offer);
    return this.unfloored(offer).map((p) => (1 - offer.names.length * least) * p + least);
  }

  /** An action, by its name if it has one; two numbers ``u`` in [0, 1) make it repeat. */
  sample(context, u = [uniform(), uniform()], actions) {
    const offer = this.offered(context, actions);
    return offer.names[this.index(offer, u)];
  }

  least = ({ names }) => Math.min(Number(this.plan.floor ?? 0), 1 / names.length);

  unfloored(b) {
    if (b.names.length === 1) return [1];
    return POLICIES[this.kind](this.parameters, this.released.offering(b.names.length), b);
  }

  index(b, [first, second]) {
    const [A, least] = [b.names.length, this.least(b)];
    const even = A * least; // so much of the first draw is shared out evenly
    if (first < even) return Math.min(Math.floor(first / least), A - 1);
    if (least) first = Math.min((first - even) / (1 - even), 1 - 2 ** -24);
    if (this.kind === "AdaptivePO" && A > 1) {
      const rules = adaptive(this.parameters, this.released.offering(A), b);
      return draw(second < rules.clear ? rules.replay : rules.newest, first);
    }
    if (this.kind !== "VanillaPO" || A === 1) return draw(this.unfloored(b), first);
    const { length, rate } = vanilla(this.parameters, this.released.offering(A));
    const k = Math.floor(first * length); // one of its B updates, then one softmax
    const losses = this.released.losses(b);
    return draw(softmax(losses.map((loss) => -(rate * k) * loss)), second);
  }

  /** What a policy reads of a context and an offer. */
  offered(context, actions = this.actions) {
    const need = (holds, rule) => must(holds, `actions must be ${rule}; they are not`, InvalidContext);
    const { features } = this.plan;
    const joint = features.kind === "Joint";
    need(Array.isArray(actions) && actions.length > 0, "a list of one or more");
    const names = actions.map((each) => (joint && isObject(each) ? each.id : each));
    need(new Set(names).size === names.length, "distinct");
    const row = featuresOf(joint ? features.context : features, context);
    const inUse = (name) => this.used.get(name) ?? need(false, "in use, or items with features");
    if (!joint) return { names, row, places: names.map(inUse) };
    const own = ({ id, ...rest }) => {
      need(typeof id === "string" && id !== "" && id === id.trim(), "items with an id, a word");
      need(!this.used.has(id), "in the catalogue without features, or of another id");
      const { kind, fields } = features.action;
      if (kind === "UnitBall") return featuresOf(features.action, rest.features);
      const named = fields.some(({ name }) => name === "id") ? { ...rest, id } : rest;
      return featuresOf(features.action, named);
    };
    const items = actions.map((each) => (isObject(each) ? own(each) : inUse(each)()));
    return { names, rows: items.map((item) => jointRow(features, row, item)) };
  }
}
