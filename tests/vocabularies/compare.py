"""Does Jindou load the files that people have as another parser does?

Each file is loaded by the command and by pyoxigraph. Both have the same number of statements, or both
refuse it, or the table of differences says why not. Usage: compare.py JINDOU FOLDER TABLE
"""

import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyoxigraph

ENDINGS = {
    ".nt": pyoxigraph.RdfFormat.N_TRIPLES,
    ".nq": pyoxigraph.RdfFormat.N_QUADS,
    ".ttl": pyoxigraph.RdfFormat.TURTLE,
    ".n3": pyoxigraph.RdfFormat.TURTLE,
    ".trig": pyoxigraph.RdfFormat.TRIG,
    ".rdf": pyoxigraph.RdfFormat.RDF_XML,
    ".owl": pyoxigraph.RdfFormat.RDF_XML,
    ".jsonld": pyoxigraph.RdfFormat.JSON_LD,
}
COUNT = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
MOST_SECONDS = 120

# Why one may load what the other refuses or counts otherwise, by what the other says of it: words of
# its message, whom the difference is of, and the reason.
REASONS = [
    ("jindou", "Remote context", "the context is known here, and not fetched there"),
    ("jindou", "LoadDocumentCallback", "the context is known here, and not fetched there"),
    ("jindou", "rdf:XMLLiteral", "an XML literal may be empty"),
    ("jindou", "\ufeff", "a byte order mark is passed over"),
    ("jindou", "Invalid XML", "the file is not in UTF-8, and says so"),
    ("jindou", "utf-8", "the file is not in UTF-8, and says so"),
    ("jindou", "No scheme found", "an xml:base may be relative to that around it"),
    ("oxigraph", "ends before its root element is closed", "a file that was cut short is refused"),
    ("oxigraph", "more than", "what is nested or grows beyond bounds is refused"),
    ("oxigraph", "triple terms", "statements of RDF 1.2 are refused by name"),
]


def unpack(folder):
    """Unpacks what pip has downloaded, beside the packages."""
    unpacked = folder / "unpacked"
    if unpacked.exists():
        return unpacked
    for package in sorted((folder / "downloads").iterdir()):
        if package.name.endswith(".whl"):
            with zipfile.ZipFile(package) as archive:
                archive.extractall(unpacked / package.stem)
        else:
            with tarfile.open(package) as archive:
                archive.extractall(unpacked, filter="data")
    return unpacked


def by_oxigraph(path):
    """The number of different statements, or what is wrong."""
    try:
        quads = pyoxigraph.parse(
            path=path, format=ENDINGS[path.suffix], base_iri=path.resolve().as_uri()
        )
        return len(set(quads)), ""
    except (SyntaxError, ValueError, OSError) as error:
        return None, " ".join(str(error).split())


def by_jindou(program, path):
    command = [program, "query", "--data", path, "--query", COUNT, "--results-format", "tsv"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    if done.returncode != 0:
        return None, " ".join(done.stderr.split())
    return int(done.stdout.splitlines()[1]), " ".join(done.stderr.split())


def judge(ours, theirs):
    """What the two came to, and why; nothing where they differ without a known reason."""
    (count, said), (their_count, their_said) = ours, theirs
    if count == their_count:
        return ("both refuse it" if count is None else "the same"), "-"
    if count is not None and "read as" in said:
        return "jindou alone, or more", "the name says another format than the file is in"
    who, message = ("jindou", their_said) if their_count is None else ("oxigraph", said)
    for whose, words, reason in REASONS:
        if whose == who and words in message:
            return f"{who} alone", reason
    return f"{who} alone", None


def main(program, folder, table):
    unpack(folder)
    files = sorted(
        path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file()
    )
    if not files:
        print(f"FAILED no files in {folder}")
        return False
    groups, held = {}, True
    with open(table, "w", encoding="utf-8") as out, ThreadPoolExecutor(2) as pool:
        out.write("file\tjindou\toxigraph\twho\twhy\twhat it said\n")
        counted = pool.map(lambda path: by_jindou(program, path), files)
        for path, ours in zip(files, counted):
            theirs = by_oxigraph(path)
            who, why = judge(ours, theirs)
            group = next(part for part in path.relative_to(folder).parts if part not in ("unpacked", "node_modules"))
            same, explained, unknown = groups.setdefault(group, ([], [], []))
            if why == "-":
                same.append(path)
                continue
            (explained if why else unknown).append(path)
            said = theirs[1] if theirs[0] is None else ours[1]
            name = path.relative_to(folder)
            counts = [str(count) if count is not None else "refused" for count, _ in (ours, theirs)]
            out.write("\t".join([str(name), *counts, who, why or "?", said]) + "\n")
            if why is None:
                print(f"{name}: {counts[0]} here, {counts[1]} there: {said}")
    for group, (same, explained, unknown) in sorted(groups.items()):
        total = len(same) + len(explained) + len(unknown)
        what = f"{group}: {total} files, {len(same)} the same, {len(explained)} differ for a known reason"
        if unknown:
            held = False
            print(f"FAILED {what}, {len(unknown)} for none")
        else:
            print(f"ok {what}")
    print(f"{len(files)} files; the differences are in {table}")
    return held


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3]))
