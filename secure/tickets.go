package secure

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
)

const (
	ticketDays = 7              // for so long a session can be resumed, as in crypto/tls
	ticketDay  = 24 * time.Hour // and a new key comes
)

// Tickets are the keys of a server's session tickets, used instead of keys that crypto/tls makes for itself. An
// upgrade.Upgrade passes them on, so that the newer program resumes the sessions of the older one.
//
//	tickets := &secure.Tickets{Config: config}
//	server.Run(tickets, server.Listen(server.Addr, site.Serve, secure.Server(config, nil)))
//
// There is a new key each day, and a session can be resumed for seven days.
type Tickets struct {
	// Config is the tls.Config of the server, in which Tickets sets the ticket keys; no other code may set them. It must not
	// be nil.
	Config *tls.Config
	// Name tells the Tickets of one program apart in an upgrade. It may be empty if there is only one.
	Name string

	mu   sync.Mutex
	keys [][32]byte // the newest first
}

// Setup makes the first key, and a further one each day. It is a set-up function for [act.Run], and fails without a Config.
func (x *Tickets) Setup(s *act.Scheduler) error {
	if x.Config == nil {
		return errors.New("secure: Tickets without a Config")
	}
	if s.Index() > 0 || x.Config.SessionTicketsDisabled {
		return nil
	}
	x.rotate()
	s.Attach(demon.Every(ticketDay, func(*act.Task) act.Directive {
		x.rotate()
		return act.Wait
	}))
	return nil
}

// rotate makes a new key, and forgets the oldest of seven.
func (x *Tickets) rotate() {
	x.mu.Lock()
	defer x.mu.Unlock()
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	x.keys = append([][32]byte{key}, x.keys[:min(len(x.keys), ticketDays-1)]...)
	x.Config.SetSessionTicketKeys(x.keys)
}

// StateName returns the name under which package upgrade passes the keys on. It is made of Name. Any goroutine.
func (x *Tickets) StateName() string { return "tickets " + x.Name }

// SaveState returns the keys, for package upgrade, which gives them to LoadState of the newer program. Any goroutine.
func (x *Tickets) SaveState(context.Context) (state []byte, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, key := range x.keys {
		state = append(state, key[:]...)
	}
	return state, nil
}

// LoadState takes the keys that SaveState of an older program has returned, in place of its own. Package upgrade calls it after
// Setup, on any goroutine. It fails if state is not a list of keys.
func (x *Tickets) LoadState(state []byte) error {
	if len(state) == 0 || x.Config == nil || x.Config.SessionTicketsDisabled { // one of both programs has no tickets
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys = nil
	for key := range slices.Chunk(state, 32) {
		if len(key) != 32 || len(x.keys) == ticketDays {
			return fmt.Errorf("secure: the keys of session tickets are %d bytes: not 1 to %d times 32", len(state), ticketDays)
		}
		x.keys = append(x.keys, [32]byte(key))
	}
	x.Config.SetSessionTicketKeys(x.keys)
	return nil
}
