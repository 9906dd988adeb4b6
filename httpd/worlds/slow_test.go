package worlds_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// What a handler of net/http sees of a client that is silent for ten minutes. The time-outs are 4 s.
func TestSlowClientsOfAHandler(t *testing.T) {
	const silence = 10 * time.Minute
	const small = 15_000 // the kernel has no room for all of it, but the handler does not wait for that
	large := make([]byte, 1<<20)
	reads := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.ReadAll(r.Body)
		return err
	}
	writes := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(large)
		return errors.Join(err, http.NewResponseController(w).Flush())
	}
	leaves := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(large[:small])
		return err
	}
	patiently := func(set func(*http.ResponseController, time.Time) error, f func(http.ResponseWriter, *http.Request) error,
	) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error {
			return errors.Join(set(http.NewResponseController(w), time.Time{}), f(w, r))
		}
	}
	for name, row := range map[string]struct {
		handler func(http.ResponseWriter, *http.Request) error
		lasts   time.Duration // until its error is that the client is too slow; 0: it has none
		got     int           // by the client; -1: it is cut off
	}{
		"it is read from":                       {reads, 4 * time.Second, 0},
		"it is written to":                      {writes, 4 * time.Second, -1},
		"read from, without a deadline":         {patiently((*http.ResponseController).SetReadDeadline, reads), 0, 0},
		"written to, without a deadline":        {patiently((*http.ResponseController).SetWriteDeadline, writes), 0, 1 << 20},
		"without one, by one that has returned": {patiently((*http.ResponseController).SetWriteDeadline, leaves), 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			world := sim.New(sim.Options{})
			world.Excuse(func(*sim.Client, error) bool { return row.got < 0 })
			returned, got := false, int64(0)
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				began := world.Now()
				err := row.handler(w, r)
				if returned = true; row.lasts == 0 {
					require.NoError(t, err)
					return
				}
				late := net.Error(nil)
				require.ErrorAs(t, err, &late)
				require.True(t, late.Timeout())
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.GreaterOrEqual(t, world.Now()-began, row.lasts)
				require.LessOrEqual(t, world.Now()-began, row.lasts*9/8+time.Second/4)
			})
			web := &httpd.Server{Handler: (&nethttp.Adapter{Handler: handler}).Serve,
				Timeouts: httpd.Timeouts{Body: 4 * time.Second, Write: 4 * time.Second}}
			tcp := &service.Listener{Address: address, Handler: web.Serve}
			_, err := world.Server("web", act.Config{}, tcp.Setup)
			require.NoError(t, err)
			world.Client(address, func(c *sim.Client) error {
				body := "hello"
				if row.got == 0 {
					body = "he"
				}
				_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"+body)
				c.Sleep(silence)
				_, _ = io.WriteString(c, "hello"[len(body):])
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err == nil {
					got, err = io.Copy(io.Discard, answer.Body)
				}
				return err
			})
			require.NoError(t, world.Run())
			require.True(t, returned)
			if row.got < 0 {
				require.Less(t, got, int64(small))
			} else {
				require.EqualValues(t, row.got, got)
			}
		})
	}
}
