// Charts from data-chart attributes, numbers beside sliders, links to a view, a word when a page is out of date,
// and a question before what cannot be undone.
"use strict";

// A colour of the style sheet as a canvas understands it.
const style = (name) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};
const faint = (colour) => colour.replace("rgb(", "rgba(").replace(")", ", 0.12)");
const short = (value) => (value === null ? "–" : Math.abs(value) >= 1000
  ? value.toLocaleString("en") : String(+value.toPrecision(3)));

// A line at zero: on one side of it the policy helps.
const zero = (plot) => {
  const { ctx, bbox } = plot;
  const y = plot.valToPos(0, "y", true);
  ctx.save();
  ctx.strokeStyle = style("--ink");
  ctx.setLineDash([]);
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
};
// Vertical lines at the moments of releases.
const marked = (marks) => (plot) => {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = style("--quiet");
  ctx.setLineDash([3, 4]);
  ctx.lineWidth = devicePixelRatio;
  for (const mark of marks) {
    const x = plot.valToPos(mark, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
};

function draw(place) {
  const chart = JSON.parse(place.dataset.chart);
  const clock = (seconds, step) => {
    const text = new Date(seconds * 1e3).toISOString();
    const midnight = step >= 3600 && seconds % 86400 === 0;
    return step >= 86400 || midnight ? text.slice(5, 10) : text.slice(11, step >= 60 ? 16 : 19);
  };
  const moments = (_, all, __, ___, step) => all.map((seconds) => clock(seconds, step));
  const axis = { stroke: style("--quiet"), font: "12px system-ui, sans-serif",
    grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, size: 34 };
  const along = chart.time ? { space: 80, values: moments }
    : chart.whole ? { incrs: [1, 2, 5, 10, 20, 50, 100] } : {};
  const lines = chart.lines.map((line, i) => ({
    label: line.label,
    stroke: line.dashed ? style("--quiet") : style(`--a${i % 8}`),
    width: chart.bars ? 1 : 2,
    dash: line.dashed ? [6, 5] : undefined,
    paths: chart.bars ? uPlot.paths.bars({ size: [0.8, 48], align: 1 }) : undefined,
    fill: (chart.filled || chart.bars) && !line.dashed ? faint(style(`--a${i % 8}`)) : undefined,
    points: { show: !chart.bars && chart.x.length < 30 && !line.dashed, size: 6, fill: style("--card") },
    value: (_, value) => short(value),
  }));
  const range = (_, low, high) => {
    const least = chart.zero ? Math.min(low, 0) : low;
    const most = chart.zero ? Math.max(high, 0) : high;
    const room = 0.08 * (most - least) || 0.5;
    return [chart.from ?? least - room, chart.to ?? most + room];
  };
  const options = {
    width: place.clientWidth,
    height: 220,
    series: [{ label: chart.label, value: (_, value) => (value !== null && chart.time ? new Date(value * 1e3).toISOString().slice(0, 19).replace("T", " ") : short(value)) }, ...lines],
    scales: { x: { time: Boolean(chart.time), range: chart.bars ? (_, low, high) => [low, high + 3600] : undefined }, y: { range } },
    axes: [{ ...axis, ...along }, { ...axis, size: 56, values: (_, all) => all.map(short) }],
    bands: chart.band ? [{ series: [3, 2], fill: faint(style("--a0")) }] : [],
    legend: { show: lines.length > 1 },
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: { draw: [...(chart.marks ? [marked(chart.marks)] : []), ...(chart.zero ? [zero] : [])] },
  };
  place.replaceChildren();
  const plot = new uPlot(options, [chart.x, ...chart.lines.map((line) => line.values)], place);
  place.resize = () => plot.setSize({ width: place.clientWidth, height: 220 });
}

const charts = () => document.querySelectorAll("[data-chart]");
const begin = (root) => {
  root.querySelectorAll("[data-chart]").forEach(draw);
  for (const form of root.querySelectorAll("form[data-confirm]")) {
    form.onsubmit = () => confirm(form.dataset.confirm);
  }
};

document.addEventListener("htmx:afterSwap", (event) => begin(event.detail.target));
document.addEventListener("input", ({ target }) => {
  const shown = target.parentElement.querySelector("output");
  if (shown && target.type === "range") shown.value = short(+target.value);
});
addEventListener("resize", () => charts().forEach((place) => place.resize()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts().forEach(draw));

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

// Pages say when they are out of date: the server is gone, the log-in is over, or there is a newer release.
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
  if (answer.status === 204) return say("Your log-in is over.", "Log in again", true);
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
begin(document);
