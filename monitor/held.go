package monitor

import (
	"time"

	"github.com/daimon-go/daimon/internal/budget"
)

// HeldFor makes o the owner of the queue, if anything is queued, and returns how much memory it takes.
func (k *socket) HeldFor(o budget.Owner) (bytes int) {
	if k.out == nil {
		return 0
	}
	k.out.account.Owner = o
	return k.out.account.Bytes()
}

// Parts implements budget.Sharer.
func (k *socket) Parts() (bytes int) {
	if k.out != nil {
		for _, r := range k.out.refs {
			bytes += r.message.Part()
		}
	}
	return bytes
}

// held returns how much memory the queued bytes take at least.
func (k *socket) held() int {
	if k.out == nil {
		return 0
	}
	return len(k.out.queue) - k.out.sent + k.Parts()
}

// Taken reports whether the kernel has ever taken all bytes that were queued or sent.
func (k *socket) Taken() bool {
	k.settle()
	return k.state&taken != 0
}

// An outbound is the budget.Owner of its queue while there is no other: a lingering socket has none.

func (o *outbound) Held() (bytes int, still time.Duration) {
	since, _ := o.k.IdleSince()
	return o.account.Bytes() + o.k.Parts(), o.k.source.e.s.Now() - since
}

func (o *outbound) Flush() error {
	if o.k.queued() > 0 {
		o.k.flush()
	}
	return nil
}

func (o *outbound) Abort() { o.k.Abort() }

func (o *outbound) Peer() string {
	if a := o.k.PeerAddr(); a != nil {
		return a.String()
	}
	return ""
}
