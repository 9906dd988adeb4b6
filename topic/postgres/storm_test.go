package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
	"github.com/daimon-go/daimon/topic/postgres"
)

const (
	processes  = 3
	publishers = 8 // of a process
	topics     = 10
)

// The environment of a process of the storm.
const (
	databaseVariable = "DAIMON_TOPICS_DATABASE" // makes this program such a process
	schemaVariable   = "DAIMON_TOPICS_SCHEMA"
	numberVariable   = "DAIMON_TOPICS_NUMBER"
)

// report is what a process of the storm writes.
type report struct {
	Kind     byte
	Complete bool
	Client   uint32
	Wish     uint32 // that this is for
	Topic    uint32
	Position position
	Data     uint64 // a publisher, and a number that it has counted
}

const (
	got      = iota // by a client
	followed        // as well
	ended           // as well: it is to connect again
	stored          // Data of a publisher
	quiet           // a publisher publishes no more
)

// wish is what a client of the storm wants of a process: to follow a topic on a new connection.
type wish struct {
	Stop     bool // no client: the publishers are to stop
	Client   uint32
	Number   uint32
	Topic    uint32
	Position position
}

type position struct {
	Epoch  [24]byte
	Offset uint64
}

func (p position) of() topic.Position {
	return topic.Position{Epoch: string(bytes.TrimRight(p.Epoch[:], "\x00")), Offset: p.Offset}
}

func positionOf(at topic.Position) (p position) {
	copy(p.Epoch[:], at.Epoch)
	p.Offset = at.Offset
	return p
}

func name(n uint32) string { return fmt.Sprint("t/", n) }

// process is one of the storm.
type process struct {
	b      *topic.Broker
	number int
	out    chan report
	stop   chan struct{}
}

// runProcess is the main function of a process, until it is killed.
func runProcess() error {
	e, err := postgres.Open(context.Background(), os.Getenv(databaseVariable), postgres.Options{Schema: os.Getenv(schemaVariable)})
	if err != nil {
		return err
	}
	x := &process{
		b:   topic.New(topic.Config{Engine: e, Rules: []topic.Rule{{Filter: "t/#", History: 1 << 20}}}),
		out: make(chan report, 1<<12), stop: make(chan struct{}),
	}
	if _, err := fmt.Sscan(os.Getenv(numberVariable), &x.number); err != nil {
		return err
	}
	go x.write()
	return act.Run(context.Background(), act.Config{Schedulers: 2}, x.b.Setup, func(s *act.Scheduler) error {
		s.Internals().KeepRunning(1)
		if s.Index() == 0 {
			go x.read()
			for i := range publishers {
				s.Spawn(&publisher{x: x, data: uint64(x.number*publishers+i) << 32})
			}
		}
		return nil
	})
}

// write writes reports.
func (x *process) write() {
	w := bufio.NewWriterSize(os.Stdout, 1<<16)
	for r := range x.out {
		if err := binary.Write(w, binary.LittleEndian, r); err != nil {
			panic(err)
		}
		if len(x.out) == 0 {
			_ = w.Flush()
		}
	}
}

// read reads wishes.
func (x *process) read() {
	for {
		var w wish
		if err := binary.Read(os.Stdin, binary.LittleEndian, &w); err != nil {
			os.Exit(1) // the test has ended
		}
		if w.Stop {
			close(x.stop)
		} else {
			go x.serve(w)
		}
	}
}

// serve is a connection of a client.
func (x *process) serve(w wish) {
	sub := x.b.Subscribe(nil, topic.Options{Overflow: topic.End, Queue: 1000})
	defer sub.Close()
	r := report{Client: w.Client, Wish: w.Number, Topic: w.Topic}
	if err := sub.Follow(name(w.Topic), w.Position.of()); err != nil {
		panic(err)
	}
	for {
		m, err := sub.Receive(context.Background())
		switch {
		case err != nil:
			r.Kind = ended
			x.out <- r
			return
		case m.Kind == topic.Followed:
			r.Kind, r.Complete, r.Position = followed, m.Complete, positionOf(m.Position)
		default:
			r.Kind, r.Position, r.Data = got, positionOf(m.Position), binary.BigEndian.Uint64(m.Data)
		}
		x.out <- r
	}
}

// publisher publishes one message after the other to any topics.
type publisher struct {
	x    *process
	data uint64
	f    *future.Future[topic.Position]
	wait act.Action
}

func (p *publisher) Act(t *act.Task) act.Directive {
	for {
		if p.f == nil {
			select {
			case <-p.x.stop:
				p.x.out <- report{Kind: quiet}
				return act.Done
			default:
			}
			f, err := p.x.b.Confirm(topic.Publication{
				Topic: name(rand.Uint32N(topics)), Data: binary.BigEndian.AppendUint64(nil, p.data+1),
			})
			if err != nil {
				return listener.Next(t, err)
			}
			p.f, p.wait = f, f.Await()
			p.data++
		}
		if d := p.wait.Act(t); d != act.Done {
			return d
		}
		p.x.out <- report{Kind: stored, Data: p.data}
		p.f = nil
	}
}

// client is a client of the storm. It knows how far it has got, and outlives the processes.
type client struct {
	number, topic, wish uint32
	at                  position
	begun               bool
	process             *worker
}

// worker is a process as the test sees it.
type worker struct {
	cmd     *exec.Cmd
	in      io.Writer
	stopped bool
}

// storm is the test.
type storm struct {
	*require.Assertions
	t         testing.TB
	schema    string
	started   int
	processes []*worker
	clients   []*client
	reports   chan []report

	contents            [topics][]uint64           // what was got at each offset
	latest              map[uint64]*[topics]uint64 // of each publisher, in each topic
	confirmed           []uint64
	delivered           int
	quiet               int
	kills, stops, moves int
}

// TestStorm has three processes publish and follow topics, and kills and stops them at random moments. Their clients go to
// others. All clients of a topic get the same messages, each offset once and in order. Each message is stored at most
// once, in the order of its publisher, and what was confirmed was stored.
func TestStorm(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	e, err := postgres.Open(t.Context(), server(t).Socket(database), postgres.Options{Schema: schema})
	require.NoError(t, err)
	defer e.Close()
	s := &storm{Assertions: require.New(t), t: t, schema: schema, reports: make(chan []report, 16), latest: map[uint64]*[topics]uint64{}}
	for range processes {
		s.start()
	}
	for i := range uint32(tier.Choose(30, 30, 300)) {
		c := &client{number: i, topic: i % topics, at: positionOf(topic.Earliest)}
		s.clients = append(s.clients, c)
		s.connect(c)
	}
	enough, strikes := tier.Choose(0, 50_000, 10_000_000), tier.Choose(0, 12, 200)
	for strike := range strikes {
		s.until(func() bool { return s.delivered > enough*strike/strikes })
		s.strike()
	}
	s.until(func() bool { return s.delivered > enough })
	for _, p := range s.processes {
		s.goOn(p)
		s.wish(p, wish{Stop: true})
	}
	s.until(func() bool { return s.quiet == processes*publishers })
	for i := range s.contents {
		var last uint64
		s.NoError(e.Pool().QueryRow(t.Context(), fmt.Sprintf(`SELECT last FROM %q.topic WHERE name = $1`, schema), name(uint32(i))).Scan(&last))
		s.until(func() bool {
			return !slices.ContainsFunc(s.clients, func(c *client) bool { return c.topic == uint32(i) && c.at.Offset < last })
		})
		s.EqualValues(last, len(s.contents[i]))
	}
	there := map[uint64]bool{}
	for _, all := range s.contents {
		for _, data := range all {
			there[data] = true
		}
	}
	for _, data := range s.confirmed {
		s.True(there[data], "a confirmed message is lost")
	}
	t.Logf("%d messages, %d deliveries, %d kills, %d stops, %d moves", len(there), s.delivered, s.kills, s.stops, s.moves)
}

// start starts a process.
func (s *storm) start() {
	self, err := os.Executable()
	s.NoError(err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), databaseVariable+"="+server(s.t).Socket(database), schemaVariable+"="+s.schema,
		fmt.Sprint(numberVariable, "=", s.started))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	s.NoError(err)
	out, err := cmd.StdoutPipe()
	s.NoError(err)
	s.NoError(cmd.Start())
	p := &worker{cmd: cmd, in: in}
	s.t.Cleanup(func() { _ = s.end(p) })
	s.started++
	s.processes = append(s.processes, p)
	go func() {
		for r, size := bufio.NewReaderSize(out, 1<<16), binary.Size(report{}); ; {
			if _, err := r.Peek(size); err != nil {
				return
			}
			b, _ := r.Peek(r.Buffered() / size * size)
			all := make([]report, len(b)/size)
			_, _ = binary.Decode(b, binary.LittleEndian, all)
			_, _ = r.Discard(len(b))
			select {
			case s.reports <- all:
			case <-s.t.Context().Done():
				return
			}
		}
	}()
}

// end kills a process.
func (s *storm) end(p *worker) error {
	_ = p.cmd.Process.Kill()
	return p.cmd.Wait()
}

func (s *storm) wish(p *worker, w wish) { _ = binary.Write(p.in, binary.LittleEndian, w) }

// connect connects a client to a process that is not stopped.
func (s *storm) connect(c *client) {
	for c.process = nil; c.process == nil || c.process.stopped; {
		c.process = s.processes[rand.IntN(len(s.processes))]
	}
	c.wish++
	c.begun = false
	s.wish(c.process, wish{Client: c.number, Number: c.wish, Topic: c.topic, Position: c.at})
}

// until takes reports until what they say is enough.
func (s *storm) until(enough func() bool) {
	for !enough() {
		select {
		case all := <-s.reports:
			for _, r := range all {
				s.take(r)
			}
		case <-time.After(2 * time.Minute):
			s.FailNow("nothing happens any more")
		}
	}
}

func (s *storm) take(r report) {
	switch r.Kind {
	case stored:
		s.confirmed = append(s.confirmed, r.Data)
		return
	case quiet:
		s.quiet++
		return
	}
	c := s.clients[r.Client]
	if r.Wish != c.wish {
		return // it has left that connection
	}
	switch r.Kind {
	case ended:
		s.connect(c)
	case followed:
		s.False(c.begun)
		s.True(r.Complete, "%v followed from %v, at %v", r.Topic, c.at.of(), r.Position.of())
		if c.at.Offset > 0 {
			s.Equal(c.at, r.Position)
		}
		s.Equal(c.at.Offset, r.Position.Offset)
		c.at, c.begun = r.Position, true
	default:
		s.True(c.begun)
		c.at.Offset++
		if r.Position != c.at {
			s.Equal(c.at.of(), r.Position.of())
		}
		s.delivered++
		s.content(r)
	}
}

// content compares a message with what others have got.
func (s *storm) content(r report) {
	all := &s.contents[r.Topic]
	switch {
	case r.Position.Offset <= uint64(len(*all)):
		if (*all)[r.Position.Offset-1] != r.Data {
			s.Fail("two messages with one offset")
		}
		return
	case r.Position.Offset > uint64(len(*all))+1:
		s.Fail("a hole")
	}
	*all = append(*all, r.Data)
	latest := s.latest[r.Data>>32]
	if latest == nil {
		latest = new([topics]uint64)
		s.latest[r.Data>>32] = latest
	}
	s.Less(latest[r.Topic], r.Data, "a message of a publisher after a later one, or twice")
	latest[r.Topic] = r.Data
}

// strike does something to a process.
func (s *storm) strike() {
	i := rand.IntN(len(s.processes))
	p := s.processes[i]
	running := 0
	for _, p := range s.processes {
		if !p.stopped {
			running++
		}
	}
	switch n := rand.IntN(4); {
	case p.stopped && n > 0:
		s.goOn(p)
	case n == 1 && running > 1:
		s.NoError(p.cmd.Process.Signal(syscall.SIGSTOP))
		p.stopped = true
		s.stops++
		s.move(p, 2) // the others do not notice
	case n > 1:
		s.ErrorContains(s.end(p), "signal: killed")
		s.processes = slices.Delete(s.processes, i, i+1)
		s.start()
		s.kills++
		s.move(p, 1)
	default:
		s.moves++
		s.move(p, 3)
	}
}

func (s *storm) goOn(p *worker) {
	s.NoError(p.cmd.Process.Signal(syscall.SIGCONT))
	p.stopped = false
}

// move connects one of n clients of a process to another one.
func (s *storm) move(p *worker, n int) {
	for _, c := range s.clients {
		if c.process == p && rand.IntN(n) == 0 {
			s.connect(c)
		}
	}
}
