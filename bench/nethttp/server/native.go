package main

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/bench/nethttp/site"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// native returns some handlers of the site as those of package httpd.
func native() httpd.Handler {
	mux := &httpd.Mux{}
	mux.Handle("GET /small", hello)
	mux.Handle("GET /large", large)
	mux.Handle("GET /wait", func(*httpd.Response, *httpd.Request) act.Action { return forever })
	mux.Handle("POST /discard", discard)
	return mux.Serve
}

var plainText = httpd.NewField("Content-Type", "text/plain")

func hello(w *httpd.Response, _ *httpd.Request) act.Action {
	w.AddField(plainText)
	_, _ = w.WriteString(site.Hello) // it fits
	return nil
}

var forever = act.Func(func(*act.Task) act.Directive { return act.Wait })

func large(w *httpd.Response, _ *httpd.Request) act.Action {
	w.SetLength(site.Large)
	piece, left := site.Piece, site.Large
	return act.Func(func(t *act.Task) act.Directive {
		n, err := w.Write(piece[:min(left, len(piece))])
		if left -= n; left == 0 && err == nil {
			err = io.EOF
		}
		return listener.Next(t, err)
	})
}

func discard(w *httpd.Response, r *httpd.Request) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		for {
			in, err := r.Body.Peek()
			if err == io.EOF {
				_ = hello(w, r)
			}
			if err != nil {
				return listener.Next(t, err)
			}
			r.Body.Discard(len(in))
		}
	})
}
