package httpd_test

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// sleeper waits for an hour, or until its client has closed its side if it leaves then.
type sleeper struct {
	listener.Sleep
	r      *httpd.Request
	leaves bool
	closed *bool
}

func (s *sleeper) Act(t *act.Task) act.Directive {
	if s.leaves && s.r.Ended(t) {
		return act.Done
	}
	return s.Sleep.Act(t)
}

func (s *sleeper) Close() error {
	*s.closed = true
	return s.Sleep.Close()
}

// While a handler waits for something else, a reset closes its action. The end of the client's side does not, but an action
// that calls Ended learns of it, and its response is sent.
func TestActionsOfClientsThatHaveGone(t *testing.T) {
	for name, row := range map[string]struct {
		leaves bool
		end    error
		sent   string
		closed bool
		state  state
	}{
		"a reset":                                {false, syscall.ECONNRESET, get + "\n", true, aborted},
		"a reset behind another request":         {false, syscall.ECONNRESET, get + "\n" + get + "\n", true, aborted},
		"a reset behind a body that is not read": {false, syscall.ECONNRESET, post + "Content-Length: 5\n\nhello", true, aborted},
		"the end of its side":                    {false, io.EOF, get + "\n", false, open},
		"the end of its side, with Ended":        {true, io.EOF, get + "\n", true, closed},
	} {
		over := false
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: func(_ *httpd.Response, r *httpd.Request) act.Action {
			return &sleeper{listener.Sleep{For: time.Hour}, r, row.leaves, &over}
		}}, listener.Limits{}).send(raw(row.sent))
		require.False(t, over)
		c.finish(row.end)
		d.settle()
		require.Equal(t, row.closed, over, name)
		require.Equal(t, row.state, c.state, name)
		require.Equal(t, row.leaves, string(c.out) != "", "a client that half-closes gets its response")
	}
}

// A call of Ended is for one turn: in the next one the session looks for a reset again.
func TestAResetBehindATurnThatHasAskedForTheEnd(t *testing.T) {
	first, over := false, false
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: func(_ *httpd.Response, r *httpd.Request) act.Action {
		return act.Seq(&sleeper{listener.Sleep{For: time.Second}, r, true, &first}, &sleeper{listener.Sleep{For: time.Hour}, r, false, &over})
	}}, listener.Limits{}).send(raw(get + "\n"))
	d.pass(time.Second)
	require.True(t, first && !over)
	c.finish(syscall.ECONNRESET)
	d.settle()
	require.True(t, over)
}
