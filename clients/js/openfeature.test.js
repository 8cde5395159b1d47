// The provider in the published scenarios of OpenFeature, and what it asks of a service.
// With @openfeature/server-sdk installed here (npm install --no-save) its client evaluates; without
// it, a few lines that call the provider as it does.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { DiscreetProvider } from "./openfeature.js";
import { stubService } from "./stub_service.js";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const scenarios = read("openfeature_scenarios.json");
const { OpenFeature } = await import("@openfeature/server-sdk").catch(() => ({}));
const ANN = { targetingKey: "ann", age: 29, customer: false, email: "ann@example.org" };
const valuesOf = ({ variant, value, others }) => ({ [variant]: value, ...others });
const METHODS = { boolean: "Boolean", string: "String", integer: "Number", float: "Number", object: "Object" };

let domains = 0;
/** A client of OpenFeature whose provider has these flags, which wait for a machine that pauses. */
async function opened(t, flags, options) {
  const patient = Object.entries(flags).map(([name, flag]) => [name, { deadline: 5000, ...flag }]);
  const provider = new DiscreetProvider(Object.fromEntries(patient), options);
  if (OpenFeature) {
    const domain = `domain ${domains++}`;
    t.after(() => OpenFeature.clearProviders());
    await OpenFeature.setProviderAndWait(domain, provider);
    return { provider, client: OpenFeature.getClient(domain) };
  }
  await provider.initialize({});
  const client = { track: (...given) => provider.track(...given) };
  for (const kind of ["Boolean", "String", "Number", "Object"]) {
    client[`get${kind}Details`] = provider[`resolve${kind}Evaluation`];
    client[`get${kind}Value`] = async (...given) => (await client[`get${kind}Details`](...given)).value;
  }
  return { provider, client };
}

/** A service with these actions, which chooses the first. */
async function experiment(t, actions = ["mail", "call"]) {
  const state = { release: 1, unit: "decision", kind: "Loss", features: { fields: [{ name: "age" }, { name: "customer" }] } };
  let decided = 0;
  const service = await stubService(t, {
    "GET /v1/status": () => [200, { serving: state.release, unit: state.unit }],
    "GET /v1/schema": () => [
      200,
      { features: state.features, outcome: { kind: state.kind }, n_actions: actions.length, actions: actions[0] === 0 ? null : actions },
    ],
    "POST /v1/decide": () => [200, { decision: `d${++decided}`, action: actions[0], release: state.release, stored: true }],
    "POST /v1/observe": [200, { stored: true }],
  });
  return Object.assign(service, { state, decided: () => decided });
}

async function until(holds) {
  for (let turn = 0; turn < 2000; turn++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail("it did not happen in time");
}

for (const row of scenarios.static) {
  const { type, flag, value, variant } = row;
  test(`scenario: resolves ${type} value and details`, async (t) => {
    const { client } = await opened(t, { [flag]: { url: "http://127.0.0.1:9", values: valuesOf(row), fixed: variant } });
    const found = await client[`get${METHODS[type]}Details`](flag, row.default);
    assert.deepEqual([found.value, found.variant, found.reason, found.errorCode], [value, variant, "STATIC", undefined]);
    assert.deepEqual(await client[`get${METHODS[type]}Value`](flag, row.default), value);
  });
  test(`scenario: resolves ${type} as an experiment decides`, async (t) => {
    const { url, decided } = await experiment(t, Object.keys(valuesOf(row)));
    const { client } = await opened(t, { [flag]: { url, values: valuesOf(row) } });
    const method = `get${METHODS[type]}Details`;
    const found = await client[method](flag, row.default, ANN);
    assert.deepEqual([found.value, found.variant, found.reason], [value, variant, "SPLIT"]);
    assert.deepEqual(found.flagMetadata, { release: 1, stored: true });
    assert.equal((await client[method](flag, row.default, ANN)).reason, "CACHED");
    assert.equal(decided(), 1);
  });
}

test("scenario: resolves based on context", async (t) => {
  const row = scenarios.context;
  const { url } = await experiment(t, Object.keys(valuesOf(row)));
  const { client } = await opened(t, { [row.flag]: { url, values: valuesOf(row) } });
  const given = { targetingKey: "sulisław", ...row.attributes };
  assert.equal(await client.getStringValue(row.flag, row.default, given), row.value);
  const found = await client.getStringDetails(row.flag, row.default, {});
  assert.deepEqual([found.value, found.errorCode], [row.default, "TARGETING_KEY_MISSING"]);
});

test("scenario: flag not found", async (t) => {
  const { flag, default: value, code } = scenarios.missing;
  const found = await (await opened(t, {})).client.getStringDetails(flag, value, {});
  assert.deepEqual([found.value, found.reason, found.errorCode], [value, "ERROR", code]);
});

test("scenario: type mismatch, which takes no slot", async (t) => {
  const row = scenarios.mismatch;
  const { url, decided } = await experiment(t, Object.keys(valuesOf(row)));
  const { client } = await opened(t, { [row.flag]: { url, values: valuesOf(row) } });
  const found = await client.getNumberDetails(row.flag, row.default, ANN);
  assert.deepEqual([found.value, found.reason, found.errorCode], [row.default, "ERROR", row.code]);
  assert.equal(decided(), 0);
});

test("numbers are values where actions have no names", async (t) => {
  const { client } = await opened(t, { flag: { url: (await experiment(t, [0, 1])).url } });
  const found = await client.getNumberDetails("flag", 7, ANN);
  assert.deepEqual([found.value, found.variant], [0, "0"]);
});

test("one request per person and release, under the name that Python uses", async (t) => {
  const { url, state, decided, sent } = await experiment(t);
  const { client } = await opened(t, { flag: { url } }, { refresh: 0 });
  for (let i = 0; i < 5; i++) assert.equal(await client.getStringValue("flag", "?", ANN), "mail");
  assert.equal(decided(), 1);
  const name = "732a6faa";
  assert.equal(sent("decide")[0].headers["idempotency-key"].slice(0, 8), name);
  state.release = 2;
  await until(async () => (await client.getStringDetails("flag", "?", ANN)).flagMetadata.release === 2);
  assert.equal(decided(), 2);
});

test("after a release a person keeps the new decision, and its outcome is reported", async (t) => {
  const { url, state, decided, sent } = await experiment(t);
  const { client, provider } = await opened(t, { flag: { url } }, { refresh: 0 });
  const ask = () => client.getStringDetails("flag", "?", ANN);
  await ask();
  state.release = 2;
  await until(async () => (await ask()).flagMetadata.release === 2);
  for (let i = 0; i < 3; i++) {
    const found = await ask();
    assert.deepEqual([found.reason, found.flagMetadata.release], ["CACHED", 2]);
  }
  assert.equal(decided(), 2);
  client.track("flag", ANN, { value: 0.25 });
  await provider.onClose();
  assert.deepEqual(sent("observe").map(({ body }) => body), [{ decision: "d2", loss: 0.25 }]);
});

test("only what the experiment needs is sent", async (t) => {
  for (const unit of ["decision", "user"]) {
    const { url, state, sent } = await experiment(t);
    state.unit = unit;
    const { client } = await opened(t, { flag: { url } });
    await client.getStringValue("flag", "?", ANN);
    const expected = { context: { age: 29, customer: false }, sticky: "ann" };
    assert.deepEqual(sent("decide")[0].body, unit === "user" ? { ...expected, user: "ann" } : expected);
  }
  const { url, state, sent } = await experiment(t);
  state.features = { kind: "UnitBall" };
  const { client } = await opened(t, { flag: { url } });
  await client.getStringValue("flag", "?", { targetingKey: "ann", features: [0.5, 0.25] });
  assert.deepEqual(sent("decide")[0].body.context, [0.5, 0.25]);
});

test("whoever counts already is shown the same and counts no more", async (t) => {
  const { url, answers, sent } = await experiment(t);
  const good = { decision: "d", action: "call", release: 1, stored: true };
  answers["POST /v1/decide"] = [[409, { error: { code: "idempotency_key_used" } }], [200, good]];
  const { client, provider } = await opened(t, { flag: { url } });
  const found = await client.getStringDetails("flag", "?", ANN);
  assert.deepEqual([found.value, found.flagMetadata.stored], ["call", false]);
  const [first, second] = sent("decide").map(({ body }) => body);
  assert.deepEqual(second, { ...first, deferred: true });
  client.track("flag", ANN, { value: 1 });
  await provider.onClose();
  assert.equal(sent("observe").length, 0);
});

test("track reports the outcome of the last decision", async (t) => {
  for (const [kind, details, told] of [
    ["Loss", { value: 0.25 }, { loss: 0.25 }],
    ["Reward", { value: 12.5 }, { reward: 12.5 }],
    ["Reward", { value: 99, reward: 3 }, { reward: 3 }],
    ["Loss", { loss: 1, page: "x" }, { loss: 1 }],
  ]) {
    const { url, state, sent } = await experiment(t);
    state.kind = kind;
    const { client, provider } = await opened(t, { flag: { url, event: "purchase" } });
    client.track("purchase", ANN, details); // before any decision
    await client.getStringValue("flag", "?", ANN);
    client.track("flag", ANN, details); // not its event
    client.track("purchase", {}, details);
    client.track("purchase", ANN, {});
    client.track("purchase", ANN, details);
    await provider.onClose();
    assert.deepEqual(sent("observe").map(({ body }) => body), [{ decision: "d1", ...told }]);
  }
});

test("failures have their code and the caller's value", async (t) => {
  for (const [failure, code] of [
    [[422, { error: { code: "i", message: "age: got 29", field: "age" } }], "INVALID_CONTEXT"],
    [[401, {}], "GENERAL"],
    [[500, {}], "GENERAL"],
    [[200, "<html>"], "PARSE_ERROR"],
    [[200, {}], "PARSE_ERROR"],
  ]) {
    const { url, answers } = await experiment(t);
    const { client } = await opened(t, { flag: { url } });
    answers["POST /v1/decide"] = failure;
    const found = await client.getStringDetails("flag", "default", ANN);
    assert.deepEqual([found.value, found.errorCode], ["default", code]);
    assert.doesNotMatch(found.errorMessage, /29/);
  }
  const { url } = await experiment(t);
  const { client } = await opened(t, { flag: { url } });
  const found = await client.getStringDetails("flag", "default", { targetingKey: "ann", age: NaN });
  assert.equal(found.errorCode, "INVALID_CONTEXT");
});

test("a silent service costs at most the deadline", async (t) => {
  const { url, answers } = await experiment(t);
  const { client } = await opened(t, { flag: { url, deadline: 1000 } });
  answers["POST /v1/decide"] = () => new Promise(() => {});
  assert.equal(await client.getStringValue("flag", "default", ANN), "default");
});

test("events, and what is remembered while the service is away", async (t) => {
  const { url, answers, state } = await experiment(t);
  const { client, provider } = await opened(t, { flag: { url } }, { refresh: 0 });
  const heard = [];
  for (const event of ["READY", "STALE", "ERROR", "CONFIGURATION_CHANGED"]) {
    provider.events.addHandler(`PROVIDER_${event}`, () => heard.push(event));
  }
  const ask = () => client.getStringDetails("flag", "?", ANN);
  const hears = (event) => until(async () => (await ask()) && heard.includes(event));
  await ask();
  const status = answers["GET /v1/status"];
  const busy = [503, {}, { "Retry-After": "9" }];
  answers["GET /v1/status"] = answers["POST /v1/decide"] = busy;
  await hears("STALE");
  assert.equal((await ask()).reason, "CACHED");
  answers["GET /v1/status"] = status;
  state.release = 2;
  await hears("CONFIGURATION_CHANGED");
  assert.ok(heard.includes("READY"));
  const found = await ask();
  assert.deepEqual([found.value, found.reason], ["mail", "STALE"]);
  answers["GET /v1/status"] = [401, {}];
  await hears("ERROR");
});

test("a refused key is fatal, silence is not, and every action needs a value", async (t) => {
  const { url, answers } = await experiment(t);
  const begin = (flag) => new DiscreetProvider({ flag: { url, deadline: 5000, ...flag } }).initialize();
  await assert.rejects(begin({ values: { mail: 1 } }), { code: "PROVIDER_FATAL" });
  answers["GET /v1/status"] = [401, {}];
  await assert.rejects(begin(), { code: "PROVIDER_FATAL" });
  answers["GET /v1/status"] = [500, {}];
  await assert.rejects(begin(), { code: "PROVIDER_NOT_READY" });
});

test("a service that is away at the start is found later", async (t) => {
  const { url, answers } = await experiment(t);
  const status = answers["GET /v1/status"];
  answers["GET /v1/status"] = [500, {}];
  const provider = new DiscreetProvider({ flag: { url, deadline: 5000 } }, { refresh: 0 });
  await assert.rejects(provider.initialize());
  const first = await provider.resolveStringEvaluation("flag", "default", ANN);
  assert.deepEqual([first.value, first.errorCode], ["default", "PROVIDER_NOT_READY"]);
  answers["GET /v1/status"] = status;
  await until(async () => (await provider.resolveStringEvaluation("flag", "default", ANN)).value === "mail");
});
