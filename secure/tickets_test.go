package secure_test

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// The second server has the keys of the first, as after an upgrade; the third has its own.
func TestTicketsArePassedOn(t *testing.T) {
	base, client := identities(t)
	var all []*serving
	var first *secure.Tickets
	for i := range 3 {
		cfg := &tls.Config{Certificates: base.Certificates}
		tickets := &secure.Tickets{Config: cfg}
		if i == 1 {
			state, err := first.SaveState()
			require.NoError(t, err)
			require.Len(t, state, 32)
			require.NoError(t, tickets.LoadState(state))
			require.Equal(t, first.StateName(), tickets.StateName())
		}
		all = append(all, serveOn(t, 1, &service.TCP{Handler: resumes, Filters: []listener.Filter{secure.Server(cfg, nil)}}, tickets.Setup))
		if i == 0 {
			first = tickets
		}
	}
	for _, v := range versions {
		cfg := remembering(client, v)
		for i, resumed := range []bool{false, true, false} {
			_, did := all[i].visit(cfg)
			require.Equal(t, resumed, did, "server %d, %s", i, tls.VersionName(v))
		}
	}
	for _, s := range all {
		s.drain()
	}
}

func TestTicketsOfAnotherLengthAreRefused(t *testing.T) {
	for _, n := range []int{31, 33, 8 * 32} {
		require.ErrorContains(t, (&secure.Tickets{Config: &tls.Config{}}).LoadState(make([]byte, n)), "not 1 to 7 times 32")
	}
}
