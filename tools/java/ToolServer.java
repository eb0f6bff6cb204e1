import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after another in one warm virtual machine, since starting one costs a second.
 *
 * <p>A command is one line of standard input, its fields in base64 with blanks between: the tool's class, what it shall
 * read from its standard input, then its arguments. The answer is one line: exit code, standard output and standard
 * error, the latter two in base64. Each tool sees what it would see alone: its own streams, an exit that ends it, and
 * its shutdown hooks run at the end.
 */
public final class ToolServer {

    /** Thrown where a tool would have ended the process. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;

        Exited(int code) {
            super("exit " + code, null, false, false);
        }
    }

    /** Some tools keep System.out from their first use, so it must stay the same object and change where it leads. */
    private static final class SwitchedOutput extends OutputStream {
        private final ByteArrayOutputStream written = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int b) {
            written.write(b);
        }

        @Override
        public synchronized void write(byte[] bytes, int start, int length) {
            written.write(bytes, start, length);
        }

        synchronized String take() {
            String encoded = Base64.getEncoder().encodeToString(written.toByteArray());
            written.reset();
            return encoded;
        }
    }

    private static final class SwitchedInput extends InputStream {
        private ByteArrayInputStream current = new ByteArrayInputStream(new byte[0]);

        synchronized void lead(byte[] bytes) {
            current = new ByteArrayInputStream(bytes);
        }

        @Override
        public synchronized int read() {
            return current.read();
        }

        @Override
        public synchronized int read(byte[] into, int start, int length) {
            return current.read(into, start, length);
        }

        @Override
        public synchronized int available() {
            return current.available();
        }
    }

    private final SwitchedOutput out = new SwitchedOutput();
    private final SwitchedOutput err = new SwitchedOutput();
    private final SwitchedInput in = new SwitchedInput();
    private final List<Runnable> hooks = Collections.synchronizedList(new ArrayList<>());
    private final Map<Thread, Thread> hooksOfTheMachine = hooksOfTheMachine();
    private volatile Integer exitCode;

    /** Some tools add their hooks to the machine itself, which lives on when they have ended. */
    @SuppressWarnings("unchecked")
    private static Map<Thread, Thread> hooksOfTheMachine() {
        try {
            Field kept = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
            kept.setAccessible(true);
            return (Map<Thread, Thread>) kept.get(null);
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException(changed);
        }
    }

    public static void main(String[] arguments) throws IOException {
        new ToolServer().serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII)), System.out);
    }

    private void serve(BufferedReader commands, PrintStream answers) throws IOException {
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(in);
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            List<byte[]> fields = new ArrayList<>();
            for (String field : line.split(" ", -1)) {
                fields.add(Base64.getDecoder().decode(field));
            }
            int code = run(fields);
            answers.println(code + " " + out.take() + " " + err.take());
            answers.flush();
        }
    }

    private void end(int code) {
        if (exitCode == null) { // a tool that catches everything exits once more, with another code
            exitCode = code;
        }
        throw new Exited(code);
    }

    private int run(List<byte[]> fields) {
        exitCode = null;
        in.lead(fields.get(1));
        String[] arguments = new String[fields.size() - 2];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = new String(fields.get(i + 2), StandardCharsets.UTF_8);
        }
        int code = 0;
        List<Thread> before = new ArrayList<>(hooksOfTheMachine.keySet());
        try {
            Class<?> tool = Class.forName(new String(fields.get(0), StandardCharsets.UTF_8));
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failed) {
            if (!(failed.getCause() instanceof Exited)) {
                failed.getCause().printStackTrace();
                code = 1;
            }
        } catch (ReflectiveOperationException missing) {
            missing.printStackTrace();
            code = 2;
        }
        runHooks(before);
        return exitCode == null ? code : exitCode;
    }

    private void runHooks(List<Thread> before) {
        List<Runnable> due = new ArrayList<>(hooks);
        hooks.clear();
        for (Thread hook : new ArrayList<>(hooksOfTheMachine.keySet())) {
            if (!before.contains(hook)) {
                Runtime.getRuntime().removeShutdownHook(hook);
                due.add(hook);
            }
        }
        for (Runnable hook : due) {
            try {
                hook.run();
            } catch (Exited ended) {
                continue;
            }
        }
    }
}
