package sim_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/mutant"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/sim/framing"
)

// The world of this file is the standard one: short questions and answers, default bounds, and no order before the end. There
// nothing goes wrong but by a fault, so a mutant with a line "# fault:" is found by this fault and not without it.

// frequent returns Faults of which none is rare.
func frequent() sim.Faults {
	const often = 65536 / 50
	return sim.Anything().With(often/5, "reset", "clogged link").
		With(often, "close error", "connect timed out", "wall clock jump", "full inbox").
		With(2*often, "aborted connection", "no descriptors", "no memory", "refused connect", "slow segment").
		With(5*often, "spurious event", "delayed event").
		With(10*often, "late offload")
}

// TestWorldOfFaults also has a client after the storm.
func TestWorldOfFaults(t *testing.T) {
	t.Parallel()
	sim.TestWith(t, sim.Options{Faults: frequent()}, func(w *sim.World) { newClerk(t, w) })
}

// TestEachFault counts how often each fault has an effect in 20 standard worlds. For each there is a mutant that only it finds.
func TestEachFault(t *testing.T) {
	mutants, err := mutant.ReadAll("testdata/mutants")
	require.NoError(t, err)
	found := map[string]string{}
	for _, m := range mutants {
		found[m.Head["fault"]] = m.Name
	}
	var bites sim.Counts
	refused := 0
	for seed := range uint64(20) {
		w := sim.New(sim.Options{Seed: seed, Faults: frequent()})
		k := newClerk(t, w)
		newPackets(t, w, "udp:10.0.0.1:53", 10)
		newCrowd(t, w, 40)
		require.NoError(t, w.Run(), "seed %d", seed)
		for i, n := range w.Counts().Bites {
			bites.Bites[i] += n
		}
		refused += k.refused
	}
	for i, name := range sim.FaultNames {
		t.Logf("%6d %s", bites.Bites[i], name)
		require.Positive(t, bites.Bites[i], name)
		require.NotEmpty(t, found[name], "no mutant needs the fault %q", name)
	}
	t.Logf("%6d broadcasts that found a full inbox", refused)
	require.Positive(t, refused, "broadcasts that found a full inbox")
}

// clerk is the server. It answers lines.
type clerk struct {
	w       *sim.World
	open    int         // connections
	said    int         // broadcasts
	heard   map[int]int // by schedulers
	refused int         // broadcasts, for want of room
}

// patience is how long a client of the clerk may be silent.
const patience = 4 * time.Second

func newClerk(t *testing.T, w *sim.World) *clerk {
	k := &clerk{w: w, heard: map[int]int{}}
	greets := coro.Serve(func(c *coro.Conn) error { _, err := io.WriteString(c, "hello\n"); return err })
	up := &service.Listener{Address: "10.0.0.2:80", Handler: greets}
	tcp := &service.Listener{Address: "10.0.0.1:80", Handler: coro.Serve(k.serve)}
	unix := &service.Listener{Address: "unix:/run/clerk", Handler: coro.Serve(k.serve)}
	_, err := w.Server("up", act.Config{}, up.Setup)
	require.NoError(t, err)
	_, err = w.Server("clerk", act.Config{Schedulers: 2}, tcp.Setup, unix.Setup)
	require.NoError(t, err)
	kinds := []string{"say", "look", "dial", "wait", "bye", "echo"}
	for i := range 4 * len(kinds) {
		at := pick(w, tcp.Address, tcp.Address, unix.Address)
		w.At(time.Duration(i)*5*time.Millisecond, func() { w.Client(at, k.visits(kinds[i%len(kinds)])) })
	}
	w.ClientAfterStorm(tcp.Address, func(c *sim.Client) error {
		c.Sleep(time.Second)
		if k.open > 1 || k.heard[0] != k.said || k.heard[1] != k.said {
			return fmt.Errorf("%d connections are open; of %d broadcasts the schedulers have got %v", k.open, k.said, k.heard)
		}
		return k.visits("dial")(c)
	})
	return k
}

func (k *clerk) serve(c *coro.Conn) error {
	k.open++
	defer func() { k.open-- }()
	for lines := (&framing.Lines{Conn: c}); ; {
		due := k.w.Now() + patience
		_ = c.SetReadDeadline(c.Co().Scheduler().Clock().Wall().Add(patience))
		line, err := lines.Read()
		switch now := k.w.Now(); {
		case errors.Is(err, os.ErrDeadlineExceeded) && now >= due && now < due+time.Second:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded), now > due+time.Second:
			k.w.Errorf("a read with a deadline at %v has ended at %v: %v", due, now, err)
		}
		if err == nil {
			line, err = k.answer(c, lines, line)
		}
		if err == nil {
			err = lines.Write(line)
		}
		if err != nil || line == "bye" {
			return nil
		}
	}
}

func (k *clerk) answer(c *coro.Conn, lines *framing.Lines, question string) (string, error) {
	co := c.Co()
	switch question {
	case "say":
		for {
			err := co.Scheduler().Group().Broadcast(func(s *act.Scheduler) { k.heard[s.Index()]++ })
			if err == nil {
				k.said++
				return question, nil
			}
			k.refused++
			if err := co.Unblock(err); err != nil {
				return "", err
			}
		}
	case "look":
		looked := false
		err := co.Do(listener.Within(patience, act.Func(func(t *act.Task) act.Directive {
			if looked {
				return act.Done
			}
			return t.Offload(func() { looked = true })
		})))
		if err != nil {
			k.w.Errorf("an offloaded function has returned, and then: %w", err)
		}
	case "dial":
		up, err := coro.Dial(co, "10.0.0.2:80", listener.Limits{})
		if err != nil {
			return question, nil
		}
		defer up.Close()
		_, err = up.Under().WriteString("?")
		lost := errors.Join(err, up.Under().Flush()) // no answer to the question can have come
		connected := k.w.Now()
		_, err = (&framing.Lines{Conn: up}).Read()
		if errors.Is(lost, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) || k.w.Now() > connected+time.Minute {
			k.w.Errorf("connected to a server that is not there: %w", errors.Join(lost, err))
		}
	case "wait":
		if err := lines.Write("waiting"); err != nil {
			return "", err
		}
		ended := func(t *act.Task) bool { half, err := c.Under().Ended(t); return half || err != nil }
		if err := co.WaitUntil(ended); err != nil {
			return "", err
		}
		return question, co.Sleep(50 * time.Millisecond)
	}
	return question, nil
}

// visits asks three times, and then one of the kinds of questions.
func (k *clerk) visits(kind string) sim.Script {
	return func(c *sim.Client) error {
		lines := &framing.Lines{Conn: c}
		hears := func(want string) error {
			got, err := lines.Read()
			if err == nil && got != want {
				return fmt.Errorf("%q in place of %q", got, want)
			}
			return err
		}
		for i := range 3 {
			question := fmt.Sprint("question ", i)
			if err := errors.Join(lines.Write(question), hears(question)); err != nil {
				return err
			}
		}
		switch kind {
		case "wait":
			if err := errors.Join(lines.Write(kind), hears("waiting")); err != nil {
				return err
			}
			c.Sleep(20 * time.Millisecond) // no event of what was read is left
			return errors.Join(c.CloseWrite(), hears(kind))
		case "bye": // and more, which is still on its way when the server closes
			if err := errors.Join(lines.Write("bye"), lines.Write("bye"), hears(kind)); err != nil {
				return err
			}
			if c.Sleep(2 * time.Second); c.RemoteAddr().Network() == "unix" {
				return nil
			}
			return lines.Write("bye")
		case "echo": // with the end after the question
			return errors.Join(lines.Write(kind), c.CloseWrite(), hears(kind))
		}
		return errors.Join(lines.Write(kind), hears(kind))
	}
}
