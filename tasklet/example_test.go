package tasklet_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

// query is a tasklet of three phases.
type query struct {
	prices map[string]int // shared: SYNC phases only
	name   string

	phase   int
	request string
	reply   int
}

func (q *query) Task(*tasklet.Runner) tasklet.Directive {
	switch q.phase++; q.phase {
	case 1: // SYNC: build the request from shared data
		q.request = fmt.Sprintf("%s, of %d", q.name, len(q.prices))
		return tasklet.Async
	case 2: // ASYNC: a call that blocks
		q.reply = ask(q.request)
		return tasklet.Sync
	}
	q.prices[q.name] = q.reply // SYNC: merge the reply
	return tasklet.Done
}

func ask(request string) int {
	time.Sleep(time.Millisecond)
	return len(strings.Split(request, ",")[0])
}

// Requests are built and replies merged without a lock. The calls in between overlap.
func Example() {
	r := tasklet.NewRunner(act.Config{})
	prices := map[string]int{}
	for _, name := range []string{"apple", "fig", "pear"} {
		_ = r.Schedule(&query{prices: prices, name: name}, tasklet.Sync)
	}
	fmt.Println(r.Run(), prices)
	// Output: <nil> map[apple:5 fig:3 pear:4]
}

// beat waits for a timer three times.
type beat struct{ n int }

func (b *beat) Task(r *tasklet.Runner) tasklet.Directive {
	fmt.Println("beat", b.n)
	if b.n++; b.n == 3 {
		return tasklet.Done
	}
	again := r.Suspend(b)
	time.AfterFunc(time.Millisecond, func() { _ = again.Resume(tasklet.Sync) })
	return tasklet.Wait // even if the timer was faster
}

// A timer resumes a tasklet that waits.
func ExampleRescheduler() {
	r := tasklet.NewRunner(act.Config{})
	_ = r.Schedule(&beat{}, tasklet.Sync)
	fmt.Println(r.Run())
	// Output:
	// beat 0
	// beat 1
	// beat 2
	// <nil>
}

// lookup awaits a future.
type lookup struct{ answer *future.Future[int] }

func (l *lookup) Task(r *tasklet.Runner) tasklet.Directive {
	if l.answer == nil {
		l.answer = future.Go(r.Act(), func() (int, error) { return 42, errors.New("but not sure") })
		return r.Await(l, l.answer.Await())
	}
	fmt.Println(l.answer.Value())
	fmt.Println(r.Err())
	return tasklet.Done
}

// A tasklet waits for an action: a future, a Sleep, a Call.
func ExampleRunner_Await() {
	r := tasklet.NewRunner(act.Config{})
	_ = r.Schedule(&lookup{}, tasklet.Sync)
	fmt.Println(r.Run())
	// Output:
	// 0 but not sure
	// but not sure
	// <nil>
}

// clerk serves until it is told to shut down.
type clerk struct {
	served, late int
	told         bool
}

func (c *clerk) String() string { return "clerk" }

func (c *clerk) Task(r *tasklet.Runner) tasklet.Directive {
	if c.told {
		c.late++
	}
	if c.served++; c.served == 3 {
		r.Shutdown(shutdown.Policy{Turns: 2})
	}
	return tasklet.Sync
}

func (c *clerk) Stop(_ *act.Task, o shutdown.Order) {
	c.told = true
	fmt.Println("after", c.served, "of them:", o.Policy())
}

// A bound in turns counts SYNC phases. The Cut names the tasklets that are left, which are kept for the next Run.
func ExampleRunner_Shutdown() {
	r := tasklet.NewRunner(act.Config{})
	c := &clerk{}
	_ = r.Schedule(c, tasklet.Sync)
	fmt.Println(r.Run())
	fmt.Println(c.served, "served,", c.late, "of them after the order")
	// Output:
	// after 3 of them: drain, 2 turns a task
	// shutdown: left 1 task (clerk); policy: drain, 2 turns a task
	// 5 served, 2 of them after the order
}
