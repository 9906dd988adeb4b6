package client_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// site is a server of net/http, which counts its connections.
func site(t *testing.T, h http.HandlerFunc) (o *client.Origin, conns *atomic.Int32) {
	s := httptest.NewUnstartedServer(h)
	conns = &atomic.Int32{}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return &client.Origin{Address: s.Listener.Addr().String()}, conns
}

// in runs f as a coroutine on a scheduler.
func in(t *testing.T, f func(co *coro.Co) error) {
	t.Helper()
	r := servertest.Start(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Spawn(coro.New(f))
		return nil
	})
	require.NoError(t, r.End())
}

// fetch makes a Call, and returns the answer with all of its content.
func fetch(co *coro.Co, call *client.Call) (answer *client.Response, content string, err error) {
	if err := co.Do(call); err != nil {
		return nil, "", err
	}
	answer = call.Response()
	all, err := io.ReadAll(coro.Reader(co, answer))
	return answer, string(all), err
}

func TestCalls(t *testing.T) {
	o, conns := site(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Method", r.Method)
		w.Header().Set("Trailer", "X-Sum")
		if r.URL.Path == "/long" {
			for range 1000 {
				_, _ = io.WriteString(w, strings.Repeat("x", 1000))
			}
		}
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Host, r.RequestURI, r.Header.Get("X-Asked"), body)
		w.Header().Set("X-Sum", "9")
	})
	in(t, func(co *coro.Co) error {
		get := &client.Call{Origin: o, Target: "/a?b=c"}
		get.Add("X-Asked", "yes")
		answer, content, err := fetch(co, get)
		require.NoError(t, err)
		require.Equal(t, 200, answer.Status())
		require.Equal(t, "GET", string(answer.Header("x-method")))
		require.Equal(t, o.Address+" /a?b=c yes ", content)
		require.Equal(t, "9", string(answer.Trailer("X-Sum")))
		require.NoError(t, answer.Close())

		answer, content, err = fetch(co, &client.Call{Origin: o, Method: "POST", Host: "other", Content: []byte("content")})
		require.NoError(t, err)
		require.Equal(t, "other /  content", content)
		require.NoError(t, answer.Close())

		answer, content, err = fetch(co, &client.Call{Origin: o, Method: "HEAD"})
		require.NoError(t, err)
		require.Empty(t, content)
		require.NoError(t, answer.Close())

		for _, length := range []int64{-1, 3 << 20} {
			put := &client.Call{Origin: o, Method: "PUT", Length: length}
			require.NoError(t, co.Do(put.Begin()))
			_, err = io.Copy(coro.Writer(co, put), strings.NewReader(strings.Repeat("abc", 1<<20)))
			require.NoError(t, err)
			require.NoError(t, put.End())
			answer, content, err = fetch(co, put)
			require.NoError(t, err)
			require.Equal(t, o.Address+" /  "+strings.Repeat("abc", 1<<20), content)
			require.NoError(t, answer.Close())
		}

		answer, content, err = fetch(co, &client.Call{Origin: o, Target: "/long"})
		require.NoError(t, err)
		require.Equal(t, int64(-1), answer.Length())
		require.Len(t, content, 1000*1000+len(o.Address)+len(" /long  "))
		require.NoError(t, answer.Close())
		return nil
	})
	require.Equal(t, int32(1), conns.Load())
}
