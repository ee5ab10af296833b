/* The fleet page in Chromium, on the programs of `make demo KEEP=1`: page_test.mjs PAGE TOKEN-FILE USERS-FILE FOLDER.
   TOKEN-FILE is of the user "looker", whose line of USERS-FILE is removed at the end. FOLDER gets the screenshots. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { check, complain, firstRow, forgive, kubectl, launch, open, report, SIZES } from "./browser.mjs";

const [base, tokenFile, usersFile, folder] = process.argv.slice(2);
const token = readFileSync(tokenFile, "utf8").trim();
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const VIEWS = ["fleet", "proplets", "proplets/default/gateway", "tasks", "tasks/default/addition", "tasks/default/needs-gpu", "tasks/default/long",
  "jobs", "jobs/default/diamond", "federated", "federated/default/digits", "enrollments", "enrollments/default/demo", "events"];

function addTask(name, change) {
  const task = JSON.parse(kubectl(["get", "task", "addition", "-o", "json"]));
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: task.apiVersion, kind: "Task", metadata: { name },
    spec: { ...task.spec, name, ...change } }));
}

async function lookAtAll(browser, scheme, size) {
  const page = await open(browser, base, { viewport: SIZES[size], colorScheme: scheme });
  await page.goto(`${base}/#token=${encodeURIComponent(token)}`);
  await page.waitForSelector("nav");
  check("the token left the address", !page.url().includes("token"));
  await page.evaluate(readFileSync(axe, "utf8")); /* not a script of the page, which its policy would refuse */
  for (const view of VIEWS) {
    await page.evaluate((hash) => { location.hash = hash; }, `#/${view}`);
    await page.waitForSelector("main :is(.card, .list, .empty)");
    await page.waitForFunction(() => !document.querySelector("main").innerText.startsWith("Loading"));
    check(`${view} is wider than ${size}`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.screenshot({ path: `${folder}/${view.replaceAll("/", "-")}-${size}-${scheme}.png` });
    const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    for (const violation of found.violations.filter((v) => ["serious", "critical"].includes(v.impact)))
      complain(`${view} ${scheme} ${size}: ${violation.id}: ${violation.nodes[0].html.slice(0, 120)}`);
  }
  return page;
}

/* A Task with a checkpoint, which no device of the demo takes, and a job whose participants have states. */
function addLongWork() {
  const lastCheckpoint = { step: 1200, attempt: 1, proplet: "gateway", time: new Date(Date.now() - 7260000).toISOString(), uri: "https://u:planted-secret@files.example/long?sig=planted-secret" };
  addTask("long", { checkpoint: { interval: "5m" } });
  kubectl(["wait", "--for=jsonpath={.status.phase}=completed", "task/long", "--timeout=30s"]);
  kubectl(["patch", "task", "long", "--subresource=status", "--type=merge", "-p", JSON.stringify({ status: { lastCheckpoint } })]);
  kubectl(["apply", "-f", "config/samples/federatedjob.yaml"]);
  kubectl(["wait", "--for=jsonpath={.status.participants}", "traininground/round-1-digits", "--timeout=30s"]);
}

async function longWorkIsShown(page) {
  const words = async (view) => {
    await page.evaluate((hash) => { location.hash = hash; }, view);
    await page.waitForSelector(`h1:has-text("${view.split("/").pop()}")`);
    return page.innerText("main");
  };
  const task = await words("#/tasks/default/long");
  for (const word of ["Last checkpoint", "1200", "2h ago", "https://files.example/long?…", "NoCoordinator", "Attempts", "the start went out to the Proplet"]) check(`a Task with a checkpoint lacks ${word}`, task.includes(word));
  check("a password is on the page", !(await page.content()).includes("planted-secret"));
  const job = await words("#/federated/default/digits");
  for (const word of ["gateway-2", "Missing", "Training"]) check(`a FederatedJob lacks ${word}`, job.includes(word));
}

/* On a domain of its own, with two devices that only this test knows. A client id may be a command of a shell. */
function addEnrollment() {
  const spec = { domainId: "elsewhere", channelId: "workers", mqttAddress: "tcp://localhost:1883" };
  const lastSeen = new Date().toISOString();
  const pending = ["sensor-7", "$(it)"].map((clientId) => ({ clientId, channelId: "workers", lastSeen }));
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "propeller.propeller.abstractmachines.fr/v1", kind: "Enrollment", metadata: { name: "demo" }, spec }));
  kubectl(["wait", "--for=condition=Ready", "enrollment/demo", "--timeout=30s"]);
  kubectl(["patch", "enrollment", "demo", "--subresource=status", "--type=merge", "-p", JSON.stringify({ status: { pending, pendingCount: 2 } })]);
}

async function pendingDevicesAreShown(page) {
  await page.evaluate(() => { location.hash = "#/enrollments/default/demo"; });
  await page.waitForSelector('h1:has-text("demo")');
  const text = await page.innerText("main");
  for (const word of ["Listening", "kubectl propeller approve sensor-7 -n default", "approve '$(it)' -n default"]) check(`an Enrollment lacks ${word}`, text.includes(word));
}

/* A Task is opened from a list with a filter; Back and a reload show the list as it was. */
async function listKeepsItsFilter(page) {
  await page.evaluate(() => { location.hash = "#/tasks"; });
  await firstRow(page, "fresh");
  await page.click("text=Oldest first");
  await firstRow(page, "addition");
  await page.fill('input[type="search"]', "needs-gpu nocandidates");
  await page.waitForFunction(() => document.querySelectorAll(".row").length === 1);
  await page.click(".row");
  await page.waitForSelector(".why");
  const text = await page.innerText("main");
  check("the detail names the cause", text.includes("lacks label gpu=true") && text.includes("What to do:"));
  check("a value of env is on the page", !(await page.content()).includes("planted-secret"));
  for (const again of ["goBack", "reload"]) {
    await page[again]();
    await page.waitForSelector(".row");
    check(`${again}: the filter is lost`, await page.inputValue('input[type="search"]') === "needs-gpu nocandidates" && await page.locator(".row").count() === 1);
    check(`${again}: the order is lost`, await page.getAttribute("text=Oldest first", "aria-pressed") === "true");
  }
  await page.goBack();
  await firstRow(page, "fresh");
  check("a list without a filter has one", await page.inputValue('input[type="search"]') === "");
}

/* Its device sends metrics every ten seconds. */
async function loadIsShown(page) {
  await page.evaluate(() => { location.hash = "#/proplets/default/gateway"; });
  const chart = page.locator('[role=img][aria-label^="the last 10 minutes"] canvas');
  await chart.waitFor({ timeout: 60000 });
  const label = await page.getAttribute('[role=img][aria-label^="the last 10 minutes"]', "aria-label");
  check(`the chart says: ${label}`, /processor [0-9]+%/.test(label));
}

/* A browser whose clock is two days ahead. */
async function agesAreThoseOfTheServer(browser) {
  const page = await open(browser, base, { viewport: SIZES.wide });
  await page.addInitScript(() => { const real = Date.now; Date.now = () => real() + 172800000; });
  await page.goto(`${base}/#token=${encodeURIComponent(token)}`);
  await page.click('nav a[href="#/tasks"]');
  await firstRow(page, "fresh");
  const age = await page.innerText(".row >> nth=0 >> [role=cell] >> nth=3");
  check(`a Task is ${age} old for a browser with a wrong clock`, /^[0-9]+[sm]$/.test(age));
  await page.context().close();
}

/* Logins are in memory only. The rows stay while the server is away, and the view while there is no login. */
async function aRestartAsksForALogin(page) {
  await page.evaluate(() => { location.hash = "#/tasks?order=oldest"; });
  await firstRow(page, "addition");
  execFileSync("e2e/demo.sh", ["down"]);
  await page.waitForSelector(".notice:has-text('The connection is down')");
  check("the rows have gone with the server", await page.locator(".row").count() > 0);
  execFileSync("e2e/demo.sh", ["up"]);
  await page.waitForSelector("#token");
  await page.fill("#token", token);
  await page.click("button[type=submit]");
  await firstRow(page, "addition");
  await page.waitForSelector("text=● live");
  check("the order is lost", await page.getAttribute("text=Oldest first", "aria-pressed") === "true");
  forgive(/ERR_|401/);
}

async function main() {
  const browser = await launch();
  addTask("needs-gpu", { propletSelector: { matchLabels: { gpu: "true" } }, env: { PASSWORD: "planted-secret" } });
  kubectl(["apply", "-f", "config/samples/propellerjob.yaml"]);
  addLongWork();
  addEnrollment();

  for (const [scheme, size] of [["light", "narrow"], ["dark", "wide"]]) await (await lookAtAll(browser, scheme, size)).context().close();
  const page = await lookAtAll(browser, "light", "wide");

  await page.evaluate(() => { location.hash = "#/tasks"; });
  await page.waitForSelector(".row");
  addTask("fresh", {});
  await page.waitForFunction(() => [...document.querySelectorAll(".row")].some((row) => row.innerText.includes("fresh") && row.innerText.includes("completed")), null, { timeout: 30000 });
  await listKeepsItsFilter(page);
  await longWorkIsShown(page);
  await pendingDevicesAreShown(page);
  await loadIsShown(page);
  await agesAreThoseOfTheServer(browser);
  await aRestartAsksForALogin(page);

  /* The user is removed: the page ends with the login form, without a reload. */
  writeFileSync(usersFile, readFileSync(usersFile, "utf8").split("\n").filter((line) => !line.startsWith("looker ")).join("\n"));
  await page.waitForSelector("#token", { timeout: 90000 });
  forgive(/ 401 /);
  await browser.close();
  report("page");
}

await main();
