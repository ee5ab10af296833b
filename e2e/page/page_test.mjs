/* The fleet page in Chromium, on the programs of `make demo KEEP=1`: page_test.mjs PAGE TOKEN-FILE USERS-FILE FOLDER.
   TOKEN-FILE is of the user "looker", whose line of USERS-FILE is removed at the end. FOLDER gets the screenshots. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [base, tokenFile, usersFile, folder] = process.argv.slice(2);
const token = readFileSync(tokenFile, "utf8").trim();
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const VIEWS = ["fleet", "proplets", "proplets/default/gateway", "tasks", "tasks/default/addition", "tasks/default/needs-gpu", "tasks/default/long",
  "jobs", "jobs/default/diamond", "federated", "federated/default/digits", "events"];
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };
const problems = [];
let checks = 0;
const check = (what, holds) => { checks++; if (!holds) problems.push(what); };
const kubectl = (args, input) => execFileSync("kubectl", args, { input, encoding: "utf8" });

function addTask(name, change) {
  const task = JSON.parse(kubectl(["get", "task", "addition", "-o", "json"]));
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: task.apiVersion, kind: "Task", metadata: { name },
    spec: { ...task.spec, name, ...change } }));
}

async function open(browser, options) {
  const page = await (await browser.newContext(options)).newPage();
  page.on("console", (message) => { if (message.type() === "error") problems.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("request", (request) => check(`a request to ${request.url()}`, request.url().startsWith(base) || request.url().startsWith("data:")));
  return page;
}

async function lookAtAll(browser, scheme, size) {
  const page = await open(browser, { viewport: SIZES[size], colorScheme: scheme });
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
      problems.push(`${view} ${scheme} ${size}: ${violation.id}: ${violation.nodes[0].html.slice(0, 120)}`);
    checks++;
  }
  return page;
}

/* A Task with a checkpoint, which no device of the demo takes, and a job whose participants have states. */
function addLongWork() {
  const lastCheckpoint = { step: 1200, attempt: 1, proplet: "gateway", time: new Date(Date.now() - 600000).toISOString(), uri: "https://u:planted-secret@files.example/long?sig=planted-secret" };
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
  for (const word of ["Last checkpoint", "1200", "10m ago", "https://files.example/long?…", "NoCoordinator", "Attempts", "the start went out to the Proplet"]) check(`a Task with a checkpoint lacks ${word}`, task.includes(word));
  check("a password is on the page", !(await page.content()).includes("planted-secret"));
  const job = await words("#/federated/default/digits");
  for (const word of ["gateway-2", "Missing", "Training"]) check(`a FederatedJob lacks ${word}`, job.includes(word));
}

const firstRow = (page, text) => page.waitForFunction((name) => document.querySelector(".row")?.innerText.startsWith(name), text);

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

/* A browser whose clock is two days ahead. */
async function agesAreThoseOfTheServer(browser) {
  const page = await open(browser, { viewport: SIZES.wide });
  await page.addInitScript(() => { const real = Date.now; Date.now = () => real() + 172800000; });
  await page.goto(`${base}/#token=${encodeURIComponent(token)}`);
  await page.click('nav a[href="#/tasks"]');
  await firstRow(page, "fresh");
  const age = await page.innerText(".row >> nth=0 >> [role=cell] >> nth=3");
  check(`a Task is ${age} old for a browser with a wrong clock`, /^[0-9]+[sm]$/.test(age));
  await page.context().close();
}

async function main() {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  addTask("needs-gpu", { propletSelector: { matchLabels: { gpu: "true" } }, env: { PASSWORD: "planted-secret" } });
  kubectl(["apply", "-f", "config/samples/propellerjob.yaml"]);
  addLongWork();

  for (const [scheme, size] of [["light", "narrow"], ["dark", "wide"]]) await (await lookAtAll(browser, scheme, size)).context().close();
  const page = await lookAtAll(browser, "light", "wide");

  await page.evaluate(() => { location.hash = "#/tasks"; });
  await page.waitForSelector(".row");
  addTask("fresh", {});
  await page.waitForFunction(() => [...document.querySelectorAll(".row")].some((row) => row.innerText.includes("fresh") && row.innerText.includes("completed")), null, { timeout: 30000 });
  checks++;
  await listKeepsItsFilter(page);
  await longWorkIsShown(page);
  await agesAreThoseOfTheServer(browser);

  /* The user is removed: the page ends with the login form, without a reload. */
  writeFileSync(usersFile, readFileSync(usersFile, "utf8").split("\n").filter((line) => !line.startsWith("looker ")).join("\n"));
  await page.waitForSelector("#token", { timeout: 90000 });
  checks++;
  await browser.close();
  problems.filter((text) => /console: .*401/.test(text)).forEach((text) => problems.splice(problems.indexOf(text), 1)); /* that was asked for */
  problems.forEach((text) => console.log(`page: ${text}`));
  console.log(`page: ${checks - problems.length} passed, ${problems.length} failed`);
  process.exit(problems.length ? 1 : 0);
}

await main();
