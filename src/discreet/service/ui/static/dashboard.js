// Charts from data-chart attributes, numbers beside sliders, and a question before what cannot be undone.
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
    return step >= 86400 ? text.slice(0, 10) : text.slice(11, step >= 60 ? 16 : 19);
  };
  const moments = (_, all, __, ___, step) => all.map((seconds) => clock(seconds, step));
  const axis = { stroke: style("--quiet"), font: "12px system-ui, sans-serif",
    grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, size: 34 };
  const along = chart.time ? { space: 80, values: moments }
    : chart.whole ? { incrs: [1, 2, 5, 10, 20, 50, 100] } : {};
  const lines = chart.lines.map((line, i) => ({
    label: line.label,
    stroke: line.dashed ? style("--quiet") : style(`--a${i % 8}`),
    width: 2,
    dash: line.dashed ? [6, 5] : undefined,
    paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    fill: chart.filled && !line.dashed ? faint(style(`--a${i % 8}`)) : undefined,
    points: { show: chart.x.length < 30 && !line.dashed, size: 6, fill: style("--card") },
    value: (_, value) => short(value),
  }));
  const range = (_, low, high) => {
    const from = chart.from ?? low;
    const to = chart.to ?? (high > from ? high + 0.08 * (high - from) : from + 1);
    return [from, to];
  };
  const options = {
    width: place.clientWidth,
    height: 220,
    series: [{ label: chart.label, value: (_, value) => (value !== null && chart.time ? clock(value, 1) : short(value)) }, ...lines],
    scales: { x: { time: Boolean(chart.time) }, y: { range } },
    axes: [{ ...axis, ...along }, { ...axis, size: 56, values: (_, all) => all.map(short) }],
    legend: { show: lines.length > 1 },
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: { draw: chart.marks ? [marked(chart.marks)] : [] },
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
begin(document);
