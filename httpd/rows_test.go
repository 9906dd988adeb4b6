package httpd_test

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/listener"
)

// raw returns the bytes that a text of the tests stands for: \n is CRLF, ␊ is a bare LF and ␍ a bare CR.
func raw(text string) string {
	text = strings.ReplaceAll(text, "\n", "\r\n") // a Replacer visits each byte, which takes long in large bodies
	text = strings.ReplaceAll(text, "␊", "\n")
	return strings.ReplaceAll(text, "␍", "\r")
}

// row is a conversation: what a client sends, in the symbols of raw, and the answers and requests that should follow.
type row struct {
	says    string
	answers string // "200 200 400!": the last one closes
	seen    string // by the handler: "GET /a; POST /b 5 bytes"
}

// behind follows each row: if the connection is still open it is answered, which shows that the server knows where the
// row has ended; if not, it must not be read.
const behind = "GET /behind HTTP/1.1\nHost: a\n\n"

// run runs a row as a whole, cut at every place, and byte by byte; each with the pieces one after the other, and all at
// once.
func (r row) run(t *testing.T, d *driver) {
	t.Helper()
	says, answers, seen := raw(r.says+behind), r.answers, r.seen
	if !strings.HasSuffix(answers, "!") {
		answers, seen = join(answers, "200", " "), join(seen, "GET /behind", "; ")
	}
	for i, pieces := range ways(says) {
		for _, atOnce := range []bool{false, true} {
			if race.Enabled && i > 1 && atOnce == (i%2 == 0) {
				continue // they are slow, and one of both will do
			}
			k := &recorder{copies: i%2 == 1}
			c := d.dial(&httpd.Server{Handler: k.serve}, listener.Limits{})
			if atOnce {
				c.feed(pieces...)
				d.settle()
			} else {
				c.send(pieces...)
			}
			all := c.check(t, k.questions(says)...)
			if got := statuses(all); got != answers || k.String() != seen {
				require.Equal(t, answers+" for "+seen, got+" for "+k.String(), "%.200q in %.40q", r.says, pieces)
			}
			if n := len(all); n > 0 && all[n-1].status >= 400 {
				all[n-1].isTheServersOwn(t, r.says)
			}
			c.closesInOrder(t)
			require.Zero(t, d.logs.Len(), "a client's mistake is no failure of ours")
		}
	}
}

// isTheServersOwn wants a status and nothing of the client's.
func (a answer) isTheServersOwn(t *testing.T, says string) {
	text := fmt.Sprintf("%d %s\n", a.status, syntax.StatusText(a.status))
	require.Equal(t, strconv.Itoa(len(text)), a.get("Content-Length"))
	require.Equal(t, "text/plain; charset=utf-8", a.get("Content-Type"))
	require.True(t, a.body == text || a.body == "" && strings.HasPrefix(says, "HEAD"), a.body)
}

func join(list, more, by string) string {
	if list == "" {
		return more
	}
	return list + by + more
}

// ways returns how a text may come: in one piece, byte by byte, and in two. Of a long text there are not all, and under
// the race detector some.
func ways(text string) (all [][]string) {
	all = append(all, []string{text})
	if len(text) < 3000 || len(text) < 20_000 && !race.Enabled { // the detector has each turn spoil 4 KiB
		all = append(all, cut(text, nil))
	}
	step := 1 + len(text)*len(text)/600_000
	if race.Enabled {
		step = max(step, len(text)/20) // go test ./... has them all without the detector
	}
	for i := 1; i < len(text); i += step {
		all = append(all, []string{text[:i], text[i:]})
	}
	return all
}

// check wants the answers to be what a strict client takes, and the connection to have ended as the last of them says.
func (c *client) check(t *testing.T, questions ...asked) []answer {
	t.Helper()
	all, err := understand(string(c.out), c.state != open, questions...)
	require.NoError(t, err)
	closes := len(all) > 0 && all[len(all)-1].closes
	if closes != (c.state == closed) || c.state == aborted {
		require.FailNow(t, "it says one thing and does another", "%s, and it is %s", statuses(all), c.state)
	}
	return all
}

// closesInOrder has the client end its side, which ends the connection without sending more.
func (c *client) closesInOrder(t *testing.T) {
	t.Helper()
	said := len(c.out)
	c.endInput()
	require.Equal(t, closed, c.state)
	require.Equal(t, act.Done, c.verdict)
	require.Empty(t, string(c.out[said:]), "after the end")
	require.Empty(t, c.queue)
}

// recorder is a handler that notes what it sees, reads the whole body, and answers with its length.
type recorder struct {
	entries []string
	asked   []asked
	copies  bool // it reads bodies by Read
}

func (k *recorder) String() string { return strings.Join(k.entries, "; ") }

func (k *recorder) serve(w *httpd.Response, r *httpd.Request) act.Action {
	k.asked = append(k.asked, asked{head: string(r.Method()) == "HEAD", old: r.Proto() == "HTTP/1.0"})
	k.entries = append(k.entries, k.entry(r)+" …")
	p := &reading{k: k, w: w, r: r, entry: len(k.entries) - 1}
	if string(r.Path()) == "/unread" {
		_, _ = w.WriteString("whatever")
		return nil
	}
	if _, err := r.Body.Peek(); err == io.EOF && p.ended(err) {
		return nil
	}
	return p
}

// entry is what is not as it nearly always is.
func (k *recorder) entry(r *httpd.Request) string {
	e := fmt.Sprintf("%s %s", r.Method(), r.Target())
	path := string(r.Path())
	if len(r.Query()) > 0 {
		path += "?" + string(r.Query())
	}
	if path != string(r.Target()) {
		e += " path=" + path
	}
	if r.Proto() == "HTTP/1.0" {
		e += " 1.0"
	}
	if string(r.Host()) != "a" {
		e += " host=" + string(r.Host())
	}
	for name, value := range r.Fields() {
		switch strings.ToLower(string(name)) {
		case "host", "content-length", "transfer-encoding", "connection":
		default:
			e += fmt.Sprintf(" %s=%s", name, value)
		}
	}
	return e
}

// questions are the requests that the handler was asked, and the one that it was not.
func (k *recorder) questions(says string) []asked {
	return append(k.asked, asked{head: strings.HasPrefix(says, "HEAD ")})
}

// reading is what a recorder does with a body.
type reading struct {
	k     *recorder
	w     *httpd.Response
	r     *httpd.Request
	entry int
	body  []byte
}

func (p *reading) Act(t *act.Task) act.Directive {
	for {
		n, err := p.take()
		if err != nil {
			if p.ended(err) {
				return act.Done
			}
			return listener.Next(t, err)
		}
		p.body = p.body[:len(p.body)+n]
	}
}

// take takes some more of the body into the free space after it.
func (p *reading) take() (n int, err error) {
	p.body = slices.Grow(p.body, 8<<10)
	room := p.body[len(p.body):cap(p.body)]
	if p.k.copies {
		return p.r.Body.Read(room)
	}
	in, err := p.r.Body.Peek()
	n = copy(room, in[:(len(in)+1)/2]) // half of it, so that there is more to come
	p.r.Body.Discard(n)
	return n, err
}

// ended answers, if that is the end of the body.
func (p *reading) ended(err error) bool {
	e := &p.k.entries[p.entry]
	if _, blocked := err.(act.Blocked); blocked {
		return false
	}
	*e = strings.TrimSuffix(*e, " …")
	if err != io.EOF {
		*e += " failed"
		return false
	}
	if len(p.body) > 0 {
		*e += fmt.Sprintf(" %q", p.body)
	}
	for _, name := range []string{"Sum", "Z", "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Expect"} {
		for n, v := range p.r.Body.Trailers() {
			if strings.EqualFold(string(n), name) {
				*e += fmt.Sprintf(" +%s=%s", name, v)
			}
		}
	}
	_, _ = fmt.Fprint(p.w, len(p.body))
	return true
}
