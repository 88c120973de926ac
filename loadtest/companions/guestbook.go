// go: the page with net/http, html/template and redigo. A client's goroutine blocks, but no thread of the kernel does.
package main

import (
	"flag"
	"fmt"
	"github.com/gomodule/redigo/redis"
	"html/template"
	"log"
	"net/http"
	"os"
	"regexp"
	"strings"
)

func guestbook(conn redis.Conn) map[string]any {
	conn.Do("INCR", "guestbook:visitors")
	visitors, _ := redis.String(conn.Do("GET", "guestbook:visitors"))
	found, _ := redis.Strings(conn.Do("LRANGE", "guestbook:entries", -21, -1)) // the last one is the newest
	var entries []map[string]string
	for i := len(found) - 1; i >= 0 && len(entries) < 20; i-- {
		e := strings.SplitN(found[i], "\n", 3)
		entries = append(entries, map[string]string{"signed": "yes", "time": e[0], "day": e[0][:10], "clock": e[0][11:16], "name": e[1], "remarks": e[2]})
	}
	for i := len(visitors) - 3; i > 0; i -= 3 {
		visitors = visitors[:i] + "," + visitors[i:]
	}
	compute()
	return map[string]any{"server": "go", "page": 1, "counted": true, "visitors": visitors, "entries": entries,
		"nobody": len(found) == 0, "older": len(found) > 20, "older_page": 2}
}

func main() {
	port, where := flag.String("port", "", ""), flag.String("redis", "", "HOST:PORT")
	flag.Parse()
	text, err := os.ReadFile("templates/guestbook/index.html")
	if err != nil {
		log.Fatal(err)
	}
	for _, word := range [][2]string{ // the template is written in Mustache: what html/template says for it
		{`\{\{!.*?\}\}`, ""}, {`\{\{(\w+)\}\}`, "{{.$1}}"}, {`\{\{#entries\}\}`, "{{range .entries}}"},
		{`\{\{#(\w+)\}\}`, "{{if .$1}}"}, {`\{\{/\w+\}\}`, "{{end}}"},
	} {
		text = regexp.MustCompile(word[0]).ReplaceAll(text, []byte(word[1]))
	}
	page := template.Must(template.New("guestbook").Parse(string(text)))
	pool := &redis.Pool{MaxIdle: 100, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", *where) }}
	http.HandleFunc("/guestbook", func(w http.ResponseWriter, r *http.Request) {
		conn := pool.Get()
		defer conn.Close()
		var out strings.Builder
		if err := page.Execute(&out, guestbook(conn)); err != nil || conn.Err() != nil {
			http.Error(w, "no guestbook", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(out.Len()))
		fmt.Fprint(w, out.String())
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+*port, nil))
}
