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
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldPush has many tasks that push numbered messages to each of some connections, and wait where there is no
// room. The clients read slowly. They get all messages, whole, and the messages of one task in order.
func TestWorldPush(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		const at, longest = "10.0.0.1:7013", 2000
		limits := listener.Limits{High: pick(w, longest, 5000, 0), Linger: time.Hour}
		tasks, messages := 2+w.Rand().IntN(6), 1+w.Rand().IntN(40)
		serve := func(c *listener.Conn) act.Action {
			left := tasks
			for i := range tasks {
				n := 0
				c.Scheduler().Spawn(act.Func(func(t *act.Task) act.Directive {
					for ; n < messages; n++ {
						padding := strings.Repeat(".", w.Rand().IntN(longest-20))
						push := pick(w, c.Push, c.PushShared)
						if err := push(fmt.Appendf(nil, "%d %d %s\n", i, n, padding)); err != nil {
							return goneOr(t, err)
						}
					}
					if left--; left == 0 {
						_ = c.CloseWrite()
					}
					return act.Done
				}))
			}
			return act.Func(func(t *act.Task) act.Directive {
				if n := c.Queued(); limits.High > 0 && n > limits.High+4<<10 {
					w.Errorf("%d bytes are queued, of %d", n, limits.High)
				}
				_, err := c.Peek(1)
				return c.Next(t, err)
			})
		}
		tcp := &service.Listener{Address: at, Handler: serve, Limits: limits}
		cfg := act.Config{Schedulers: pick(w, 1, 2), TurnsPerPass: pick(w, 0, 3)}
		_, err := w.Server("push", cfg, append(anyEngine(w), tcp.Setup)...)
		require.NoError(t, err)
		for range 3 {
			w.Client(at, func(c *sim.Client) error {
				in, next := bufio.NewReader(c), make([]int, tasks)
				for {
					line, err := in.ReadString('\n')
					if err == io.EOF && line == "" {
						for i, n := range next {
							if n != messages {
								return fmt.Errorf("%d of %d messages of task %d: %w", n, messages, i, io.ErrUnexpectedEOF)
							}
						}
						return nil
					}
					if err != nil {
						return err
					}
					var i, n int
					if _, err := fmt.Sscanf(line, "%d %d ", &i, &n); err != nil || strings.Count(line, " ") != 2 || next[i] != n {
						return fmt.Errorf("%q, after %v", line, next)
					}
					next[i]++
					c.Sleep(time.Duration(c.Rand().Int64N(int64(20 * time.Millisecond))))
				}
			})
		}
	})
}

// goneOr is listener.Next for a task that is done when its connection is broken.
func goneOr(t *act.Task, err error) act.Directive {
	if _, waits := err.(act.Blocked); waits {
		return listener.Next(t, err)
	}
	return act.Done
}
