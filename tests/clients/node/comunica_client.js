// Comunica: how it finds out what an endpoint is, queries, updates, two servers in one query, errors.

import { QueryEngine } from "@comunica/query-sparql";
import { all, check, fails, main, same } from "./check.js";

const [SERVER, OTHER] = process.argv.slice(2);
const ENDPOINTS = ["/", "/query", "/update", "/sparql"].map(path => SERVER + path);
const GRAPH = "http://example.org/comunica";

const engine = () => new QueryEngine();
// Found out by itself, and told.
const sources = endpoint => [[endpoint], [{ type: "sparql", value: endpoint }]];
const numbers = async stream => (await all(stream)).map(row => row.get("n").value).sort();

async function update(endpoint, text) {
  const destination = { type: "sparql", value: endpoint };
  await engine().queryVoid(text, { sources: [destination], destination });
}

const put = endpoint =>
  update(endpoint, `DELETE WHERE { ?s <urn:comunica> ?n };
    INSERT DATA { <urn:a> <urn:comunica> 1 . <urn:b> <urn:comunica> 2 }`);

check("an endpoint is known by itself and each form of query is answered", async () => {
  await put(ENDPOINTS[2]);
  for (const endpoint of ENDPOINTS) {
    for (const found of sources(endpoint)) {
      const context = { sources: found };
      const select = "SELECT ?n { ?s <urn:comunica> ?n FILTER(?n > 0) }";
      same(await numbers(await engine().queryBindings(select, context)), ["1", "2"]);
      same(await engine().queryBoolean("ASK { <urn:a> <urn:comunica> 1 }", context), true);
      const construct = "CONSTRUCT { ?s <urn:made> ?n } { ?s <urn:comunica> ?n }";
      same((await all(await engine().queryQuads(construct, context))).length, 2);
      const describe = "DESCRIBE <urn:b>";
      same((await all(await engine().queryQuads(describe, context))).length, 1);
    }
  }
});

check("an update at every endpoint", async () => {
  for (const endpoint of ENDPOINTS) {
    await put(endpoint);
    await update(endpoint, "DELETE DATA { <urn:b> <urn:comunica> 2 }");
    const context = { sources: [{ type: "sparql", value: endpoint }] };
    same(await numbers(await engine().queryBindings("SELECT ?n { ?s <urn:comunica> ?n }", context)), ["1"]);
  }
});

check("two servers in one query", async () => {
  await put(ENDPOINTS[2]);
  await update(`${OTHER}/update`, "INSERT DATA { <urn:a> <urn:name> 'Ann' }");
  for (const path of ["/", "/query", "/sparql"]) {
    const both = "SELECT ?n { ?s <urn:comunica> ?i . ?s <urn:name> ?n }";
    const found = await engine().queryBindings(both, { sources: [SERVER + path, OTHER + path] });
    same(await numbers(found), ["Ann"]);
  }
});

check("SERVICE of one server by the other, as the client sends it and as the server does", async () => {
  await put(ENDPOINTS[2]);
  await update(`${OTHER}/update`, "INSERT DATA { <urn:a> <urn:name> 'Ann' }");
  const text = `SELECT ?n { ?s <urn:comunica> ?i . SERVICE <${OTHER}/sparql> { ?s <urn:name> ?n } }`;
  for (const endpoint of [ENDPOINTS[1], ENDPOINTS[3]]) {
    same(await numbers(await engine().queryBindings(text, { sources: [endpoint] })), ["Ann"]);
  }
  const answer = await fetch(`${SERVER}/query?${new URLSearchParams({ query: text, format: "csv" })}`);
  same(await answer.text(), "n\r\nAnn\r\n");
});

check("a graph by its name", async () => {
  await update(ENDPOINTS[2], `DROP SILENT GRAPH <${GRAPH}>;
    INSERT DATA { GRAPH <${GRAPH}> { <urn:c> <urn:comunica> 3 } }`);
  const text = `SELECT ?n { GRAPH <${GRAPH}> { ?s <urn:comunica> ?n } }`;
  same(await numbers(await engine().queryBindings(text, { sources: [ENDPOINTS[1]] })), ["3"]);
});

check("what is wrong is told", async () => {
  // What its own parser takes, and the server does not.
  const sources = [{ type: "sparql", value: `${SERVER}/nowhere` }];
  const nowhere = async () => all(await engine().queryBindings("SELECT * { ?s ?p ?o }", { sources }));
  await fails(nowhere, "nothing at /nowhere");
});

main();
