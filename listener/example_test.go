package listener_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// A server that answers in capitals. Nothing blocks: the error of a call that would block goes to Next.
func ExampleConn() {
	shout := func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			in, err := c.Peek(1)
			if err != nil {
				return listener.Next(t, err) // nothing there yet: wait; the client has ended: done
			}
			n, err := c.Write(bytes.ToUpper(in))
			c.Discard(n) // bytes that were not written stay unread, which holds up the client
			return listener.Next(t, err)
		})
	}
	converse(shout, func(client net.Conn) {
		fmt.Fprint(client, "is anybody there?")
		_ = client.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(client)
		fmt.Printf("%s\n", answer)
	})
	// Output: IS ANYBODY THERE?
}

// A broker pushes every line of one client to all others. A client that does not read loses whole messages, never a
// part of one. All connections are on one scheduler; docs/shared-state.md is about several.
func ExampleConn_PushShared() {
	members := map[*listener.Conn]bool{}
	say := func(line []byte) {
		for c := range members {
			if c.PushShared(line) == net.ErrClosed { // another error means that it misses the line
				delete(members, c)
			}
		}
	}
	join := func(c *listener.Conn) act.Action {
		members[c] = true
		lines := listener.Line{Conn: c, Max: 1000}
		return act.Func(func(t *act.Task) act.Directive {
			line, err := lines.Read()
			if err != nil {
				return listener.Next(t, err)
			}
			say(append(bytes.Clone(line), '\n')) // the line is lent, and shared bytes must not change
			return act.Yield
		})
	}
	server := &service.Listener{Address: "127.0.0.1:0", Handler: join}
	talk(server, func(client net.Conn) {
		fmt.Fprintln(client, "is anybody there?")
		echo, _ := bufio.NewReader(client).ReadString('\n')
		fmt.Print(echo)
	})
	// Output: is anybody there?
}

// A server that sends one file. SendFile sends a part in each turn, and waits while the client does not read.
func ExampleConn_SendFile() {
	file, err := os.CreateTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _, _ = file.Close(), os.Remove(file.Name()) }()
	size, _ := file.WriteString("To be, or not to be")
	give := func(c *listener.Conn) act.Action {
		offset, left := int64(0), int64(size)
		_, _ = fmt.Fprintf(c, "%d bytes: ", left) // gathered, and sent first
		return act.Func(func(t *act.Task) act.Directive {
			n, err := c.SendFile(file, offset, left)
			if offset, left = offset+n, left-n; left == 0 {
				return act.Done
			}
			return listener.Next(t, err) // no room: wait; nil: one call sends 512 KiB at most
		})
	}
	converse(give, func(client net.Conn) {
		answer, _ := io.ReadAll(client)
		fmt.Printf("%s\n", answer)
	})
	// Output: 19 bytes: To be, or not to be
}

// converse runs a server for one client.
func converse(handler func(*listener.Conn) act.Action, client func(net.Conn)) {
	talk(&service.Listener{Address: "127.0.0.1:0", Handler: handler}, client)
}

// talk is converse with options.
func talk(server *service.Listener, client func(net.Conn)) {
	ctx, cancel := context.WithCancel(context.Background())
	visit := func(s *act.Scheduler) error {
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
	}
	if err := act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, visit); err != nil {
		fmt.Println(err)
	}
}

// A server that uses net/rpc, which answers each request on a goroutine of its own.
func ExampleBridge() {
	server := rpc.NewServer()
	_ = server.Register(Arithmetic{})
	serve := func(c *listener.Conn) act.Action {
		return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
			server.ServeConn(c)
			return nil
		}}
	}
	converse(serve, func(conn net.Conn) {
		client := rpc.NewClient(conn)
		defer client.Close()
		sum := 0
		err := client.Call("Arithmetic.Add", []int{1, 2, 3}, &sum)
		fmt.Println(sum, err)
	})
	// Output: 6 <nil>
}

// Arithmetic is a service of net/rpc.
type Arithmetic struct{}

// Add adds numbers.
func (Arithmetic) Add(numbers []int, sum *int) error {
	for _, n := range numbers {
		*sum += n
	}
	return nil
}

// Next turns the error of a call into a Directive.
func ExampleNext() {
	s := act.New(act.Config{Logger: zap.NewNop()})
	defer func() { _ = s.Close() }()
	mailbox := listener.NewMailbox[string](1)
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		_, empty := mailbox.Take()
		fmt.Println(listener.Next(t, nil))
		fmt.Println(listener.Next(t, empty)) // and the next Send wakes the task
		fmt.Println(listener.Next(t, io.EOF))
		fmt.Println(listener.Next(t, errors.New("no good")))
		return act.Done
	}))
	_ = s.Run()
	// Output:
	// Yield
	// Wait
	// Done
	// Failed
}

// A conversation line by line, which ends with a dot.
func ExampleLine() {
	clerk := func(c *listener.Conn) act.Action {
		lines := listener.Line{Conn: c, Max: 1000}
		n := 0
		return act.Func(func(t *act.Task) act.Directive {
			line, err := lines.Read()
			if err != nil {
				return listener.Next(t, err)
			}
			if string(line) == "." {
				return act.Done // the service closes the connection after the last byte
			}
			n++
			_, err = c.WriteString(fmt.Sprintf("%d: %s\n", n, line))
			return listener.Next(t, err)
		})
	}
	converse(clerk, func(client net.Conn) {
		fmt.Fprint(client, "to be\r\nor not to be\r\n.\r\n")
		answer := bufio.NewScanner(client)
		for answer.Scan() {
			fmt.Println(answer.Text())
		}
	})
	// Output:
	// 1: to be
	// 2: or not to be
}

// A task connects to a server, within a time limit, and reads from it.
func ExampleConnect() {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	greeted := make(chan struct{})
	go func() {
		defer close(greeted)
		if c, err := door.Accept(); err == nil {
			fmt.Fprintln(c, "220 at your service")
			_ = c.Close()
		}
		_ = door.Close()
	}()

	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	connect := &listener.Connect{Address: door.Addr().String()}
	var lines listener.Line
	s.Spawn(act.Seq(
		listener.Within(10*time.Second, connect),
		act.Func(func(t *act.Task) act.Directive {
			if lines.Conn == nil {
				lines.Conn = connect.Conn()
				t.Own(lines.Conn) // closed with the task, however the task ends
			}
			greeting, err := lines.Read()
			if err != nil {
				return listener.Next(t, err)
			}
			fmt.Printf("%s\n", greeting)
			return act.Done
		}),
	))
	if err := s.Run(); err != nil {
		fmt.Println(err)
	}
	<-greeted
	// Output: 220 at your service
}

// A client asks a server, and repeats the question if a packet is lost.
func ExampleQuery() {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		question := make([]byte, 100)
		if n, from, err := server.ReadFrom(question); err == nil {
			_, _ = server.WriteTo(bytes.ToUpper(question[:n]), from)
		}
	}()
	s := act.New(act.Config{})
	query := &listener.Query{Address: server.LocalAddr().String(), Request: []byte("who is there?")}
	s.Spawn(act.Seq(query, act.Func(func(*act.Task) act.Directive {
		fmt.Printf("%s\n", query.Answer())
		return act.Done
	})))
	if err := s.Run(); err != nil {
		fmt.Println(err)
	}
	_, _ = s.Close(), server.Close()
	// Output: WHO IS THERE?
}

func ExampleSleep() {
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	say := func(text string) act.Action {
		return act.Func(func(*act.Task) act.Directive { fmt.Println(text); return act.Done })
	}
	s.Spawn(act.Seq(&listener.Sleep{For: 20 * time.Millisecond}, say("slow")))
	s.Spawn(act.Seq(&listener.Sleep{For: 10 * time.Millisecond}, say("and")))
	s.Spawn(say("quick"))
	_ = s.Run()
	// Output:
	// quick
	// and
	// slow
}

func ExampleWithin() {
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	bounded := listener.Within(10*time.Millisecond, &listener.Sleep{For: time.Hour})
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		d := bounded.Act(t)
		if d == act.Failed && errors.Is(t.Err(), os.ErrDeadlineExceeded) {
			fmt.Println("an hour was too long") // the failure is handled here, and goes no further
			return act.Done
		}
		return d
	}))
	_ = s.Run()
	// Output: an hour was too long
}

// A task that waits for a value from another goroutine.
func ExampleReceive() {
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	answers := listener.NewMailbox[int](8)
	go answers.Send(42)

	receive := &listener.Receive[int]{From: answers}
	s.Spawn(act.Seq(receive, act.Func(func(*act.Task) act.Directive {
		fmt.Println(receive.Value)
		return act.Done
	})))
	_ = s.Run()
	// Output: 42
}

// Any goroutine can send to a task, which takes the values and waits for more.
func ExampleMailbox() {
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	numbers := listener.NewMailbox[int](16)
	sum := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		n, err := numbers.Take()
		if err == listener.ErrMailboxClosed {
			return act.Done
		}
		if err != nil {
			return listener.Next(t, err) // empty: the next Send wakes us
		}
		sum += n
		return act.Yield
	}))
	var senders sync.WaitGroup
	for i := range 10 {
		senders.Go(func() { numbers.Send(i) }) // false if it is full
	}
	go func() {
		senders.Wait()
		numbers.Close()
	}()
	_ = s.Run()
	fmt.Println(sum)
	// Output: 45
}
