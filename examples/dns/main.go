// Command dns is an authoritative server of DNS for one zone, over UDP and TCP on the same schedulers.
//
//	go run ./examples/dns
//	dig @127.0.0.1 -p 5353 www.example.com
//	dig @127.0.0.1 -p 5353 +tcp txt.example.com TXT
//
// The zone is example.zone, or the file of -zone. With -messages-per-source a source that asks more often gets no answer over UDP, and over TCP a slower one.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/dns/zone"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/service"
)

func main() {
	path := flag.String("zone", "", "the `file` with the records of the zone; without it example.com of this example")
	limits := &admission.Limiter{Messages: -1} // the flag -messages-per-source, without a bound
	server := program.Server{Addr: "127.0.0.1:5353", Options: []program.Option{limits, &inspect.Inspector{}}}
	server.Parse()
	z, err := load(*path)
	if err != nil {
		cli.Exit("dns", err, 1)
	}
	server.Run(server.Listen(server.Addr, overTCP(z, limits)), &service.PacketListener{Address: server.Addr, Handler: overUDP(z), Admit: limits.Admit})
}

//go:embed example.zone
var example string

func load(path string) (*zone.Zone, error) {
	if path == "" {
		return zone.Read(strings.NewReader(example))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zone.Read(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return z, err
}

// overUDP answers the queries of a batch. The answers leave together.
func overUDP(z *zone.Zone) func(*listener.PacketConn, []netpoll.Packet) {
	return func(c *listener.PacketConn, in []netpoll.Packet) {
		var out []byte
		for i := range in {
			if out = z.Answer(out[:0], in[i].Data, true); len(out) > 0 {
				_ = c.Reply(&in[i], out) // an answer that is dropped is counted, and the client asks again
			}
		}
	}
}

// session is a connection: each message has its length before it (RFC 7766 8).
type session struct {
	zone   *zone.Zone
	limits *admission.Limiter
	in     listener.Frame
	out    []byte // the rest of an answer with its length
	pause  act.Timer
	last   time.Duration // when the connection ends without a further query, on the scheduler's clock; 0: no order has come
}

func overTCP(z *zone.Zone, limits *admission.Limiter) func(*listener.Conn) act.Action {
	return func(c *listener.Conn) act.Action {
		return &session{zone: z, limits: limits, in: listener.Frame{Conn: c, Length: listener.Uint16}}
	}
}

// Act answers one query. A client that does not read its answers is not read from. A shutdown ends the connection as soon as its client
// is silent (RFC 7766 6.2.4).
func (x *session) Act(t *act.Task) act.Directive {
	c := x.in.Conn
	if len(x.out) > 0 {
		n, err := c.Write(x.out)
		x.out = x.out[n:]
		return c.Next(t, err)
	}
	query, err := x.in.Read()
	if _, blocked := err.(act.Blocked); blocked && t.Order() != nil && x.ends(t) {
		return act.Done
	}
	if err != nil {
		return c.Next(t, err)
	}
	x.last = 0
	answer := x.zone.Answer(nil, query, false)
	if len(answer) == 0 {
		return act.Done // it does not speak DNS
	}
	if x.out, err = listener.Uint16.Append(nil, answer); err != nil {
		return t.Fail(err)
	}
	if pause := x.limits.Pace(c); pause > 0 {
		t.WakeAfter(&x.pause, pause)
		return act.Wait
	}
	return act.Yield
}

// ends reports whether the client has been silent for a second. Queries that are on their way are still answered.
func (x *session) ends(t *act.Task) bool {
	now := t.Scheduler().Now()
	if x.last == 0 {
		x.last = now + time.Second
	}
	t.WakeAt(&x.pause, x.last)
	return now >= x.last
}

// Close stops the timer.
func (x *session) Close() error {
	x.pause.Stop()
	return nil
}
