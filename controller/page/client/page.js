/* The state of the page: who is logged in, which view is open, and the feed of its rows. Views are in views.js.
   Texts from objects may be hostile: they become text nodes only, and never HTML. */
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "/vendor/preact.js";
import { VIEWS, NAV, setServerTime } from "/views.js";

const RETRY_MS = 2000;
/* The server says something every 15 seconds. A machine that slept keeps a connection that is dead. */
const SILENCE_MS = 45000;

/* "#/tasks?phase=failed" -> {path: ["tasks"], query} */
function route() {
  const [text, query] = location.hash.replace(/^#\/?/, "").split("?");
  let path;
  try { path = text.split("/").map(decodeURIComponent); } catch { path = [""]; } /* a link that was cut */
  if (path[0] === "rounds" && path.length < 3) path = ["federated"]; /* rounds are listed with their job */
  return { path: path[0] ? path : ["fleet"], query: new URLSearchParams(query || "") };
}

async function ask(path, options) {
  const reply = await fetch(path, options);
  const body = reply.status === 204 ? {} : await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(body.error || `the server answers ${reply.status}`), { status: reply.status });
  return body;
}

async function askMe() {
  const me = await ask("/api/me");
  setServerTime(me.now);
  return me;
}

/* Rows of a list by "ns/name", as the feed keeps them. */
function useFeed(list, ns, onEnd) {
  const [state, setState] = useState({ rows: new Map(), beats: {}, counts: null, ready: false, live: false, error: "" });
  useEffect(() => {
    let source, timer, heard, closed = false;
    let rows = new Map(), beats = {};
    const key = (row) => `${row.ns}/${row.name}`;
    const show = (more) => setState((old) => ({ ...old, rows, beats, ready: true, live: true, error: "", ...more }));
    const on = (name, take) => source.addEventListener(name, (event) => { heard = Date.now(); take(JSON.parse(event.data)); });
    const open = () => {
      heard = Date.now();
      source = new EventSource(`/api/stream?list=${list}${ns ? `&ns=${ns}` : ""}`);
      on("snapshot", (data) => { rows = new Map(data.rows.map((row) => [key(row), row])); show(); });
      on("change", (data) => {
        rows = new Map(rows);
        data.rows.forEach((row) => rows.set(key(row), row));
        data.gone.forEach((name) => rows.delete(name));
        show();
      });
      on("beat", (data) => { beats = { ...beats, ...data }; show(); });
      on("counts", (data) => show({ counts: data }));
      on("ping", (data) => setServerTime(data.now));
      on("end", (data) => {
        closed = true;
        source.close();
        if (data.login) onEnd(data.why); else setState((old) => ({ ...old, ready: true, live: false, error: data.why }));
      });
      source.onerror = async () => {
        setState((old) => ({ ...old, live: false }));
        if (source.readyState !== EventSource.CLOSED || closed) return;
        source.close(); /* it was refused: ask why, and try again */
        try {
          await askMe();
          const probe = await fetch(`/api/stream?list=${list}${ns ? `&ns=${ns}` : ""}`);
          const text = probe.ok ? "" : (await probe.json()).error;
          if (probe.ok) await probe.body.cancel();
          setState((old) => ({ ...old, ready: !!text || old.ready, error: text }));
        } catch (error) {
          if (error.status === 401) return onEnd("");
        }
        if (!closed) timer = setTimeout(open, RETRY_MS);
      };
    };
    setState({ rows, beats, counts: null, ready: false, live: false, error: "" });
    open();
    const watchdog = setInterval(() => {
      if (closed || source.readyState === EventSource.CLOSED || Date.now() - heard < SILENCE_MS) return;
      source.close();
      setState((old) => ({ ...old, live: false }));
      open();
    }, SILENCE_MS / 9);
    return () => { closed = true; clearTimeout(timer); clearInterval(watchdog); source.close(); };
  }, [list, ns]);
  return state;
}

function Login({ why, onLogin }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState(why), [busy, setBusy] = useState(false);
  const field = useRef();
  useEffect(() => field.current.focus(), []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try { await login(token.trim()); onLogin(); } catch (problem) { setError(problem.message); setBusy(false); }
  };
  return html`<main class="login card">
    <h1>Propeller</h1>
    <p class="soft">You see what your token may list. It is sent to this server only.</p>
    <form onSubmit=${submit}>
      <label for="token">Bearer token</label>
      <input id="token" type="password" autocomplete="off" spellcheck="false" ref=${field} value=${token}
        onInput=${(event) => setToken(event.target.value)} />
      <button type="submit" disabled=${busy || !token.trim()}>${busy ? "Logging in …" : "Log in"}</button>
      <p role="alert" class="small" style=${{ color: "var(--bad)" }}>${error}</p>
    </form>
    <p class="small soft"><code>kubectl propeller ui</code> opens this page and logs in with your kubeconfig.</p>
  </main>`;
}

const login = (token) => ask("/login", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
});

/* The token of `kubectl propeller ui` is in the fragment, which no server sees; it is removed before anything else. */
async function loginFromFragment() {
  const found = location.hash.match(/^#token=([^&]+)/);
  if (!found) return;
  history.replaceState(null, "", location.pathname);
  await login(decodeURIComponent(found[1]));
}

/* A view that fails leaves the others. Its key is the address, so that another address tries again. */
function Guarded({ page, ...rest }) {
  const [error] = useErrorBoundary();
  return error ? html`<p class="empty" role="alert">This view cannot be shown: ${error.message}</p>` : html`<${page} ...${rest} />`;
}

function Shell({ me, onEnd }) {
  const [at, setAt] = useState(route());
  const [ns, setNs] = useState(sessionStorage.getItem("ns") || "");
  const [typed, setTyped] = useState(ns);
  useEffect(() => {
    const moved = () => { setAt(route()); scrollTo(0, 0); };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const view = Object.hasOwn(VIEWS, at.path[0]) ? VIEWS[at.path[0]] : VIEWS.fleet;
  const detail = at.path.length > 2;
  const feed = useFeed(view.feed || "fleet", detail ? at.path[1] : ns, onEnd);
  const choose = (event) => { event.preventDefault(); sessionStorage.setItem("ns", typed); setNs(typed); };
  const seen = [...new Set([...feed.rows.values()].map((row) => row.ns))].sort();
  return html`
    <header><div class="bar">
      <span class="brand">Propeller</span>
      <form class="end" onSubmit=${choose}>
        <label class="small soft" for="ns">Namespace</label>
        <input id="ns" list="namespaces" placeholder="all" size="14" value=${typed} onInput=${(e) => setTyped(e.target.value.trim())} onChange=${choose} />
        <datalist id="namespaces">${seen.map((name) => html`<option value=${name} />`)}</datalist>
        <span class="small soft" title=${feed.live ? "changes arrive as they happen" : "the connection is down; it is tried again"}>
          ${feed.live ? "● live" : "○ connecting"}</span>
        <span class="small soft"><bdi>${me.user}</bdi></span>
        <button type="button" class="small" onClick=${() => ask("/logout", { method: "POST" }).finally(() => onEnd(""))}>Log out</button>
      </form>
      <nav aria-label="Views">${NAV.map(([name, title]) => html`
        <a href=${`#/${name}`} aria-current=${(view.nav || at.path[0]) === name ? "page" : null}>${title}</a>`)}</nav>
    </div></header>
    ${!feed.live && feed.ready && !feed.error && html`<div class="notice" role="status">The connection is down. What you see may be old.</div>`}
    <main>${feed.error
      ? html`<p class="empty" role="alert">${feed.error}${!ns && html`<br />Choose a namespace above.`}</p>`
      : html`<${Guarded} key=${at.path.join("/")} page=${view.page} at=${at} ns=${ns} feed=${feed} ask=${ask} />`}</main>`;
}

function App() {
  const [me, setMe] = useState(null);
  const [why, setWhy] = useState(null); /* a text: the login form is shown with it */
  const enter = () => askMe().then((found) => { setWhy(null); setMe(found); })
    .catch((error) => setWhy(error.status === 401 ? "" : error.message));
  useEffect(() => { loginFromFragment().then(enter, (error) => setWhy(error.message)); }, []);
  if (why !== null) return html`<${Login} why=${why} onLogin=${enter} />`;
  return me && html`<${Shell} me=${me} onEnd=${(text) => { setMe(null); setWhy(text); }} />`;
}

render(html`<${App} />`, document.getElementById("app"));
