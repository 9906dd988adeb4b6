// Package site has the routes of examples/graceful as an http.Handler, for the servers that it is compared with.
package site

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// pace is the time between two lines of a stream.
const pace = 50 * time.Millisecond

// Handler answers / at once, /slow after ?for=1s, and /stream with ?lines=20 of them.
func Handler() http.Handler {
	site := http.NewServeMux()
	site.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Hello, World!")
	})
	site.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.FormValue("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		time.Sleep(d)
		fmt.Fprintln(w, "Hello, World!")
	})
	site.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("lines"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for i := range n {
			fmt.Fprintf(w, "line %d of %d\n", i+1, n)
			_ = http.NewResponseController(w).Flush() // an error is that of a client that has gone
			time.Sleep(pace)
		}
	})
	return site
}
