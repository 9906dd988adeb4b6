package monitor_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
)

// book is a Resolver that counts.
type book struct {
	asked []string
	err   error
	wait  chan struct{} // nil: it answers at once
}

func (b *book) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	b.asked = append(b.asked, host)
	if b.wait != nil {
		select {
		case <-b.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(len(b.asked))})}, nil
}

// cached returns a cache before b, on a clock that stands still.
func cached(t *testing.T, n *monitor.NameCache, b *book) (monitor.Resolver, *servertest.Clock) {
	clock := &servertest.Clock{}
	s := act.New(act.Config{Clock: clock})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	monitor.SetResolver(s, b)
	require.NoError(t, n.Setup(s))
	require.NoError(t, n.Setup(s), "another Run calls it again")
	return monitor.ResolverOf(s), clock
}

// look requires that the nth lookup of b has the answer for host.
func look(t *testing.T, r monitor.Resolver, host string, nth byte) {
	t.Helper()
	ips, err := r.LookupNetIP(t.Context(), "ip", host)
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, nth})}, ips)
	ips[0] = netip.Addr{} // it is the caller's own
}

func TestANameIsKeptForAWhile(t *testing.T) {
	for keep, most := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Minute: time.Minute, -1: 0} {
		r, clock := cached(t, &monitor.NameCache{Keep: keep}, &book{})
		look(t, r, "a.example", 1)
		if keep >= 0 {
			clock.Pass(most - 1)
			look(t, r, "A.example", 1)
			clock.Pass(1)
		}
		look(t, r, "a.example", 2)
	}
}

func TestAFailureIsKeptForASecond(t *testing.T) {
	b := &book{err: errors.New("no such host")}
	r, clock := cached(t, &monitor.NameCache{}, b)
	for _, pass := range []time.Duration{0, time.Second - 1} {
		clock.Pass(pass)
		_, err := r.LookupNetIP(t.Context(), "ip", "a")
		require.Equal(t, b.err, err)
		require.Len(t, b.asked, 1)
	}
	clock.Pass(1)
	b.err = nil
	look(t, r, "a", 2)
}

func TestTheNameThatCameFirstGoes(t *testing.T) {
	r, _ := cached(t, &monitor.NameCache{Most: 2}, &book{})
	for i, host := range []string{"a", "b", "c"} {
		look(t, r, host, byte(i+1))
	}
	look(t, r, "b", 2)
	look(t, r, "c", 3)
	look(t, r, "a", 4)
}

// Of three that ask at the same time, the first begins the lookup and gives up. The second one begins it again, and the
// third shares its answer.
func TestThoseThatAskAtOnceShareALookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{wait: make(chan struct{})}
		r, _ := cached(t, &monitor.NameCache{}, b)
		first, cancel := context.WithCancel(t.Context())
		given := make(chan error)
		go func() {
			_, err := r.LookupNetIP(first, "ip", "a")
			given <- err
		}()
		synctest.Wait()
		answers := make(chan netip.Addr)
		for range 2 {
			go func() {
				ips, _ := r.LookupNetIP(t.Context(), "ip", "a")
				answers <- ips[0]
			}()
		}
		synctest.Wait()
		require.Len(t, b.asked, 1)
		cancel()
		require.Equal(t, context.Canceled, <-given)
		synctest.Wait()
		require.Len(t, b.asked, 2)
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.LookupNetIP(impatient, "ip", "a")
		require.Equal(t, context.Canceled, err, "it does not wait for the others")
		close(b.wait)
		require.Equal(t, <-answers, <-answers)
		require.Len(t, b.asked, 2)
	})
}
