package service_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// What was broken: after a reset getpeername(2) fails, and the line named no peer.
func TestTheLineAboutAResetNamesThePeer(t *testing.T) {
	web := &httpd.Server{Handler: func(*httpd.Response, *httpd.Request) act.Action { return nil }}
	for name, handler := range map[string]func(*listener.Conn) act.Action{"of a Conn": echo, "of HTTP": web.Serve} {
		t.Run(name, func(t *testing.T) {
			v := &service.TCP{Address: loopback, Handler: handler}
			w := begin(t, act.Config{Schedulers: 1}, v.Setup)
			c := servertest.Dial(t, v.Addr())
			servertest.Send(t, c, "GET /")
			eventually(t, "it is accepted", func() bool { return v.Open() == 1 })
			servertest.Reset(t, c)
			eventually(t, "the connection is gone", func() bool { return v.Open() == 0 })
			require.NoError(t, w.order(servertest.Drain))
			lines := w.Logs.FilterMessage("a peer has gone").All()
			require.Len(t, lines, 1)
			require.Equal(t, c.LocalAddr().String(), lines[0].ContextMap()["peer"])
		})
	}
}
