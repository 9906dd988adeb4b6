package secure_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/secure"
)

// resumed makes a handshake of crypto/tls, and reports whether it goes on with a session of client.
func resumed(t *testing.T, server, client *tls.Config) bool {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		c := tls.Server(far, server)
		_, _ = c.Write([]byte("with it comes a ticket"))
		_ = c.Close()
	}()
	c := tls.Client(near, client)
	_, err := io.ReadAll(c)
	require.NoError(t, err)
	_ = near.Close()
	return c.ConnectionState().DidResume
}

// remembering returns cfg for one version, with a memory for sessions.
func remembering(cfg *tls.Config, v uint16) *tls.Config {
	cfg = version(cfg, v)
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(10)
	return cfg
}

// A session can be resumed for seven days: on the eighth its key has gone. The keys go along with an upgrade, at any age, and go on
// to be replaced. Another program has its own.
func TestTicketsAreGoodForSevenDays(t *testing.T) {
	base, client := identities(t)
	clock := &servertest.Clock{}
	begin := func(x *secure.Tickets) *servertest.Stepped {
		l := servertest.New(t, act.Config{Clock: clock})
		require.NoError(t, x.Setup(l.S))
		l.S.Install(demon.Stay())
		servertest.Step(t, l.S)
		return l
	}
	config := func() *tls.Config { return &tls.Config{Certificates: base.Certificates} }
	for _, v := range versions {
		old, next, other := &secure.Tickets{Config: config()}, &secure.Tickets{Config: config()}, &secure.Tickets{Config: config()}
		l := begin(old)
		begin(other)
		var visitors []*tls.Config // one of each day
		for day := range 10 {
			if day == 3 {
				state, err := old.SaveState(t.Context())
				require.NoError(t, err)
				require.Len(t, state, 32*4, "a key of each day")
				require.Equal(t, old.StateName(), next.StateName())
				l, old = begin(next), next
				require.NoError(t, next.LoadState(state))
			}
			for since, visitor := range visitors {
				kept := visitor.Clone() // the visit is to leave no ticket
				kept.ClientSessionCache = once{visitor.ClientSessionCache}
				require.False(t, resumed(t, other.Config, kept))
				require.Equal(t, day-since < 7, resumed(t, old.Config, kept), "%d days later, %s", day-since, tls.VersionName(v))
			}
			visitor := remembering(client, v)
			require.False(t, resumed(t, old.Config, visitor))
			visitors = append(visitors, visitor)
			clock.Pass(24 * time.Hour)
			servertest.Step(t, l.S)
		}
	}
}

// once is a memory that keeps what it has.
type once struct{ tls.ClientSessionCache }

func (once) Put(string, *tls.ClientSessionState) {}

func TestTicketsOfAnotherLengthAreRefused(t *testing.T) {
	for _, n := range []int{31, 33, 8 * 32} {
		require.ErrorContains(t, (&secure.Tickets{Config: &tls.Config{}}).LoadState(make([]byte, n)), "not 1 to 7 times 32")
	}
}
