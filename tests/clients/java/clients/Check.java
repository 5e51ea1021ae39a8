package clients;

import java.util.Objects;
import org.apache.jena.atlas.web.HttpException;
import org.apache.jena.sparql.engine.http.QueryExceptionHTTP;

/** How does each client's program say what held and what did not? */
final class Check {
    interface Fallible {
        void run() throws Exception;
    }

    private int failed;

    /** Runs a check, whose name says what should hold, and prints one line. */
    void that(String name, Fallible check) {
        try {
            check.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            failed++;
            System.out.println("FAILED " + name);
            error.printStackTrace(System.out);
        }
    }

    static void same(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError(found + " instead of " + expected);
        }
    }

    /** A call has to fail, and to say what is wrong. */
    static void fails(Fallible call, String told) {
        try {
            call.run();
        } catch (Exception error) {
            StringBuilder said = new StringBuilder();
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                said.append(cause).append('\n');
                // Jena keeps the answer beside its message.
                if (cause instanceof HttpException http) {
                    said.append(http.getResponse()).append('\n');
                }
                if (cause instanceof QueryExceptionHTTP http) {
                    said.append(http.getResponse()).append('\n');
                }
            }
            if (!said.toString().contains(told)) {
                throw new AssertionError(told + " is not in " + said);
            }
            return;
        }
        throw new AssertionError("no error says " + told);
    }

    /** Ends the program: with 1 where a check failed. */
    void end() {
        System.exit(failed == 0 ? 0 : 1);
    }
}
