// Package smuggling has the catalogue of requests in which two servers could disagree about where a request ends (RFC 9112 11.2). It
// is for tests only.
package smuggling

import "fmt"

// Smuggled must never be taken for a request of its own. Its lines end with "\n", which stands for CRLF.
const Smuggled = "GET /smuggled HTTP/1.1\nHost: a\n\n"

// Requests returns what a server answers with an error and the end of the connection. Each asks for "/". In its text "\n" stands for
// CRLF, ␊ for a bare LF, and ␍ for a bare CR. Lines, targets and hosts that two servers could read in two ways are not among them.
func Requests() (says []string) {
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
		add("POST / HTTP/1.1\nHost: a\nContent-Length: 6\nTransfer-Encoding: %s\n\n0\n\n"+Smuggled, te)
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: %s\nContent-Length: 6\n\n0\n\n"+Smuggled, te)
		add("POST / HTTP/1.0\nConnection: keep-alive\nTransfer-Encoding: %s\n\n0\n\n"+Smuggled, te)
	}
	// TE.TE: one of two servers does not recognise it.
	for _, te := range codings[5:] {
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: %s\n\n0\n\n"+Smuggled, te)
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nTransfer-Encoding: %s\n\n0\n\n"+Smuggled, te)
		add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: %s\nTransfer-Encoding: chunked\n\n0\n\n"+Smuggled, te)
	}
	add("POST / HTTP/1.1\nHost: a\n%s\n\n0\n\n"+Smuggled, "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", " Transfer-Encoding: chunked",
		"Transfer-Encoding\x00: chunked", "Transfer-Encoding\x0b: chunked", "X: y␊Transfer-Encoding: chunked", "X: y␍Transfer-Encoding: chunked",
		"X: y␍␍Transfer-Encoding: chunked", "Transfer\u2010Encoding: chunked", "Tran\u017ffer-Encoding: chunked", "\u00a0Transfer-Encoding: chunked",
		"Transfer-Encoding\n: chunked", ": Transfer-Encoding: chunked", "Transfer-Encoding", "Transfer-Encoding chunked", "X:\n Transfer-Encoding: chunked")
	// CL.CL and lengths that two servers read in two ways.
	for _, cl := range []string{"0\nContent-Length: 33", "33\nContent-Length: 0", "33\ncontent-length: 33", "33, 33", "0,33", "33,0", "+33", "-33", " 33 0", "0x21",
		"33\x00", "33\x0b", "\x0b33", "33␊0", "33␍0", "\n 33", "33\n 0", "33;", "33.", "3_3", "", " ", "\t", "NaN", "\xb3\xb3", "４", "18446744073709551616",
		"18446744073709551649", "4294967296000000000000000033", "1e1", "'33'", "\"33\"", "33\x85", "33\xa0"} {
		add("POST / HTTP/1.1\nHost: a\nContent-Length: %s\n\n"+Smuggled, cl)
		add("GET / HTTP/1.1\nHost: a\nContent-Length: %s\n\n"+Smuggled, cl)
	}
	return says
}
