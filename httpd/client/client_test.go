package client_test

import (
	"crypto/tls"
	"crypto/x509"
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
	return siteOf(t, plain, h)
}

// How a site is spoken to.
const (
	plain  = "HTTP/1.1"
	prior  = "HTTP/2 by prior knowledge"
	secret = "HTTP/2 over TLS"
)

func siteOf(t *testing.T, how string, h http.HandlerFunc) (o *client.Origin, conns *atomic.Int32) {
	s := httptest.NewUnstartedServer(h)
	conns = &atomic.Int32{}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	t.Cleanup(s.Close)
	o = &client.Origin{}
	switch how {
	case secret:
		s.EnableHTTP2 = true
		s.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		o.TLS, o.Host = &tls.Config{RootCAs: roots}, "example.com"
	case prior:
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		o.Protocol, o.Host = client.HTTP2, "example.com"
	default:
		s.Start()
	}
	o.Address = s.Listener.Addr().String()
	return o, conns
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

// The same requests and answers in each version, all of them on one connection.
func TestCalls(t *testing.T) {
	for _, how := range []string{plain, prior, secret} {
		t.Run(how, func(t *testing.T) {
			o, conns := siteOf(t, how, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("X-Method", r.Method)
				w.Header().Set("Trailer", "X-Sum")
				if r.URL.Path == "/long" {
					for range 1000 {
						_, _ = io.WriteString(w, strings.Repeat("x", 1000))
					}
				}
				_, _ = fmt.Fprintf(w, "%s %s %s %s %s", r.Proto, r.Host, r.RequestURI, r.Header.Get("X-Asked"), body)
				w.Header().Set("X-Sum", "9"+r.Trailer.Get("X-Sum"))
			})
			proto, from := "HTTP/2.0 ", "HTTP/2.0 example.com"
			if how == plain {
				proto, from = "HTTP/1.1 ", "HTTP/1.1 "+o.Address
			}
			in(t, func(co *coro.Co) error {
				get := &client.Call{Origin: o, Target: "/a?b=c"}
				get.Add("X-Asked", "yes")
				answer, content, err := fetch(co, get)
				require.NoError(t, err)
				require.Equal(t, 200, answer.Status())
				require.Equal(t, "GET", string(answer.Header("x-method")))
				require.Equal(t, from+" /a?b=c yes ", content)
				require.Equal(t, "9", string(answer.Trailer("X-Sum")))
				require.NoError(t, answer.Close())

				answer, content, err = fetch(co, &client.Call{Origin: o, Method: "POST", Host: "other", Content: []byte("content")})
				require.NoError(t, err)
				require.Equal(t, proto+"other /  content", content)
				require.NoError(t, answer.Close())

				answer, content, err = fetch(co, &client.Call{Origin: o, Method: "HEAD"})
				require.NoError(t, err)
				require.Empty(t, content)
				require.NoError(t, answer.Close())

				for _, length := range []int64{-1, 3 << 20} {
					put := &client.Call{Origin: o, Method: "PUT", Length: length}
					put.Add("Trailer", "X-Sum")
					require.NoError(t, co.Do(put.Begin()))
					_, err = io.Copy(coro.Writer(co, put), strings.NewReader(strings.Repeat("abc", 1<<20)))
					require.NoError(t, err)
					require.NoError(t, put.End("X-Sum", "8"))
					answer, content, err = fetch(co, put)
					require.NoError(t, err)
					require.Equal(t, from+" /  "+strings.Repeat("abc", 1<<20), content)
					require.Equal(t, map[int64]string{-1: "98", 3 << 20: "9"}[length], string(answer.Trailer("X-Sum")))
					require.NoError(t, answer.Close())
				}

				answer, content, err = fetch(co, &client.Call{Origin: o, Target: "/long"})
				require.NoError(t, err)
				require.Equal(t, int64(-1), answer.Length())
				require.Len(t, content, 1000*1000+len(from)+len(" /long  "))
				require.NoError(t, answer.Close())
				return nil
			})
			require.EqualValues(t, 1, conns.Load())
		})
	}
}
