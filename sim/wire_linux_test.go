package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/netpoll"
)

// machine is the system of this machine, over its loopback.
type machine struct{ netpoll.System }

func (r machine) OpenPoller() (engine.Poller, error)    { return r.System.OpenPoller() }
func (r machine) OpenBatch(n int) (engine.Batch, error) { return r.System.OpenBatch(n) }

// recorder runs a script on the system of this machine, or on the simulated one.
type recorder struct {
	os          engine.OS
	settle      func()
	expectInput func(fd int) // lets the simulated kernel accept a receive without an event
	dir         string
	log         []string
	poller      engine.Poller
	batch       engine.Batch // nil if this machine refuses it
	fds         []int        // by name; -1: not open
}

func (h *recorder) logf(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func realRecorder(t testing.TB, pause time.Duration) *recorder {
	dir, err := os.MkdirTemp("", "sim")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return &recorder{os: machine{}, settle: func() { time.Sleep(pause) }, expectInput: func(int) {}, dir: dir}
}

func simulatedRecorder(t testing.TB, seed uint64) *recorder {
	b := newBench(t, Options{Seed: seed})
	t.Cleanup(b.right)
	told := func(fd int) {
		if f := b.k.files[fd]; f.reg != nil {
			f.reg.reported |= netpoll.In
		}
	}
	return &recorder{os: b.OS, settle: b.settle, expectInput: told, dir: "/tmp"}
}

func word(err error) string {
	if err == io.EOF {
		return "EOF"
	}
	return fmt.Sprint(err)
}

// events logs what the poller reports, in the order of the tags. A tag is an index in fds.
func (h *recorder) events() {
	events := make([]netpoll.Event, 64)
	n, err := h.poller.Wait(events, 0)
	if err != nil {
		h.logf("wait: %v", err)
	}
	slices.SortFunc(events[:n], func(a, b netpoll.Event) int { return int(a.Tag) - int(b.Tag) })
	for _, e := range events[:n] {
		h.logf("  %d is ready: %v", e.Tag, e.Ready)
	}
}

// connect makes a connection with the ends 0, which dials, and 1.
func (h *recorder) connect(local bool) {
	h.poller, _ = h.os.OpenPoller()
	if batches() {
		h.batch, _ = h.os.OpenBatch(2)
	}
	var l, a int
	if local {
		l = h.listenUnix("s", 0)
		a = h.dialUnix("s")
	} else {
		var addr netip.AddrPort
		l, addr = h.listen()
		a = h.dial(addr)
	}
	h.logf("connected: %v", h.os.SocketError(a))
	b := h.accept(l)
	h.close(l)
	if local {
		_ = h.os.Unlink(filepath.Join(h.dir, "s"))
	}
	h.fds = []int{a, b}
	for i, fd := range h.fds {
		_ = h.os.SetNoDelay(fd, true) // small segments are not delayed
		h.logf("add: %v", h.poller.Add(fd, uint64(i), netpoll.In|netpoll.Out))
	}
	h.settle()
	h.events()
}

// batches reports whether this machine makes batches.
var batches = sync.OnceValue(func() bool {
	b, err := machine{}.OpenBatch(2)
	return err == nil && b.Close() == nil
})

// both makes the same call on both ends, in a batch. Their order makes no difference.
func (h *recorder) both(send bool, size int) {
	var calls []netpoll.Call
	for _, fd := range h.fds {
		if fd >= 0 {
			h.expectInput(fd)
			calls = append(calls, netpoll.Call{FD: fd, Send: send, P: make([]byte, size)})
		}
	}
	h.batch.Do(calls)
	for _, c := range calls {
		h.logf("in a batch with %d bytes, send %v: %d, %v", size, send, c.N, c.Err)
	}
}

// step makes a random call on one of the ends.
func (h *recorder) step(r *rand.Rand) {
	who, what, size := r.IntN(2), r.IntN(20), 1+r.IntN(60)
	fd := h.fds[who]
	if fd < 0 {
		return
	}
	switch {
	case what < 6:
		n, err := h.os.Send(fd, make([]byte, size/2), make([]byte, size-size/2))
		h.logf("%d sends %d: %d, %v", who, size, n, word(err))
	case what < 13:
		h.expectInput(fd)
		n, err := h.os.Receive(fd, make([]byte, 2*size))
		h.logf("%d receives %d: %d, %v", who, 2*size, n, word(err))
	case what < 15:
		h.logf("%d asks for its error: %v", who, h.os.SocketError(fd))
	case what < 16:
		h.logf("%d ends writing: %v", who, h.os.CloseWrite(fd))
	case what < 17:
		h.logf("%d has a peer: %v", who, h.os.PeerAddr(fd) != nil)
	case what < 18:
		h.logf("%d closes: %v", who, h.os.Close(fd))
		h.fds[who] = -1
	case what == 19 && h.batch != nil:
		h.both(r.IntN(2) == 0, size)
	case what == 18 && r.IntN(2) == 0:
		h.logf("%d resets: %v", who, h.os.Reset(fd))
		h.fds[who] = -1
	}
	h.settle()
	h.events()
}

// end receives everything that is left, and closes.
func (h *recorder) end() {
	for who, fd := range h.fds {
		if fd < 0 {
			continue
		}
		for range 3 {
			h.expectInput(fd)
			n, err := h.os.Receive(fd, make([]byte, 4096))
			h.logf("%d receives at last: %d, %v", who, n, word(err))
		}
		n, err := h.os.Send(fd, nil, []byte("x"))
		h.logf("%d sends at last: %d, %v", who, n, word(err))
		h.settle()
		h.events()
		h.logf("%d ends writing at last: %v", who, h.os.CloseWrite(fd))
		h.settle()
		h.events()
		h.logf("%d has at last: %v", who, h.os.SocketError(fd))
		h.logf("%d closes: %v", who, h.os.Close(fd))
		h.settle()
	}
	_ = h.poller.Close()
	if h.batch != nil {
		_ = h.batch.Close()
	}
}

func (h *recorder) run(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	h.connect(seed%2 == 1)
	for range 4 + r.IntN(20) {
		h.step(r)
	}
	h.end()
	return strings.Join(h.log, "\n")
}

// The model is compared with the system of this machine: calls return the same, and the poller reports the same.
func TestConnectionsAreAsOnThisMachine(t *testing.T) {
	tier.Need(t, tier.Full, "waits for the network of this machine, which takes longer when it is busy")
	for seed := range uint64(tier.Choose(0, 30, 200)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			simulated := simulatedRecorder(t, seed).run(seed)
			settled(t, simulated, func(wait time.Duration) string { return realRecorder(t, wait).run(seed) })
		})
	}
}
