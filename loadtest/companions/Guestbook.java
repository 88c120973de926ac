/* java: the page with the JDK's own HttpServer, in a pool of five threads, or with --virtual in a thread for each. */
import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;

public class Guestbook {
    static final Pattern TAG = Pattern.compile("(?s)\\{\\{#(\\w+)}}(.*?)\\{\\{/\\1}}|\\{\\{(\\w+)}}"); // of Mustache
    @SuppressWarnings("unchecked")
    static String render(String text, Map<String, ?> values) {
        return TAG.matcher(text).replaceAll(tag -> {
            StringBuilder out = new StringBuilder();
            Object value = values.get(tag.group(1) == null ? tag.group(3) : tag.group(1));
            if (value instanceof List<?> items) items.forEach(each -> out.append(render(tag.group(2), (Map<String, ?>) each)));
            else if (tag.group(1) != null) out.append(value == Boolean.TRUE ? render(tag.group(2), values) : "");
            else if (value != null) out.append(value.toString().replace("&", "&amp;").replace("<", "&lt;")
                .replace(">", "&gt;").replace("\"", "&quot;").replace("'", "&#39;"));
            return Matcher.quoteReplacement(out.toString());
        });
    }

    static Map<String, ?> guestbook(Redis redis) throws IOException {
        redis.ask("INCR guestbook:visitors");
        String visitors = redis.ask("GET guestbook:visitors").get(0);
        List<String> found = redis.ask("LRANGE guestbook:entries -21 -1"); // the last one is the newest
        List<Map<String, Object>> entries = new ArrayList<>();
        for (int at = found.size() - 1; at >= 0 && entries.size() < 20; at--) {
            String[] part = found.get(at).split("\n", 3);
            entries.add(Map.of("time", part[0], "day", part[0].substring(0, 10),
                "clock", part[0].substring(11, 16), "signed", true, "name", part[1], "remarks", part[2]));
        }
        Work.compute();
        return Map.of("server", "java", "page", "1", "counted", true, "entries", entries,
            "visitors", String.format(Locale.US, "%,d", Long.parseLong(visitors)), "older_page", "2",
            "nobody", found.isEmpty(), "older", found.size() > 20);
    }

    public static void main(String[] words) throws Exception {
        List<String> options = List.of(words);
        Redis redis = Redis.at(options.get(options.indexOf("--redis") + 1));
        String template = Files.readString(Path.of("templates/guestbook/index.html")).replaceAll("\\{\\{!.*?}}", "");
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1",
            Integer.parseInt(options.get(options.indexOf("--port") + 1))), 1024);
        server.setExecutor(options.contains("--virtual")
            ? (Executor) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null) // not in JDK 17
            : Executors.newFixedThreadPool(5));
        server.createContext("/guestbook", exchange -> {
            byte[] page = render(template, guestbook(redis)).getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/html; charset=utf-8");
            exchange.sendResponseHeaders(200, page.length);
            try (OutputStream body = exchange.getResponseBody()) { body.write(page); }
        });
        server.start();
    }
}
