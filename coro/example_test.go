package coro_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// run runs one body on a scheduler.
func run(body func(co *coro.Co) error) {
	err := act.Run(context.Background(), act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Spawn(coro.New(body))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}

// visit runs a server for one client, a goroutine that uses package net.
func visit(body func(*coro.Conn) error, client func(net.Conn)) {
	server := &service.Listener{Address: "127.0.0.1:0", Handler: coro.Serve(body)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, func(s *act.Scheduler) error {
		go func() {
			defer cancel()
			conn, err := net.Dial("tcp", server.Addr().String())
			if err != nil {
				fmt.Println(err)
				return
			}
			defer func() { _ = conn.Close() }()
			client(conn)
		}()
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}

// tally adds up what a client of statsd counts, and ends with the client: Read fails when nothing has come for a minute.
func tally(c *coro.PacketConn) error {
	totals, in := map[string]int{}, make([]byte, 1432)
	for {
		n, err := c.Read(in)
		if err != nil {
			return err
		}
		name, rest, _ := strings.Cut(string(in[:n]), ":") // "name:value|c"
		value, _, _ := strings.Cut(rest, "|")
		count, _ := strconv.Atoi(value)
		totals[name] += count
		if _, err := fmt.Fprintf(c, "%s: %d", name, totals[name]); err != nil {
			return err
		}
	}
}

// Each client has a body of its own.
func ExampleServePeer() {
	server := &service.PacketListener{Address: "127.0.0.1:0", Peers: service.Peers{Handler: coro.ServePeer(tally)}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fmt.Println(act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, func(*act.Scheduler) error {
		go func() {
			defer cancel()
			c, err := net.Dial("udp", server.Addr().String())
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			answer := make([]byte, 100)
			for range 2 {
				fmt.Fprint(c, "hits:3|c")
				n, _ := c.Read(answer)
				fmt.Println(string(answer[:n]))
			}
		}()
		return nil
	}))
	// Output:
	// hits: 3
	// hits: 6
	// <nil>
}

// Two bodies take turns on one thread, so the data that they share needs no lock.
func ExampleNew() {
	count := func(name string) act.Action {
		return coro.New(func(co *coro.Co) error {
			for i := range 3 {
				fmt.Print(name, i, " ")
				if err := co.Yield(); err != nil {
					return err // the task was dropped
				}
			}
			return nil
		})
	}
	s := act.New(act.Config{})
	s.Spawn(count("a"))
	s.Spawn(count("b"))
	if err := s.Run(); err != nil {
		fmt.Println(err)
	}
	// Output: a0 b0 a1 b1 a2 b2
}

// An echo server. While io.Copy waits for one client, the others have their turns.
func ExampleServe() {
	echo := func(c *coro.Conn) error {
		_, err := io.Copy(c, c)
		return err
	}
	visit(echo, func(client net.Conn) {
		fmt.Fprint(client, "is anybody there?")
		_ = client.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(client)
		fmt.Printf("%s\n", answer)
	})
	// Output: is anybody there?
}

// A bufio.Scanner reads lines from a Conn.
func ExampleConn() {
	shout := func(c *coro.Conn) error {
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			if _, err := fmt.Fprintln(c, strings.ToUpper(lines.Text())); err != nil {
				return err
			}
		}
		return lines.Err()
	}
	visit(shout, func(client net.Conn) {
		fmt.Fprint(client, "one line\nand another\n")
		_ = client.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(client)
		fmt.Printf("%s", answer)
	})
	// Output:
	// ONE LINE
	// AND ANOTHER
}

// A body can run any action, even one composed by package act.
func ExampleCo_Do() {
	run(func(co *coro.Co) error {
		err := co.Do(act.First(
			&listener.Sleep{For: time.Hour},
			&listener.Sleep{For: time.Millisecond},
		))
		fmt.Println("the shorter one:", err)
		return err
	})
	// Output: the shorter one: <nil>
}

// Within bounds all waiting calls in its function, however deep in the stack.
func ExampleCo_Within() {
	run(func(co *coro.Co) error {
		err := co.Within(5*time.Millisecond, func() error {
			for {
				if err := co.Sleep(time.Millisecond); err != nil {
					return err
				}
			}
		})
		fmt.Println(err)
		fmt.Println(errors.Is(err, os.ErrDeadlineExceeded))
		return nil
	})
	// Output:
	// coro: not finished within 5ms: i/o timeout
	// true
}

// A context that another goroutine cancels ends the wait.
func ExampleCo_WithContext() {
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(time.Millisecond, func() { cancel(errors.New("nobody needs it any more")) })
	run(func(co *coro.Co) error {
		fmt.Println(co.WithContext(ctx, func() error { return co.Sleep(time.Hour) }))
		return nil
	})
	// Output: nobody needs it any more
}

// During shutdown a server closes a connection that is idle between two requests. A request that has begun is answered.
func ExampleCo_UntilOrder() {
	answer := func(c *coro.Conn) error {
		r := bufio.NewReader(c)
		for {
			err := c.Co().UntilOrder(func() error {
				_, err := r.Peek(1) // what it has read stays there
				return err
			})
			if errors.Is(err, coro.ErrOrdered) {
				_, err = fmt.Fprint(c, "good-bye, the order is to ", c.Co().Order().Policy())
				return err
			}
			if err != nil {
				return err
			}
			name, err := r.ReadString('\n')
			if err != nil {
				return err
			}
			if _, err := fmt.Fprint(c, "hello, ", name); err != nil {
				return err
			}
			if name == "the end\n" {
				c.Co().Scheduler().Group().Shutdown(shutdown.Policy{})
			}
		}
	}
	visit(answer, func(client net.Conn) {
		fmt.Fprint(client, "Ada\nthe end\n")
		answers, _ := io.ReadAll(client)
		fmt.Printf("%s\n", answers)
	})
	// Output:
	// hello, Ada
	// hello, the end
	// good-bye, the order is to drain, 30s, then drop
}

// A function that blocks runs on another goroutine. The body waits for it; the thread does not.
func ExampleOffload() {
	run(func(co *coro.Co) error {
		addresses, err := coro.Offload(co, func() ([]string, error) {
			return net.LookupHost("127.0.0.1")
		})
		fmt.Println(addresses, err)
		return err
	})
	// Output: [127.0.0.1] <nil>
}

// A function on another goroutine ends when the body does.
func ExampleCo_Context() {
	run(func(co *coro.Co) error {
		ctx := co.Context()
		err := co.Within(time.Millisecond, func() error {
			_, err := coro.Offload(co, func() (int, error) {
				<-ctx.Done() // a query, for example
				return 0, ctx.Err()
			})
			return err
		})
		fmt.Println(err)
		return nil
	})
	// Output: coro: not finished within 1ms: i/o timeout
}

// The task closes what it owns after the body has ended, however the body ends.
func ExampleCo_Task() {
	run(func(co *coro.Co) error {
		file, err := os.Open("example_test.go")
		if err != nil {
			return err
		}
		co.Task().Own(file)
		return co.Yield()
	})
	// Output:
}

// An action uses a connection first and then gives it to a coroutine.
func ExampleCo_Conn() {
	handler := func(under *listener.Conn) act.Action {
		return act.Seq(
			act.Func(func(*act.Task) act.Directive {
				_, _ = under.WriteString("welcome\n")
				return act.Done
			}),
			coro.New(func(co *coro.Co) error {
				c := co.Conn(under)
				_, err := io.Copy(c, c)
				return err
			}))
	}
	_ = service.Listener{Address: ":7007", Handler: handler}
}

// Two functions run at once, each with a future.
func ExampleValue() {
	run(func(co *coro.Co) error {
		a := future.Go(co.Scheduler(), func() (int, error) { return 20, nil })
		b := future.Go(co.Scheduler(), func() (int, error) { return 22, nil })
		sum := 0
		for _, f := range []*future.Future[int]{a, b} {
			n, err := coro.Value(co, f)
			if err != nil {
				return err
			}
			sum += n
		}
		fmt.Println(sum)
		return nil
	})
	// Output: 42
}

// A client.
func ExampleDial() {
	echo := func(c *coro.Conn) error { _, err := io.Copy(c, c); return err }
	server := &service.Listener{Address: "127.0.0.1:0", Handler: coro.Serve(echo)}
	ctx, cancel := context.WithCancel(context.Background())
	client := coro.New(func(co *coro.Co) error {
		defer cancel()
		return co.Within(time.Second, func() error {
			c, err := coro.Dial(co, server.Addr().String(), listener.Limits{})
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			fmt.Fprintln(c, "hello")
			line, err := bufio.NewReader(c).ReadString('\n')
			fmt.Print(line)
			return err
		})
	})
	err := act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, func(s *act.Scheduler) error {
		s.Spawn(client)
		return nil
	})
	fmt.Println(err)
	// Output:
	// hello
	// <nil>
}

// Under returns the listener.Conn, with methods that a net.Conn does not have, such as SendFile.
func ExampleCo_Unblock() {
	file, err := os.CreateTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _, _ = file.Close(), os.Remove(file.Name()) }()
	size, _ := file.WriteString("To be, or not to be")
	give := func(c *coro.Conn) error {
		offset, left := int64(0), int64(size)
		for {
			n, err := c.Under().SendFile(file, offset, left)
			offset, left = offset+n, left-n
			if err = c.Co().Unblock(err); err != nil || left == 0 {
				return err
			}
		}
	}
	visit(give, func(client net.Conn) {
		answer, _ := io.ReadAll(client)
		fmt.Printf("%s\n", answer)
	})
	// Output: To be, or not to be
}

// A body waits for a condition: the code that makes it true wakes the task.
func ExampleCo_WaitUntil() {
	s := act.New(act.Config{})
	ready := false
	var waiting act.Waker
	s.Spawn(coro.New(func(co *coro.Co) error {
		err := co.WaitUntil(func(t *act.Task) bool {
			waiting = t.Waker()
			return ready
		})
		fmt.Println("it is ready")
		return err
	}))
	s.Spawn(coro.New(func(co *coro.Co) error {
		fmt.Println("it is made")
		ready = true
		waiting.Wake()
		return nil
	}))
	if err := s.Run(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// it is made
	// it is ready
}
