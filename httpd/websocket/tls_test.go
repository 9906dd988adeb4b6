package websocket_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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

// talker sends messages that grow, and wants each back before the next. Then it closes, if it is not to wait.
type talker struct {
	conn  *websocket.Conn
	n     int
	sent  bool
	waits bool
}

func (k *talker) Act(t *act.Task) act.Directive {
	for {
		if p := bytes.Repeat([]byte{'a' + byte(k.n)}, k.n*k.n*1000); !k.sent && k.n < 12 {
			if err := k.conn.Send(websocket.Binary, p); err != nil {
				return k.conn.Next(t, err)
			}
			k.sent = true
		} else if k.n == 12 && !k.waits {
			k.conn.Close(4000+k.n, "enough")
		}
		m, err := k.conn.Receive()
		if err != nil {
			return k.conn.Next(t, err)
		}
		if len(m.Data) != k.n*k.n*1000 || bytes.Count(m.Data, []byte{'a' + byte(k.n)}) != len(m.Data) {
			return t.Fail(fmt.Errorf("%d bytes came back as another %d", k.n*k.n*1000, len(m.Data)))
		}
		k.n, k.sent = k.n+1, false
	}
}

// Clients and servers of this package talk to each other on the same schedulers, with TLS and without.
func TestClientsAndServers(t *testing.T) {
	cert, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	for scheme, filters := range map[string][2][]listener.Filter{
		"ws": {},
		"wss": {{secure.Server(&tls.Config{Certificates: []tls.Certificate{cert}}, nil)},
			{secure.Client(&tls.Config{RootCAs: roots, ServerName: "localhost"}, nil)}},
	} {
		t.Run(scheme, func(t *testing.T) {
			const clients = 10
			ended := make(chan error, clients)
			v := &websocket.Server{Handler: func(c *websocket.Conn, r *httpd.Request) act.Action {
				var err error
				a := echo(&err)(c, r)
				return act.Func(func(t *act.Task) act.Directive {
					d := a.Act(t)
					if d.Finished() {
						ended <- err
					}
					return d
				})
			}}
			socket := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: v.Serve}).Serve, Filters: filters[0]}
			s := servertest.Start(t, act.Config{Schedulers: 2}, socket.Setup)
			for i := range clients {
				c := &websocket.Client{URL: scheme + "://" + socket.Addr().String() + "/", Filters: filters[1],
					Handler: func(c *websocket.Conn) act.Action { return &talker{conn: c, waits: i%2 > 0} }}
				s.Group.Schedulers()[i/2%2].Post(func(s *act.Scheduler) { s.Spawn(c.Dial()) })
			}
			for range clients / 2 {
				require.EqualError(t, servertest.Receive(t, ended), `websocket: closed with code 4012: "enough"`)
			}
			s.Group.Shutdown(servertest.Drain)
			for range clients / 2 {
				if err := servertest.Receive(t, ended); !errors.Is(err, net.ErrClosed) { // one of both sides was first
					require.EqualError(t, err, "websocket: closed with code 1001")
				}
			}
			require.NoError(t, s.End())
			require.Empty(t, s.Logs.FilterMessage("a task failed").All())
		})
	}
}
