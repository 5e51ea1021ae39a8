// sparql-http-client: queries by each method, updates, graph store, errors.

import { Readable } from "node:stream";
import SparqlClient from "sparql-http-client";
import ParsingClient from "sparql-http-client/ParsingClient.js";
import { all, check, fails, main, same } from "./check.js";

const [SERVER] = process.argv.slice(2);
const ENDPOINTS = ["/", "/query", "/update", "/sparql"].map(path => SERVER + path);
const OPERATIONS = ["get", "postUrlencoded", "postDirect"];
const storeUrl = `${SERVER}/store`;
const client = endpoint => new ParsingClient({ endpointUrl: endpoint, updateUrl: endpoint, storeUrl });

check("each form of query by each method at every endpoint", async () => {
  for (const endpoint of ENDPOINTS) {
    const { query } = client(endpoint);
    for (const operation of OPERATIONS) {
      // As a form: what it posts directly it calls a query, also if that is an update.
      await query.update("INSERT DATA { <urn:http-s> <urn:http> 'é & +' }");
      const rows = await query.select("SELECT ?o { ?s <urn:http> ?o }", { operation });
      same(rows.map(row => row.o.value), ["é & +"]);
      same(await query.ask("ASK { <urn:http-s> <urn:http> ?o }", { operation }), true);
      same((await query.construct("CONSTRUCT WHERE { ?s <urn:http> ?o }", { operation })).size, 1);
      same((await query.construct("DESCRIBE <urn:http-s>", { operation })).size, 1);
      await query.update("DELETE WHERE { ?s <urn:http> ?o }");
      same(await query.ask("ASK { <urn:http-s> <urn:http> ?o }", { operation }), false);
    }
  }
});

check("graphs of the store", async () => {
  const { factory, store } = new SparqlClient({ storeUrl });
  const graph = factory.namedNode("http://example.org/http");
  const quad = object =>
    factory.quad(factory.namedNode("urn:a"), factory.namedNode("urn:store"), factory.literal(object), graph);
  await store.put(Readable.from([quad("one")]), { graph });
  await store.post(Readable.from([quad("two")]), { graph });
  const objects = async () => (await all(store.get(graph))).map(found => found.object.value).sort();
  same(await objects(), ["one", "two"]);
  await store.put(Readable.from([quad("three")]), { graph });
  same(await objects(), ["three"]);
  await store.post(Readable.from([quad("four")]));
  same((await all(store.get())).some(found => found.object.value === "four"), true);
});

check("what is wrong is told", async () => {
  const { query } = client(ENDPOINTS[0]);
  for (const operation of OPERATIONS) {
    await fails(() => query.select("SELECT * { ?s <p ?o }", { operation }), "line 1, column");
  }
  await fails(() => query.update("INSERT DATA { <a> <b> }"), "line 1, column");
  const { factory, store } = new SparqlClient({ storeUrl });
  const absent = factory.namedNode("http://example.org/absent");
  await fails(() => all(store.get(absent)), "there is no graph");
});

main();
