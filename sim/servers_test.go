package sim_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/chat/chat"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/examples/proxy/proxy"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

func serve(t *testing.T, w *sim.World, name string, address string, handler func(*listener.Conn) act.Action) *sim.Server {
	return run(t, w, name, tcp(w, address, handler).Setup)
}

func tcp(w *sim.World, address string, handler func(*listener.Conn) act.Action) *service.TCP {
	return &service.TCP{Address: address, Handler: handler, Limits: patient(w), MaxConns: pick(w, 0, 0, 5)}
}

func run(t *testing.T, w *sim.World, name string, setup func(*act.Scheduler) error) *sim.Server {
	v, err := w.Server(name, act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 3)}, append(anyEngine(w), setup)...)
	require.NoError(t, err)
	return v
}

// TestProxy runs echo clients through a proxy. A reset of one of the two connections resets the other, and a client
// sees only its own.
func TestProxy(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		serve(t, w, "echo", "10.0.0.2:7007", echo.Echo)
		serve(t, w, "proxy", "10.0.0.1:7009", proxy.To("10.0.0.2:7007"))
		for range 8 {
			w.Client("10.0.0.1:7009", echoes)
		}
		w.Excuse(func(_ *sim.Client, err error) bool { return w.Counts().Broken > 0 && cutOff(err) })
	})
}

func cutOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOTCONN)
}

// TestChat has members that send numbered lines. Each member must get the lines of another in order, and none twice.
func TestChat(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		run(t, w, "chat", chat.New(tcp(w, "10.0.0.1:7010", chat.Member)).Setup)
		for i := range 6 {
			w.Client("10.0.0.1:7010", member(fmt.Sprint("m", i), w.Rand().IntN(30)))
		}
	})
}

func member(name string, lines int) sim.Script {
	return func(c *sim.Client) error {
		heard := map[string]int{}
		in := bufio.NewReader(c)
		if _, err := in.ReadString('\n'); err != nil { // "Your name?"
			return err
		}
		c.Go(func(*sim.Client) error {
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					return ended(err)
				}
				if err := inOrder(heard, line); err != nil {
					return err
				}
			}
		})
		if _, err := fmt.Fprintln(c, name); err != nil {
			return err
		}
		for n := range lines {
			if _, err := fmt.Fprintf(c, "%d\n", n); err != nil {
				return err
			}
			c.Sleep(time.Duration(c.Rand().Int64N(int64(100 * time.Millisecond))))
		}
		return c.CloseWrite()
	}
}

// ended reads until the server has closed, too.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// inOrder checks a line "name: number".
func inOrder(heard map[string]int, line string) error {
	who, what, ok := strings.Cut(strings.TrimSpace(line), ": ")
	var n int
	if _, err := fmt.Sscan(what, &n); !ok || err != nil {
		return nil // a member has joined or left
	}
	if last, ok := heard[who]; ok && n != last+1 {
		return fmt.Errorf("%q was received after line %d", line, last)
	}
	heard[who] = n
	return nil
}

// TestFlood has more clients at once than a service can accept in one turn.
func TestFlood(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		serve(t, w, "echo", "10.0.0.1:7007", echo.Echo)
		for range 300 {
			w.Client("10.0.0.1:7007", func(c *sim.Client) error {
				if _, err := fmt.Fprintln(c, "here I am"); err != nil {
					return err
				}
				_, err := bufio.NewReader(c).ReadString('\n')
				return err
			})
		}
	})
}
