package process_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// Processes are spawned in a set-up function after the Setup of their System, or later. Run returns when all of them
// have ended.
func ExampleSpawn() {
	sys := process.New()
	err := act.Run(context.Background(), act.Config{}, sys.Setup, func(s *act.Scheduler) error {
		if s.Index() > 0 {
			return nil // it is called for each scheduler
		}
		greeter := process.Spawn(sys, process.Handler[string](func(p *process.Self[string], name string) {
			if name == "" {
				p.Exit()
				return
			}
			fmt.Println("hello,", name)
		}), process.Options{Name: "greeter"})
		for _, name := range []string{"ann", "bob", ""} {
			if err := greeter.Send(sys, name); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// hello, ann
	// hello, bob
	// <nil>
}

// runProcesses runs a System on one scheduler until all processes that setup spawns have ended.
func runProcesses(setup func(sys *process.System)) {
	sys := process.New()
	if err := act.Run(context.Background(), act.Config{Schedulers: 1}, sys.Setup, func(*act.Scheduler) error {
		setup(sys)
		return nil
	}); err != nil {
		fmt.Println(err)
	}
}

// handOver sends m, and prints an error.
func handOver[M any](to process.Ref[M], from process.Sender, m M) {
	if err := to.Send(from, m); err != nil {
		fmt.Println(err)
	}
}

// inPairs is an Action that takes two messages at a time.
type inPairs struct {
	first string
	half  bool
}

func (x *inPairs) Act(p *process.Self[string]) act.Directive {
	for {
		m, ok := p.Receive()
		switch {
		case !ok:
			return act.Wait // until another message arrives
		case m == "":
			return act.Done
		case x.half:
			fmt.Println(x.first, "and", m)
		default:
			x.first = m
		}
		x.half = !x.half
	}
}

// Close is called when the process has ended for any reason.
func (x *inPairs) Close() error {
	fmt.Println("closed")
	return nil
}

func ExampleAction() {
	runProcesses(func(sys *process.System) {
		p := process.Spawn(sys, &inPairs{}, process.Options{})
		for _, m := range []string{"salt", "pepper", "bread", "butter", ""} {
			handOver(p, sys, m)
		}
	})
	// Output:
	// salt and pepper
	// bread and butter
	// closed
}

// A process learns of the end of another by a message.
func ExampleWatch() {
	runProcesses(func(sys *process.System) {
		parent := process.Spawn(sys, process.Handler[process.Notice](func(p *process.Self[process.Notice], n process.Notice) {
			switch n.Reason {
			case 0: // not a Notice, but the message to begin
				child := process.Spawn(p, process.Func[int](func(p *process.Self[int]) act.Directive {
					return p.Fail(errors.New("out of ink"))
				}), process.Options{Name: "writer"})
				process.Watch(p, child, func(n process.Notice) process.Notice { return n })
			default:
				fmt.Printf("%v: %v: %v\n", n.Of, n.Reason, n.Err)
				p.Exit()
			}
		}), process.Options{})
		handOver(parent, sys, process.Notice{})
	})
	// Output: writer: failed: out of ink
}

// Linked processes end together, unless an end is Normal or Stopped.
func ExampleLink() {
	runProcesses(func(sys *process.System) {
		obeys := process.Handler[string](func(p *process.Self[string], order string) {
			if order == "fail" {
				p.Fail(errors.New("out of ink"))
			}
		})
		writer := process.Spawn(sys, obeys, process.Options{Name: "writer"})
		reader := process.Spawn(sys, obeys, process.Options{Name: "reader"})
		process.Link(writer, reader, false)
		process.Ended(reader).Handle(func(n process.Notice, _ error) {
			fmt.Printf("%v: %v: %v\n", n.Of, n.Reason, n.Err)
		})
		handOver(writer, sys, "fail")
	})
	// Output: reader: linked: process: writer has ended: failed: out of ink
}

// A child that fails is the same process afterwards: its Ref and its mailbox stay, and it gets a new Action.
func ExampleSupervise() {
	runProcesses(func(sys *process.System) {
		shop := process.Supervise(sys, process.Supervision{Name: "shop", Wait: time.Millisecond})
		till := process.SpawnChild(shop, func() process.Action[int] {
			sum := 0
			return process.Handler(func(p *process.Self[int], price int) {
				if price < 0 {
					panic("a negative price")
				}
				if sum += price; price == 0 {
					fmt.Println("the new till has", sum)
					shop.Kill() // and its children
				}
			})
		}, process.Options{Name: "till"})
		for _, price := range []int{100, -1, 20, 3, 0} {
			handOver(till, sys, price)
		}
	})
	// Output: the new till has 23
}

// lookUp is a question with its Reply.
type lookUp struct {
	key   string
	reply process.Reply[string]
}

// phoneBook answers questions, and ends when it is asked for "".
func phoneBook(sys *process.System) process.Ref[lookUp] {
	known := map[string]string{"ann": "12", "bob": "34"}
	return process.Spawn(sys, process.Handler[lookUp](func(p *process.Self[lookUp], q lookUp) {
		value, ok := known[q.key]
		switch {
		case q.key == "":
			p.Exit()
		case !q.reply.Open(): // the caller has stopped waiting
		case ok:
			q.reply.Send(value)
		case q.key == "nobody":
			q.reply.Fail(errors.New("no such key"))
		default:
			// It is never answered.
		}
	}), process.Options{Name: "phoneBook"})
}

// A task, such as that of a connection, asks a process and waits for the answer.
func ExampleAsk() {
	sys := process.New()
	err := act.Run(context.Background(), act.Config{Schedulers: 1}, sys.Setup, func(s *act.Scheduler) error {
		db := phoneBook(sys)
		ask := func(key string) *process.Ask[lookUp, string] {
			return &process.Ask[lookUp, string]{
				To:      db,
				Message: func(r process.Reply[string]) lookUp { return lookUp{key, r} },
				Within:  10 * time.Millisecond,
			}
		}
		left := []*process.Ask[lookUp, string]{ask("ann"), ask("nobody"), ask("carol")}
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			for ; len(left) > 0; left = left[1:] {
				switch left[0].Act(t) {
				case act.Wait:
					return act.Wait
				case act.Done:
					fmt.Println(left[0].Value)
				case act.Failed:
					fmt.Println(t.Err())
				}
			}
			_ = db.Send(t, lookUp{})
			return act.Done
		}))
		return nil
	})
	fmt.Println(err)
	// Output:
	// 12
	// no such key
	// i/o timeout
	// <nil>
}

// A goroutine asks a process and waits until its context ends.
func ExampleCall() {
	done := make(chan bool)
	runProcesses(func(sys *process.System) {
		db := phoneBook(sys)
		ask := func(ctx context.Context, key string) {
			fmt.Println(process.Call(ctx, db, func(r process.Reply[string]) lookUp { return lookUp{key, r} }))
		}
		go func() {
			ctx, cancel := context.WithCancel(context.Background())
			ask(ctx, "bob")
			ask(ctx, "nobody")
			cancel()
			ask(ctx, "carol")
			ask(context.Background(), "")
			close(done)
		}()
	})
	<-done
	// Output:
	// 34 <nil>
	//  no such key
	//  context canceled
	//  process: the process has ended
}

// A question is passed on to another process, which answers.
func ExampleReply_Forward() {
	done := make(chan bool)
	runProcesses(func(sys *process.System) {
		db := phoneBook(sys)
		desk := process.Spawn(sys, process.Handler[lookUp](func(p *process.Self[lookUp], q lookUp) {
			q.reply.Forward(db) // if db ended now, the caller would hear of that
			handOver(db, p, q)
			p.Exit()
		}), process.Options{})
		go func() {
			ctx := context.Background()
			fmt.Println(process.Call(ctx, desk, func(r process.Reply[string]) lookUp { return lookUp{"ann", r} }))
			_ = db.Deliver(ctx, lookUp{})
			close(done)
		}()
	})
	<-done
	// Output: 12 <nil>
}

// A process that asks another runs on, and gets the answer as a message.
func ExampleDo_ask() {
	runProcesses(func(sys *process.System) {
		db := phoneBook(sys)
		asker := process.Spawn(sys, process.Handler[string](func(p *process.Self[string], m string) {
			if m != "begin" {
				fmt.Println("got", m)
				handOver(db, p, lookUp{})
				p.Exit()
				return
			}
			ask := &process.Ask[lookUp, string]{To: db, Within: time.Minute, Message: func(r process.Reply[string]) lookUp {
				return lookUp{"ann", r}
			}}
			process.Do(p, ask, func(failure error) string {
				if failure != nil {
					return failure.Error()
				}
				return ask.Value
			})
			fmt.Println("asked")
		}), process.Options{})
		handOver(asker, sys, "begin")
	})
	// Output:
	// asked
	// got 12
}

func ExampleSelf_After() {
	runProcesses(func(sys *process.System) {
		begun := time.Now()
		sleeper := process.Spawn(sys, process.Handler[string](func(p *process.Self[string], m string) {
			switch m {
			case "begin":
				p.After(time.Millisecond, "enough")
				late := p.After(time.Hour, "too late")
				fmt.Println(late.Cancel())
			default:
				fmt.Println(m, time.Since(begun) >= time.Millisecond)
				p.Exit()
			}
		}), process.Options{})
		handOver(sleeper, sys, "begin")
	})
	// Output:
	// true
	// enough true
}

// Do lets a process wait for any action.
func ExampleDo() {
	runProcesses(func(sys *process.System) {
		process.Spawn(sys, process.Func[string](func(p *process.Self[string]) act.Directive {
			if m, ok := p.Receive(); ok {
				fmt.Println(m)
				return act.Done
			}
			a := act.Seq(&listener.Sleep{For: time.Millisecond}, act.Func(func(t *act.Task) act.Directive {
				return t.Fail(errors.New("overslept"))
			}))
			process.Do(p, a, func(failure error) string { return failure.Error() })
			return act.Wait
		}), process.Options{})
	})
	// Output: overslept
}

// A program can wait until no process has anything to do.
func ExampleSystem_Quiescent() {
	runProcesses(func(sys *process.System) {
		begotten := 0
		var beget func(p *process.Self[int], left int)
		beget = func(p *process.Self[int], left int) {
			if begotten++; left > 0 {
				for range 2 {
					handOver(process.Spawn(p, process.Handler(beget), process.Options{}), p, left-1)
				}
			}
			p.After(time.Millisecond, 0) // the System is not quiescent while a timer is pending
			p.Exit()
		}
		all := process.Spawn(sys, process.Handler[int](func(p *process.Self[int], _ int) { p.Exit() }), process.Options{})
		handOver(process.Spawn(sys, process.Handler(beget), process.Options{}), sys, 5)
		sys.Quiescent().Handle(func(struct{}, error) {
			fmt.Println(begotten)
			handOver(all, sys, 0) // it has kept Run from returning
		})
	})
	// Output: 63
}

// cashDesk is told of orders, and closes the till. Processes that are not Stoppers continue as before.
type cashDesk struct {
	process.Action[int]
	till *int
}

func (c cashDesk) Stop(p *process.Self[int], o shutdown.Order) {
	fmt.Println("closing:", *c.till)
	p.Exit()
}

func ExampleStopper() {
	sys, till := process.New(), 0
	ctx, cancel := context.WithCancel(context.Background())
	err := act.Run(ctx, act.Config{Schedulers: 1}, sys.Setup, func(*act.Scheduler) error {
		sells := process.Handler[int](func(p *process.Self[int], price int) {
			if till += price; till == 6 {
				cancel() // as a signal would
			}
		})
		c := process.Spawn(sys, cashDesk{sells, &till}, process.Options{})
		for _, price := range []int{1, 2, 3} {
			handOver(c, sys, price)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// closing: 6
	// <nil>
}
