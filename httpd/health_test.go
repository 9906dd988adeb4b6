package httpd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// A load balancer hears of a shutdown from when it is announced, while everything else goes on.
func TestHealth(t *testing.T) {
	d := newDriver(t)
	site := &httpd.Mux{}
	site.Handle("GET /healthz", httpd.Healthy)
	site.Handle("GET /readyz", httpd.Ready)
	c := d.dial(&httpd.Server{Handler: site.Serve}, listener.Limits{})
	ask := func(path string) string {
		c.send(raw("GET " + path + " HTTP/1.1\nHost: a\n\n"))
		all, err := understand(c.received(), true)
		require.NoError(t, err)
		return statuses(all)
	}
	require.Equal(t, "200", ask("/healthz"))
	require.Equal(t, "200", ask("/readyz"))
	o := shutdown.Policy{Time: time.Minute, Announce: 10 * time.Second, Drop: true}
	d.s.Shutdown(o)
	require.Equal(t, "503", ask("/readyz"))
	require.Equal(t, "200", ask("/healthz"))
	require.True(t, d.s.Group().Withdraw(o))
	require.Equal(t, "200", ask("/readyz"), "it was withdrawn")
	d.s.Shutdown(replaced{})
	require.Equal(t, "200", ask("/readyz"), "another process serves")
	require.True(t, d.s.Group().Withdraw(d.s.Group().Order()))
	d.s.Shutdown(shutdown.Policy{Spread: time.Minute})
	d.dial(&httpd.Server{Handler: late}, listener.Limits{}) // takes the first moment, perhaps
	require.Equal(t, "503!", ask("/readyz"), "in force")
}

// replaced is the order of a process that another one has replaced.
type replaced struct{}

func (replaced) Policy() shutdown.Policy {
	return shutdown.Policy{Time: time.Minute, Announce: 10 * time.Second, Drop: true}
}

func (replaced) Replaced() bool { return true }
