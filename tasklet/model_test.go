package tasklet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/tasklet"
)

// The same random calls to a runner and to a simple model give the same history.

// word is a call of a runner, in a phase or between phases.
type word struct {
	verb string // schedule, suspend, resume, with
	who  int    // tasklet, or Rescheduler of resume
	d    tasklet.Directive
}

// sayer is implemented by the runner and the model.
type sayer interface {
	schedule(who int, d tasklet.Directive)
	suspend(who int)
	resume(r int, d tasklet.Directive)
	with(who int)
}

func (w word) to(s sayer) {
	switch w.verb {
	case "schedule":
		s.schedule(w.who, w.d)
	case "suspend":
		s.suspend(w.who)
	case "resume":
		s.resume(w.who, w.d)
	case "with":
		s.with(w.who)
	}
}

// plot is the calls of all phases, in order.
type plot struct {
	phases []act1
	at     int
}

type act1 struct {
	words  []word
	answer tasklet.Directive
}

func (p *plot) next() act1 {
	if p.at == len(p.phases) {
		return act1{answer: done}
	}
	p.at++
	return p.phases[p.at-1]
}

const cast = 4

// words returns fewer than n of them. An Inline has no ASYNC.
func words(r *rand.Rand, n int, inline bool) (all []word) {
	verbs := []string{"schedule", "schedule", "suspend", "resume", "resume", "with"}
	for range r.IntN(n) {
		d := []tasklet.Directive{sync_, sync_, wait, done}[r.IntN(4)]
		if !inline && r.IntN(4) == 0 {
			d = async
		}
		all = append(all, word{verbs[r.IntN(len(verbs))], r.IntN(cast), d})
	}
	return all
}

// twin is the model: entries in a slice, the queue in another, and what the executor has in a third.
type twin struct {
	strings.Builder
	plot
	inline, busy bool
	here         bool // on the thread
	known        [cast]*life
	in           [cast]bool
	queue        []*life
	sent         []*life
	rights       []*life
}

type life struct {
	who           int
	waiting, over bool
	handed, sent  bool // to the executor
	in            bool
	said, resumed tasklet.Directive
}

func (m *twin) life(who int) *life {
	if m.known[who] == nil {
		m.known[who] = &life{who: who}
	}
	return m.known[who]
}

func (m *twin) place(l *life, d tasklet.Directive) {
	m.queue = slices.DeleteFunc(m.queue, func(q *life) bool { return q == l })
	l.waiting, l.handed = false, false
	switch d {
	case sync_:
		m.queue = append(m.queue, l)
	case async:
		l.handed = true
		if !l.sent {
			l.sent = true
			m.sent = append(m.sent, l)
		}
	case wait:
		l.waiting = true
	case done:
		l.over = true
		m.known[l.who] = nil
	}
}

func (m *twin) schedule(who int, d tasklet.Directive) {
	if d == done && m.known[who] == nil {
		return
	}
	l := m.life(who)
	if d == wait {
		l.said, l.resumed = 0, 0
	}
	if l.in && d != done {
		if d != wait {
			l.said = d
		}
	} else {
		m.place(l, d)
	}
	m.drain()
}

func (m *twin) suspend(who int) {
	l := m.life(who)
	if !l.in {
		m.place(l, l.remembered(wait))
	}
	m.rights = append(m.rights, l)
}

func (l *life) remembered(d tasklet.Directive) tasklet.Directive {
	if d == wait {
		for _, r := range []tasklet.Directive{l.resumed, l.said} {
			if r != 0 {
				d = r
			}
		}
		l.resumed = 0
	}
	l.said = 0
	return d
}

func (m *twin) resume(r int, d tasklet.Directive) {
	if len(m.rights) == 0 {
		return
	}
	l := m.rights[r*7%len(m.rights)]
	switch {
	case l.over, d == wait:
		return
	case d == done, l.waiting:
		m.place(l, d)
	default:
		l.said, l.resumed = 0, d
	}
	m.drain()
}

func (m *twin) with(who int) {
	if m.in[who] {
		m.WriteString("!")
		return
	}
	outer := m.inline && !m.busy
	m.busy = m.busy || outer
	l := m.life(who)
	m.place(l, 0)
	m.phase(l)
	if outer {
		m.busy = false
		m.drain()
	}
}

func (m *twin) phase(l *life) {
	m.WriteString(name(l.who, m.here))
	l.in, m.in[l.who] = true, true
	a := m.next()
	for _, w := range a.words {
		w.to(m)
	}
	l.in, m.in[l.who] = false, false
	if !l.over {
		m.place(l, l.remembered(a.answer))
	}
}

// drain runs what an Inline runs at once, and Step later.
func (m *twin) drain() {
	if m.inline && !m.busy {
		m.run()
	}
}

func (m *twin) run() {
	m.busy = true
	for len(m.queue)+len(m.sent) > 0 {
		m.here = !m.inline
		for len(m.queue) > 0 {
			l := m.queue[0]
			m.queue = m.queue[1:]
			m.phase(l)
		}
		m.here = false
		sent := m.sent
		m.sent = nil
		for _, l := range sent {
			if l.sent = false; l.handed {
				m.place(l, 0)
				m.phase(l)
			}
		}
	}
	m.busy = false
}

// name is a digit for a phase on the thread, and a letter for one elsewhere.
func name(who int, here bool) string {
	if here {
		return fmt.Sprint(who)
	}
	return string(rune('a' + who))
}

// real makes the calls of a runner.
type real struct {
	history
	plot
	t      *testing.T
	s      *tasklet.Runner
	cast   [cast]tasklet.Tasklet
	rights []tasklet.Rescheduler
}

func (p *real) schedule(who int, d tasklet.Directive) {
	require.NoError(p.t, p.s.Schedule(p.cast[who], d))
}
func (p *real) suspend(who int) { p.rights = append(p.rights, p.s.Suspend(p.cast[who])) }

func (p *real) resume(r int, d tasklet.Directive) {
	if len(p.rights) > 0 {
		require.NoError(p.t, p.rights[r*7%len(p.rights)].Resume(d))
	}
}

func (p *real) with(who int) {
	if err := tasklet.With(p.s, p.cast[who]); err != nil {
		require.ErrorIs(p.t, err, tasklet.ErrInPhase)
		p.note("!")
	}
}

func newReal(t *testing.T, r *tasklet.Runner, plot plot) *real {
	p := &real{t: t, s: r, plot: plot}
	for i := range p.cast {
		p.cast[i] = tasklet.New(func(*tasklet.Runner) tasklet.Directive {
			p.note(name(i, p.s.Act() != nil && p.s.Act().Internals().Here()))
			a := p.next()
			for _, w := range a.words {
				w.to(p)
			}
			return a.answer
		})
	}
	return p
}

func TestModel(t *testing.T) {
	for seed := range tier.Choose[uint64](1000, 100, 10_000) { // the full tier runs under the race detector
		for _, inline := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 0))
			var said plot
			for range r.IntN(60) {
				said.phases = append(said.phases, act1{words(r, 4, inline), []tasklet.Directive{sync_, wait, wait, done}[r.IntN(4)]})
				if !inline && r.IntN(4) == 0 {
					said.phases[len(said.phases)-1].answer = async
				}
			}
			exec := &later{}
			a := act.New(act.Config{Executor: exec})
			s := tasklet.RunnerOf(a)
			if inline {
				s = tasklet.Inline()
			}
			want, got := &twin{plot: said, inline: inline}, newReal(t, s, said)
			for range 10 {
				for _, w := range words(r, 5, inline) {
					w.to(want)
					w.to(got)
				}
				want.run()
				steps(t, a, exec)
				require.Equal(t, want.String(), got.take(), "seed %d, inline: %v", seed, inline)
				want.Reset()
			}
			_ = a.Close()
		}
	}
}
