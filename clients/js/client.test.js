// The client: what it sends, what it sends again, when it gives up, and what it does then.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";

import { Billboard, Client, CorruptRelease, ServiceError } from "./client.js";
import { stubService } from "./stub_service.js";

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));
const GOOD = { decision: "d1", action: "mail", release: 3, stored: true };
const DECIDE = "POST /v1/decide";
const never = () => new Promise(() => {});

test("one experiment of a server of many, by its address", async (t) => {
  const { url, asked } = await stubService(t, {
    "POST /v1/experiments/welcome/v1/decide": [200, GOOD],
    "GET /v1/experiments/welcome/v1/status": [200, { experiment: "welcome" }],
  });
  const client = new Client(`${url}/v1/experiments/welcome/`, { key: "dk_1_x" });
  assert.equal((await client.decide([0.5])).action, "mail");
  assert.deepEqual(await client.status(), { experiment: "welcome" });
  assert.equal(asked.length, 2);
});

test("decide, observe, activate, tickets", async (t) => {
  const ticket = { ticket: "t1", release: 4, stored: true, action: null, u: [0.25, 0.5] };
  const { url, asked } = await stubService(t, {
    [DECIDE]: [200, GOOD],
    "POST /v1/observe": [200, { stored: true }],
    "POST /v1/observe:batch": [200, { results: [{ status: 200 }] }],
    "POST /v1/activate": [200, {}],
    "POST /v1/tickets": [200, ticket],
  });
  const client = new Client(`${url}/`, { key: "dk_1_x", deadline: 5000 });
  const decision = await client.decide({ age: 41 }, { user: "u", sticky: "s", deferred: true });
  assert.deepEqual(decision, { id: "d1", action: "mail", release: 3, stored: true, fallback: false });
  await client.observe(decision, { loss: 0.5, guardrails: { complaints: 1, latency: null } });
  assert.deepEqual(await client.observeMany([{ decision, reward: 2 }]), [{ status: 200 }]);
  await client.activate("d9");
  const found = await client.ticket({ sticky: "s" });
  assert.deepEqual(found, { id: "t1", release: 4, stored: true, action: null, u: [0.25, 0.5] });
  await client.observe(found, { loss: 1, context: [0.5], action: 0 });
  assert.deepEqual(asked.map(({ body }) => body), [
    { context: { age: 41 }, user: "u", sticky: "s", deferred: true },
    { decision: "d1", loss: 0.5, guardrails: { complaints: 1, latency: null } },
    { observations: [{ decision: "d1", reward: 2 }] },
    { decision: "d9" },
    { sticky: "s" },
    { decision: "t1", loss: 1, context: [0.5], action: 0 },
  ]);
  assert.ok(asked.every(({ headers }) => headers.authorization === "Bearer dk_1_x"));
});

test("questions", async (t) => {
  const names = ["status", "lift", "releases", "schema", "ledger"];
  const answers = Object.fromEntries(names.map((name) => [`GET /v1/${name}`, [200, { name }]]));
  const client = new Client((await stubService(t, answers)).url);
  for (const name of names) assert.deepEqual(await client[name](), { name });
});

test("offers, rankings and the actions in use", async (t) => {
  const ranking = ["call", "mail"];
  const { url, asked } = await stubService(t, {
    [DECIDE]: [200, { ...GOOD, ranking }],
    "GET /v1/actions?q=a%26b&limit=5": [200, { actions: ["a&b"] }],
  });
  const client = new Client(url);
  const offer = ["mail", { id: "new", price: 3 }];
  assert.deepEqual((await client.decide([1], { actions: offer, ranking: true })).ranking, ranking);
  assert.ok(!("ranking" in (await client.decide([1], { actions: offer }))));
  assert.deepEqual(asked.map(({ body }) => body), [
    { context: [1], actions: offer, ranking: true },
    { context: [1], actions: offer },
  ]);
  assert.deepEqual(await client.actions("a&b", { limit: 5 }), { actions: ["a&b"] });
});

test("a refused connection is named, with the address and what to do", async (t) => {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve)); // now nothing listens there
  const client = new Client(`http://127.0.0.1:${port}/v1/experiments/welcome`, { retries: 1 });
  await assert.rejects(client.decide([1]), (error) => {
    assert.ok(error instanceof ServiceError);
    assert.deepEqual([error.code, error.status], ["ECONNREFUSED", undefined]);
    const said = `POST http://127.0.0.1:${port}/v1/experiments/welcome/v1/decide failed 2 times (ECONNREFUSED)`;
    assert.ok(error.message.includes(`${said}. Nothing listens there: start discreet serve`), error.message);
    return true;
  });
  assert.equal((await new Client(`http://127.0.0.1:${port}`, { retries: 0, fallback: 7 }).decide([1])).action, 7);
  const open = Billboard.open(`http://127.0.0.1:${port}`, vectors.key);
  await assert.rejects(open, /127\.0\.0\.1:\d+ said ECONNREFUSED/);
});

test("what may pass is sent again under the same name", async (t) => {
  const { url, asked } = await stubService(t, { [DECIDE]: [[503, {}], [null], [429, {}], [200, GOOD]] });
  assert.equal((await new Client(url).decide([1])).id, "d1");
  assert.equal(asked.length, 4);
  assert.equal(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size, 1);
});

test("other refusals are final and carry the words of the service", async (t) => {
  const error = { code: "invalid_context", message: "age must be a number.", field: "age" };
  const { url, asked } = await stubService(t, { [DECIDE]: [422, { error }] });
  await assert.rejects(new Client(url, { fallback: 0 }).decide([1]), (caught) => {
    const { status, code, field, message } = caught;
    assert.deepEqual({ status, code, field, message }, { status: 422, ...error });
    return caught instanceof ServiceError;
  });
  assert.equal(asked.length, 1);
});

test("a call ends at its deadline", async (t) => {
  const { url } = await stubService(t, { [DECIDE]: never });
  await assert.rejects(new Client(url, { deadline: 50 }).decide([1]), /failed 1 times \(TimeoutError\)/);
});

test("an answer that stops in the middle ends at the deadline too", async (t) => {
  const cut = [200, JSON.stringify(GOOD), { "Content-Length": "9999" }];
  const { url } = await stubService(t, { [DECIDE]: cut });
  await assert.rejects(new Client(url, { deadline: 50, retries: 0 }).decide([1]), ServiceError);
});

test("no attempt begins after the deadline", async (t) => {
  const { url, asked } = await stubService(t, { [DECIDE]: [503, {}, { "Retry-After": "9" }] });
  await assert.rejects(new Client(url, { deadline: 5000 }).decide([1]), { status: 503 });
  assert.equal(asked.length, 1);
});

test("a fallback instead of an answer, of which nothing is sent", async (t) => {
  const gone = { error: { code: "idempotency_key_used", message: "over" } };
  for (const failure of [[503, {}], [500, {}], [null], [409, gone], [200, "<html>"], [200, {}]]) {
    const { url, asked } = await stubService(t, { [DECIDE]: failure });
    const client = new Client(url, { fallback: "none", retries: 0 });
    const decision = await client.decide([1]);
    assert.deepEqual(decision, { id: "", action: "none", release: -1, stored: false, fallback: true });
    await client.observe(decision, { loss: 1 });
    await client.activate(decision);
    assert.equal(asked.length, 1);
  }
});

test("verified releases decide without the service", async (t) => {
  const { documents, contexts } = vectors.cases.find((each) => each.name === "SquareCB");
  const listed = { current: documents.length - 1, releases: documents.map((_, number) => ({ number })) };
  const answers = Object.fromEntries(documents.map((text, at) => [`GET /v1/releases/${at}`, [200, text]]));
  answers["GET /v1/releases"] = [200, listed];
  const { url, asked } = await stubService(t, { ...answers, [DECIDE]: [503, {}] });
  const client = new Client(url, { publicKey: vectors.key, retries: 0 });
  client.fallback = await client.refresh();
  assert.ok(client.fallback instanceof Billboard);
  const { action, release, stored, fallback } = await client.decide(contexts[0]);
  assert.deepEqual([release, stored, fallback], [documents.length - 1, false, true]);
  assert.ok(client.fallback.actions.includes(action));
  const offered = { actions: [client.fallback.actions.at(-1)] };
  assert.equal((await client.decide(contexts[0], offered)).action, offered.actions[0]);
  const before = asked.length;
  await client.refresh();
  assert.equal(asked.length, before + 1); // the list alone
});

test("another history is refused", async (t) => {
  const [one, other] = vectors.cases;
  const list = (documents) => [200, { current: 0, releases: documents.slice(0, 1).map((_, number) => ({ number })) }];
  const service = await stubService(t, {
    "GET /v1/releases": list(one.documents),
    "GET /v1/releases/0": [200, one.documents[0]],
  });
  const client = new Client(service.url, { publicKey: vectors.key });
  await client.refresh();
  service.answers["GET /v1/releases"] = [200, { current: 1, releases: [{ number: 0 }, { number: 1 }] }];
  service.answers["GET /v1/releases/0"] = [200, other.documents[0]];
  service.answers["GET /v1/releases/1"] = [200, other.documents[1]];
  if (one.documents[0] === other.documents[0]) return assert.fail("the cases must differ");
  await assert.rejects(client.refresh(), CorruptRelease);
});

test("what JSON cannot say is refused here", async (t) => {
  const { url, asked } = await stubService(t);
  await assert.rejects(new Client(url, { fallback: 0 }).decide({ age: NaN }), TypeError);
  await assert.rejects(new Client(url).observe("d", { loss: Infinity }), TypeError);
  assert.equal(asked.length, 0);
});

test("mistakes in the options", async () => {
  for (const url of ["", "localhost:8000", "ftp://host"]) assert.throws(() => new Client(url), TypeError);
  for (const deadline of [0, -1, NaN]) {
    assert.throws(() => new Client("http://h", { deadline }), TypeError);
  }
  await assert.rejects(new Client("http://h").refresh(), /publicKey/);
});

for (const name of ["discreet", "client", "openfeature"]) {
  test(`every export has its type: ${name}`, async () => {
    const read = (file) => readFileSync(new URL(`${file}.d.ts`, import.meta.url), "utf8");
    const types = read("discreet") + read(name);
    for (const each of Object.keys(await import(`./${name}.js`))) {
      assert.match(types, new RegExp(`export .*\\b${each}\\b`), each);
    }
  });
}
