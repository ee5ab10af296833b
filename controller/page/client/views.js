/* The views: lists, the overview of the fleet, one object in detail, and Events. */
import { html, useEffect, useMemo, useRef, useState } from "/vendor/preact.js";

/* A change of the row reads a detail again; what no row shows is as old as this at most. */
const AGAIN_MS = 30000;
const ROW_PX = 44, NARROW_ROW_PX = 74, AHEAD = 12, MAX_TEXT = 300, MAX_FILTER = 200;

/* A colour and a sign for each phase; the word is always beside them. */
const PHASES = {
  completed: ["good", "✓"], running: ["busy", "▶"], aggregating: ["busy", "Σ"], scheduled: ["busy", "◷"], pending: ["idle", "…"],
  failed: ["bad", "✕"], interrupted: ["warn", "⏸"], skipped: ["idle", "–"], offline: ["bad", "○"], initializing: ["warn", "◌"],
  training: ["busy", "▶"], received: ["good", "✓"], late: ["warn", "✓"], rejected: ["bad", "✕"], missing: ["bad", "○"], stopped: ["idle", "–"],
};
const look = (phase, isProplet) => isProplet && phase === "Running" ? ["good", "●"] : PHASES[(phase || "").toLowerCase()] || ["idle", "·"];
const cut = (text) => { const all = String(text ?? ""); return all.length > MAX_TEXT ? `${all.slice(0, MAX_TEXT)}…` : all; };
const Text = ({ of }) => html`<bdi>${cut(of)}</bdi>`;
const Phase = ({ of, proplet }) => { const [tone, sign] = look(of, proplet);
  return html`<span class=${`phase ${tone}`}><span aria-hidden="true">${sign}</span>${cut(of) || "new"}</span>`; };

function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  return s < 172800 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86400)}d`;
}
/* A mean that is no number, such as one of infinite values, has none in JSON. */
const digits = (value, n) => typeof value === "number" ? value.toPrecision(n) : "–";
const since = (time, now) => time ? span((now - Date.parse(time)) / 1000) : "–";

/* Ages are counted from the time of the server. The clock of the browser may be wrong, and only measures what has passed
   since the server said its time. */
let ahead = 0;
export const setServerTime = (now) => { ahead = now - Date.now(); };
const serverNow = () => Date.now() + ahead;

function useNow() {
  const [now, setNow] = useState(serverNow());
  useEffect(() => { const timer = setInterval(() => setNow(serverNow()), 1000); return () => clearInterval(timer); }, []);
  return now;
}

/* ---- lists ---- */

const detail = (list, row) => `#/${list}/${encodeURIComponent(row.ns)}/${encodeURIComponent(row.name)}`;
const Percent = ({ of }) => of == null ? "–" : html`<span class="meter" aria-hidden="true"><span style=${{ width: `${Math.min(100, of / 1000)}%` }} /></span>${Math.round(of / 1000)}%`;
const name = { title: "Name", width: "minmax(9rem, 2fr)", cell: (row) => html`<${Text} of=${row.name} /> <span class="soft small"><${Text} of=${row.ns} /></span>` };
const phase = (proplet) => ({ title: "Phase", width: "9rem", cell: (row) => html`<${Phase} of=${row.phase} proplet=${proplet} />${row.deleting ? " ⌫" : ""}` });
const reason = { title: "Reason", width: "minmax(7rem, 1fr)", cell: (row) => html`<span class="soft"><${Text} of=${row.reason} /></span>` };
const age = { title: "Age", width: "4rem", cell: (row, now) => since(row.created, now) };
const seen = (row, now, beats) => { const beat = beats[`${row.ns}/${row.name}`] * 1000 || Date.parse(row.seen);
  return beat ? `${span((now - beat) / 1000)} ago` : "never"; };

const byAge = (oldest) => (a, b) => (oldest ? -1 : 1) * (b.created || "").localeCompare(a.created || "") || a.name.localeCompare(b.name);

const LISTS = {
  proplets: { title: "Proplets", one: "Proplet", columns: [name, phase(true), reason,
    { title: "Heartbeat", width: "6rem", cell: seen },
    { title: "Active", width: "4.5rem", cell: (row) => `${row.active ?? 0}${row.max ? ` / ${row.max}` : ""}${row.cordoned ? " ⊘" : ""}` },
    { title: "Processor", width: "7rem", cell: (row) => html`<${Percent} of=${row.cpu} />` },
    { title: "Memory", width: "7rem", cell: (row) => html`<${Percent} of=${row.memory} />` }],
    empty: "kubectl apply -f config/samples/proplet-external.yaml", sort: (a, b) => a.name.localeCompare(b.name) },
  tasks: { title: "Tasks", one: "Task", columns: [name, phase(false), reason, age,
    { title: "Proplet", width: "minmax(6rem, 1fr)", cell: (row) => html`<${Text} of=${row.proplet || "–"} />` },
    { title: "Attempt", width: "4rem", cell: (row) => row.attempt ?? 0 }],
    empty: "kubectl propeller run --wasm add.wasm --input 10 --input 32" },
  jobs: { title: "PropellerJobs", one: "PropellerJob", columns: [name, phase(false), reason, age,
    { title: "Tasks", width: "9rem", cell: (row) => `${row.completed ?? 0} of ${row.tasks ?? 0}${row.failed ? `, ${row.failed} failed` : ""}` }],
    empty: "kubectl apply -f config/samples/propellerjob.yaml" },
  federated: { title: "FederatedJobs", one: "FederatedJob", columns: [name, phase(false), reason, age,
    { title: "Rounds", width: "6rem", cell: (row) => `${row.done ?? 0} of ${row.rounds ?? "?"}` }],
    empty: "kubectl apply -f config/samples/federatedjob.yaml" },
  enrollments: { title: "Enrollments", one: "Enrollment", columns: [name, reason, age,
    { title: "Devices that wait", width: "9rem", cell: (row) => `${row.pending ?? 0}${row.overflow ? " and more" : ""}` },
    { title: "Enrolled", width: "6rem", cell: (row) => row.enrolled ?? 0 },
    { title: "Approval", width: "7rem", cell: (row) => html`<${Text} of=${row.approval} />` }],
    empty: "kubectl apply -f config/samples/enrollment.yaml" },
};

const matches = (row, words) => words.every((word) =>
  `${row.ns} ${row.name} ${row.phase} ${row.reason} ${row.proplet || ""} ${Object.entries(row.labels || {}).map(([k, v]) => `${k}=${v}`).join(" ")}`
    .toLowerCase().includes(word));

/* Elements exist only for the rows that are visible, so that 10,000 of them scroll. */
function Rows({ list, rows, beats }) {
  const spec = LISTS[list], now = useNow(), view = useRef();
  const [top, setTop] = useState(0);
  const height = matchMedia("(max-width: 48rem)").matches ? NARROW_ROW_PX : ROW_PX;
  const first = Math.max(0, Math.floor(top / height) - AHEAD);
  const last = Math.min(rows.length, first + Math.ceil(innerHeight / height) + 2 * AHEAD);
  return html`<div class="list" role="table" aria-label=${spec.title} aria-rowcount=${rows.length} style=${{ "--columns": spec.columns.map((c) => c.width).join(" ") }}>
    <div class="head" role="row">${spec.columns.map((c) => html`<span role="columnheader">${c.title}</span>`)}</div>
    <div class="view" ref=${view} tabindex="0" role="rowgroup" aria-label=${`rows of ${spec.title}`} onScroll=${(e) => setTop(e.target.scrollTop)}>
      <div style=${{ height: `${first * height}px` }} />
      ${rows.slice(first, last).map((row) => html`<a class="row" role="row" key=${`${row.ns}/${row.name}`} href=${detail(list, row)}>
        ${spec.columns.map((c) => html`<span role="cell">${c.cell(row, now, beats)}</span>`)}</a>`)}
      <div style=${{ height: `${(rows.length - last) * height}px` }} />
    </div></div>`;
}

/* Filter and order are in the address, so that Back, a reload and a link keep them. */
function ListPage({ at, feed }) {
  const list = at.path[0], spec = LISTS[list];
  const wanted = at.query.get("phase"), oldest = at.query.get("order") === "oldest";
  const [text, setText] = useState(at.query.get("q") || "");
  useEffect(() => setText(at.query.get("q") || ""), [at]);
  const all = useMemo(() => [...feed.rows.values()].sort(spec.sort || byAge(oldest)), [feed.rows, oldest]);
  const phases = useMemo(() => all.reduce((found, row) => found.set(row.phase, (found.get(row.phase) || 0) + 1), new Map()), [all]);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = all.filter((row) => (!wanted || row.phase === wanted) && matches(row, words));
  const address = (change) => {
    const query = Object.entries({ phase: wanted, order: oldest && "oldest", q: text, ...change }).filter(([, value]) => value);
    return `#/${list}${query.length ? `?${new URLSearchParams(query)}` : ""}`;
  };
  const type = (value) => { setText(value); history.replaceState(null, "", address({ q: value })); }; /* not one step back for each letter */
  if (!feed.ready) return html`<p class="empty" role="status">Loading ${spec.title} …</p>`;
  if (!all.length) return html`<p class="empty">There is no ${spec.one} yet. Create one:<br /><code>${spec.empty}</code></p>`;
  return html`<div class="tools">
      <input type="search" aria-label="Filter by name, reason or label" placeholder="Filter: name, reason, label=value" maxlength=${MAX_FILTER} value=${text} onInput=${(e) => type(e.target.value)} />
      <button aria-pressed=${!wanted} onClick=${() => { location.hash = address({ phase: "" }); }}>All ${all.length}</button>
      ${list !== "enrollments" && [...phases].sort().map(([p, n]) => html`<button aria-pressed=${wanted === p} onClick=${() => { location.hash = address({ phase: wanted === p ? "" : p }); }}>${cut(p) || "new"} ${n}</button>`)}
      ${!spec.sort && html`<button aria-pressed=${oldest} onClick=${() => { location.hash = address({ order: !oldest && "oldest" }); }}>Oldest first</button>`}
    </div>
    ${rows.length ? html`<${Rows} list=${list} rows=${rows} beats=${feed.beats} />` : html`<p class="empty" role="status">Nothing fits this filter.</p>`}`;
}

/* ---- the fleet ---- */

const KIND_LISTS = { proplets: "proplets", tasks: "tasks", propellerjobs: "jobs", federatedjobs: "federated" };

function Census({ kind, phases }) {
  const list = KIND_LISTS[kind], shown = Object.entries(phases).filter(([, n]) => n);
  const total = shown.reduce((sum, [, n]) => sum + n, 0);
  const tone = (p) => look(p, kind === "proplets")[0];
  return html`<section class="card"><h2><a href=${`#/${list}`}>${LISTS[list].title}</a></h2>
    <div class="big">${total.toLocaleString("en")}</div>
    <div class="strip" aria-hidden="true">${shown.map(([p, n]) => html`<span class=${tone(p)} style=${{ flexGrow: n }} />`)}</div>
    ${total ? html`<ul class="legend">${shown.map(([p, n]) => html`<li><a href=${`#/${list}?phase=${encodeURIComponent(p)}`}><${Phase} of=${p} proplet=${kind === "proplets"} /></a><span>${n.toLocaleString("en")}</span></li>`)}</ul>`
      : html`<p class="soft small">None yet: <code>${LISTS[list].empty}</code></p>`}</section>`;
}

function FleetPage({ feed }) {
  const c = feed.counts;
  if (!c) return html`<p class="empty" role="status">Loading the fleet …</p>`;
  const state = [
    ["Controller", c.leads ? ["good", "✓", "this process leads"] : ["idle", "…", c.leader ? `this process is a standby of ${c.leader.split("_")[0]}` : "this process is a standby"]],
    ["Broker", !c.mqtt ? ["idle", "–", "no broker is configured (--mqtt-address)"] : c.broker ? ["good", "✓", "connected"]
      : c.leads ? ["bad", "✕", "not connected"] : ["idle", "…", "only the leader is connected"]],
    ["Fleet brake", c.brake ? ["bad", "!", "most of the fleet is away, so no Task is moved"] : ["good", "✓", "released"]],
    ...(c.strangers === undefined ? [] : [["Devices without a Proplet", c.strangers ? ["warn", "!", html`${c.strangers}; <a href="#/enrollments">Enrollments</a> list those that wait`] : ["good", "✓", "none"]]]),
  ];
  return html`<div class="cards">${Object.keys(KIND_LISTS).filter((kind) => c.kinds[kind]).map((kind) => html`<${Census} kind=${kind} phases=${c.kinds[kind]} />`)}</div>
    <section class="card"><h2>State</h2><dl class="facts">${state.map(([title, [tone, sign, text]]) => html`
      <dt>${title}</dt><dd><span class=${`phase ${tone}`}><span aria-hidden="true">${sign}</span>${text}</span></dd>`)}</dl></section>`;
}

/* ---- one object ---- */

function Why({ why, proplet }) {
  const tone = why.phase === "failed" || why.phase === "Failed" || why.phase === "Offline" ? "bad" : why.good ? "good" : look(why.phase, proplet)[0];
  if (!why.reason && !why.message) return null;
  return html`<section class=${`card wide why ${tone}`}><h2>Why</h2>
    <strong><${Text} of=${why.reason} /></strong>${why.meaning && html`<span class="soft"> — ${why.meaning}</span>`}
    ${why.message && html`<p><bdi>${why.message}</bdi></p>`}${why.remedy && why.remedy !== "Nothing." && html`<p><strong>What to do:</strong> ${why.remedy}</p>`}</section>`;
}

/* The life of the present run as parts of a bar, as long as they took. */
function Axis({ object, now }) {
  const s = object.status || {}, over = ["completed", "failed", "skipped"].includes(s.phase);
  /* A later run waits since its time of the schedule, or since it was asked for, which the status does not say. */
  const begin = s.lastRun ?? (s.observedRestart ? s.scheduledAt ?? s.updatedAt : object.metadata.creationTimestamp);
  const times = [];
  for (const [time, what] of [[begin, "waits"], [s.scheduledAt, "starts"], [s.startedAt, "runs"], [s.finishedAt, ""]]) {
    const at = Math.floor(Date.parse(time) / 1000); /* some of them have whole seconds only, so that they seem to go back */
    if (time) times.push([Math.max(at, times.length ? times[times.length - 1][0] : at), what]);
  }
  const last = times.length ? times[times.length - 1][0] : 0;
  const parts = times.map(([from, what], i) => [what, (i + 1 < times.length ? times[i + 1][0] : over ? last : now / 1000) - from]).filter(([what]) => what);
  const tones = { waits: "idle", starts: "warn", runs: "busy" };
  return html`<div class="axis" role="img" aria-label=${parts.map(([what, s]) => `${what} ${span(s)}`).join(", ")}>
    ${parts.map(([what, seconds]) => html`<div class=${tones[what]} style=${{ flexGrow: Math.max(seconds, .5), flexBasis: 0 }}>${what} ${span(seconds)}</div>`)}</div>`;
}

/* Tasks in columns by what they wait for. */
function Graph({ object, children, ns }) {
  const tasks = object.spec.tasks || [], W = 190, H = 64, depth = new Map();
  const rows = new Map(children.map((row) => [row.title || row.name, row]));
  const deep = (name, path = []) => {
    if (depth.has(name)) return depth.get(name);
    const task = tasks.find((t) => t.name === name);
    const d = !task || path.includes(name) ? 0 : Math.max(-1, ...(task.dependsOn || []).map((n) => deep(n, [...path, name]))) + 1;
    depth.set(name, d);
    return d;
  };
  const columns = [], place = new Map();
  for (const task of tasks) { const d = deep(task.name); (columns[d] = columns[d] || []).push(task); place.set(task.name, [d * (W + 50), (columns[d].length - 1) * H]); }
  const height = Math.max(1, ...columns.map((c) => (c || []).length)) * H;
  if (!tasks.length) return html`<p class="soft">This job refers to Tasks that exist.</p>`;
  return html`<div class="graph"><svg width=${columns.length * (W + 50)} height=${height} role="group" aria-label=${`${tasks.length} Tasks and what they wait for`}>
    ${tasks.flatMap((task) => (task.dependsOn || []).filter((n) => place.has(n)).map((n) => { const [x1, y1] = place.get(n), [x2, y2] = place.get(task.name);
      return html`<path d=${`M${x1 + W},${y1 + 22} C${x1 + W + 25},${y1 + 22} ${x2 - 25},${y2 + 22} ${x2},${y2 + 22}`} />`; }))}
    ${tasks.map((task) => { const [x, y] = place.get(task.name), row = rows.get(task.name), [tone, sign] = look(row?.phase);
      return html`<a href=${row ? detail("tasks", { ns, name: row.name }) : null}><rect x=${x} y=${y} width=${W} height="46" rx="8" /><rect class=${`mark ${tone}`} x=${x} y=${y + 8} width="4" height="30" />
        <text x=${x + 14} y=${y + 20}>${task.name.slice(0, 22)}</text><text class="sub" x=${x + 14} y=${y + 36}>${sign} ${row?.phase || "not created"}</text></a>`; })}
  </svg></div>`;
}

/* lines: [title, values] each, with null where there is no value. */
function Chart({ title, label, unit, x, lines, range }) {
  const box = useRef();
  useEffect(() => {
    const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--soft");
    const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 } }, whole = (u, values) => values.map((value) => Number.isInteger(value) ? value : "");
    const plot = new uPlot({ width: box.current.clientWidth, height: 180, title, scales: { x: { time: false }, ...(range && { y: { range } }) }, axes: [{ ...axis, values: whole }, axis],
      series: [{ label: unit }, ...lines.map(([name], i) => ({ label: name, stroke: style.getPropertyValue(i ? "--warn" : "--accent"), dash: i ? [6, 4] : [], width: 2, points: { show: true } }))] },
      [x, ...lines.map(([, values]) => values)], box.current);
    const resize = () => plot.setSize({ width: box.current.clientWidth, height: 180 });
    addEventListener("resize", resize);
    return () => { removeEventListener("resize", resize); plot.destroy(); };
  }, [title, JSON.stringify([x, lines])]);
  return html`<div ref=${box} role="img" aria-label=${label} />`;
}

/* Processor and memory of a device in the last ten minutes, as this process heard them. */
function Load({ load }) {
  if (!load) return html`<p class="soft">No measurement came in the last 10 minutes. Only the controller that leads hears devices.</p>`;
  const last = (values) => { const known = values.filter((value) => value !== null); return known.length ? `${known[known.length - 1]}%` : "not told"; };
  return html`<${Chart} title="Percent in the last 10 minutes" unit="minute" range=${(u, min, max) => [0, Math.max(100, max || 0)]} x=${load.cpu.map((value, i) => (i + 1 - load.cpu.length) * load.step / 60)}
    lines=${[["Processor", load.cpu], ["Memory", load.memory]]} label=${`the last 10 minutes: processor ${last(load.cpu)}, memory ${last(load.memory)}`} />`;
}

/* Old rounds are deleted (spec.historyLimit), so that the first one that is there may have any number. */
const number = (round, i) => Number(round.name.match(/^round-(\d+)-/)?.[1] ?? i + 1);

function Means({ metric, rounds }) {
  const points = rounds.map((round, i) => [number(round, i), round.means?.[metric]]).filter((point) => typeof point[1] === "number");
  const title = metric.slice(0, 40), values = points.map((point) => point[1]);
  return html`<${Chart} title=${title} unit="round" x=${points.map((point) => point[0])} lines=${[[title, values]]} label=${`${title} over rounds: ${values.map((value) => digits(value, 3)).join(", ")}`} />`;
}

function Rounds({ children, now }) {
  const rounds = [...children].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  const metrics = [...new Set(rounds.flatMap((round) => Object.keys(round.means || {})))].sort();
  if (!rounds.length) return html`<p class="soft">No round has begun yet.</p>`;
  return html`<div class="charts">${metrics.map((metric) => html`<${Means} key=${metric} metric=${metric} rounds=${rounds} />`)}</div>
    <div class="scroll"><table><thead><tr><th>Round</th><th>Phase</th><th>Updates</th><th>Duration</th><th>Metrics</th></tr></thead><tbody>
      ${rounds.map((round) => html`<tr><td><a href=${detail("rounds", round)}><${Text} of=${round.name} /></a></td><td><${Phase} of=${round.phase} /></td>
        <td>${round.updates ?? 0} of ${round.required ?? "?"}</td><td>${round.started ? span(((Date.parse(round.finished) || now) - Date.parse(round.started)) / 1000) : "–"}</td>
        <td class="mono"><${Text} of=${Object.entries(round.means || {}).map(([k, v]) => `${k} ${digits(v, 4)}`).join("  ") || "–"} /></td></tr>`)}</tbody></table></div>`;
}

/* Of a FederatedJob, or of one of its rounds, where each has a Task. Before the first round they have no state.
   running: those of the round that has not ended, without the times of updates before it. */
function Participants({ object, running, ns, now }) {
  const last = new Map((object.status?.participants || []).map((part) => [part.propletId, part]));
  const known = running || object.status?.participants || (object.spec?.participants || []).map((part) => part.propletId ? part : { propletId: part });
  const parts = known.map((part) => ({ ...last.get(part.propletId), ...part }));
  const tasks = object.kind === "TrainingRound";
  return html`<table><thead><tr><th>Proplet</th><th>State</th><th>${tasks ? "Task" : "Last update"}</th></tr></thead><tbody>
    ${parts.map((part) => html`<tr><td><a href=${detail("proplets", { ns, name: part.propletId })}><${Text} of=${part.propletId} /></a></td><td><${Phase} of=${part.status} /></td>
      <td>${tasks && part.taskRef?.name ? html`<a href=${detail("tasks", { ns, name: part.taskRef.name })}><${Text} of=${part.taskRef.name} /></a>` : part.lastUpdate ? `${since(part.lastUpdate, now)} ago` : "–"}</td></tr>`)}</tbody></table>`;
}

/* The state from which the next attempt of a Task goes on. */
function Checkpoint({ object, now }) {
  const last = object.status?.lastCheckpoint;
  const taken = (object.status?.conditions || []).find((condition) => condition.type === "Checkpointing");
  if (!object.spec?.checkpoint && !last) return null;
  const facts = last ? [["Step", last.step], ["Samples", last.samples], ["Taken", `${since(last.time, now)} ago`], ["Attempt", last.attempt], ["Proplet", last.proplet],
    ["Size", last.bytes && `${last.bytes.toLocaleString("en")} bytes`], ["Place", last.uri || last.ref], ["SHA-256", last.sha256]] : [];
  return html`<section class="card wide"><h2>Last checkpoint</h2>
    ${taken?.status === "False" && html`<p class="notice"><strong><${Text} of=${taken.reason} /></strong>: <${Text} of=${taken.message} /></p>`}
    ${last ? html`<dl class="facts"><${Facts} of=${facts} /></dl>` : html`<p class="soft">None was taken yet.</p>`}</section>`;
}

/* Client ids come from the network. */
const quoted = (text) => /^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

function Pending({ object, now }) {
  const pending = object.status?.pending || [], ns = object.metadata.namespace;
  if (!pending.length) return html`<p class="soft">No device waits.</p>`;
  return html`<table><thead><tr><th>Client id</th><th>Channel</th><th>Heartbeat</th><th>To approve it</th></tr></thead><tbody>
    ${pending.map((one) => html`<tr><td><${Text} of=${one.clientId} /></td><td><${Text} of=${one.channelId} /></td><td>${since(one.lastSeen, now)} ago</td>
      <td><code><bdi>kubectl propeller approve ${quoted(one.clientId)} -n ${ns}</bdi></code></td></tr>`)}</tbody></table>`;
}

const Facts = ({ of }) => of.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([k, v]) => html`<dt>${k}</dt><dd><${Text} of=${v} /></dd>`);

const attempts = (status) => `${status?.attempt ?? 0}${status?.priorAttempts ? `, ${status.attempt - status.priorAttempts} of this run` : ""}`;
const FACTS = {
  proplets: (o) => [["Type", o.spec?.type], ["Client id", o.spec?.connectionConfig?.clientId], ["Labels", Object.entries(o.metadata.labels || {}).map(([k, v]) => `${k}=${v}`).join(", ")],
    ["Cordoned", o.spec?.unschedulable ? "yes" : "no"], ["Active Tasks", o.status?.activeTaskCount ?? 0], ["Wasm runtime", o.status?.metadata?.wasmRuntime], ["System", o.status?.metadata?.os], ["Host", o.status?.metadata?.hostname]],
  tasks: (o) => [["Function", o.spec?.functionName], ["Inputs", (o.spec?.inputs || []).map((i) => typeof i === "string" ? i : JSON.stringify(i)).join(", ")], ["Image", o.spec?.imageUrl], ["Proplet", o.status?.assignedProplet], ["Attempts", attempts(o.status)],
    ["Failures of this run", o.status?.failures], ["Lost attempts of this run", o.status?.lostAttemptCount], ["Schedule", o.spec?.schedule], ["Next run", o.status?.nextRun], ["Next retry", o.status?.nextRetry]],
  jobs: (o) => [["Tasks", o.status?.taskCount], ["Completed", o.status?.completedCount], ["Failed", o.status?.failedCount], ["Parallelism", o.spec?.parallelism]],
  federated: (o) => [["Rounds", `${o.status?.completedRounds ?? 0} of ${o.spec?.rounds?.total ?? "?"}`], ["Participants", (o.spec?.participants || []).length], ["Quorum (k of n)", o.spec?.kOfN], ["Aggregator", o.spec?.aggregator?.algorithm], ["Model", o.status?.aggregatedModelRef],
    ["Last kept model", o.status?.lastCheckpoint && `of round ${o.status.lastCheckpoint.round}`], ["Its copy", o.status?.lastCheckpoint?.uri]],
  enrollments: (o) => [["Domain", o.spec?.domainId], ["Channel", o.spec?.channelPerDevice ? "one for each device" : o.spec?.channelId], ["Approval", o.spec?.approval], ["Enrolled", o.status?.enrolledCount ?? 0],
    ["Limit", `${o.spec?.limit}${o.status?.overflow ? ", and more devices wait" : ""}`], ["Rejected", (o.spec?.rejected || []).length]],
  rounds: (o) => [["FederatedJob", o.spec?.federatedJobRef?.name], ["Updates", `${o.status?.updatesReceived ?? 0} of ${o.status?.updatesRequired ?? "?"}`], ["Model", o.status?.aggregatedModelRef]],
};

function Result({ status }) {
  const text = typeof status.results === "string" ? status.results : JSON.stringify(status.results, null, 2);
  return html`${status.results !== undefined && html`<section class="card wide"><h2>Result</h2>${status.resultBytes && html`<p class="small soft">The first 64 KiB of ${status.resultBytes.toLocaleString("en")} bytes.</p>`}<pre tabindex="0"><bdi>${text}</bdi></pre></section>`}
    ${status.error && html`<section class="card wide"><h2>Error</h2><pre tabindex="0"><bdi>${status.error}</bdi></pre></section>`}
    ${status.broadcastResults?.length > 0 && html`<section class="card wide scroll"><h2>Targets</h2><table><thead><tr><th>Proplet</th><th>Phase</th><th>Result or error</th></tr></thead><tbody>
      ${status.broadcastResults.map((t) => html`<tr><td><${Text} of=${t.proplet} /></td><td><${Phase} of=${t.phase} /></td><td class="mono"><${Text} of=${t.error ?? (typeof t.results === "string" ? t.results : JSON.stringify(t.results))} /></td></tr>`)}</tbody></table></section>`}`;
}

function DetailPage({ at, feed, ask }) {
  const [list, ns, name] = at.path, now = useNow();
  const [found, setFound] = useState(null), [error, setError] = useState("");
  const row = feed.rows.get(`${ns}/${name}`);
  useEffect(() => {
    let over = false;
    ask(`/api/object?list=${list}&ns=${ns}&name=${name}`).then((data) => { if (!over) { setFound(data); setError(""); } },
      (problem) => { if (!over) setError(problem.message); });
    return () => { over = true; };
  }, [list, ns, name, JSON.stringify(row), Math.floor(now / AGAIN_MS)]);
  if (error && !found) return html`<p class="empty" role="alert">${error}</p>`;
  if (!found) return html`<p class="empty" role="status">Loading ${name} …</p>`;
  const { object, why, timeline, children } = found, proplet = list === "proplets";
  const live = proplet && row ? [["Heartbeat", seen(row, now, feed.beats)], ["Processor", row.cpu == null ? "" : `${Math.round(row.cpu / 1000)}%`], ["Memory", row.memory == null ? "" : `${Math.round(row.memory / 1000)}%`]] : [];
  return html`<div class="title"><h1><bdi>${name}</bdi></h1>${list !== "enrollments" && html`<${Phase} of=${why.phase} proplet=${proplet} />`}<span class="soft"><bdi>${ns}</bdi> · ${since(object.metadata.creationTimestamp, now)} old</span></div>
    ${feed.ready && !row && html`<p class="notice">It does not exist any more. This is how it was.</p>`}
    <${Why} why=${why} proplet=${proplet} />
    ${proplet && html`<section class="card wide"><h2>Load</h2><${Load} load=${found.load} /></section>`}
    ${list === "tasks" && html`<section class="card wide"><h2>Life of this run</h2><${Axis} object=${object} now=${now} /></section><${Checkpoint} object=${object} now=${now} /><${Result} status=${object.status || {}} />`}
    ${found.cut && html`<p class="notice">Only the first ${children.length} of its objects are shown.</p>`}
    ${list === "jobs" && html`<section class="card wide"><h2>Tasks</h2><${Graph} object=${object} children=${children} ns=${ns} /></section>`}
    ${list === "enrollments" && html`<section class="card wide scroll" tabindex="0"><h2>Devices that wait</h2><${Pending} object=${object} now=${now} /></section>`}
    ${list === "federated" && html`<section class="card wide"><h2>Rounds</h2><${Rounds} children=${children} now=${now} /></section>`}
    ${["federated", "rounds"].includes(list) && html`<section class="card wide scroll"><h2>Participants</h2><${Participants} object=${object} running=${found.participants} ns=${ns} now=${now} /></section>`}
    <div class="cards" style=${{ marginTop: "1rem" }}>
      <section class="card"><h2>Facts</h2><dl class="facts"><${Facts} of=${[...live, ...FACTS[list](object)]} /></dl></section>
      <section class="card"><h2>What happened</h2>${timeline.length ? html`<ol class="timeline">${[...timeline].reverse().map((entry) => html`<li><strong><${Text} of=${entry.what} /></strong>
        <span class="soft small"> ${since(entry.time, now)} ago</span><br /><${Text} of=${entry.message} /></li>`)}</ol>` : html`<p class="soft">Nothing yet.</p>`}</section></div>`;
}

/* ---- Events ---- */

function EventsPage({ ns, ask }) {
  const now = useNow(), [rows, setRows] = useState(null), [error, setError] = useState("");
  useEffect(() => {
    let over = false;
    ask(`/api/events${ns ? `?ns=${ns}` : ""}`).then((data) => { if (!over) { setRows(data.events.reverse()); setError(""); } }, (problem) => { if (!over) setError(problem.message); });
    return () => { over = true; };
  }, [ns, Math.floor(now / AGAIN_MS)]);
  const list = { Proplet: "proplets", Task: "tasks", PropellerJob: "jobs", FederatedJob: "federated", TrainingRound: "rounds" };
  if (error) return html`<p class="empty" role="alert">${error}</p>`;
  if (!rows) return html`<p class="empty" role="status">Loading Events …</p>`;
  if (!rows.length) return html`<p class="empty">No Events in the last hour.</p>`;
  return html`<div class="card scroll"><table><thead><tr><th>Age</th><th>Type</th><th>Reason</th><th>Object</th><th>Note</th></tr></thead><tbody>
    ${rows.map((e) => html`<tr><td>${since(e.time, now)}</td><td><span class=${`phase ${e.type === "Warning" ? "warn" : "idle"}`}>${cut(e.type)}</span></td><td><${Text} of=${e.reason} />${e.count > 1 ? ` ×${e.count}` : ""}</td>
      <td>${list[e.kind] ? html`<a href=${detail(list[e.kind], e)}><${Text} of=${e.name} /></a>` : html`<${Text} of=${e.name} />`} <span class="soft small"><${Text} of=${e.kind} /></span></td><td><${Text} of=${e.note} /></td></tr>`)}</tbody></table></div>`;
}

const page = (list) => ({ at, ...rest }) => at.path.length > 2 ? html`<${DetailPage} key=${at.path.join("/")} at=${at} ...${rest} />` : html`<${ListPage} at=${at} ...${rest} />`;
export const NAV = [["fleet", "Fleet"], ["proplets", "Proplets"], ["tasks", "Tasks"], ["jobs", "Jobs"], ["federated", "Federated learning"], ["enrollments", "Enrollment"], ["events", "Events"]];
export const VIEWS = {
  fleet: { page: FleetPage, feed: "fleet" },
  events: { page: EventsPage, feed: "fleet" },
  proplets: { page: page("proplets"), feed: "proplets" },
  tasks: { page: page("tasks"), feed: "tasks" },
  jobs: { page: page("jobs"), feed: "jobs" },
  federated: { page: page("federated"), feed: "federated" },
  enrollments: { page: page("enrollments"), feed: "enrollments" },
  rounds: { page: page("rounds"), feed: "rounds", nav: "federated" },
};
