package httpd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// The connection goes on after a request that is refused, with a body or without.
func TestLimited(t *testing.T) {
	d := newDriver(t)
	waits := []time.Duration{0, 1, time.Second + 1, 0}
	take := func(*listener.Conn) (wait time.Duration) {
		wait, waits = waits[0], waits[1:]
		return wait
	}
	c := d.dial(&httpd.Server{Handler: httpd.Limited(take, hello)}, listener.Limits{})
	c.send(raw(get + "\n" + get + "\n" + post + "Content-Length: 5\n\nhello" + get + "\n"))
	all, err := understand(c.received(), true)
	require.NoError(t, err)
	require.Equal(t, "200 429 429 200", statuses(all))
	require.Equal(t, "1", all[1].get("Retry-After"))
	require.Equal(t, "2", all[2].get("Retry-After"))
	require.Panics(t, func() { httpd.Limited(nil, hello) })
	require.Panics(t, func() { httpd.Limited(take, nil) })
}
