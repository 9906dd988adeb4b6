package httpd_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

const tunnelled = "HEADERS 1 :method=CONNECT :protocol=Line-Echo :scheme=http :authority=a :path=/switch; "

// A connection and its streams say what they wait for, and how long at most.
func TestWaitsOfHTTP2(t *testing.T) {
	many := strings.Repeat(`DATA 1 "`+strings.Repeat("x", 9999)+`\n"; `, 4)
	for says, want := range map[string]string{
		"":             "the next request, for up to 1m15s",
		prefaceAnd:     "the rest of a frame, for up to 10s",
		`BYTES "\x00"`: "the rest of a frame, for up to 10s",
		cutBlock:       "the rest of a frame, for up to 10s",
		waits:          "its streams: 1",
		"POST 1 /":     "more of the request's body, for up to 1m0s",
		tunnelled:      "its streams: 1, input from its peer",
		"SETTINGS 4=0; " + tunnelled + many + "= ACK | 1 200 x-key=abc …; " + many: "its streams: 1, the end of its peer, room: 65536 bytes queued for its peer",
	} {
		p := newPlayer(t)
		p.play(says)
		require.Contains(t, strings.Join(servertest.Said(p.d.s), ", "), want, "%s", says)
	}
}

// The tasks of streams name the client and the service, and hear of a shutdown what the connection does. What waits for a window
// of the client is queued at the connection.
func TestHTTP2ClientsAreNamed(t *testing.T) {
	p, clock := newPlayer(t), &servertest.Clock{}
	l := servertest.New(t, act.Config{Clock: clock})
	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: p.web.Serve, AtEnd: service.Finish}
	require.NoError(t, tcp.Setup(l.S))
	c := servertest.Dial(t, tcp.Addr())
	at, client := "tcp "+tcp.Addr().String(), c.LocalAddr().String()
	servertest.Send(t, c, http2.Preface+p.frame("SETTINGS 4=0")+p.frame("GET 1 /do?write+9")+p.frame("GET 3 /do?panic")+p.frame("GET 5 /wait"))
	pass := func(d time.Duration) {
		clock.Pass(d)
		l.Turn(func(*act.Task) {})
	}
	said := func() (all string) {
		l.S.Internals().EachTask(1, func(x *act.Task) bool {
			if of, is := x.Action().(facts.Connected); is {
				var d act.Description
				x.Action().(act.Describer).Describe(&d)
				said := d.Internals()
				all += fmt.Sprintln(l.S.Internals().Kind(x), said.Peer, said.Waits.Len(), said.Queued, said.Stuck, of.Undisturbed())
			}
			return true
		})
		return all
	}
	want := func(queued string) string {
		return at + " " + client + " 2 " + queued + " true\nstreams of " + at + " " + client + " 0 0 0s true\n"
	}
	l.Until("they wait", func() bool { return said() == want("9 0s") })
	pass(11 * time.Second)
	require.Equal(t, want("9 11s"), said())
	servertest.Send(t, c, p.frame("WINDOW 1 4"))
	l.Until("it takes some", func() bool { return said() == want("5 0s") })
	pass(11 * time.Second)
	pass(5 * time.Second)
	require.Equal(t, want("5 5s"), said())
	require.Equal(t, client, l.Logs.FilterMessage("a task failed").All()[0].ContextMap()["peer"])
}

// A function that a handler has offloaded keeps the place of its stream until it returns, whatever the client does. Then the
// handler has no further turn.
func TestHTTP2ResetsOfHandlersThatHaveOffloaded(t *testing.T) {
	p, release, turns := newPlayer(t), make(chan struct{}), 0
	others := p.web.Handler
	p.web.Handler = func(w *httpd.Response, r *httpd.Request) act.Action {
		if string(r.Path()) != "/offload" {
			return others(w, r)
		}
		return act.Func(func(t *act.Task) act.Directive {
			if turns++; turns > 2 {
				return act.Done
			}
			return t.Offload(func() { <-release })
		})
	}
	p.play("with MaxStreams=1 log; GET 1 /offload; =; RST 1 CANCEL; GET 3 /offload; =; RST 3 CANCEL; GET 5 /")
	require.Equal(t, "5 RST REFUSED_STREAM", p.story())
	close(release)
	for end := time.Now().Add(servertest.Timeout); p.d.counted("tasks") > 1 && time.Now().Before(end); p.d.settle() {
		runtime.Gosched()
	}
	p.play("GET 7 /")
	require.Equal(t, `5 RST REFUSED_STREAM | 7 200 "0"`, p.story())
	require.Equal(t, "0/0 GET /offload; 0/0 GET /offload; GET /; 200/1 GET /", p.seen())
	require.Equal(t, []int{2, 0}, []int{turns, p.d.held()})
}

func TestHTTP2IsCounted(t *testing.T) {
	p := newPlayer(t)
	p.play("GET 1 /; GET 3 *; HEADERS 5 END; GET 7 /wait; " + strings.Repeat("PING a; ", 501))
	counted := servertest.CountsOf(p.d.s)
	require.Equal(t, []uint64{1, 3, 1, 1, 1}, []uint64{counted["http2_connections_total"], counted["http_requests_total"],
		counted["http_responses_2xx_total"], counted["http_responses_4xx_total"], counted["http2_floods_of_pings_total"]})
}

func TestHTTP2Tunnels(t *testing.T) {
	const connect = tunnelled
	other := func(path string, more string) string {
		return "HEADERS 1 :method=CONNECT :protocol=line-echo :scheme=http :authority=a :path=" + path + more
	}
	scenes(t, map[string][]scene{
		"8441 5: a tunnel": {
			{connect, "1 200 x-key=abc …", ""},
			{connect + `DATA 1 "hello\n"; DATA 1 "you\n" PAD=3`, `1 200 x-key=abc "HELLO\nYOU\n" …`, ""},
			{connect + `DATA 1 "hel"; DATA 1 "lo\nyou\n" END`, `1 200 x-key=abc "HELLO\nYOU\n"`, ""},
			{connect + `DATA 1 "hello\n"; = 1 200 x-key=abc "HELLO\n" …; RST 1 CANCEL; GET 3 /`, `1 200 x-key=abc "HELLO\n" … | 3 200 "0"`, "GET /"},
			{connect + `eof; pass 1ms`, "GOAWAY 1 NO_ERROR | 1 200 x-key=abc!", ""},
			{connect + `reset`, "1 200 x-key=abc …!!", "failure"},
			{connect + "stop; pass 1ms; PING going ACK; DATA 1 \"\" END", "GOAWAY 2147483647 NO_ERROR | PING going | GOAWAY 1 NO_ERROR | 1 200 x-key=abc \"bye\\n\"!", ""},
			{"with log; " + connect + `DATA 1 "a\n"`, `1 200 x-key=abc "A\n" …`, "200/0 GET /switch"},
			{connect + `DATA 1 "fail\n"; GET 3 /`, `1 200 x-key=abc | 3 200 "0"`, "GET /; failure"},
		},
		"8441 4: what is none": slices.Concat(
			like("1 RST PROTOCOL_ERROR", "", "GET 1 /switch :protocol=line-echo", "HEADERS 1 :method=CONNECT :protocol=line-echo :authority=a :path=/switch",
				"HEADERS 1 :method=CONNECT :protocol=line-echo :scheme=http :authority=a", other("/switch", ` :protocol=a`),
				`HEADERS 1 :method=CONNECT :protocol="a b" :scheme=http :authority=a :path=/switch`)),
		"8441 5: a handler that does not switch": {
			{other("/", ""), "", "GET / …"},
			{other("/", " END"), `1 501 "501 Not Implemented\n"`, "GET /"},
			{other("/do?write+3", ""), `1 501 "501 Not Implemented\n"`, ""},
			{other("/do?flush", ""), `1 RST CONNECT_ERROR`, ""},
			{other("/do?error+403", ""), `1 403 "403 Forbidden\n"`, ""},
			{"HEADERS 1 :method=CONNECT :protocol=other :scheme=http :authority=a :path=/switch", "1 426 [85]", ""},
			{"GET 1 /switch", "1 426 [85]", ""},
		},
	})
}

func TestHTTP2Priorities(t *testing.T) {
	const full = "order; SETTINGS 4=1000000; GET 1 /do?write+65535; = ACK | order 1 1 1 1 | 1 200 [65535]; " // the window of the connection is used up
	const open = "; WINDOW 0 1000000"
	const first = "ACK | order 1 1 1 1 "
	const both = "= ACK | order 1 1 1 1 | 1 200 [65535] | 3 200 … | 5 200 …"
	const rest = " | 1 200 [65535] | 3 200 [40000] | 5 200 [40000]"
	scenes(t, map[string][]scene{
		"9218 4.1: streams of one urgency take turns, and others wait": {
			{full + "GET 3 /do?write+40000; GET 5 /do?write+40000; " + both + open, first + "3 5 3 5 3 5" + rest, ""},
			{full + "GET 3 /do?write+40000 priority=u=4; GET 5 /do?write+40000" + open, first + "5 5 5 3 3 3" + rest, ""},
			{full + "GET 3 /do?write+40000; GET 5 /do?write+40000 priority=u=0" + open, first + "5 5 5 3 3 3" + rest, ""},
			{full + "GET 3 /do?write+40000 priority=u=7; GET 5 /do?write+40000 priority=u=6" + open, first + "5 5 5 3 3 3" + rest, ""},
			{full + "GET 3 /do?write+40000 priority=u=9; GET 5 /do?write+40000 priority=x; " + both + open, first + "3 5 3 5 3 5" + rest, ""},
		},
		"9218 7.1: PRIORITY_UPDATE": slices.Concat([]scene{
			{full + "GET 3 /do?write+40000; GET 5 /do?write+40000; " + both + "; UPDATE 5 u=2" + open, first + "5 5 5 3 3 3" + rest, ""},
			{full + "GET 3 /do?write+40000; GET 5 /do?write+40000; " + both + "; UPDATE 3 u=5" + open, first + "5 5 5 3 3 3" + rest, ""},
			{full + "UPDATE 5 u=7; UPDATE 5 u=2; GET 3 /do?write+40000; GET 5 /do?write+40000 priority=u=5" + open, first + "5 5 5 3 3 3" + rest, ""},
		}, gone("0 PROTOCOL_ERROR", "UPDATE 0 u=1", "UPDATE 2 u=1", "FRAME 16 0 1 4", "FRAME 16 0 1 5"), like("", "", "UPDATE 9 u=1", "UPDATE 1 ")),
	})
}

func TestHTTP2Ends(t *testing.T) {
	const announced = "GOAWAY 2147483647 NO_ERROR | PING going"
	scenes(t, map[string][]scene{
		"9113 6.8: a shutdown, in two steps": {
			{"GET 1 /; stop; pass 1ms; = " + announced + ` | 1 200 "0"; PING going ACK`, announced + ` | GOAWAY 1 NO_ERROR | 1 200 "0"!`, "GET /"},
			{"GET 1 /; stop; pass 1ms; pass 999ms; = " + announced + ` | 1 200 "0"; pass 2ms`, announced + ` | GOAWAY 1 NO_ERROR | 1 200 "0"!`, "GET /"},
			{"GET 1 /1000; stop; pass 1ms; GET 3 /; PING going ACK; GET 5 /; DATA 5 \"a\"; pass 2s", announced + ` | GOAWAY 3 NO_ERROR | 1 200 "/1000" | 3 200 "0"!`, "GET /"},
			{"GET 1 /1000; stop; pass 1ms; PING other ACK; GET 3 /1000; pass 2s", announced + ` | GOAWAY 3 NO_ERROR | 1 200 "/1000" | 3 200 "/1000"!`, ""},
			{"POST 1 /; stop; pass 1ms; PING going ACK; DATA 1 \"abc\" END", announced + ` | GOAWAY 1 NO_ERROR | 1 200 "3"!`, `POST / "abc"`},
			{"GET 1 /; stop 8s; pass 100ms; = 1 200 \"0\"; pass 9s", announced + ` | GOAWAY 1 NO_ERROR | 1 200 "0"!`, "GET /"},
			{"GET 1 /; stop 8s; GET 3 /; pass 9s", announced + ` | GOAWAY 3 NO_ERROR | 1 200 "0" | 3 200 "0"!`, "GET /; GET /"},
			{"PING a; stop; pass 900ms; = PONG a; pass 2s", "PONG a | " + announced + " | GOAWAY 0 NO_ERROR!", ""},
			{"GET 1 /wait; stop; pass 1ms; PING going ACK; PING going ACK; FRAME 6 0 0 7", announced + " | GOAWAY 1 NO_ERROR | GOAWAY 1 FRAME_SIZE_ERROR!", ""},
		},
		"CloseAfter": {
			{"GET 1 /do?close,write+1; GET 3 /; = " + announced + ` | 1 200 "z" | 3 200 "0"` + "; PING going ACK", announced + ` | GOAWAY 3 NO_ERROR | 1 200 "z" | 3 200 "0"!`, "GET /"},
			{"GET 1 /do?close,write+1; pass 2s", announced + ` | GOAWAY 1 NO_ERROR | 1 200 "z"!`, ""},
			{"GET 1 /do?flush,close,write+1; pass 2s", `1 200 "z"`, ""},
		},
		"the idle time-out": {
			{"PING a; pass 74s; = PONG a; PING b; pass 2s", "PONG a | PONG b | GOAWAY 0 NO_ERROR!", ""},
			{"pass 50s; GET 1 /; pass 74s; = 1 200 \"0\"; pass 2s", `GOAWAY 1 NO_ERROR | 1 200 "0"!`, "GET /"},
			{"with Idle=2s; GET 1 /; pass 3s", `GOAWAY 1 NO_ERROR | 1 200 "0"!`, "GET /"},
			{"with Idle=2s; GET 1 /; pass 1s; HEADERS 3 END; pass 500ms; = 1 200 \"0\" | 3 RST PROTOCOL_ERROR; pass 1s", `GOAWAY 3 NO_ERROR | 1 200 "0" | 3 RST PROTOCOL_ERROR!`, "GET /"},
			{"with Idle=-1s; GET 1 /; pass 1000h", `1 200 "0"`, "GET /"},
		},
		"a silent peer": {
			{"GET 1 /wait; pass 74s; = ; pass 2s; = PING; pass 13s; = PING; pass 2s", "PING!!", ""},
			{`GET 1 /wait; pass 76s; = PING; PING "" ACK; pass 74s; = PING; pass 2s; = PING | PING; pass 16s`, "PING | PING!!", ""},
			{"POST 1 /wait; pass 76s; = PING; DATA 1 \"a\"; pass 74s; = PING", "PING", ""},
			{"with log; GET 1 /wait; pass 92s", "PING!!", "0/0 GET /wait"},
		},
		"slow heads": slices.Concat(
			like("GOAWAY 0 ENHANCE_YOUR_CALM!", "", prefaceAnd+"pass 9s; = ; pass 2s", `BYTES "\x00"; pass 9s; = ; pass 2s`, `BYTES "\x00\x00\x08\x06"; pass 9s; BYTES "\x00"; pass 2s`,
				`PING a; BYTES "\x00\x00\x03\x00"; pass 9s; = PONG a; pass 2s`)[:3],
			like("GOAWAY 1 ENHANCE_YOUR_CALM!", "", cutBlock+"pass 9s; = ; CONT 1 PART; pass 9s", `GET 1 /wait; BYTES "\x00"; pass 11s`),
			like(`1 200 "0"`, "GET /", "pass 9s; "+cutBlock+"pass 9s; CONT 1 :authority=a :path=/", cutBlock+`pass 9s; CONT 1 :authority=a :path=/; BYTES "\x00\x00\x08"; pass 9s; BYTES "\x06\x01\x00\x00\x00\x0012345678"`,
				`with Head=-1s; GET 1 /; BYTES "\x00\x00\x08"; pass 70s; BYTES "\x06\x01\x00\x00\x00\x0012345678"`)),
		"slow bodies": {
			{"POST 1 /; pass 59s; = ; pass 2s", `1 408 "408 Request Timeout\n"`, "POST / failed"},
			{"with Body=2s; POST 1 /; DATA 1 \"a\"; pass 1s; DATA 1 \"b\"; pass 1s; DATA 1 \"c\" END", `1 200 "3"`, `POST / "abc"`},
			{"with Body=2s; POST 1 / content-length=3; DATA 1 \"a\"; pass 1s; DATA 1 \"b\"; pass 1100ms", `1 408 "408 Request Timeout\n"`, `POST / failed`},
			{"with Body=2s; POST 1 /wait; pass 70s", "", ""}, // the handler does not want it
		},
		"bodies that nobody wants": {
			{"POST 1 /unread; pass 4900ms; = 1 200 \"whatever\"; pass 200ms", `1 200 "whatever" RST NO_ERROR`, "POST /unread …"},
			{"POST 1 /unread; pass 4s; DATA 1 \"a\"; pass 2s; DATA 1 \"b\"", `1 200 "whatever" RST NO_ERROR`, "POST /unread …"},
			{"POST 1 /unread; pass 4s; DATA 1 \"a\" END; pass 2s", `1 200 "whatever"`, "POST /unread …"},
			{unread + strings.Repeat("DATA 1 16384; ", 16), `1 200 "whatever"`, "POST /unread …"}, // 256 KiB
			{unread + strings.Repeat("DATA 1 16384; ", 16) + `DATA 1 "a"`, `1 200 "whatever" RST NO_ERROR`, "POST /unread …"},
			{"with Body=1s; POST 1 /unread; pass 900ms; = 1 200 \"whatever\"; pass 200ms", `1 200 "whatever" RST NO_ERROR`, "POST /unread …"},
			{"with Body=-1s; POST 1 /unread; pass 70s; DATA 1 \"a\" END", `1 200 "whatever"`, "POST /unread …"},
		},
		"more at a time than is sent in a turn": {
			{"SETTINGS 4=1000000; WINDOW 0 1000000; POST 1 /echo; POST 3 /echo; " + strings.Repeat("DATA 1 16384; DATA 3 16384; ", 3) +
				`DATA 1 "" END; DATA 3 "" END`, `ACK | 1 200 [49152] | 3 200 [49152]`, ""},
		},
		"clients that do not take their answers": {
			{"SETTINGS 4=0; GET 1 /do?write+10; pass 59s; = ACK | 1 200 …; pass 9s; GET 3 /do", `ACK | 1 200 RST CANCEL | 3 200 length=0`, ""},
			{"SETTINGS 4=1; GET 1 /do?write+10; pass 59s; GET 3 /do", `ACK | 1 200 "z" … | 3 200 length=0`, ""},
			{"with Write=8s; SETTINGS 4=0; GET 1 /do?write+10; pass 10s", `ACK | 1 200 RST CANCEL`, ""},
			{"with Write=-1s; SETTINGS 4=0; GET 1 /do?write+10; pass 70s; WINDOW 1 10", `ACK | 1 200 "zzzzzzzzzz"`, ""},
			{"room 300; SETTINGS 4=1000000; WINDOW 0 1000000; GET 1 /do?write+500000; pass 59s; = ACK | 1 200 …; pass 9s", `ACK | 1 200 …!!`, ""},
			{"room 300; GET 1 /do?write+60000; pass 30s; take 100000", `1 200 [60000]`, ""},
		},
		"a client that closes its side": {
			{"GET 1 /1000; eof; pass 999ms; = ; pass 2ms", `GOAWAY 1 NO_ERROR | 1 200 "/1000"!`, ""},
			{"SETTINGS 4=1; GET 1 /do?write+5; eof; = ACK | 1 200 \"z\" …; pass 70s", `ACK | GOAWAY 1 NO_ERROR | 1 200 "z" RST CANCEL!`, ""},
			{"room 300; GET 1 /do?write+60000; eof; = 1 200 …; take 70000", `GOAWAY 1 NO_ERROR | 1 200 [60000]!`, ""},
			{`POST 1 /; DATA 1 "abc"; eof`, `GOAWAY 1 NO_ERROR | 1 400 "400 Bad Request\n"!`, "POST / failed"},
			{`GET 1 /1000; BYTES "\x00\x00"; eof; pass 2s`, `GOAWAY 1 NO_ERROR | 1 200 "/1000"!`, ""},
			{"GET 1 /1000; " + "HEADERS 3 PART; eof; pass 2s", `GOAWAY 3 NO_ERROR | 1 200 "/1000"!`, ""},
			{`POST 1 /1000; BYTES "\x00\x00\x05\x00\x00\x00\x00\x00\x01ab"; eof; pass 7s`, `GOAWAY 1 NO_ERROR | 1 200 "/1000"!`, ""},
		},
		"a connection that is lost": {
			{"with log; GET 1 /wait; POST 3 /; GET 5 /do?write+3; reset", `5 200 "zzz"!!`, "POST / …; 200/3 GET /do?write+3; 0/0 GET /wait; 0/0 POST /; failure"},
			{"with log; GET 1 /wait; FRAME 6 0 0 7", "GOAWAY 1 FRAME_SIZE_ERROR!", "0/0 GET /wait"},
			{"with log; SETTINGS 4=1; GET 1 /do?write+3; reset", `ACK | 1 200 "z" …!!`, "200/1 GET /do?write+3; failure"},
		},
		"handlers that fail": {
			{"GET 1 /do?panic; GET 3 /", `1 RST INTERNAL_ERROR | 3 200 "0"`, "GET /; failure"},
			{"GET 1 /do?yield,panic; GET 3 /", `1 RST INTERNAL_ERROR | 3 200 "0"`, "GET /; failure"},
			{"GET 1 /do?write+3,fail; GET 3 /", `1 500 "500 Internal Server Error\n" | 3 200 "0"`, "GET /; failure"},
			{"GET 1 /do?flush,fail", `1 200 RST INTERNAL_ERROR`, "failure"},
			{"GET 1 /do?date", `1 500 "500 Internal Server Error\n"`, "failure"},
			{"with log; GET 1 /do?flush,yield,panic", "1 200 RST INTERNAL_ERROR", "200/0 GET /do?flush,yield,panic; failure"},
			{"with log; GET 1 /do?yield,panic", "1 RST INTERNAL_ERROR", "0/0 GET /do?yield,panic; failure"},
		},
		"OnResponse": {
			{"with log; GET 1 /; HEAD 3 /do?write+5", `1 200 "0" | 3 200 length=5`, "GET /; 200/1 GET /; 200/5 HEAD /do?write+5"},
			{"with log; GET 1 *; CONT 1", `GOAWAY 1 PROTOCOL_ERROR | 1 400 "400 Bad Request\n"!`, "400/16 GET *"},
			{"with log; HEADERS 1 END", "1 RST PROTOCOL_ERROR", ""},
			{"with log MaxStreams=1; GET 1 /wait; GET 3 /", "3 RST REFUSED_STREAM", ""},
			{"with log; POST 1 /unread", `1 200 "whatever"`, "POST /unread …; 200/8 POST /unread"},
			{"with log; SETTINGS 4=3; GET 1 /do?write+5; = ACK | 1 200 \"zzz\" …; RST 1 CANCEL", `ACK | 1 200 "zzz" …`, "200/3 GET /do?write+5"},
		},
		"OnState": {
			{"with states", "", "new; active; idle"},
			{"with states; GET 1 /do; eof", `GOAWAY 1 NO_ERROR | 1 200 length=0!`, "new; active; idle; active; idle; closed"},
			{"with states; GET 1 /wait; GET 3 /do", `3 200 length=0`, "new; active; idle; active"},
			{"with states; GET 1 /wait; RST 1 CANCEL", "", "new; active; idle; active; idle"},
			{"with states; FRAME 6 0 0 7", "GOAWAY 0 FRAME_SIZE_ERROR!", "new; active; idle; closed"},
		},
	})
}
