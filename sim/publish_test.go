package sim_test

import (
	"bufio"

	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/publish/publish"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldPublish has subscribers that read slowly or not at all. Each must get whole lines and in order, and be told how
// many lines it has lost: exactly those that are missing. With the policy abort none is missing before the reset.
func TestWorldPublish(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		const at = "10.0.0.1:7013"
		limits := listener.Limits{High: 2 * publish.MaxLine, Overflow: pick(w, listener.Drop, listener.Abort), Linger: time.Hour}
		handler := func(c *listener.Conn) act.Action {
			a := publish.Serve(c)
			return act.Func(func(t *act.Task) act.Directive {
				if n := c.Queued(); n > limits.High+4<<10 {
					w.Errorf("%d bytes are queued", n)
				}
				return a.Act(t)
			})
		}
		tcp := &service.TCP{Address: at, Handler: handler, Limits: limits}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 3), Inbox: pick(w, 0, 2)}
		_, err := w.Server("publish", cfg, append(anyEngine(w), tcp.Setup)...)
		require.NoError(t, err)
		aborts := limits.Overflow == listener.Abort
		for range 5 {
			w.Client(at, subscriber(aborts))
		}
		for i := range 2 {
			w.Client(at, publisher(fmt.Sprint("p", i)))
		}
		w.Excuse(func(_ *sim.Client, err error) bool { return aborts && cutOff(err) })
	})
}

// publisher publishes numbered messages to a topic of its own.
func publisher(topic string) sim.Script {
	return func(c *sim.Client) error {
		padding := strings.Repeat(".", c.Rand().IntN(3000))
		for n := range 5 + c.Rand().IntN(60) {
			if _, err := fmt.Fprintf(c, "pub %s %d %s\n", topic, n, padding); err != nil {
				return err
			}
			if c.Rand().IntN(4) == 0 {
				c.Sleep(time.Duration(c.Rand().Int64N(int64(20 * time.Millisecond))))
			}
		}
		if err := c.CloseWrite(); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, c)
		return err
	}
}

// subscriber reads one topic, now and then, and ends after a while.
func subscriber(aborts bool) sim.Script {
	return func(c *sim.Client) error {
		topic := fmt.Sprint("p", c.Rand().IntN(2))
		pause := time.Duration(c.Rand().Int64N(int64(50 * time.Millisecond)))
		if c.Rand().IntN(3) == 0 {
			pause = 0
		}
		c.Go(func(c *sim.Client) error {
			if _, err := fmt.Fprintf(c, "sub %s\n", topic); err != nil {
				return err
			}
			c.Sleep(time.Duration(c.Rand().Int64N(int64(2 * time.Second))))
			return c.CloseWrite()
		})
		in := bufio.NewReader(c)
		next, lost := -1, 0 // the number that must come next; unknown before the first
		for {
			line, err := in.ReadString('\n')
			if err == io.EOF && line == "" {
				return nil
			}
			if err != nil {
				return err
			}
			var n int
			switch {
			case line == "+ "+topic+"\n":
			case strings.HasPrefix(line, "# "):
				if _, err := fmt.Sscanf(line, "# %d lost", &n); err != nil || n <= 0 || lost > 0 || aborts {
					return fmt.Errorf("%q", line)
				}
				lost = n
			default:
				text, ok := strings.CutPrefix(line, topic+" ")
				if _, err := fmt.Sscanf(text, "%d ", &n); !ok || err != nil || strings.Trim(line[strings.LastIndexByte(line, ' '):], " .\n") != "" {
					return fmt.Errorf("a part of a message: %q", line)
				}
				if next >= 0 && n != next+lost {
					return fmt.Errorf("message %d, told of %d lost, after message %d", n, lost, next-1)
				}
				next, lost = n+1, 0
			}
			c.Sleep(pause)
		}
	}
}
