package main

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// Clients half-close after what they say, and read until the end.
func TestAnswers(t *testing.T) {
	server := &service.Listener{Address: "127.0.0.1:0", Handler: hello}
	r := servertest.Start(t, act.Config{Schedulers: 1}, server.Setup)
	for name, row := range map[string]struct{ says, hears string }{
		"half a request":       {"GET / HTTP/1.1\r\nHost:", ""},
		"many requests":        {"\r\n\r\n" + strings.Repeat("GET / HTTP/1.1\r\nHost: x\n\n", 1000), strings.Repeat(answer, 1000)},
		"one that is the last": {"GET / HTTP/1.1\r\nconnection: CLOSE\r\n\r\nGET / HTTP/1.1\r\n\r\n", farewell},
		"HTTP/1.0":             {"GET / HTTP/1.0\r\n\r\n", farewell},
		"a body":               {"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", farewell},
		"a long line":          {"GET /" + strings.Repeat("x", 9000) + " HTTP/1.1\r\n\r\n", tooLarge},
		"many fields":          {"GET / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 2000) + "\r\n", tooLarge},
		"blank lines":          {strings.Repeat("\r\n", 5000), tooLarge},
	} {
		c := servertest.Dial(t, server.Addr())
		servertest.Send(t, c, row.says)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, row.hears, string(got), name)
		require.NoError(t, c.Close())
	}
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
}
