package gateway

import "strings"

// A row is a request, and what is done with it.
type row struct {
	// says is what the client sends; after "…" it goes on when it has been answered 1xx.
	says string
	// answer is what the origin says, ok if it is empty; "^" before it: as soon as it has the head; "!" behind it: and then
	// closes the connection. After "…" it goes on when the client has the head of the answer.
	answer string
	// differs are the lines that the gateway alone has (+) and that it alone has not (-), joined by "; ", and why.
	differs, why string
}

const (
	get   = "GET / HTTP/1.1\nHost: a\n"
	post  = "POST / HTTP/1.1\nHost: a\n"
	coded = post + "Transfer-Encoding: chunked\n"
	sized = "Content-Length: 5\n\nhello"

	// answers of the origin
	ok     = "HTTP/1.1 200 OK\nX-Origin: yes\n"
	length = "Content-Length: 2\n\nok"
	chunks = "Transfer-Encoding: chunked\n\n2\nok\n0\n\n"

	// what differs, and why
	without = `-< 200; -< body: "ok"; -< content-length: 2; -< `
	refused = `+< 400; +< closed; ` + without + `kept; -< x-origin: yes; -> GET / HTTP/1.1; -> host: a`
	bad     = `+< 502; ` + without + `x-origin: yes`
	chunked = `+< 502; -< 200; -< body: "ok"; -< transfer-encoding: chunked; -< x-origin: yes`
	lost    = `+< 404; ` + without + `x-origin: yes; -> GET `
	dots    = "servers do not agree on where they lead, so no route does"
	hop     = "RFC 9110 7.6.1: of the connection alone"
	name    = "the origin gets its own name"
	lines   = "RFC 9112 2.2: where one server ends a line, another may not"
	none    = "content that is not sent has no length"
)

// same are requests of which what arrives does not differ.
func same(says ...string) (rows []row) {
	for _, s := range says {
		rows = append(rows, row{says: s})
	}
	return rows
}

// answered are answers of which what arrives does not differ.
func answered(answers ...string) (rows []row) {
	for _, a := range answers {
		rows = append(rows, row{says: get + "\n", answer: a})
	}
	return rows
}

// status begins an answer.
func status(text string) string { return "HTTP/1.1 " + text + "\nX-Origin: yes\n" }

// target is a request for it.
func target(path string) string { return "GET " + path + " HTTP/1.1\nHost: a\n\n" }

// sections are the tables, by what they are about.
var sections = map[string][]row{
	"methods": append(same(get+"\n", get+sized, post+sized, post+"Content-Length: 0\n\n", "PUT / HTTP/1.1\nHost: a\n"+sized,
		"PATCH / HTTP/1.1\nHost: a\n"+sized, "DELETE / HTTP/1.1\nHost: a\n\n", "DELETE / HTTP/1.1\nHost: a\n"+sized,
		"OPTIONS * HTTP/1.1\nHost: a\n\n", "OPTIONS /x HTTP/1.1\nHost: a\n\n", "TRACE / HTTP/1.1\nHost: a\n\n",
		"M-SEARCH / HTTP/1.1\nHost: a\n\n", "get / HTTP/1.1\nHost: a\n\n", "G(T / HTTP/1.1\nHost: a\n\n"), []row{
		{"HEAD / HTTP/1.1\nHost: a\n\n", ok + "Content-Length: 2\n\n", "", ""},
		{"HEAD / HTTP/1.1\nHost: a\n\n", ok + "Transfer-Encoding: chunked\n\n", "", ""},
		{post + "\n", "", "+> content-length: 0", "RFC 9110 8.6: a client says that there is none"},
		{"CONNECT a:80 HTTP/1.1\nHost: a:80\n\n", "", "+< 501", "RFC 9110 9.3.6: no tunnels; nginx answers 405, HAProxy 400"},
	}...),
	"targets": append(same(target("http://a"), target("/%41%2f%20%C3%A9"), target("//a//b/"),
		target("/?a=b?c&d=%zz&;/../..//+"), target("/x?"), target("/\xc3\xa9?\xff"), target("/a|b^c`d{e}f\\g?'"),
		target("/a#b"), target("/a\x01"), target("/a b"), "GET http://a:8080/x?y HTTP/1.1\nHost: a:8080\n\n",
		target("/"+strings.Repeat("a", 7000)), target("/"+strings.Repeat("a", 100_000))), []row{
		{target("http://b/x"), "", "+> host: b", "RFC 9112 3.2.2: the target has precedence over Host"},
		{target("/%zz"), "", "+< 404", "RFC 3986 2.1: no path, so no route; nginx answers 400"},
		{target("/a/./b/../c"), "", lost + "/a/./b/../c HTTP/1.1; -> host: a", dots},
		{target("/../../a"), "", "+< 404", dots},
		{target("/a/%2e%2e/b"), "", lost + "/a/%2e%2e/b HTTP/1.1; -> host: a", dots},
		{target(`/"<b>`), "", strings.Replace(refused, "/ ", `/"<b> `, 1), "RFC 3986: no part of a target"},
	}...),
	"hosts": append(same("GET / HTTP/1.1\nHost: a:8080\n\n", "GET / HTTP/1.1\nHost: A.Example\n\n",
		"GET / HTTP/1.1\nHost: [::1]:80\n\n", "GET / HTTP/1.1\n\n", get+"Host: b\n\n", "GET / HTTP/1.1\nHost: a/b\n\n"), []row{
		{"GET / HTTP/1.1\nHost:\n\n", "", "+> host: ORIGIN", name},
		{"GET / HTTP/1.0\n\n", "", "+> host: ORIGIN; -> host: ", name},
		{"GET / HTTP/1.1\nHost: b@a\n\n", "", strings.Replace(refused, "host: a", "host: b@a", 1), "RFC 9112 3.2: no host"},
	}...),
	"connections": append(same("GET / HTTP/1.0\nHost: a\n\n", "GET / HTTP/1.0\nHost: a\nConnection: keep-alive\n\n",
		"POST / HTTP/1.0\nHost: a\n"+sized, "GET / HTTP/1.2\nHost: a\n\n", "GET / HTTP/3.0\nHost: a\n\n",
		get+"Connection: close\n\n", get+"Connection: keep-alive\nKeep-Alive: timeout=5\n\n",
		get+"\nGET /2 HTTP/1.1\nHost: a\n\n", post+sized+"PUT /2 HTTP/1.1\nHost: a\n"+sized, "\n\n"+get+"\n"), []row{
		{"GET / HTTP/1.0\nHost: a\n\n", ok + chunks, "", ""},
		{"GET / HTTP/1.0\nHost: a\nConnection: keep-alive\n\n", ok + chunks, "", ""},
		{get + "\n", ok + "Connection: close\n" + length + "!", "", ""},
	}...),
	"hop by hop": append(same(get+"Connection: TE\nTE: trailers\n\n", get+"Connection: TE\nTE: gzip, trailers;q=0.5\n\n",
		get+"Upgrade: foo/1\n\n", get+"Connection: upgrade\nUpgrade: foo/1\n\n", post+"Connection: Content-Length\n"+sized,
		coded+"Connection: Transfer-Encoding\n\n5\nhello\n0\n\n", get+"Connection: Host\n\n",
		get+"Proxy-Authorization: Basic YTpi\n\n"), []row{
		{get + "Connection: X-A, x-b\nX-A: 1\nX-B: 2\nX-C: 3\n\n", "", "-> x-a: 1; -> x-b: 2", hop},
		{get + "Connection: close, X-A\nX-A: 1\n\n", "", "-> x-a: 1", hop},
		{get + "Connection: X-A\nConnection: X-B\nX-A: 1\nX-B: 2\n\n", "", "-> x-a: 1; -> x-b: 2", hop},
		{get + "Proxy-Connection: keep-alive\n\n", "", "-> proxy-connection: keep-alive", hop},
		{get + "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMA\n\n", "", "-> http2-settings: AAMA", hop},
		{get + "Connection: Cookie\nCookie: a=b\n\n", "", "-> cookie: a=b", hop},
		{get + "\n", ok + "Connection: X-A\nX-A: 1\nX-B: 2\nKeep-Alive: timeout=5\nProxy-Connection: close\n" + length,
			"-< proxy-connection: close; -< x-a: 1", hop},
		{get + "\n", ok + "Connection: upgrade\nUpgrade: h2c\n" + length, "-< upgrade: h2c", hop},
		{get + "Connection: upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
			"HTTP/1.1 101 A\nConnection: upgrade\nUpgrade: websocket\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n\nhello!", "", ""},
		{get + "Connection: upgrade\nUpgrade: a/1\n\n", "HTTP/1.1 101 A\nConnection: upgrade\nUpgrade: a/1\n\nhello!",
			"+< 502; +< kept; -< 101; -< connection: upgrade; -< hello; -< upgrade: a/1", "the only protocol is websocket"},
	}...),
	"fields": append(same(get+"X: a\nX: b\n\n", get+"Cookie: a=b\nCookie: c=d; e=f\n\n", get+"X_Y: a\n\n", get+"X:\n\n",
		get+"X: \t a b \t\n\n", get+"X: a\tb\n\n", get+"X: \xc3\xa9\xff\n\n", get+"X: a\x00b\n\n", get+"X: a␍b\n\n",
		get+"X: a\n b\n\n", get+"X : a\n\n", get+"X\n\n", get+": a\n\n", get+"X(: a\n\n", get+"X: "+strings.Repeat("a",
			7000)+"\n\n", get+strings.Repeat("X: a\n", 60)+"\n",
		get+"Authorization: Bearer a\nRange: bytes=0-1\nIf-None-Match: \"a\"\nAccept-Encoding: gzip\nMax-Forwards: 0\n\n"),
		[]row{
			{"GET / HTTP/1.1\nHost: a␊X: b\n\n", "", refused + "; -> x: b", lines},
			{get + strings.Repeat("X: "+strings.Repeat("a", 1000)+"\n", 100) + "\n", "", "+< 431; -< 400", "RFC 6585 5"},
			{get + strings.Repeat("X: a\n", 200) + "\n", "", "+< 431", "RFC 6585 5; HAProxy answers 400, and nginx has no limit"},
			{post + "Expect: 100-continue\nContent-Length: 5\n\n…hello", "", "", ""},
			{post + "Expect: 100-continue\n" + sized, "", "-< 100", "RFC 9110 10.1.1: left out when content has come"},
			{"POST / HTTP/1.0\nHost: a\nExpect: 100-continue\n" + sized, "", "", ""},
			{get + "Expect: a\n\n", "", strings.Replace(refused, "400", "417", 1), "RFC 9110 10.1.1"},
		}...),
	"content": append(same(coded+"\n5\nhello\n6\n world\n0\n\n", coded+"\n0\n\n",
		coded+"\n0005;a=b;c=\"d\"\nhello\nA\n0123456789\n0;e\n\n", coded+"Trailer: X-Sum\n\n5\nhello\n0\nX-Sum: 1\n\n",
		coded+"Content-Length: 5\n\n5\nhello\n0\n\n", post+"Content-Length: 5\n"+sized, post+"Content-Length: 6\n"+sized,
		post+"Content-Length: 5, 5\n\nhello", post+"Content-Length: +5\n\nhello", coded+"\nx\nhello\n0\n\n",
		post+"Transfer-Encoding: gzip, chunked\n\n5\nhello\n0\n\n", coded+"Transfer-Encoding: chunked\n\n5\nhello\n0\n\n",
		"POST / HTTP/1.0\nHost: a\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n"), []row{
		{post + "Content-Length: 1000000\n\nhello", "^" + status("413 Too Large") + "Connection: close\n" + length + "!", "", ""},
	}...),
	"answers": append(answered(ok+"Connection: close\n\nhello!", ok+chunks, status("204 No Content")+"\n",
		status("204 No Content")+"Content-Length: 0\n\n", status("304 Not Modified")+"ETag: \"a\"\n\n",
		"HTTP/1.1 103 Early Hints\nLink: </a>\n\n"+ok+length+"!",
		"HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: a\n\n!", status("404 Not Found")+length,
		status("401 Unauthorized")+"WWW-Authenticate: Basic realm=\"a\"\n"+length,
		status("407 Proxy Authentication Required")+"Proxy-Authenticate: Basic realm=\"a\"\n"+length,
		status("302 Found")+"Set-Cookie: a=b\nSet-Cookie: c=d\nLocation: http://b/x\n"+length, status("599 A")+length+"!",
		status("200 ")+length, status("200")+length, "HTTP/1.0 200 OK\nX-Origin: yes\n"+length+"!", "hello\n\n!",
		ok+"X: "+strings.Repeat("a", 3000)+"\n"+length, ok+strings.Repeat("X: "+strings.Repeat("a", 1000)+"\n", 100)+length,
		ok+"X: \xc3\xa9\xff\n"+length, ok+"X: a\x00b\n"+length, ok+"X: a\n b\n"+length, ok+"X : a\n"+length, ok+"X\n"+length,
		ok+"Content-Length: 3\n"+length+"!", ok+"Content-Length: +2\n\nok!",
		ok+"Transfer-Encoding: gzip, chunked\n\n2\nok\n0\n\n!", ok+"Transfer-Encoding: gzip\n\nok!",
		ok+"Transfer-Encoding: chunked\n\n2\nok\n…x\n\n!", ok+"Content-Length: 5\n\nok…!",
		ok+"Transfer-Encoding: chunked\n\n2\nok\n…!", ok+length+ok+length), []row{
		{get + "TE: trailers\nConnection: TE\n\n",
			ok + "Trailer: X-Sum\nTransfer-Encoding: chunked\n\n005;a=\"b\"\nhello\n0;c\nX-Sum: 1\n\n", "", ""},
		{post + "Content-Length: 0\n\n", "!", "", ""},
		{post + "Content-Length: 0\n\n", "HTTP/1.1 200 OK\nX-Or!", "", ""},
		{"HEAD / HTTP/1.1\nHost: a\n\n", ok + length, "", ""},
		{get + "\n", status("304 Not Modified") + "Content-Length: 5\n\n", "-< content-length: 5", none},
		{get + "\n", status("304 Not Modified") + length, "-< content-length: 2", none},
		{get + "\n", "HTTP/1.1 100 Continue\n\n" + ok + length + "!", "-< 100",
			"RFC 9110 15.2: a proxy may drop what it has asked for itself"},
		{get + "\n", status("999 A") + length + "!", strings.Replace(bad, "200", "999", 1), "RFC 9110 15: statuses end at 599"},
		{get + "\n", status("99 A") + length + "!", "+< 502; +< kept; -< no answer", "RFC 9110 15: statuses begin at 100"},
		{get + "\n", "HTTP/1.0 200 OK\nX-Origin: yes\n" + chunks + "!", "+< 502; -< 200; -< x-origin: yes",
			"RFC 9112 6.1: faulty framing"},
		{get + "\n", "HTTP/2.0 200 OK\nX-Origin: yes\n" + length, bad, "RFC 9112 2.3: it does not begin so"},
		{get + "\n", strings.ReplaceAll(ok+length, "\n", "␊"), bad, lines},
		{get + "\n", ok + "Content-Length: 2\n" + chunks + "!", chunked, "RFC 9112 6.3: it may be an attempt to split an answer"},
		{get + "\n", ok + "Content-Length: 2\n" + length, bad, "as in a request"},
	}...),
}
