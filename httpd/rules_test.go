package httpd_test

import (
	"fmt"
	"strings"
	"testing"
)

// The rules of RFC 9112 and RFC 9110 for a server, by section. A row is what a client says, what it is answered,
// "!" being the end of the connection, and what the handler saw.

const (
	get  = "GET / HTTP/1.1\nHost: a\n"
	post = "POST / HTTP/1.1\nHost: a\n"
)

// table runs the rows of each section.
func table(t *testing.T, sections map[string][]row) {
	for section, rows := range sections {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t)
			for _, r := range rows {
				r.run(t, d)
				if strings.HasPrefix(r.answers, "4") && r.answers != "414!" || strings.HasPrefix(r.answers, "5") { // over HTTP/2 a target may be as long as a line
					http2Refuses(t, raw(r.says))
				}
			}
		})
	}
}

// refused are rows that are answered with a status and the end, and that no handler sees.
func refused(status int, says ...string) (rows []row) {
	for _, s := range says {
		rows = append(rows, row{says: s, answers: fmt.Sprintf("%d!", status)})
	}
	return rows
}

func TestRulesOfMessages(t *testing.T) {
	table(t, map[string][]row{
		"9112 2.2, 9110 5.5: bytes, not characters": {
			{get + "X: \xe9\xff\x80\n\n", "200", "GET / X=\xe9\xff\x80"},
			{get + "X: 日本\n\n", "200", "GET / X=日本"},
			{get + "X: a\tb \"c\n\n", "200", "GET / X=a\tb \"c"},
		},
		"9112 2.2: a bare LF ends no line": refused(400,
			"GET / HTTP/1.1␊Host: a\n\n", "GET / HTTP/1.1\nHost: a␊\n", "GET / HTTP/1.1\nHost: a\n␊", "␊GET / HTTP/1.1\nHost: a\n\n",
			"GET / HTTP/1.1␊Host: a␊␊", get+"X: a␊Y: b\n\n", get+"X:␊ a\n\n", get+"X␊: a\n\n", "GET␊/ HTTP/1.1\nHost: a\n\n",
			"CONNECT / HTTP/1.0␊␊"),
		"9112 2.2: a bare CR is in no element": refused(400,
			"GET / HTTP/1.1␍Host: a\n\n", "GET / HTTP/1.1\nHost: a␍\n\n", "GET / HTTP/1.1\nHost: a␍␍\n", "␍GET / HTTP/1.1\nHost: a\n\n",
			"GET / HTTP/1.1\nHost: a\n␍␍", get+"X: a␍Y: b\n\n", get+"X:␍ a\n\n", get+"X␍: a\n\n", "GET␍/ HTTP/1.1\nHost: a\n\n",
			"GET /␍ HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1␍\n\nHost: a\n\n", "GET / HTTP/1.1\nHost: ␍a\n\n"),
		"9112 2.2: empty lines before a request, eight of them": {
			{"\n" + get + "\n", "200", "GET /"},
			{"\n\n\n\n\n\n\n\n" + get + "\n", "200", "GET /"},
			{get + "\n\n\n\n" + get + "\n", "200 200", "GET /; GET /"},
			{post + "Content-Length: 1\n\nx\n" + get + "\n", "200 200", `POST / "x"; GET /`}, // an old client
			{strings.Repeat("\n", 9) + get + "\n", "400!", ""},
		},
		"9112 2.2: white space before the first field": refused(400,
			"GET / HTTP/1.1\n Host: a\n\n", "GET / HTTP/1.1\n\tHost: a\n\n", "GET / HTTP/1.1\n X: a\nHost: a\n\n", "GET / HTTP/1.1\n \nHost: a\n\n"),
		"9112 2.2: bytes that are no request": refused(400,
			"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", // TLS
			"\x00\n\n", "\x00", "SSH-2.0-OpenSSH_9.9\n", "USER nobody\n", "EHLO a\n", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "HTTP/1.1 200 OK\n\n", "{\"a\": 1}\n"),
		"9112 3: method SP target SP version": refused(400,
			"GET  / HTTP/1.1\nHost: a\n\n", "GET /  HTTP/1.1\nHost: a\n\n", "GET\t/ HTTP/1.1\nHost: a\n\n", "GET /\tHTTP/1.1\nHost: a\n\n",
			" GET / HTTP/1.1\nHost: a\n\n", "\tGET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1 \nHost: a\n\n", "GET / HTTP/1.1\t\nHost: a\n\n",
			"GET\n\n", "GET /\n\n", "GET / \n\n", "GET  HTTP/1.1\nHost: a\n\n", " / HTTP/1.1\nHost: a\n\n", "GET\x0b/ HTTP/1.1\nHost: a\n\n",
			"GET\x0c/ HTTP/1.1\nHost: a\n\n", "GET\xa0/ HTTP/1.1\nHost: a\n\n", "GET / a HTTP/1.1\nHost: a\n\n"),
		"9112 2.3: HTTP/1.x is 1.1 from x = 1 on": {
			{"GET / HTTP/1.0\nHost: a\n\n", "200!", "GET / 1.0"},
			{"GET / HTTP/1.2\nHost: a\n\n", "200", "GET /"},
			{"GET / HTTP/1.9\nHost: a\n\n", "200", "GET /"},
		},
		"9112 2.3: a version that is none": refused(400,
			"GET / http/1.1\nHost: a\n\n", "GET / HTTP/1.10\nHost: a\n\n", "GET / HTTP/11\nHost: a\n\n", "GET / HTTP/1,1\nHost: a\n\n",
			"GET / HTTP/1.\nHost: a\n\n", "GET / HTTP/.1\nHost: a\n\n", "GET / HTTP/01.1\nHost: a\n\n", "GET / HTTP/1.1a\nHost: a\n\n",
			"GET / HTTP/ 1.1\nHost: a\n\n", "GET / HTTP 1.1\nHost: a\n\n", "GET / HTTPS/1.1\nHost: a\n\n", "GET / HTTP/+.1\nHost: a\n\n"),
		"9110 15.6.6: a major version that is not ours": refused(505,
			"GET / HTTP/2.0\nHost: a\n\n", "GET / HTTP/0.9\n\n", "PRI * HTTP/2.0\n\nSN\n\n", "PRI * HTTP/3.0\n\nSM\n\n", "GET / HTTP/9.9\nHost: a\n\n"),
		"9110 9.1: a method is a token, with regard to case": append([]row{
			{"get / HTTP/1.1\nHost: a\n\n", "200", "get /"},
			{"!#$%&'*+-.^_`|~09Az / HTTP/1.1\nHost: a\n\n", "200", "!#$%&'*+-.^_`|~09Az /"},
			{"HEAD / HTTP/1.1\nHost: a\n\n", "200", "HEAD /"},
		}, refused(400, "G(T / HTTP/1.1\nHost: a\n\n", "GET: / HTTP/1.1\nHost: a\n\n", "G\xc3\x89T / HTTP/1.1\nHost: a\n\n",
			"GE\x00T / HTTP/1.1\nHost: a\n\n", "\"GET\" / HTTP/1.1\nHost: a\n\n", "G,T / HTTP/1.1\nHost: a\n\n")...),
	})
}

func TestRulesOfFields(t *testing.T) {
	table(t, map[string][]row{
		"9110 5.1: a field is a token, a colon and a value": append([]row{
			{get + "!#$%&'*+-.^_`|~09Az: a\n\n", "200", "GET / !#$%&'*+-.^_`|~09Az=a"},
			{get + "X:\n\n", "200", "GET / X="},
			{get + "X: a: b:\n\n", "200", "GET / X=a: b:"},
			{get + "X:a\nx:b\n\n", "200", "GET / X=a x=b"},
		}, refused(400, get+": a\n\n", get+"X\n\n", get+"X(: a\n\n", get+"X/Y: a\n\n", get+"\xc3\x89: a\n\n", get+"X\x00: a\n\n",
			get+"X a: b\n\n", get+"\"X\": a\n\n", get+"[X]: a\n\n", get+"X@: a\n\n", "GET / HTTP/1.1\n: \nHost: a\n\n")...),
		"9112 5.1: white space before the colon": refused(400,
			get+"X : a\n\n", get+"X\t: a\n\n", get+" : a\n\n", "GET / HTTP/1.1\nHost : a\n\n", post+"Content-Length : 0\n\n",
			post+"Transfer-Encoding : chunked\n\n0\n\n", get+"X\x0b: a\n\n", get+"X\xa0: a\n\n"),
		"9112 5.2: a line that goes on in the next": refused(400,
			get+"X: a\n b\n\n", get+"X: a\n\tb\n\n", get+"X:\n a\n\n", get+"X: a\n \n\n", get+"X: a\n \n b\n\n",
			post+"Content-Length:\n 5\n\nhello", post+"Content-Length: 1\n 0\n\nhello", post+"Transfer-Encoding:\n chunked\n\n0\n\n",
			post+"Transfer-Encoding: gzip,\n chunked\n\n0\n\n", get+"Connection:\n close\n\n", "GET / HTTP/1.1\nHost:\n a\n\n"),
		"9112 5: white space is SP and HTAB": append([]row{
			{get + "X: \t a b \t \n\n", "200", "GET / X=a b"},
			{get + "X: \x85a\xa0\n\n", "200", "GET / X=\x85a\xa0"},
			{get + "X: \xc2\xa0a\xe2\x80\x83\n\n", "200", "GET / X=\u00a0a\u2003"},
			{get + "X: \t\n\n", "200", "GET / X="},
		}, refused(400, get+"X: \x0ba\n\n", get+"X: a\x0c\n\n", post+"Content-Length: \x850\n\n", post+"Content-Length: 0\xa0\n\n")...),
		"9110 5.5: control characters in a value": controls(),
		"9110 5.4: 64 KiB of head": {
			{get + filled(64<<10-len(raw(get+"\n"))) + "\n", "200", "GET /" + strings.ReplaceAll(seenOf(filled(64<<10-len(raw(get+"\n")))), "\n", "")},
			{get + filled(64<<10+1-len(raw(get+"\n"))) + "\n", "431!", ""},
			{get + filled(80<<10), "431!", ""},
		},
		"9110 5.4: a hundred fields": {
			{get + strings.Repeat("X: a\n", 99) + "\n", "200", "GET /" + strings.Repeat(" X=a", 99)},
			{get + strings.Repeat("X: a\n", 100) + "\n", "431!", ""},
			{get + strings.Repeat("X:\n", 1000) + "\n", "431!", ""},
		},
	})
}

// controls are all of them but HTAB, CR and LF, which have tables of their own; a value may have none.
func controls() (rows []row) {
	for c := range 0x80 {
		if c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f {
			rows = append(rows, refused(400, fmt.Sprintf(get+"X: a%cb\n\n", c), fmt.Sprintf("GET / HTTP/1.1\nHost: a%c\n\n", c))...)
		}
	}
	return rows
}

// filled are fields of so many bytes.
func filled(n int) (fields string) {
	for ; n > 2000; n -= 1000 {
		fields += "X: " + strings.Repeat("a", 1000-len("X: \r\n")) + "\n"
	}
	return fields + "X: " + strings.Repeat("a", n-len("X: \r\n")) + "\n"
}

// seenOf is how a recorder notes fields.
func seenOf(fields string) string {
	return strings.ReplaceAll(" "+strings.ReplaceAll(fields, ": ", "="), "\nX", "\n X")
}

func TestRulesOfTargets(t *testing.T) {
	long := strings.Repeat("a", 16<<10-len("GET / HTTP/1.1\r\n"))
	table(t, map[string][]row{
		"9112 3: a request line of 16 KiB": {
			{"GET /" + long[:8000] + " HTTP/1.1\nHost: a\n\n", "200", "GET /" + long[:8000]},
			{"GET /" + long + " HTTP/1.1\nHost: a\n\n", "200", "GET /" + long},
			{"GET /" + long + "a HTTP/1.1\nHost: a\n\n", "414!", ""},
			{"GET /" + long + long, "414!", ""},
			{long + long + " / HTTP/1.1\n", "414!", ""},
			{"\n\nGET /" + long + " HTTP/1.1\nHost: a\n\n", "200", "GET /" + long}, // without what comes before it
		},
		"9112 3.2, 9110 7.2: one Host, which may be empty, and is valid": append([]row{
			{"GET / HTTP/1.1\nHost:\n\n", "200", "GET / host="},
			{"GET / HTTP/1.1\nHOST: b:80\n\n", "200", "GET / host=b:80"},
			{"GET / HTTP/1.1\nHost: b:\n\n", "200", "GET / host=b:"},
			{"GET / HTTP/1.1\nHost: [::1]:8080\n\n", "200", "GET / host=[::1]:8080"},
			{"GET / HTTP/1.1\nHost: 192.0.2.1\n\n", "200", "GET / host=192.0.2.1"},
			{"GET / HTTP/1.1\nHost: a_b-c.%41!$&'()*+,;=~\n\n", "200", "GET / host=a_b-c.%41!$&'()*+,;=~"},
			{"GET / HTTP/1.0\n\n", "200!", "GET / 1.0 host="},
		}, refused(400,
			"GET / HTTP/1.1\n\n", "GET / HTTP/1.1\nHos: a\n\n", "GET / HTTP/1.1\nHost: a\nHost: a\n\n", "GET / HTTP/1.1\nHost: a\nhOST: b\n\n",
			"GET / HTTP/1.0\nHost: a\nHost: a\n\n", "GET / HTTP/1.1\nHost: a b\n\n", "GET / HTTP/1.1\nHost: a, b\n\n", "GET / HTTP/1.1\nHost: a/b\n\n",
			"GET / HTTP/1.1\nHost: u@a\n\n", "GET / HTTP/1.1\nHost: a:b\n\n", "GET / HTTP/1.1\nHost: a:80:80\n\n", "GET / HTTP/1.1\nHost: ::1\n\n",
			"GET / HTTP/1.1\nHost: [::1\n\n", "GET / HTTP/1.1\nHost: [::1]a\n\n", "GET / HTTP/1.1\nHost: []\n\n", "GET / HTTP/1.1\nHost: [fe80::1%25eth0]\n\n",
			"GET / HTTP/1.1\nHost: a?b\n\n", "GET / HTTP/1.1\nHost: a#b\n\n", "GET / HTTP/1.1\nHost: http://a\n\n", "GET / HTTP/1.1\nHost: \xe9\n\n",
			"GET / HTTP/1.1\nHost: a\"\n\n", "GET / HTTP/1.1\nHost: <a>\n\n", "GET / HTTP/1.1\nHost: a\\b\n\n")...),
		"9112 3.2.2: the authority of an absolute target replaces Host, which still has to be there": append([]row{
			{"GET http://b/c?d HTTP/1.1\nHost: a\n\n", "200", "GET http://b/c?d path=/c?d host=b"},
			{"GET HTTPS://b:443 HTTP/1.1\nHost: a\n\n", "200", "GET HTTPS://b:443 path=/ host=b:443"},
			{"GET http://b?c HTTP/1.1\nHost: a\n\n", "200", "GET http://b?c path=/?c host=b"},
			{"GET http://[::1]/ HTTP/1.1\nHost:\n\n", "200", "GET http://[::1]/ path=/ host=[::1]"},
			{"GET http://b//c://d HTTP/1.1\nHost: a\n\n", "200", "GET http://b//c://d path=//c://d host=b"},
			{"GET http://b/ HTTP/1.0\n\n", "200!", "GET http://b/ path=/ 1.0 host=b"},
			{"OPTIONS http://b/c HTTP/1.1\nHost: a\n\n", "200", "OPTIONS http://b/c path=/c host=b"},
		}, refused(400,
			"GET http://b/ HTTP/1.1\n\n", "GET http://b/ HTTP/1.1\nHost: a\nHost: a\n\n", "GET http://b/ HTTP/1.1\nHost: a b\n\n",
			"GET http:///c HTTP/1.1\nHost: a\n\n", "GET http://:80/ HTTP/1.1\nHost: a\n\n", "GET http://u@b/ HTTP/1.1\nHost: a\n\n",
			"GET http://b:c/ HTTP/1.1\nHost: a\n\n", "GET http://b|/ HTTP/1.1\nHost: a\n\n", "GET http://b\\c/ HTTP/1.1\nHost: a\n\n",
			"GET http://\xe9/ HTTP/1.1\nHost: a\n\n", "GET http:/b HTTP/1.1\nHost: a\n\n", "GET ftp://b/ HTTP/1.1\nHost: a\n\n",
			"GET b HTTP/1.1\nHost: a\n\n", "GET b/c HTTP/1.1\nHost: a\n\n", "GET ?c HTTP/1.1\nHost: a\n\n", "GET b:80 HTTP/1.1\nHost: a\n\n")...),
		"9112 3.2.4: * is for OPTIONS": append([]row{
			{"OPTIONS * HTTP/1.1\nHost: a\n\n", "200", "OPTIONS *"},
		}, refused(400, "GET * HTTP/1.1\nHost: a\n\n", "options * HTTP/1.1\nHost: a\n\n", "OPTIONS ** HTTP/1.1\nHost: a\n\n",
			"OPTIONS *?a HTTP/1.1\nHost: a\n\n")...),
		"9112 3.2.3: CONNECT is for proxies": refused(501,
			"CONNECT b:80 HTTP/1.1\nHost: b:80\n\n", "CONNECT / HTTP/1.1\nHost: a\n\n", "CONNECT http://b/ HTTP/1.1\nHost: a\n\n",
			"CONNECT b:80 HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"),
		"9112 3.2: what no target may have": refused(400,
			"GET /a b HTTP/1.1\nHost: a\n\n", "GET /#a HTTP/1.1\nHost: a\n\n", "GET /\x7f HTTP/1.1\nHost: a\n\n",
			"GET /\x00 HTTP/1.1\nHost: a\n\n", "GET /\t HTTP/1.1\nHost: a\n\n", "GET /\x1b HTTP/1.1\nHost: a\n\n", "GET /<a> HTTP/1.1\nHost: a\n\n",
			"GET /\" HTTP/1.1\nHost: a\n\n", "GET /?a=\" HTTP/1.1\nHost: a\n\n", "GET /?<a> HTTP/1.1\nHost: a\n\n", "GET /?a#b HTTP/1.1\nHost: a\n\n",
			"GET /?a=\t HTTP/1.1\nHost: a\n\n"),
		"9112 3.2: what a target may have comes as it is": {
			{"GET /a/../b/./%2e%2E//c?d=e?f HTTP/1.1\nHost: a\n\n", "200", "GET /a/../b/./%2e%2E//c?d=e?f"},
			{"GET /%zz%0d%0a HTTP/1.1\nHost: a\n\n", "200", "GET /%zz%0d%0a"},
			{"GET //b HTTP/1.1\nHost: a\n\n", "200", "GET //b"},
			{"GET /? HTTP/1.1\nHost: a\n\n", "200", "GET /? path=/"},
			{"GET /!$&'()*+,-.:;=@[]_~ HTTP/1.1\nHost: a\n\n", "200", "GET /!$&'()*+,-.:;=@[]_~"},
			{"GET /{a}|^\\`?{a}|^\\` HTTP/1.1\nHost: a\n\n", "200", "GET /{a}|^\\`?{a}|^\\`"}, // as browsers and curl send it
			{"GET /日本\xe9?\x80\xff HTTP/1.1\nHost: a\n\n", "200", "GET /日本\xe9?\x80\xff"},
			{"GET http://b/|?^ HTTP/1.1\nHost: a\n\n", "200", "GET http://b/|?^ path=/|?^ host=b"},
		},
	})
}
