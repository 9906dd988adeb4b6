package httpd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// smuggled must never be taken for a request of its own.
const smuggled = "GET /smuggled HTTP/1.1\nHost: a\n\n"

// If two servers disagree about where a request ends, its sender can put a request of its own into the connection of
// another client. So where two could disagree, no handler is called and the connection ends. See RFC 9112 11.2. Lines,
// targets and hosts that two could read in two ways are in the tables of rules.
func TestNothingIsSmuggled(t *testing.T) {
	var says []string
	add := func(format string, of ...string) {
		for _, s := range of {
			says = append(says, fmt.Sprintf(format, s))
		}
	}
	codings := []string{"chunked", "Chunked", "CHUNKED", "\tchunked", "chunked\t", "chunked, chunked", "identity", "gzip", "", "chunked,", ",chunked",
		"chunked;x", "xchunked", "chunkedx", "chunke", "\"chunked\"", "'chunked'", "chunked x", "x chunked", "chunked, identity", "identity, chunked",
		"\x0bchunked", "\x0cchunked", "chunked\x0b", "\x85chunked", "chunked\x85", "\xa0chunked", "\u00a0chunked", "chunked\x00", "\x00chunked",
		"chun\u212aed", "␍chunked", "chunked␍", "␊chunked", "chunked␊", "\n chunked", "\n\tchunked", "chunked\n ", "chunked\n \n"}
	// CL.TE and TE.CL: both are there, in either order and every spelling.
	for _, te := range codings {
		add("POST / HTTP/1.1\nHost: a\nContent-Length: 6\nTransfer-Encoding: %s\n\n0\n\n"+smuggled, te)
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: %s\nContent-Length: 6\n\n0\n\n"+smuggled, te)
		add("POST / HTTP/1.0\nConnection: keep-alive\nTransfer-Encoding: %s\n\n0\n\n"+smuggled, te)
	}
	// TE.TE: one of two servers does not recognise it.
	for _, te := range codings[5:] {
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: %s\n\n0\n\n"+smuggled, te)
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nTransfer-Encoding: %s\n\n0\n\n"+smuggled, te)
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: %s\nTransfer-Encoding: chunked\n\n0\n\n"+smuggled, te)
	}
	add("POST / HTTP/1.1\nHost: a\n%s\n\n0\n\n"+smuggled, "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", " Transfer-Encoding: chunked",
		"Transfer-Encoding\x00: chunked", "Transfer-Encoding\x0b: chunked", "X: y␊Transfer-Encoding: chunked", "X: y␍Transfer-Encoding: chunked",
		"X: y␍␍Transfer-Encoding: chunked", "Transfer\u2010Encoding: chunked", "Tran\u017ffer-Encoding: chunked", "\u00a0Transfer-Encoding: chunked",
		"Transfer-Encoding\n: chunked", ": Transfer-Encoding: chunked", "Transfer-Encoding", "Transfer-Encoding chunked", "X:\n Transfer-Encoding: chunked")
	// CL.CL and lengths that two servers read in two ways.
	for _, cl := range []string{"0\nContent-Length: 33", "33\nContent-Length: 0", "33\ncontent-length: 33", "33, 33", "0,33", "33,0", "+33", "-33", " 33 0", "0x21",
		"33\x00", "33\x0b", "\x0b33", "33␊0", "33␍0", "\n 33", "33\n 0", "33;", "33.", "3_3", "", " ", "\t", "NaN", "\xb3\xb3", "４", "18446744073709551616",
		"18446744073709551649", "4294967296000000000000000033", "1e1", "'33'", "\"33\"", "33\x85", "33\xa0"} {
		add("POST / HTTP/1.1\nHost: a\nContent-Length: %s\n\n"+smuggled, cl)
		add("GET / HTTP/1.1\nHost: a\nContent-Length: %s\n\n"+smuggled, cl)
	}
	d := newDriver(t)
	for _, s := range says {
		http2Refuses(t, raw(s))
		for _, r := range []row{{says: s}, {says: get + "\n" + s}} {
			for _, pieces := range [][]string{{raw(r.says)}, strings.SplitAfter(raw(r.says), ""), halves(raw(r.says))} {
				k := &recorder{}
				c := d.dial(&httpd.Server{Handler: k.serve}, listener.Limits{}).send(pieces...)
				all := c.check(t)
				require.True(t, c.state == closed && all[len(all)-1].status >= 400, "%q: %s", s, statuses(all))
				require.NotContains(t, k.String(), "smuggled", "%q", s)
				require.Equal(t, strings.Count(r.says, get+"\n"), len(k.entries), "%q", s)
				require.NotContains(t, string(c.out), "smuggled")
			}
		}
	}
}

func halves(text string) []string { return []string{text[:len(text)/2], text[len(text)/2:]} }
