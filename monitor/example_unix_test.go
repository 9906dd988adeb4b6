//go:build unix

package monitor_test

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/shutdown"
)

// The first SIGINT or SIGTERM tells all tasks to shut down; a second one would drop them at once.
func ExampleSignals() {
	work := func(s *act.Scheduler) error {
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if order, ok := t.Order().(monitor.Signal); ok {
				fmt.Println("told to end by:", order.Signal)
				return act.Done
			}
			t.Waker() // a shutdown wakes
			return act.Wait
		}))
		return syscall.Kill(os.Getpid(), syscall.SIGTERM) // or Ctrl-C
	}
	cfg := act.Config{Schedulers: 1, Logger: zap.NewNop()}
	fmt.Println(act.Run(context.Background(), cfg, monitor.Signals(shutdown.Policy{}), work))
	// Output:
	// told to end by: terminated
	// <nil>
}

// Any descriptor that a poller takes can wake a task. Here it is a pipe.
func ExampleWatch() {
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		fmt.Println(err)
		return
	}
	_ = syscall.SetNonblock(pipe[0], true)
	work := func(s *act.Scheduler) error {
		watch, err := monitor.Watch(s, pipe[0], netpoll.In)
		if err != nil {
			return err
		}
		buffer := make([]byte, 100)
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if err := watch.Readable(); err != nil {
				return listener.Next(t, err) // nothing yet: the next report wakes us
			}
			for {
				n, err := syscall.Read(pipe[0], buffer)
				switch {
				case err == syscall.EAGAIN:
					return act.Yield // and wait again
				case n <= 0:
					_, _ = watch.Close(), syscall.Close(pipe[0])
					return act.Done
				}
				fmt.Printf("%s\n", buffer[:n])
			}
		}))
		return nil
	}
	go func() {
		_, _ = syscall.Write(pipe[1], []byte("hello"))
		_ = syscall.Close(pipe[1])
	}()
	fmt.Println(act.Run(context.Background(), act.Config{Schedulers: 1}, work))
	// Output:
	// hello
	// <nil>
}

// A task can handle signals: the handler sends them to its mailbox.
func ExampleOnSignal() {
	signals := hangups{listener.NewMailbox[os.Signal](1)}
	reload := func(s *act.Scheduler) error {
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			signal, err := signals.Take()
			if err != nil {
				return listener.Next(t, err)
			}
			fmt.Println("reading the configuration again:", signal)
			return act.Done // a server would go on
		}))
		return syscall.Kill(os.Getpid(), syscall.SIGHUP)
	}
	cfg := act.Config{Schedulers: 1}
	fmt.Println(act.Run(context.Background(), cfg, monitor.OnSignal(signals, syscall.SIGHUP), reload))
	// Output:
	// reading the configuration again: hangup
	// <nil>
}

type hangups struct{ *listener.Mailbox[os.Signal] }

// Signal is called on another goroutine. If the mailbox is full, the signal is lost, which does no harm: an earlier one
// waits.
func (h hangups) Signal(s os.Signal) { _ = h.Send(s) }
