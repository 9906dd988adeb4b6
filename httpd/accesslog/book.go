package accesslog

import (
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
)

const (
	handAt     = 32 << 10               // bytes that are handed to the writer at once
	handWithin = 100 * time.Millisecond // and how long fewer may wait for more
	mostBehind = 1 << 20                // bytes that may wait for the writer
)

// book has the lines of a scheduler. There are at most three batches: one that gets lines, one that waits for the writer,
// and one that is being written. Without a backlog there are two, in turns, and nothing is allocated.
type book struct {
	log    *Log
	s      *act.Scheduler
	writer *writer
	timer  act.Timer
	lines  *batch // of the scheduler
	count  uint64
	closed bool
	clock  clock

	waiting atomic.Pointer[batch] // set by the scheduler, taken by either
	free    atomic.Pointer[batch] // set by the writer, taken by the scheduler
}

// batch is some lines.
type batch struct {
	text  []byte
	lines uint64
}

// newBatch has room for a last line of the usual length.
func newBatch() *batch { return &batch{text: make([]byte, 0, handAt+4<<10)} }

// add appends a line.
func (b *book) add(w *httpd.Response, r *httpd.Request) {
	now := b.s.Now()
	if now >= b.clock.until {
		b.clock.renew(now, b.s.Clock().Wall())
	}
	b.lines.text = b.log.Format.append(b.lines.text, &b.clock, b.s, w, r)
	b.lines.lines++
	b.count++
	switch {
	case b.closed:
		b.lose(b.lines)
	case len(b.lines.text) >= handAt:
		b.Expire()
	case !b.timer.Armed():
		b.s.CallAt(&b.timer, now+handWithin, b)
	}
}

// Expire hands the lines to the writer.
func (b *book) Expire() {
	b.timer.Stop()
	if b.lines.lines == 0 {
		return
	}
	if behind := b.waiting.Swap(nil); behind == nil {
		full := b.lines
		if b.lines = b.free.Swap(nil); b.lines == nil {
			b.lines = newBatch()
		}
		b.waiting.Store(full)
	} else {
		if len(behind.text)+len(b.lines.text) <= mostBehind {
			behind.text = append(behind.text, b.lines.text...)
			behind.lines += b.lines.lines
			b.lines.reset()
		} else {
			b.lose(b.lines)
		}
		b.waiting.Store(behind)
	}
	b.writer.wake()
}

func (b *book) lose(lines *batch) {
	b.log.lost.Add(lines.lines)
	lines.reset()
}

func (a *batch) reset() { a.text, a.lines = a.text[:0], 0 }

// Close is called with that of the scheduler, when all its tasks have ended.
func (b *book) Close() error {
	b.Expire()
	b.closed = true
	b.log.leave(b.writer)
	return nil
}

// Counts implements facts.Counter. The lost lines of all schedulers are counted together, so the first scheduler
// reports them.
func (b *book) Counts(add func(name string, n uint64)) {
	add("accesslog_lines_total", b.count)
	if b.s.Index() == 0 {
		add("accesslog_lost_total", b.log.lost.Load())
	}
}

// clock has the time of day as text, made once a second.
type clock struct {
	common, iso, zone []byte
	until             time.Duration // on the clock of the scheduler
}

func (c *clock) renew(now time.Duration, wall time.Time) {
	c.common = wall.AppendFormat(c.common[:0], "02/Jan/2006:15:04:05 -0700")
	c.iso = wall.AppendFormat(c.iso[:0], "2006-01-02T15:04:05")
	c.zone = wall.AppendFormat(c.zone[:0], "Z07:00")
	c.until = now + time.Second - time.Duration(wall.Nanosecond())
}

// millisecond returns that of the second, from 0 to 999.
func (c *clock) millisecond(now time.Duration) int {
	return int((time.Second - (c.until - now)) / time.Millisecond)
}
