package websocket_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// The rules once more, on schedulers of their own, with TLS and without. What a client says comes whole.
func TestRulesOverTLS(t *testing.T) {
	cert, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	for name, filters := range map[string][]listener.Filter{
		"ws":  nil,
		"wss": {secure.Server(&tls.Config{Certificates: []tls.Certificate{cert}}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{MaxMessage: 1000}}
			socket := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: v.Serve}).Serve, Filters: filters}
			s := servertest.Start(t, act.Config{Schedulers: 2}, socket.Setup)
			dial := func() net.Conn {
				c := servertest.Dial(t, socket.Addr())
				if filters != nil {
					c = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "localhost"})
				}
				require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
				_, err := io.WriteString(c, handshake+"\r\n")
				require.NoError(t, err)
				head := ""
				for b := []byte{0}; !strings.HasSuffix(head, "\r\n\r\n"); head += string(b) {
					_, err := c.Read(b)
					require.NoError(t, err)
				}
				return c
			}
			for _, row := range rules {
				c := dial()
				_, err := io.WriteString(c, row.says)
				require.NoError(t, err)
				var told []string
				for {
					f, err := readFrame(c)
					if err == io.EOF {
						break
					}
					require.NoError(t, err, row.name)
					told = append(told, f)
				}
				require.Equal(t, row.told, strings.Join(told, ", "), row.name)
				require.NoError(t, c.Close())
			}
			idle := dial()
			s.Group.Shutdown(servertest.Drain)
			f, err := readFrame(idle)
			require.NoError(t, err)
			require.Equal(t, `close 1001 ""`, f)
			_, err = io.WriteString(idle, bye(1001, ""))
			require.NoError(t, err)
			_, err = readFrame(idle)
			require.Equal(t, io.EOF, err)
			require.NoError(t, idle.Close())
			require.NoError(t, s.End())
			require.Empty(t, s.Logs.FilterMessage("a task failed").All())
		})
	}
}
