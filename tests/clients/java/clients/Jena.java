package clients;

import static clients.Check.fails;
import static clients.Check.same;

import java.util.ArrayList;
import java.util.List;
import org.apache.jena.query.Dataset;
import org.apache.jena.query.DatasetFactory;
import org.apache.jena.rdf.model.Model;
import org.apache.jena.rdf.model.ModelFactory;
import org.apache.jena.rdf.model.ResourceFactory;
import org.apache.jena.rdfconnection.RDFConnection;
import org.apache.jena.rdfconnection.RDFConnectionRemote;
import org.apache.jena.riot.RDFFormat;
import org.apache.jena.sparql.exec.http.QuerySendMode;

/** Jena's RDFConnection: queries, updates, graph store, whole datasets, errors. */
public final class Jena {
    private static final String GRAPH = "http://example.org/jena";

    public static void main(String[] arguments) {
        String server = arguments[0];
        Check check = new Check();
        for (String path : new String[] {"/", "/query", "/update", "/sparql"}) {
            check.that("queries and updates at one address, " + path, () -> everything(server + path));
        }
        for (RDFFormat format : new RDFFormat[] {RDFFormat.TURTLE, RDFFormat.NTRIPLES, RDFFormat.RDFXML, RDFFormat.JSONLD}) {
            check.that("graphs of the store as " + format, () -> graphs(server, format));
        }
        for (RDFFormat format : new RDFFormat[] {RDFFormat.NQUADS, RDFFormat.TRIG, RDFFormat.JSONLD}) {
            check.that("the whole dataset as " + format, () -> datasets(server, format));
        }
        check.that("what is wrong is told", () -> wrong(server));
        check.end();
    }

    private static void everything(String endpoint) {
        try (RDFConnection connection = RDFConnection.connect(endpoint)) {
            ask(connection);
        }
        for (QuerySendMode mode : QuerySendMode.values()) {
            if (mode == QuerySendMode.systemDefault) {
                continue;
            }
            var builder = RDFConnectionRemote.newBuilder().destination(endpoint).querySendMode(mode);
            try (RDFConnection connection = builder.build()) {
                ask(connection);
            }
        }
    }

    private static void ask(RDFConnection connection) {
        connection.update("DELETE WHERE { ?s <urn:jena> ?o }; INSERT DATA { <urn:j> <urn:jena> 'é & +' }");
        List<String> found = new ArrayList<>();
        connection.querySelect("SELECT ?o { ?s <urn:jena> ?o }", row -> found.add(row.getLiteral("o").getString()));
        same(found, List.of("é & +"));
        same(connection.queryAsk("ASK { <urn:j> <urn:jena> ?o }"), true);
        same(connection.queryConstruct("CONSTRUCT WHERE { ?s <urn:jena> ?o }").size(), 1L);
        same(connection.queryDescribe("DESCRIBE <urn:j>").size(), 1L);
    }

    private static RDFConnection store(String server, RDFFormat graphs, RDFFormat datasets) {
        return RDFConnectionRemote.newBuilder()
                .destination(server)
                .queryEndpoint("query")
                .updateEndpoint("update")
                .gspEndpoint("store")
                .triplesFormat(graphs)
                .quadsFormat(datasets)
                .build();
    }

    private static Model model(String value) {
        Model model = ModelFactory.createDefaultModel();
        model.add(ResourceFactory.createResource("urn:j"), ResourceFactory.createProperty("http://example.org/ns#store"), value);
        return model;
    }

    private static void graphs(String server, RDFFormat format) {
        try (RDFConnection connection = store(server, format, RDFFormat.NQUADS)) {
            connection.put(GRAPH, model("one"));
            connection.load(GRAPH, model("two"));
            same(connection.fetch(GRAPH).size(), 2L);
            connection.put(GRAPH, model("three"));
            same(connection.fetch(GRAPH).isIsomorphicWith(model("three")), true);
            connection.delete(GRAPH);
            connection.put(model("default"));
            same(connection.fetch().size(), 1L);
            connection.delete();
            same(connection.fetch().size(), 0L);
        }
    }

    private static Dataset dataset(String value) {
        Dataset dataset = DatasetFactory.create();
        dataset.setDefaultModel(model(value));
        dataset.addNamedModel(GRAPH, model(value));
        return dataset;
    }

    private static void datasets(String server, RDFFormat format) {
        try (RDFConnection connection = store(server, RDFFormat.TURTLE, format)) {
            connection.putDataset(dataset("one"));
            connection.loadDataset(dataset("two"));
            Dataset both = connection.fetchDataset();
            same(both.getDefaultModel().size(), 2L);
            same(both.getNamedModel(GRAPH).size(), 2L);
            connection.putDataset(dataset("three"));
            Dataset last = connection.fetchDataset();
            same(last.getNamedModel(GRAPH).isIsomorphicWith(model("three")), true);
            same(last.getDefaultModel().isIsomorphicWith(model("three")), true);
        }
    }

    private static void wrong(String server) {
        var builder = RDFConnectionRemote.newBuilder().destination(server + "/query").parseCheckSPARQL(false);
        try (RDFConnection connection = builder.build()) {
            fails(() -> connection.queryAsk("ASK { ?s <p ?o }"), "line 1, column");
            fails(() -> connection.update("INSERT DATA { <a> <b> }"), "line 1, column");
        }
        try (RDFConnection connection = store(server, RDFFormat.TURTLE, RDFFormat.NQUADS)) {
            fails(() -> connection.fetch("http://example.org/absent"), "there is no graph");
        }
    }
}
