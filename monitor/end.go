package monitor

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/netpoll"
)

// AwaitEnd shares the place of AwaitInput, and a bit says which of the two it is.
func (k *socket) AwaitEnd(w act.Waker) (half bool, err error) {
	half = k.ready&netpoll.PeerClosed != 0
	if k.fd < 0 || k.state&lingering != 0 {
		return half, net.ErrClosed
	}
	if err := k.broken(); err != nil {
		return half, err
	}
	k.reader = w
	k.state |= forEnd
	return half, nil
}

// broken returns why nothing more can be sent. An Error event alone does not say: both sides may have closed normally.
// The kernel reports an error once, so it is kept.
func (k *socket) broken() error {
	if k.out != nil && k.out.err != nil {
		return k.out.err
	}
	if k.ready&netpoll.Error == 0 {
		return nil
	}
	err := k.source.e.os.SocketError(int(k.fd))
	if err != nil {
		k.fail(err)
	}
	return err
}

// peerClosed notes that the peer sends nothing more. An event or a receive reports that, whichever is first.
func (k *socket) peerClosed() {
	if k.ready&netpoll.PeerClosed == 0 && k.state&forEnd != 0 {
		k.reader.Wake()
	}
	k.ready |= netpoll.PeerClosed
}

// tickBits: a tick is 2^20 ns, about a millisecond, so that 32 bits last for 52 days.
const tickBits = 20

func (e *readiness) tick() uint32 { return uint32(e.s.Now() >> tickBits) }

func (k *socket) IdleSince() (since time.Duration, idle bool) {
	now := k.source.e.s.Now()
	ago := time.Duration(uint32(now>>tickBits)-k.since) << tickBits
	return now>>tickBits<<tickBits - ago,
		k.fd >= 0 && k.ready&netpoll.In == 0 && k.ahead == 0 && k.state&(dialing|lingering|ending) == 0
}
