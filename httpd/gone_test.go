package httpd_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// sleeper waits for an hour, and signals when it is closed.
type sleeper struct {
	listener.Sleep
	r      *httpd.Request
	leaves bool // when its client has closed its side
	closed chan<- struct{}
}

func (s *sleeper) Act(t *act.Task) act.Directive {
	if s.leaves && s.r.Ended(t) {
		return act.Done
	}
	return s.Sleep.Act(t)
}

func (s *sleeper) Close() error {
	s.closed <- struct{}{}
	return s.Sleep.Close()
}

// asleep is a connection to a server whose handler returns a sleeper.
func asleep(t *testing.T, leaves bool, request string) (c *net.TCPConn, closed chan struct{}) {
	closed = make(chan struct{}, 1)
	begun := make(chan struct{}, 1)
	at := serve(t, &httpd.Server{Handler: func(_ *httpd.Response, r *httpd.Request) act.Action {
		begun <- struct{}{}
		return &sleeper{listener.Sleep{For: time.Hour}, r, leaves, closed}
	}})
	conn, err := net.Dial("tcp", at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	select {
	case <-begun:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the handler was not asked")
	}
	return conn.(*net.TCPConn), closed
}

func comes(t *testing.T, closed <-chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the action goes on")
	}
}

// A client that has gone was waited for until something was written to it.
func TestAnActionWhoseClientHasGoneIsClosed(t *testing.T) {
	for name, request := range map[string]string{
		"a request":                   get,
		"another that is not read":    get + "\n" + get,
		"a body that is not read yet": "POST / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello",
	} {
		t.Run(name, func(t *testing.T) {
			c, closed := asleep(t, false, raw(request+"\n"))
			require.NoError(t, c.SetLinger(0))
			require.NoError(t, c.Close())
			comes(t, closed)
		})
	}
}

func TestAnActionMayLeaveWhenItsClientClosesItsSide(t *testing.T) {
	c, closed := asleep(t, true, raw(get+"\n"))
	require.NoError(t, c.CloseWrite())
	comes(t, closed)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode, "a client that half-closes gets its answer")

	c, closed = asleep(t, false, raw(get+"\n"))
	require.NoError(t, c.CloseWrite())
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, closed, "an action that does not call Ended goes on")
	require.NoError(t, c.SetLinger(0))
	require.NoError(t, c.Close())
	comes(t, closed)
}
