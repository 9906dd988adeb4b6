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

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
)

// site2 is a server of net/http that speaks HTTP/2, by prior knowledge or over TLS.
func site2(t *testing.T, secure bool, h http.HandlerFunc) (o *client.Origin, conns *atomic.Int32) {
	s := httptest.NewUnstartedServer(h)
	conns = &atomic.Int32{}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	t.Cleanup(s.Close)
	o = &client.Origin{}
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		o.TLS, o.Host = &tls.Config{RootCAs: roots}, "example.com"
	} else {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		o.Protocol, o.Host = client.HTTP2, "example.com"
	}
	o.Address = s.Listener.Addr().String()
	return o, conns
}

// The same requests and answers as on HTTP/1, all of them on one connection.
func TestCallsOfHTTP2(t *testing.T) {
	for name, secure := range map[string]bool{"prior knowledge": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			o, conns := site2(t, secure, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Trailer", "X-Sum")
				if r.URL.Path == "/long" {
					for range 1000 {
						_, _ = io.WriteString(w, strings.Repeat("x", 1000))
					}
				}
				_, _ = fmt.Fprintf(w, "%s %s %s %s %s", r.Proto, r.Host, r.RequestURI, r.Header.Get("X-Asked"), body)
				w.Header().Set("X-Sum", "9"+r.Trailer.Get("X-Sum"))
			})
			in(t, func(co *coro.Co) error {
				get := &client.Call{Origin: o, Target: "/a?b=c"}
				get.Add("X-Asked", "yes")
				answer, content, err := fetch(co, get)
				require.NoError(t, err)
				require.Equal(t, 200, answer.Status())
				require.Equal(t, "HTTP/2.0 example.com /a?b=c yes ", content)
				require.Equal(t, "9", string(answer.Trailer("X-Sum")))
				require.NoError(t, answer.Close())

				answer, content, err = fetch(co, &client.Call{Origin: o, Method: "POST", Host: "other", Content: []byte("content")})
				require.NoError(t, err)
				require.Equal(t, "HTTP/2.0 other /  content", content)
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
					require.Equal(t, "HTTP/2.0 example.com /  "+strings.Repeat("abc", 1<<20), content)
					require.Equal(t, map[int64]string{-1: "98", 3 << 20: "9"}[length], string(answer.Trailer("X-Sum")))
					require.NoError(t, answer.Close())
				}

				answer, content, err = fetch(co, &client.Call{Origin: o, Target: "/long"})
				require.NoError(t, err)
				require.Equal(t, int64(-1), answer.Length())
				require.Len(t, content, 1000*1000+len("HTTP/2.0 example.com /long  "))
				require.NoError(t, answer.Close())
				return nil
			})
			require.EqualValues(t, 1, conns.Load())
		})
	}
}
