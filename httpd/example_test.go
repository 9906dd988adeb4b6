package httpd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// visit runs a server, lets a client of net/http visit it, and ends it.
func visit(web *httpd.Server, client func(at string)) {
	address, stop := start(web)
	client("http://" + address)
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		fmt.Println(err)
	}
}

// ask makes a request and reads its answer: as long as that is not read, the connection is open.
func ask(url string) {
	res, err := http.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
}

// say prints an answer.
func say(res *http.Response, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := io.ReadAll(res.Body)
	fmt.Println(res.Status, strings.TrimSpace(string(body)), err)
}

func ExampleServer() {
	hello := func(w *httpd.Response, r *httpd.Request) act.Action {
		w.Add("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.WriteString("Hello, ")
		_, _ = w.Write(r.Path()[1:])
		return nil // that was the answer
	}
	visit(&httpd.Server{Handler: hello}, func(at string) {
		say(http.Get(at + "/World!"))
	})
	// Output: 200 OK Hello, World! <nil>
}

func slow(w *httpd.Response, _ *httpd.Request) act.Action {
	return act.Seq(&listener.Sleep{For: time.Second}, act.Func(func(*act.Task) act.Directive {
		_, _ = w.WriteString("Hello, World, after a second!\n")
		return act.Done
	}))
}

// A handler that has to wait returns an action. Here it waits for a timer; it might be another connection
// (listener.Connect) or a function on another goroutine (act.Call).
func ExampleHandler() {
	visit(&httpd.Server{Handler: slow}, func(at string) {
		say(http.Get(at + "/")) // 200 OK Hello, World, after a second! <nil>
	})
}

func ExampleMux() {
	var site httpd.Mux
	site.Handle("GET /{$}", func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = w.WriteString("home")
		return nil
	})
	site.Handle("GET /users/{id}", func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = w.Write(r.Value("id"))
		return nil
	})
	visit(&httpd.Server{Handler: site.Serve}, func(at string) {
		say(http.Get(at + "/"))
		say(http.Get(at + "/users/Ada%20L."))
		say(http.Post(at+"/users/7", "text/plain", nil))
		say(http.Get(at + "/nowhere"))
	})
	// Output:
	// 200 OK home <nil>
	// 200 OK Ada L. <nil>
	// 405 Method Not Allowed 405 Method Not Allowed <nil>
	// 404 Not Found 404 Not Found <nil>
}

// A log or a metric groups requests by their pattern: other than the path, a client cannot choose it.
func ExampleRequest_Pattern() {
	var site httpd.Mux
	site.Handle("GET /users/{id}", func(w *httpd.Response, r *httpd.Request) act.Action { return nil })
	web := &httpd.Server{Handler: site.Serve, OnResponse: func(w *httpd.Response, r *httpd.Request) {
		fmt.Printf("%d %q %s\n", w.Status(), r.Pattern(), r.Path())
	}}
	visit(web, func(at string) {
		ask(at + "/users/7")
		ask(at + "/nowhere")
	})
	// Output:
	// 200 "GET /users/{id}" /users/7
	// 404 "" /nowhere
}

// A handler that streams to a client that only listens, as server-sent events do, ends when the client closes its side.
func ExampleRequest_Ended() {
	events := func(w *httpd.Response, r *httpd.Request) act.Action {
		w.Add("Content-Type", "text/event-stream")
		_, _ = w.WriteString("data: hello\n\n")
		return act.Func(func(t *act.Task) act.Directive {
			if r.Ended(t) {
				fmt.Println("the client has gone")
				return act.Done
			}
			return act.Wait // until the client closes its side; here other events would wake the task, too
		})
	}
	visit(&httpd.Server{Handler: events}, func(at string) {
		c, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer c.Close()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		in := bufio.NewReader(c)
		for line := ""; err == nil && line != "data: hello\n"; {
			line, err = in.ReadString('\n')
		}
		_ = c.(*net.TCPConn).CloseWrite()
		_, err = io.Copy(io.Discard, in)
		fmt.Println(err)
	})
	// Output:
	// the client has gone
	// <nil>
}

// The body streams in and out: a client that does not read its answer is not read either.
func ExampleBody_Peek() {
	shout := func(w *httpd.Response, r *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			in, err := r.Body.Peek()
			if err != nil {
				return listener.Next(t, err) // a Blocked waits, io.EOF is Done
			}
			upper := []byte(strings.ToUpper(string(in)))
			n, err := w.Write(upper)
			r.Body.Discard(n)
			return listener.Next(t, err)
		})
	}
	visit(&httpd.Server{Handler: shout}, func(at string) {
		say(http.Post(at, "text/plain", io.MultiReader(strings.NewReader("in pieces, "), strings.NewReader("of no known length"))))
	})
	// Output: 200 OK IN PIECES, OF NO KNOWN LENGTH <nil>
}

func ExampleWithBody() {
	length := httpd.WithBody(10, func(w *httpd.Response, r *httpd.Request, body []byte) act.Action {
		_, _ = fmt.Fprintf(w, "%d bytes", len(body))
		return nil
	})
	visit(&httpd.Server{Handler: length}, func(at string) {
		say(http.Post(at, "text/plain", strings.NewReader("ten bytes!")))
		say(http.Post(at, "text/plain", strings.NewReader("and eleven.")))
	})
	// Output:
	// 200 OK 10 bytes <nil>
	// 413 Content Too Large 413 Content Too Large <nil>
}

// A handler leaves HTTP for another protocol, here an echo of lines. A client that does not ask for it gets its name
// with 426.
// An offloaded function makes the content and sends it, and the scheduler waits for room.
func ExampleResponse_Lend() {
	content := strings.Repeat("much to compute ", 100_000)
	handler := func(w *httpd.Response, _ *httpd.Request) act.Action {
		rest, failure := []byte(content), error(nil)
		send := func(s *httpd.Sender) func() {
			return func() {
				n, err := s.Write(rest)
				rest, failure = rest[n:], err
			}
		}
		return act.Func(func(t *act.Task) act.Directive {
			s, err := w.Lend()
			if err == nil && failure == monitor.ErrWouldBlock {
				err = s.Ready()
			} else if err == nil {
				err = failure
			}
			switch {
			case err != nil:
				return listener.Next(t, err)
			case len(rest) == 0:
				return act.Done
			}
			failure = nil
			return t.Offload(send(s))
		})
	}
	visit(&httpd.Server{Handler: handler}, func(at string) {
		answer, err := http.Get(at)
		if err != nil {
			fmt.Println(err)
			return
		}
		n, err := io.Copy(io.Discard, answer.Body)
		fmt.Println(n, err)
	})
	// Output: 1600000 <nil>
}

func ExampleResponse_SwitchProtocols() {
	echo := func(c *listener.Conn) act.Action {
		lines := listener.Line{Conn: c}
		return act.Func(func(t *act.Task) act.Directive {
			line, err := lines.Read()
			if err == nil {
				_, err = fmt.Fprintf(c, "you said %s\n", line)
			}
			return listener.Next(t, err)
		})
	}
	upgrade := func(w *httpd.Response, r *httpd.Request) act.Action {
		if err := w.SwitchProtocols("line-echo", echo); err != nil {
			w.StatusOnly(426) // Upgrade Required
			w.Add("Upgrade", "line-echo")
		}
		return nil
	}
	visit(&httpd.Server{Handler: upgrade}, func(at string) {
		say(http.Get(at))

		c, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer c.Close()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: line-echo\r\n\r\nhello\n")
		in := bufio.NewReader(c)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Status)
		line, err := in.ReadString('\n')
		fmt.Print(line)
	})
	// Output:
	// 426 Upgrade Required 426 Upgrade Required <nil>
	// 101 Switching Protocols
	// you said hello
}
