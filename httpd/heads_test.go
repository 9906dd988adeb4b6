package httpd_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/listener"
)

// Heads that have begun and not ended take memory, which is bounded: beyond the bound a head has to come in one piece.
func TestMaxHeads(t *testing.T) {
	const small = 4 << 10 // what each takes
	d := newDriver(t)
	web := &httpd.Server{Handler: hello, MaxHeads: 10 * small}
	begin := func() *client { return d.dial(web, listener.Limits{}).send("GET /") }
	var begun []*client
	for range 10 {
		begun = append(begun, begin())
		require.Equal(t, open, begun[len(begun)-1].state)
	}
	require.Equal(t, "503!", statuses(begin().check(t)))
	require.Equal(t, "200", statuses(d.dial(web, listener.Limits{}).send(raw(get+"\n")).check(t)), "in one piece")
	require.Equal(t, "200", statuses(begun[0].send(raw(" HTTP/1.1\nHost: a\n\n")).check(t)))
	require.Equal(t, open, begin().state, "in the place of the one that has ended")
	require.Equal(t, open, begun[1].send(strings.Repeat("x", small-10)).state)
	require.Equal(t, "503!", statuses(begun[1].send(strings.Repeat("x", 10)).check(t)), "one that grows beyond 4 KiB")
}

// The default is 8 MiB: 2048 small heads, or 128 of the longest. If it is negative there is no bound.
func TestMaxHeadsByDefault(t *testing.T) {
	longest := get + "X: " + strings.Repeat("x", 60_000)
	for says, most := range map[string]int{"GET /": 2048, longest: 128} {
		for max, last := range map[int]state{0: closed, -1: open} {
			d, web := newDriver(t), &httpd.Server{Handler: hello, MaxHeads: max}
			for range most {
				require.Equal(t, open, d.dial(web, listener.Limits{}).send(raw(says)).state)
			}
			require.Equal(t, last, d.dial(web, listener.Limits{}).send(raw(says)).state)
		}
	}
}

func TestAHeadThatEndsGivesItsMemoryBack(t *testing.T) {
	d := newDriver(t)
	web := &httpd.Server{Handler: late, MaxHeads: 4 << 10}
	begin := func() *client { return d.dial(web, listener.Limits{}).send("GET /") }
	for name, end := range map[string]func(c *client){
		"a handler that waits":   func(c *client) { c.send(raw("1000 HTTP/1.1\nHost: a\n\n")) },
		"a refusal":              func(c *client) { c.send(raw("\n")) },
		"too long for memory":    func(c *client) { c.send(strings.Repeat("x", 4<<10)) },
		"a time-out":             func(*client) { d.pass(11 * time.Second) },
		"an end":                 func(c *client) { c.endInput() },
		"another head in pieces": func(c *client) { c.send(raw(" HTTP/1.1\nHost: a\n\nG"), raw("ET / HTTP/1.1\nHost: a\n\n")) },
		"a reset": func(c *client) {
			c.finish(syscall.ECONNRESET)
			d.settle()
		},
	} {
		for range 70 { // more exchanges than are kept for the next requests
			d.dial(web, listener.Limits{}).send(raw("GET /500 HTTP/1.1\nHost: a\n\n"))
		}
		for range 2 {
			c := begin()
			require.Equal(t, open, c.state, name)
			d.pass(time.Second / 2)
			end(c)
			d.pass(time.Second / 2)
		}
	}
}

// What a connection counts for the budget of its scheduler during a request, it gives back after that.
func TestTheMemoryOfARequestIsGivenBack(t *testing.T) {
	collecting := httpd.WithBody(0, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil })
	for name, row := range map[string]struct {
		handler httpd.Handler
		says    []string
	}{
		"a head in pieces":    {hello, []string{get, "\n"}},
		"a collected body":    {collecting, []string{post + "Content-Length: 5\n\nhe", "llo"}},
		"a hijacked one":      {hijacking, []string{get, "\n"}},
		"one of a new action": {upgrading, []string{upgrade[:9], upgrade[9:]}},
	} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{})
		before := budget.Of(d.s).Total()
		c.send(raw(row.says[0]))
		require.Greater(t, budget.Of(d.s).Total(), before, name)
		c.send(raw(row.says[1]))
		require.Equal(t, before, budget.Of(d.s).Total(), name)
		require.Equal(t, open, c.state)
	}
}
