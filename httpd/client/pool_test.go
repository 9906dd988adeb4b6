package client_test

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

const ms = time.Millisecond

func TestTheLatestIdleConnectionIsUsedFirst(t *testing.T) {
	s := play(t, answers(hello), func(s *scene, co *coro.Co) {
		o := &client.Origin{Address: at}
		var open []*client.Response
		for range 3 {
			answer, _, err := fetch(co, get(o, "/"))
			require.NoError(s, err)
			open = append(open, answer)
		}
		for _, answer := range open {
			require.NoError(s, answer.Close())
			require.NoError(s, answer.Close(), "a second Close does nothing")
		}
		s.done(co, get(o, "/latest"))
		s.done(co, get(o, "/latest"))
		require.Equal(s, 3, o.Conns())
	})
	require.Equal(t, []string{"1 GET /", "2 GET /", "3 GET /", "3 GET /latest", "3 GET /latest"}, s.asked)
}

// A connection that has ended, or on which something has come, is not used, so nothing is lost with it.
func TestAnIdleConnectionThatIsNotCleanIsNotUsed(t *testing.T) {
	script := func(p *peer) {
		p.ask()
		p.say(hello)
		_ = p.Co().Sleep(ms)
		switch p.n {
		case 1:
			_ = p.CloseWrite()
		case 2:
			p.Under().Abort()
		case 3:
			p.say("x")
		case 4:
			p.say(hello)
		}
		p.ask()
	}
	s := play(t, script, func(s *scene, co *coro.Co) {
		o := &client.Origin{Address: at}
		for range 5 {
			s.done(co, &client.Call{Origin: o, Method: "POST"})
			s.sleep(co, 10*ms)
		}
		require.Equal(s, 1, o.Conns())
	})
	require.Equal(t, []string{"1 POST /", "2 POST /", "3 POST /", "4 POST /", "5 POST /"}, s.asked)
}

// Nobody asks for the connection meanwhile.
func TestIdleConnectionsAreClosed(t *testing.T) {
	script := func(p *peer) {
		p.ask()
		p.say(hello)
		if p.path == "/ends" {
			_ = p.Co().Sleep(5 * time.Second)
			return
		}
		p.ask()
	}
	play(t, script, func(s *scene, co *coro.Co) {
		kept := func(o *client.Origin, target string, times ...time.Duration) {
			s.done(co, get(o, target))
			for i, wait := range times {
				s.sleep(co, wait)
				require.Equal(s, len(times)-1-i, o.Conns())
			}
		}
		kept(&client.Origin{Address: at}, "/ends", 4900*ms, 200*ms)
		kept(&client.Origin{Address: at}, "/old", 59*time.Second, 2*time.Second)
		kept(&client.Origin{Address: at, IdleTimeout: 10 * ms}, "/old", 9*ms, 2*ms)
		kept(&client.Origin{Address: at, MaxIdle: -1}, "/", 0)
		two := &client.Origin{Address: at, MaxIdle: 1}
		answer, _, err := fetch(co, get(two, "/"))
		require.NoError(s, err)
		s.done(co, get(two, "/"))
		require.Equal(s, 2, two.Conns())
		require.NoError(s, answer.Close())
		require.Equal(s, 1, two.Conns())
	})
}

// All but the first wait for the only connection, in the order in which they came.
func TestCallsWaitInOrder(t *testing.T) {
	o := &client.Origin{Address: at, MaxConns: 1, MaxWaiting: 3}
	call := func(begin time.Duration, targets ...string) func(s *scene, co *coro.Co) {
		return func(s *scene, co *coro.Co) {
			s.sleep(co, begin)
			for _, target := range targets {
				answer, _, err := fetch(co, get(o, target))
				require.NoError(s, err)
				s.sleep(co, 10*ms)
				require.NoError(s, answer.Close())
			}
		}
	}
	s := play(t, answers(hello), call(0, "/1"), call(ms, "/2"), call(6*ms, "/3", "/5"), call(7*ms, "/4"), func(s *scene, co *coro.Co) {
		s.sleep(co, 2*ms)
		_ = co.Within(3*ms, func() error { return co.Do(get(o, "/given-up")) })
	}, func(s *scene, co *coro.Co) {
		s.sleep(co, 3*ms)
		late := get(o, "/late")
		late.Timeouts.Wait = 2 * ms
		failure := s.fails(co, late)
		require.ErrorIs(s, failure, os.ErrDeadlineExceeded)
		require.True(s, failure.Timeout())
		require.False(s, failure.Sent)
		require.InDelta(s, 5*ms, s.w.Now(), float64(ms/2))
	}, func(s *scene, co *coro.Co) {
		s.sleep(co, 4*ms)
		require.ErrorIs(s, s.fails(co, get(o, "/busy")), client.ErrBusy)
	})
	require.Equal(t, []string{"1 GET /1", "1 GET /2", "1 GET /3", "1 GET /4", "1 GET /5"}, s.asked)
}

// A Call that fails to connect, or is given up meanwhile, lets the next one try.
func TestAPlaceIsGivenOn(t *testing.T) {
	const mute = "10.9.9.1:80"
	o := &client.Origin{Address: mute, MaxConns: 1, Timeouts: client.Timeouts{Connect: time.Second}}
	fails := func(s *scene, co *coro.Co) {
		s.w.Delay("10.9.9.1", time.Hour)
		failure := s.fails(co, get(o, "/"))
		require.ErrorContains(s, failure, "established")
		require.False(s, failure.Sent)
	}
	play(t, answers(hello), fails, fails, func(s *scene, co *coro.Co) {
		require.Error(s, co.Within(2500*ms, func() error { return co.Do(get(o, "/")) }))
		s.sleep(co, ms)
		require.Equal(s, 1, o.Conns())
	}, fails, func(s *scene, co *coro.Co) {
		s.sleep(co, 3600*ms)
		require.Zero(s, o.Conns())
	})
}

// A connection of its own takes the place of an idle one.
func TestACallWithAFilter(t *testing.T) {
	o := &client.Origin{Address: at, MaxConns: 1}
	s := play(t, answers(hello), func(s *scene, co *coro.Co) {
		s.done(co, get(o, "/"))
		private := get(o, "/private")
		private.Filter = func(c *listener.Conn) (none act.Action) {
			_, _ = c.WriteString("GET /filter HTTP/1.1\r\n\r\n")
			return none
		}
		answer, _, err := fetch(co, private)
		require.NoError(s, err)
		require.NoError(s, answer.Close())
		require.Zero(s, o.Conns())
		s.done(co, get(o, "/"))
	})
	require.Equal(t, []string{"1 GET /", "2 GET /filter", "2 GET /private", "3 GET /"}, s.asked)
}

// TestRepeats loses a connection that has carried a request before.
func TestRepeats(t *testing.T) {
	for name, row := range map[string]struct {
		call    client.Call
		write   bool   // the content is written
		hears   string // of an answer
		resets  bool
		unused  bool // the connection has carried none
		again   bool // it is repeated
		content string
	}{
		"GET":                       {again: true},
		"GET, by a reset":           {resets: true, again: true},
		"GET after a byte":          {hears: "H"},
		"GET after interim answers": {hears: "HTTP/1.1 103 Early Hints\n\n"},
		"GET on a new connection":   {unused: true},
		"POST":                      {call: client.Call{Method: "POST", Content: []byte("hello")}},
		"POST that is repeatable":   {call: client.Call{Method: "POST", Content: []byte("hello"), Repeatable: true}, again: true},
		"PATCH":                     {call: client.Call{Method: "PATCH"}, resets: true},
		"PUT":                       {call: client.Call{Method: "PUT", Content: []byte("hello")}, again: true},
		"PUT that was written":      {call: client.Call{Method: "PUT", Length: 5}, write: true},
	} {
		t.Run(name, func(t *testing.T) {
			script := func(p *peer) {
				for p.ask() != "" {
					if size := strings.Count(p.head, "Content-Length: 5"); size > 0 {
						content := make([]byte, 5)
						_, err := io.ReadFull(p.in, content)
						require.NoError(t, err)
						require.Equal(t, "hello", string(content))
					}
					if p.n == 1 && p.path == "/lost" {
						p.say(row.hears)
						if _ = p.Co().Sleep(ms); row.resets {
							p.Under().Abort()
						}
						return
					}
					p.say(hello)
				}
			}
			method := row.call.Method
			if method == "" {
				method = "GET"
			}
			want := []string{"1 GET /", "1 " + method + " /lost", "2 " + method + " /lost"}
			if row.unused {
				want = want[1:]
			}
			s := play(t, script, func(s *scene, co *coro.Co) {
				o := &client.Origin{Address: at}
				if !row.unused {
					s.done(co, get(o, "/"))
				}
				call := &row.call
				call.Origin, call.Target = o, "/lost"
				if row.write {
					require.NoError(s, co.Do(call.Begin()))
					_, err := io.WriteString(coro.Writer(co, call), "hello")
					require.NoError(s, err)
					require.NoError(s, call.End())
				}
				if row.again {
					s.done(co, call)
					require.Equal(s, 1, o.Conns())
					return
				}
				require.True(s, s.fails(co, call).Sent)
				require.Zero(s, o.Conns())
			})
			if !row.again {
				want = want[:len(want)-1]
			}
			require.Equal(t, want, s.asked)
		})
	}
}

// The server may have acted on a request that was lost, even if it cannot be sent again.
func TestARepetitionThatCannotBeSent(t *testing.T) {
	script := func(p *peer) {
		p.ask()
		p.say(hello)
		p.ask()
	}
	play(t, script, func(s *scene, co *coro.Co) {
		o := &client.Origin{Address: at, Timeouts: client.Timeouts{Connect: time.Second}}
		s.done(co, get(o, "/"))
		s.w.Delay("10.0.0.1", time.Hour)
		require.True(s, s.fails(co, get(o, "/lost")).Sent)
	})
}

// Calls that are under way when their Origin is closed go on.
func TestAnOriginIsClosed(t *testing.T) {
	o, other := &client.Origin{Address: at, MaxConns: 2}, &client.Origin{Address: at}
	play(t, answers(hello), func(s *scene, co *coro.Co) {
		s.done(co, get(other, "/"))
		answer, content, err := fetch(co, get(o, "/"))
		require.NoError(s, err)
		s.done(co, get(o, "/idle"))
		require.Equal(s, 2, o.Conns())
		o.Close()
		s.sleep(co, ms)
		require.Equal(s, 1, o.Conns())
		require.Equal(s, "hello", content)
		require.False(s, s.fails(co, get(o, "/")).Sent)
		require.NoError(s, answer.Close())
		require.Zero(s, o.Conns())
		s.done(co, get(other, "/"))
		require.Equal(s, 1, other.Conns())
		other.Close()
		other.Close()
	})
}

// Idle connections do not keep the program from its end. Calls under way, and those that begin, do.
func TestShutdown(t *testing.T) {
	script := func(p *peer) {
		for p.ask() != "" {
			_ = p.Co().Sleep(time.Second)
			p.say(hello)
		}
	}
	play(t, script, func(s *scene, co *coro.Co) {
		o := &client.Origin{Address: at}
		s.done(co, get(o, "/"))
		s.w.At(1500*ms, func() { s.calls.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded}) })
		s.done(co, get(o, "/"))
		require.Zero(s, o.Conns(), "none is kept any more")
		s.done(co, get(o, "/"))
		s.w.At(s.w.Now()+ms, func() { require.True(s, s.calls.Ended()) })
	})
	play(t, script, func(s *scene, co *coro.Co) {
		s.done(co, get(&client.Origin{Address: at}, "/"))
		s.w.At(1500*ms, func() { s.calls.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded}) })
		s.w.At(1501*ms, func() { require.True(s, s.calls.Ended()) })
	})
}
