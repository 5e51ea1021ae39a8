package clients;

import static clients.Check.fails;
import static clients.Check.same;

import java.util.stream.Collectors;
import org.eclipse.rdf4j.model.IRI;
import org.eclipse.rdf4j.model.Model;
import org.eclipse.rdf4j.model.ValueFactory;
import org.eclipse.rdf4j.model.impl.SimpleValueFactory;
import org.eclipse.rdf4j.query.QueryResults;
import org.eclipse.rdf4j.repository.RepositoryConnection;
import org.eclipse.rdf4j.repository.sparql.SPARQLRepository;

/** RDF4J's SPARQLRepository: queries, updates, changes of statements, errors. */
public final class Rdf4j {
    private static final ValueFactory VALUES = SimpleValueFactory.getInstance();
    private static final IRI S = VALUES.createIRI("urn:r");
    private static final IRI P = VALUES.createIRI("urn:rdf4j");
    private static final IRI GRAPH = VALUES.createIRI("http://example.org/rdf4j");

    public static void main(String[] arguments) {
        String server = arguments[0];
        Check check = new Check();
        for (String path : new String[] {"/", "/query", "/update", "/sparql"}) {
            check.that("queries and updates at one address, " + path, () -> everything(server + path));
            check.that("statements are changed and read, " + path, () -> statements(server + path));
        }
        check.that("what is wrong is told", () -> wrong(server + "/query"));
        check.end();
    }

    private static void everything(String endpoint) {
        SPARQLRepository repository = new SPARQLRepository(endpoint);
        try (RepositoryConnection connection = repository.getConnection()) {
            connection
                    .prepareUpdate("DELETE WHERE { ?s <urn:rdf4j> ?o }; INSERT DATA { <urn:r> <urn:rdf4j> 'é & +' }")
                    .execute();
            // A long text is sent by POST.
            for (String padding : new String[] {"", "# ".repeat(5000)}) {
                String select = padding + "\nSELECT ?o { ?s <urn:rdf4j> ?o }";
                try (var rows = connection.prepareTupleQuery(select).evaluate()) {
                    String found = rows.stream().map(row -> row.getValue("o").stringValue()).collect(Collectors.joining());
                    same(found, "é & +");
                }
                String ask = padding + "\nASK { <urn:r> <urn:rdf4j> ?o }";
                same(connection.prepareBooleanQuery(ask).evaluate(), true);
                String construct = padding + "\nCONSTRUCT WHERE { ?s <urn:rdf4j> ?o }";
                same(QueryResults.asModel(connection.prepareGraphQuery(construct).evaluate()).size(), 1);
                String describe = padding + "\nDESCRIBE <urn:r>";
                same(QueryResults.asModel(connection.prepareGraphQuery(describe).evaluate()).size(), 1);
            }
        } finally {
            repository.shutDown();
        }
    }

    private static void statements(String endpoint) {
        SPARQLRepository repository = new SPARQLRepository(endpoint);
        try (RepositoryConnection connection = repository.getConnection()) {
            // A graph that is not there is not cleared.
            connection.add(S, P, VALUES.createLiteral(0), GRAPH);
            connection.clear(GRAPH);
            connection.begin();
            connection.add(S, P, VALUES.createLiteral(1), GRAPH);
            connection.add(S, P, VALUES.createLiteral(2), GRAPH);
            connection.commit();
            try (var found = connection.getStatements(S, P, null, GRAPH)) {
                Model model = QueryResults.asModel(found);
                same(model.size(), 2);
            }
            connection.remove(S, P, VALUES.createLiteral(1), GRAPH);
            same(connection.hasStatement(S, P, VALUES.createLiteral(1), false, GRAPH), false);
            try (var graphs = connection.getContextIDs()) {
                same(graphs.stream().anyMatch(GRAPH::equals), true);
            }
        } finally {
            repository.shutDown();
        }
    }

    private static void wrong(String endpoint) {
        SPARQLRepository repository = new SPARQLRepository(endpoint);
        try (RepositoryConnection connection = repository.getConnection()) {
            fails(() -> connection.prepareBooleanQuery("ASK { ?s <p ?o }").evaluate(), "line 1, column");
            fails(() -> connection.prepareUpdate("INSERT DATA { <a> <b> }").execute(), "line 1, column");
        } finally {
            repository.shutDown();
        }
    }
}
