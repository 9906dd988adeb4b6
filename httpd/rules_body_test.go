package httpd_test

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

const coded = "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n"

func TestRulesOfBodies(t *testing.T) {
	table(t, map[string][]row{
		"9112 6.3: a coding, a length, or nothing": {
			{post + "\n", "200", "POST /"},
			{post + "Content-Length: 0\n\n", "200", "POST /"},
			{post + "Content-Length: 5\n\nhello", "200", `POST / "hello"`},
			{post + "Content-Length: 00005\n\nhello", "200", `POST / "hello"`},
			{post + "Content-Length: \t5 \t\n\n\nllo", "200", `POST / "\r\nllo"`},
			{coded + "\n5\nhello\n0\n\n", "200", `POST / "hello"`},
			{post + "Content-Length: 28\n\n" + "GET /x HTTP/1.1\nHost: a\n\n", "200", `POST / "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"`},
			{"POST / HTTP/1.0\nContent-Length: 5\nConnection: keep-alive\nHost: a\n\nhello", "200", `POST / 1.0 "hello"`},
		},
		"9110 8.6: a Content-Length that is none": refused(400,
			post+"Content-Length:\n\nhello", post+"Content-Length: +5\n\nhello", post+"Content-Length: -5\n\nhello", post+"Content-Length: 0x5\n\nhello",
			post+"Content-Length: 5h\n\nhello", post+"Content-Length: 5 5\n\nhello", post+"Content-Length: 5.0\n\nhello", post+"Content-Length: 5e0\n\nhello",
			post+"Content-Length: 1_0\n\nhello", post+"Content-Length: 5,\n\nhello", post+"Content-Length: ,5\n\nhello", post+"Content-Length: 5, 5\n\nhello",
			post+"Content-Length: 5, 6\n\nhello", post+"Content-Length: \"5\"\n\nhello", post+"Content-Length: 5;a\n\nhello", post+"Content-Length: \u0665\n\nhello",
			post+"Content-Length: 5\nContent-Length: 5\n\nhello", post+"Content-Length: 5\nContent-Length: 6\n\nhello",
			post+"Content-Length: 0\ncontent-length: 0\n\n", post+"Content-Length: 9223372036854775808\n\nhello",
			post+"Content-Length: 18446744073709551621\n\nhello", post+"Content-Length: "+strings.Repeat("9", 1000)+"\n\nhello"),
		"9112 6.1: a coding that does not end in chunked": refused(400,
			post+"Transfer-Encoding:\n\n0\n\n", post+"Transfer-Encoding: gzip\n\n0\n\n", post+"Transfer-Encoding: identity\n\n0\n\n",
			post+"Transfer-Encoding: chunked, gzip\n\n0\n\n", post+"Transfer-Encoding: chunked, identity\n\n0\n\n",
			post+"Transfer-Encoding: chunked\nTransfer-Encoding: gzip\n\n0\n\n", post+"Transfer-Encoding: chunked, chunked\n\n0\n\n",
			coded+"Transfer-Encoding: chunked\n\n0\n\n", post+"Transfer-Encoding: chunked,\n\n0\n\n"),
		"9112 6.1: a coding that we do not know": refused(501,
			post+"Transfer-Encoding: gzip, chunked\n\n0\n\n", post+"Transfer-Encoding: gzip\nTransfer-Encoding: chunked\n\n0\n\n",
			post+"Transfer-Encoding: identity, chunked\n\n0\n\n", post+"Transfer-Encoding: a;b=\"c\", chunked\n\n0\n\n"),
		"9112 6.1: HTTP/1.0 has no codings": refused(400,
			"POST / HTTP/1.0\nHost: a\nTransfer-Encoding: chunked\n\n0\n\n", "POST / HTTP/1.0\nTransfer-Encoding: chunked\nConnection: keep-alive\n\n0\n\n"),
		"9112 7: the names of codings are compared without regard to case": {
			{post + "Transfer-Encoding: CHUNKED\n\n1\nx\n0\n\n", "200", `POST / "x"`},
			{post + "tRANSFER-eNCODING: \t Chunked\t\n\n1\nx\n0\n\n", "200", `POST / "x"`},
		},
		"9112 7.1.2: trailers are kept apart": {
			{coded + "\n1\nx\n0\nSum: 1\nZ:\n\n", "200", `POST / "x" +Sum=1 +Z=`},
			{coded + "Sum: 2\n\n0\nsum: 1\n\n", "200", `POST / Sum=2 +Sum=1`},
			{coded + "\n0\nSum: 1\nZ: 2\nsum: 3\n\n", "200", `POST / +Sum=1 +Sum=3 +Z=2`},
			{coded + "\n0\nAuthorization: a\nSet-Cookie: b\n\n", "200", "POST /"},
			{coded + "\n0\n" + strings.Repeat("X: a\n", 99) + "Sum: 1\n\n", "200", "POST / +Sum=1"},
		},
		"9112 6: no other field changes where a body ends": {
			{"GET / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", "200", `GET / "hello"`},
			{"HEAD / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", "200", `HEAD / "hello"`},
			{"DELETE / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n", "200", `DELETE / "hello"`},
			{"OPTIONS * HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", "200", `OPTIONS * "hello"`},
			{"TRACE / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", "200", `TRACE / "hello"`},
			{post + "Content-Type: multipart/byteranges; boundary=x\n\n", "200", "POST / Content-Type=multipart/byteranges; boundary=x"},
			{post + "Range: bytes=0-1\nContent-Length: 5\n\nhello", "200", `POST / Range=bytes=0-1 "hello"`},
			{post + "Content-Range: bytes 0-1/5\nContent-Length: 5\n\nhello", "200", `POST / Content-Range=bytes 0-1/5 "hello"`},
			{post + "Upgrade: websocket\nConnection: upgrade\nContent-Length: 5\n\nhello", "200", `POST / Upgrade=websocket "hello"`},
			{post + "Connection: content-length\nContent-Length: 5\n\nhello", "200", `POST / "hello"`},
			{coded + "Connection: transfer-encoding\n\n5\nhello\n0\n\n", "200", `POST / "hello"`},
			{post + "TE: trailers\nTrailer: Content-Length\nContent-Length: 5\n\nhello", "200", `POST / TE=trailers Trailer=Content-Length "hello"`},
		},
		"9110 7.8: Upgrade is ignored": {
			{get + "Upgrade: websocket\nConnection: upgrade\n\n", "200", "GET / Upgrade=websocket"},
			{get + "Upgrade: h2c\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: a\n\n", "200", "GET / Upgrade=h2c HTTP2-Settings=a"},
			{"GET / HTTP/1.0\nHost: a\nUpgrade: a/1\n\n", "200!", "GET / 1.0 Upgrade=a/1"},
		},
		"9110 15.5.1: what is refused of HEAD has no content": refused(400,
			"HEAD / HTTP/1.1\nHost: a/\n\n", "HEAD / HTTP/1.0\nConnection: keep-alive\na\n\n"),
		"9110 10.1.1: other expectations": refused(417, get+"Expect: a\n\n", post+"Expect: 100-continued\nContent-Length: 5\n\nhello",
			post+"Expect: 100-continue;a\nContent-Length: 5\n\nhello", post+"Expect:\nContent-Length: 5\n\nhello"),
	})
}

// An error in a body is found after its head: the handler has been called, and gets the error.
func TestRulesOfBodiesThatGoWrong(t *testing.T) {
	failed := func(status int, says ...string) (rows []row) {
		for _, s := range says {
			rows = append(rows, row{coded + "\n" + s, fmt.Sprintf("%d!", status), "POST / failed"})
		}
		return rows
	}
	table(t, map[string][]row{
		"9112 7.1: a chunk, of which package http1 has the rules": failed(400, "\n", "1\nxy\n0\n\n", "1;\nx\n0\n\n", "0\n \n\n", "0␊␊", "0\n␊"),
		"9110 6.5.1: no trailer changes the message": failed(400, "0\nContent-Length: 5\n\n", "0\nTransfer-Encoding: chunked\n\n", "0\nHost: b\n\n",
			"0\nConnection: close\n\n", "0\nUpgrade: a\n\n", "0\nExpect: 100-continue\n\n", "0\nSum: 1\nCONTENT-LENGTH: 0\n\n"),
		"trailers of 8 KiB, a hundred of them": append(failed(431, "0\n"+strings.Repeat("X: a\n", 101)+"\n", "0\nX: "+strings.Repeat("a", 8<<10)+"\n\n"),
			row{coded + "\n0\nX: " + strings.Repeat("a", 8<<10-len("X: \r\n\r\n")) + "\n\n", "200", "POST /"}),
	})
}

// Of several trailers with a name it is the first one, in any case; after the end of the body.
func TestTrailer(t *testing.T) {
	first := httpd.WithBody(0, func(w *httpd.Response, r *httpd.Request, _ []byte) act.Action {
		require.Nil(t, r.Body.Trailer("other"))
		_, _ = w.Write(r.Body.Trailer("sum"))
		return nil
	})
	c := newDriver(t).dial(&httpd.Server{Handler: first}, listener.Limits{}).send(raw(coded + "\n0\nSum: 1\nZ: 2\nSUM: 3\n\n"))
	require.Equal(t, "1", c.check(t)[0].body)
}

// 9112 6.3, 8: what ends before its end is never taken for whole, and is not answered if it is not even a request.
func TestRequestsThatAreCutOff(t *testing.T) {
	d := newDriver(t)
	for _, says := range []string{get + "Content-Length: 5\n\nhello", coded + "\n5;a\nhello\n0\nSum: 1\n\n", "\n" + get + "\n"} {
		says := raw(says)
		body := strings.Index(says, "\r\n\r\n") + 4
		for n := range len(says) {
			for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET} { // the second one of TLS
				k := &recorder{}
				c := d.dial(&httpd.Server{Handler: k.serve}, listener.Limits{}).send(says[:n])
				c.finish(end)
				d.settle()
				switch {
				case n < body || end != io.EOF:
					require.Empty(t, string(c.out), "%q", says[:n])
				default:
					require.Equal(t, "400!", statuses(c.check(t)), "%q", says[:n])
				}
				if n < body {
					require.Empty(t, k.entries)
				} else {
					require.Contains(t, k.String(), " failed")
				}
				require.NotEqual(t, open, c.state)
				require.Equal(t, end == io.EOF, c.state == closed && c.verdict == act.Done, "%q, %v: %v", says[:n], end, c.err)
			}
		}
	}
}
