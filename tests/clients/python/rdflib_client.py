"""rdflib: SPARQLStore and SPARQLUpdateStore, queries, changes of graphs, errors."""

import sys
from urllib.error import HTTPError

from check import check, fails, main, same
from rdflib import Dataset, Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

SERVER = sys.argv[1]
ENDPOINTS = [f"{SERVER}/", f"{SERVER}/query", f"{SERVER}/update", f"{SERVER}/sparql"]
NAME = URIRef("http://example.org/rdflib")
S, P = URIRef(f"{NAME}#s"), URIRef(f"{NAME}#p")


def writable(endpoint=ENDPOINTS[0], **options):
    return SPARQLUpdateStore(endpoint, endpoint, context_aware=True, **options)


def fresh(endpoint=ENDPOINTS[0]):
    graph = Graph(writable(endpoint), identifier=NAME)
    graph.remove((None, None, None))
    return graph


@check
def a_graph_is_changed_and_read_at_every_endpoint():
    for endpoint in ENDPOINTS:
        graph = fresh(endpoint)
        graph.add((S, P, Literal("é\n\"'")))
        graph.add((S, P, Literal(7)))
        same(len(graph), 2)
        same(set(graph.objects(S, P)), {Literal("é\n\"'"), Literal(7)})
        graph.remove((S, P, Literal(7)))
        same(list(graph.objects(S, P)), [Literal("é\n\"'")])
        assert (S, P, Literal(7)) not in graph


@check
def each_form_of_query_by_each_method():
    graph = fresh()
    graph.addN([(S, P, Literal(n), graph) for n in range(3)])
    for endpoint in ENDPOINTS:
        for method in ["GET", "POST", "POST_FORM"]:
            for form in ["xml", "json", "csv", "tsv"]:
                store = SPARQLStore(endpoint, method=method, returnFormat=form)
                rows = store.query(f"SELECT ?o {{ GRAPH <{NAME}> {{ ?s ?p ?o }} }} ORDER BY ?o")
                same(sorted(str(row.o) for row in rows), ["0", "1", "2"])
            store = SPARQLStore(endpoint, method=method)
            same(bool(store.query("ASK {}").askAnswer), True)
            made = store.query(f"CONSTRUCT {{ ?s ?p ?o }} {{ GRAPH <{NAME}> {{ ?s ?p ?o }} }}")
            same(len(made.graph), 3)
            same(len(store.query(f"DESCRIBE <{S}> FROM <{NAME}>").graph), 3)


@check
def a_dataset_has_its_graphs():
    fresh().add((S, P, Literal("x")))
    dataset = Dataset(store=writable())
    assert NAME in {graph.identifier for graph in dataset.graphs()}
    same(len(dataset.get_context(NAME)), 1)
    dataset.remove_graph(NAME)
    same(len(dataset.get_context(NAME)), 0)
    # Makes it.
    dataset.graph(NAME).add((S, P, Literal("y")))
    same(len(dataset.get_context(NAME)), 1)


@check
def an_update_by_text():
    graph = fresh()
    graph.update(f"INSERT DATA {{ <{S}> <{P}> 'here' }}")
    same(list(graph.objects(S, P)), [Literal("here")])


@check
def what_is_wrong_is_told():
    fails(HTTPError, lambda: fresh().update("INSERT DATA { <a> <b> }"), "expected a term")
    # Its own words; the server's are their cause.
    store = SPARQLStore(ENDPOINTS[0])
    fails(ValueError, lambda: store.query("SELECT ?x { ?x <p ?y }"), "SPARQL query")


main()
