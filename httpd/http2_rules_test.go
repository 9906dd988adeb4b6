package httpd_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/daimon-go/daimon/httpd/internal/http2"
)

// The rules of RFC 9113 for a server, by section, and of RFC 7541, 8441 and 9218 as far as a connection shows them. See scene.

// like are scenes that are alike in what is heard and seen.
func like(hears, seen string, says ...string) (all []scene) {
	for _, s := range says {
		all = append(all, scene{s, hears, seen})
	}
	return all
}

// gone are scenes in which the connection ends with this GOAWAY.
func gone(goAway string, says ...string) []scene { return like("GOAWAY "+goAway+"!", "", says...) }

const prefaceAnd = `raw; BYTES "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; `

func TestHTTP2RulesOfConnections(t *testing.T) {
	scenes(t, map[string][]scene{
		"9113 3.4: the server begins with SETTINGS": {
			{"all; ", "SETTINGS 3=128 6=65536 8=1 9=1 | WINDOW 0 983041", ""},
			{"with MaxStreams=7 MaxHead=100; all; ", "SETTINGS 3=7 6=100 8=1 9=1 | WINDOW 0 983041", ""},
		},
		"9113 3.4: so does the client, after its preface": slices.Concat(
			gone("0 PROTOCOL_ERROR", prefaceAnd+"GET 1 /", prefaceAnd+"PING a", prefaceAnd+"SETTINGS ACK", prefaceAnd+`FRAME 200 0 0 ""`),
			like(`ACK | 1 200 "0"`, "GET /", prefaceAnd+"SETTINGS; GET 1 /")),
		"9113 3.3: no HTTP/2 with MaxStreams below 0, after a request, or after an empty line": {
			{"with MaxStreams=-1", "HTTP/1.1 | 505!", ""},
			{`raw; BYTES "GET /old HTTP/1.1\r\nHost: a\r\n\r\n"; ` + prefaceAnd, "HTTP/1.1 | 200!", "GET /old"},
			{`raw; BYTES "\r\n"; ` + prefaceAnd, "HTTP/1.1 | 505!", ""},
		},
		"9113 4.1: what is not known is ignored": slices.Concat(
			like("", "", `FRAME 200 255 0 "abc"`, `FRAME 77 0 5 ""`, "FRAME 255 0 2147483648 16384", "FRAME 10 0 2 1"),
			like("PONG 12345678", "", `FRAME 6 254 2147483648 "12345678"`), // the reserved bit, and flags that it does not have
			like("ACK", "", `FRAME 4 254 0 ""`)),
		"9113 4.2: sizes": slices.Concat(
			gone("0 FRAME_SIZE_ERROR", "FRAME 200 0 0 16385", `FRAME 6 0 0 7`, `FRAME 6 0 0 9`, `FRAME 6 0 0 ""`, "FRAME 8 0 0 3", "FRAME 8 0 0 5",
				"FRAME 4 0 0 5", "FRAME 4 0 0 7", "FRAME 4 1 0 6", "FRAME 7 0 0 7", "FRAME 16 0 0 3", `FRAME 1 12 1 ""`, "FRAME 1 36 1 4",
				"FRAME 1 44 1 5", "FRAME 1 4 1 16385", "FRAME 2 0 1 4"),
			gone("1 FRAME_SIZE_ERROR", "GET 1 /wait; FRAME 3 0 1 3", "GET 1 /wait; FRAME 3 0 1 5", "GET 1 /wait; FRAME 8 0 1 3",
				"POST 1 /wait; FRAME 0 0 1 16385", `POST 1 /wait; FRAME 0 8 1 ""`),
			like("1 RST FRAME_SIZE_ERROR", "", "GET 1 /wait; FRAME 2 0 1 6")),
		"9113 5.1.1: numbers of streams": slices.Concat(
			gone("0 PROTOCOL_ERROR", "GET 0 /", "GET 2 /", `DATA 2 "a"`, "RST 2 CANCEL", "WINDOW 2 1"),
			like(`GOAWAY 5 STREAM_CLOSED | 5 200 "0"!`, "GET /", "GET 5 /; GET 3 /", "GET 5 /; GET 5 /"),
			like(`1 200 "0" | 9 200 "0" | 2147483647 200 "0"`, "GET /; GET /; GET /", "GET 1 /; GET 9 /; GET 2147483647 /")),
		"9113 6.5: SETTINGS": slices.Concat(
			gone("0 PROTOCOL_ERROR", `FRAME 4 0 1 ""`, "SETTINGS 2=2", "SETTINGS 5=16383", "SETTINGS 5=16777216", "SETTINGS 8=2", "SETTINGS 9=2",
				"SETTINGS 5=0", "SETTINGS 1=0 2=3"),
			gone("0 FLOW_CONTROL_ERROR", "SETTINGS 4=2147483648", "SETTINGS 4=4294967295", "SETTINGS 4=1 4=2147483648"),
			like("ACK", "", "SETTINGS", "SETTINGS 1=0 1=4294967295", "SETTINGS 2=0 2=1", "SETTINGS 3=0 3=4294967295", "SETTINGS 4=0 4=2147483647",
				"SETTINGS 5=16384 5=16777215", "SETTINGS 6=0 6=4294967295", "SETTINGS 8=1 8=0", "SETTINGS 9=0 9=1",
				"SETTINGS 7=2 10=5 65535=4294967295"),
			like("", "", "SETTINGS ACK", "SETTINGS ACK; SETTINGS ACK")),
		"9113 6.6, 8.4: no PUSH_PROMISE": gone("0 PROTOCOL_ERROR", `FRAME 5 4 1 "\x00\x00\x00\x02"`, `FRAME 5 4 0 ""`),
		"9113 6.7: PING": slices.Concat(gone("0 PROTOCOL_ERROR", "FRAME 6 0 1 8"),
			like("PONG a | PONG b", "", "PING a; PING b", "PING a; PING x ACK; PING b")),
		"9113 6.8: GOAWAY of the client": slices.Concat(gone("0 PROTOCOL_ERROR", "FRAME 7 0 1 8"),
			like(`1 200 "0" | 3 200 "0"`, "GET /; GET /", "GET 1 /; GOAWAY; GET 3 /")),
		"9113 6.9: WINDOW_UPDATE": slices.Concat(
			gone("0 PROTOCOL_ERROR", "WINDOW 0 0", "WINDOW 0 2147483648"),
			gone("0 FLOW_CONTROL_ERROR", "WINDOW 0 2147483647", "WINDOW 0 2147418113", "WINDOW 0 1; WINDOW 0 2147418112"),
			gone("1 FLOW_CONTROL_ERROR", "GET 1 /wait; WINDOW 1 2147418112; SETTINGS 4=65536"),
			like("", "", "WINDOW 0 2147418112", "GET 1 /wait; WINDOW 1 2147418112"),
			like(`1 RST PROTOCOL_ERROR | 3 200 "0"`, "GET /", "GET 1 /wait; WINDOW 1 0; GET 3 /", "GET 1 /wait; WINDOW 1 2147483648; GET 3 /"),
			like(`1 RST FLOW_CONTROL_ERROR | 3 200 "0"`, "GET /", "GET 1 /wait; WINDOW 1 2147418113; GET 3 /"),
			like("ACK | 1 RST FLOW_CONTROL_ERROR", "", "GET 1 /wait; WINDOW 1 2147418112; SETTINGS 4=0 4=65535; WINDOW 1 1")),
	})
}

// The client is refused by HTTP/1 wherever its preface is not that of HTTP/2, and is not answered if it ends within it.
func TestHTTP2Prefaces(t *testing.T) {
	for n := range http2.Preface {
		wrong := []byte(http2.Preface)
		wrong[n] ^= 1
		p := newPlayer(t)
		p.play(fmt.Sprintf("raw; BYTES %q", wrong))
		if s := p.story(); s != "HTTP/1.1 | 400!" && s != "HTTP/1.1 | 505!" {
			t.Errorf("%q: %s", wrong, s)
		}
		scene{fmt.Sprintf("raw; BYTES %q; eof", http2.Preface[:n]), "!", ""}.cut(t)
	}
	scene{fmt.Sprintf("raw; BYTES %q; eof", http2.Preface), "GOAWAY 0 NO_ERROR!", ""}.cut(t)
}

const (
	isReset  = `POST 1 /wait content-length=1; DATA 1 "ab"; ` // by the server
	unread   = "POST 1 /unread; "
	waits    = "GET 1 /wait; "
	uploads  = "POST 1 /wait; "
	fills    = "POST 1 /wait; DATA 1 16384; DATA 1 16384; DATA 1 16384; " // but for 16383
	cutBlock = "HEADERS 1 END PART :method=GET :scheme=http; "
)

func TestHTTP2RulesOfStreams(t *testing.T) {
	scenes(t, map[string][]scene{
		"9113 5.1: idle": slices.Concat(
			gone("0 PROTOCOL_ERROR", `DATA 1 "a"`, `DATA 1 "" END`, "RST 1 CANCEL", "WINDOW 1 1", "CONT 1 :path=/", "PRIORITY 1 DEP=1"),
			like(`1 200 "0"`, "GET /", "PRIORITY 1 DEP=3; GET 1 /", "PRIORITY 3 DEP=1; GET 1 /", "UPDATE 1 u=1; GET 1 /")),
		"9113 5.1: open": slices.Concat(
			like("", "", uploads+"WINDOW 1 1", uploads+"PRIORITY 1 DEP=3", uploads+`DATA 1 "a"`, uploads+"RST 1 CANCEL", uploads+`DATA 1 "a" END`,
				uploads+"HEADERS 1 END x=y"),
			like(`1 RST PROTOCOL_ERROR | 3 200 "0"`, "GET /", uploads+"HEADERS 1 x=y; GET 3 /")),
		"9113 5.1: half-closed by the client": slices.Concat(
			like("1 RST STREAM_CLOSED", "", waits+`DATA 1 "a"`, waits+`DATA 1 "" END`, waits+"HEADERS 1 END x=y", uploads+`DATA 1 "a" END; DATA 1 "b"`,
				uploads+`HEADERS 1 END x=y; DATA 1 "b" PAD=5`),
			like("", "", waits+"WINDOW 1 1", waits+"PRIORITY 1 DEP=3", waits+"RST 1 CANCEL")),
		"9113 5.1: half-closed by the server": like(`1 200 "whatever"`, "POST /unread …", unread, unread+`DATA 1 "a"`, unread+`DATA 1 "a" END PAD=9`,
			unread+"HEADERS 1 END x=y", unread+"WINDOW 1 1", unread+"RST 1 CANCEL", unread+"PRIORITY 1 DEP=3"),
		"9113 5.1: closed": slices.Concat(
			like(`GOAWAY 1 STREAM_CLOSED | 1 200 "0"!`, "GET /", `GET 1 /; DATA 1 "a"`, "GET 1 /; HEADERS 1 END x=y"),
			like(`1 200 "0"`, "GET /", "GET 1 /; WINDOW 1 1", "GET 1 /; WINDOW 1 0", "GET 1 /; RST 1 CANCEL", "GET 1 /; PRIORITY 1 DEP=3", "GET 1 /; UPDATE 1 u=1"),
			gone("1 STREAM_CLOSED", uploads+`RST 1 CANCEL; DATA 1 "a"`, uploads+"RST 1 CANCEL; HEADERS 1 END x=y")),
		"9113 5.1: what was on its way to a stream that the server has reset": slices.Concat(
			like("1 RST PROTOCOL_ERROR", "", isReset, isReset+`DATA 1 "c" END`, isReset+`DATA 1 "c" PAD=3; DATA 1 "d" END`, isReset+"HEADERS 1 END x=y",
				isReset+"HEADERS 1 END PART x=y; CONT 1 y=z", isReset+"WINDOW 1 1", isReset+"WINDOW 1 0", isReset+"RST 1 CANCEL", isReset+"PRIORITY 1 DEP=3"),
			like(`1 RST PROTOCOL_ERROR | 3 200 "0"`, "GET / x=y", isReset+"HEADERS 1 END HEX=4001780179; GET 3 / HEX=be")),
		"9113 5.1.2: MaxStreams": {
			{"with MaxStreams=2; GET 1 /wait; GET 3 /wait; GET 5 /; POST 7 /", "5 RST REFUSED_STREAM | 7 RST REFUSED_STREAM", ""},
			{`with MaxStreams=2; GET 1 /wait; GET 3 /wait; POST 5 /; DATA 5 "abc"; HEADERS 5 END x=y`, "5 RST REFUSED_STREAM", ""},
			{"with MaxStreams=1; GET 1 /wait; RST 1 CANCEL; pass 1s; GET 3 /", `3 200 "0"`, "GET /"},
			{"with MaxStreams=1; GET 1 /unread; GET 3 /unread", `1 200 "whatever" | 3 200 "whatever"`, "GET /unread …; GET /unread …"},
			{"with MaxStreams=1; POST 1 /unread; GET 3 /", `1 200 "whatever" | 3 RST REFUSED_STREAM`, "POST /unread …"},
			{"with MaxStreams=1; GET 1 /wait; GET 3 / HEX=4001780179; RST 1 CANCEL; pass 1s; GET 5 / HEX=be", `3 RST REFUSED_STREAM | 5 200 "0"`, "GET / x=y"},
		},
		"9113 6.1: DATA": slices.Concat(
			gone("1 PROTOCOL_ERROR", uploads+`FRAME 0 8 1 "\x04abc"`, uploads+`FRAME 0 8 1 "\x01"`, uploads+`FRAME 0 9 1 "\xff"`, uploads+`DATA 0 "a"`),
			like(`1 200 "3"`, `POST / "abc"`, `POST 1 /; DATA 1 "abc" END`, `POST 1 /; DATA 1 "abc" END PAD=0`, `POST 1 /; DATA 1 "abc" END PAD=255`,
				`POST 1 /; DATA 1 "a" PAD=3; DATA 1 "bc" PAD=200; DATA 1 "" END`,
				`POST 1 /; DATA 1 ""; DATA 1 "" PAD=2; DATA 1 "abc"; DATA 1 "" END PAD=9`),
			like(`1 200 "0"`, "POST /", `POST 1 /; FRAME 0 9 1 "\x03abc"`, `POST 1 /; FRAME 0 9 1 "\x00"`)),
		"9113 6.2: HEADERS with padding, and with a priority of RFC 7540": slices.Concat(
			gone("0 PROTOCOL_ERROR", `FRAME 1 13 1 "\x05abc"`, `FRAME 1 45 1 "\x01abcde"`, `FRAME 1 13 1 "\x01"`),
			like(`1 200 "0"`, "GET /", "GET 1 / PAD=0", "GET 1 / PAD=255", "GET 1 / DEP=0", "GET 1 / DEP=7 PAD=7"),
			like("1 RST PROTOCOL_ERROR", "", "GET 1 / DEP=1", "HEADERS 1 END PART DEP=1 :method=GET :scheme=http; CONT 1 :authority=a :path=/")),
		"9113 6.3: PRIORITY": slices.Concat(gone("0 PROTOCOL_ERROR", "PRIORITY 0 DEP=1"),
			like("1 RST PROTOCOL_ERROR", "", waits+"PRIORITY 1 DEP=1")),
		"9113 6.4: RST_STREAM": slices.Concat(gone("0 PROTOCOL_ERROR", "RST 0 CANCEL"),
			like("", "", waits+"RST 1 CANCEL", waits+"RST 1 X", waits+"RST 1 CANCEL; RST 1 CANCEL", "POST 1 /; RST 1 NO_ERROR")[:3]),
		"9113 6.9.1: DATA beyond the window of a stream": slices.Concat(
			like("", "", fills+"DATA 1 16383", fills+"DATA 1 16127 PAD=255"),
			like(`1 RST FLOW_CONTROL_ERROR | 3 200 "0"`, "GET /", fills+"DATA 1 16384; GET 3 /", fills+"DATA 1 16128 PAD=255; GET 3 /",
				fills+"DATA 1 16383; DATA 1 1; GET 3 /")),
		"9113 6.9.2: windows of the client": {
			{`SETTINGS 4=10; GET 1 /do?write+30; = ACK | 1 200 "zzzzzzzzzz" …; SETTINGS 4=4; WINDOW 1 6; = ACK | ACK | 1 200 "zzzzzzzzzz" …; WINDOW 1 5`,
				`ACK | ACK | 1 200 "zzzzzzzzzzzzzzz" …`, ""},
			{"SETTINGS 4=10; GET 1 /do?write+30; SETTINGS 4=30", `ACK | ACK | 1 200 "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"`, ""},
			{`SETTINGS 4=0; GET 1 /do?write+3; = ACK | 1 200 …; WINDOW 1 1; = ACK | 1 200 "z" …; WINDOW 1 1000`, `ACK | 1 200 "zzz"`, ""},
			{"SETTINGS 4=0; GET 1 /do?trailer; GET 3 /do; HEAD 5 /do?write+9", "ACK | 1 200 +x-t=v | 3 200 length=0 | 5 200 length=9", ""},
			{`GET 1 /do?write+65535; = 1 200 [65535]; GET 3 /do?write+5; = 1 200 [65535] | 3 200 …; WINDOW 0 3; = 1 200 [65535] | 3 200 "zzz" …; WINDOW 0 2`,
				`1 200 [65535] | 3 200 "zzzzz"`, ""},
			{"SETTINGS 4=1000000; WINDOW 0 1000000; GET 1 /do?fill+300000", "ACK | 1 200 [300000]", ""},
		},
		"9113 6.10: CONTINUATION": slices.Concat(
			gone("1 PROTOCOL_ERROR", cutBlock+"PING a", cutBlock+"CONT 3 :path=/", cutBlock+"CONT 0 :path=/", cutBlock+"GET 3 /", cutBlock+`DATA 1 "a"`,
				cutBlock+`FRAME 200 0 1 ""`, cutBlock+"SETTINGS", cutBlock+"WINDOW 0 1", cutBlock+"RST 1 CANCEL", cutBlock+"PRIORITY 1 DEP=3", waits+"CONT 1 x=y"),
			like(`1 200 "0"`, "GET / x=y", cutBlock+"CONT 1 PART :authority=a; CONT 1 :path=/ x=y", cutBlock+"CONT 1 PART; CONT 1 :authority=a :path=/ x=y",
				"HEADERS 1 END PART PAD=9; CONT 1 :method=GET :scheme=http :authority=a :path=/ x=y",
				"HEADERS 1 END PART HEX=8286; CONT 1 PART HEX=04; CONT 1 PART HEX=01; CONT 1 HEX=2f :authority=a x=y",
				"HEADERS 1 END PART HEX=828684410161; CONT 1 PART HEX=0001; CONT 1 HEX=780179")),
	})
}

func TestHTTP2RulesOfCompression(t *testing.T) {
	const adds, uses = " HEX=4001780179; ", "GET 3 / HEX=be"
	scenes(t, map[string][]scene{
		"7541 2.3: the dynamic table": {
			{"GET 1 /" + adds + uses, `1 200 "0" | 3 200 "0"`, "GET / x=y; GET / x=y"},
			{"HEADERS 1 END" + adds + uses, `1 RST PROTOCOL_ERROR | 3 200 "0"`, "GET / x=y"},
			{"GET 1 / X=y" + adds + uses, `1 RST PROTOCOL_ERROR | 3 200 "0"`, "GET / x=y"},
			{unread + "HEADERS 1 END" + adds + uses, `1 200 "whatever" | 3 200 "0"`, "POST /unread …; GET / x=y"},
			{waits + "HEADERS 1 END" + adds + uses, `1 RST STREAM_CLOSED | 3 200 "0"`, "GET / x=y"},
			{"GET 1 / DEP=1" + adds + uses, `1 RST PROTOCOL_ERROR | 3 200 "0"`, "GET / x=y"},
			{"with MaxFields=1; GET 1 / a=b a=c" + adds + uses, `1 431 "431 Request Header Fields Too Large\n" | 3 200 "0"`, "GET / x=y"},
		},
		"7541 4.2: its size": slices.Concat(
			like(`1 200 "0"`, "GET /", "HEADERS 1 END HEX=20828684410161", "HEADERS 1 END HEX=203fe11f828684410161"),
			gone("1 COMPRESSION_ERROR", "HEADERS 1 END HEX=3fe21f828684410161", "HEADERS 1 END HEX=82208684410161", uploads+"HEADERS 1 END HEX=4001780179"+"20",
				"GET 1 / HEX=4001780179; HEADERS 1 HEX=20be")[:3]),
		"7541 6.1: an index beyond the tables": gone("1 COMPRESSION_ERROR", "HEADERS 1 END HEX=80", "HEADERS 1 END HEX=be", "HEADERS 1 END HEX=ff00",
			"HEADERS 1 END HEX=7e0161", "HEADERS 1 END HEX=ffffffffffff0f"),
		"7541 5.1, 5.2: integers and strings": slices.Concat(
			gone("1 COMPRESSION_ERROR", "HEADERS 1 END HEX=ff8080808080808001", "HEADERS 1 END HEX=00", "HEADERS 1 END HEX=0002780179",
				"HEADERS 1 END HEX=0001788100", "HEADERS 1 END HEX=00017884ffffffff", "HEADERS 1 END PART HEX=0002; CONT 1 HEX=78"),
			like(`1 200 "0"`, "GET / host=www.example.com", "HEADERS 1 END HEX=828684418cf1e3c2e5f23a6ba0ab90f4ff")),
	})
}

func TestHTTP2RulesOfMessages(t *testing.T) {
	const malformed = "1 RST PROTOCOL_ERROR"
	const usual = ":method=GET :scheme=http :authority=a :path=/ "
	scenes(t, map[string][]scene{
		"9113 8.1: requests and answers": {
			{"GET 1 /", `1 200 "0"`, "GET /"},
			{"HEAD 1 /do?write+5", `1 200 length=5`, ""},
			{"HEAD 1 /do?write+9000", `1 200 length=9000`, ""},
			{"HEAD 1 /do?status+404,length+7", `1 404 length=7`, ""},
			{"GET 1 /do?status+204", "1 204", ""}, {"GET 1 /do?status+304", "1 304", ""},
			{"GET 1 /do?error+404", `1 404 "404 Not Found\n"`, ""},
			{"GET 1 /do?write+5,flush,write+5", `1 200 "zzzzzzzzzz"`, ""},
			{"GET 1 /do?length+10,write+5,flush,write+5", `1 200 "zzzzzzzzzz"`, ""},
			{"GET 1 /do?whole+20000,field", `1 200 x-a=v [20000]`, ""},
			{"GET 1 /do?length+10,send+10", `1 200 "xxxxxxxxxx"`, ""},
			{"GET 1 /do?length+10,write+5", `1 500 "500 Internal Server Error\n"`, "failure"},
			{"GET 1 /do?length+10,write+5,flush", `1 200 RST INTERNAL_ERROR`, "failure"},
			{"GET 1 /do?hijack+error", `1 200 length=0`, ""},
			{"GET 1 /do?switch", `1 200 length=0`, ""},
		},
		"9113 8.1: trailers of an answer": {
			{"GET 1 /do?write+3,trailer", `1 200 "zzz" +x-t=v`, ""}, {"GET 1 /do?trailer,flush", `1 200 +x-t=v`, ""},
			{"HEAD 1 /do?write+3,trailer", "1 200 length=3", ""}, {"GET 1 /do?trailer,whole+20000", `1 200 [20000] +x-t=v`, ""},
			{"GET 1 /do?flush,write+3,trailer", `1 200 "zzz" +x-t=v`, ""},
		},
		"9113 8.1: trailers of a request": slices.Concat(
			like(`1 200 "3"`, `POST / "abc" +Sum=1`, `POST 1 /; DATA 1 "abc"; HEADERS 1 END sum=1`, `POST 1 /; DATA 1 "abc"; HEADERS 1 END PART; CONT 1 sum=1`,
				`POST 1 / content-length=3; DATA 1 "abc"; HEADERS 1 END sum=1 PAD=3`),
			like(`1 200 "0"`, "POST / +Sum=1", "POST 1 /; HEADERS 1 END sum=1"), like(`1 200 "0"`, "POST /", "POST 1 /; HEADERS 1 END", "POST 1 /; HEADERS 1 END x=y"),
			like(malformed, "POST / …", "POST 1 /; HEADERS 1 sum=1", "POST 1 /; HEADERS 1 END :path=/", "POST 1 /; HEADERS 1 END :status=200", "POST 1 /; HEADERS 1 END Sum=1",
				"POST 1 /; HEADERS 1 END content-length=0", "POST 1 /; HEADERS 1 END host=a", "POST 1 /; HEADERS 1 END transfer-encoding=chunked",
				"POST 1 /; HEADERS 1 END connection=close", "POST 1 /; HEADERS 1 END expect=100-continue", `POST 1 /; HEADERS 1 END x="a\nb"`,
				"POST 1 / content-length=1; HEADERS 1 END x=y"),
			like("1 RST ENHANCE_YOUR_CALM", "POST / …", "with MaxFields=1; POST 1 /; HEADERS 1 END x=y y=z")),
		"9113 8.1.1: Content-Length": slices.Concat(
			like(`1 200 "3"`, `POST / "abc"`, `POST 1 / content-length=3; DATA 1 "abc" END`, `POST 1 / content-length=3; DATA 1 "abc"; DATA 1 "" END PAD=1`,
				`POST 1 / content-length=003; DATA 1 "ab" PAD=9; DATA 1 "c" END`),
			like(`1 200 "0"`, "POST /", `POST 1 / content-length=0; DATA 1 "" END`, "POST 1 / content-length=0 END"),
			like(malformed, "POST / …", `POST 1 / content-length=3; DATA 1 "abcd"`, `POST 1 / content-length=3; DATA 1 "ab" END`, `POST 1 / content-length=3; DATA 1 "abcd" END`,
				`POST 1 / content-length=3; DATA 1 "" END`, `POST 1 / content-length=0; DATA 1 "a" END`),
			like(malformed, "", "POST 1 / content-length=3 END", "POST 1 / content-length=", "POST 1 / content-length=+3", "POST 1 / content-length=-3", "POST 1 / content-length=3,3",
				"POST 1 / content-length=3 content-length=3", "POST 1 / content-length=0x3", "POST 1 / content-length=18446744073709551619", "POST 1 / content-length=9223372036854775808"),
			like(`1 413 "413 Content Too Large\n"`, "", "with MaxBody=5; POST 1 / content-length=6"),
			like(`1 413 "413 Content Too Large\n"`, "POST / failed", `with MaxBody=5; POST 1 /; DATA 1 "abc"; DATA 1 "def"`)),
		"9110 10.1.1, 15.2: interim answers": {
			{`POST 1 / expect=100-continue; = 1 100 …; DATA 1 "abc" END`, `1 100 200 "3"`, `POST / expect=100-continue "abc"`},
			{"POST 1 / expect=100-Continue content-length=3; = 1 100 …; DATA 1 \"abc\"; HEADERS 1 END", `1 100 200 "3"`, `POST / expect=100-Continue "abc"`},
			{"POST 1 /unread expect=100-continue", `1 200 "whatever"`, "POST /unread expect=100-continue …"},
			{"GET 1 / expect=100-continue", `1 200 "0"`, "GET / expect=100-continue"},
			{"POST 1 / expect=200-ok", `1 417 "417 Expectation Failed\n"`, ""},
			{"POST 1 /do?inform+103,inform+102", "1 103 102 200 length=0", ""},
			{"HEAD 1 /do?inform+103,write+1", "1 103 200 length=1", ""},
		},
		"9113 8.2.1: names and values": slices.Concat(
			like(malformed, "", "GET 1 / X=y", "GET 1 / xY=z", `GET 1 / ""=a`, `GET 1 / "x y"=a`, `GET 1 / "x:y"=a`, `GET 1 / "x\x00"=a`, `GET 1 / "x\u00e9"=a`, `GET 1 / "x "=a`,
				`GET 1 / "x\x7f"=a`, `GET 1 / x="a\x00"`, `GET 1 / x="a\r\nb"`, `GET 1 / x="a\rb"`, `GET 1 / x="a\nb"`, `GET 1 / x=" a"`, `GET 1 / x="a\t"`, `GET 1 / x="a\x7f"`, `GET 1 / x="\x01"`),
			like(`1 200 "0"`, "GET / x=", "GET 1 / x=", `GET 1 / x=""`), like(`1 200 "0"`, "GET / x=a\tb \xe9", `GET 1 / x="a\tb \xe9"`)),
		"9113 8.2.2: fields of connections of HTTP/1": slices.Concat(
			like(malformed, "", "GET 1 / connection=close", "GET 1 / connection=", "GET 1 / keep-alive=timeout=5", "GET 1 / proxy-connection=x", "GET 1 / transfer-encoding=chunked",
				"GET 1 / upgrade=h2c", "GET 1 / te=gzip", `GET 1 / te="trailers, gzip"`, "POST 1 / transfer-encoding=identity"),
			like(`1 200 "0"`, "GET / te=trailers", "GET 1 / te=trailers"), like(`1 200 "0"`, "GET / te=Trailers", "GET 1 / te=Trailers")),
		"9113 8.2.3: crumbs of a cookie": like(`1 200 "0"`, "GET / cookie=a=1; b=2 x=y", "GET 1 / cookie=a=1 cookie=b=2 x=y", "GET 1 / cookie=a=1 x=y cookie=b=2"),
		"9113 8.3: pseudo-fields": slices.Concat(
			like(malformed, "", "HEADERS 1 END", "HEADERS 1 END :scheme=http :authority=a :path=/", "HEADERS 1 END :method=GET :authority=a :path=/", "HEADERS 1 END :method=GET :scheme=http :authority=a",
				"HEADERS 1 END "+usual+":method=GET", "HEADERS 1 END "+usual+":path=/", "HEADERS 1 END "+usual+":scheme=http", "HEADERS 1 END "+usual+":authority=a",
				"HEADERS 1 END "+usual+":status=200", "HEADERS 1 END "+usual+":x=y", "HEADERS 1 END "+usual+":=y", "HEADERS 1 END :method=GET x=y :scheme=http :authority=a :path=/",
				"HEADERS 1 END "+usual+"x=y :path=/", "HEADERS 1 END :method= :scheme=http :authority=a :path=/", `HEADERS 1 END :method="G T" :scheme=http :authority=a :path=/`,
				"HEADERS 1 END :method=GET :scheme= :authority=a :path=/", "HEADERS 1 END :method=GET :scheme=http :authority=a :path=", "HEADERS 1 END "+usual+":protocol=x",
				`HEADERS 1 END :method=GET :scheme=http :authority=a :path="/\x00"`, `HEADERS 1 END :method=GET :scheme=http :authority=a :path="/ "`, `HEADERS 1 END :Method=GET :scheme=http :authority=a :path=/`),
			like(`1 400 "400 Bad Request\n"`, "", "GET 1 b", "GET 1 http://b/", "GET 1 *", "GET 1 /#a", `GET 1 "/a b"`, "GET 1 ?a", "POST 1 * END",
				"HEADERS 1 END :method=GET :scheme=http :path=/", "HEADERS 1 END :method=GET :scheme=http :authority= :path=/", "GET 1 / host=b", "GET 1 / host=a host=a",
				"HEADERS 1 END :method=GET :scheme=http :authority=u@a :path=/", `HEADERS 1 END :method=GET :scheme=http :authority="a b" :path=/`,
				"HEADERS 1 END :method=GET :scheme=http :authority=a:b :path=/", "HEADERS 1 END :method=GET :scheme=http :path=/ host=u@a", "HEADERS 1 END :method=GET :scheme=http :authority=:80 :path=/"),
			like(`1 200 "0"`, "GET / host=b:80", "HEADERS 1 END :method=GET :scheme=http :path=/ host=b:80"), like(`1 200 "0"`, "GET /", "GET 1 / host=a"), like(`1 200 "0"`, "GET /", "GET 1 / host=A"),
			like(`1 200 "0"`, "OPTIONS *", "HEADERS 1 END :method=OPTIONS :scheme=https :authority=a :path=*"), like(`1 200 "0"`, "x /a?b", "HEADERS 1 END :method=x :scheme=gopher :authority=a :path=/a?b")),
		"9110 5.4: limits": {
			{"with MaxFields=2; GET 1 / a=b a=b", `1 200 "0"`, "GET / a=b a=b"},
			{"with MaxFields=2; GET 1 / a=b a=b a=b; GET 3 /", `1 431 "431 Request Header Fields Too Large\n" | 3 200 "0"`, "GET /"},
			{"with MaxHead=400; GET 1 /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", `1 414 "414 URI Too Long\n"`, ""},
			{"with MaxHead=250; GET 1 / a=b a=b a=b", `1 431 "431 Request Header Fields Too Large\n"`, ""},
		},
		"9113 8.5: CONNECT is for proxies": slices.Concat(
			like(`1 501 "501 Not Implemented\n"`, "", "HEADERS 1 :method=CONNECT :authority=a:80", "HEADERS 1 END :method=CONNECT :authority=a:80"),
			like(malformed, "", "HEADERS 1 :method=CONNECT", "HEADERS 1 :method=CONNECT :authority=a:80 :path=/", "HEADERS 1 :method=CONNECT :authority=a:80 :scheme=http")),
	})
}
