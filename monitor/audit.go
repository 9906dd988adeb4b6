package monitor

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/audit"
	"github.com/daimon-go/daimon/internal/netpoll"
)

func init() {
	audit.Sockets = func(s any, visit func(audit.Socket)) {
		for _, sl := range engines.Get(s.(*act.Scheduler)).slots {
			if k, ok := sl.watcher.(*socket); ok && k.fd >= 0 {
				visit(k.seen())
			}
		}
	}
}

func (k *socket) seen() audit.Socket {
	return audit.Socket{
		FD: int(k.fd), In: k.ready&netpoll.In != 0, Queued: k.queued(),
		Dialing: k.state&dialing != 0, ForEnd: k.state&forEnd != 0, Half: k.ready&netpoll.PeerClosed != 0,
		Reader: audit.Waits(k.reader), Writer: k.out != nil && audit.Waits(k.out.writer),
	}
}
