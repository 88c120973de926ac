/* A client of Redis, because Debian has none for Java. These lines speak as much of Redis' protocol as
 * the guestbook needs: a command as one types it, and its reply as a list of texts. Each command takes
 * a connection that nobody uses, or opens one more. */
import java.io.*;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.ConcurrentLinkedQueue;

record Redis(String host, int port, Queue<Connection> idle) {
    record Connection(DataInputStream in, OutputStream out) {}

    static Redis at(String where) { // "HOST:PORT"
        String[] part = where.split(":");
        return new Redis(part[0], Integer.parseInt(part[1]), new ConcurrentLinkedQueue<>());
    }

    Connection connect() throws IOException {
        Socket socket = new Socket(host, port);
        socket.setTcpNoDelay(true);
        return new Connection(new DataInputStream(new BufferedInputStream(socket.getInputStream())),
            socket.getOutputStream());
    }

    @SuppressWarnings("deprecation") // readLine() is for ASCII, which is what it reads here
    List<String> ask(String command) throws IOException {
        Connection ours = idle.poll();
        if (ours == null) ours = connect();
        ours.out.write((command + "\r\n").getBytes(StandardCharsets.US_ASCII));
        List<String> reply = new ArrayList<>();
        for (int left = 1; left > 0; left--) {
            String line = ours.in.readLine();
            if (line == null || line.startsWith("-")) throw new IOException("Redis: " + line);
            int number = Integer.parseInt(line.substring(1));
            switch (line.charAt(0)) {
                case '*' -> left += number; // so many texts follow
                case '$' -> reply.add(new String(ours.in.readNBytes(number + 2), 0, number, StandardCharsets.UTF_8));
                default -> reply.add(line.substring(1)); // a number
            }
        }
        idle.add(ours);
        return reply;
    }
}
