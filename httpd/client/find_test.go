package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
)

func TestAClientFindsTheOriginsOfURLs(t *testing.T) {
	c := &client.Client{}
	find := func(scheme, host string) *client.Origin {
		o, err := c.Origin(scheme, host)
		require.NoError(t, err)
		return o
	}
	for _, row := range []struct{ scheme, host, address, name string }{
		{"http", "a.example", "a.example:80", "a.example"},
		{"HTTP", "A.example:80", "a.example:80", "a.example"},
		{"http", "a.example:", "a.example:80", "a.example"},
		{"https", "a.example", "a.example:443", "a.example"},
		{"https", "a.example:80", "a.example:80", "a.example:80"},
		{"http", "[::1]", "[::1]:80", "[::1]"},
		{"http", "[::1]:8080", "[::1]:8080", "[::1]:8080"},
	} {
		o := find(row.scheme, row.host)
		require.Equal(t, row.address, o.Address)
		require.Equal(t, row.name, o.Host)
		require.Equal(t, row.scheme == "https", o.TLS != nil)
	}
	require.Same(t, find("http", "a.example"), find("HTTP", "A.EXAMPLE:80"))
	require.NotSame(t, find("http", "a.example:443"), find("https", "a.example"))
	for _, bad := range [][2]string{{"ftp", "a.example"}, {"http", ""}, {"http", "a b"}} {
		_, err := c.Origin(bad[0], bad[1])
		require.Error(t, err, bad)
	}
}

// The Origin that has to make room is one without connections, even if it was asked for later.
func TestAClientForgetsOriginsBeyondItsBound(t *testing.T) {
	o, conns := site(t, func(http.ResponseWriter, *http.Request) {})
	c := &client.Client{MaxOrigins: 2, Prepare: func(made *client.Origin) { made.Address = o.Address }}
	in(t, func(co *coro.Co) error {
		find := func(host string) *client.Origin {
			o, err := c.Origin("http", host)
			require.NoError(t, err)
			return o
		}
		used, other := find("used"), find("other")
		call := &client.Call{Origin: used}
		require.NoError(t, co.Do(call))
		require.NoError(t, call.Response().Close())
		find("third")
		require.Same(t, used, find("used"))
		require.NotSame(t, other, find("other"))
		require.ErrorContains(t, co.Do(&client.Call{Origin: other}), "closed")
		return nil
	})
	require.Equal(t, int32(1), conns.Load())
}
