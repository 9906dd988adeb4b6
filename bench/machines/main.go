// Command machines measures how long a message takes from one machine to another that shares a PostgreSQL server with it, and how
// many a second get through: package topic on topic/postgres, and Centrifugo with its broker on PostgreSQL. See ../README.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/internal/testing/pgserver"
)

// Options are the flags.
type Options struct {
	Centrifugo                       string
	Runs, Rate, Topics, Window, Size int
	Last                             time.Duration
}

func main() {
	var o Options
	flag.StringVar(&o.Centrifugo, "centrifugo", "", "measure Centrifugo of this `path`, too")
	flag.IntVar(&o.Runs, "runs", 3, "how often each system is measured")
	flag.IntVar(&o.Rate, "rate", 1000, "messages a second, whatever becomes of them")
	flag.IntVar(&o.Topics, "topics", 16, "topics, which get the messages in turn")
	flag.IntVar(&o.Window, "window", 256, "then as many messages a second as there can be, with so many under way")
	flag.IntVar(&o.Size, "size", 100, "bytes of a message")
	flag.DurationVar(&o.Last, "last", 10*time.Second, "how long each of the two takes")
	flag.Parse()
	valid := min(o.Runs, o.Rate, o.Topics, o.Window) >= 1 && o.Size >= 40 && o.Last > 0
	command.Main("bench/machines", valid, "numbers start at 1, and -size at 40", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, starts, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) (err error) {
	b, err := build.Temporary()
	if err != nil {
		return err
	}
	defer b.Remove()
	pg, err := pgserver.Start(pgserver.Config{Settings: map[string]string{"shared_buffers": "256MB", "max_wal_size": "4GB"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Close()) }()
	fmt.Fprintf(out, "%d bytes, %d topics; %d a second for %v, then %d under way for %[4]v\n", o.Size, o.Topics, o.Rate, o.Last, o.Window)
	fmt.Fprintf(out, "%-12s%12s%12s%12s\n", "", "p50", "p99", "a second")
	all := []system{&daimon{}}
	if o.Centrifugo != "" {
		all = append(all, &centrifugo{})
	}
	for n := range o.Runs {
		for _, s := range all {
			dsn, err := pg.Create(fmt.Sprintf("%v%d", s, n))
			if err != nil {
				return err
			}
			if err := o.measure(ctx, out, s, b, dsn); err != nil {
				return fmt.Errorf("%v: %w", s, err)
			}
		}
	}
	return nil
}

// system is two machines, and a client of each.
type system interface {
	process(b build.Builder, o Options, dsn string) (server.Process, error) // of either machine
	connect(m *measurement, first, second string) error                     // delivers to m what arrives at the second one
	publish(topic string, data []byte) error                                // at the first one
	close()
}

// measure measures a system once, and prints a line.
func (o Options) measure(ctx context.Context, out io.Writer, s system, b build.Builder, dsn string) error {
	first, err := s.process(b, o, dsn)
	if err != nil {
		return err
	}
	second := first
	stop, err := server.StartAll(ctx, []*server.Process{&first, &second})
	defer stop()
	if err != nil {
		return err
	}
	m := &measurement{Options: o, system: s, left: map[int]time.Time{}}
	m.arrived.L = &m.mu
	defer s.close()
	if err := s.connect(m, first.Addr(), second.Addr()); err != nil {
		return err
	}
	for range o.Topics { // warms up, counts nowhere
		if err := m.say(time.Now()); err != nil {
			return err
		}
	}
	if err := m.await(1); err != nil {
		return err
	}
	m.took = nil
	start := time.Now()
	for at := start; at.Before(start.Add(o.Last)); at = at.Add(time.Second / time.Duration(o.Rate)) {
		time.Sleep(time.Until(at))
		if err := m.say(at); err != nil {
			return err
		}
	}
	if err := m.await(1); err != nil {
		return err
	}
	slices.Sort(m.took)
	quantile := func(q float64) time.Duration {
		return m.took[int(q*float64(len(m.took)-1))].Round(10 * time.Microsecond)
	}
	p50, p99, before := quantile(0.5), quantile(0.99), m.sent
	for start = time.Now(); time.Since(start) < o.Last; {
		if err := errors.Join(m.await(o.Window), m.say(time.Now())); err != nil {
			return err
		}
	}
	err = m.await(1)
	fmt.Fprintf(out, "%-12v%12v%12v%12.0f\n", s, p50, p99, float64(m.sent-before)/time.Since(start).Seconds())
	return err
}

// measurement is what is published at one machine, and arrives at the other.
type measurement struct {
	Options
	system
	sent int

	mu      sync.Mutex
	arrived sync.Cond
	left    map[int]time.Time // when each message that is under way was to be published
	took    []time.Duration
	err     error
}

// say publishes a message that was to be published at a moment.
func (m *measurement) say(at time.Time) error {
	m.sent++
	m.mu.Lock()
	m.left[m.sent] = at
	m.mu.Unlock()
	data := fmt.Appendf(nil, `{"number":%d,"fill":"`, m.sent)
	data = append(data, bytes.Repeat([]byte("x"), m.Size-len(data)-2)...)
	return m.publish(name(m.sent%m.Topics), append(data, `"}`...))
}

// name is a topic.
func name(i int) string { return fmt.Sprint("news", i) }

// hear takes a message, which must not have come before.
func (m *measurement) hear(data []byte) {
	now := time.Now()
	var message struct{ Number int }
	err := json.Unmarshal(data, &message)
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.left[message.Number]
	if err != nil || !ok {
		m.err = fmt.Errorf("unknown, or came twice: %q", data)
	}
	delete(m.left, message.Number)
	m.took = append(m.took, now.Sub(at))
	m.arrived.Signal()
}

func (m *measurement) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = errors.Join(m.err, err)
	m.arrived.Signal()
}

// await waits until less than n messages are under way.
func (m *measurement) await(n int) error {
	defer time.AfterFunc(time.Minute, func() { m.fail(errors.New("messages have not arrived after a minute")) }).Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.left) >= n && m.err == nil {
		m.arrived.Wait()
	}
	return m.err
}
