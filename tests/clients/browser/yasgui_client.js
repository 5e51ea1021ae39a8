// YASGUI in a browser, on a page of another origin: what it asks the browser may send and read.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { chromium } from "playwright-core";
import { check, main, same } from "../node/check.js";

const [SERVER] = process.argv.slice(2);
const BUILD = new URL("./node_modules/@zazuko/yasgui/build/", import.meta.url);
const PAGE = `<!doctype html><title>YASGUI</title><link rel="stylesheet" href="yasgui.min.css">
  <div id="yasgui"></div><script src="yasgui.min.js"></script>`;

// The page is of another origin, as its port is another.
const pages = createServer(async (request, response) => {
  const name = request.url.slice(1);
  const known = ["yasgui.min.js", "yasgui.min.css"].includes(name);
  const type = name.endsWith(".js") ? "text/javascript" : name.endsWith(".css") ? "text/css" : "text/html";
  response.setHeader("Content-Type", `${type}; charset=utf-8`);
  response.end(known ? await readFile(new URL(name, BUILD)) : PAGE);
});
await new Promise(listening => pages.listen(0, "127.0.0.1", listening));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

async function opened() {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${pages.address().port}/`);
  await page.evaluate(() => {
    window.yasgui = new window.Yasgui(document.getElementById("yasgui"), {
      requestConfig: { endpoint: "http://127.0.0.1:1/" },
      persistenceId: null,
      copyEndpointOnNewTab: false,
    });
  });
  return page;
}

// What YASGUI shows of a query: the rows or the triples that it read, or the error.
const asked = (page, endpoint, text, config = {}) => page.evaluate(async ({ endpoint, text, config }) => {
  const tab = window.yasgui.getTab();
  tab.setRequestConfig({ endpoint, method: "POST", ...config });
  tab.setQuery(text);
  const failed = await tab.query().then(() => undefined, error => String(error));
  const results = tab.getYasr().results;
  const error = results?.getError();
  return {
    failed: error ? error.text ?? error.statusText ?? "an error without a text" : failed,
    bindings: results?.getBindings()?.map(row => Object.fromEntries(Object.entries(row).map(([name, term]) => [name, term.value]))),
    boolean: results?.getBoolean(),
    shown: document.querySelector(".yasr_results")?.innerText,
  };
}, { endpoint, text, config });

const told = (said, expected) => same([said, said?.includes(expected)], [said, true]);

// An update as another client sends it: a page of another origin may not.
const put = async () => {
  const body = "DELETE WHERE { ?s <urn:yasgui> ?n }; INSERT DATA { <urn:a> <urn:yasgui> 1 . <urn:b> <urn:yasgui> 2 }";
  const headers = { "Content-Type": "application/sparql-update" };
  same((await fetch(`${SERVER}/update`, { method: "POST", headers, body })).ok, true);
};

check("rows, by each method, at each endpoint", async () => {
  await put();
  const page = await opened();
  for (const path of ["/", "/query", "/sparql"]) {
    for (const method of ["GET", "POST"]) {
      const found = await asked(page, SERVER + path, "SELECT ?s ?n { ?s <urn:yasgui> ?n } ORDER BY ?n", { method });
      same(found.bindings, [{ s: "urn:a", n: "1" }, { s: "urn:b", n: "2" }]);
      same(found.shown.includes("urn:b"), true);
    }
  }
});

check("yes and no", async () => {
  await put();
  const page = await opened();
  same((await asked(page, `${SERVER}/query`, "ASK { <urn:a> <urn:yasgui> 1 }")).boolean, true);
  same((await asked(page, `${SERVER}/query`, "ASK { <urn:a> <urn:yasgui> 2 }")).boolean, false);
});

check("graphs, in what YASGUI asks for", async () => {
  await put();
  const page = await opened();
  for (const text of ["CONSTRUCT { ?s <urn:made> ?n } { ?s <urn:yasgui> ?n }", "DESCRIBE <urn:a> <urn:b>"]) {
    const found = await asked(page, `${SERVER}/query`, text);
    same(found.failed, undefined);
    same(found.shown.includes("urn:a"), true);
  }
});

check("an error of a text says where", async () => {
  const page = await opened();
  const found = await asked(page, `${SERVER}/query`, "SELECT * { ?s ?p }");
  told(found.failed, "line 1, column 18: expected a term");
});

check("an update of a page of another origin is refused, and the page may read why", async () => {
  await put();
  const page = await opened();
  const found = await asked(page, `${SERVER}/update`, "DELETE WHERE { ?s <urn:yasgui> ?n }");
  told(found.failed, "--cors-origin");
  const left = await asked(page, `${SERVER}/query`, "SELECT ?s { ?s <urn:yasgui> ?n }");
  same(left.bindings.length, 2);
});

await main();
