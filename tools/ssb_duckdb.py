#!/usr/bin/env python3
"""How fast is Jindou beside DuckDB on the Star Schema Benchmark, both with the same rows?

The tables of a scale factor are made here, from a seed and with the sizes and distributions of the
benchmark's specification. DuckDB loads them as tables; Jindou loads them as RDF, a statement for each
value. Then both answer each query in turns, with the same threads on the same cores: DuckDB in this
process, from the SQL to all rows; Jindou over HTTP on a kept connection, from the request to all
rows. Their answers are compared, and one that differs makes the exit status 1. After that Jindou
answers each query alone on one thread and on all of them, in turns.

Install DuckDB first: pip install duckdb
"""

import argparse
import contextlib
import http.client
import json
import math
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

try:
    import duckdb
except ImportError:
    duckdb = None

EXAMPLES = """examples:
  pip install duckdb
  cargo build --release
  python3 tools/ssb_duckdb.py                             # scale factor 0.1, 11 million triples
  python3 tools/ssb_duckdb.py --scale 0.01 --runs 3 --only Q3
  python3 tools/ssb_duckdb.py --scale 1 --threads 8 --json ssb.json

Tables, triples and both databases are kept in --folder, and used again by the next run with the same
scale factor: at factor 1 about 2 GB. The exit status is 0 if all answers are the same, 1 if one
differs, and 2 after an error."""

REPOSITORY = Path(__file__).resolve().parent.parent
# Of the made tables; part of each folder's records, so that files of another recipe are made anew.
SEED = 1
RECIPE = 1
MOST_SCALE = 100
MAKE_MEMORY = "3GB"
MAKE_THREADS = 4
# A thread makes the statements of one group of rows at a time in memory, 2.4 kB a line of an order.
GROUP_ROWS = 20_480
START_SECONDS = 120
STOP_SECONDS = 20
QUERY_SECONDS = 600
INTERRUPTED = 130

INSTANCE = "http://example.org/ssb/"
SCHEMA = "http://example.org/ssb/schema#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
XSD = "http://www.w3.org/2001/XMLSchema#"

INTEGER, TEXT = "INTEGER", "VARCHAR"

# Each table's columns with their types; the name of a table is the type of a reference to its rows.
TABLES = {
    "date": {
        "d_datekey": INTEGER, "d_date": TEXT, "d_dayofweek": TEXT, "d_month": TEXT, "d_year": INTEGER,
        "d_yearmonthnum": INTEGER, "d_yearmonth": TEXT, "d_daynuminweek": INTEGER,
        "d_daynuminmonth": INTEGER, "d_daynuminyear": INTEGER, "d_monthnuminyear": INTEGER,
        "d_weeknuminyear": INTEGER, "d_sellingseason": TEXT, "d_lastdayinweekfl": TEXT,
        "d_lastdayinmonthfl": TEXT, "d_holidayfl": TEXT, "d_weekdayfl": TEXT,
    },
    "customer": {
        "c_custkey": INTEGER, "c_name": TEXT, "c_address": TEXT, "c_city": TEXT, "c_nation": TEXT,
        "c_region": TEXT, "c_phone": TEXT, "c_mktsegment": TEXT,
    },
    "supplier": {
        "s_suppkey": INTEGER, "s_name": TEXT, "s_address": TEXT, "s_city": TEXT, "s_nation": TEXT,
        "s_region": TEXT, "s_phone": TEXT,
    },
    "part": {
        "p_partkey": INTEGER, "p_name": TEXT, "p_mfgr": TEXT, "p_category": TEXT, "p_brand1": TEXT,
        "p_color": TEXT, "p_type": TEXT, "p_size": INTEGER, "p_container": TEXT,
    },
    "lineorder": {
        "lo_orderkey": INTEGER, "lo_linenumber": INTEGER, "lo_custkey": "customer", "lo_partkey": "part",
        "lo_suppkey": "supplier", "lo_orderdate": "date", "lo_orderpriority": TEXT,
        "lo_shippriority": TEXT, "lo_quantity": INTEGER, "lo_extendedprice": INTEGER,
        "lo_ordtotalprice": INTEGER, "lo_discount": INTEGER, "lo_revenue": INTEGER,
        "lo_supplycost": INTEGER, "lo_tax": INTEGER, "lo_commitdate": "date", "lo_shipmode": TEXT,
    },
}
KEYS = {
    "date": "d_datekey", "customer": "c_custkey", "supplier": "s_suppkey", "part": "p_partkey",
    "lineorder": "lo_orderkey || '-' || lo_linenumber",
}

NATIONS = {
    "ALGERIA": "AFRICA", "ARGENTINA": "AMERICA", "BRAZIL": "AMERICA", "CANADA": "AMERICA",
    "EGYPT": "MIDDLE EAST", "ETHIOPIA": "AFRICA", "FRANCE": "EUROPE", "GERMANY": "EUROPE", "INDIA": "ASIA",
    "INDONESIA": "ASIA", "IRAN": "MIDDLE EAST", "IRAQ": "MIDDLE EAST", "JAPAN": "ASIA",
    "JORDAN": "MIDDLE EAST", "KENYA": "AFRICA", "MOROCCO": "AFRICA", "MOZAMBIQUE": "AFRICA",
    "PERU": "AMERICA", "CHINA": "ASIA", "ROMANIA": "EUROPE", "SAUDI ARABIA": "MIDDLE EAST",
    "VIETNAM": "ASIA", "RUSSIA": "EUROPE", "UNITED KINGDOM": "EUROPE", "UNITED STATES": "AMERICA",
}
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
SHIP_MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
SEASONS = ["Winter"] * 3 + ["Spring"] + ["Summer"] * 4 + ["Fall"] * 2 + ["Christmas"] * 2
HOLIDAYS = ["0101", "0220", "0420", "0520", "0720", "0820", "0920", "1020", "1120", "1224"]
SIZES = ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"]
FINISHES = ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"]
METALS = ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"]
WRAPPINGS = ["SM", "MED", "LG", "JUMBO", "WRAP"]
CONTAINERS = ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]
COLORS = """almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood
burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab
firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki
lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin
navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal
saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise
violet wheat white yellow""".split()


class Failure(Exception):
    """What ends the comparison with one line."""


# The tables of a scale factor


def sizes(scale):
    """The rows of each table, with orders in the place of their lines."""
    growth = 1 + math.floor(math.log2(scale)) if scale >= 1 else scale
    rows = {
        "customer": 30_000 * scale,
        "supplier": 2_000 * scale,
        "part": 200_000 * growth,
        "orders": 1_500_000 * scale,
    }
    return {table: max(1, round(count)) for table, count in rows.items()}


def sql_list(texts):
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def pick(texts, what, number="i"):
    """SQL for one of the texts, drawn for this purpose and this row."""
    return f"{sql_list(texts)}[1 + draw('{what}', {number}, {len(texts)})]"


def date_rows():
    """All days of seven years. A week begins on Sunday; weeks of the year are counted as dbgen does it."""
    return f"""
        SELECT day_key(day) AS d_datekey, strftime(day, '%B %-d, %Y') AS d_date,
            dayname(day) AS d_dayofweek, monthname(day) AS d_month, year(day) AS d_year,
            year(day) * 100 + month(day) AS d_yearmonthnum, strftime(day, '%b%Y') AS d_yearmonth,
            dayofweek(day) + 1 AS d_daynuminweek, day(day) AS d_daynuminmonth,
            dayofyear(day) AS d_daynuminyear, month(day) AS d_monthnuminyear,
            dayofyear(day) // 7 + 1 AS d_weeknuminyear,
            {sql_list(SEASONS)}[month(day)] AS d_sellingseason,
            (dayofweek(day) = 6)::INTEGER AS d_lastdayinweekfl,
            (day = last_day(day))::INTEGER AS d_lastdayinmonthfl,
            list_contains({sql_list(HOLIDAYS)}, strftime(day, '%m%d'))::INTEGER AS d_holidayfl,
            (dayofweek(day) BETWEEN 1 AND 5)::INTEGER AS d_weekdayfl
        FROM range(TIMESTAMP '1992-01-01', TIMESTAMP '1999-01-01', INTERVAL 1 DAY) days(day)"""


def trader_rows(table, key, count):
    """Customers or suppliers; a city is nine characters of its nation and a digit."""
    p, title = table[0], table.capitalize()
    return f"""
        WITH placed AS (
            SELECT i, draw('{p} nation', i, {len(NATIONS)}) AS n, {sql_list(NATIONS)}[1 + n] AS nation
            FROM range(1, {count} + 1) numbers(i))
        SELECT i AS {key}, printf('{title}#%09d', i) AS {p}_name,
            substr(md5('{p} address ' || i), 1, 10 + draw('{p} address', i, 16)) AS {p}_address,
            rpad(left(nation, 9), 9, ' ') || draw('{p} city', i, 10) AS {p}_city,
            nation AS {p}_nation, {sql_list(NATIONS.values())}[1 + n] AS {p}_region,
            printf('%d-%d-%d-%d', 10 + n, 100 + draw('{p} area', i, 900), 100 + draw('{p} office', i, 900),
                1000 + draw('{p} line', i, 9000)) AS {p}_phone,
            {pick(SEGMENTS, p + ' segment')} AS {p}_mktsegment
        FROM placed"""


def part_rows(count):
    """5 manufacturers, 25 categories, 1,000 brands."""
    return f"""
        SELECT i AS p_partkey, {pick(COLORS, 'name')} || ' ' || {pick(COLORS, 'name, too')} AS p_name,
            'MFGR#' || (1 + draw('mfgr', i, 5)) AS p_mfgr,
            p_mfgr || (1 + draw('category', i, 5)) AS p_category,
            p_category || (1 + draw('brand', i, 40)) AS p_brand1, {pick(COLORS, 'color')} AS p_color,
            {pick(SIZES, 'size')} || ' ' || {pick(FINISHES, 'finish')} || ' ' || {pick(METALS, 'metal')}
                AS p_type,
            1 + draw('p size', i, 50) AS p_size,
            {pick(WRAPPINGS, 'wrapping')} || ' ' || {pick(CONTAINERS, 'container')} AS p_container
        FROM range(1, {count} + 1) numbers(i)"""


def lineorder_rows(counts):
    """1 to 7 lines an order, with gaps between the keys of orders and every third customer without any, as
    dbgen has them. Prices are cents and follow from the part."""
    buyers = counts["customer"] - counts["customer"] // 3
    return f"""
        WITH orders AS (
            SELECT i, (i // 8) * 32 + i % 8 AS lo_orderkey, draw('buyer', i, {buyers}) AS buyer,
                buyer // 2 * 3 + buyer % 2 + 1 AS lo_custkey,
                DATE '1992-01-01' + draw('orderdate', i, 2406) AS ordered,
                day_key(ordered) AS lo_orderdate, {pick(PRIORITIES, 'priority')} AS lo_orderpriority,
                unnest(range(1, 2 + draw('lines', i, 7))) AS lo_linenumber
            FROM range(1, {counts['orders']} + 1) numbers(i)),
        lines AS (
            SELECT *, i * 8 + lo_linenumber AS line, 1 + draw('part', line, {counts['part']}) AS lo_partkey,
                90000 + (lo_partkey // 10) % 20001 + 100 * (lo_partkey % 1000) AS price,
                1 + draw('supplier', line, {counts['supplier']}) AS lo_suppkey,
                1 + draw('quantity', line, 50) AS lo_quantity, draw('discount', line, 11) AS lo_discount,
                draw('tax', line, 9) AS lo_tax, lo_quantity * price AS lo_extendedprice,
                lo_extendedprice * (100 - lo_discount) // 100 AS lo_revenue
            FROM orders)
        SELECT *, price * 6 // 10 AS lo_supplycost, '0' AS lo_shippriority,
            day_key(ordered + 30 + draw('commitdate', line, 61)) AS lo_commitdate,
            {pick(SHIP_MODES, 'shipmode', 'line')} AS lo_shipmode,
            sum(lo_revenue * (100 + lo_tax) // 100) OVER (PARTITION BY lo_orderkey) AS lo_ordtotalprice
        FROM lines ORDER BY lo_orderkey, lo_linenumber"""


def column_type(kind):
    return TEXT if kind == TEXT else INTEGER


def make_tables(connection, folder, scale):
    """Writes each table as Parquet; gives the rows of each."""
    connection.execute(f"""CREATE TEMP MACRO draw(what, number, choices) AS
        (md5_number_lower(concat({SEED}, ' ', what, ' ', number)) % choices::UBIGINT)::INTEGER""")
    connection.execute("""CREATE TEMP MACRO day_key(d) AS
        year(d::DATE) * 10000 + month(d::DATE) * 100 + day(d::DATE)""")
    counts = sizes(scale)
    sources = {
        "date": date_rows(),
        "customer": trader_rows("customer", "c_custkey", counts["customer"]),
        "supplier": trader_rows("supplier", "s_suppkey", counts["supplier"]),
        "part": part_rows(counts["part"]),
        "lineorder": lineorder_rows(counts),
    }
    folder.mkdir()
    rows = {}
    for table, columns in TABLES.items():
        typed = ", ".join(f"{column}::{column_type(kind)} AS {column}" for column, kind in columns.items())
        written = connection.execute(
            f"COPY (SELECT {typed} FROM ({sources[table]})) TO '{folder / table}.parquet' "
            f"(FORMAT parquet, ROW_GROUP_SIZE {GROUP_ROWS})")
        rows[table] = written.fetchone()[0]
    return {"rows": rows}


# The same rows as RDF, and both databases


def statements_of_row(table):
    """SQL for all statements of a row as lines of N-Triples, the last one without its end."""
    pieces = [f"subject, ' <{RDF_TYPE}> <{SCHEMA}{table}> .'"]
    for column, kind in TABLES[table].items():
        begin, end = {
            INTEGER: ('"', f'"^^<{XSD}integer> .'),
            TEXT: ('"', '" .'),
        }.get(kind, (f"<{INSTANCE}{kind}/", "> ."))
        pieces.append(f"chr(10), subject, ' <{SCHEMA}{column}> {begin}', {column}, '{end}'")
    return f"concat({', '.join(pieces)})"


def make_triples(connection, folder, tables):
    """Writes each table as compressed N-Triples; gives the number of statements."""
    folder.mkdir()
    statements = 0
    for table, columns in TABLES.items():
        subject = f"concat('<{INSTANCE}{table}/', {KEYS[table]}, '>') AS subject"
        rows = f"SELECT *, {subject} FROM '{tables / table}.parquet'"
        written = connection.execute(
            f"COPY (SELECT {statements_of_row(table)} FROM ({rows})) TO '{folder / table}.nt.zst' "
            "(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '', COMPRESSION zstd)")
        statements += written.fetchone()[0] * (len(columns) + 1)
    return {"statements": statements}


def load_duckdb(file, tables, threads):
    with duckdb.connect(str(file), config={"threads": threads}) as connection:
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{tables / table}.parquet'")
    return {}


def load_jindou(jindou, store, triples, threads):
    files = [str(triples / f"{table}.nt.zst") for table in TABLES]
    run(jindou, "load", "--location", str(store), "--threads", str(threads), *files)
    return {}


def run(jindou, *arguments):
    """What a command of Jindou prints; its last line of errors if it fails."""
    done = subprocess.run([jindou, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"jindou {arguments[0]}: {last_line(done.stderr) or f'exit status {done.returncode}'}")
    return done.stdout


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


def bytes_of(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def made_once(path, make):
    """What is known of a file or folder, which `make` makes unless an earlier run has, and which has its name
    once it is whole."""
    record = path.with_name(path.name + ".json")
    if path.exists() and record.exists():
        known = json.loads(record.read_text())
        if known["recipe"] == RECIPE:
            return known | {"kept": True}
    print(f"making {path}", file=sys.stderr)
    partial = path.with_name(path.name + ".partial")
    for old in [record, partial, path]:
        remove(old)
    begin = time.perf_counter()
    facts = make(partial)
    facts |= {"seconds": time.perf_counter() - begin, "bytes": bytes_of(partial), "recipe": RECIPE}
    partial.rename(path)
    record.write_text(json.dumps(facts) + "\n")
    return facts | {"kept": False}


def make_all(options, folder):
    """Makes what the folder lacks; gives what is known of each part."""
    folder.mkdir(parents=True, exist_ok=True)
    tables, triples, threads = folder / "tables", folder / "triples", options.threads
    settings = {"threads": min(threads, MAKE_THREADS), "memory_limit": MAKE_MEMORY,
                "temp_directory": str(folder / "temporary")}
    with duckdb.connect(config=settings) as connection:
        made = {
            "tables": made_once(tables, lambda path: make_tables(connection, path, options.scale)),
            "triples": made_once(triples, lambda path: make_triples(connection, path, tables)),
        }
    return made | {
        "duckdb": made_once(folder / "ssb.duckdb", lambda path: load_duckdb(path, tables, threads)),
        "jindou": made_once(
            folder / "store", lambda path: load_jindou(options.jindou, path, triples, threads)),
    }


# Queries and their answers


@contextlib.contextmanager
def server(jindou, folder):
    """Serves the store while the body runs; gives host and port. Heavy queries get the priority of any other
    process, as DuckDB's have it."""
    log = folder / "server.log"
    command = [jindou, "serve", "--location", str(folder / "store"), "--read-only", "--port", "0",
               "--heavy-priority", "same", "--query-timeout", str(QUERY_SECONDS)]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield address(process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def address(process, log):
    """Host and port of a server, once it has written them to its log."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        said = log.read_text(errors="replace")
        if found := re.search(r"serving at http://([^:/]+):(\d+)/", said):
            return found[1], int(found[2])
        if ended:
            raise Failure(f"jindou serve: {last_line(said) or f'exit status {process.returncode}'}")
        time.sleep(0.02)
    raise Failure(f"jindou serve is not ready after {START_SECONDS} s")


def ask_jindou(connection, query, threads=None):
    """All rows of an answer, as the terms of TSV; on so many threads, or as the server decides."""
    headers = {"Content-Type": "application/sparql-query", "Accept": "text/tab-separated-values"}
    path = f"/query?threads={threads}" if threads else "/query"
    connection.request("POST", path, query.encode(), headers)
    response = connection.getresponse()
    body = response.read().decode()
    if response.status != 200:
        raise Failure(f"Jindou answers {response.status}: {last_line(body)}")
    return [line.split("\t") for line in body.split("\n")[1:-1]]


def ask_duckdb(connection, query):
    return connection.execute(query).fetchall()


def value_of_term(term):
    """The value of a term of TSV, as DuckDB has it: numbers as numbers, all else as its text."""
    if not term:
        return None
    if not term.startswith('"'):
        try:
            return int(term) if re.fullmatch(r"[+-]?\d+", term) else float(term)
        except ValueError:
            return term.removeprefix("<").removesuffix(">")
    text, _, datatype = term.rpartition('"')
    if datatype.endswith(("#decimal>", "#integer>", "#double>")):
        return float(text[1:])
    return re.sub(r"\\(.)", lambda found: {"t": "\t", "n": "\n", "r": "\r"}.get(found[1], found[1]), text[1:])


def comparable(rows):
    """Rows whose values can be compared."""
    return [tuple(map(comparable_value, row)) for row in rows]


def comparable_value(value):
    """A sum of no rows is 0 in SPARQL and NULL in SQL; fractions are compared by nine digits."""
    if value is None:
        return 0
    return float(f"{value:.9g}") if isinstance(value, (float, Decimal)) else value


def order_columns(sql, columns):
    """The numbers of the columns by which the query orders its rows."""
    order = re.search(r"\border\s+by\s+([^()]*?)\s*(?:\blimit\b.*)?;?\s*$", sql, re.IGNORECASE | re.DOTALL)
    names = [key.split()[0].lower() for key in order[1].split(",")] if order else []
    return [columns.index(name) for name in names if name in columns]


def difference(by_duckdb, by_jindou, ordered_by):
    """How two answers differ, or None: they have the same rows, and the same keys of the order row by row."""
    if len(by_duckdb) != len(by_jindou):
        return f"{len(by_duckdb)} rows of DuckDB, {len(by_jindou)} of Jindou"
    only_duckdb = Counter(by_duckdb) - Counter(by_jindou)
    if only_duckdb:
        only_jindou = Counter(by_jindou) - Counter(by_duckdb)
        return f"DuckDB alone has {next(iter(only_duckdb))}, Jindou alone {next(iter(only_jindou))}"
    for number, (one, other) in enumerate(zip(by_duckdb, by_jindou), 1):
        if any(one[column] != other[column] for column in ordered_by):
            return f"row {number} is {one} with DuckDB, {other} with Jindou"
    return None


def read_queries(folder, only):
    """Name, SQL and SPARQL of each query."""
    queries = []
    for file in sorted((folder / "queries_sql").glob("*.sql")):
        sparql = folder / "queries_sparql" / f"{file.stem}.rq"
        if not sparql.is_file():
            raise Failure(f"{sparql} is absent")
        if only in file.stem:
            queries.append((file.stem, file.read_text(), sparql.read_text()))
    if not queries:
        raise Failure(f"no query {only or 'at all'} in {folder / 'queries_sql'}: see --sets and --queries")
    return queries


def timed(ask, *arguments):
    begin = time.perf_counter()
    rows = ask(*arguments)
    return (time.perf_counter() - begin) * 1000, rows


def measure(query, connections, runs, threads):
    """Asks both once, compares their answers, asks them in turns, and Jindou by threads."""
    name, sql, sparql = query
    by_duckdb, by_jindou = connections
    expected = comparable(ask_duckdb(by_duckdb, sql))
    columns = [column[0].lower() for column in by_duckdb.description]
    found = comparable([map(value_of_term, row) for row in ask_jindou(by_jindou, sparql)])
    times = {"duckdb": [], "jindou": []}
    for _ in range(runs):
        times["duckdb"].append(timed(ask_duckdb, by_duckdb, sql)[0])
        times["jindou"].append(timed(ask_jindou, by_jindou, sparql)[0])
    median = {system: statistics.median(taken) for system, taken in times.items()}
    by_threads = {1: [], threads: []}
    for _ in range(runs if threads > 1 else 0):
        for count, taken in by_threads.items():
            taken.append(timed(ask_jindou, by_jindou, sparql, count)[0])
    by_threads = {count: statistics.median(taken) for count, taken in by_threads.items() if taken}
    return {
        "query": name,
        "rows": len(expected),
        "difference": difference(expected, found, order_columns(sql, columns)),
        "duckdb_ms": {"min": min(times["duckdb"]), "median": median["duckdb"]},
        "jindou_ms": {"min": min(times["jindou"]), "median": median["jindou"]},
        "ratio": median["duckdb"] / median["jindou"],
        "jindou_alone_ms": by_threads,
        "speedup": by_threads[1] / by_threads[threads] if by_threads else None,
    }


def measure_all(options, folder, queries):
    settings = {"threads": options.threads}
    with contextlib.ExitStack() as stack:
        by_duckdb = stack.enter_context(
            duckdb.connect(str(folder / "ssb.duckdb"), read_only=True, config=settings))
        host, port = stack.enter_context(server(options.jindou, folder))
        by_jindou = http.client.HTTPConnection(host, port, timeout=QUERY_SECONDS + 10)
        stack.callback(by_jindou.close)
        results = []
        for query in queries:
            try:
                results.append(measure(query, (by_duckdb, by_jindou), options.runs, options.threads))
            except (Failure, duckdb.Error, OSError, http.client.HTTPException) as error:
                raise Failure(f"{query[0]}: {error}") from error
        return results


# Reports


def machine():
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        if found := re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text()):
            processor = found[1]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"processor": processor, "cores": os.cpu_count(), "memory_gib": round(memory, 1),
            "system": f"{platform.system()} {platform.release()}"}


def table_text(results):
    """An aligned table; a ratio above 1 means that Jindou is faster."""
    lines = [["query", "rows", "DuckDB min", "median ms", "Jindou min", "median ms", "ratio"]]
    if results[0]["speedup"]:
        lines[0] += [*(f"on {count}" for count in results[0]["jindou_alone_ms"]), "speedup"]
    for result in results:
        times = [result[system][kind] for system in ["duckdb_ms", "jindou_ms"] for kind in ["min", "median"]]
        figures = [*times, result["ratio"]]
        if result["speedup"]:
            figures += [*result["jindou_alone_ms"].values(), result["speedup"]]
        figures = [f"{figure:.2f}" for figure in figures]
        lines.append([result["query"], f"{result['rows']:,}", *figures])
    first, *others = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(cells, others))])
        for name, *cells in lines)


def load_text(what, known):
    earlier = ", by an earlier run" if known["kept"] else ""
    return f"{what}: {known['seconds']:.1f} s, {known['bytes'] / 1e6:,.1f} MB{earlier}"


def print_report(report):
    made, on = report["made"], report["machine"]
    rows = ", ".join(f"{count:,} {table}" for table, count in made["tables"]["rows"].items())
    print(f"SSB at scale factor {report['scale']:g}, seed {SEED}: {rows}; "
          f"{made['triples']['statements']:,} triples")
    print(f"{on['processor']}, {on['cores']} cores, {on['memory_gib']} GiB, {on['system']}; "
          f"DuckDB {report['versions']['duckdb']}, {report['versions']['jindou']}; "
          f"{report['threads']} threads, {report['runs']} runs in turns after a warm-up")
    print(load_text("tables made as Parquet", made["tables"]))
    print(load_text("triples written as N-Triples, zstd", made["triples"]))
    print(load_text("DuckDB loads the Parquet", made["duckdb"]))
    print(load_text("Jindou loads the N-Triples", made["jindou"]))
    print()
    print(table_text(report["queries"]))
    print()
    lowest = report["lowest"]
    print("ratio is DuckDB's median by Jindou's, above 1 where Jindou is faster: geometric mean "
          f"{report['geometric_mean']:.2f} ({report['geometric_mean_of_minima']:.2f} of the minima), "
          f"lowest {lowest['ratio']:.2f} ({lowest['query']})")
    if report["speedup"]:
        print(f"speedup is of Jindou alone, medians of one thread by {report['threads']}: geometric mean "
              f"{report['speedup']:.2f}")
    different = [result for result in report["queries"] if result["difference"]]
    for result in different:
        print(f"DIFFERENT {result['query']}: {result['difference']}")
    same = len(report["queries"]) - len(different)
    print(f"answers that are the same: {same} of {len(report['queries'])}")


def compare(options):
    """Runs the whole comparison; gives the report."""
    if duckdb is None:
        raise Failure("DuckDB for Python is absent: pip install duckdb")
    queries = read_queries(options.queries or options.sets / "ssb", options.only)
    use_cores(options.threads)
    version = jindou_version(options.jindou)
    folder = (options.folder / f"sf{options.scale:g}").resolve()
    made = make_all(options, folder)
    results = measure_all(options, folder, queries)
    lowest = min(results, key=lambda result: result["ratio"])
    return {
        "scale": options.scale, "seed": SEED, "threads": options.threads, "runs": options.runs,
        "machine": machine(), "versions": {"duckdb": duckdb.__version__, "jindou": version}, "made": made,
        "queries": results,
        "geometric_mean": statistics.geometric_mean(result["ratio"] for result in results),
        "geometric_mean_of_minima": statistics.geometric_mean(
            result["duckdb_ms"]["min"] / result["jindou_ms"]["min"] for result in results),
        "lowest": {"query": lowest["query"], "ratio": lowest["ratio"]},
        "speedup": statistics.geometric_mean(result["speedup"] for result in results)
        if options.threads > 1 else None,
    }


def jindou_version(jindou):
    try:
        return run(jindou, "--version").strip()
    except OSError as error:
        hint = "build it by `cargo build --release`, or see --jindou"
        raise Failure(f"{jindou}: {error.strerror}; {hint}") from error


def use_cores(threads):
    """Keeps this process and those that it starts to as many cores as threads: a query of Jindou uses all of
    its process, which `jindou serve` has no option for."""
    if not hasattr(os, "sched_setaffinity"):
        if threads != os.cpu_count():
            raise Failure(f"--threads other than all {os.cpu_count()} cores needs Linux")
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < threads:
        raise Failure(f"--threads {threads} is more than the {len(cores)} cores that may be used")
    os.sched_setaffinity(0, cores[:threads])


def number_within(kind, most):
    """A parser of numbers above 0, up to `most`."""
    def parse(text):
        with contextlib.suppress(ValueError):
            if 0 < (value := kind(text)) <= most:
                return value
        whole = "whole number" if kind is int else "number"
        raise argparse.ArgumentTypeError(f"{text!r} is not a {whole} above 0, up to {most:,}")
    return parse


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--scale", type=number_within(float, MOST_SCALE), default=0.1, metavar="SF",
        help="scale factor [default: 0.1]")
    add("--threads", type=number_within(int, 1024), default=2, metavar="N",
        help="threads of a query and of a load [default: 2]")
    add("--runs", type=number_within(int, 10_000), default=7, metavar="N",
        help="timed runs of each query [default: 7]")
    add("--only", default="", metavar="PATTERN", help="only queries with this in their name")
    add("--jindou", default=str(REPOSITORY / "target/release/jindou"), metavar="PATH",
        help="program to measure [default: target/release/jindou]")
    add("--folder", type=Path, default=REPOSITORY / "target/bench-data/ssb-duckdb", metavar="DIR",
        help="folder of what is made and loaded, kept between runs [default: target/bench-data/ssb-duckdb]")
    add("--sets", type=Path, default=REPOSITORY.parent / "shared/data", metavar="DIR",
        help="folder of the data sets, whose `ssb` has the 13 queries [default: ../shared/data]")
    add("--queries", type=Path, metavar="DIR",
        help="folder of other queries: queries_sql/NAME.sql and queries_sparql/NAME.rq, with the same columns")
    add("--json", metavar="FILE", help="write the report as JSON to this file, too")
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    for ending in [signal.SIGTERM, signal.SIGHUP]:
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    try:
        report = compare(options)
        print_report(report)
        if options.json:
            Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    except KeyboardInterrupt:
        return INTERRUPTED
    except RuntimeError as error:
        # What DuckDB makes of a signal that comes during a query.
        if str(error) == "Query interrupted":
            return INTERRUPTED
        raise
    except (Failure, OSError, *([duckdb.Error] if duckdb else [])) as error:
        print(f"ssb_duckdb: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 1 if any(result["difference"] for result in report["queries"]) else 0


if __name__ == "__main__":
    sys.exit(main())
