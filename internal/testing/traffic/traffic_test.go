package traffic_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/traffic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	fault = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno"
)

// serve answers the requests of each connection with these answers, and then closes its side.
func serve(t *testing.T, answers ...string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for _, text := range answers {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
				}
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, in)
			})
		}
	})
	return l.Addr().String()
}

func TestFailuresAreSeen(t *testing.T) {
	for _, row := range []struct {
		name    string
		client  traffic.Client
		answers []string
		kind    traffic.Kind
	}{
		{"no answer", traffic.Client{}, nil, traffic.Reset},
		{"no answer on a fresh connection", traffic.Client{Fresh: true}, nil, traffic.Reset},
		{"no second answer", traffic.Client{}, []string{whole, ""}, traffic.Race},
		{"a part of a head", traffic.Client{}, []string{whole[:9]}, traffic.Cut},
		{"a part of a body", traffic.Client{}, []string{whole, whole[:len(whole)-1]}, traffic.Cut},
		{"another status", traffic.Client{}, []string{fault}, traffic.Wrong},
		{"an empty body", traffic.Client{}, []string{empty}, traffic.Wrong},
		{"a handshake without an answer", traffic.Client{WebSocket: true}, nil, traffic.Reset},
		{"a handshake with another answer", traffic.Client{WebSocket: true}, []string{whole}, traffic.Wrong},
		{"no echo", traffic.Client{WebSocket: true}, []string{"HTTP/1.1 101 Switching Protocols\r\n\r\n"}, traffic.Cut},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.client.Path = "/"
			l := &traffic.Load{Addr: serve(t, row.answers...)}
			begun := time.Now()
			end := l.Start(row.client)
			require.Eventually(t, func() bool { return len(l.Failures()) > 0 }, traffic.Patience, time.Millisecond)
			end()
			for _, f := range l.Failures() {
				require.Equal(t, row.kind, f.Kind, f)
				require.False(t, f.Since.Before(begun))
			}
		})
	}
}
