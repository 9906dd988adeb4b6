package httpd_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
)

// pattern returns n bytes, each of which depends on its place.
func pattern(n int) string {
	p := make([]byte, n)
	for i := range p {
		p[i] = 'a' + byte((i+i/26+i/676)%26)
	}
	return string(p)
}

// whim is a handler that reads a body and writes another, in random pieces and random ways, with waits and yields in
// between.
type whim struct {
	r       *rand.Rand
	w       *httpd.Response
	in      *httpd.Request
	answer  string // what is left of it
	heard   *strings.Builder
	pause   listener.Sleep
	pausing bool
	ended   bool
}

func (h *whim) Act(t *act.Task) act.Directive {
	for range 1 + h.r.IntN(5) {
		if h.pausing {
			if d := h.pause.Act(t); d != act.Done {
				return d
			}
			h.pausing = false
		}
		var err error
		switch what := h.r.IntN(10); {
		case h.answer == "" && h.ended:
			return act.Done
		case what == 0:
			h.pause, h.pausing = listener.Sleep{For: time.Duration(1+h.r.IntN(300)) * time.Millisecond}, true
			return h.pause.Act(t)
		case what == 1:
			return act.Yield
		case what == 2 && h.r.IntN(5) == 0:
			err = h.w.Flush()
		case what < 6 && !h.ended:
			err = h.read()
		case h.answer != "":
			n := min(len(h.answer), []int{0, 1, h.r.IntN(100), h.r.IntN(5000), h.r.IntN(100_000)}[h.r.IntN(5)])
			n, err = h.w.WriteString(h.answer[:n])
			h.answer = h.answer[n:]
		}
		if err != nil {
			return listener.Next(t, err)
		}
	}
	return act.Yield
}

func (h *whim) read() error {
	in, err := h.in.Body.Peek()
	if err != nil {
		if h.ended = err == io.EOF; h.ended {
			return nil
		}
		return err
	}
	n := []int{0, 1, len(in), h.r.IntN(len(in) + 1)}[h.r.IntN(4)]
	n = min(n, len(in))
	h.heard.Write(in[:n])
	h.in.Body.Discard(n)
	return nil
}

// Many requests on a connection whose client sends and takes in pieces of any size, against what should come: each
// byte of each body, once and in order, both ways.
func TestBodiesAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range tier.Choose[uint64](50, 50, 1000) {
		r := rand.New(rand.NewPCG(seed, round))
		d := newDesk(t)
		var sent, wanted []string
		var heard []*strings.Builder
		var says strings.Builder
		limits := listener.Limits{Read: 1000 + r.IntN(10_000), High: 1 + r.IntN(20_000)}
		limits.Low = r.IntN(limits.High)
		web := &httpd.Server{Handler: func(w *httpd.Response, in *httpd.Request) act.Action {
			i := len(heard)
			heard = append(heard, &strings.Builder{})
			if r.IntN(3) == 0 {
				w.SetLength(int64(len(wanted[i])))
			}
			return &whim{r: r, w: w, in: in, answer: wanted[i], heard: heard[i]}
		}}
		for range 1 + r.IntN(5) {
			body := pattern([]int{0, 1, r.IntN(100), r.IntN(50_000)}[r.IntN(4)])
			sent, wanted = append(sent, body), append(wanted, pattern([]int{0, 1, r.IntN(100), r.IntN(200_000)}[r.IntN(4)]))
			says.WriteString(framed(r, body))
		}
		c := d.dial(web, limits)
		c.room = r.IntN(1000)
		for all := says.String(); c.state == open && d.now < time.Hour; {
			n := min(len(all), []int{0, 1, r.IntN(100), r.IntN(20_000)}[r.IntN(4)])
			c.feed(all[:n])
			all = all[n:]
			d.settle()
			c.take([]int{0, 1, r.IntN(1000), r.IntN(100_000)}[r.IntN(4)])
			d.pass(100 * time.Millisecond)
		}
		all, err := understand(string(c.out), true)
		require.NoError(t, err, "round %d", round)
		require.Len(t, all, len(wanted), "round %d: %v, %s", round, c.err, c.state)
		for i, a := range all {
			require.False(t, a.cut, "round %d", round)
			require.True(t, wanted[i] == a.body, "round %d: answer %d of %d", round, i, len(wanted[i]))
			require.True(t, sent[i] == heard[i].String(), "round %d: body %d", round, i)
		}
		require.Equal(t, act.Done, c.verdict)
	}
}

// framed is a request with a body, whose end a length or chunks mark.
func framed(r *rand.Rand, body string) string {
	if r.IntN(2) == 0 {
		return raw(post+fmt.Sprintf("Content-Length: %d\n\n", len(body))) + body
	}
	says := raw(coded + "\n")
	for body != "" {
		n := min(len(body), 1+r.IntN(5000))
		says += fmt.Sprintf("%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return says + "0\r\n\r\n"
}

// What a handler has written is sent while it waits.
func TestWhatWasWrittenIsSentWhenTheHandlerWaits(t *testing.T) {
	d := newDesk(t)
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		say := func(text string) act.Action {
			return act.Func(func(*act.Task) act.Directive {
				_, _ = w.WriteString(text)
				return act.Done
			})
		}
		return act.Seq(say("one "), &listener.Sleep{For: time.Second}, say("two "), say("three "), &listener.Sleep{For: time.Second}, say("four"))
	}}
	c := d.dial(web, listener.Limits{}).say(raw(get + "\n"))
	for _, want := range []string{"one ", "one two three ", "one two three four"} {
		all, err := understand(string(c.out), false)
		require.NoError(t, err)
		require.Equal(t, want, all[0].body)
		d.pass(time.Second)
	}
	require.Equal(t, "200", statuses(c.check(t)))
}

// So is the end of a piece for which there was no room at first.
func TestWhatDidNotFitIsSentWhileTheHandlerWaits(t *testing.T) {
	d := newDesk(t)
	written := 0
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		return act.Seq(act.Func(func(*act.Task) act.Directive {
			written, _ = w.Write(make([]byte, 100_000))
			_, _ = w.Write(nil)
			return act.Done
		}), &listener.Sleep{For: time.Hour})
	}}
	c := d.dial(web, listener.Limits{})
	c.room = 0
	c.say(raw(get + "\n"))
	c.take(plenty)
	d.settle()
	require.Less(t, written, 100_000)
	head, chunk, _ := strings.Cut(string(c.out), "\r\n\r\n")
	require.Contains(t, head, "chunked")
	size, data, _ := strings.Cut(chunk, "\r\n")
	require.Equal(t, fmt.Sprintf("%x", written), size)
	require.Equal(t, written+2, len(data), "with its end")
}

// RFC 9110 6.6.1: the date is that of the second, also when it is not made anew for every answer.
func TestTheDateIsThatOfTheSecond(t *testing.T) {
	d := newDesk(t)
	d.now = 900 * time.Millisecond
	c := d.dial(&httpd.Server{Handler: hello}, listener.Limits{})
	for range 100 {
		c.say(raw(get + "\n"))
		all, err := understand(c.heard(), false)
		require.NoError(t, err)
		require.Equal(t, d.Wall().Format(httpd.TimeFormat), all[0].get("Date"))
		d.pass(70 * time.Millisecond)
	}
}
