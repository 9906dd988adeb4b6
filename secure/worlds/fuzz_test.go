package worlds_test

import (
	"crypto/tls"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"testing/cryptotest"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// FuzzPeer changes what a client sends, during the handshake and after it: bytes become others, are added or left out, or the
// stream ends. The server gets what the client has said, or the beginning of it, and comes to its end.
//
// Each change is 4 bytes: how far behind the last it is (2), what it is, and a value.
func FuzzPeer(f *testing.F) {
	for _, s := range []string{"", "\x00\x00\x00\x01", "\x00\x05\x03\x00", "\x01\x00\x00\x80", "\x05\xf0\x03\x00", "\x06\x00\x00\x01",
		"\x06\x20\x01\x17\x00\x00\x01\x03\x00\x00\x01\x03", "\x06\x40\x02\x00", "\x07\x00\x03\x00", "\x00\x00\x01\x16\x00\x00\x01\x03"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, changes []byte, old bool) {
		identity := certificate(t)
		cryptotest.SetGlobalRandom(t, 1)
		runtime.LockOSThread() // coroutines stay on their thread
		defer runtime.UnlockOSThread()
		m := &model{Rand: rand.New(rand.NewPCG(1, 1))}
		m.s = act.New(act.Config{Clock: still{}, Logger: zap.NewNop(), Trace: &act.Trace{Ended: func(_ *act.Task, err error) {
			if p := (*act.Panic)(nil); errors.As(err, &p) {
				t.Errorf("%v\n%s", p, p.Stack)
			}
		}}})
		defer func() { _ = m.s.Close() }()
		server, client := configs(m.IntN, identity, still{}.Wall)
		if client.MaxVersion = 0; old {
			client.MaxVersion = tls.VersionTLS12
		}
		c := listener.NewConn(m.s, &end{m: m, in: &m.pipes[0], out: &m.pipes[1]}, listener.Limits{Read: 1000, High: 2000})
		v := &victim{t: t, c: c, filter: listener.Filtered(c, 0, secure.Server(server, &secure.Handshakes{OnReactor: true}))}
		m.s.Spawn(v)
		peer := &liar{m: m, changes: changes}
		resume, stop := iter.Pull(func(yield func(struct{}) bool) {
			peer.yield = yield
			peer.talk(tls.Client(peer, client))
			m.pipes[0].ended = true
		})
		defer stop()
		for idle := 0; !v.over && idle < 4; idle++ {
			resume()
			for i := range m.pipes {
				m.pipes[i].move(1 + m.IntN(5000))
			}
			turns, err := m.s.Step(10)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(m.pipes[1].queue); n > 10_000 {
				t.Fatalf("%d bytes are queued", n)
			}
			if turns > 0 || !m.atRest() {
				idle = 0
			}
			if idle == 2 { // each waits for the other
				m.pipes[0].ended = true
			}
		}
		if !v.over {
			t.Fatal("the server does not come to its end")
		}
		if len(changes) < 4 && v.got != said {
			t.Fatalf("the server got %d bytes of %d", v.got, said)
		}
	})
}

// said is how many bytes the client says.
const said = 6000

// victim is the server's task: an echo that knows what it must get.
type victim struct {
	t      *testing.T
	c      *listener.Conn
	filter act.Action
	got    int
	over   bool
}

func (v *victim) Act(t *act.Task) act.Directive {
	if v.filter != nil {
		switch d := v.filter.Act(t); d {
		case act.Done:
			v.filter = nil
		case act.Failed:
			v.over = true
			return d
		default:
			return d
		}
	}
	in, err := v.c.Peek(1)
	if err == nil {
		var n int
		n, err = v.c.Write(in)
		for _, b := range in[:n] {
			if b != pattern(v.got, 0) {
				v.t.Fatalf("byte %d is %#x", v.got, b)
			}
			v.got++
		}
		v.c.Discard(n)
	}
	d := v.c.Next(t, err)
	v.over = d.Finished()
	return d
}

// Close ends the handshake and the connection.
func (v *victim) Close() error {
	if c, ok := v.filter.(io.Closer); ok {
		_ = c.Close()
	}
	v.c.Abort()
	return nil
}

// liar is the client's net.Conn. It changes what is written.
type liar struct {
	m       *model
	changes []byte
	passed  int // bytes since the last change
	yield   func(struct{}) bool
}

func (x *liar) talk(c *tls.Conn) {
	p := make([]byte, 1000)
	for sent := 0; sent < said; sent += len(p) {
		for i := range p {
			p[i] = pattern(sent+i, 0)
		}
		if _, err := c.Write(p); err != nil {
			return
		}
	}
	if c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

func (x *liar) Read(p []byte) (int, error) {
	in := &x.m.pipes[1]
	for len(in.arrived) == 0 {
		if in.endArrived || !x.yield(struct{}{}) {
			return 0, io.EOF
		}
		if x.m.pipes[0].ended {
			return 0, io.EOF
		}
	}
	n := copy(p, in.arrived)
	in.arrived = in.arrived[n:]
	return n, nil
}

func (x *liar) Write(p []byte) (int, error) {
	out := &x.m.pipes[0]
	for _, b := range p {
		for len(x.changes) >= 4 && x.passed == int(x.changes[0])<<8|int(x.changes[1]) {
			what, value := x.changes[2]%4, x.changes[3]
			x.changes, x.passed = x.changes[4:], 0
			switch what {
			case 0:
				b ^= value
			case 1:
				out.queue = append(out.queue, value)
				continue // at the same place
			case 2:
				goto next
			case 3:
				out.ended = true
			}
			break
		}
		if !out.ended {
			out.queue = append(out.queue, b)
		}
	next:
		x.passed++
	}
	if out.ended {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func (x *liar) Close() error                     { return nil }
func (x *liar) LocalAddr() net.Addr              { return nil }
func (x *liar) RemoteAddr() net.Addr             { return nil }
func (x *liar) SetDeadline(time.Time) error      { return nil }
func (x *liar) SetReadDeadline(time.Time) error  { return nil }
func (x *liar) SetWriteDeadline(time.Time) error { return nil }
