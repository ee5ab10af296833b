/* The fleet page for a token of one namespace, on the control plane of `make demo CLUSTER=1 KEEP=1`: namespace_test.mjs PAGE.
   kube-apiserver says what the token may see. */
import { check, firstRow, forgive, kubectl, launch, open, report, SIZES } from "./browser.mjs";

const [base] = process.argv.slice(2);
const NS = "lab";

function addNamespace() {
  const task = JSON.parse(kubectl(["get", "task", "addition", "--namespace", "default", "-o", "json"]));
  kubectl(["create", "namespace", NS]);
  kubectl(["create", "serviceaccount", "guest", "--namespace", NS]);
  kubectl(["create", "rolebinding", "guest", "--namespace", NS, "--clusterrole", "view", `--serviceaccount=${NS}:guest`]);
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: task.apiVersion, kind: "Task", metadata: { name: "own", namespace: NS },
    spec: { ...task.spec, name: "own", propletSelector: { matchLabels: { gpu: "true" } } } }));
  kubectl(["wait", "--for=jsonpath={.status.phase}=pending", "task/own", "--namespace", NS, "--timeout=30s"]);
  return kubectl(["create", "token", "guest", "--namespace", NS]).trim();
}

/* A text in the view, which follows the choice of a namespace or an address. */
const says = (page, text) => page.waitForFunction((part) => document.querySelector("main").innerText.includes(part), text);

async function choose(page, ns) {
  await page.fill("#ns", ns);
  await page.press("#ns", "Enter");
}

async function main() {
  const token = addNamespace();
  const browser = await launch();
  const page = await open(browser, base, { viewport: SIZES.wide });
  await page.goto(base);
  await page.fill("#token", token);
  await page.click("button[type=submit]");
  await says(page, "Choose a namespace above.");
  check("all namespaces are refused by the name of the user", (await page.innerText("main")).includes(`system:serviceaccount:${NS}:guest may not list`));

  await choose(page, NS);
  await page.waitForSelector('a[href="#/tasks?phase=pending"]');
  check("the overview counts other namespaces", await page.innerText('.card:has(a[href="#/tasks"]) .big') === "1");
  await page.click('nav a[href="#/tasks"]');
  await firstRow(page, "own");
  check("the list has other namespaces", await page.locator(".row").count() === 1);
  await page.click(".row");
  await page.waitForSelector(".why");

  await page.click('nav a[href="#/tasks"]');
  await choose(page, "default");
  await says(page, "may not list tasks in default");
  await page.evaluate(() => { location.hash = "#/tasks/default/addition"; });
  await says(page, "may not list tasks in default");
  check("a Task of another namespace is shown", !(await page.content()).includes("Life of this run"));
  const refused = await page.evaluate(() => fetch("/api/object?list=tasks&ns=default&name=addition").then((reply) => reply.status));
  check(`a Task of another namespace is answered with ${refused}`, refused === 403);
  await choose(page, NS);
  await page.evaluate(() => { location.hash = "#/tasks"; });
  await firstRow(page, "own");

  forgive(/ 401 | 403 /); /* the question who is logged in, and what the token may not see */
  await browser.close();
  report("page of a namespace");
}

await main();
