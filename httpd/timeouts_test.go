package httpd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// lasts wants the connection to be open until shortly before a time is over, and to have ended then, as what it was
// answered and how.
func (c *client) lasts(t *testing.T, d time.Duration, answers string, how state) {
	t.Helper()
	c.d.pass(d - time.Millisecond)
	require.Equal(t, open, c.state, "too early")
	c.d.pass(2 * time.Millisecond)
	require.Equal(t, how, c.state)
	all, err := understand(string(c.out), true)
	require.NoError(t, err)
	require.Equal(t, answers, statuses(all))
	require.Equal(t, act.Done, c.verdict, "a slow client is no failure of ours")
	require.Zero(t, c.d.logs.Len())
}

const untold = 1000 * time.Hour

func TestTimeoutOfAHeadIs10s(t *testing.T) {
	d := newDriver(t)
	web := &httpd.Server{Handler: (&recorder{}).serve}
	d.dial(web, listener.Limits{}).lasts(t, 10*time.Second, "", closed)
	c := d.dial(web, listener.Limits{})
	d.pass(9 * time.Second)
	c.send("G").lasts(t, 10*time.Second, "408!", closed)
	c = d.dial(web, listener.Limits{}).send("G")
	d.pass(9 * time.Second)
	c.send("E").lasts(t, time.Second, "408!", closed)
	c = d.dial(web, listener.Limits{}).send(raw(get)) // all but its end
	c.lasts(t, 10*time.Second, "408!", closed)
	c = d.dial(web, listener.Limits{}).send(raw(get + "\n"))
	d.pass(50 * time.Second)
	c.send("G").lasts(t, 10*time.Second, "200 408!", closed)
	c = d.dial(web, listener.Limits{}).send(raw(get))
	d.pass(9 * time.Second)
	c.send(raw("\n"+get)).lasts(t, 10*time.Second, "200 408!", closed)
}

func TestTimeoutOfAnIdleConnectionIs75s(t *testing.T) {
	d := newDriver(t)
	k := &recorder{}
	c := d.dial(&httpd.Server{Handler: k.serve}, listener.Limits{})
	for range 5 {
		c.send(raw(get + "\n"))
		d.pass(74 * time.Second)
	}
	c.lasts(t, time.Second, "200 200 200 200 200", closed)
	require.Len(t, k.entries, 5)
}

func TestTimeoutsAsConfigured(t *testing.T) {
	d := newDriver(t)
	h := (&recorder{}).serve
	for _, f := range []time.Duration{time.Millisecond * 10, time.Minute, time.Hour} {
		all := httpd.Timeouts{Head: f, Idle: 2 * f, Body: 3 * f, Write: 4 * f}
		d.dial(&httpd.Server{Handler: h, Timeouts: all}, listener.Limits{}).lasts(t, f, "", closed)
		d.dial(&httpd.Server{Handler: h, Timeouts: all}, listener.Limits{}).send("G").lasts(t, f, "408!", closed)
		d.dial(&httpd.Server{Handler: h, Timeouts: all}, listener.Limits{}).send(raw(get+"\n")).lasts(t, 2*f, "200", closed)
		d.dial(&httpd.Server{Handler: h, Timeouts: all}, listener.Limits{}).send(raw(post+"Content-Length: 5\n\n")).lasts(t, 3*f, "408!", closed)
		c := d.dial(&httpd.Server{Handler: does(t, "whole 1048576"), Timeouts: all}, listener.Limits{})
		c.room = 0
		c.send(raw(get+"\n")).lasts(t, 4*f, "", aborted)
	}
	none := httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}
	for _, says := range []string{"", "G", get, get + "\n", post + "Content-Length: 5\n\n", coded + "\n"} {
		c := d.dial(&httpd.Server{Handler: h, Timeouts: none}, listener.Limits{}).send(raw(says))
		d.pass(untold)
		require.Equal(t, open, c.state, says)
		c.endInput()
	}
	c := d.dial(&httpd.Server{Handler: does(t, "whole 1048576"), Timeouts: none}, listener.Limits{})
	c.room = 0
	c.send(raw(get + "\n"))
	d.pass(untold)
	require.Equal(t, open, c.state)
	c.take(plenty)
	d.settle()
	require.Equal(t, "200", statuses(c.check(t)))
}

// A body that is at hand may pause for a minute in all, but for a second that each 240 bytes earn; a stream after each byte. A
// fast start buys no more than that minute, however much has come.
func TestTimeoutOfABodyIs60s(t *testing.T) {
	const sized, stream = post + "Content-Length: 1048576\n\n", coded + "\n100000\n"
	for _, row := range []struct {
		says  string
		piece int
		pause time.Duration // between the pieces
		lasts time.Duration // 0: it is not cut
	}{
		{sized, 0, time.Second, time.Minute},
		{sized, 24, time.Second, 66 * time.Second},
		{sized, 200, time.Second, 360 * time.Second},
		{sized, 240, time.Second, 0},
		{sized, 240 * 59, 59 * time.Second, 0},
		{sized, 10_000, 61 * time.Second, time.Minute},
		{sized, 1<<20 - 1, time.Hour, time.Minute},
		{stream, 0, time.Second, time.Minute},
		{stream, 1, 59 * time.Second, 0},
		{stream, 1<<20 - 1, 61 * time.Second, time.Minute},
	} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: (&recorder{}).serve}, listener.Limits{}).send(raw(row.says))
		began := d.now
		for i := 0; c.state == open && d.now-began < 10*time.Minute && (i+1)*row.piece < 1<<20; i++ {
			c.send(strings.Repeat("x", row.piece))
			for end := d.now + row.pause; c.state == open && d.now < end; {
				d.pass(time.Second)
			}
		}
		if row.lasts == 0 {
			require.Equal(t, open, c.state, row)
			continue
		}
		require.Equal(t, "408!", statuses(c.check(t)))
		require.InDelta(t, row.lasts, d.now-began, float64(row.lasts)/32, row)
	}
}

// A handler may have time-outs of its own. The rest of a body that it leaves has that of the server.
func TestTimeoutsOfOneRequest(t *testing.T) {
	web := &httpd.Server{Timeouts: httpd.Timeouts{Body: 20 * time.Second, Write: 20 * time.Second},
		Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
			if own, err := time.ParseDuration(string(r.Path()[1:])); err == nil {
				w.SetTimeout(own)
			}
			return does(t, "whole 100000")(w, r)
		}}
	for path, lasts := range map[string]time.Duration{"/1s": time.Second, "/0s": 20 * time.Second, "/": 20 * time.Second, "/40s": 40 * time.Second, "/-1s": 0} {
		d := newDriver(t)
		c := d.dial(web, listener.Limits{}).send(raw("GET /-1s HTTP/1.1\nHost: a\n\n"))
		c.room = 0
		c.received()
		c.send(raw("GET " + path + " HTTP/1.1\nHost: a\n\n"))
		if lasts == 0 {
			d.pass(untold)
			require.Equal(t, open, c.state)
			continue
		}
		c.lasts(t, lasts, "", aborted)
	}
}

// A body that the handler does not read has to come at that rate, too; its answer is out.
func TestABodyThatIsThrownAwayHasATimeout(t *testing.T) {
	d := newDriver(t)
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action { _, _ = w.WriteString("early"); return nil }}
	d.dial(web, listener.Limits{}).send(raw(post+"Content-Length: 5\n\nhell")).lasts(t, 5*time.Second, "200", closed)
}

// hurried reads a body that may not pause for long.
func hurried(w *httpd.Response, r *httpd.Request) act.Action {
	r.Body.SetTimeout(5 * time.Second)
	return (&recorder{}).serve(w, r)
}

// endless writes for ever.
func endless(w *httpd.Response, _ *httpd.Request) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		_, err := w.Write(make([]byte, 100))
		return listener.Next(t, err)
	})
}

// A client that takes less than 240 bytes a second for a minute is cut off; one that takes more is served to the end.
func TestAResponseHasATimeout(t *testing.T) {
	f := fileOf(t, 1<<20)
	file := func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.SetLength(1 << 20)
		return sending(w, f, 1<<20)
	}
	type way struct {
		h    httpd.Handler
		over func(*wire) monitor.Stream
	}
	lentFile := func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.SetLength(1 << 20)
		return lending(w, f, 1<<20)
	}
	ways := map[string]way{"a file, read": {file, plainStream}, "a file, not read": {file, fileStream}, "endless": {endless, plainStream},
		"lent": {does(t, "lend 1048576"), lendStream}, "a lent file": {lentFile, lendStream}}
	for _, text := range []string{"whole 1048576", "fill 1048576", "length 1048576, fill 1048576", "close, whole 50000"} {
		ways[text] = way{does(t, text), plainStream}
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for _, rate := range []int{0, 200, 300} {
				d := newDriver(t)
				c := d.dialOver(&httpd.Server{Handler: way.h}, listener.Limits{}, way.over)
				c.room = 5000
				c.send(raw(get + "\n"))
				if rate == 0 {
					c.lasts(t, time.Minute, "200…", aborted)
					continue
				}
				for range 150 {
					d.pass(time.Second)
					c.take(rate)
					d.settle()
				}
				if rate == 300 {
					require.Equal(t, open, c.state)
					continue
				}
				require.Equal(t, aborted, c.state)
				require.Equal(t, act.Done, c.verdict)
			}
		})
	}
}

// A system with a large send buffer reports room in it late. A client that goes on taking is not cut off for that.
func TestASlowReaderOfALargeBufferIsNotCutOff(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: does(t, "whole 1048576")}, listener.Limits{})
	c.room = 0
	c.send(raw(get + "\n"))
	for range 5 {
		c.room += 20_000 // nobody is woken
		d.pass(time.Minute + time.Second)
		require.Equal(t, open, c.state)
	}
	d.pass(time.Minute + time.Second)
	require.Equal(t, aborted, c.state)
}

// What the buffers of a system take when a client stops reading buys no time but an eighth.
func TestAFastStartOfAResponseBuysNoTime(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: does(t, "whole 1048576")}, listener.Limits{})
	c.room = 0
	c.send(raw(get + "\n"))
	c.take(40_000) // the task is not woken
	c.lasts(t, 67_500*time.Millisecond, "200…", aborted)
}
