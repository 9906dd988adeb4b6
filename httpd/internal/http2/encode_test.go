package http2

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"
)

// decoded reads a block with a decoder that knows no limits: "name: value; …", with a star on what is never indexed.
func decoded(t *testing.T, block []byte) (said string) {
	d := hpack.NewDecoder(0, nil)
	fields, err := d.DecodeFull(block)
	require.NoError(t, err)
	for _, f := range fields {
		said += fmt.Sprintf("%s: %s; ", f.Name, f.Value)
		if f.Sensitive {
			said = strings.TrimSuffix(said, "; ") + "*; "
		}
	}
	return said
}

// RFC 7541 A: each name is where the table has it, and is found there.
func TestTheStaticTable(t *testing.T) {
	require.Len(t, names, 61-firstOrdinal+1)
	for i, name := range names {
		index := byte(firstOrdinal + i)
		said, _, _ := strings.Cut(decoded(t, []byte{indexed | index}), ":")
		require.Equal(t, said, name)
		require.Equal(t, index, indexOf([]byte(strings.ToUpper(name))))
	}
	for _, name := range []string{"", "x", ":path", "dates", "datf", strings.Repeat("a", 27), strings.Repeat("a", 100)} {
		require.Zero(t, indexOf([]byte(name)), name)
	}
}

func TestStatus(t *testing.T) {
	for status := 100; status < 600; status++ {
		require.Equal(t, fmt.Sprintf(":status: %d; ", status), decoded(t, AppendStatus(nil, status)))
	}
	require.Equal(t, []byte{0x88}, AppendStatus(nil, 200)) // RFC 7541 C.6.3
	require.Equal(t, ":status: 302; ", decoded(t, AppendStatus(AppendNoTable(nil), 302)))
}

func TestRequestsThatAreSent(t *testing.T) {
	for want, row := range map[string][5]string{
		"GET /? a":                             {"GET", "https", "a", "/", ""},
		"POST /b?c=d [::1]:8080":               {"POST", "http", "[::1]:8080", "/b?c=d", ""},
		"OPTIONS *? a":                         {"OPTIONS", "http", "a", "*", ""},
		"CONNECT /chat? a; protocol websocket": {"CONNECT", "https", "a", "/chat", "websocket"},
	} {
		b := AppendRequest(nil, row[0], row[1], row[2], row[3], row[4])
		require.Equal(t, want, read(NewDecoder(new([]byte)), Limits{}, false, false, b))
		require.Contains(t, decoded(t, b), ":scheme: "+row[1])
	}
	require.Equal(t, "\x82\x86\x01\x0fwww.example.com\x84", string(AppendRequest(nil, "GET", "http", "www.example.com", "/", "")), "7541 C.3.1")
}

func TestFieldsThatAreSent(t *testing.T) {
	for name, row := range map[string]struct{ name, value, want string }{
		"a name of the table":                {"Content-Type", "text/plain", "content-type: text/plain; "},
		"the first":                          {"Accept-Charset", "a", "accept-charset: a; "},
		"the last":                           {"WWW-Authenticate", "Basic", "www-authenticate: Basic; "},
		"another, 9113 8.2.1 in lower case":  {"X-Request-ID", "AbC", "x-request-id: AbC; "},
		"nothing":                            {"X", "", "x: ; "},
		"9113 8.2.1 blanks are not sent":     {"X", " \ta\tb \t", "x: a\tb; "},
		"7541 7.1.3 a cookie":                {"Set-Cookie", "a=b", "set-cookie: a=b*; "},
		"7541 7.1.3 credentials":             {"Authorization", "a", "authorization: a*; "},
		"7541 7.1.3 credentials of a proxy":  {"Proxy-Authorization", "a", "proxy-authorization: a*; "},
		"RFC 7541 C.5.1 and C.5.3 have this": {"Location", "https://www.example.com", "location: https://www.example.com; "},
	} {
		require.Equal(t, row.want, decoded(t, AppendField(nil, row.name, row.value)), name)
	}
	for _, n := range []int64{0, 9, 10, math.MaxInt64} {
		require.Equal(t, fmt.Sprintf("content-length: %d; ", n), decoded(t, AppendContentLength(nil, n)))
	}
	for _, n := range []int{126, 127, 128, 254, 255, 256, 16383, 16384, 1 << 21} { // 7541 5.1
		value := strings.Repeat("v", n)
		require.Equal(t, "x: "+value+"; ", decoded(t, AppendField(nil, "X", value)), n)
		require.Equal(t, strings.ToLower(value)+": y; ", decoded(t, AppendField(nil, strings.ToUpper(value), "y")), n)
	}
}

func TestLines(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		string(lines): "content-type: text/plain; charset=utf-8; date: Fri, 27 Nov 2026 18:00:00 GMT; " +
			"content-length: 13; ",
		"\r\nA: b:c\r\nSet-Cookie: d=e": "a: b:c; set-cookie: d=e*; ",
		"\r\nA: \r\nB:":                 "a: ; b: ; ",
		// 9113 8.2.2
		"\r\nConnection: close\r\nUpgrade: a\r\nKeep-Alive: b\r\nProxy-Connection: c\r\nTransfer-Encoding: d\r\nTE: e": "te: e; ",
	} {
		require.Equal(t, want, decoded(t, AppendLines(nil, []byte(in))))
	}
}

func TestBlocksOfSmallMessagesAllocateNothing(t *testing.T) {
	first, next := blocks(asked...)
	var h Head
	d := NewDecoder(new([]byte))
	require.True(t, d.decode(&h, first))
	require.Zero(t, testing.AllocsPerRun(100, func() { d.decode(&h, next) }))
	require.Len(t, h.Fields, 10)
	require.Less(t, len(next), 30)
	to := make([]byte, 0, 200)
	require.Zero(t, testing.AllocsPerRun(100, func() { AppendLines(AppendField(AppendStatus(to, 200), "A", "b"), lines) }))
}

// asked is what a browser asks for.
var asked = []string{":method", "GET", ":authority", "www.example.org", ":scheme", "https", ":path", "/articles/17?page=2",
	"sec-ch-ua", `"Chromium";v="140", "Not=A?Brand";v="24"`, "sec-ch-ua-mobile", "?0", "user-agent",
	"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
	"accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
	"sec-fetch-site", "none", "sec-fetch-mode", "navigate", "accept-encoding", "gzip, deflate, br, zstd",
	"accept-language", "en-US,en;q=0.9", "cookie", "session=0123456789abcdef", "cookie", "theme=dark", "priority", "u=0, i"}

// blocks returns a block of these fields as a client sends them first, and as it does afterwards, when it has them in its
// table.
func blocks(fields ...string) (first, next []byte) {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for range 2 {
		first, next = next, nil
		for i := 0; i < len(fields); i += 2 {
			_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		next = bytes.Clone(b.Bytes())
		b.Reset()
	}
	return first, next
}

func (d *Decoder) decode(h *Head, block []byte) bool {
	d.Begin(h, Limits{}, false)
	return d.Write(block) == nil && d.End(true) == nil && h.Refused == nil
}

var lines = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nDate: Fri, 27 Nov 2026 18:00:00 GMT\r\nContent-Length: 13")
