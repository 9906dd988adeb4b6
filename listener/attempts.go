package listener

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/monitor"
)

// The attempts of a Connect are attemptDelay apart, as RFC 8305, section 8, recommends. At most mostAttempts are under
// way: a resolver may return any number of addresses, and each attempt has a descriptor.
const (
	attemptDelay = 250 * time.Millisecond
	mostAttempts = 16
)

// attempts connect to one of several addresses by the rules of RFC 8305, section 5. An attempt begins attemptDelay
// after the previous one, or as soon as one has failed. The first that connects wins, and the others are closed.
type attempts struct {
	engine   engine.Engine
	options  engine.ConnOptions
	rest     []net.Addr // for which no attempt has begun
	pending  []attempt  // in the order in which they began
	failures []error
	named    bool   // the failures name their addresses
	failed   bool   // an attempt has failed since the last one began, so the next one begins at once
	delay    *Sleep // between the last attempt and the next one, if there is one
	first    [1]attempt
}

// attempt is one that is under way.
type attempt struct {
	to   net.Addr
	conn engine.PendingConn
}

// stream returns the connection, or ErrWouldBlock: t is then woken when there is more to do. Any other error is final,
// and joins the errors of all attempts.
func (a *attempts) stream(t *act.Task) (monitor.Stream, error) {
	for {
		if stream := a.winner(); stream != nil {
			a.close()
			return stream, nil
		}
		if !a.begin(t) {
			break
		}
	}
	if len(a.pending) == 0 {
		return nil, failures(a.failures)
	}
	for _, p := range a.pending {
		p.conn.Await(t.Waker())
	}
	return nil, monitor.ErrWouldBlock
}

// winner takes the stream of the earliest attempt that has succeeded, if there is one, and removes failed attempts.
func (a *attempts) winner() monitor.Stream {
	for i := 0; i < len(a.pending); {
		p := a.pending[i]
		stream, err := p.conn.Stream()
		if err == monitor.ErrWouldBlock {
			i++
			continue
		}
		a.pending = slices.Delete(a.pending, i, i+1)
		if err == nil {
			return stream
		}
		a.fail(p.to, err)
	}
	return nil
}

// begin begins the next attempt, if its time has come, and reports whether it did.
func (a *attempts) begin(t *act.Task) bool {
	if len(a.rest) == 0 || len(a.pending) == mostAttempts {
		return false
	}
	if len(a.pending) > 0 && !a.failed && a.delay.Act(t) != act.Done {
		return false
	}
	to := a.rest[0]
	a.stopDelay()
	if a.rest, a.failed = a.rest[1:], false; len(a.rest) > 0 {
		a.delay = &Sleep{For: attemptDelay}
	}
	conn, err := a.engine.Dial(to, a.options)
	if err != nil {
		a.fail(to, err)
		return true
	}
	if a.pending == nil {
		a.pending = a.first[:0] // of a single address nothing is allocated
	}
	a.pending = append(a.pending, attempt{to, conn})
	return true
}

func (a *attempts) fail(to net.Addr, err error) {
	if a.named {
		err = &net.OpError{Op: "dial", Net: to.Network(), Addr: to, Err: err}
	}
	a.failures, a.failed = append(a.failures, err), true
}

func (a *attempts) stopDelay() {
	if a.delay != nil {
		_ = a.delay.Close()
	}
}

// close gives up all attempts.
func (a *attempts) close() {
	a.stopDelay()
	for _, p := range a.pending {
		p.conn.Close()
	}
	a.pending, a.rest = nil, nil
}

// inTurn orders the addresses of a name as RFC 8305, section 4, does: IPv4 and IPv6 in turn, beginning with the family of
// the first one. Within each family they keep their order.
func inTurn(ips []netip.Addr) []netip.Addr {
	ordered := make([]netip.Addr, len(ips))
	for i, ip := range ips {
		ordered[i] = ip.Unmap()
	}
	for i := 1; i < len(ordered); i++ {
		other := func(ip netip.Addr) bool { return ip.Is4() != ordered[i-1].Is4() }
		if j := slices.IndexFunc(ordered[i:], other); j > 0 {
			next := ordered[i+j]
			copy(ordered[i+1:], ordered[i:i+j])
			ordered[i] = next
		}
	}
	return ordered
}

// failures are the errors of all attempts, in one line.
type failures []error

func (all failures) Error() string {
	return strings.ReplaceAll(errors.Join(all...).Error(), "\n", "; ")
}

func (all failures) Unwrap() []error { return all }
