"""SPARQLWrapper: each form of query in each of its formats, updates, errors."""

import sys
import xml.dom.minidom

import SPARQLWrapper as wrapper
from check import check, fails, main, same
from rdflib import Graph

SERVER = sys.argv[1]
ENDPOINTS = [f"{SERVER}/", f"{SERVER}/query", f"{SERVER}/update", f"{SERVER}/sparql"]
GRAPH = "http://example.org/sparqlwrapper"
S = f"<{GRAPH}#s>"


def client(endpoint=ENDPOINTS[1], form=wrapper.JSON, method=wrapper.GET):
    made = wrapper.SPARQLWrapper(endpoint)
    made.setReturnFormat(form)
    made.setMethod(method)
    return made


def ask(made, text):
    made.setQuery(text)
    return made.query()


def update(text, endpoint=ENDPOINTS[2], direct=False):
    made = client(endpoint, method=wrapper.POST)
    if direct:
        made.setRequestMethod(wrapper.POSTDIRECTLY)
    response = ask(made, text)
    same(response.response.status, 204)


def write(graph_text):
    update(f"DROP SILENT GRAPH <{GRAPH}>; INSERT DATA {{ GRAPH <{GRAPH}> {{ {graph_text} }} }}")


@check
def an_update_and_a_query_at_every_endpoint():
    for endpoint in ENDPOINTS:
        for direct in [False, True]:
            update(f"DROP SILENT GRAPH <{GRAPH}>", endpoint, direct)
            update(
                f"INSERT DATA {{ GRAPH <{GRAPH}> {{ {S} <urn:p> 'é & +' }} }}", endpoint, direct
            )
            for method in [wrapper.GET, wrapper.POST]:
                made = client(endpoint, method=method)
                if direct and method == wrapper.POST:
                    made.setRequestMethod(wrapper.POSTDIRECTLY)
                found = ask(made, f"SELECT ?o {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}").convert()
                same(found["results"]["bindings"][0]["o"]["value"], "é & +")


@check
def a_select_in_each_format_and_those_of_other_forms():
    write(f"{S} <urn:p> 'x'")
    text = f"SELECT ?o {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}"
    same(ask(client(form=wrapper.CSV), text).convert(), b"o\r\nx\r\n")
    same(ask(client(form=wrapper.TSV), text).convert(), b'?o\n"x"\n')
    found = ask(client(form=wrapper.XML), text).convert()
    assert isinstance(found, xml.dom.minidom.Document), found
    for form in [wrapper.TURTLE, wrapper.N3, wrapper.RDFXML, wrapper.JSONLD]:
        assert ask(client(form=form), text).response.status == 200, form


@check
def an_ask_in_each_format():
    for form in [wrapper.JSON, wrapper.CSV, wrapper.TSV, wrapper.TURTLE, wrapper.N3]:
        response = ask(client(form=form), "ASK { ?s ?p ?o }")
        assert response.response.status == 200, form
    same(ask(client(), "ASK {}").convert()["boolean"], True)
    found = ask(client(form=wrapper.XML), "ASK {}").convert()
    same(found.getElementsByTagName("boolean")[0].firstChild.data, "true")


@check
def a_construct_and_a_describe_in_each_format_and_those_of_other_forms():
    write(f"{S} <urn:p> 'x'")
    for text in [
        f"CONSTRUCT {{ ?s ?p ?o }} {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}",
        f"DESCRIBE {S} FROM <{GRAPH}>",
    ]:
        for form in [wrapper.XML, wrapper.RDFXML, wrapper.JSONLD]:
            found = ask(client(form=form), text).convert()
            assert isinstance(found, Graph) and len(found) == 1, (form, found)
        for form in [wrapper.TURTLE, wrapper.N3]:
            found = ask(client(form=form), text).convert()
            same(len(Graph().parse(data=found, format="turtle")), 1)
        for form in [wrapper.JSON, wrapper.CSV, wrapper.TSV]:
            assert ask(client(form=form), text).response.status == 200, form


@check
def a_format_beside_that_of_the_parameters():
    made = client(form=wrapper.XML)
    made.addParameter("format", "application/sparql-results+json")
    made.addParameter("output", "turtle")
    made.addParameter("results", "nonsense")
    same(ask(made, "ASK {}").response.status, 200)


@check
def what_virtuoso_takes():
    made = client()
    for name in ["default-graph-uri", "named-graph-uri"]:
        made.addParameter(name, "")
    made.addParameter("timeout", "0")
    made.addParameter("debug", "on")
    same(ask(made, "ASK {}").convert()["boolean"], True)


@check
def the_dataset_of_the_protocol():
    write(f"{S} <urn:p> 'x'")
    made = client()
    made.addParameter("default-graph-uri", GRAPH)
    found = ask(made, "SELECT ?o { ?s ?p ?o }").convert()
    same(len(found["results"]["bindings"]), 1)


@check
def what_is_wrong_is_told():
    wrong = "SELECT ?x\nWHERE { ?x <p ?y }"
    fails(wrapper.SPARQLExceptions.QueryBadFormed, lambda: ask(client(), wrong), "line 2, column")
    made = client(method=wrapper.POST)
    fails(
        wrapper.SPARQLExceptions.QueryBadFormed,
        lambda: ask(made, "INSERT DATA { <a> <b> }"),
        "line 1, column",
    )


main()
