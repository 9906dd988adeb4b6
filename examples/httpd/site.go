package main

import (
	"io/fs"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/listener"
)

// routes are the routes of the site: a greeting, an echo, and files. The files of root are under /files/; a nil root
// has none.
func routes(root fs.FS) *httpd.Mux {
	site := &httpd.Mux{}
	site.Handle("GET /{$}", hello)
	site.Handle("POST /echo", echo)
	site.Handle("GET /healthz", httpd.Healthy)
	site.Handle("GET /readyz", httpd.Ready)
	if root != nil {
		served := files.Server{FS: root}
		site.Handle("GET /files/{path...}", served.Serve)
	}
	return site
}

var plainText = httpd.NewField("Content-Type", "text/plain; charset=utf-8")

// hello is complete when it returns: no action, no further turn.
func hello(w *httpd.Response, _ *httpd.Request) act.Action {
	w.AddField(plainText) // Content-Type, checked once; Add does for others
	_, _ = w.WriteString("Hello, World!")
	return nil
}

// echo sends the body back while it arrives. It does not read from a client that does not read. So a client that sends its
// whole body before it reads, as browsers do, can send only what fits into the kernel's socket buffers, some megabytes.
func echo(w *httpd.Response, r *httpd.Request) act.Action {
	w.Add("Content-Type", "application/octet-stream")
	if n := r.Body.Length(); n >= 0 {
		w.SetLength(n)
	}
	return act.Func(func(t *act.Task) act.Directive {
		in, err := r.Body.Peek()
		if err != nil {
			return listener.Next(t, err) // would block: wait; EOF: done
		}
		n, err := w.Write(in)
		r.Body.Discard(n)
		return listener.Next(t, err)
	})
}
