// Numbers beside sliders, links to a view, a word when a page is out of date, a question before what cannot be undone, and the size of a form.
"use strict";

const short = (value) => String(+value.toPrecision(3));
const begin = (root) => {
  for (const form of root.querySelectorAll("form[data-confirm]")) {
    form.onsubmit = () => confirm(form.dataset.confirm);
  }
};

document.addEventListener("htmx:afterSwap", (event) => begin(event.detail.target));
document.addEventListener("input", ({ target }) => {
  const shown = target.parentElement.querySelector("output");
  if (shown && target.type === "range") shown.value = short(+target.value);
});
document.querySelector("[data-print]")?.addEventListener("click", () => print());

// The state of a form in the address, so that the address can be shared.
const linked = document.querySelector("form[data-linked]");
const toAddress = () => {
  const said = new URLSearchParams(new FormData(linked));
  said.delete("token");
  history.replaceState(null, "", `?${said}`);
};
linked?.addEventListener("input", toAddress);
document.querySelector("[data-copy]")?.addEventListener("click", async ({ target }) => {
  toAddress();
  const word = target.parentElement.querySelector("[role=status]");
  try {
    await navigator.clipboard.writeText(location.href);
    word.textContent = "Copied.";
  } catch {
    word.textContent = "It is in the address bar: copy it there.";
  }
});

// Pages say when they are out of date: the server is gone, the session is over, or there is a newer release.
const stale = document.getElementById("stale");
let heard = new Date();
const say = (text, link, lost) => {
  stale.classList.toggle("lost", lost);
  stale.replaceChildren(text);
  if (link) stale.append(" ", Object.assign(document.createElement("a"), { href: location.href, textContent: link }));
};
const look = async () => {
  let answer;
  try {
    answer = await fetch(stale.dataset.ask, { headers: { "HX-Request": "true" } });
    if (answer.status >= 500) throw new Error();
  } catch {
    say(`The server has not answered since ${heard.toISOString().slice(11, 19)}. This page shows what was known then.`, "", true);
    return;
  }
  heard = new Date();
  if (answer.status === 204) return say("Your session is over.", "Sign in again", true);
  if (answer.status !== 200) return;
  const { newest } = await answer.json();
  if (newest === Number(stale.dataset.newest)) return stale.replaceChildren();
  if (document.querySelector("[data-renews]")) return location.reload();
  say("There is a newer release since this page was loaded.", "Load the page again", false);
};
if (stale) setInterval(look, 5000);

// A link from another site comes without our cookie, which is sent with the next request of this page.
const shared = document.querySelector("[data-after]");
if (shared) {
  fetch(shared.dataset.ask, { headers: { "HX-Request": "true" } })
    .then(({ status }) => status === 200 && location.replace(shared.dataset.after));
}
// A form that the server would refuse as too large is not sent, so that nothing typed is lost.
for (const form of document.querySelectorAll("form[data-most]")) {
  const notice = form.querySelector("[data-too-large]");
  for (const name of ["submit", "htmx:beforeRequest"]) {
    form.addEventListener(name, (event) => {
      const size = new URLSearchParams(new FormData(form)).toString().length;
      notice.hidden = size < Number(form.dataset.most);
      if (notice.hidden) return;
      event.preventDefault();
      if (name === "submit") notice.scrollIntoView({ block: "center" });
    });
  }
}
begin(document);
