package client_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
)

// TestRequests looks at what the server gets.
func TestRequests(t *testing.T) {
	const host = "\nHost: " + "10.0.0.1\n"
	for name, row := range map[string]struct {
		call     client.Call
		fields   []string
		pieces   []string // that are written
		trailers []string
		want     string // "" if the Call fails before anything is sent
	}{
		"GET":              {want: "GET / HTTP/1.1" + host + "\n"},
		"fields":           {fields: []string{"X-A", "1", "x-a", "2\t3"}, want: "GET / HTTP/1.1" + host + "X-A: 1\nx-a: 2\t3\n\n"},
		"another host":     {call: client.Call{Host: "b:8080", Target: "/a?b"}, want: "GET /a?b HTTP/1.1\nHost: b:8080\n\n"},
		"OPTIONS":          {call: client.Call{Method: "OPTIONS", Target: "*"}, want: "OPTIONS * HTTP/1.1" + host + "\n"},
		"POST of nothing":  {call: client.Call{Method: "POST"}, want: "POST / HTTP/1.1" + host + "Content-Length: 0\n\n"},
		"DELETE":           {call: client.Call{Method: "DELETE"}, want: "DELETE / HTTP/1.1" + host + "\n"},
		"Content":          {call: client.Call{Method: "PUT", Content: []byte("hello")}, want: "PUT / HTTP/1.1" + host + "Content-Length: 5\n\nhello"},
		"a length":         {call: client.Call{Method: "PUT", Length: 5}, pieces: []string{"he", "", "llo"}, want: "PUT / HTTP/1.1" + host + "Content-Length: 5\n\nhello"},
		"chunks":           {call: client.Call{Method: "PUT", Length: -1}, pieces: []string{"he", "", "llo"}, want: "PUT / HTTP/1.1" + host + "Transfer-Encoding: chunked\n\n2\nhe\n3\nllo\n0\n\n"},
		"trailers":         {call: client.Call{Method: "PUT", Length: -1}, trailers: []string{"X", "y"}, pieces: []string{}, want: "PUT / HTTP/1.1" + host + "Transfer-Encoding: chunked\n\n0\nX: y\n\n"},
		"Upgrade":          {call: client.Call{Upgrade: "x"}, want: "GET / HTTP/1.1" + host + "Connection: upgrade\nUpgrade: x\n\n"},
		"no token":         {call: client.Call{Method: "GE T"}},
		"CONNECT":          {call: client.Call{Method: "CONNECT"}},
		"no slash":         {call: client.Call{Target: "http://b/"}},
		"GET *":            {call: client.Call{Target: "*"}},
		"a space":          {call: client.Call{Target: "/ HTTP/1.1"}},
		"a line break":     {call: client.Call{Target: "/\r\nX: y"}},
		"a bad host":       {call: client.Call{Host: "a\r\nX: y"}},
		"a bad protocol":   {call: client.Call{Upgrade: "a\r\nX: y"}},
		"a bad name":       {fields: []string{"X: y\r\nZ", ""}},
		"a bad value":      {fields: []string{"X", "y\r\nZ: z"}},
		"its own field":    {fields: []string{"content-length", "5"}},
		"of a connection":  {fields: []string{"Connection", "close"}},
		"content twice":    {call: client.Call{Content: []byte("a"), Length: 1}},
		"nothing expected": {call: client.Call{Expect: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			script := func(p *peer) {
				p.say(hello)
				all, _ := io.ReadAll(p.in)
				got = string(all)
			}
			play(t, script, func(s *scene, co *coro.Co) {
				o, call := &client.Origin{Address: at}, &row.call
				call.Origin = o
				for i := 0; i < len(row.fields); i += 2 {
					call.Add(row.fields[i], row.fields[i+1])
				}
				if row.want == "" {
					require.False(s, s.fails(co, call).Sent)
					require.Zero(s, s.conns)
					return
				}
				if row.pieces != nil {
					require.NoError(s, co.Do(call.Begin()))
					for _, piece := range row.pieces {
						n, err := call.Write([]byte(piece))
						require.NoError(s, err)
						require.Len(s, piece, n)
					}
					if call.Length > 0 {
						_, err := call.Write([]byte("x"))
						require.ErrorContains(s, err, "more content")
					}
					require.NoError(s, call.End(row.trailers...))
					_, err := call.Write([]byte("x"))
					require.ErrorContains(s, err, "more content")
				}
				s.done(co, call)
				o.Close()
			})
			require.Equal(t, raw(row.want), got)
		})
	}
}

// An End too early ends the Call with its connection, since the server waits for more.
func TestLessContentThanAnnounced(t *testing.T) {
	play(t, func(p *peer) { p.ask(); _, _ = io.ReadAll(p.in) }, func(s *scene, co *coro.Co) {
		call := &client.Call{Origin: &client.Origin{Address: at}, Method: "PUT", Length: 5}
		require.NoError(s, co.Do(call.Begin()))
		_, err := call.Write([]byte("hell"))
		require.NoError(s, err)
		require.ErrorContains(s, call.End(), "less content")
		require.NoError(s, call.Close())
		_, err = call.Write([]byte("o"))
		require.Error(s, err)
		require.Zero(s, call.Origin.Conns())
	})
}

// A Call may be given up before its first turn, even before it has an Origin.
func TestCloseOfAnUnusedCall(t *testing.T) {
	call := &client.Call{}
	require.NoError(t, call.Close())
	_, err := call.Write(nil)
	failure, is := errors.AsType[*client.Error](err)
	require.True(t, is)
	require.False(t, failure.Sent)
}

// A request in chunks is not repeated after End, since nobody would end it again.
func TestLostAfterEnd(t *testing.T) {
	script := func(p *peer) {
		if p.ask(); p.n == 1 {
			p.say(hello)
			p.ask()
			p.Under().Abort()
		}
		_, _ = io.ReadAll(p.in)
	}
	s := play(t, script, func(s *scene, co *coro.Co) {
		o, ended := &client.Origin{Address: at}, false
		s.done(co, get(o, "/"))
		call := &client.Call{Origin: o, Method: "PUT", Length: -1}
		require.Error(s, co.Do(act.Func(func(t *act.Task) act.Directive {
			d := call.Act(t)
			ended = ended || call.End() == nil
			return d
		})))
	})
	require.Equal(t, 1, s.conns)
}

// TestTimeouts waits for each of the times. They end a Call after this time, not before, and the server notices it at once.
func TestTimeouts(t *testing.T) {
	times := client.Timeouts{Wait: time.Hour, Connect: 3 * time.Second, Head: 5 * time.Second, Idle: 4 * time.Second, Total: 20 * time.Second}
	pause := func(p *peer, n int) { _ = p.Co().Sleep(time.Duration(n) * time.Second) }
	big := make([]byte, 20<<20)
	for name, row := range map[string]struct {
		call   client.Call
		pieces int    // of content, which are written every 10 seconds
		piece  []byte // each of them
		script func(p *peer)
		after  time.Duration
		unsent bool
		err    string
	}{
		"Connect": {call: client.Call{Origin: &client.Origin{Address: "10.9.9.1:80"}}, after: 3 * time.Second, unsent: true, err: "established"},
		"Head": {script: func(p *peer) {
			pause(p, 4)
			p.say("HTTP/1.1 103 Early Hints\n\nHTTP/1.1 200 OK\n")
			pause(p, 100)
		}, after: 5 * time.Second, err: "no answer"},
		"Head, which begins behind the request": {call: client.Call{Length: 1}, pieces: 1, piece: []byte("x"), script: func(p *peer) { pause(p, 100) },
			after: 15 * time.Second, err: "no answer"},
		"Idle while the answer comes": {script: func(p *peer) {
			p.say("HTTP/1.1 200 OK\n\nx")
			for range 3 {
				pause(p, 3)
				p.say("x")
			}
			pause(p, 100)
		}, after: 13 * time.Second, err: "neither sends nor takes"},
		"Idle while the request is sent": {call: client.Call{Content: big}, script: func(p *peer) { pause(p, 100) },
			after: 4 * time.Second, err: "neither sends nor takes"},
		"Idle while the request is written": {call: client.Call{Length: -1}, pieces: 1, piece: big, script: func(p *peer) { pause(p, 100) },
			after: 14 * time.Second, err: "neither sends nor takes"},
		"Idle while the request is sent slowly": {call: client.Call{Content: big}, script: func(p *peer) {
			for range 4 {
				pause(p, 3)
				_, _ = io.CopyN(io.Discard, p.in, 1<<20)
			}
			pause(p, 100)
		}, after: 16 * time.Second, err: "neither sends nor takes"},
		"Total": {script: func(p *peer) {
			p.say("HTTP/1.1 200 OK\n\nx")
			for range 30 {
				pause(p, 1)
				p.say("x")
			}
		}, after: 20 * time.Second, err: "too long"},
		"Total while the caller waits": {call: client.Call{Length: -1}, pieces: 9, piece: []byte("x"), script: func(p *peer) { pause(p, 100) },
			after: 20 * time.Second, err: "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.script, func(s *scene, co *coro.Co) {
				s.w.Delay("10.9.9.1", time.Hour)
				call := &row.call
				if call.Timeouts = times; call.Origin == nil {
					call.Origin = &client.Origin{Address: at}
				}
				var err error
				if row.pieces > 0 {
					err = co.Do(call.Begin())
				}
				for n := 0; n < row.pieces && err == nil; n++ {
					s.sleep(co, 10*time.Second)
					_, err = coro.Writer(co, call).Write(row.piece)
				}
				if err == nil && row.pieces > 0 {
					err = call.End()
				}
				if err == nil {
					_, _, err = fetch(co, call)
				}
				require.NoError(s, call.Close())
				var failure *client.Error
				require.ErrorAs(s, err, &failure)
				require.ErrorIs(s, failure, os.ErrDeadlineExceeded)
				require.ErrorContains(s, failure, row.err)
				require.Equal(s, !row.unsent, failure.Sent)
				require.InDelta(s, row.after, s.w.Now(), float64(300*ms))
				require.Zero(s, call.Origin.Conns())
			})
		})
	}
}

// TestExpect has a server that says whether it wants the content, and one that does not know the question.
func TestExpect(t *testing.T) {
	for name, row := range map[string]struct {
		says string
		gets time.Duration // when the content comes; 0: never
		asks int
	}{
		"it wants it":        {says: "HTTP/1.1 100 Continue\n\n", gets: 300 * ms},
		"it says nothing":    {gets: time.Second},
		"it does not":        {says: "HTTP/1.1 417 Expectation Failed\nContent-Length: 0\n\n"},
		"interim answers":    {says: "HTTP/1.1 103 Early Hints\n\n", gets: time.Second},
		"it answers at once": {says: hello},
	} {
		for _, written := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				script := func(p *peer) {
					p.ask()
					require.Contains(t, p.head, "Expect: 100-continue\n")
					begin := p.w.Now()
					_ = p.Co().Sleep(300 * ms)
					p.say(row.says)
					_, err := io.ReadFull(p.in, make([]byte, 5))
					if row.gets == 0 {
						require.Error(t, err)
						return
					}
					require.NoError(t, err)
					require.InDelta(t, row.gets, p.w.Now()-begin, float64(5*ms))
					p.say(hello)
					p.ask()
				}
				play(t, script, func(s *scene, co *coro.Co) {
					call := &client.Call{Origin: &client.Origin{Address: at}, Method: "POST", Expect: true, Content: []byte("hello")}
					if written {
						call.Content, call.Length = nil, 5
						require.NoError(s, co.Do(call.Begin()))
						if n, err := call.Write([]byte("hello")); row.gets > 0 {
							require.NoError(s, err)
							require.NoError(s, call.End())
						} else {
							require.ErrorIs(s, err, client.ErrAnswered)
							require.Zero(s, n)
						}
					}
					answer, _, err := fetch(co, call)
					require.NoError(s, err)
					require.Equal(s, strings.HasPrefix(row.says, "HTTP/1.1 417"), answer.Status() == 417)
					require.NoError(s, answer.Close())
					require.Equal(s, row.gets > 0, call.Origin.Conns() == 1, "a server may take what comes for the content")
				})
			})
		}
	}
}

// TestAnswersBeforeTheContent has a server that answers without taking all of the content.
func TestAnswersBeforeTheContent(t *testing.T) {
	script := func(p *peer) {
		p.ask()
		p.say(hello)
		_ = p.Co().Sleep(time.Second)
	}
	for name, call := range map[string]*client.Call{
		"Content":  {Content: make([]byte, 20<<20)},
		"a length": {Length: 20 << 20},
		"chunks":   {Length: -1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, script, func(s *scene, co *coro.Co) {
				call.Origin, call.Method = &client.Origin{Address: at}, "POST"
				if call.Content == nil {
					require.NoError(s, co.Do(call.Begin()))
					_, err := coro.Writer(co, call).Write(make([]byte, 20<<20))
					require.ErrorIs(s, err, client.ErrAnswered)
				}
				s.done(co, call)
				require.Zero(s, call.Origin.Conns(), "the server could take what comes for the rest")
			})
		})
	}
}

// TestUpgrade switches to a protocol in which the server speaks first.
func TestUpgrade(t *testing.T) {
	script := func(p *peer) {
		p.ask()
		p.say("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: X/1, x\n\nearly")
		_, _ = io.Copy(p, p.in)
	}
	play(t, script, func(s *scene, co *coro.Co) {
		call := &client.Call{Origin: &client.Origin{Address: at, MaxConns: 1}, Upgrade: "x"}
		require.NoError(s, co.Do(call))
		answer := call.Response()
		require.Nil(s, call.Response(), "it was taken")
		under := answer.Conn()
		require.Nil(s, answer.Conn(), "it was taken")
		require.Zero(s, call.Origin.Conns())
		require.NoError(s, answer.Close())
		conn := co.Conn(under)
		_, err := io.WriteString(conn, " and late")
		require.NoError(s, err)
		require.NoError(s, conn.CloseWrite())
		all, err := io.ReadAll(conn)
		require.NoError(s, err)
		require.Equal(s, "early and late", string(all))
		require.NoError(s, conn.Close())
	})
}
