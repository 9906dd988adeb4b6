package sim_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldPackets has servers that answer datagrams, one by one or in conversations. What has arrived is given to them once,
// what they send is sent, and nobody gets the answer to another one. Unless something was lost, each question is answered.
func TestWorldPackets(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		k := newPackets(t, w, pick(w, "udp:10.0.0.1:53", "udp:[fd00::1]:53", "unixgram:/run/packets"), 10)
		if terms, given := order(w); given {
			w.At(time.Duration(w.Rand().Int64N(int64(3*time.Second))), func() {
				k.ordered = true
				k.server.Shutdown(terms)
			})
		}
	})
}

// packets is a server that answers datagrams, and what is known of it.
type packets struct {
	w              *sim.World
	server         *sim.Server
	peers          service.Peers
	brief          int // a conversation ends after so many packets; 0: never
	ordered        bool
	known          func() (taken, lost, doubled int) // see World.Packets
	given, replies int
	conns          []*listener.PacketConn
	all            []*listener.Peer // of the conversations that have begun
	open           int              // conversations
}

func newPackets(t *testing.T, w *sim.World, address string, clients int) *packets {
	k := &packets{w: w, peers: service.Peers{Idle: pick(w, time.Second, time.Minute), Max: pick(w, 0, 0, 1, 3), Mailbox: pick(w, 0, 0, 1)}}
	v := &service.PacketListener{Address: strings.TrimPrefix(address, "udp:"), Handler: k.batch}
	if path, unix := strings.CutPrefix(address, "unixgram:"); unix {
		v.Address = "unix:" + path
	} else {
		v.Address = pick(w, v.Address, "[::]:53")
	}
	if w.Rand().IntN(2) == 0 {
		k.peers.Handler, k.brief = k.converse, pick(w, 0, 0, 2)
		v.Handler, v.Peers = nil, k.peers
	}
	cfg := act.Config{Schedulers: pick(w, 1, 2, 4), TurnsPerPass: pick(w, 0, 1, 8)}
	server, err := w.Server("packets", cfg, append(anyEngine(w), v.Setup)...)
	require.NoError(t, err)
	k.server, k.known = server, w.Packets()
	for i := range clients {
		w.Client(address, k.asks(i))
	}
	w.ClientAfterStorm(address, func(c *sim.Client) error {
		c.Sleep(time.Second)
		if k.check(cfg.Schedulers); k.ordered {
			return nil
		}
		return k.asks(100)(c)
	})
	return k
}

// check checks the counts of a server at rest.
func (k *packets) check(schedulers int) {
	taken, _, _ := k.known()
	missed := 0
	for _, p := range k.all {
		missed += p.Lost()
	}
	if k.given > taken || k.given+missed < taken && !k.bounded() {
		k.w.Errorf("of %d packets the server was given %d, and had no room for %d", taken, k.given, missed)
	}
	sent := 0
	for _, c := range k.conns {
		n := c.Counts()
		sent += int(n.Sent + n.Refused + n.Full)
	}
	if sent != k.replies {
		k.w.Errorf("of %d answers %d were sent, refused, or found no room", k.replies, sent)
	}
	if k.peers.Max > 0 && k.open > k.peers.Max*schedulers {
		k.w.Errorf("%d conversations are open, and %d of a socket is the bound", k.open, k.peers.Max)
	}
}

// excused reports whether an answer may be missing.
func (k *packets) excused() bool {
	_, lost, _ := k.known()
	refused := slices.ContainsFunc(k.conns, func(c *listener.PacketConn) bool { n := c.Counts(); return n.Refused+n.Full > 0 })
	return lost > 0 || refused || k.bounded() || k.peers.Mailbox > 0
}

// bounded reports whether a conversation may end though it is not idle.
func (k *packets) bounded() bool { return k.ordered || k.brief > 0 || k.peers.Max > 0 }

// reply notes the result of a call that sends.
func (k *packets) reply(c *listener.PacketConn, err error) {
	if !slices.Contains(k.conns, c) {
		k.conns = append(k.conns, c)
	}
	if k.given++; !errors.Is(err, net.ErrClosed) {
		k.replies++
	}
}

func (k *packets) batch(c *listener.PacketConn, in []netpoll.Packet) {
	for i := range in {
		k.reply(c, c.Reply(&in[i], in[i].Data))
	}
}

// conversation answers with its number, and how many packets it has got.
type conversation struct {
	*packets
	peer   *listener.Peer
	id, n  int
	client string
	one    bool // packet for each turn
}

func (k *packets) converse(p *listener.Peer) act.Action {
	k.all = append(k.all, p)
	k.open++
	return &conversation{packets: k, peer: p, id: len(k.all), one: k.w.Rand().IntN(2) == 0}
}

func (x *conversation) Close() error {
	x.open--
	return nil
}

func (x *conversation) Act(t *act.Task) act.Directive {
	for {
		in, err := x.peer.Receive()
		if err != nil {
			return listener.Next(t, err)
		}
		client, _, _ := strings.Cut(string(in.Data), " ")
		if x.n++; x.n > 1 && client != x.client {
			x.w.Errorf("the conversation of client %s has got %q", x.client, in.Data)
		}
		x.client = client
		x.reply(x.peer.Conn(), x.peer.Send(fmt.Appendf(nil, "%s %s %d %d", in.Data, x.client, x.id, x.n)))
		switch {
		case x.brief > 0 && x.n >= x.brief:
			return act.Done
		case x.one:
			return act.Yield
		}
	}
}

// asker is a client.
type asker struct {
	*packets
	c       *sim.Client
	n, next int
	asked   map[string]time.Duration // questions, and when they were asked
	wrote   time.Duration            // the latest
	fresh   time.Duration            // the first after a silence that ends a conversation
	old     int                      // the conversation before it
	id      int                      // the latest conversation
	alive   time.Duration            // when the latest question was asked that it has answered
	gave    bool                     // has given up an answer
}

// asks sends a few questions at a time, and waits for the answers, most often.
func (k *packets) asks(client int) sim.Script {
	return func(c *sim.Client) error {
		x := &asker{packets: k, c: c, n: client, asked: map[string]time.Duration{}}
		for x.next < 10 {
			err := x.ask()
			switch chance := c.Rand().IntN(16); {
			case chance == 0:
				return nil
			case chance > 1 && err == nil: // otherwise it does not wait
				err = x.hear()
			}
			if err != nil && !k.ordered {
				return err
			}
			if c.Rand().IntN(4) == 0 {
				c.Sleep(pick(k.w, time.Second, 2*time.Minute))
			}
		}
		return nil
	}
}

func (x *asker) ask() error {
	now := x.w.Now()
	if now > x.wrote+x.peers.Idle+time.Second {
		x.fresh, x.old = now, x.id
	}
	x.wrote = now
	for range 1 + x.c.Rand().IntN(3) {
		q := fmt.Sprintf("%03d %05d", x.n, x.next)
		x.asked[q] = now
		x.next++
		if _, err := x.c.Write([]byte(q)); err != nil {
			return err
		}
	}
	return nil
}

// hear waits for the answers.
func (x *asker) hear() error {
	_ = x.c.SetReadDeadline(x.c.Now().Add(10 * time.Second))
	for b := make([]byte, 100); len(x.asked) > 0; {
		n, err := x.c.Read(b)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && x.excused():
			x.gave = true
			clear(x.asked)
			return nil
		case err != nil:
			return fmt.Errorf("%d questions are not answered: %w", len(x.asked), err)
		}
		if err := x.answered(string(b[:n])); err != nil {
			return err
		}
	}
	return nil
}

func (x *asker) answered(text string) error {
	who, what, of, id, count := 0, 0, x.n, 0, 0
	if n, _ := fmt.Sscanf(text, "%d %d %d %d %d", &who, &what, &of, &id, &count); n < 2 || who != x.n || of != x.n || what >= x.next {
		return fmt.Errorf("%q is no answer to client %d, which has asked %d times", text, x.n, x.next)
	}
	q := fmt.Sprintf("%03d %05d", who, what)
	at, asked := x.asked[q]
	delete(x.asked, q)
	_, _, doubled := x.known()
	switch {
	case !asked && !x.gave && doubled == 0:
		return fmt.Errorf("%q has come twice", text)
	case !asked || id == 0:
		return nil
	case id == x.old && at >= x.fresh:
		return fmt.Errorf("%q is of a conversation that should have ended at %v", text, x.fresh)
	case id > x.id && x.id > 0 && x.w.Now() < x.alive+x.peers.Idle && !x.bounded():
		return fmt.Errorf("%q is of a new conversation, and the other was alive at %v", text, x.alive)
	}
	x.id, x.alive = max(x.id, id), max(x.alive, at)
	return nil
}

// TestWorldQuery has a program that asks by Query, one question after the other, and one that only sends. Their server always has
// room, so an answer is missing only if a datagram was lost.
func TestWorldQuery(t *testing.T) {
	t.Parallel()
	sim.TestWith(t, sim.Options{Faults: sim.Anything().Without("refused datagram")}, func(w *sim.World) {
		newPackets(t, w, "udp:10.0.0.1:53", 0)
		answered := 0
		_, err := w.Server("asks", act.Config{}, append(anyEngine(w), func(s *act.Scheduler) error {
			p, err := listener.DialPackets(s, net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:53")), listener.PacketOptions{})
			if err != nil {
				return err
			}
			s.Spawn(&reporter{w: w, peer: p})
			var all []act.Action
			for i := range 5 {
				q := &listener.Query{Address: "10.0.0.1:53", Request: fmt.Appendf(nil, "%d 0", i), Tries: 10}
				all = append(all, q, act.Func(func(*act.Task) act.Directive {
					if answered++; !strings.HasPrefix(string(q.Answer()), string(q.Request)) {
						w.Errorf("the answer to %q is %q", q.Request, q.Answer())
					}
					return act.Done
				}))
			}
			s.Spawn(act.Seq(all...))
			return nil
		})...)
		require.NoError(t, err)
		w.Client("udp:10.0.0.1:53", func(c *sim.Client) error {
			if c.Sleep(10 * time.Minute); answered != 5 {
				return fmt.Errorf("of 5 questions %d are answered", answered)
			}
			return nil
		})
	})
}

// reporter sends datagrams, and does not receive.
type reporter struct {
	w     *sim.World
	peer  *listener.Peer
	n     int
	sleep *listener.Sleep
}

func (x *reporter) Close() error { return x.peer.Close() }

func (x *reporter) Act(t *act.Task) act.Directive {
	if x.sleep != nil {
		if d := x.sleep.Act(t); d != act.Done {
			return d
		}
		if n := x.peer.Conn().Counts(); int(n.Sent+n.Refused) != x.n {
			x.w.Errorf("a second after %d packets %+v have left", x.n, n)
		}
	}
	if x.n == 10 {
		return act.Done
	}
	for range 2 {
		x.n++
		if err := x.peer.Send([]byte("300 0")); err != nil {
			return t.Fail(err)
		}
	}
	x.sleep = &listener.Sleep{For: time.Second}
	return x.sleep.Act(t)
}
