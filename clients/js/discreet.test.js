// The client against the vectors of the Python package, and against everything that is broken.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import * as discreet from "./discreet.js";
import { Billboard, CorruptRelease, InvalidContext, Unverified } from "./discreet.js";

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));
const EXACT = 1e-12;

function assertClose(found, expected, name) {
  assert.equal(found.length, expected.length, name);
  found.forEach((value, a) => assert.ok(Math.abs(value - expected[a]) <= EXACT, `${name}: ${a}`));
}

for (const { name, documents, contexts, probabilities, actions } of vectors.cases) {
  test(`the same probabilities and actions: ${name}`, async () => {
    const board = await Billboard.from(documents, vectors.key);
    assert.equal(board.number, documents.length - 1);
    assert.equal(board.actions.length, probabilities[0].length);
    contexts.forEach((context, row) => {
      assertClose(board.probabilities(context), probabilities[row], name);
      const sampled = vectors.draws.map((u) => board.sample(context, u));
      assert.deepEqual(sampled, actions[row]);
    });
  });
}

for (const { name, documents, known, offers, refused } of vectors.offers) {
  test(`the same from what is offered: ${name}`, async () => {
    const board = await Billboard.from(documents, vectors.key);
    assert.deepEqual(board.actions, known);
    offers.forEach(({ context, actions, probabilities, sampled }, row) => {
      const offer = actions ?? undefined;
      assertClose(board.probabilities(context, offer), probabilities, `${name}: ${row}`);
      const found = vectors.draws.map((u) => board.sample(context, u, offer));
      assert.deepEqual(found, sampled, `${name}: ${row}`);
    });
    for (const offer of refused) {
      const said = JSON.stringify(offer);
      assert.throws(() => board.sample(offers[0].context, undefined, offer), InvalidContext, said);
    }
  });
}

for (const { name, documents, number, releases } of vectors.histories) {
  test(`a chain that holds: ${name}`, async () => {
    const board = await Billboard.from(documents.join("\n"), vectors.key);
    assert.deepEqual([board.number, board.released.items.length], [number, releases]);
  });
}

for (const { unit, documents, epsilon, delta, participation } of vectors.budgets) {
  test(`what all releases may cost one ${unit}`, async () => {
    const board = await Billboard.from(documents, vectors.key);
    assert.deepEqual(board.budget, { epsilon, delta });
    assert.deepEqual(board.participation, participation);
  });
}

for (const { name, documents } of vectors.broken) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(Billboard.from(documents, vectors.key), CorruptRelease);
  });
}

test("a flipped bit anywhere is refused", async () => {
  const { documents } = vectors.cases.find((each) => each.name === "LinUCB, logistic");
  const bytes = new TextEncoder().encode(documents.at(-1));
  for (let place = 0; place < bytes.length; place++) {
    const altered = Uint8Array.from(bytes);
    altered[place] ^= 1 << (place % 7); // stays ASCII
    const text = new TextDecoder().decode(altered);
    await assert.rejects(discreet.verify(text, vectors.key), CorruptRelease, `byte ${place}`);
  }
  await discreet.verify(documents.at(-1), vectors.key);
});

test("canonical text", () => {
  for (const [text, expected] of vectors.canonical) {
    assert.equal(discreet.canonical(text), expected);
  }
  assert.equal(discreet.canonical({ b: [1, null], a: true }), '{"a":true,"b":[1,null]}');
  for (const value of [0.5, 2 ** 53, NaN, undefined]) {
    assert.throws(() => discreet.canonical(value), CorruptRelease);
  }
});

for (const [kind, [contexts, expected, refused]] of Object.entries(vectors.features)) {
  const found = vectors.cases
    .map(({ documents }) => JSON.parse(documents[0]).plan.features)
    .find((features) => features.kind === kind);
  test(`the same features: ${kind}`, () => {
    contexts.forEach((context, row) =>
      assertClose(discreet.featuresOf(found, context), expected[row], kind),
    );
  });
  test(`contexts that break the schema: ${kind}`, () => {
    for (const context of refused) {
      assert.throws(() => discreet.featuresOf(found, context), InvalidContext);
    }
    assert.throws(() => discreet.featuresOf(found, undefined), InvalidContext);
    assert.throws(() => discreet.featuresOf(found, [NaN, 0, 0]), InvalidContext);
  });
}

for (const { name, features, contexts, expected, refused } of vectors.schemas) {
  test(`the same columns: ${name}`, () => {
    contexts.forEach((context, row) =>
      assertClose(discreet.featuresOf(features, context), expected[row], `${name}: ${row}`),
    );
  });
  test(`columns that break the schema: ${name}`, () => {
    for (const context of refused) {
      const said = JSON.stringify(context);
      assert.throws(() => discreet.featuresOf(features, context), InvalidContext, said);
    }
  });
}

test("actions have the names of the plan", async () => {
  const { documents, actions } = vectors.cases.find((each) => each.name === "named actions");
  const board = await Billboard.from(documents, vectors.key);
  assert.deepEqual(board.actions, ["none", "mail", "appeler ☎"]);
  assert.ok(actions.flat().every((action) => board.actions.includes(action)));
  const numbered = await Billboard.from(vectors.cases[0].documents, vectors.key);
  assert.deepEqual(numbered.actions, [0, 1, 2]);
});

test("draws come from the platform and follow the probabilities", async () => {
  const { documents, contexts } = vectors.cases.find((each) => each.name === "VanillaPO, short");
  const board = await Billboard.from(documents, vectors.key);
  const expected = board.probabilities(contexts[0]);
  const [counts, draws] = [expected.map(() => 0), 20000];
  for (let i = 0; i < draws; i++) counts[board.sample(contexts[0])]++;
  // Six standard deviations for each of three actions: a false alarm in 10⁸ runs.
  counts.forEach((count, a) => {
    const deviation = Math.sqrt(expected[a] * (1 - expected[a]) / draws);
    assert.ok(Math.abs(count / draws - expected[a]) < 6 * deviation + 1e-9);
  });
});

test("a billboard over HTTP, at the release that is in force", async (t) => {
  const { documents } = vectors.cases.find((each) => each.name === "SquareCB");
  const releases = documents.map((_, number) => ({ number }));
  const asked = [];
  const server = createServer((request, answer) => {
    asked.push([request.url, request.headers.authorization]);
    const number = request.url.match(/^\/base\/v1\/releases\/(\d+)$/)?.[1];
    if (number === undefined && request.url !== "/base/v1/releases") answer.statusCode = 404;
    answer.end(number === undefined ? JSON.stringify({ releases, current: 2 }) : documents[number]);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}`;
  const headers = { Authorization: "Bearer dk_1_x" };
  const board = await Billboard.open(`${url}/base/`, vectors.key, headers);
  assert.equal(board.number, 2);
  assert.equal(board.released.items.length, 2);
  assert.ok(asked.every(([, key]) => key === "Bearer dk_1_x"));
  await assert.rejects(Billboard.open(`${url}/elsewhere`, vectors.key), /elsewhere said 404/);
});

test("without Ed25519 nothing is evaluated", async (t) => {
  const { documents } = vectors.cases[0];
  const known = crypto.subtle.importKey;
  t.after(() => (crypto.subtle.importKey = known));
  crypto.subtle.importKey = async () => {
    throw new DOMException("unknown", "NotSupportedError");
  };
  await assert.rejects(Billboard.from(documents, vectors.key), Unverified);
});

test("outside a secure page nothing is evaluated", async (t) => {
  const found = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  t.after(() => Object.defineProperty(globalThis, "crypto", found));
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  await assert.rejects(Billboard.from(vectors.cases[0].documents, vectors.key), Unverified);
});

test("a public key must be written as one", async () => {
  for (const key of ["", "xyz", vectors.key.toUpperCase(), undefined]) {
    await assert.rejects(Billboard.from(vectors.cases[0].documents, key), TypeError);
  }
});
