package act_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// say is an action of one turn.
func say(text string) act.Action {
	return act.Func(func(*act.Task) act.Directive {
		fmt.Println(text)
		return act.Done
	})
}

// A program on one scheduler. Without Schedulers: 1 there would be one for each CPU, and the set-up
// function would be called for each of them.
func ExampleRun() {
	err := act.Run(context.Background(), act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Spawn(say("hello"))
		return nil
	})
	fmt.Println(err)
	// Output:
	// hello
	// <nil>
}

// The schedulers of a Group share nothing. They ask each other with Post.
func ExampleGroup() {
	g := act.NewGroup(act.Config{Schedulers: 2})
	defer g.Close()
	here, there := g.Schedulers()[0], g.Schedulers()[1]
	here.Post(func(*act.Scheduler) {
		there.Post(func(s *act.Scheduler) {
			s.Spawn(say(fmt.Sprint("hello from scheduler ", s.Index())))
		})
	})
	fmt.Println(g.Run(context.Background()))
	// Output:
	// hello from scheduler 1
	// <nil>
}

// checksum is an action whose work would block its thread for too long.
type checksum struct {
	of   []byte
	sum  int
	done bool
}

func (c *checksum) Act(t *act.Task) act.Directive {
	if !c.done {
		return t.Offload(func() { // it may use c: nothing else does until it returns
			for _, b := range c.of {
				c.sum += int(b)
			}
			c.done = true
		})
	}
	fmt.Println("sum:", c.sum)
	return act.Done
}

func ExampleTask_Offload() {
	s := act.New(act.Config{})
	defer s.Close()
	s.Spawn(&checksum{of: []byte("daimon")})
	fmt.Println(s.Run())
	// Output:
	// sum: 632
	// <nil>
}

// nap is done after a while.
type nap struct {
	timer act.Timer
	after time.Duration
	begun bool
}

func (n *nap) Act(t *act.Task) act.Directive {
	if !n.begun {
		n.begun = true
		t.WakeAfter(&n.timer, n.after)
	}
	if n.timer.Armed() {
		return act.Wait
	}
	return act.Done
}

// A function that may take for ever, with a time-out.
func ExampleCall() {
	s := act.New(act.Config{})
	defer s.Close()
	never := make(chan struct{})
	defer close(never)

	look := &act.Call[string]{F: func() (string, error) { <-never; return "192.0.2.7", nil }}
	either := act.First(look, &nap{after: time.Millisecond})
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if d := either.Act(t); d != act.Done {
			return d
		}
		if look.Act(t) == act.Failed {
			fmt.Println(t.Err())
		}
		return act.Done
	}))
	fmt.Println(s.Run())
	// Output:
	// act: dropped before it had finished
	// <nil>
}

func ExampleAll() {
	s := act.New(act.Config{})
	defer s.Close()
	s.Spawn(act.Seq(
		act.All(
			act.Seq(yields(20), say("slow")),
			act.Seq(yields(2), say("quick")),
		),
		say("both"),
	))
	_ = s.Run()
	// Output:
	// quick
	// slow
	// both
}

func ExampleFirst() {
	s := act.New(act.Config{})
	defer s.Close()
	s.Spawn(act.Seq(
		act.First(
			act.Seq(&nap{after: time.Hour}, say("slow")),
			act.Seq(&nap{after: time.Millisecond}, say("quick")),
		),
		say("that will do"),
	))
	_ = s.Run()
	// Output:
	// quick
	// that will do
}

// Handover is a shutdown request of an application's own: it names the server that continues the work.
type Handover struct{ To string }

// Policy gives the actions five more turns.
func (Handover) Policy() shutdown.Policy { return shutdown.Policy{Turns: 5, Drop: true} }

// shift works until it is told to hand over.
type shift struct{ successor string }

func (s *shift) Act(*act.Task) act.Directive {
	if s.successor == "" {
		return act.Yield
	}
	fmt.Println("handing over to", s.successor)
	return act.Done
}

func (s *shift) Stop(_ *act.Task, o shutdown.Order) {
	if h, ok := o.(Handover); ok {
		s.successor = h.To
	}
}

func ExampleScheduler_Shutdown() {
	s := act.New(act.Config{})
	defer s.Close()
	s.Spawn(&shift{})
	s.Spawn(act.Func(forever)) // ignores the shutdown

	go s.Shutdown(Handover{To: "the night shift"}) // any goroutine
	err := s.Run()

	var cut *shutdown.Cut
	fmt.Println(errors.As(err, &cut), cut.Tasks)
	// Output:
	// handing over to the night shift
	// true 1
}

// retried is an action that is begun again when it fails, a few times.
type retried struct {
	act.Child
	begin func() act.Action
	tries int
}

func (r *retried) Act(t *act.Task) act.Directive {
	if r.Action == nil {
		r.Action = r.begin()
	}
	d := r.Child.Act(t)
	if d != act.Failed || r.tries == 0 {
		return d
	}
	r.tries--
	_ = r.Close()
	r.Child = act.Child{Action: r.begin()}
	return act.Yield
}

// Stop does something before the shutdown request is forwarded; the embedded Child does everything else.
func (r *retried) Stop(t *act.Task, o shutdown.Order) {
	r.tries = 0
	r.Child.Stop(t, o)
}

func ExampleChild() {
	attempt := 0
	s := act.New(act.Config{})
	defer s.Close()
	s.Spawn(&retried{tries: 5, begin: func() act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			attempt++
			fmt.Println("attempt", attempt)
			if attempt < 3 {
				return t.Fail(fmt.Errorf("not yet"))
			}
			return act.Done
		})
	}})
	fmt.Println(s.Run())
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// <nil>
}
