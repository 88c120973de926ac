# puma: the guestbook's page as a Rack application, with redis-rb. Puma decides who runs it: here two
# processes, each with up to five threads, which is Puma's default. A thread has one client at a time.
#
#   REDIS_URL=redis://HOST:PORT puma --bind tcp://127.0.0.1:N --workers 2 guestbook.ru       started where templates/ is
require "cgi"
require "connection_pool"
require "redis"

Encoding.default_external = Encoding::UTF_8

class Guestbook
  # The project's template is written in Mustache: a comment, a section with a name, or a name alone.
  TAG = %r{\{\{(?:!.*?|#(\w+)\}\}(.*?)\{\{/\1|(\w+))\}\}}m

  def initialize
    @template = File.read("templates/guestbook/index.html")
    @redis = ConnectionPool.new(size: 5) { Redis.new(url: ENV.fetch("REDIS_URL")) }
  end

  def call(env)
    return [404, { "content-length" => "0" }, []] unless env["PATH_INFO"] == "/guestbook"

    page = @redis.with { |redis| guestbook(redis) }
    [200, { "content-type" => "text/html; charset=utf-8", "content-length" => page.bytesize.to_s }, [page]]
  end

  def guestbook(redis)
    redis.incr("guestbook:visitors")
    visitors = redis.get("guestbook:visitors")
    found = redis.lrange("guestbook:entries", -21, -1) # the last one is the newest
    finish = spent + ENV.fetch("WORK_US", "0").to_i # as with --work of the seven
    nil while spent < finish
    render(@template, {
      "server" => "puma", "page" => "1", "counted" => [{}],
      "visitors" => visitors.gsub(/\B(?=(\d{3})+$)/, ","),
      "entries" => found.last(20).reverse.map { |entry| shown(entry) },
      "nobody" => found.empty? ? [{}] : [],
      "older" => found.size > 20 ? [{}] : [], "older_page" => "2"
    })
  end

  def spent = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :microsecond)

  def render(text, values)
    text.gsub(TAG) do
      list, inner, name = $1, $2, $3
      next CGI.escapeHTML(values.fetch(name, "")) if name

      values.fetch(list, []).map { |item| render(inner, values.merge(item)) }.join
    end
  end

  def shown(entry)
    time, name, remarks = entry.split("\n", 3)
    { "signed" => [{}], "time" => time, "day" => time[0, 10], "clock" => time[11, 5], "name" => name, "remarks" => remarks }
  end
end

run Guestbook.new
