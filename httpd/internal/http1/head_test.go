package http1

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parsed is what a head says, of a request or of a response, or why it is refused.
type parsed struct {
	method, target, authority string
	status                    uint16
	minor                     byte
	fields                    string
	chunked, persistent       bool
	body                      int64
	length                    int
	err                       error
}

// parse has p read a head in pieces: after each of the cuts more comes.
func parse(p Parser, text string, cuts ...int) parsed {
	ended, err := false, error(nil)
	for _, n := range append(cuts, len(text)) {
		if ended, err = p.Read([]byte(text[:n])); ended || err != nil {
			break
		}
	}
	if err != nil || !ended {
		return parsed{err: err}
	}
	in := []byte(text)
	var f Framing
	if err := p.Framing(in, &f); err != nil {
		return parsed{err: err}
	}
	got := parsed{method: string(p.Method.Of(in)), target: string(p.Target.Of(in)), authority: string(p.Authority.Of(in)),
		status: p.Status, minor: p.Minor, chunked: f.Chunked, persistent: f.Persistent, body: f.Length, length: p.Length}
	for _, f := range p.Fields {
		got.fields += string(f.Name.Of(in)) + "=" + string(f.Value.Of(in)) + ";"
	}
	return got
}

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// answer reads the head of a response in pieces.
func answer(text string, cuts ...int) parsed { return parse(Parser{Response: true}, text, cuts...) }

func TestResponses(t *testing.T) {
	for text, want := range map[string]parsed{
		"HTTP/1.1 200 OK\nA: b\n\n":                                {status: 200, minor: 1, fields: "A=b;", body: -1, persistent: true},
		"HTTP/1.0 404 Not Found\n\n":                               {status: 404, body: -1},
		"HTTP/1.1 200 \tOK\n\n":                                    {status: 200, minor: 1, body: -1, persistent: true},
		"HTTP/1.1 101 \nUpgrade: a\n\n":                            {status: 101, minor: 1, fields: "Upgrade=a;", body: -1, persistent: true},
		"HTTP/1.1 999\nContent-Length: 0\n\n":                      {status: 999, minor: 1, fields: "Content-Length=0;", persistent: true},
		"HTTP/1.1 500 \xe9\nTransfer-Encoding: chunked\n\n":        {status: 500, minor: 1, fields: "Transfer-Encoding=chunked;", chunked: true, persistent: true},
		"HTTP/1.1 400 a\nConnection: close\nContent-Length: 7\n\n": {status: 400, minor: 1, fields: "Connection=close;Content-Length=7;", body: 7},
	} {
		text = crlf(text)
		want.length = len(text)
		require.Equal(t, want, answer(text+"the body"), "%q", text)
		for i := range len(text) {
			require.Equal(t, want, answer(text, i), "%q", text)
		}
	}
	for text, want := range map[string]error{
		"HTTP/1.1 20 OK\n":     errStatusLine,
		"HTTP/1.1 2000 OK\n":   errStatusLine,
		"HTTP/1.1 099 OK\n":    errStatusLine,
		"HTTP/1.1 +20 OK\n":    errStatusLine,
		"HTTP/1.1  200 OK\n":   errStatusLine,
		"HTTP/1.1 200-OK\n":    errStatusLine,
		"HTTP/1.1\n":           errStatusLine,
		"GET / HTTP/1.1\n":     errStatusLine,
		"RTSP/1.1 200 OK\n":    errVersion,
		"http/1.1 200 OK\n":    errVersion,
		"HTTP/3.0 200 OK\n":    ErrMajor,
		"HTTP/1.1 200 O\x00\n": errControl,
		"HTTP/1.1 200 OK\nContent-Length: 1\nTransfer-Encoding: chunked\n\n": errTwoLengths,
		"HTTP/1.1 200 " + strings.Repeat("a", maxLine):                       errLongLine,
	} {
		require.Equal(t, want, answer(crlf(text)).err, "%.60q", text)
	}
}

// A list of many fields is not kept for the next request.
func TestResetOfALargeHead(t *testing.T) {
	for n, kept := range map[int]bool{100: true, 300: false} {
		p := Parser{Limits: Limits{Fields: n}}
		ended, err := p.Read([]byte(crlf("GET / HTTP/1.1\n" + strings.Repeat("A: b\n", n) + "\n")))
		require.True(t, ended, err)
		p.Reset()
		require.Equal(t, kept, cap(p.Fields) >= n)
		require.Equal(t, n, p.Limits.Fields)
	}
}

// FuzzResponse compares with itself, cut anywhere, and with net/http.
func FuzzResponse(f *testing.F) {
	f.Add(crlf("HTTP/1.1 200 OK\nContent-Length: 3\n\n"), uint(20))
	f.Add(crlf("HTTP/1.1 101 \nUpgrade: a\nConnection: b\n\n"), uint(3))
	f.Fuzz(func(t *testing.T, text string, cut uint) {
		whole := answer(text)
		if len(text) > 0 {
			require.Equal(t, whole, answer(text, int(cut%uint(len(text)))))
		}
		if whole.err != nil || whole.length == 0 || strings.HasPrefix(text, "\r\n") {
			return
		}
		r, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text[:whole.length])), nil)
		require.NoError(t, err, "%q", text)
		_ = r.Body.Close()
		require.EqualValues(t, whole.status, r.StatusCode)
	})
}

// FuzzHead, for heads of which package httpd has the tables of rules, compares with itself, cut anywhere, and with net/http:
// it accepts what the parser accepts, with the same meaning.
func FuzzHead(f *testing.F) {
	for _, text := range []string{
		"\n\nGET / HTTP/1.9\nhost:a:80\n\n", "GET / HTTP/1.0\n\n", "OPTIONS * HTTP/1.1\nHost: [::1]:8080\n\n",
		"GET HTTP://b/c?d HTTP/1.1\nHost:\nX:\t \xe9 b \t\n\n", "POST / HTTP/1.1\nHost: a\nContent-Length: 007\n\n",
		"POST / HTTP/1.1\nHost: a\nTransfer-Encoding: Chunked \n\n", "GET / HTTP/1.1\nHost: a\n folded\nX : a\n\x00",
		"POST / HTTP/1.1\nHost: a\nContent-Length: 1\nTransfer-Encoding: gzip, chunked\n\n",
	} {
		f.Add(crlf(text), uint(len(text)/2))
	}
	f.Fuzz(func(t *testing.T, text string, cut uint) {
		whole := parse(Parser{}, text)
		if len(text) > 0 {
			require.Equal(t, whole, parse(Parser{}, text, int(cut%uint(len(text)))))
		}
		if whole.err != nil || whole.length == 0 {
			return
		}
		head := strings.TrimLeft(text[:whole.length], "\r\n") // net/http takes no empty lines
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
		if err != nil {
			require.Contains(t, err.Error(), "URL", "%q", text) // a target that is not a URI: the handler checks it
			return
		}
		require.Equal(t, whole.method, r.Method)
		if whole.chunked {
			require.Equal(t, []string{"chunked"}, r.TransferEncoding)
		} else {
			require.Equal(t, whole.body, r.ContentLength)
		}
	})
}
