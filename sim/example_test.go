package sim_test

import (
	"bufio"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// pong answers each line "PING" with "PONG". It has a bug that no test over the loopback finds: it takes the bytes that
// have arrived for a line.
func pong(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			return c.Next(t, err)
		}
		answer := "WHAT?\n"
		if string(in) == "PING\n" {
			answer = "PONG\n"
		}
		c.Discard(len(in))
		_, err = c.WriteString(answer)
		return c.Next(t, err)
	})
}

// ping is a client.
func ping(c *sim.Client) error {
	in := bufio.NewReader(c)
	for range 10 {
		if _, err := fmt.Fprintln(c, "PING"); err != nil {
			return err
		}
		answer, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if answer != "PONG\n" {
			return fmt.Errorf("the answer to PING is %q", answer)
		}
	}
	return nil
}

// The loop runs worlds until one of them finds the bug of a small server. In a test, sim.Test is this loop.
func Example() {
	for seed := uint64(1); ; seed++ {
		w := sim.New(sim.Options{Seed: seed, Faults: sim.Faults{}.With(1000, "short read")})
		server := &service.Listener{Address: "10.0.0.1:80", Handler: pong}
		if _, err := w.Server("pong", act.Config{}, server.Setup); err != nil {
			fmt.Println(err)
			return
		}
		w.Client("10.0.0.1:80", ping)
		var found *sim.Failure
		if errors.As(w.Run(), &found) {
			fmt.Println(found.Err)
			return
		}
	}
	// Output:
	// client 1 of 10.0.0.1:80: the answer to PING is "WHAT?\n"
}

// A test of its own faults: the Faults of Anything, with other weights for two of them.
func ExampleTestWith() {
	_ = func(t *testing.T) { // func TestServer
		f := sim.Anything().With(65536/1000, "reset").Without("wall clock jump") // a reset in place of one segment in a thousand
		sim.TestWith(t, sim.Options{Faults: f, Storm: 10 * time.Minute}, func(w *sim.World) {
			server := &service.Listener{Address: "10.0.0.1:80", Handler: pong}
			if _, err := w.Server("pong", act.Config{}, server.Setup); err != nil {
				t.Fatal(err)
			}
			w.Client("10.0.0.1:80", ping)
		})
	}
}

// A reset that no fault explains fails a world, unless it is excused. This server resets every connection.
func ExampleWorld_Excuse() {
	w := sim.New(sim.Options{})
	hangsUp := func(c *listener.Conn) act.Action { c.Abort(); return nil }
	server := &service.Listener{Address: "10.0.0.1:80", Handler: hangsUp}
	if _, err := w.Server("server", act.Config{}, server.Setup); err != nil {
		fmt.Println(err)
	}
	w.Excuse(func(_ *sim.Client, err error) bool { return errors.Is(err, syscall.ECONNRESET) })
	w.Client("10.0.0.1:80", ping)
	fmt.Println(w.Run())
	// Output: <nil>
}

// Abort ends the connection with a reset, here in the middle of a line.
func ExampleClient_Abort() {
	w := sim.New(sim.Options{})
	server := &service.Listener{Address: "10.0.0.1:80", Handler: pong}
	if _, err := w.Server("pong", act.Config{}, server.Setup); err != nil {
		fmt.Println(err)
	}
	w.Client("10.0.0.1:80", func(c *sim.Client) error {
		_, err := fmt.Fprint(c, "PI")
		c.Abort()
		return err
	})
	fmt.Println(w.Run())
	// Output: <nil>
}
