package sim_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// randomBytes is the source of all contents. A byte in the wrong place is noticed.
var randomBytes = func() []byte {
	all := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(all)
	return all
}()

func content(r *rand.Rand, n int) []byte {
	from := r.IntN(len(randomBytes) - n + 1)
	return randomBytes[from : from+n : from+n]
}

// drainable is how much of a body the server discards to keep the connection.
const drainable = 256 << 10

// amount draws a length: first its magnitude, and sometimes a bound of the server.
func amount(r *rand.Rand) int {
	switch r.IntN(40) {
	case 0:
		return drainable - 1 + r.IntN(3)
	case 1:
		return drainable + r.IntN(50_000)
	case 2, 3, 4:
		return 4<<10 - 2 + r.IntN(5)
	}
	return r.IntN(1 << r.IntN(16))
}

// httpRequest is a request.
type httpRequest struct {
	httpClient *httpClient
	n          int
	raw        []byte
	lead       int // bytes of empty lines, which the server skips
	head       int // bytes of the head
	from       int // where it begins in the bytes of its client
	method     string
	path       string
	query      string
	host       string
	minor      int
	fields     [][2]string
	keeps      bool // the connection
	expects    bool // 100 (Continue)

	body     []byte
	chunked  bool
	trailers [][2]string

	malformed int           // the status by which its head must be refused; 0: none
	vague     bool          // so that the server may not know that it is HEAD
	badBody   int           // the status by which its body must be refused after the bytes in body; 0: none
	cut       bool          // the client does not send all of the body
	sentAt    time.Duration // when
	called    bool          // the handler
	httpConn  *httpConn     // the connection that has received it
	logged    bool          // OnResponse was called
	reply     reply
}

// to returns where the next request begins.
func (q *httpRequest) to() int { return q.from + len(q.raw) }

// drawRequest draws a request. The last one may be such that none can follow.
func (s *httpClient) drawRequest(n int, last bool) *httpRequest {
	r := s.c.Rand()
	q := &httpRequest{httpClient: s, n: n, minor: 1, keeps: true, method: pickFrom(r, "GET", "GET", "HEAD", "POST", "POST", "PUT", "PURGE")}
	if r.IntN(20) == 0 {
		q.minor = 0
	}
	if s.deep || s.neverReads || s.readsLate {
		q.method, q.minor = "GET", 1
	} else if last && r.IntN(8) == 0 {
		q.malform(r)
		return q
	}
	if (q.method == "POST" || q.method == "PUT" || r.IntN(10) == 0 && !s.deep) && !s.neverReads && !s.readsLate {
		q.fill(r)
	}
	q.address(r)
	q.describe(r, last)
	q.write(r, last)
	q.drawReply(r)
	return q
}

func pickFrom[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// fill gives it a body.
func (q *httpRequest) fill(r *rand.Rand) {
	q.body = content(r, amount(r))
	q.chunked = q.minor > 0 && r.IntN(2) == 0
	if q.chunked && r.IntN(3) == 0 {
		for i := range 1 + r.IntN(3) {
			q.trailers = append(q.trailers, [2]string{fmt.Sprint("X-Trailer-", i), fmt.Sprint(r.Uint32())})
		}
	}
}

func (q *httpRequest) address(r *rand.Rand) {
	q.path = fmt.Sprintf("/%d/%d", q.httpClient.n, q.n)
	q.host = pickFrom(r, "example", "10.0.0.1:80", "[::1]:80", "")
	if r.IntN(2) == 0 {
		q.query = fmt.Sprintf("q=%d?/%%20&x=%s", r.Uint32(), strings.Repeat("~", r.IntN(50)))
	}
}

// describe draws the fields.
func (q *httpRequest) describe(r *rand.Rand, last bool) {
	q.field(r, "Host", q.host)
	for i := range r.IntN(4) {
		q.field(r, fmt.Sprint("X-Field-", i), strings.Repeat(fmt.Sprint(r.Uint32(), " \xe4\t", i), r.IntN(5))+"!")
	}
	switch {
	case q.minor == 0:
		if q.keeps = r.IntN(10) > 0; q.keeps {
			q.field(r, "Connection", pickFrom(r, "keep-alive", "x, Keep-Alive", "keep-alive,"))
		}
	case r.IntN(100) == 0 || last && r.IntN(3) == 0 || q.httpClient.readsLate:
		q.keeps = false
		q.field(r, "Connection", pickFrom(r, "close", "keep-alive, Close", "close,,x"))
	case r.IntN(10) == 0:
		q.field(r, "Connection", pickFrom(r, "keep-alive", "x", "", "closed"))
	}
	switch {
	case q.chunked:
		q.field(r, "Transfer-Encoding", pickFrom(r, "chunked", "Chunked"))
	case q.body != nil || r.IntN(20) == 0:
		q.field(r, "Content-Length", strings.Repeat("0", r.IntN(3))+strconv.Itoa(len(q.body)))
	}
	if (len(q.body) > 0 || q.chunked) && r.IntN(8) == 0 {
		q.field(r, "Expect", pickFrom(r, "100-continue", "100-Continue"))
		q.expects = q.minor > 0
	}
	r.Shuffle(len(q.fields), func(i, j int) { q.fields[i], q.fields[j] = q.fields[j], q.fields[i] })
}

// field adds a field, with its name in a random case.
func (q *httpRequest) field(r *rand.Rand, name, value string) {
	q.fields = append(q.fields, [2]string{pickFrom(r, name, name, strings.ToLower(name), strings.ToUpper(name)), value})
}

// write makes the bytes of the request.
func (q *httpRequest) write(r *rand.Rand, last bool) {
	var b strings.Builder
	for range max(0, r.IntN(59)-50) { // empty lines, of which a server skips eight
		b.WriteString("\r\n")
	}
	q.lead = b.Len()
	target := q.path
	if r.IntN(10) == 0 && q.host != "" {
		target = "http://" + q.host + target
		for i := range q.fields {
			if strings.EqualFold(q.fields[i][0], "host") && r.IntN(2) == 0 {
				q.fields[i][1] = "elsewhere" // the target overrides it
			}
		}
	}
	if q.query != "" {
		target += "?" + q.query
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.%d\r\n", q.method, target, q.minor)
	for _, f := range q.fields {
		fmt.Fprintf(&b, "%s:%s%s%s\r\n", f[0], pickFrom(r, " ", "", " \t "), f[1], pickFrom(r, "", "", " ", "\t"))
	}
	b.WriteString("\r\n")
	q.head = b.Len()
	if q.chunked {
		q.writeChunks(r, &b, last && r.IntN(6) == 0)
	} else {
		b.Write(q.body)
	}
	q.raw = []byte(b.String())
}

// writeChunks cuts the body into chunks, and may break one of them.
func (q *httpRequest) writeChunks(r *rand.Rand, b *strings.Builder, malform bool) {
	largest := max(1<<r.IntN(17), len(q.body)/100)
	at := 0
	for at < len(q.body) {
		if malform && r.IntN(3) == 0 {
			break
		}
		n := min(1+r.IntN(largest), len(q.body)-at)
		size := fmt.Sprintf(pickFrom(r, "%x", "%X", "00%x"), n)
		fmt.Fprintf(b, "%s%s\r\n%s\r\n", size, extension(r), q.body[at:at+n])
		at += n
	}
	if malform {
		bad := pickFrom(r, malformedChunks...)
		q.body, q.trailers, q.badBody = q.body[:at:at], nil, bad.status
		if strings.Contains(bad.raw, "helloX") { // the mistake follows it
			q.body = append(q.body, "hello"...)
		}
		b.WriteString(bad.raw)
		return
	}
	fmt.Fprintf(b, "0%s\r\n", extension(r))
	for _, f := range q.trailers {
		fmt.Fprintf(b, "%s: %s\r\n", f[0], f[1])
	}
	b.WriteString("\r\n")
}

func extension(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return " ; a=b"
	case 1:
		return ";" + strings.Repeat("x", 1+r.IntN(99)) + pickFrom(r, "", "=y", `=";\""`)
	case 2:
		return "\t;x=\"\xfc\""
	}
	return ""
}

// refused are the requests that the server must refuse, with the status.
type refused struct {
	raw    string
	status int
}

// malformedChunks are texts in the place of a chunk.
var malformedChunks = []refused{
	{"zz\r\n", 400}, {"\r\n", 400}, {"5\nhello\r\n", 400}, {"5\r\nhelloX\r\n", 400}, {"-1\r\n", 400}, {"5 \r\nhello\r\n", 400},
	{"fffffffffffffffff\r\n", 400}, {"1;" + strings.Repeat("x", 300) + "\r\n", 400}, {"1;\x01\r\n", 400}, {"1;\r\n", 400}, {"1;x=\"\r\n", 400}, {"0\r\nHost: a\r\n\r\n", 400},
	{"0\r\nnot a field\r\n\r\n", 400}, {"0\r\n" + strings.Repeat("X: "+strings.Repeat("y", 900)+"\r\n", 12) + "\r\n", 431},
}

// malformedHeads are texts in the place of a head. % is the method.
var malformedHeads = []refused{
	{"% / HTTP/1.1\nHost: a\r\n\r\n", 400}, {"%  / HTTP/1.1\r\nHost: a\r\n\r\n", 400}, {"%\r\n\r\n", 400}, {" % / HTTP/1.1\r\n", 400},
	{"% / HTTP/2.0\r\n\r\n", 505}, {"% / http/1.1\r\n\r\n", 400}, {"% /# HTTP/1.1\r\n\r\n", 400}, {"% nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"% / HTTP/1.1\r\n\r\n", 400}, {"% / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400}, {"% / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	{"% / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400}, {"% / HTTP/1.1\r\nHost : a\r\n\r\n", 400}, {"% / HTTP/1.1\r\nX: \x00\r\n\r\n", 400},
	{"% / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
	{"% / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", 400},
	{"% / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"% / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400},
	{"% / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
	{"% / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400}, {"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 501},
	{"% / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 200-ok\r\n\r\n", 417}, {strings.Repeat("\r\n", 9) + "% / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"% / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 101) + "\r\n", 431},
	{"% / HTTP/1.1\r\n" + strings.Repeat("X: "+strings.Repeat("y", 700)+"\r\n", 99) + "\r\n", 431},
}

// malform turns the request into one that must be refused.
func (q *httpRequest) malform(r *rand.Rand) {
	bad := pickFrom(r, malformedHeads...)
	if q.httpClient.limits.Read == 0 && r.IntN(len(malformedHeads)) == 0 {
		bad = refused{"% /" + strings.Repeat("x", 17<<10), 414}
	}
	q.malformed = bad.status
	q.raw = []byte(strings.Replace(bad.raw, "%", q.method, 1) + strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", r.IntN(3)))
	q.head = len(q.raw)
	q.vague = !understood.MatchString(bad.raw)
}

// understood matches a request line without mistakes so far.
var understood = regexp.MustCompile(`^% (/|nowhere) HTTP/1\.[01]\r\n`)
