package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/sim"
)

const front = "10.0.0.9:80"

type server = func(*listener.Conn) act.Action

// through makes a world with a gateway to these back ends, of which nil refuses connections. Its scheduler has the tasks of
// setup, too.
func through(t *testing.T, c Config, b Backend, backs []server, setup ...func(*act.Scheduler) error) *farm {
	f := &farm{T: t, World: sim.New(sim.Options{Seed: 1}), g: &Gateway{}}
	if len(c.Groups) == 0 {
		c.Groups = []Group{{Name: "g"}}
	}
	for i, h := range backs {
		b.Address = fmt.Sprintf("10.0.0.%d:80", i+1)
		if c.Groups[0].Backends = append(c.Groups[0].Backends, b); h != nil {
			f.serve(b.Address, h)
		}
	}
	c.Routes = []Route{{Group: "g"}}
	f.g.Swap(tableOf(t, c))
	web := httpd.Server{Handler: f.g.Serve}
	f.gateway = f.serve(front, web.Serve, append(setup, f.g.Setup)...)
	return f
}

// TestBackEndsThatFail has requests meet back ends of which each is a letter: r refuses connections, x resets them after the
// request, c closes them, s is silent, h and b break off in the head and in the content of an answer, and a status answers it.
// The answer says which has made it; behind it are those that the request has come to.
func TestBackEndsThatFail(t *testing.T) {
	for row, want := range map[string]string{
		"GET 0 200":         "200 0: 0",
		"GET 0 r 200":       "200 1: 1",
		"GET 0 x 200":       "200 1: 01",
		"GET 0 c 200":       "200 1: 01",
		"GET 0 s 200":       "200 1: 01",
		"GET 0 h 200":       "200 1: 01",
		"GET 0 b 200":       "cut: 0",
		"GET 0 502 200":     "200 1: 01",
		"GET 0 503 200":     "200 1: 01",
		"GET 0 504 200":     "200 1: 01",
		"GET 0 500 200":     "500 0: 0",
		"GET 0 503 504":     "504 1: 01",
		"GET 0 503 r":       "502: 0",
		"GET 0 r r":         "502: ",
		"GET 0 x x":         "502: 01",
		"GET 0 s s":         "504: 01",
		"GET 0 s x":         "502: 01",
		"GET 0 x x x 200":   "502: 012",
		"GET 0 r r x 200":   "502: 2",
		"GET 0 503 r x 200": "502: 02",
		"DELETE 0 x 200":    "200 1: 01",
		"POST 0 r 200":      "200 1: 1",
		"POST 0 x 200":      "502: 0",
		"POST 0 s 200":      "504: 0",
		"POST 0 503 200":    "503 0: 0",
		"PATCH 9 x 200":     "502: 0",
		"POST 99999 r 200":  "200 1: 1",
		"PUT 10000 x 200":   "200 1: 01",
		"PUT 16384 503 200": "200 1: 01",
		"PUT 16385 x 200":   "502: 0",
		"PUT 99999 r 200":   "200 1: 1",
		"PUT 99999 503 200": "503 0: 0",
		"PUT -1 x 200":      "502: 0",
		"PUT -1 r 200":      "200 1: 1",
	} {
		words := strings.Fields(row)
		size, _ := strconv.Atoi(words[1])
		content := string(party.Noise()[:max(size, 0)])
		if size < 0 {
			content = "hello"
		}
		asked, said := "", ""
		var backs []server
		for i, how := range words[2:] {
			if how == "r" {
				backs = append(backs, nil)
				continue
			}
			backs = append(backs, coro.Serve(func(c *coro.Conn) error {
				in := bufio.NewReader(c)
				r, err := http.ReadRequest(in)
				require.NoError(t, err)
				got, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Equal(t, content, string(got), row)
				asked += strconv.Itoa(i)
				switch how {
				case "x":
					c.Under().Abort()
				case "c":
				case "s":
					_, _ = in.ReadByte()
				case "h":
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le")
				case "b":
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell")
				default:
					_, _ = fmt.Fprintf(c, "HTTP/1.1 %s X\r\nContent-Length: 5\r\n\r\n of %d", how, i)
				}
				return nil
			}))
		}
		f := through(t, Config{}, Backend{Timeouts: client.Timeouts{Head: time.Second}}, backs)
		f.Client(front, func(c *sim.Client) error {
			framing := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, content)
			if size < 0 {
				framing = "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
			}
			fmt.Fprintf(c, "%s / HTTP/1.1\r\nHost: x\r\n%s", words[0], framing)
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if said = "cut"; err != nil {
				return nil
			}
			if text, err := io.ReadAll(answer.Body); err == nil {
				_, by, _ := strings.Cut(string(text), " of ")
				said = strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", by))
			}
			return nil
		})
		require.NoError(t, f.World.Run(), row)
		require.Equal(t, want, said+": "+asked, row)
	}
}

// TestRetriesAreBounded: of 30 requests that two back ends fail, as many are repeated as the budget allows.
func TestRetriesAreBounded(t *testing.T) {
	busy := httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.StatusOnly(503)
		return nil
	}}
	for retries, want := range map[int]int{-1: 0, 0: leastRetries + 30*20/100, 100: 30} {
		c := Config{Groups: []Group{{Name: "g", Retries: retries, Health: Health{Failures: -1}}}}
		f := through(t, c, Backend{}, []server{busy.Serve, busy.Serve})
		f.Client(front, func(c *sim.Client) error {
			get(c, slices.Repeat([]string{"/"}, 30)...)
			return nil
		})
		require.NoError(t, f.World.Run())
		require.EqualValues(t, want, f.g.table.Load().routes[0].retries.Load())
	}
}

// ask is the client's side of an exchange, and back the one of the back end. Both are coroutines, and seen is what they share.
type duo struct {
	ask  func(co *coro.Co, call *client.Call, seen *seen)
	back func(co *coro.Co, w *httpd.Response, r *httpd.Request, seen *seen) error
}

type seen struct {
	*testing.T
	*client.Response
	n     int           // bytes, or events
	ended time.Duration // when the back end was told that nobody wants the answer
	now   func() time.Duration
}

// content takes the answer, with this status, and reads it.
func (s *seen) content(co *coro.Co, call *client.Call, status int) (string, error) {
	require.NoError(s, co.Do(call))
	s.Response = call.Response()
	require.Equal(s, status, s.Status())
	all, err := io.ReadAll(coro.Reader(co, s))
	return string(all), err
}

// cut has a back end that breaks off.
func cut(sized bool) duo {
	return duo{func(co *coro.Co, call *client.Call, seen *seen) {
		_, err := seen.content(co, call, 200)
		require.Error(seen, err)
	}, func(co *coro.Co, w *httpd.Response, _ *httpd.Request, _ *seen) error {
		if sized {
			w.SetLength(100)
		}
		_, _ = w.Write(make([]byte, 10))
		_ = w.Flush()
		_ = co.Sleep(time.Millisecond)
		return party.ErrOnPurpose
	}}
}

// lasts is a back end that sends n bytes, and then waits until it is closed.
func lasts(n int) func(co *coro.Co, w *httpd.Response, r *httpd.Request, seen *seen) error {
	return func(co *coro.Co, w *httpd.Response, r *httpd.Request, seen *seen) error {
		if seen.n++; n > 0 {
			_, _ = w.Write(make([]byte, n))
			_ = w.Flush()
		}
		err := co.Sleep(time.Hour)
		seen.ended = seen.now()
		return err
	}
}

// over expects that the back end was told so within a moment.
func (s *seen) over(co *coro.Co) {
	at := s.now()
	require.NoError(s, co.Sleep(10*time.Millisecond))
	require.Equal(s, 1, s.n)
	require.WithinRange(s, time.Unix(0, int64(s.ended)), time.Unix(0, int64(at)), time.Unix(0, int64(s.now())))
}

var duos = map[string]duo{
	"hints and trailers": {func(co *coro.Co, call *client.Call, seen *seen) {
		call.Method, call.Length = "POST", -1
		call.Add("TE", "trailers")
		hints := ""
		call.Inform = func(r *client.Response) { hints += fmt.Sprintf("%d %s", r.Status(), r.Header("Link")) }
		require.NoError(seen, co.Do(call.Begin()))
		_, err := call.Write([]byte("hello"))
		require.NoError(seen, err)
		require.NoError(seen, call.End("X-Sum", "5"))
		content, err := seen.content(co, call, 200)
		require.NoError(seen, err)
		require.Equal(seen, "103 </a>; trailers; hello", hints+"; "+content)
		if call.Origin.Protocol == client.HTTP2 || seen.Length() < 0 {
			require.Equal(seen, "5!", string(seen.Trailer("X-Sum")))
		}
	}, func(co *coro.Co, w *httpd.Response, r *httpd.Request, _ *seen) error {
		_ = w.Inform(103, httpd.NewField("Link", "</a>"))
		all, err := io.ReadAll(coro.Reader(co, &r.Body))
		_, _ = fmt.Fprintf(w, "%s; %s", r.Header("TE"), all)
		w.AddTrailer("X-Sum", string(r.Body.Trailer("X-Sum"))+"!")
		return err
	}},
	"HEAD": {func(co *coro.Co, call *client.Call, seen *seen) {
		call.Method = "HEAD"
		content, err := seen.content(co, call, 200)
		require.NoError(seen, err)
		require.Empty(seen, content)
		require.EqualValues(seen, 12345, seen.Length())
	}, func(_ *coro.Co, w *httpd.Response, _ *httpd.Request, _ *seen) error {
		w.SetLength(12345)
		return nil
	}},
	"cut":                  cut(true),
	"cut without a length": cut(false),
	"events": {func(co *coro.Co, call *client.Call, seen *seen) {
		require.NoError(seen, co.Do(call))
		seen.Response = call.Response()
		defer seen.Close()
		for in := bufio.NewReader(coro.Reader(co, seen)); seen.n < 10; seen.n++ {
			line, err := in.ReadString('\n')
			require.NoError(seen, err)
			require.Equal(seen, fmt.Sprint("data: ", seen.n, "\n"), line)
		}
	}, func(co *coro.Co, w *httpd.Response, _ *httpd.Request, seen *seen) error {
		_ = w.Flush()
		_ = co.Sleep(100 * time.Millisecond)
		require.NotNil(seen, seen.Response, "the client has the head")
		for i := range 10 {
			require.Equal(seen, i, seen.n, "the client has all that was sent")
			_, _ = fmt.Fprintf(w, "data: %d\n", i)
			_ = w.Flush()
			_ = co.Sleep(100 * time.Millisecond)
		}
		return nil
	}},
	"a client that goes within the answer": {func(co *coro.Co, call *client.Call, seen *seen) {
		require.NoError(seen, co.Do(call))
		answer := call.Response()
		_, err := coro.Reader(co, answer).Read(make([]byte, 10))
		require.NoError(seen, err)
		require.NoError(seen, answer.Close())
		seen.over(co)
	}, lasts(10)},
	"a client that goes before the answer": {func(co *coro.Co, call *client.Call, seen *seen) {
		require.Error(seen, co.Within(50*time.Millisecond, func() error { return co.Do(call) }))
		require.NoError(seen, call.Close())
		seen.over(co)
	}, lasts(0)},
	"content that is refused": {func(co *coro.Co, call *client.Call, seen *seen) {
		call.Method, call.Length, call.Expect = "PUT", 1<<20, true
		require.NoError(seen, co.Do(call.Begin()))
		n, err := call.Write([]byte("hello"))
		require.Equal(seen, client.ErrAnswered, err)
		require.Zero(seen, n)
		_, err = seen.content(co, call, 413)
		require.NoError(seen, err)
	}, func(_ *coro.Co, w *httpd.Response, _ *httpd.Request, _ *seen) error {
		w.StatusOnly(413)
		return nil
	}},
	"content that is wanted": {func(co *coro.Co, call *client.Call, seen *seen) {
		call.Method, call.Length, call.Expect = "POST", 5, true
		require.NoError(seen, co.Do(call.Begin()))
		require.Equal(seen, 1, seen.n)
		_, err := call.Write([]byte("hello"))
		require.NoError(seen, err)
		require.NoError(seen, call.End())
		content, err := seen.content(co, call, 200)
		require.NoError(seen, err)
		require.Equal(seen, "hello", content)
	}, func(co *coro.Co, w *httpd.Response, r *httpd.Request, seen *seen) error {
		require.NoError(seen, co.Sleep(50*time.Millisecond))
		seen.n++
		_, err := io.Copy(coro.Writer(co, w), coro.Reader(co, &r.Body))
		return err
	}},
	"an early answer": {func(co *coro.Co, call *client.Call, seen *seen) {
		call.Method, call.Length = "POST", 1<<30
		require.NoError(seen, co.Do(call.Begin()))
		_, err := coro.Writer(co, call).Write(make([]byte, 8<<20))
		require.Equal(seen, client.ErrAnswered, err)
		content, err := seen.content(co, call, 200)
		require.NoError(seen, err)
		require.Equal(seen, "early", content)
	}, func(_ *coro.Co, w *httpd.Response, _ *httpd.Request, _ *seen) error {
		_, err := io.WriteString(w, "early")
		return err
	}},
	"both directions at once": {func(co *coro.Co, call *client.Call, seen *seen) {
		const all, ahead = 500_000, 10_000
		call.Method, call.Length = "POST", -1
		require.NoError(seen, co.Do(call.Begin()))
		write := func(p []byte) {
			_, err := coro.Writer(co, call).Write(p)
			require.NoError(seen, err)
		}
		write(party.Noise()[:ahead])
		require.NoError(seen, co.Do(call))
		answer, got := coro.Reader(co, call.Response()), make([]byte, ahead)
		for piece := range slices.Chunk(party.Noise()[:all], ahead) {
			_, err := io.ReadFull(answer, got)
			require.NoError(seen, err)
			require.Equal(seen, piece, got)
			if seen.n += ahead; seen.n < all {
				write(party.Noise()[seen.n:][:ahead])
			}
		}
		require.NoError(seen, call.End())
		_, err := answer.Read(got)
		require.Equal(seen, io.EOF, err)
	}, func(co *coro.Co, w *httpd.Response, r *httpd.Request, _ *seen) error {
		_, err := io.Copy(coro.Writer(co, w), coro.Reader(co, &r.Body))
		return err
	}},
}

// TestExchanges has them over both versions of HTTP on both sides.
func TestExchanges(t *testing.T) {
	for name, d := range duos {
		for _, versions := range [][2]client.Protocol{{1, 1}, {1, 2}, {2, 1}, {2, 2}} {
			t.Run(fmt.Sprint(name, versions), func(t *testing.T) {
				seen, ended := &seen{T: t}, false
				back := httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
					return coro.New(func(co *coro.Co) error { return d.back(co, w, r, seen) })
				}}
				asks := coro.New(func(co *coro.Co) error {
					defer func() { ended = true }()
					call := &client.Call{Origin: &client.Origin{Address: front, Protocol: versions[0]}}
					defer call.Close()
					d.ask(co, call, seen)
					return nil
				})
				f := through(t, Config{}, Backend{Protocol: versions[1]}, []server{back.Serve}, func(s *act.Scheduler) error {
					s.Spawn(asks)
					return nil
				})
				seen.now = f.Now
				f.Client(front, func(c *sim.Client) error {
					for !ended {
						c.Sleep(time.Millisecond)
					}
					return nil
				})
				require.NoError(t, f.World.Run())
			})
		}
	}
}
