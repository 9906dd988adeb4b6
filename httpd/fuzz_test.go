package httpd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/listener"
)

// FuzzConnection sends any text in any pieces: handler and client see the same as for the whole text, and the client
// accepts each answer strictly.
func FuzzConnection(f *testing.F) {
	for _, says := range []string{
		"GET / HTTP/1.1␊Host: a␍␍X: y\n\n", "OPTIONS * HTTP/1.1\nHost: [::1]:80\n\nCONNECT a:80 HTTP/1.1\nHost: a\n\n",
		"\n" + get + "\n\n" + get + "X: \xe9\xff\t\x80\n\n" + get + "X: a\n b\n\n",
		"HEAD / HTTP/1.1\nHost: a\nContent-Length: 3\n\nabcHEAD / HTTP/1.1\n\n",
		"GET / HTTP/1.0\nConnection: keep-alive\n\nHEAD http://b/c?d HTTP/1.0\n\n",
		coded + "\n5;a=b\nhello\n0\nSum: 1\n\n" + get + "\n", coded + "\n0\nContent-Length: 5\n\nhello",
		post + "Content-Length: 9\n\nhello", post + "Content-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n" + get + "\n",
		post + "Expect: 100-continue\nContent-Length: 5\n\nhello" + get + "Connection: close\n\n" + get + "\n",
		strings.Replace(post, "/", "/small", 1) + "Content-Length: 500\n\n",
		strings.Replace(coded, "/", "/unread", 1) + "\n3\nabc\n0\n\n" + get + "\n",
	} {
		f.Add(raw(says), []byte{3, 17})
		f.Add(raw(says), []byte{})
	}
	d := newDriver(f)
	f.Fuzz(func(t *testing.T, says string, cuts []byte) {
		d.t = t
		whole := d.story(t, []string{says}, false)
		require.Equal(t, whole, d.story(t, cut(says, cuts), false), "piece by piece")
		require.Equal(t, whole, d.story(t, cut(says, cuts), true), "in pieces")
	})
}

// cut makes pieces of the given lengths, over and over.
func cut(says string, lengths []byte) (pieces []string) {
	for i := 0; says != ""; i++ {
		n := 1
		if len(lengths) > 0 {
			n = min(len(says), 1+int(lengths[i%len(lengths)]))
		}
		pieces, says = append(pieces, says[:n]), says[n:]
	}
	return pieces
}

// story is all that handler and client see of a connection. An interim answer depends on how the request comes.
func (d *driver) story(t *testing.T, pieces []string, atOnce bool) (told string) {
	k := &recorder{}
	small := httpd.WithBody(100, func(w *httpd.Response, r *httpd.Request, body []byte) act.Action {
		k.entries[len(k.entries)-1] += fmt.Sprintf(" %q", body)
		return nil
	})
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if string(r.Path()) == "/small" {
			k.asked = append(k.asked, asked{head: string(r.Method()) == "HEAD", old: r.Proto() == "HTTP/1.0"})
			k.entries = append(k.entries, k.entry(r))
			return small(w, r)
		}
		return k.serve(w, r)
	}}, listener.Limits{})
	if atOnce {
		c.feed(pieces...)
		d.settle()
	} else {
		c.send(pieces...)
	}
	told = string(c.state)
	c.endInput()
	require.Equal(t, closed, c.state)
	require.Equal(t, act.Done, c.verdict, "%v", c.err)
	all, err := understand(string(c.out), true, k.asked...)
	if n := len(all); err == nil && n > 0 && all[n-1].cut { // what is refused may have been a HEAD
		all, err = understand(string(c.out), true, append(k.asked, asked{head: true})...)
	}
	require.NoError(t, err)
	answered := 0
	for _, a := range all {
		if require.False(t, a.cut); a.status >= 200 {
			answered++
			told += fmt.Sprintf("\n%v %q %q", a, a.fields, a.body)
		}
	}
	require.GreaterOrEqual(t, answered, len(k.entries))
	require.LessOrEqual(t, answered, len(k.entries)+1, "without a call of the handler")
	return told + "\n" + k.String()
}

// FuzzHTTP2 sends any bytes after the preface of HTTP/2, in any pieces: an answer that needs no wait is the same as for the whole, the
// windows are right at any time, and the connection keeps no more memory than it has bounds for.
func FuzzHTTP2(f *testing.F) {
	p := newPlayer(f)
	for _, says := range []string{"GET 1 /; HEAD 3 /?a x=y; PING a", "POST 1 /; DATA 1 3 PAD=9; HEADERS 1 END a=b", "POST 1 / content-length=3; DATA 1 4; RST 1 CANCEL",
		"HEADERS 1 PART :method=GET :path=/; CONT 1 PART :scheme=http; CONT 1 :authority=a; WINDOW 1 5; SETTINGS 4=5", "POST 1 /; GET 1 /; GOAWAY; PRIORITY 1 DEP=1",
		"GET 1 / HEX=4001780179; GET 3 / HEX=be; UPDATE 3 u=1; FRAME 77 1 1 9", "SETTINGS 4=1; GET 1 /; SETTINGS 4=0; WINDOW 1 1; SETTINGS 4=9"} {
		text := ""
		for item := range strings.SplitSeq(says, "; ") {
			text += p.frame(item)
		}
		f.Add(text, []byte{})
		f.Add(text, []byte{3, 17})
	}
	f.Fuzz(func(t *testing.T, says string, cuts []byte) {
		whole := storyOfHTTP2(t, []string{says})
		require.Equal(t, whole, storyOfHTTP2(t, cut(says, cuts)))
	})
}

// storyOfHTTP2 is what handler and client see of a connection.
func storyOfHTTP2(t *testing.T, pieces []string) string {
	p := newPlayer(t)
	p.unknown = true
	p.web.Handler = func(w *httpd.Response, r *httpd.Request) act.Action {
		p.recorder.entries = append(p.recorder.entries, p.recorder.entry(r))
		_, _ = w.Write(r.Target())
		return nil
	}
	p.dial()
	p.flush()
	for _, piece := range pieces {
		p.client.send(piece)
		p.check()
	}
	p.listen()
	p.client.endInput()
	require.Less(t, budget.Of(p.d.s).Total(), 1<<20)
	_ = p.d.s.Close()
	return p.story() + " for " + p.seen()
}
