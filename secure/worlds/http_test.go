package worlds_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/httpd/web"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldHTTP has clients send requests one behind the other over TLS, and read the answers meanwhile: texts, echoes and
// files. The last request asks the server to close.
func TestWorldHTTP(t *testing.T) {
	var seen counts
	data := make([]byte, noise)
	for i := range data {
		data[i] = pattern(i, 0)
	}
	path := filepath.Join(t.TempDir(), "noise")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	mux := web.Site(nil)
	mux.Handle("GET /noise", func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.SetLength(noise)
		sent := int64(0)
		return act.Func(func(t *act.Task) act.Directive {
			n, err := w.SendFile(f, sent, noise-sent)
			if sent += n; err == nil && sent == noise {
				return act.Done
			}
			return listener.Next(t, err)
		})
	})
	try(t, sim.Options{Faults: sim.Anything()}, func(w *world) {
		const address = "10.0.0.1:443"
		w.server.NextProtos, w.client.NextProtos = []string{"http/1.1"}, []string{"h2", "http/1.1"}
		site := &httpd.Server{Handler: mux.Serve, Timeouts: httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}}
		limits := patient(w.World)
		limits.Read = max(limits.Read, 1000) // so that a request fits
		tcp := &service.TCP{Address: address, Handler: site.Serve, Limits: limits, Filters: w.filters(), FilterTimeout: time.Hour}
		v, err := w.Server("web", config(w.World), append(engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		for range 5 {
			w.Client(address, w.asks(&seen))
		}
		endsSometimes(w.World, v, func() {})
	})
	t.Log(seen)
	require.Positive(t, seen.whole)
}

// noise is the length of a file, which is asked for in place of a body.
const noise, file = 40_000, -1

// asks is the script of a client of HTTP.
func (w *world) asks(seen *counts) sim.Script {
	return func(c *sim.Client) error {
		x := newTalker(w, c)
		bodies := make([]int, 1+c.Rand().IntN(8))
		for i := range bodies {
			bodies[i] = c.Rand().IntN(pickFrom(c.Rand().IntN, 1, 100, 20_000))
			switch {
			case x.most == 1:
				bodies[i] = min(bodies[i], 100)
			case c.Rand().IntN(8) == 0:
				bodies[i] = file
			}
		}
		if err := x.tls.Handshake(); err != nil {
			return unexpected(err)
		}
		x.shaken = true
		seen.handshakes++
		if p := x.tls.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
			return fmt.Errorf("the protocol is %q", p)
		}
		c.Go(func(*sim.Client) error { return x.answers(bodies, seen) })
		for i, n := range bodies {
			if err := x.ask(n, i == len(bodies)-1); err != nil {
				return err
			}
		}
		return nil
	}
}

// ask sends a request, with a body unless n is 0.
func (x *talker) ask(n int, last bool) error {
	head := "GET / HTTP/1.1\r\nHost: world\r\n"
	switch {
	case n == file:
		head = "GET /noise HTTP/1.1\r\nHost: world\r\n"
	case n > 0:
		head = fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: world\r\nContent-Length: %d\r\n", n)
	}
	if last {
		head += "Connection: close\r\n"
	}
	if _, err := io.WriteString(x.tls, head+"\r\n"); err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	return x.send(max(0, n), 1)
}

// answers reads an answer for each body.
func (x *talker) answers(bodies []int, seen *counts) error {
	in := bufio.NewReaderSize(x.tls, 16+x.Rand().IntN(5000))
	for i, n := range bodies {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return unexpected(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("answer %d is %s", i, r.Status)
		}
		switch {
		case n == 0 && string(body) == "Hello, World!":
		case n > 0 && len(body) == n:
			if err := x.compare(body); err != nil {
				return err
			}
		case n == file && len(body) == noise && body[noise/2] == pattern(noise/2, 0) && body[noise-1] == pattern(noise-1, 0):
		default:
			return fmt.Errorf("answer %d has %d bytes of %d", i, len(body), n)
		}
		if r.Close && i < len(bodies)-1 {
			return fmt.Errorf("the server closes after answer %d: %w", i, io.ErrUnexpectedEOF)
		}
	}
	if in.Buffered() > 0 {
		return errors.New("there is more than was asked for")
	}
	return x.end(seen)
}
