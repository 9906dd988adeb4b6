package websocket_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
)

// peer is a Stream whose other side is in memory: ten thousand need no descriptors.
type peer struct {
	monitor.Stream
	says   []byte // what is to be received
	most   int    // of it at once; 0: all
	stuck  bool   // it takes nothing
	queue  []byte // what it has not taken
	took   int
	sum    uint32 // of what it took
	reader act.Waker
	writer []act.Waker
	gone   bool
}

func (p *peer) Lend(most int) ([]byte, error) {
	if len(p.says) == 0 {
		return nil, monitor.ErrWouldBlock
	}
	if p.most > 0 {
		most = p.most
	}
	lent := bytes.Clone(p.says[:min(most, len(p.says))]) // what is lent is spoilt behind the turn
	if p.says = p.says[len(lent):]; len(p.says) == 0 {
		p.says = nil
	}
	return lent, nil
}

func (p *peer) Receive(to []byte) (int, error) {
	in, err := p.Lend(len(to))
	return copy(to, in), err
}

func (p *peer) take(b []byte) {
	p.took += len(b)
	p.sum = crc32.Update(p.sum, crc32.IEEETable, b)
}

func (p *peer) Send(head, b []byte, high int) (int, error) {
	if !p.stuck {
		p.take(head)
		p.take(b)
		return len(b), nil
	}
	p.queue = append(p.queue, head...)
	n := max(0, min(len(b), high-len(p.queue)))
	p.queue = append(p.queue, b[:n]...)
	return n, nil
}

func (p *peer) Queued() (int, error) { return len(p.queue), nil }

func (p *peer) AwaitInput(w act.Waker) {
	if p.reader = w; len(p.says) > 0 {
		w.Wake()
	}
}

func (p *peer) AwaitEnd(w act.Waker) (bool, error) { p.reader = w; return false, nil }

func (p *peer) AwaitOutput(w act.Waker, low int) {
	if p.writer = append(p.writer, w); len(p.queue) <= low {
		p.Wake()
	}
}

func (p *peer) Wake() {
	for _, w := range p.writer {
		w.Wake()
	}
	p.writer = nil
}

func (p *peer) Abort()              { p.gone = true }
func (p *peer) Close(time.Duration) { p.gone = true }
func (p *peer) PeerAddr() net.Addr  { return nil }
func (p *peer) unstick()            { p.stuck = false; p.take(p.queue); p.queue = nil; p.Wake() }
func (p *peer) forget()             { p.took, p.sum = 0, 0 }

// join makes a connection of WebSocket with p.
func (w *world) join(p *peer, v *websocket.Server) {
	p.says = []byte(handshake + "\r\n")
	w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(listener.NewConn(w.S, p, listener.Limits{})))
	servertest.Step(w.T, w.S)
	require.Greater(w.T, p.took, len("HTTP/1.1 101 "))
	p.forget()
}

// crowd is many connections whose actions wait.
func crowd(t testing.TB, n int, o websocket.Options) (w *world, peers []peer, conns []*websocket.Conn) {
	w = newWorld(t)
	peers = make([]peer, n)
	wait := act.Func(func(t *act.Task) act.Directive { t.Waker(); return act.Wait })
	v := &websocket.Server{Options: o, Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action {
		conns = append(conns, c)
		return wait
	}}
	for i := range peers {
		w.join(&peers[i], v)
	}
	return w, peers, conns
}

// frameOf returns the frame of a server's text.
func frameOf(text string) string {
	h := frame.Header{Opcode: frame.Text, Final: true, Length: int64(len(text))}
	return string(h.Append(nil)) + text
}

// One that never reads among many, for each policy: the others get everything, and it costs what the policy allows.
func TestOneThatNeverReadsAmongMany(t *testing.T) {
	n, messages := tier.Choose(300, 2000, 10_000), tier.Choose(50, 25, 200)
	text := strings.Repeat("x", 1000)
	for name, overflow := range map[string]websocket.Overflow{
		"Block": websocket.Block, "Drop": websocket.Drop, "Disconnect": websocket.Disconnect,
	} {
		t.Run(name, func(t *testing.T) {
			w, peers, conns := crowd(t, n, websocket.Options{Overflow: overflow, Backlog: 10})
			slow := n / 2
			peers[slow].stuck = true
			var all strings.Builder
			said := make([]*websocket.Prepared, messages)
			for i := range said {
				line := fmt.Sprint(i, text)
				all.WriteString(frameOf(line))
				said[i] = websocket.Prepare(websocket.Text, []byte(line))
			}
			if overflow == websocket.Block { // each has its own task, and only that one waits
				for _, c := range conns {
					i := 0
					w.S.Spawn(act.Func(func(t *act.Task) act.Directive {
						if i == messages {
							return act.Done
						}
						if err := c.Push(said[i]); err != nil {
							return listener.Next(t, err)
						}
						i++
						return act.Yield
					}))
				}
			}
			for _, m := range said {
				if overflow == websocket.Block {
					break
				}
				require.NoError(t, w.S.Post(func(*act.Scheduler) {
					for _, c := range conns {
						_ = c.Push(m)
					}
				}))
				servertest.Step(t, w.S)
				require.LessOrEqual(t, len(peers[slow].queue), 4<<10)
			}
			servertest.Step(t, w.S)
			want := crc32.ChecksumIEEE([]byte(all.String()))
			for i := range peers {
				if i != slow {
					require.Equal(t, all.Len(), peers[i].took)
					require.Equal(t, want, peers[i].sum)
					require.Zero(t, conns[i].Dropped())
				}
			}
			require.LessOrEqual(t, len(peers[slow].queue), 4<<10)
			whole := len(peers[slow].queue) / len(frameOf("10"+text)) // about
			switch overflow {
			case websocket.Disconnect:
				require.Equal(t, net.ErrClosed, conns[slow].Push(said[0]))
				w.pass(10 * time.Second)
				require.True(t, peers[slow].gone)
			case websocket.Drop:
				require.InDelta(t, messages-whole-10, conns[slow].Dropped(), 1)
			case websocket.Block:
				require.Zero(t, conns[slow].Dropped())
				peers[slow].unstick()
				servertest.Step(t, w.S)
				require.Equal(t, all.Len(), peers[slow].took)
				require.Equal(t, want, peers[slow].sum)
			}
		})
	}
}

func heap() int {
	runtime.GC()
	runtime.GC() // what the first one has put off
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Ten thousand that do not read share the messages that wait for them.
func TestThoseThatDoNotReadShareTheMessages(t *testing.T) {
	tier.NoRace(t, "measures memory")
	n, backlog := tier.Choose(1000, 10_000, 10_000), 64
	w, peers, conns := crowd(t, n, websocket.Options{Overflow: websocket.Drop})
	before := heap()
	var last []string
	for i := range 300 {
		line := fmt.Sprint(i, strings.Repeat("x", 1000))
		last = append(last, frameOf(line))
		m := websocket.Prepare(websocket.Text, []byte(line))
		require.NoError(t, w.S.Post(func(*act.Scheduler) {
			for j, c := range conns {
				peers[j].stuck = true
				_ = c.Push(m)
			}
		}))
		servertest.Step(t, w.S)
	}
	each := (heap() - before) / n
	t.Logf("%d B each", each)
	require.Less(t, each, 8<<10, "4 KiB in bytes, and the rest by reference")
	newest := strings.Join(last[len(last)-backlog:], "")
	for j := range peers {
		first := len(peers[j].queue)
		peers[j].unstick()
		require.Positive(t, first)
	}
	servertest.Step(t, w.S)
	for j := range peers {
		require.Greater(t, peers[j].took, len(newest))
	}
	runtime.KeepAlive(last)
}

// A connection at rest has its session, and what httpd and the packages below keep for it, without the stream.
func TestMemoryOfAConnectionAtRest(t *testing.T) {
	tier.NoRace(t, "measures memory")
	const n = 10_000
	before := heap()
	_, peers, conns := crowd(t, n, websocket.Options{})
	each := (heap()-before)/n - int(unsafe.Sizeof(peer{}))
	t.Logf("%d B", each)
	require.LessOrEqual(t, each, 800)
	runtime.KeepAlive(peers)
	runtime.KeepAlive(conns)
}

// A large message that comes byte by byte costs no more than its size, also if each byte is a frame of its own.
func TestByteByByte(t *testing.T) {
	tier.NoRace(t, "it overwrites a buffer for each byte")
	most := tier.Choose(64<<10, 256<<10, 16<<20)
	for name, each := range map[string]bool{"one frame": false, "a frame each": true} {
		t.Run(name, func(t *testing.T) {
			size := most
			if each {
				size /= 8 // its frames have eight times as many bytes
			}
			w := newWorld(t)
			got, turns := "", 0
			a := &actor{turn: func(a *actor, t *act.Task) act.Directive {
				turns++
				m, err := a.conn.Receive()
				if err == nil {
					got = string(m.Data)
				}
				return a.conn.Next(t, err)
			}}
			p := &peer{most: 1}
			w.join(p, &websocket.Server{Handler: a.handler, Options: websocket.Options{MaxMessage: 16 << 20}})
			want := strings.Repeat("€uro ", size/7+1)[:size/7*7]
			says := text(want)
			if each {
				var frames strings.Builder
				frames.WriteString(begin(""))
				for i := range len(want) {
					frames.WriteString(more(want[i : i+1]))
				}
				frames.WriteString(last(""))
				says = frames.String()
			}
			for i := range len(says) {
				p.says = []byte{says[i]}
				p.reader.Wake()
				for n := 1; n > 0; {
					n, _ = w.S.Step(10)
				}
			}
			require.True(t, want == got)
			require.LessOrEqual(t, turns, len(says)+10)
		})
	}
}

// Members on two schedulers, over sockets: what any of them says goes to all, in one order.
func TestBroadcastOverTwoSchedulers(t *testing.T) {
	const members, talkers, lines = 16, 4, 50
	present := act.NewLocal(func(*act.Scheduler) *[]*websocket.Conn { return new([]*websocket.Conn) })
	v := &websocket.Server{Options: websocket.Options{Backlog: talkers * lines}}
	v.Handler = func(c *websocket.Conn, _ *httpd.Request) act.Action {
		all := present.Get(c.Scheduler())
		*all = append(*all, c)
		var publish func(*act.Scheduler)
		return act.Func(func(t *act.Task) act.Directive {
			if publish == nil {
				m, err := c.Receive()
				if err != nil {
					return c.Next(t, err)
				}
				said := websocket.Prepare(m.Type, m.Data)
				publish = func(s *act.Scheduler) {
					for _, c := range *present.Get(s) {
						_ = c.Push(said) // one that has gone
					}
				}
			}
			err := t.Scheduler().Group().Broadcast(publish)
			if err == nil {
				publish = nil
			}
			return c.Next(t, err)
		})
	}
	socket := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: v.Serve}).Serve}
	s := servertest.Start(t, act.Config{Schedulers: 2}, socket.Setup)
	var conns [members]net.Conn
	for i := range conns {
		c := servertest.Dial(t, socket.Addr())
		servertest.Send(t, c, handshake+"\r\n")
		head := ""
		for b := []byte{0}; !strings.HasSuffix(head, "\r\n\r\n"); head += string(b) {
			_, err := c.Read(b)
			require.NoError(t, err)
		}
		conns[i] = c
	}
	heard := make(chan string, members)
	for _, c := range conns {
		go func() {
			var all []string
			for len(all) < talkers*lines {
				said, err := readFrame(c)
				if err != nil {
					said = err.Error()
				}
				all = append(all, said)
			}
			heard <- strings.Join(all, "\n")
		}()
	}
	for i := range talkers {
		go func() {
			for n := range lines {
				_, _ = io.WriteString(conns[i], text(fmt.Sprint(i, " ", n)))
			}
		}()
	}
	first := servertest.Receive(t, heard)
	for i := range talkers {
		at := 0
		for n := range lines {
			next := strings.Index(first[at:], fmt.Sprintf("text %q", fmt.Sprint(i, " ", n)))
			require.GreaterOrEqual(t, next, 0, "%s", first)
			at += next
		}
	}
	for range members - 1 {
		require.Equal(t, first, servertest.Receive(t, heard))
	}
	s.Group.Shutdown(servertest.Drain)
	for _, c := range conns {
		said, err := readFrame(c)
		require.NoError(t, err)
		require.Equal(t, `close 1001 ""`, said)
		servertest.Send(t, c, bye(1001, ""))
		_, err = readFrame(c)
		require.Equal(t, io.EOF, err)
		require.NoError(t, c.Close())
	}
	require.NoError(t, s.End())
	require.Empty(t, s.Logs.FilterMessage("a task failed").All())
}

// A broadcast of 100 bytes to 10,000 connections, without what the system does with it.
func BenchmarkPush(b *testing.B) {
	tier.NoRace(b, "measures time")
	for _, each := range []int{1, 20} {
		b.Run(fmt.Sprint(each), func(b *testing.B) {
			w, _, conns := crowd(b, 10_000, websocket.Options{})
			m := websocket.Prepare(websocket.Text, make([]byte, 100))
			b.ReportAllocs()
			for b.Loop() {
				for range each {
					_ = w.S.Post(func(*act.Scheduler) {
						for _, c := range conns {
							_ = c.Push(m)
						}
					})
				}
				servertest.Step(b, w.S)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*each*len(conns)), "ns/push")
		})
	}
}
