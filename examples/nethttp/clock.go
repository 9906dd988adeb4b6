package main

import (
	"expvar"
	"fmt"
	"io"
	"net/http"
	"time"
)

// streams is how many streams of events are open: see /debug/vars.
var streams = expvar.NewInt("streams")

// clock sends the time every second, as server-sent events, until the client goes or the program ends.
type clock struct{ ending <-chan struct{} }

func (c clock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	streams.Add(1)
	defer streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	out := http.NewResponseController(w)
	for now := time.Now(); ; {
		fmt.Fprintf(w, "data: %s\n\n", now.UTC().Format(time.RFC3339))
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case now = <-tick.C:
		case <-r.Context().Done():
			return
		case <-c.ending:
			_, _ = io.WriteString(w, "event: end\ndata: The server ends.\n\n")
			return
		}
	}
}
