package secure

import (
	"iter"
	"net"
	"sync"
)

// body is a coroutine that makes one handshake after the other, since a new one would have to grow its stack again: that
// takes a twentieth of a handshake. It is made and resumed on goroutines without a thread of their own only, as package
// iter demands.
type body struct {
	x      *handshake // the present one
	resume func() (struct{}, bool)
	stop   func()
}

func (b *body) work(yield func(struct{}) bool) {
	for stopped := false; !stopped; {
		b.x.pause = func() error {
			if stopped = stopped || !yield(struct{}{}); stopped {
				return net.ErrClosed
			}
			return nil
		}
		b.x.run()
		b.x = nil
		stopped = stopped || !yield(struct{}{})
	}
}

// bodies are the bodies of a Handshakes. None is left when no handshake has one.
type bodies struct {
	mu   sync.Mutex
	busy int
	idle []*body // at most maxIdle
}

const maxIdle = 64

// take returns a body for x.
func (s *bodies) take(x *handshake) (b *body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	if n := len(s.idle) - 1; n >= 0 {
		b, s.idle = s.idle[n], s.idle[:n]
	} else {
		b = &body{}
		b.resume, b.stop = iter.Pull(b.work)
	}
	b.x = x
	return b
}

// give takes b back. One whose handshake is not over is ended, and so are the idle ones if it was the last.
func (s *bodies) give(b *body, over bool) {
	s.mu.Lock()
	s.busy--
	var ended []*body
	if over && len(s.idle) < maxIdle {
		s.idle = append(s.idle, b)
	} else {
		ended = append(ended, b)
	}
	if s.busy == 0 {
		ended, s.idle = append(ended, s.idle...), nil
	}
	s.mu.Unlock()
	for _, b := range ended {
		b.stop()
	}
}
