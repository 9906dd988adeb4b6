package listener

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Query is an action that sends a request in a datagram and waits for the answer, as a client of DNS, STUN or SNTP does. When there
// is none in time it sends the request again. When it is Done, Answer returns the answer.
type Query struct {
	// Address is that of the server: "host:port". A name is looked up as by [Connect]; its addresses are tried in turn.
	Address string
	// Request is sent in one packet. It must not be changed until Query has ended.
	Request []byte
	// Accept reports whether a packet is the answer, and not one to another question or a forgery; nil means that the first
	// packet is. The bytes are lent for the call.
	Accept func(answer []byte) bool
	// Tries is how often the request is sent at most; 0 means 3. Wait is how long the first is waited for; 0 means 1 s. Each
	// further one is waited for twice as long, so the default is 7 s in all.
	Tries int
	Wait  time.Duration
	// Options has the options of the socket.
	Options PacketOptions

	lookup *act.Call[[]net.Addr]
	cancel context.CancelFunc // of the lookup
	to     []net.Addr
	peer   *Peer
	tried  int
	timer  act.Timer
	until  time.Duration // when the present try is over
	last   error         // why the latest one was in vain
	answer []byte
}

// Act returns Done when the answer has come. It fails with a *net.OpError that wraps os.ErrDeadlineExceeded if there was none, and
// the error of the kernel if the last try has one, such as ECONNREFUSED.
func (q *Query) Act(t *act.Task) act.Directive {
	if q.to == nil {
		if d := q.resolve(t); q.to == nil {
			return d
		}
	}
	for {
		err := net.ErrClosed // before the first try
		if q.peer != nil {
			err = q.receive()
		}
		blocked, is := err.(act.Blocked)
		switch {
		case err == nil:
			_ = q.Close()
			return act.Done
		case is && t.Scheduler().Now() < q.until:
			t.WakeAt(&q.timer, q.until)
			blocked.Arm(t)
			return act.Wait
		case !q.next(t):
			_ = q.Close()
			return t.Fail(q.failed(q.last))
		}
	}
}

// resolve finds the addresses: see Connect.
func (q *Query) resolve(t *act.Task) act.Directive {
	if at, err := netip.ParseAddrPort(q.Address); err == nil {
		q.to = []net.Addr{net.UDPAddrFromAddrPort(at)}
		return act.Done
	}
	if q.lookup == nil {
		q.lookup, q.cancel = newLookup(t, "udp", q.Address)
	}
	d := q.lookup.Act(t)
	switch d {
	case act.Done:
		q.to = q.lookup.Value
	case act.Failed:
		return t.Fail(q.failed(t.Err()))
	}
	return d
}

// receive takes packets until one is the answer.
func (q *Query) receive() error {
	for {
		in, err := q.peer.Receive()
		switch _, blocked := err.(act.Blocked); {
		case err == nil && (q.Accept == nil || q.Accept(in.Data)):
			q.answer = bytes.Clone(in.Data)
			return nil
		case blocked:
			return err
		case err != nil:
			q.last = err
			return err
		}
	}
}

// next begins the next try, and reports whether there is one.
func (q *Query) next(t *act.Task) bool {
	most := cmp.Or(q.Tries, 3)
	for ; q.tried < most; q.tried++ {
		if q.peer != nil {
			_ = q.peer.Close()
		}
		if q.peer, q.last = DialPackets(t.Scheduler(), q.to[q.tried%len(q.to)], q.Options); q.last != nil {
			q.peer = nil
			continue
		}
		if q.last = q.peer.Send(q.Request); q.last == nil {
			q.until = t.Scheduler().Now() + cmp.Or(q.Wait, time.Second)<<min(q.tried, 16)
			q.last = os.ErrDeadlineExceeded
			q.tried++
			return true
		}
	}
	return false
}

func (q *Query) failed(err error) error {
	return &net.OpError{Op: "query", Net: "udp", Addr: target{"udp", q.Address}, Err: err}
}

// Answer returns the answer once Query is Done. The caller owns it.
func (q *Query) Answer() []byte { return q.answer }

// Describe implements [act.Describer]: it names what the task waits for.
func (q *Query) Describe(d *act.Description) {
	if q.to == nil {
		d.WaitsFor("a lookup of " + q.Address)
		return
	}
	d.WaitsFor("an answer from " + q.Address)
}

// Close gives up a Query that has not finished, and closes its socket.
func (q *Query) Close() error {
	q.timer.Stop()
	if q.cancel != nil {
		q.cancel()
	}
	if q.lookup != nil {
		_ = q.lookup.Close()
	}
	if q.peer != nil {
		_ = q.peer.Close()
		q.peer = nil
	}
	return nil
}
