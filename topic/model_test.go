package topic_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/topic"
)

// TestModel compares a Broker with a slow and obvious one: schedulers are stepped in any order, and subscriptions with every
// policy are taken from at once or late.
func TestModel(t *testing.T) {
	for seed := range uint64(tier.Choose(200, 2000, 30_000)) {
		x := newModel(t, seed)
		for range 150 {
			x.operation()
		}
		x.end()
	}
}

// A model has a few of the names and filters, so that they often match.
var (
	rules      = []topic.Rule{{Filter: "h/b/#", History: 1, Age: 2 * time.Second}, {Filter: "h/#", History: 3, Age: 2 * time.Second}}
	allNames   = []string{"a", "a/b", "a//b", "/a", "$a/b", "$a", "h", "h/a", "h/b", "h/b/a"}
	allFilters = []string{"#", "+", "+/+", "a/#", "a/+", "+/b", "+/#", "a/+/b", "/+", "$a/#", "$a/+", "h/#", "h/+", "h/b/#"}
)

// model is a Broker and its twin.
type model struct {
	*require.Assertions
	r       *rand.Rand
	clock   *servertest.Clock
	g       *act.Group
	b       *topic.Broker
	pending int // of the Config
	names   []string
	filters []string // names are among them

	published int
	retained  map[string]said
	histories map[string]*history
	lanes     []lane // what waits for each scheduler
	subs      []*sub
}

// said is a message as the twin knows it.
type said struct {
	topic, data string
	kind        topic.Kind
	retained    bool
	complete    bool
	offset      uint64
}

// history is all that was ever published to a topic.
type history struct {
	epoch string // as it was first seen
	all   []said
	at    []time.Duration
}

// lane is what a scheduler has not passed on yet.
type lane struct {
	events []event
	items  int // of Config.Pending
}

type event struct {
	to    *sub
	what  []said // of a beginning: all at once
	live  bool   // a message that was published
	aside bool   // it does not count for the bound any more
}

// sub is a subscription of a task, and its twin. The owner takes at once, in a turn; or late, when the model says so.
type sub struct {
	*topic.Subscription
	index    int // of the scheduler
	late     bool
	ends     bool // the task, in its next turn
	task     *act.Task
	wake     func()
	got      []said
	gotErr   error
	limit    int
	overflow topic.Overflow
	filters  []string
	queue    []event
	dropped  uint64
	err      error
}

func newModel(t *testing.T, seed uint64) *model {
	r := rand.New(rand.NewPCG(seed, 0))
	x := &model{r: r, clock: &servertest.Clock{}, pending: pick(r, 1<<16, 10)}
	x.Assertions = require.New(failing{t, seed})
	x.retained, x.histories = map[string]said{}, map[string]*history{}
	for range 4 {
		name := pick(r, allNames...)
		x.names, x.histories[name] = append(x.names, name), &history{}
		x.filters = append(x.filters, pick(r, allFilters...), name)
	}
	x.b = topic.New(topic.Config{Rules: rules, Pending: x.pending})
	x.g = act.NewGroup(act.Config{Schedulers: 1 + r.IntN(3), Threads: act.Stepped, Clock: x.clock, TurnsPerPass: pick(r, 0, 1, 2)})
	for _, s := range x.g.Schedulers() {
		require.NoError(t, x.b.Setup(s))
	}
	x.lanes = make([]lane, len(x.g.Schedulers()))
	return x
}

// failing is a test that shows its seed.
type failing struct {
	*testing.T
	seed uint64
}

func (f failing) FailNow() { f.Fatalf("seed %d", f.seed) }

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func (x *model) operation() {
	switch n := x.r.IntN(100); {
	case n < 40:
		x.publish()
	case n < 50:
		x.subscribe()
	case n < 70:
		x.step(x.r.IntN(len(x.lanes)))
	case n < 73:
		x.clock.Pass(time.Duration(x.r.IntN(1500)) * time.Millisecond)
	case len(x.subs) > 0:
		x.change(pick(x.r, x.subs...))
	}
}

func (x *model) publish() {
	x.published++
	p := topic.Publication{Topic: pick(x.r, x.names...), Data: fmt.Append(nil, x.published), Retain: x.r.IntN(3) == 0}
	if p.Retain && x.r.IntN(3) == 0 {
		p.Data = nil
	}
	items := make([]int, len(x.lanes)) // of Config.Pending
	full := false
	for i, l := range x.lanes {
		seen := map[string]bool{}
		for _, k := range x.subs {
			for _, f := range k.filters {
				if k.index == i && !seen[f] && topic.Match(f, p.Topic) {
					seen[f] = true
					items[i]++
					full = full || l.items >= x.pending
				}
			}
		}
	}
	err := x.b.Publish(p)
	if x.Equal(full, errors.As(err, new(act.Blocked))); full {
		return
	}
	x.NoError(err)
	for i, n := range items {
		x.lanes[i].items += n
	}
	m := said{topic: p.Topic, data: string(p.Data)}
	if rule := ruleOf(p.Topic); rule != nil {
		h := x.histories[p.Topic]
		m.offset = uint64(len(h.all) + 1)
		h.all, h.at = append(h.all, m), append(h.at, x.clock.Monotonic())
	}
	if p.Retain {
		delete(x.retained, p.Topic)
	}
	if p.Retain && len(p.Data) > 0 {
		kept := m
		kept.retained = true
		x.retained[p.Topic] = kept
	}
	for _, k := range x.subs {
		if slices.ContainsFunc(k.filters, func(f string) bool { return topic.Match(f, p.Topic) }) {
			x.tell(k, event{live: true, what: []said{m}})
		}
	}
}

func ruleOf(name string) *topic.Rule {
	i := slices.IndexFunc(rules, func(r topic.Rule) bool { return topic.Match(r.Filter, name) })
	if i < 0 {
		return nil
	}
	return &rules[i]
}

func (x *model) tell(k *sub, e event) {
	e.to = k
	x.lanes[k.index].events = append(x.lanes[k.index].events, e)
}

func (x *model) subscribe() {
	k := &sub{index: x.r.IntN(len(x.lanes)), late: x.r.IntN(2) == 0, limit: 1 + x.r.IntN(5), overflow: topic.Overflow(x.r.IntN(3))}
	x.subs = append(x.subs, k)
	x.step(k.index)
	x.g.Schedulers()[k.index].Spawn(act.Func(func(t *act.Task) act.Directive { return k.turn(x, t) }))
	x.step(k.index)
}

// turn is a turn of the owner.
func (k *sub) turn(x *model, t *act.Task) act.Directive {
	if k.Subscription == nil {
		k.Subscription = x.b.Subscribe(t, topic.Options{Queue: k.limit, Overflow: k.overflow})
	}
	k.task = t
	if k.wake = t.Waker().Remote(); k.ends {
		return act.Done
	}
	for !k.late {
		m, err := k.Take()
		if wait, ok := err.(act.Blocked); ok {
			wait.Arm(t)
			break
		}
		if err != nil {
			k.gotErr = err
			return act.Done
		}
		k.got = append(k.got, x.see(m))
	}
	return act.Wait
}

// see notes the epoch of a message.
func (x *model) see(m *topic.Message) said {
	if m.Epoch != "" {
		h := x.histories[m.Topic]
		h.epoch = cmp.Or(h.epoch, m.Epoch)
		x.Equal(h.epoch, m.Epoch)
	}
	return said{m.Topic, string(m.Data), m.Kind, m.Retained, m.Complete, m.Offset}
}

// change lets the owner of a subscription do something.
func (x *model) change(k *sub) {
	switch x.r.IntN(12) {
	case 0, 1, 2, 3:
		x.add(k, pick(x.r, x.filters...))
	case 4, 5:
		x.follow(k, pick(x.r, x.names...))
	case 6:
		f := pick(x.r, x.filters...)
		if len(k.filters) > 0 {
			f = pick(x.r, append(k.filters, f)...)
		}
		i := slices.Index(k.filters, f)
		if i >= 0 {
			k.filters = slices.Delete(k.filters, i, i+1)
			x.lanes[k.index].items++
		}
		x.Equal(i >= 0, k.Remove(f))
	case 7:
		if x.r.IntN(4) > 0 {
			return
		}
		x.step(k.index) // all else has happened before
		if k.ends = k.ends || x.r.IntN(2) == 0; k.ends {
			k.wake()
		} else {
			x.NoError(k.Close())
			x.False(k.task.Release(k.Subscription), "its task keeps what is closed")
		}
		k.finish(x, cmp.Or(k.err, topic.ErrClosed))
		x.step(k.index)
	default:
		for range x.r.IntN(4) {
			x.take(k)
		}
	}
}

func (k *sub) finish(x *model, err error) {
	x.lanes[k.index].items += len(k.filters)
	k.err, k.queue, k.filters = err, nil, nil
}

func (x *model) begin(k *sub, filter string, kept ...said) {
	if !slices.Contains(k.filters, filter) {
		k.filters = append(k.filters, filter)
	} else if len(kept) == 0 {
		return
	}
	x.lanes[k.index].items++
	if len(kept) > 0 {
		x.tell(k, event{what: kept})
	}
}

func (x *model) add(k *sub, filter string) {
	err := k.Add(filter)
	if x.Equal(k.err != nil, err == topic.ErrClosed); err != nil {
		return
	}
	var kept []said
	for name, m := range x.retained {
		if topic.Match(filter, name) {
			kept = append(kept, m)
		}
	}
	slices.SortFunc(kept, func(a, b said) int { return slices.Compare(strings.Split(a.topic, "/"), strings.Split(b.topic, "/")) })
	x.begin(k, filter, kept...)
}

func (x *model) follow(k *sub, name string) {
	rule, h := ruleOf(name), x.histories[name]
	beyond := topic.Position{Epoch: h.epoch, Offset: 1 << 60}
	after := pick(x.r, topic.Position{}, topic.Earliest, topic.Position{Epoch: "of another", Offset: 1}, beyond)
	if h.epoch != "" && x.r.IntN(2) == 0 {
		after = topic.Position{Epoch: h.epoch, Offset: uint64(x.r.IntN(len(h.all) + 2))}
	}
	err := k.Follow(name, after)
	if rule == nil {
		x.Equal(topic.ErrNoHistory, err)
		return
	}
	if x.Equal(k.err != nil, err == topic.ErrClosed); err != nil {
		return
	}
	last, first := len(h.all), 0 // of the messages that are kept
	for first < last && (h.at[first] < x.clock.Monotonic()-rule.Age || last-first > rule.History) {
		first++
	}
	from, complete := first, after == topic.Earliest && first == 0
	switch known := after.Epoch == h.epoch && after.Epoch != "" && after.Offset <= uint64(last); {
	case after == topic.Position{}:
		from, complete = last, true
	case known:
		from, complete = max(first, int(after.Offset)), int(after.Offset) >= first
	}
	followed := said{topic: name, kind: topic.Followed, offset: uint64(from), complete: complete}
	x.begin(k, name, append([]said{followed}, h.all[from:]...)...)
}

// step lets a scheduler do all that it can.
func (x *model) step(index int) {
	for n := 1; n > 0; {
		var err error
		n, err = x.g.Schedulers()[index].Step(100)
		x.NoError(err)
	}
	l := &x.lanes[index]
	for _, e := range l.events {
		e.to.push(x, e)
	}
	l.events, l.items = nil, 0
	for _, k := range x.subs {
		if k.index != index || k.Subscription == nil {
			continue
		}
		if !k.late {
			var want []said
			for _, e := range k.queue {
				want = append(want, e.what...)
			}
			x.Equal(want, k.got)
			x.Equal(k.err == topic.ErrSlow, k.gotErr == topic.ErrSlow)
			k.got, k.queue = nil, nil
		}
		x.Equal(k.err, k.Err())
		x.Equal(k.dropped, k.Dropped())
	}
}

// push is what happens to a message that arrives.
func (k *sub) push(x *model, e event) {
	queued := 0
	for _, q := range k.queue {
		if !q.aside {
			queued++
		}
	}
	switch {
	case k.err != nil:
	case !e.live || queued < k.limit:
		k.queue = append(k.queue, e)
	case k.overflow == topic.DropOldest:
		for i := range k.queue {
			if k.queue[i].live {
				k.queue = slices.Delete(k.queue, i, i+1)
				k.dropped++
				break
			}
			k.queue[i].aside = true
		}
		k.queue = append(k.queue, e)
	case k.overflow == topic.DropNewest:
		k.dropped++
	default:
		k.finish(x, topic.ErrSlow)
	}
}

// take takes a message, late.
func (x *model) take(k *sub) bool {
	if !k.late {
		return false
	}
	m, err := k.Take()
	if len(k.queue) == 0 {
		x.Error(err)
		x.Equal(k.err == nil, errors.As(err, new(act.Blocked)))
		return false
	}
	x.NoError(err)
	first := &k.queue[0]
	x.Equal(first.what[0], x.see(m))
	if first.what, first.aside = first.what[1:], true; len(first.what) == 0 {
		k.queue = k.queue[1:]
	}
	return true
}

// end takes all that is left.
func (x *model) end() {
	for i := range x.lanes {
		x.step(i)
	}
	for _, k := range x.subs {
		for x.take(k) {
		}
		x.NoError(k.Close())
	}
	_ = x.g.Close() // late owners are cut
}
