package httpd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// RFC 9112 9.3, RFC 9110 7.6.1: persistence. "close" wins, and nothing after it is processed (9112 9.6).
func TestPersistence(t *testing.T) {
	table(t, map[string][]row{
		"HTTP/1.1 persists without close": {
			{get + "\n", "200", "GET /"},
			{get + "Connection: keep-alive\n\n", "200", "GET /"},
			{get + "Connection: close\n\n", "200!", "GET /"},
			{get + "Connection: Close\n\n", "200!", "GET /"},
			{get + "connection: a, CLOSE ,b\n\n", "200!", "GET /"},
			{get + "Connection: a\nConnection: b, close\n\n", "200!", "GET /"},
			{get + "Connection: keep-alive, close\n\n", "200!", "GET /"},
			{get + "Connection: close\nConnection: keep-alive\n\n", "200!", "GET /"},
			{get + "Connection: ,\t, close\t,,\n\n", "200!", "GET /"},
			{get + "Connection: closed, clos, xclose, close;a, \"close\"\n\n", "200", "GET /"},
			{get + "Connection:\n\n", "200", "GET /"},
			{get + "Connection: close\u00a0, \u0085close\n\n", "200", "GET /"},
			{get + "Proxy-Connection: close\n\n", "200", "GET / Proxy-Connection=close"},
			{get + "X: close\nClose: yes\n\n", "200", "GET / X=close Close=yes"},
		},
		"HTTP/1.0 closes without keep-alive": {
			{"GET / HTTP/1.0\nHost: a\n\n", "200!", "GET / 1.0"},
			{"GET / HTTP/1.0\nHost: a\nConnection: keep-alive\n\n", "200", "GET / 1.0"},
			{"GET / HTTP/1.0\nHost: a\nConnection: a,\tKeep-Alive\n\n", "200", "GET / 1.0"},
			{"GET / HTTP/1.0\nHost: a\nConnection: keep-alive\nConnection: close\n\n", "200!", "GET / 1.0"},
			{"GET / HTTP/1.0\nHost: a\nConnection: a\n\n", "200!", "GET / 1.0"},
			{"GET / HTTP/1.0\nHost: a\nKeep-Alive: timeout=5\n\n", "200!", "GET / 1.0 Keep-Alive=timeout=5"},
		},
		"one behind the other": {
			{get + "\n" + post + "Content-Length: 1\n\nx" + coded + "\n1\ny\n0\n\n" + "HEAD / HTTP/1.1\nHost: a\n\n" + get + "\n",
				"200 200 200 200 200", `GET /; POST / "x"; POST / "y"; HEAD /; GET /`},
			{get + "\n" + get + "Connection: close\n\n" + get + "\n", "200 200!", "GET /; GET /"},
			{get + "\n" + "GET /\n\n" + get + "\n", "200 400!", "GET /"},
			{get + "\nGET / HTTP/1.0\nHost: a\n\n" + get + "\n", "200 200!", "GET /; GET / 1.0"},
		},
	})
}

// late is a handler that answers after as many milliseconds as the path says.
func late(w *httpd.Response, r *httpd.Request) act.Action {
	var ms int
	path := string(r.Path())
	if _, err := fmt.Sscanf(path, "/%d", &ms); err != nil {
		w.StatusOnly(404)
		return nil
	}
	return act.Seq(&listener.Sleep{For: time.Duration(ms) * time.Millisecond}, act.Func(func(*act.Task) act.Directive {
		_, _ = w.WriteString(path)
		return act.Done
	}))
}

// RFC 9110 10.1.1: a client that waits gets 100 when the handler wants the body and it has not come.
func TestExpectations(t *testing.T) {
	const expecting = post + "Expect: 100-Continue\nContent-Length: 5\n\n"
	unread := does(t, "error 403")
	flushed := func(w *httpd.Response, r *httpd.Request) act.Action {
		_ = w.Flush()
		return (&recorder{}).serve(w, r)
	}
	for name, row := range map[string]struct {
		handler httpd.Handler
		says    []string
		answers []string // after each
	}{
		"it waits for it": {nil, []string{expecting, "hello", get + "\n"}, []string{"100", "100 200", "100 200 200"}},
		"it waits, with chunks": {nil, []string{coded + "Expect: 100-continue\n\n", "5\nhello\n", "0\n\n", get + "\n"},
			[]string{"100", "100", "100 200", "100 200 200"}},
		"the body has come":               {nil, []string{expecting + "hello", get + "\n"}, []string{"200", "200 200"}},
		"some of it has come":             {nil, []string{expecting + "h", "ello", get + "\n"}, []string{"", "200", "200 200"}},
		"the size of a chunk has come":    {nil, []string{coded + "Expect: 100-continue\n\n5", "\nhello\n0\n\n"}, []string{"100", "100 200"}},
		"an empty one, in chunks":         {nil, []string{coded + "Expect: 100-continue\n\n0\n\n", get + "\n"}, []string{"200", "200 200"}},
		"HTTP/1.0 is never told":          {nil, []string{"POST / HTTP/1.0\nExpect: 100-continue\nContent-Length: 5\n\n", "hello"}, []string{"", "200!"}},
		"the handler does not want it":    {unread, []string{expecting, "hello"}, []string{"403!", "403!"}},
		"the handler has answered before": {flushed, []string{expecting, "hello"}, []string{"200…", "200!"}},
		"becoming too large": {httpd.WithBody(4, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil }),
			[]string{coded + "\n3\nhel\n3\nlo!\n"}, []string{"413!"}},
		"too large": {httpd.WithBody(4, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil }), []string{expecting, "hello"},
			[]string{"413!", "413!"}},
	} {
		d := newDriver(t)
		h := row.handler
		if h == nil {
			h = (&recorder{}).serve
		}
		c := d.dial(&httpd.Server{Handler: h}, listener.Limits{})
		for i, s := range row.says {
			c.send(raw(s))
			old := asked{old: strings.Contains(row.says[0], "1.0")}
			all, err := understand(string(c.out), c.state != open, old)
			require.NoError(t, err, name)
			require.Equal(t, row.answers[i], statuses(all), name)
		}
		require.Equal(t, strings.HasSuffix(row.answers[len(row.answers)-1], "!"), c.state == closed, name)
	}
}

// A body that is longer than the server takes is refused before the handler hears of it, and before its client sends it. If
// its length is not known, the handler gets no more than that.
func TestMaxBody(t *testing.T) {
	const refused = "413!"
	long := newDriver(t).dial(&httpd.Server{Handler: hello, MaxBody: -1}, listener.Limits{})
	long.send(raw(post + "Content-Length: 1000000000000\n\n"))
	require.Contains(t, long.received(), " 200 ", "it is no bound")
	for name, row := range map[string]struct{ says, answers, seen string }{
		"as long as allowed":      {post + "Content-Length: 5\n\nhello", "200", `POST / "hello"`},
		"longer":                  {post + "Content-Length: 6\n\n", refused, ""},
		"longer, with 100":        {post + "Expect: 100-continue\nContent-Length: 6\n\n", refused, ""},
		"chunks":                  {coded + "\n3\nhel\n2\nlo\n0\n\n", "200", `POST / "hello"`},
		"chunks that become more": {coded + "\n3\nhel\n3\nlo!\n", refused, "POST / failed"},
		"a chunk that is more":    {coded + "\n6\nhello!", refused, "POST / failed"},
		"unread":                  {"POST /unread HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n6\nhello!\n0\n\n", "200!", "POST /unread …"},
	} {
		k := &recorder{}
		c := newDriver(t).dial(&httpd.Server{Handler: k.serve, MaxBody: 5}, listener.Limits{}).send(strings.SplitAfter(raw(row.says), "\n")...)
		all, err := understand(string(c.out), c.state != open)
		require.NoError(t, err, name)
		require.Equal(t, row.answers, statuses(all), name)
		require.Equal(t, row.seen, k.String(), name)
		require.Equal(t, row.answers != "200", c.state == closed, name)
	}
}

// RFC 9112 9.3, 9.6: what the handler leaves of a body is thrown away, up to 256 KiB; of more the answer says that the connection
// is closed. So a client loses no further request.
func TestUnreadBodiesAreDiscardedUpTo256KiB(t *testing.T) {
	const most = 256 << 10
	chunks := func(n, of int) string {
		return strings.Repeat(fmt.Sprintf("%x\n%s\n", of, strings.Repeat("x", of)), n/of) + "0\n\n"
	}
	early := func(took int) httpd.Handler { // answers when it has read so much
		return func(w *httpd.Response, r *httpd.Request) act.Action {
			left := took
			return act.Func(func(t *act.Task) act.Directive {
				for left > 0 {
					in, err := r.Body.Peek()
					if err != nil {
						return listener.Next(t, err)
					}
					n := min(left, len(in))
					r.Body.Discard(n)
					left -= n
				}
				_, _ = w.WriteString("early")
				return act.Done
			})
		}
	}
	for name, row := range map[string]struct {
		took    int
		says    string
		answers string
		state   state
	}{
		"a little":               {0, post + "Content-Length: 5\n\nhello", "200 200", open},
		"as much as is allowed":  {0, post + fmt.Sprintf("Content-Length: %d\n\n", most) + strings.Repeat("x", most), "200 200", open},
		"more":                   {0, post + fmt.Sprintf("Content-Length: %d\n\n", most+1) + strings.Repeat("x", most+1), "200!", closed},
		"the rest of a lot":      {most, post + fmt.Sprintf("Content-Length: %d\n\n", 2*most) + strings.Repeat("x", 2*most), "200 200", open},
		"too much of more":       {10, post + fmt.Sprintf("Content-Length: %d\n\n", most+11) + strings.Repeat("x", most+11), "200!", closed},
		"chunks":                 {0, coded + "\n" + chunks(most, 1<<10), "200 200", open},
		"many small chunks":      {0, coded + "\n" + chunks(10_000, 1), "200 200", open},
		"the rest of chunks":     {2 * most, coded + "\n" + chunks(3*most, 1<<10), "200 200", open},
		"too many chunks":        {0, coded + "\n" + chunks(2*most, 1<<10), "200!", closed},
		"too many small chunks":  {0, coded + "\n" + chunks(2*most, 1), "200!", closed},
		"too many, behind some":  {most, coded + "\n" + chunks(3*most, 1<<10), "200!", closed},
		"chunks that go wrong":   {0, coded + "\n1\nx\nx\n", "200!", closed},
		"more than there are":    {0, post + "Content-Length: 999999999999999999\n\nx", "200!", closed},
		"a body without its end": {0, post + "Content-Length: 5\n\nhell", "200", open},
	} {
		for _, piece := range []int{1 << 10, 1 << 20} {
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: early(row.took)}, listener.Limits{})
			for says := raw(row.says + strings.Repeat(behind, min(1, strings.Count(row.answers, " ")))); says != ""; {
				n := min(piece, len(says))
				c.send(says[:n])
				says = says[n:]
			}
			all, err := understand(string(c.out), c.state != open)
			require.NoError(t, err, name)
			require.Equal(t, row.answers, statuses(all), "%s by %d", name, piece)
			require.Equal(t, row.state, c.state, name)
		}
	}
}

// Whether an answer to a body in chunks is the last one is known at the end of the body. An answer that is complete waits for that,
// for half a second; one that begins earlier is the last.
func TestAnAnswerWaitsForTheEndOfChunks(t *testing.T) {
	const begun = coded + "\n5\nhello\n"
	reads := func(w *httpd.Response, r *httpd.Request) act.Action { // all, but for the end
		in, _ := r.Body.Peek()
		r.Body.Discard(len(in))
		return does(t, "write 5, flush")(w, r)
	}
	for name, row := range map[string]struct {
		handler httpd.Handler
		says    string
		at      time.Duration // when the rest comes
		rest    string
		answers string
	}{
		"the end comes":               {does(t, "write 5"), begun, 499 * time.Millisecond, "0\n\n" + behind, "200 200"},
		"more comes, and not the end": {does(t, "write 5"), begun, 499 * time.Millisecond, "1\nx\n", "200!"},
		"the end comes too late":      {does(t, "write 5"), begun, 500 * time.Millisecond, "0\n\n" + behind, "200!"},
		"the last answer anyway":      {does(t, "close, write 5"), begun, 0, "", "200!"},
		"it has begun":                {does(t, "write 5, flush"), begun, 0, "0\n\n" + behind, "200!"},
		"it has begun behind the end": {reads, begun + "0\n\n", 0, behind, "200 200"},
		"it has begun before much":    {does(t, "write 5, flush"), post + "Content-Length: 262145\n\n", 0, strings.Repeat("x", 262145) + behind, "200!"},
		"it has begun before less":    {does(t, "write 5, flush"), post + "Content-Length: 262144\n\n", 0, strings.Repeat("x", 262144) + behind, "200 200"},
	} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(raw(row.says))
		d.pass(row.at)
		c.send(raw(row.rest))
		d.pass(time.Millisecond)
		require.Equal(t, row.answers, statuses(c.check(t)), name)
	}
}

// An empty line does not begin a request (RFC 9112 2.2), so a connection with nothing else is idle: it is closed after 75 s,
// or at once on a shutdown request, and without a 408, which the client might take for the response to its next request.
func TestEmptyLinesLeaveAConnectionIdle(t *testing.T) {
	for _, lines := range []string{"\n", "\n\n\n"} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: hello}, listener.Limits{}).send(raw(get + "\n" + lines))
		d.pass(70 * time.Second)
		c.send(raw(lines)).lasts(t, 5*time.Second, "200", closed)

		d.dial(&httpd.Server{Handler: hello}, listener.Limits{}).send(raw(get + "\n" + lines))
		began := d.now
		require.NoError(t, d.obey(draining, nil))
		require.Equal(t, began, d.now)
	}
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: hello}, listener.Limits{}).send(raw(get + "\n")).send(strings.SplitAfter(raw(strings.Repeat("\n", 8)), "\n")...)
	require.Equal(t, "200", statuses(c.check(t)))
	require.Equal(t, "200 400!", statuses(c.send("\r\n").check(t)), "the bound holds across turns")
}

// Many clients do not watch idle connections: a shutdown need not wait for them. After an answer a client has
// longer, so that it gets all of it.
func TestAnIdleConnectionLingersForHalfASecond(t *testing.T) {
	d := newDriver(t)
	web := &httpd.Server{Handler: hello}
	limits := listener.Limits{Linger: 3 * time.Second}
	for says, want := range map[string]time.Duration{"": time.Second / 2, get + "\n": time.Second / 2, "G": limits.Linger,
		"GET / HTTP/1.0\n\n": limits.Linger} {
		c := d.dial(web, limits).send(raw(says))
		d.pass(2 * time.Minute)
		require.Equal(t, closed, c.state)
		require.Equal(t, want, c.linger, says)
	}
}
