/* Chromium for tests of the fleet page, and what a page must never do: an error on its console, a request to another host. */
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";

export const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };
const problems = [];
let checks = 0;

export const check = (what, holds) => { checks++; if (!holds) problems.push(what); };
export const complain = (what) => problems.push(what);
/* Errors on the console that the test itself asked for. */
export const forgive = (pattern) => { for (let i = problems.length - 1; i >= 0; i--) if (/^console: /.test(problems[i]) && pattern.test(problems[i])) problems.splice(i, 1); };

export const kubectl = (args, input) => execFileSync("kubectl", args, { input, encoding: "utf8" });
export const launch = () => chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

export async function open(browser, base, options) {
  const page = await (await browser.newContext(options)).newPage();
  page.on("console", (message) => { if (message.type() === "error") problems.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("request", (request) => check(`a request to ${request.url()}`, request.url().startsWith(base) || request.url().startsWith("data:")));
  return page;
}

/* The first row of a list begins with this name. */
export const firstRow = (page, name) => page.waitForFunction((text) => document.querySelector(".row")?.innerText.startsWith(text), name);

export function report(name) {
  problems.forEach((text) => console.log(`${name}: ${text}`));
  console.log(`${name}: ${checks - problems.length} passed, ${problems.length} failed`);
  process.exit(problems.length ? 1 : 0);
}
