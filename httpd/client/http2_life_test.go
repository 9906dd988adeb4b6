package client_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/listener"
)

// against runs bodies against a server of HTTP/2 whose connections have these scripts, and returns what the server heard. "|" is
// before the first frame of the next connection.
func against(t *testing.T, o *client.Origin, scripts []string, bodies ...func(s *scene, co *coro.Co)) string {
	o.Address, o.Protocol = at, client.HTTP2
	server := &server2{scripts: scripts}
	play(t, server.serve, bodies...)
	return strings.TrimSuffix(strings.Join(server.heard, "; "), "; GOAWAY NO_ERROR") // of the end of the program
}

func TestAnswersThatNobodyWants(t *testing.T) {
	o := &client.Origin{}
	heard := against(t, o, []string{"?HEADERS; HEADERS 1 :status=200; DATA 1 abc; ?RST; DATA 1 abc; DATA 1; HEADERS 1 END x=y; " +
		"?HEADERS; HEADERS 3 END :status=200; ?HEADERS; ?RST; HEADERS 7 END :status=200"}, func(s *scene, co *coro.Co) {
		call := get(o, "/")
		require.NoError(s, co.Do(call))
		require.NoError(s, call.Response().Close())
		require.Equal(s, "200", outcome(co, get(o, "/")), "frames of the stream before mean nothing")
		call = get(o, "/")
		s.sleep(co, time.Second)
		require.NoError(s, co.Do(call.Begin()))
		require.NoError(s, call.Close(), "before the answer")
		require.Equal(s, "200", outcome(co, get(o, "/")))
	})
	require.Equal(t, "HEADERS 1 END; RST 1 CANCEL; HEADERS 3 END; HEADERS 5 END; RST 5 CANCEL; HEADERS 7 END", heard)
}

// The answer comes before the end of the content.
func TestEarlyAnswersOfHTTP2(t *testing.T) {
	o := &client.Origin{}
	heard := against(t, o, []string{"?DATA; HEADERS 1 :status=413; DATA 1 END no; ?HEADERS; HEADERS 3 :status=413; DATA 3 END no; RST 3 NO_ERROR"},
		func(s *scene, co *coro.Co) {
			for i, want := range []error{nil, client.ErrAnswered} {
				call := &client.Call{Origin: o, Method: "PUT", Length: 10}
				require.NoError(s, co.Do(call.Begin()))
				_, err := call.Write([]byte("abc"))
				require.NoError(s, err)
				require.NoError(s, co.Do(call))
				s.sleep(co, time.Second)
				_, err = call.Write([]byte("def"))
				require.ErrorIs(s, err, want, i)
				answer := call.Response()
				content, err := io.ReadAll(coro.Reader(co, answer))
				require.NoError(s, err)
				require.Equal(s, "no", string(content))
				require.NoError(s, answer.Close())
			}
		})
	require.Equal(t, "HEADERS 1; DATA 1 3; DATA 1 3; RST 1 NO_ERROR; HEADERS 3; DATA 3 3", heard)
}

func TestExpectOfHTTP2(t *testing.T) {
	o := &client.Origin{}
	heard := against(t, o, []string{"?HEADERS; PING x; ?PONG; HEADERS 1 :status=100; ?DATA; HEADERS 1 END :status=200; ?HEADERS; HEADERS 3 END :status=417"},
		func(s *scene, co *coro.Co) {
			for _, want := range []string{"100 200", "417"} {
				require.Equal(s, want, outcome(co, &client.Call{Origin: o, Method: "PUT", Content: []byte("abc"), Expect: true}))
			}
		})
	require.Equal(t, "HEADERS 1; PONG; DATA 1 3 END; HEADERS 3; RST 3 NO_ERROR", heard)
}

// A server has the bound of streams and the sizes of windows that it says.
func TestWhatTheServerAllows(t *testing.T) {
	o := &client.Origin{MaxConns: 1}
	later := func(s *scene, co *coro.Co) {
		s.sleep(co, time.Second)
		require.Equal(s, "200", outcome(co, get(o, "/")))
	}
	heard := against(t, o, []string{"SETTINGS 3=1 4=10; ?HEADERS; HEADERS 1 END :status=200; ?HEADERS; PING x; ?PONG; " +
		"HEADERS 3 END :status=200; ?HEADERS; HEADERS 5 END :status=200; ?DATA; PING x; ?PONG; WINDOW 7 5; ?DATA; " +
		"SETTINGS 4=3; PING x; ?PONG; SETTINGS 4=20; ?DATA; HEADERS 7 END :status=200"},
		func(s *scene, co *coro.Co) {
			require.Equal(s, "200", outcome(co, get(o, "/")))
			s.sleep(co, 2*time.Second)
			require.Equal(s, "200", outcome(co, &client.Call{Origin: o, Method: "PUT", Content: make([]byte, 25)}))
		}, later, later)
	require.Equal(t, "HEADERS 1 END; HEADERS 3 END; PONG; HEADERS 5 END; HEADERS 7; DATA 7 10; PONG; DATA 7 5; PONG; DATA 7 10 END", heard)
}

// Content for which the connection has no window is sent in turns.
func TestWritersTakeTurns(t *testing.T) {
	o := &client.Origin{}
	writes := func(s *scene, co *coro.Co, n int) {
		call := &client.Call{Origin: o, Method: "PUT", Length: int64(n)}
		require.NoError(s, co.Do(call.Begin()))
		_, err := coro.Writer(co, call).Write(make([]byte, n))
		require.NoError(s, err)
		require.Equal(s, "200", outcome(co, call))
	}
	const three, five = "WINDOW 0 10000; ?DATA 3; ", "WINDOW 0 10000; ?DATA 5; "
	heard := against(t, o, []string{"SETTINGS 4=1000000; ?END; HEADERS 1 END :status=200; ?HEADERS; ?HEADERS; " + three + five + three + five +
		"WINDOW 0 20000; HEADERS 3 END :status=200; HEADERS 5 END :status=200"},
		func(s *scene, co *coro.Co) {
			writes(s, co, 65535)
			writes(s, co, 30000)
		}, func(s *scene, co *coro.Co) {
			s.sleep(co, time.Second)
			writes(s, co, 30000)
		})
	_, heard, _ = strings.Cut(heard, "HEADERS 5; ")
	require.Equal(t, "DATA 3 10000; DATA 5 10000; DATA 3 10000; DATA 5 10000; DATA 3 10000 END; DATA 5 10000 END", heard)
}

// A response that is not read has no more window, and others go on.
func TestAnswersThatAreNotRead(t *testing.T) {
	o := &client.Origin{}
	heard := against(t, o, []string{"?HEADERS; HEADERS 1 :status=200; 3*DATA 1 16384; DATA 1 16383; ?HEADERS; " +
		"HEADERS 3 :status=200; DATA 3 END abc; ?WINDOW; DATA 1 END 1; ?HEADERS; HEADERS 5 :status=200; 3*DATA 5 16384; DATA 5 16384; ?RST"},
		func(s *scene, co *coro.Co) {
			call := get(o, "/")
			require.NoError(s, co.Do(call))
			s.sleep(co, time.Second)
			require.Equal(s, "200 abc", outcome(co, get(o, "/")))
			answer := call.Response()
			content, err := io.ReadAll(coro.Reader(co, answer))
			require.NoError(s, err)
			require.Len(s, content, 65536)
			require.NoError(s, answer.Close())

			call = get(o, "/")
			require.NoError(s, co.Do(call))
			s.sleep(co, time.Second)
			answer = call.Response()
			_, err = io.ReadAll(coro.Reader(co, answer))
			require.ErrorContains(s, err, "FLOW_CONTROL_ERROR: more DATA than the window of the stream has")
			require.NoError(s, answer.Close())
		})
	require.Equal(t, "HEADERS 1 END; HEADERS 3 END; WINDOW; HEADERS 5 END; RST 5 FLOW_CONTROL_ERROR", heard)
}

func TestConnectionsOfHTTP2ThatGo(t *testing.T) {
	for name, row := range map[string]struct {
		scripts     []string
		post, reuse bool
		gets, hears string
	}{
		"a GOAWAY before the request": {[]string{"?HEADERS; GOAWAY 0 NO_ERROR", "?HEADERS; HEADERS 1 END :status=200"}, true, false, "200",
			"HEADERS 1 END; GOAWAY NO_ERROR; |; HEADERS 1 END"},
		"an end, of a new connection": {[]string{"?HEADERS; EOF"}, false, false, "sent: the connection has ended before the answer", "HEADERS 1 END"},
		"an end, of one that is reused": {[]string{"?HEADERS; EOF", "?HEADERS; HEADERS 1 END :status=200"}, false, true, "200",
			"HEADERS 1 END; HEADERS 3 END; |; HEADERS 1 END"},
		"what must not be repeated": {[]string{"?HEADERS; EOF"}, true, true, "sent: the connection has ended before the answer",
			"HEADERS 1 END; HEADERS 3 END"},
		"one that ends while it is idle": {[]string{"EOF", "?HEADERS; HEADERS 1 END :status=200"}, true, true, "200",
			"HEADERS 1 END; |; HEADERS 1 END"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &client.Origin{}
			if row.reuse {
				row.scripts[0] = "?HEADERS; HEADERS 1 END :status=200; " + row.scripts[0]
			}
			heard := against(t, o, row.scripts, func(s *scene, co *coro.Co) {
				if row.reuse {
					require.Equal(s, "200", outcome(co, get(o, "/")))
					s.sleep(co, time.Second)
				}
				call := get(o, "/")
				if row.post {
					call.Method = "POST"
				}
				require.Equal(s, row.gets, outcome(co, call))
			})
			require.Equal(t, row.hears, heard)
		})
	}
}

// A request is not repeated after Begin: the task that writes gives the Call no turns, so nobody would make a connection.
func TestGOAWAYAfterBegin(t *testing.T) {
	o := &client.Origin{}
	against(t, o, []string{"?HEADERS; GOAWAY 0 NO_ERROR"}, func(s *scene, co *coro.Co) {
		call := &client.Call{Origin: o, Method: "POST", Length: 5}
		require.NoError(s, co.Do(call.Begin()))
		s.sleep(co, time.Second)
		_, err := io.WriteString(coro.Writer(co, call), "hello")
		failure, is := errors.AsType[*client.Error](err)
		require.True(s, is)
		require.False(s, failure.Sent)
		require.NoError(s, call.Close())
	})
}

// GOAWAY leaves the requests that the server has looked at. The others begin anew, whatever their methods.
func TestRequestsThatGOAWAYLeaves(t *testing.T) {
	o := &client.Origin{}
	heard := against(t, o, []string{"?HEADERS; ?HEADERS; GOAWAY 1 NO_ERROR; PING x; ?PONG; HEADERS 1 END :status=200", "?HEADERS; HEADERS 1 END :status=201"},
		func(s *scene, co *coro.Co) { require.Equal(s, "200", outcome(co, get(o, "/"))) },
		func(s *scene, co *coro.Co) {
			s.sleep(co, time.Second)
			require.Equal(s, "201", outcome(co, &client.Call{Origin: o, Method: "POST", Content: []byte("abc")}))
		})
	require.Contains(t, heard, "HEADERS 1 END; HEADERS 3; DATA 3 3 END; ")
	require.Contains(t, heard, "; |; ")
	require.Contains(t, heard, "; HEADERS 1; DATA 1 3 END")
}

// A server that does not answer is asked whether it is there, each time after twice as long.
func TestServersThatAreSilent(t *testing.T) {
	o := &client.Origin{Timeouts: client.Timeouts{Head: -1}}
	heard := against(t, o, []string{"?HEADERS; ?PING; PING ACK; ?PING", "BARE"}, func(s *scene, co *coro.Co) {
		for _, after := range []time.Duration{240 * time.Second, 15 * time.Second} {
			began := co.Scheduler().Now()
			require.Equal(s, "sent: the server is silent", outcome(co, &client.Call{Origin: o, Method: "POST"}))
			require.InDelta(s, after, co.Scheduler().Now()-began, float64(time.Second))
		}
	})
	require.Equal(t, "HEADERS 1 END; PING; PING; |; HEADERS 1 END", heard)
}

func TestIdleConnectionsOfHTTP2(t *testing.T) {
	o := &client.Origin{}
	const script = "?HEADERS; HEADERS 1 END :status=200"
	private := get(o, "/")
	private.Filter = func(*listener.Conn) act.Action { return nil }
	heard := against(t, o, []string{script, script, script}, func(s *scene, co *coro.Co) {
		require.Equal(s, "200", outcome(co, get(o, "/")))
		s.sleep(co, 2*time.Minute)
		require.Zero(s, o.Conns())
		require.Equal(s, "200", outcome(co, private))
		s.sleep(co, time.Second)
		require.Zero(s, o.Conns(), "it was for one Call alone")
		require.Equal(s, "200", outcome(co, get(o, "/")))
		require.Equal(s, 1, o.Conns())
	})
	require.Equal(t, "HEADERS 1 END; GOAWAY NO_ERROR; |; HEADERS 1 END; GOAWAY NO_ERROR; |; HEADERS 1 END", heard)
}
