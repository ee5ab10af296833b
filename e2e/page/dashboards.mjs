/* Pictures of the dashboards of config/metrics: dashboards.mjs FOLDER PROMETHEUS. Grafana cannot be had here, so uPlot draws
   each panel at its place, with the series that PROMETHEUS answers to its queries of the last two minutes. */
import { readFileSync, readdirSync } from "node:fs";
import { launch } from "./browser.mjs";

const [folder, prometheus] = process.argv.slice(2);
const COLUMN_PX = 52, UNIT_PX = 30, SECONDS = 120, STEP_S = 2;
const vendored = (name) => readFileSync(`controller/page/vendor/${name}`, "utf8");
const STYLE = `body { margin: 0; font: 13px sans-serif; background: #f4f5f5; } h1 { font-size: 18px; margin: 10px; }
  main { position: relative; width: ${24 * COLUMN_PX}px; } section, h2 { position: absolute; box-sizing: border-box; margin: 0; }
  section { background: #fff; border: 1px solid #ddd; padding: 6px; overflow: hidden; } h2, h3 { font-size: 14px; margin: 0; } .u-legend { font-size: 11px; }`;

async function series(target) {
  const end = Math.floor(Date.now() / 1000), query = target.expr.replaceAll("$__rate_interval", "1m");
  const reply = await fetch(`${prometheus}/api/v1/query_range?${new URLSearchParams({ query, start: end - SECONDS, end, step: STEP_S })}`);
  const label = (metric) => (target.legendFormat || "").replace(/{{\s*(\w+)\s*}}/g, (all, name) => metric[name] ?? "") || Object.values(metric).join(" ");
  return (await reply.json()).data.result.map(({ metric, values }) => ({ label: label(metric), values }));
}

/* In the browser. */
function draw({ panels, columnPx, unitPx }) {
  const colours = ["#3274d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#b8860b", "#0b7285", "#666"];
  const bytes = (v) => { const i = Math.min(3, Math.floor(Math.log2(v || 1) / 10)); return `${+(v / 1024 ** i).toPrecision(3)} ${["B", "KiB", "MiB", "GiB"][i]}`; };
  const units = { bytes, s: (v) => v < 1 ? `${+(v * 1000).toPrecision(3)} ms` : `${+v.toPrecision(3)} s`, percentunit: (v) => `${+(v * 100).toPrecision(3)}%`, ops: (v) => `${+v.toPrecision(3)}/s` };
  for (const { type, title, gridPos: { x, y, w, h }, unit, lines = [] } of panels) {
    const box = document.querySelector("main").appendChild(document.createElement(type === "row" ? "h2" : "section"));
    Object.assign(box.style, { left: `${x * columnPx}px`, top: `${y * unitPx + 6}px`, width: `${w * columnPx - 8}px`, height: `${h * unitPx - 8}px` });
    box.appendChild(document.createElement(type === "row" ? "span" : "h3")).textContent = title;
    const times = [...new Set(lines.flatMap((line) => line.values.map((value) => value[0])))].sort((a, b) => a - b);
    if (!times.length) continue;
    const format = (v) => v == null ? "" : (units[unit] || ((n) => `${+n.toPrecision(3)}`))(v);
    const of = lines.map((line) => new Map(line.values.map(([time, value]) => [time, value === "NaN" ? null : Number(value)])));
    new uPlot({ width: w * columnPx - 22, height: h * unitPx - 78, legend: { live: false }, scales: { y: { range: (u, min, max) => [0, max || 1] } }, axes: [{}, { size: 70, values: (u, values) => values.map(format) }],
      series: [{}, ...lines.map(({ label }, i) => ({ label, stroke: colours[i % colours.length], width: 1.5 }))] }, [times, ...of.map((values) => times.map((time) => values.get(time) ?? null))], box);
  }
  document.querySelector("main").style.height = `${Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * unitPx + 12}px`;
}

const browser = await launch(), page = await browser.newPage();
for (const file of readdirSync("config/metrics/dashboards")) {
  const { title, panels } = JSON.parse(readFileSync(`config/metrics/dashboards/${file}`, "utf8"));
  const drawn = await Promise.all(panels.map(async ({ targets, fieldConfig, ...panel }) =>
    ({ ...panel, unit: fieldConfig?.defaults?.unit, lines: (await Promise.all((targets || []).map(series))).flat() })));
  await page.setViewportSize({ width: 24 * COLUMN_PX, height: 400 });
  await page.setContent(`<style>${STYLE}${vendored("uplot.css")}</style><h1>${title}</h1><main></main>`);
  await page.addScriptTag({ content: vendored("uplot.js") });
  await page.evaluate(draw, { panels: drawn, columnPx: COLUMN_PX, unitPx: UNIT_PX });
  await page.screenshot({ path: `${folder}/dashboard-${file.replace(".json", ".png")}`, fullPage: true });
}
await browser.close();
