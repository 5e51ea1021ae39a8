// fetch-sparql-endpoint: queries by each method, updates, errors.

import { SparqlEndpointFetcher } from "fetch-sparql-endpoint";
import { all, check, fails, main, same } from "./check.js";

const [SERVER] = process.argv.slice(2);
const ENDPOINTS = ["/", "/query", "/update", "/sparql"].map(path => SERVER + path);
const FETCHERS = [
  { method: "GET" },
  { method: "POST" },
  { method: "POST", directPost: true },
].map(options => new SparqlEndpointFetcher(options));

check("each form of query by each method at every endpoint", async () => {
  for (const fetcher of FETCHERS) {
    for (const endpoint of ENDPOINTS) {
      await fetcher.fetchUpdate(endpoint, "INSERT DATA { <urn:fetched> <urn:fetch> 'é & +' }");
      const rows = await all(await fetcher.fetchBindings(endpoint, "SELECT ?o { ?s <urn:fetch> ?o }"));
      same(rows.map(row => row.o.value), ["é & +"]);
      same(await fetcher.fetchAsk(endpoint, "ASK { <urn:fetched> <urn:fetch> ?o }"), true);
      const construct = "CONSTRUCT WHERE { ?s <urn:fetch> ?o }";
      same((await all(await fetcher.fetchTriples(endpoint, construct))).length, 1);
      same((await all(await fetcher.fetchTriples(endpoint, "DESCRIBE <urn:fetched>"))).length, 1);
      await fetcher.fetchUpdate(endpoint, "DELETE WHERE { ?s <urn:fetch> ?o }");
      same(await fetcher.fetchAsk(endpoint, "ASK { <urn:fetched> <urn:fetch> ?o }"), false);
    }
  }
});

check("what is wrong is told", async () => {
  for (const fetcher of FETCHERS) {
    for (const endpoint of ENDPOINTS) {
      await fails(() => fetcher.fetchBindings(endpoint, "SELECT * { ?s <p ?o }"), "line 1, column");
      // It reads no answer to an update, so its error has the status only.
      await fails(() => fetcher.fetchUpdate(endpoint, "INSERT DATA { <a> <b> }"), "HTTP status 400");
    }
  }
});

main();
