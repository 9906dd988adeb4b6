package httpd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
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
