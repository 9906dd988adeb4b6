package websocket_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
)

// Each row is what a client says to an echo, what it is told up to the end, and the code with which Receive ends. The size
// of the largest message is 1000.
var rules = []struct{ name, says, told string }{
	{"5.5.1 a close", bye(1000, ""), `close 1000 ""`},
	{"5.5.1 a close with a reason", bye(4999, "enough"), `close 4999 ""`},
	{"5.5.1 a close without a code", closing(""), `close ""`},
	{"5.5.1 what follows a close", bye(1001, "") + text("a") + ping("b"), `close 1001 ""`},
	{"5.5.1 a close of one byte", closing("\x03"), `close 1002 "a close frame of one byte"`},
	{"7.1.6 the longest reason", bye(1000, strings.Repeat("x", 123)), `close 1000 ""`},
	{"7.4.1 code 1005", closing("\x03\xed"), `close 1002 "a close code that must not be sent"`},
	{"8.1 a reason that is not UTF-8", closing("\x03\xe8\xff"), `close 1007 "a text that is not UTF-8"`},
	{"5.6 texts", text("Hello") + text("") + text("€") + bye(1000, ""), `text "Hello", text "", text "€", close 1000 ""`},
	{"5.6 binaries", one(frame.Binary, "\x00\xff") + one(frame.Binary, "") + bye(1000, ""),
		`binary "\x00\xff", binary "", close 1000 ""`},
	{"5.2 125 and 126 bytes", text(strings.Repeat("x", 125)) + text(strings.Repeat("y", 126)) + bye(1000, ""),
		`text of 125, text of 126, close 1000 ""`},
	{"5.4 two fragments", begin("Hel") + last("lo") + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"5.4 many fragments", begin("") + more("H") + more("") + more("ell") + last("") + bye(1000, ""),
		`text "Hell", close 1000 ""`},
	{"5.4 nothing in fragments", begin("") + more("") + last("") + text("a") + bye(1000, ""),
		`text "", text "a", close 1000 ""`},
	{"5.4 control frames between fragments",
		begin("Hel") + ping("1") + more("l") + one(frame.Pong, "x") + ping("2") + last("o") + bye(1000, ""),
		`pong "1", pong "2", text "Hello", close 1000 ""`},
	{"5.4 a close between fragments", begin("Hel") + bye(1000, ""), `close 1000 ""`},
	{"5.4 a text between fragments", begin("Hel") + text("lo"),
		`close 1002 "a message within a message, or a continuation of none"`},
	{"5.4 a continuation of none", last("Hello"), `close 1002 "a message within a message, or a continuation of none"`},
	{"5.4 a continuation behind the end", begin("a") + last("b") + more("c"),
		`text "ab", close 1002 "a message within a message, or a continuation of none"`},
	{"5.5.2 pings", ping("") + ping("Hello") + ping(strings.Repeat("x", 125)) + bye(1000, ""),
		`pong "", pong "Hello", pong of 125, close 1000 ""`},
	{"5.5.3 pongs that were not asked for", one(frame.Pong, "") + one(frame.Pong, "a") + bye(1000, ""), `close 1000 ""`},
	{"5.1 no mask", text("a") + "\x81\x01b", `text "a", close 1002 "a frame without a mask"`},
	{"5.2 a reserved bit", "\xc1\x81\x00\x00\x00\x00a", `close 1002 "a reserved bit is set"`},
	{"5.2 a reserved bit between fragments", begin("a") + "\xa0\x80\x00\x00\x00\x00",
		`close 1002 "a reserved bit is set"`},
	{"5.2 an unknown opcode", "\x83\x80\x00\x00\x00\x00", `close 1002 "an unknown opcode"`},
	{"5.2 a length in too many bytes", "\x82\xfe\x00\x05", `close 1002 "a length in more bytes than it needs"`},
	{"8.1 UTF-8 over two fragments", begin("a\xe2\x82") + ping("b") + last("\xac") + bye(1000, ""),
		`pong "b", text "a€", close 1000 ""`},
	{"8.1 UTF-8 byte by byte", begin("\xf0") + more("\x9d") + more("\x84") + last("\x9e") + bye(1000, ""),
		`text "𝄞", close 1000 ""`},
	{"8.1 a text that is not UTF-8", text("a\xffb"), `close 1007 "a text that is not UTF-8"`},
	{"8.1 a text that ends in a character", text("a\xe2\x82"), `close 1007 "a text that is not UTF-8"`},
	{"8.1 the next text begins anew", begin("a\xc3") + last("\xa9") + text("\xa9"),
		`text "aé", close 1007 "a text that is not UTF-8"`},
	{"8.1 the first fragment is wrong", begin("a\xed\xa0"), `close 1007 "a text that is not UTF-8"`},
	{"8.1 half of a frame is wrong", "\x81\x8a\x00\x00\x00\x00a\xc0", `close 1007 "a text that is not UTF-8"`},
	{"8.1 a binary is anything", one(frame.Binary|0x40, "\xff") + last("\xc3") + bye(1000, ""),
		`binary "\xff\xc3", close 1000 ""`},
	{"10.4 the largest message", one(frame.Binary, strings.Repeat("x", 1000)) + bye(1000, ""),
		`binary of 1000, close 1000 ""`},
	{"10.4 a message that is too large", one(frame.Binary, strings.Repeat("x", 1001))[:8],
		`close 1009 "a message is too large"`},
	{"10.4 a very large one", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
		`close 1009 "a message is too large"`},
	{"10.4 fragments that are too large", begin(strings.Repeat("x", 600)) + more(strings.Repeat("y", 400)) + more("z"),
		`close 1009 "a message is too large"`},
	{"10.4 two that are not", text(strings.Repeat("x", 600)) + begin(strings.Repeat("y", 600)) + last("") + bye(1000, ""),
		`text of 600, text of 600, close 1000 ""`},
}

// echoes are two ways to write an echo.
var echoes = map[string]func(ended *error) func(*websocket.Conn, *httpd.Request) act.Action{"whole": echo, "pieces": pieces}

var closeCode = regexp.MustCompile(`close (\d+)`)

// rulesOfAClient are what a server says to a client, beside all rules but for the masks.
var rulesOfAClient = []struct{ name, says, told string }{
	{"5.1 a mask", text("a"), `close 1002 "a frame with a mask"`},
	{"5.1 a mask between fragments", bare(begin("a")) + last("b"), `close 1002 "a frame with a mask"`},
}

// Whole, byte by byte, and in two pieces, split everywhere; to an echo that is a server, and to one that is a client;
// received whole, and in pieces.
func TestRules(t *testing.T) {
	plain := websocket.Options{MaxMessage: 1000}
	compressed := websocket.Options{MaxMessage: 1000, Compress: 1}
	play := func(name, says, told string, o websocket.Options, play func(*world, []string, string, websocket.Options) story) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i, way := range ways(says) {
				for handler := range echoes {
					s := play(w, way, handler, o)
					require.Equal(t, told, words(t, s.heard), "%s, split %d", handler, i)
					var err *websocket.CloseError
					require.ErrorAs(t, s.ended, &err)
					code := "1005"
					if said := closeCode.FindStringSubmatch(told); said != nil {
						code = said[1]
					}
					require.Equal(t, code, strconv.Itoa(err.Code))
				}
			}
			require.Empty(t, w.Logs.FilterMessage("a task failed").All())
		})
	}
	for _, row := range rules {
		play("a server/"+row.name, row.says, row.told, plain, (*world).ofAServer)
		if row.name != "5.1 no mask" {
			play("a client/"+row.name, bare(row.says), row.told, plain, (*world).ofAClient)
		}
	}
	for _, row := range rulesOfAClient {
		play("a client/"+row.name, row.says, row.told, plain, (*world).ofAClient)
	}
	for _, row := range compressions {
		play("a server that compresses/"+row.name, row.says, row.told, compressed, (*world).ofAServer)
		play("a client that compresses/"+row.name, bare(row.says), row.told, compressed, (*world).ofAClient)
	}
}

// words says frames without masks in words.
func words(t *testing.T, heard string) string {
	var all []string
	for r := strings.NewReader(heard); r.Len() > 0; {
		f, err := readFrame(r)
		require.NoError(t, err)
		all = append(all, f)
	}
	return strings.Join(all, ", ")
}

// ways returns how a text may come. Of a long one there are not all ways, except in the tier long.
func ways(text string) (all [][]string) {
	all = append(all, []string{text})
	if len(text) <= 300 {
		single := make([]string, len(text))
		for i := range single {
			single[i] = text[i : i+1]
		}
		all = append(all, single)
	}
	step := 1 + len(text)/tier.Choose(40, 100, 1000)
	for i := 1; i < len(text); i += step {
		all = append(all, []string{text[:i], text[i:]})
	}
	return all
}

// RFC 6455 4.2 and 4.4.
func TestHandshakes(t *testing.T) {
	plain := handshake + "\r\n"
	with := func(fields ...string) string { return handshake + strings.Join(fields, "\r\n") + "\r\n\r\n" }
	without := func(old, new string) string {
		require.Contains(t, plain, old)
		return strings.Replace(plain, old, new, 1)
	}
	for name, row := range map[string]struct {
		says string
		told []string // parts of the head
		not  string
	}{
		"1.3 the example": {plain,
			[]string{"HTTP/1.1 101 ", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Upgrade: websocket",
				"\r\nConnection: upgrade"}, "Protocol:"},
		"4.2.1 no Upgrade": {without("Upgrade: websocket\r\n", ""),
			[]string{"HTTP/1.1 426 ", "Upgrade: websocket", "Sec-WebSocket-Version: 13"}, "Accept"},
		"4.2.1 no Connection": {without("Connection: Upgrade\r\n", ""),
			[]string{"HTTP/1.1 426 ", "Upgrade: websocket"}, "Accept"},
		"4.2.1 HTTP/1.0": {without("HTTP/1.1", "HTTP/1.0"), []string{" 426 "}, "Accept"},
		"4.2.1 POST":     {without("GET", "POST"), []string{"HTTP/1.1 405 ", "Allow: GET"}, "Accept"},
		"4.2.1 a body":   {with("Content-Length: 5") + "hello", []string{"HTTP/1.1 400 "}, "Accept"},
		"4.2.1 no key": {without("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""),
			[]string{"HTTP/1.1 400 "}, "Accept"},
		"4.2.1 a short key": {without("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25j"),
			[]string{"HTTP/1.1 400 "}, "Accept"},
		"4.2.1 a key of 17 bytes": {without("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQA="),
			[]string{"HTTP/1.1 400 "}, "Accept"},
		"4.2.1 a key not in base64": {without("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25j*Q=="),
			[]string{"HTTP/1.1 400 "}, "Accept"},
		"11.3.1 two keys": {with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
			[]string{"HTTP/1.1 400 "}, "Accept"},
		"4.4 version 12": {without("Version: 13", "Version: 12"),
			[]string{"HTTP/1.1 426 ", "Sec-WebSocket-Version: 13"}, "Accept"},
		"4.4 no version": {without("Sec-WebSocket-Version: 13\r\n", ""),
			[]string{"HTTP/1.1 426 ", "Sec-WebSocket-Version: 13"}, "Accept"},
		"4.4 two versions": {with("Sec-WebSocket-Version: 13"), []string{"HTTP/1.1 426 "}, "Accept"},
		"4.2.2 a subprotocol": {with("Sec-WebSocket-Protocol: b.v1"),
			[]string{"HTTP/1.1 101 ", "Sec-WebSocket-Protocol: b.v1\r\n"}, "chat"},
		"4.2.2 the client's first": {with("Sec-WebSocket-Protocol: x , b.v1", "Sec-WebSocket-Protocol:chat.v1"),
			[]string{"HTTP/1.1 101 ", "Sec-WebSocket-Protocol: b.v1\r\n"}, "chat"},
		"4.2.2 no such subprotocol": {with("Sec-WebSocket-Protocol: chat.v10, CHAT.V1"),
			[]string{"HTTP/1.1 101 "}, "Protocol:"},
		"9.1 an extension": {with("Sec-WebSocket-Extensions: permessage-deflate"),
			[]string{"HTTP/1.1 101 "}, "Extensions"},
		"10.2 an opaque origin":              {with("Origin: null"), []string{"HTTP/1.1 403 "}, "Accept"},
		"10.2 an empty origin":               {with("Origin:"), []string{"HTTP/1.1 403 "}, "Accept"},
		"10.2 two origins, the last is ours": {with("Origin: https://b", "Origin: https://a"), []string{"HTTP/1.1 403 "}, "Accept"},
		"10.2 two origins, one ours":         {with("Origin: https://a", "Origin: https://b"), []string{"HTTP/1.1 403 "}, "Accept"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{Subprotocols: []string{"chat.v1", "b.v1"}}}
			step := tier.Choose(17, 5, 1)
			for i := 0; i < len(row.says); i += step {
				c := w.connect(v, listener.Limits{})
				c.send(row.says[:i], row.says[i:])
				head := c.until("\r\n\r\n")
				for _, part := range row.told {
					require.Contains(t, head, part)
				}
				require.NotContains(t, head, row.not)
				require.NoError(t, c.Close())
			}
		})
	}
}

// RFC 6454 4 and 6.2, RFC 3986 3.2.2 and 3.2.3.
func TestTheOriginHasTheSameHost(t *testing.T) {
	for _, row := range []struct {
		origin, host string
		same         bool
	}{
		{"https://a", "a", true},
		{"http://a", "a", true},
		{"HTTPS://A.Example", "a.eXAMPLE", true},
		{"https://a", "a:443", true},
		{"https://a:443", "a", true},
		{"https://a", "a:", true},
		{"http://a", "a:80", true},
		{"http://a:80", "a", true},
		{"http://a:8080", "a:8080", true},
		{"https://[::1]", "[::1]:443", true},
		{"http://[2001:DB8::1]:8080", "[2001:db8::1]:8080", true},
		{"chrome-extension://a", "a", true},
		{"https://a", "a:80", false},
		{"http://a", "a:443", false},
		{"http://a:443", "a:80", false},
		{"https://a:8443", "a", false},
		{"https://a", "a:8443", false},
		{"https://a:8080", "a:80", false},
		{"https://[::1]", "[::2]", false},
		{"https://[::1]", "[:", false},
		{"https://a.example", "example", false},
		{"https://example", "a.example", false},
		{"https://a.evil", "a", false},
		{"https://evil@a", "a", false},
		{"https://a/", "a", false},
		{"https://a:443:443", "a", false},
		{"chrome-extension://a:443", "a", false},
		{"null", "null", false},
		{"null", "a", false},
		{"a", "a", false},
		{"https://", "a", false},
		{"https://", "", false},
		{"https://:443", "", false},
	} {
		w := newWorld(t)
		c := w.connect(&websocket.Server{Handler: echo(nil)}, listener.Limits{})
		c.send(strings.Replace(handshake, "Host: a", "Host: "+row.host, 1) + "Origin: " + row.origin + "\r\n\r\n")
		head := c.until("\r\n\r\n")
		if strings.Contains(head, " 400 ") { // a Host that httpd refuses
			require.False(t, row.same, "%v", row)
			continue
		}
		require.Equal(t, row.same, strings.Contains(head, " 101 "), "%v %s", row, head)
	}
}

// A handshake needs more unread bytes than the longest control frame, so any limit that lets it in is enough.
func TestTheLeastLimitOfUnreadBytes(t *testing.T) {
	w := newWorld(t)
	least := len(handshake + "\r\n")
	c := w.connect(&websocket.Server{Handler: echo(nil)}, listener.Limits{Read: least - 1})
	c.send(handshake + "\r\n")
	require.Contains(t, c.until("\r\n\r\n"), " 431 ")

	c = w.dial(&websocket.Server{Handler: echo(nil)}, listener.Limits{Read: least})
	longest := strings.Repeat("p", 125)
	c.send(ping(longest)+begin("a"), ping(longest), last(strings.Repeat("b", 70_000))+ping("q")+bye(1000, longest[2:]))
	require.Equal(t, `pong of 125, pong of 125, text of 70001, pong "q", close 1000 ""`, c.rest())
}

func TestOriginDecides(t *testing.T) {
	w := newWorld(t)
	ours := func(r *httpd.Request) bool { return string(r.Header("Origin")) == "https://b" }
	v := &websocket.Server{Handler: echo(nil), Origin: ours}
	for origin, status := range map[string]string{"https://b": "101", "https://a": "403"} {
		c := w.connect(v, listener.Limits{})
		c.send(handshake + "Origin: " + origin + "\r\n\r\n")
		require.Contains(t, c.until("\r\n\r\n"), "HTTP/1.1 "+status)
	}
}
