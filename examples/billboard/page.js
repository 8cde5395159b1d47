// Fetch the signed releases, verify them, and choose a shelf here. No request carries a context.

import { Billboard } from "./discreet.js";
import { PUBLIC_KEY } from "./key.js";

const SHELVES = [
  ["Stories for tonight", "Novels that do not let you sleep."],
  ["How things work", "From black holes to sourdough cultures, explained."],
  ["The long table", "Recipes for many, and for one."],
];
const NAMES = ["stories", "science", "kitchen"];
const place = (id) => document.getElementById(id);
// One draw a visit: the page changes with the visitor, not with every movement of a slider.
const u = Array.from(crypto.getRandomValues(new Uint32Array(2)), (bits) => bits / 2 ** 32);

function context() {
  return {
    hour: Number(place("hour").value),
    visits: Number(place("visits").value),
    interest: place("interest").value,
  };
}

function show(board) {
  const visitor = context();
  const action = board.sample(visitor, u);
  [place("title").textContent, place("text").textContent] = SHELVES[action];
  place("title").dataset.action = action;
  place("chances").replaceChildren(...board.probabilities(visitor).map(bar));
  for (const slider of document.querySelectorAll("input")) {
    slider.nextElementSibling.value = slider.value;
  }
}

function bar(probability, action) {
  const item = document.createElement("li");
  const share = Object.assign(document.createElement("progress"), { value: probability });
  share.ariaLabel = `probability of ${NAMES[action]}`;
  const percent = Object.assign(document.createElement("output"), {
    value: `${(100 * probability).toFixed(1)} %`,
  });
  item.append(NAMES[action], share, percent);
  return item;
}

function say(bold, text) {
  const strong = Object.assign(document.createElement("b"), { textContent: bold });
  place("status").replaceChildren(strong, ` ${text}`);
}

try {
  const answer = await fetch("releases.jsonl");
  const board = await Billboard.from(await answer.text(), PUBLIC_KEY);
  const { budget, unit } = board.plan;
  say(
    "Verified.",
    `${board.released.items.length} releases from ${board.released.rounds.toLocaleString("en")} ` +
      `readers, each signed and linked to the one before; ε = ${Number(budget.epsilon)}, ` +
      `δ = ${budget.delta} for one ${unit}. Your choices above were sent nowhere.`,
  );
  document.body.dataset.u = JSON.stringify(u);
  document.querySelector(".columns").addEventListener("input", () => show(board));
  show(board);
} catch (error) {
  place("text").textContent = "Chosen for everybody.";
  say("Not personalised.", `${error.message} This is the shelf that everybody sees.`);
}
