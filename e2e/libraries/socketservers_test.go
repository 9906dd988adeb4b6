package libraries

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	daimon "github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/coroutine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// What a client says to the server below. Everything else is sent back.
const (
	sayFragments = "fragments" // it answers with large, as fragments
	sayPing      = "ping"      // it sends a ping, and "pong" when it is answered
	sayClose     = "close"     // it closes with 4321 and "bye"
	sayDrop      = "drop"      // it closes without a word
)

var large = "κόσμε" + strings.Repeat("€", 30_000) + "!"

// serveCoder is a handler of net/http, as the documentation of the library has it. It speaks the subprotocol chat.v1, and
// compresses messages if the client offers it. ended gets the code with which a connection was closed.
func serveCoder(ended func(int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat.v1"},
			CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		s := coderSocket{c, r.Context()}
		for {
			text, p, err := s.read()
			switch {
			case err != nil:
				ended(s.closed(err))
				return
			case !text:
				err = s.write(false, p)
			case string(p) == sayFragments:
				err = s.fragments([]byte(large[:4]), []byte(large[4:40_000]), []byte(large[40_000:]))
			case string(p) == sayPing:
				go func() {
					if s.Ping(s.ctx) == nil {
						_ = s.write(true, []byte("pong"))
					}
				}()
			case string(p) == sayClose:
				_, err = s.end(4321, "bye")
				ended(0)
			case string(p) == sayDrop:
				return
			default:
				err = s.write(true, p)
			}
			if err != nil {
				return
			}
		}
	}
}

// call runs f as a client of Daimon on a scheduler of its own, up to the end of the connection, and returns how that has ended.
func call(t *testing.T, url string, options daimon.Options, f func(*coroutine.Conn) error) error {
	t.Helper()
	v := &daimon.Client{URL: url, Options: options, Header: http.Header{"Origin": {strings.Replace(url, "ws", "http", 1)}},
		Handler: func(c *daimon.Conn) act.Action {
			if got := c.Subprotocol(); got != "chat.v1" {
				t.Errorf("subprotocol %q", got)
			}
			return coroutine.New(c, f)
		}}
	ended := make(chan error, 1)
	s := servertest.Start(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Spawn(&noting{act.Child{Action: v.Dial()}, ended})
		return nil
	})
	err := servertest.Receive(t, ended)
	require.NoError(t, s.End())
	return err
}

// noting notes how an action has ended.
type noting struct {
	act.Child
	ended chan error
}

func (n *noting) Act(t *act.Task) act.Directive {
	switch d := n.Child.Act(t); d {
	case act.Done:
		n.ended <- nil
		return d
	case act.Failed:
		n.ended <- t.Err()
		return act.Done
	default:
		return d
	}
}

// swap sends a message and returns the next one.
func swap(c *coroutine.Conn, kind daimon.Type, p string) (string, error) {
	if err := c.Write(kind, []byte(p)); err != nil {
		return "", err
	}
	m, err := c.Read()
	if err == nil && m.Type != kind {
		err = fmt.Errorf("type %d instead of %d", m.Type, kind)
	}
	return string(m.Data), err
}

// converse is what a client says, up to the last word.
func converse(c *coroutine.Conn) error {
	for _, n := range []int{0, 125, 126, 65535, 65536, 1 << 20} {
		p := string(noise(n))
		got, err := swap(c, daimon.Binary, p)
		if err != nil {
			return err
		}
		if got != p {
			return fmt.Errorf("%d bytes came back as another %d", n, len(got))
		}
	}
	for says, want := range map[string]string{"": "", "€": "€", large: large, sayFragments: large, sayPing: "pong"} {
		got, err := swap(c, daimon.Text, says)
		if err != nil {
			return fmt.Errorf("%.20q: %w", says, err)
		}
		if got != want {
			return fmt.Errorf("%.20q came back as %.20q", says, got)
		}
	}
	return nil
}

// The client of Daimon talks to a server of another library, which runs on net/http, and on the scheduler by httpd/nethttp.
func TestSocketServersOfAnotherLibrary(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			codes := make(chan int, 100)
			v := k.serve(t, serveCoder(func(code int) { codes <- code }))
			url := strings.Replace(v.url, "http", "ws", 1)
			chat := daimon.Options{Subprotocols: []string{"chat.v2", "chat.v1"}, MaxMessage: 32 << 20}

			require.NoError(t, call(t, url, chat, converse), "done is 1000")
			require.Equal(t, 1000, servertest.Receive(t, codes))
			packed := chat
			packed.Compress, packed.Takeover = 1, true
			require.NoError(t, call(t, url, packed, converse))
			require.Equal(t, 1000, servertest.Receive(t, codes))

			ends := func(says string, most int64, want daimon.CloseError) {
				t.Helper()
				options := daimon.Options{Subprotocols: chat.Subprotocols, MaxMessage: most}
				require.NoError(t, call(t, url, options, func(c *coroutine.Conn) error {
					_, err := swap(c, daimon.Text, says)
					if got := (*daimon.CloseError)(nil); !errors.As(err, &got) || got.Code != want.Code || got.Reason != want.Reason {
						return fmt.Errorf("%.20s ends with %v", says, err)
					}
					return nil
				}))
			}
			ends(sayClose, 1000, daimon.CloseError{Code: 4321, Reason: "bye"})
			ends(sayDrop, 1000, daimon.CloseError{Code: 1006})

			// An order is 1001.
			require.NoError(t, call(t, url, chat, func(c *coroutine.Conn) error {
				if _, err := swap(c, daimon.Text, "x"); err != nil {
					return err
				}
				c.Co().Scheduler().Group().Shutdown(servertest.Drain)
				_, err := c.Read()
				return err
			}))
			for servertest.Receive(t, codes) != 1001 {
			}
			v.drain()
		})
	}
}
