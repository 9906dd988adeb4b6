package act_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// countdown is an action that lives for as many turns as it is told.
type countdown struct {
	name string
	left int
}

func (c *countdown) Act(*act.Task) act.Directive {
	fmt.Print(c.name, c.left, " ")
	if c.left--; c.left == 0 {
		return act.Done
	}
	return act.Yield // others have their turns before the next one
}

// Actions have their turns one after the other, round by round.
func ExampleAction() {
	s := act.New(act.Config{})
	s.Spawn(&countdown{"a", 3})
	s.Spawn(&countdown{"b", 1})
	s.Spawn(&countdown{"c", 2})
	if err := s.Run(); err != nil {
		fmt.Println(err)
	}
	// Output: a3 b1 c2 a2 c1 a1
}

// Step takes a few turns at a time, so a test or a simulation has the loop.
func ExampleScheduler_Step() {
	s := act.New(act.Config{})
	s.Spawn(&countdown{"a", 3})
	s.Spawn(&countdown{"b", 3})
	for !s.Finished() {
		turns, err := s.Step(4)
		if err != nil {
			break
		}
		fmt.Println("-", turns, "turns")
	}
	// Output:
	// a3 b3 a2 b2 - 4 turns
	// a1 b1 - 2 turns
}

// basket is filled by one task and emptied by another. It keeps the latest Waker of the task that waits.
type basket struct {
	apples int
	waiter act.Waker
}

func (b *basket) put() {
	b.apples++
	b.waiter.Wake()
}

// A waiting action checks its condition in each turn: it may have been woken for nothing.
func ExampleWaker() {
	var b basket
	s := act.New(act.Config{})
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if b.apples < 3 {
			fmt.Println("only", b.apples)
			b.waiter = t.Waker()
			return act.Wait
		}
		fmt.Println("enough for a pie")
		return act.Done
	}))
	picked := 0
	s.Spawn(act.Func(func(*act.Task) act.Directive {
		b.put()
		if picked++; picked < 3 {
			return act.Yield
		}
		return act.Done
	}))
	_ = s.Run()
	// Output:
	// only 0
	// only 1
	// only 2
	// enough for a pie
}

// Remote returns a function for another goroutine.
func ExampleWaker_Remote() {
	s := act.New(act.Config{})
	answers := make(chan int, 1)
	asked := false
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if !asked {
			asked = true
			wake := t.Waker().Remote()
			go func() {
				answers <- 42
				wake()
			}()
			return act.Wait
		}
		fmt.Println(<-answers)
		return act.Done
	}))
	_ = s.Run()
	// Output: 42
}

// counter is increased by any goroutine and read by one task.
type counter struct {
	n      atomic.Int64
	reader act.AtomicWaker
}

func (c *counter) add() {
	c.n.Add(1)
	c.reader.Wake()
}

// The task sets its Waker before it reads the counter, so that a change in between wakes it.
func ExampleAtomicWaker() {
	var c counter
	s := act.New(act.Config{})
	read := int64(0)
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		c.reader.Set(t.Waker())
		if read += c.n.Swap(0); read < 3 {
			return act.Wait
		}
		fmt.Println("all three have come")
		return act.Done
	}))
	for range 3 {
		go c.add()
	}
	_ = s.Run()
	// Output: all three have come
}

// door is something that has to be closed.
type door string

func (d door) Close() error {
	fmt.Println(d, "closed")
	return nil
}

// A task closes what it owns, the last one first, however it ends: done, failed, or dropped.
func ExampleTask_Own() {
	s := act.New(act.Config{Logger: zap.NewNop()})
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		t.Own(door("house"))
		t.Own(door("kitchen"))
		fmt.Println("no eggs")
		return t.Fail(errors.New("out of eggs"))
	}))
	_ = s.Run()
	// Output:
	// no eggs
	// kitchen closed
	// house closed
}

// A Timer is a field of its owner.
type reminder struct {
	timer act.Timer
	rings int
}

func (r *reminder) Act(t *act.Task) act.Directive {
	if r.timer.Armed() {
		return act.Wait // woken by something else
	}
	if r.rings == 3 {
		return act.Done
	}
	r.rings++
	fmt.Println("ring", r.rings)
	t.WakeAfter(&r.timer, time.Millisecond)
	return act.Wait
}

func ExampleTimer() {
	s := act.New(act.Config{})
	s.Spawn(new(reminder))
	_ = s.Run()
	// Output:
	// ring 1
	// ring 2
	// ring 3
}

// Other goroutines use a scheduler through Post.
func ExampleScheduler_Post() {
	s := act.New(act.Config{})
	posted := make(chan error)
	go func() {
		posted <- s.Post(func(s *act.Scheduler) { s.Spawn(&countdown{"posted ", 2}) })
	}()
	fmt.Println(<-posted) // from now on it keeps Run from returning
	fmt.Println(s.Run())
	fmt.Println(s.Close(), s.Post(func(*act.Scheduler) {}))
	// Output:
	// <nil>
	// posted 2 posted 1 <nil>
	// <nil> act: the scheduler is closed
}

// Every scheduler has a table of its own, so that reading it takes no lock. A change is broadcast.
func ExampleGroup_Broadcast() {
	prices := act.NewLocal(func(*act.Scheduler) map[string]int { return map[string]int{} })
	g := act.NewGroup(act.Config{Schedulers: 3})
	defer g.Close()
	fmt.Println(g.Broadcast(func(s *act.Scheduler) { prices.Get(s)["tea"] = 3 }))
	fmt.Println(g.Broadcast(func(s *act.Scheduler) { prices.Get(s)["tea"] = 4 }))
	fmt.Println(g.Run(context.Background()))
	_ = g.Run(context.Background(), func(s *act.Scheduler) error {
		fmt.Println(s.Index(), prices.Get(s)["tea"])
		return nil
	})
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// 0 4
	// 1 4
	// 2 4
}

// One scheduler owns a table. A task of another one asks for an entry and waits for the answer.
func ExampleOn() {
	table := map[string]int{"tea": 3} // only the owner touches it
	fmt.Println(act.Run(context.Background(), act.Config{Schedulers: 2}, func(s *act.Scheduler) error {
		if s.Index() != 1 {
			return nil
		}
		owner := s.Group().Schedulers()[0]
		var price int
		s.Spawn(act.Seq(
			act.On(owner, act.Func(func(*act.Task) act.Directive {
				price = table["tea"]
				return act.Done
			})),
			act.Func(func(*act.Task) act.Directive {
				fmt.Println("tea costs", price)
				return act.Done
			})))
		return nil
	}))
	// Output:
	// tea costs 3
	// <nil>
}

// gardener is a demon: it does not end by itself, so it has a Stop method.
type gardener struct{ told bool }

func (g *gardener) Act(*act.Task) act.Directive {
	if g.told {
		fmt.Println("puts away the rake")
		return act.Done
	}
	fmt.Println("rakes")
	return act.Yield
}

func (g *gardener) Stop(*act.Task, shutdown.Order) { g.told = true }

func ExampleDemon() {
	s := act.New(act.Config{})
	s.Install(new(gardener))
	_, _ = s.Step(2)
	s.Shutdown(shutdown.Policy{})
	fmt.Println(s.Run())
	// Output:
	// rakes
	// rakes
	// puts away the rake
	// <nil>
}
