package service

import (
	"cmp"
	"container/list"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
)

// Peers are the conversations of a [PacketListener]: a task for each address that sends packets. A packet of an address without a
// conversation begins one. Packets of a Unix socket without a name are dropped, since nobody could answer them.
type Peers struct {
	// Handler returns the action of a conversation. It is called in the first turn of the task, when the first packet has come.
	// When the action has finished, the conversation has ended, and packets that it has not taken are dropped: a later packet
	// begins another conversation. The same holds if Handler returns nil. If the action fails with net.ErrClosed after
	// the conversation has ended, that counts as Done.
	Handler func(p *listener.Peer) act.Action
	// Idle is how long no packet may come before the conversation ends: Receive returns net.ErrClosed. 0 means a minute.
	Idle time.Duration
	// Max bounds the conversations of each socket. At the bound a new one ends the one from which no packet has come for longest.
	// 0 means 65,536.
	Max int
	// Mailbox bounds the packets of a conversation that the action has not taken. Beyond it new ones are dropped. 0 means 64.
	// Their bytes count towards the listener.Budget: while that is used up, all new packets are dropped.
	Mailbox int
}

// resolved returns p with its defaults.
func (p Peers) resolved() (Peers, error) {
	if p.Idle < 0 || p.Max < 0 || p.Mailbox < 0 {
		return p, errors.New("a negative field of Peers")
	}
	p.Idle, p.Max, p.Mailbox = cmp.Or(p.Idle, time.Minute), cmp.Or(p.Max, 1<<16), cmp.Or(p.Mailbox, 64)
	return p, nil
}

// conversations are all of one socket.
type conversations struct {
	Peers
	of    *receiver
	all   map[netip.AddrPort]*list.Element // conversations that have not ended
	idle  list.List                        // the same; the first has been idle for longest
	tasks int                              // of conversations, also of ended ones
	timer act.Timer                        // when the first may have been idle for too long
}

// conversation is the task of one peer.
type conversation struct {
	act.Child
	peer   listener.Peer
	of     *receiver
	latest time.Duration // when the latest packet has come
}

// keyOf returns the key of a peer. That of a Unix socket has its path as the zone of an address.
func keyOf(at netip.AddrPort, path string) netip.AddrPort {
	if path != "" {
		return netip.AddrPortFrom(netip.IPv6Unspecified().WithZone(path), 0)
	}
	return at
}

// take gives a packet to its conversation.
func (x *conversations) take(in *netpoll.Packet) {
	key := keyOf(in.Peer, in.Path)
	place, known := x.all[key]
	var c *conversation
	switch {
	case known:
		c = place.Value.(*conversation)
		x.idle.MoveToBack(place)
	case !key.IsValid(), x.tasks >= x.Max+netpoll.PacketsAtOnce: // no name; or ended conversations do not finish
		x.of.lost++
		return
	default:
		c = &conversation{of: x.of}
		x.of.conn.Internals().BeginPeer(&c.peer, in)
	}
	if !c.peer.Internals().Put(in, x.Mailbox) {
		if x.of.lost++; !known {
			return
		}
	}
	c.latest = x.of.home.Now()
	if !known {
		if len(x.all) >= x.Max {
			x.of.evicted++
			x.end(x.idle.Front())
		}
		x.all[key] = x.idle.PushBack(c)
		x.tasks++
		x.of.home.Spawn(c)
	}
	if !x.timer.Armed() {
		x.of.home.CallAt(&x.timer, c.latest+x.Idle, x)
	}
}

// end ends a conversation. Its task goes on until it has finished.
func (x *conversations) end(place *list.Element) {
	c := x.idle.Remove(place).(*conversation)
	delete(x.all, c.key())
	c.peer.Internals().Finish()
}

func (x *conversations) endAll() {
	for x.idle.Len() > 0 {
		x.end(x.idle.Front())
	}
	x.timer.Stop()
}

// Expire ends the conversations that have been idle for too long. The timer is late for a first one that has got a packet.
func (x *conversations) Expire() {
	for now := x.of.home.Now(); x.idle.Len() > 0; x.end(x.idle.Front()) {
		if due := x.idle.Front().Value.(*conversation).latest + x.Idle; due > now {
			x.of.home.CallAt(&x.timer, due, x)
			return
		}
	}
}

func (c *conversation) key() netip.AddrPort {
	return keyOf(c.peer.AddrPort(), c.peer.Internals().Path())
}

func (c *conversation) Act(t *act.Task) act.Directive {
	if c.Action == nil {
		if c.Action = c.of.server.Peers.Handler(&c.peer); c.Action == nil {
			return act.Done
		}
	}
	d := c.Child.Act(t)
	if d == act.Failed && c.peer.Internals().Ended() && errors.Is(t.Err(), net.ErrClosed) {
		return act.Done
	}
	return d
}

// Close ends the conversation because the task ends.
func (c *conversation) Close() error {
	c.leave()
	return c.Child.Close()
}

// Abandon is Close of a task that was dropped while a function runs that it has offloaded.
func (c *conversation) Abandon() act.Action {
	c.leave()
	return c.Child.Abandon()
}

func (c *conversation) leave() {
	x := &c.of.peers
	if place := x.all[c.key()]; place != nil && place.Value == c {
		x.end(place)
	}
	x.of.lost += uint64(c.peer.Internals().Unread())
	_ = c.peer.Close() // never fails
	if x.tasks--; x.tasks == 0 && x.of.ordered {
		x.of.waker.Wake()
	}
}

// Describe describes the action, then the peer.
func (c *conversation) Describe(d *act.Description) {
	c.Child.Describe(d)
	said := d.Internals()
	said.Peer, said.Still = facts.Address{TCP: c.peer.AddrPort(), Name: c.peer.Internals().Path()}, c.Still()
}

var _ facts.Connected = (*conversation)(nil)

// Service returns the name of the service.
func (c *conversation) Service() string { return c.of.name }

// Peer returns the address of the peer.
func (c *conversation) Peer() string { return c.peer.RemoteAddr().String() }

// Descriptor returns -1, since the socket is not the conversation's.
func (c *conversation) Descriptor() int { return -1 }

// Still returns for how long no packet has come.
func (c *conversation) Still() time.Duration {
	return max(0, c.of.home.Now()-c.latest).Truncate(time.Millisecond)
}

// Undisturbed returns false: the action is told of a shutdown.
func (c *conversation) Undisturbed() bool { return false }
