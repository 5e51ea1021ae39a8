"""pandas and pyarrow: results as CSV, TSV, Arrow and Parquet."""

import io
import sys
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pandas
import pyarrow
import pyarrow.parquet
from check import check, fails, main, same

SERVER = sys.argv[1]
QUERY = "SELECT ?n ?s { VALUES (?n ?s) { (1 'a') (2 UNDEF) (3 'ö') } }"


def get(accept, query=QUERY, path="/query"):
    url = f"{SERVER}{path}?{urlencode({'query': query})}"
    return urlopen(Request(url, headers={"Accept": accept}))


def values(column):
    return [term and term["value"] for term in column.to_pylist()]


@check
def pandas_reads_csv_from_the_address():
    frame = pandas.read_csv(f"{SERVER}/query?{urlencode({'query': QUERY, 'format': 'csv'})}")
    same(list(frame.n), [1, 2, 3])
    same(list(frame.s.fillna("")), ["a", "", "ö"])


@check
def pandas_reads_tsv():
    frame = pandas.read_csv(get("text/tab-separated-values"), sep="\t")
    same(list(frame["?n"]), [1, 2, 3])


@check
def pyarrow_reads_a_stream():
    with pyarrow.ipc.open_stream(get("application/vnd.apache.arrow.stream")) as stream:
        table = stream.read_all()
    same(values(table["n"]), ["1", "2", "3"])
    same(values(table["s"]), ["a", None, "ö"])
    same(len(table.to_pandas()), 3)


@check
def pyarrow_and_pandas_read_parquet():
    body = get("application/vnd.apache.parquet").read()
    table = pyarrow.parquet.read_table(io.BytesIO(body))
    same(values(table["s"]), ["a", None, "ö"])
    same(len(pandas.read_parquet(io.BytesIO(body))), 3)


@check
def a_graph_is_columns():
    construct = "CONSTRUCT { <urn:a> <urn:p> ?n } { VALUES ?n { 1 2 } }"
    with pyarrow.ipc.open_stream(get("application/vnd.apache.arrow.stream", construct)) as stream:
        same(sorted(values(stream.read_all()["object"])), ["1", "2"])


@check
def what_is_wrong_is_told():
    fails(HTTPError, lambda: get("text/csv", "SELECT ?x { ?x <p ?y }"), "400")


main()
