package stage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// TestEveryStepIsAllowed has several engines take their steps in random order over one store, while requests come
// from anywhere, engines die or fall asleep, answers of the store get lost, and time passes. After whatever is done,
// each task is compared with what it was: what may have become of it follows from what was done, and from nothing
// else. In the end all is resumed, and one engine finishes everything.
func TestEveryStepIsAllowed(t *testing.T) {
	for seed := range tier.Choose[uint64](100, 30, 1000) { // the full tier runs under the race detector
		m := newModel(seed)
		for range 300 {
			m.something()
			if m.wrong != nil {
				require.NoError(t, m.wrong, "seed %d, after\n%s", seed, strings.Join(m.history[max(0, len(m.history)-25):], "\n"))
			}
		}
		require.NoError(t, m.finish(), "seed %d, after\n%s", seed, strings.Join(m.history[max(0, len(m.history)-25):], "\n"))
	}
}

const (
	modelLease    = 10 * time.Second
	modelAttempts = 3
)

var modelChain = stage.Begin("A").Then("a-b", "p", "B").Then("b-c", "p", "C")

type model struct {
	rand    *rand.Rand
	now     time.Duration
	store   *unreliable
	engines []*stage.Engine
	works   []*stage.Work // also of engines that are dead by now
	holds   map[stage.Lease]*hold
	stopped map[stage.ID]bool // Suspend or Cancel has said true
	history []string
	wrong   error
	honest  bool // the store answers
}

// hold is what has happened to a task under one lease.
type hold struct {
	outcomes []error // of its processor
	causes   []error // of its context, as seen before some step
}

var (
	errBad   = errors.New("bad")
	errWorse = stage.Permanent(errors.New("worse"))
)

func newModel(seed uint64) *model {
	m := &model{rand: rand.New(rand.NewPCG(seed, 0)), holds: map[stage.Lease]*hold{}, stopped: map[stage.ID]bool{}}
	m.store = &unreliable{Store: memory.New(m.wall), answer: m.answer}
	for range 3 {
		m.engines = append(m.engines, m.engine())
	}
	return m
}

func (m *model) wall() time.Time { return time.Unix(1e9, 0).Add(m.now) }

func (m *model) engine() *stage.Engine {
	e, err := stage.New(stage.Config{
		Store: m.store, Kinds: map[string]stage.Kind{"k": {Chain: modelChain}}, Provider: stage.Processors{"p": stage.ProcessorFunc(m.process)},
		Workers: 2, Lease: modelLease, Attempts: modelAttempts, Logger: zap.NewNop(),
		Backoff: func(n int) time.Duration { return time.Duration(n) * time.Second },
	})
	if err != nil {
		panic(err)
	}
	stage.Stepped(e, func() time.Duration { return m.now })
	return e
}

// process is every processor.
func (m *model) process(ctx context.Context, t *stage.Task) (stage.Commit, error) {
	var err error
	switch m.rand.IntN(12) {
	case 0:
		err = errBad
	case 1:
		err = errWorse
	case 2:
		err = stage.ErrSuspended
	case 3:
		err = stage.CheckSuspended(ctx)
	case 4:
		refuse := func(context.Context, stage.Tx) error {
			m.hold(t.Lease()).outcomes = append(m.hold(t.Lease()).outcomes, errBad)
			return errBad
		}
		return refuse, nil
	}
	m.hold(t.Lease()).outcomes = append(m.hold(t.Lease()).outcomes, err)
	return func(_ context.Context, tx stage.Tx) error { tx.SetData(append(t.Data, t.Stage...)); return nil }, err
}

func (m *model) hold(l stage.Lease) *hold {
	if m.holds[l] == nil {
		m.holds[l] = &hold{}
	}
	return m.holds[l]
}

// something is one of all things that can happen.
func (m *model) something() {
	ctx, e := context.Background(), m.engines[m.rand.IntN(len(m.engines))]
	switch m.rand.IntN(30) {
	case 0:
		m.do("enqueue", m.added, func() { _, _ = e.Enqueue(ctx, "k", nil) })
	case 1:
		m.now += time.Duration(m.rand.Int64N(int64(modelLease)))
	case 2:
		m.now += time.Duration(m.rand.Int64N(int64(time.Second)))
	case 3:
		m.do("heartbeat", m.renewed, e.Beat)
	case 4:
		m.do("expire", unchanged, e.Expire)
	case 5:
		if m.rand.IntN(4) == 0 { // it dies, or stands still, and another comes
			m.engines[slices.Index(m.engines, e)] = m.engine()
		}
	case 6:
		if m.rand.IntN(2) == 0 {
			m.do("interrupt", unchanged, e.Interrupt)
			m.engines[slices.Index(m.engines, e)] = m.engine()
		}
	case 7, 8:
		m.request(e)
	case 9, 10, 11, 12:
		m.do("fire", m.claimed, func() { _, _ = e.Fire(ctx) })
		for _, w := range e.Claimed() {
			if !slices.Contains(m.works, w) {
				m.works = append(m.works, w)
			}
		}
	default:
		m.step()
	}
}

// step takes the next step of some work.
func (m *model) step() {
	if len(m.works) == 0 {
		return
	}
	i := m.rand.IntN(len(m.works))
	w := m.works[i]
	if cause := w.Cause(); cause != nil {
		m.hold(w.Lease()).causes = append(m.hold(w.Lease()).causes, cause)
	}
	if t, _ := m.store.Store.Get(context.Background(), w.Lease().Task); t.Wanted == stage.Suspension { // so says the store
		m.hold(w.Lease()).causes = append(m.hold(w.Lease()).causes, stage.ErrSuspended)
	}
	over := false
	m.do(fmt.Sprintf("step of %v", w.Lease()), func(was, is stage.Task) string { return m.stepped(w, was, is) }, func() { over = w.Step() })
	if cause := w.Cause(); cause != nil {
		m.hold(w.Lease()).causes = append(m.hold(w.Lease()).causes, cause)
	}
	if !over {
		return
	}
	m.works = slices.Delete(m.works, i, i+1)
	t, _ := m.store.Store.Get(context.Background(), w.Lease().Task)
	if t.Token == w.Lease().Token && t.Status == stage.InProcessing && t.Due.After(m.wall()) && !errors.Is(w.Cause(), stage.ErrLeaseLost) &&
		!w.Expired() { // it may not know of a renewal
		m.wrong = fmt.Errorf("the last step of %v leaves its task: %+v", w.Lease(), t)
	}
}

// request suspends, resumes or cancels some task through e.
func (m *model) request(e *stage.Engine) {
	ctx, tasks := context.Background(), m.all()
	if len(tasks) == 0 {
		return
	}
	id := tasks[m.rand.IntN(len(tasks))].ID
	name, failed, f := "suspend", false, e.Suspend
	switch m.rand.IntN(8) {
	case 0:
		name, f = "cancel", e.Cancel
	case 1, 2:
		name, f = "resume", e.Resume
	case 3, 4:
		name, failed, f = "resume failed", true, e.ResumeFailed
	}
	var ok bool
	var err error
	m.do(fmt.Sprint(name, " ", id), func(was, is stage.Task) string {
		if was.ID != id {
			return unchanged(was, is)
		}
		return requested(name, failed, ok, err, was, is)
	}, func() { ok, err = f(ctx, id) })
	switch {
	case err != nil: // it may have been done
		m.stopped[id] = false
	case ok:
		m.stopped[id] = name == "suspend" || name == "cancel"
	}
}

// do does something, and looks what has become of each task.
func (m *model) do(what string, allowed func(was, is stage.Task) string, f func()) {
	m.history = append(m.history, fmt.Sprintf("%8v %s", m.now.Round(time.Millisecond), what))
	before := m.all()
	f()
	for i, is := range m.all() {
		was := stage.Task{}
		if i < len(before) {
			was = before[i]
		}
		was.Changed, is.Changed = time.Time{}, time.Time{}
		if !reflect.DeepEqual(was, is) {
			m.history = append(m.history, fmt.Sprintf("         task %d: %s %s %q, attempt %d, due %v, token %d", is.ID, is.Stage, is.Status, is.Wanted, is.Attempt, is.Due.Sub(time.Unix(1e9, 0)), is.Token))
		}
		if says := allowed(was, is); says != "" && m.wrong == nil {
			m.wrong = fmt.Errorf("%s: %s:\n was %+v\n is  %+v", what, says, was, is)
		}
	}
}

func (m *model) all() []stage.Task {
	tasks, _ := m.store.Store.List(context.Background(), stage.Selection{})
	return tasks
}

func unchanged(was, is stage.Task) string {
	if !reflect.DeepEqual(was, is) {
		return "nothing was to change"
	}
	return ""
}

func (m *model) added(was, is stage.Task) string {
	if was.ID != 0 {
		return unchanged(was, is)
	}
	return rule(is.Stage == "A" && is.Status == stage.Normal && is.Due.Equal(m.wall()) && is.Attempt == 0, "a new task is due at the first stage")
}

// renewed: only the end of a lease that has not ended may have moved. A task whose claim was not answered may have been
// given back.
func (m *model) renewed(was, is stage.Task) string {
	if was.Status != stage.InProcessing || !was.Due.After(m.wall()) {
		return unchanged(was, is)
	}
	if is.Status == stage.InProcessing && is.Due.Equal(m.wall().Add(modelLease)) {
		is.Due = was.Due
	}
	if is.Status == stage.InProcessing || slices.ContainsFunc(m.works, func(w *stage.Work) bool { return w.Lease() == was.Lease() }) {
		return unchanged(was, is)
	}
	m.hold(was.Lease()).causes = append(m.hold(was.Lease()).causes, stage.ErrInterrupted)
	return m.returned(was, is)
}

// claimed: a task that is due may have been claimed.
func (m *model) claimed(was, is stage.Task) string {
	if is.Token == was.Token {
		return unchanged(was, is)
	}
	s, _ := modelChain.Find(was.Stage)
	at, attempt := was.Stage, was.Attempt
	switch {
	case s.Processor != "":
		before, _ := modelChain.Previous(at)
		at, attempt = before.Name, attempt+1
	case was.Status != stage.InProcessing:
		next, _ := modelChain.Next(at)
		at = next.Name
	}
	return first(
		rule(!was.Due.IsZero() && !was.Due.After(m.wall()), "only what is due is claimed"),
		rule(is.Token == was.Token+1, "the token rises"),
		rule(is.Status == stage.InProcessing && is.Due.Equal(m.wall().Add(modelLease)), "a claimed task is under a lease"),
		rule(is.Stage == at && is.Attempt == attempt && is.Wanted == was.Wanted && string(is.Data) == string(was.Data), "it is at %s, attempt %d", at, attempt),
	)
}

// stepped: only its own task, and only under its lease, goes a step along the chain or is given back.
func (m *model) stepped(w *stage.Work, was, is stage.Task) string {
	if was.Lease() != w.Lease() || was.Status != stage.InProcessing || !was.Due.After(m.wall()) || reflect.DeepEqual(was, is) {
		return unchanged(was, is)
	}
	s, _ := modelChain.Find(was.Stage)
	next, _ := modelChain.Next(was.Stage)
	if is.Stage == next.Name {
		if s.Processor == "" {
			return rule(was.Wanted == stage.Nothing && is.Status == stage.InProcessing && is.Due.Equal(was.Due), "a dynamic stage is only shown without a request")
		}
		return m.finished(w, was, is, next)
	}
	return m.returned(was, is)
}

func (m *model) finished(w *stage.Work, was, is stage.Task, at stage.Stage) string {
	outcomes := m.hold(w.Lease()).outcomes
	last := at == modelChain.Last()
	return first(
		rule(was.Wanted == stage.Nothing && !m.stopped[is.ID], "it finishes in spite of a request"),
		rule(len(outcomes) > 0 && outcomes[len(outcomes)-1] == nil, "its processor has not succeeded: %v", outcomes),
		rule(string(is.Data) == string(was.Data)+was.Stage, "its data comes with the stage"),
		rule(is.Attempt == 0 && is.Failure == "", "the next stage begins anew"),
		rule(last == (is.Status == stage.Normal) && last == is.Due.IsZero(), "the last is the last"),
	)
}

// returned: the status says why.
func (m *model) returned(was, is stage.Task) string {
	at := was.Stage
	if s, _ := modelChain.Find(at); s.Processor != "" {
		before, _ := modelChain.Previous(at)
		at = before.Name
	}
	h := m.hold(was.Lease())
	any := func(all []error, err error) bool {
		return slices.ContainsFunc(all, func(e error) bool { return errors.Is(e, err) })
	}
	failure := any(h.outcomes, errBad) || any(h.outcomes, errWorse) || was.Attempt >= modelAttempts
	again, status := is.Due.After(m.wall()), ""
	switch {
	case was.Wanted == stage.Suspension && is.Status != stage.Error:
		status = rule(is.Status == stage.Suspended && is.Due.IsZero() && is.Attempt < modelAttempts, "a suspension is wanted, or the last attempt has failed")
	case was.Wanted == stage.Ending:
		status = rule(is.Status == stage.Cancelled && is.Due.IsZero(), "the end is wanted")
	case is.Status == stage.Normal:
		status = rule(any(h.causes, stage.ErrInterrupted) && is.Due.Equal(m.wall()), "it was not interrupted")
	case is.Status == stage.Resumed:
		status = rule(any(h.causes, stage.ErrSuspended) && is.Due.Equal(m.wall()), "no suspension was withdrawn")
	case is.Status == stage.Suspended:
		status = rule(any(h.outcomes, stage.ErrSuspended) && is.Due.IsZero(), "it has not suspended itself")
	case is.Status == stage.Error:
		status = rule(failure && again == (was.Wanted == stage.Nothing && is.Attempt < modelAttempts && is.Failure == errBad.Error()), "it has not failed, or is to be tried again and is not, or the other way round")
	default:
		return "no status to be given back with"
	}
	return first(status,
		rule(is.Stage == at, "it goes back to %s", at),
		rule(is.Wanted == stage.Nothing && string(is.Data) == string(was.Data), "it leaves nothing"),
		rule(is.Attempt == was.Attempt || failure && is.Attempt == was.Attempt+1, "what is not its failure is no attempt"),
	)
}

// requested is what the table of requests says.
func requested(name string, failed, ok bool, err error, was, is stage.Task) string {
	runs, want := !was.Due.IsZero(), is
	held := was.Status == stage.InProcessing
	done := was.Status == stage.Normal && !runs
	should := false
	switch name {
	case "suspend":
		should = runs && was.Wanted == stage.Nothing
		want.Status, want.Wanted = stage.Suspended, stage.Nothing
		if held {
			want.Status, want.Wanted = stage.InProcessing, stage.Suspension
		}
	case "cancel":
		should = !done && was.Status != stage.Cancelled && was.Wanted != stage.Ending
		want.Status, want.Wanted = stage.Cancelled, stage.Nothing
		if held {
			want.Status, want.Wanted = stage.InProcessing, stage.Ending
		}
	default:
		should = was.Status == stage.Suspended || was.Wanted == stage.Suspension || failed && was.Status == stage.Error
		want.Status, want.Wanted = stage.Resumed, stage.Nothing
		if held {
			want.Status = stage.InProcessing
		}
	}
	if err != nil && unchanged(was, is) == "" {
		return "" // not done, or not to be done
	}
	if !should {
		return first(unchanged(was, is), rule(!ok, "it made no difference"))
	}
	return first(
		rule(err != nil || ok, "it made a difference"),
		rule(want.Status == is.Status && want.Wanted == is.Wanted, "it is %s %s", want.Status, want.Wanted),
		rule(is.Stage == was.Stage && is.Token == was.Token && string(is.Data) == string(was.Data), "only its status changes"),
	)
}

func rule(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// finish resumes all that rests, and has one engine finish it.
func (m *model) finish() error {
	ctx := context.Background()
	m.honest = true
	m.now += 2 * modelLease
	e := m.engine()
	for range 50 {
		for _, t := range m.all() {
			_, _ = e.ResumeFailed(ctx, t.ID)
		}
		_, _ = e.Fire(ctx)
		for _, w := range e.Claimed() {
			for over := false; !over; {
				over = w.Step()
			}
		}
		m.now += modelAttempts * time.Second
	}
	for _, t := range m.all() {
		if t.Status != stage.Cancelled && (t.Stage != "C" || string(t.Data) != "a-bb-c") {
			return fmt.Errorf("not finished: %+v", t)
		}
	}
	return nil
}

// answer loses one in a dozen, and half of those before anything is done.
func (m *model) answer(_ context.Context, _ string, _ any, do func() error) error {
	fate := m.rand.IntN(12)
	if m.honest || fate > 1 {
		return do()
	}
	if fate == 1 {
		_ = do()
	}
	return errLost
}
