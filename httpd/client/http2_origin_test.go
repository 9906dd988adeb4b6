package client_test

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/internal/http2"
)

// server2 is a server of HTTP/2 that says frames, with "; " between them:
//
//	HEADERS 1 END :status=200 x=y   PART is without END_HEADERS, CONT 1 goes on
//	DATA 1 END abc                  or as many bytes as a number says
//	RST 1 CANCEL  SETTINGS 3=1  PING  PING x  PING ACK  GOAWAY 1 NO_ERROR  WINDOW 1 5
//	FRAME 9 0 1 abc                 any frame: type, flags, stream, payload
//	100*PING                        a hundred of them
//	?HEADERS                        wait for a frame of the client; ?END for one with END
//	EOF                             the server closes its side
//
// Each script is for a connection. It begins after SETTINGS, which "BARE" leaves out.
type server2 struct {
	scripts []string
	cut     bool     // all is said byte by byte
	heard   []string // what the client says: "HEADERS 1 END", "PONG" for "PING x", without SETTINGS and windows of the connection
}

func (s *server2) serve(p *peer) {
	preface := make([]byte, len(http2.Preface))
	_, _ = io.ReadFull(p.in, preface)
	require.Equal(p, http2.Preface, string(preface))
	steps := strings.Split(s.scripts[p.n-1], "; ")
	if steps[0] != "BARE" {
		steps = append([]string{"SETTINGS"}, steps...)
	}
	if p.n > 1 {
		s.heard = append(s.heard, "|")
	}
	var header [http2.HeaderLen]byte
	for {
		for len(steps) > 0 && !strings.HasPrefix(steps[0], "?") {
			s.say(p, steps[0])
			steps = steps[1:]
		}
		if _, err := io.ReadFull(p.in, header[:]); err != nil {
			return
		}
		h := http2.ParseHeader(header[:])
		payload := make([]byte, h.Length)
		_, _ = io.ReadFull(p.in, payload)
		name := describe(h, payload)
		if name != "" {
			s.heard = append(s.heard, name)
		}
		if len(steps) > 0 && strings.Contains(name, steps[0][1:]) {
			steps = steps[1:]
		}
	}
}

// say says a step.
func (s *server2) say(p *peer, step string) {
	n, frame, many := strings.Cut(step, "*")
	times, err := strconv.Atoi(n)
	if !many || err != nil {
		times, frame = 1, step
	}
	if frame == "EOF" {
		_ = p.CloseWrite()
		return
	}
	out := bytes.Repeat(wire(p.T, frame), times)
	for s.cut && len(out) > 1 && len(out) < 500 {
		_, _ = p.Write(out[:1])
		_ = p.Co().Sleep(time.Microsecond)
		out = out[1:]
	}
	_, _ = p.Write(out)
}

func describe(h http2.Header, p []byte) string {
	end := ""
	if h.Flags.Has(http2.EndStream) {
		end = " END"
	}
	switch h.Type {
	case http2.Headers:
		return fmt.Sprint("HEADERS ", h.Stream, end)
	case http2.Data:
		return fmt.Sprint("DATA ", h.Stream, " ", len(p), end)
	case http2.RSTStream:
		return fmt.Sprint("RST ", h.Stream, " ", http2.ReadRST(p))
	case http2.Ping:
		switch {
		case !h.Flags.Has(http2.Ack):
			return "PING"
		case p[0] == 2: // of "PING x"
			return "PONG"
		}
	case http2.WindowUpdate:
		if h.Stream != 0 {
			return "WINDOW"
		}
	case http2.GoAway:
		_, code := http2.ReadGoAway(p)
		return fmt.Sprint("GOAWAY ", code)
	}
	return ""
}

// wire makes the bytes of a frame.
func wire(t *testing.T, frame string) []byte {
	words := strings.Split(frame, " ")
	number := func(i int) uint32 {
		n, err := strconv.ParseUint(words[i], 10, 32)
		require.NoError(t, err, frame)
		return uint32(n)
	}
	h, p := http2.Header{}, []byte(nil)
	switch words[0] {
	case "BARE":
		return nil
	case "HEADERS", "CONT", "DATA":
		h = http2.Header{Type: map[string]http2.Type{"HEADERS": http2.Headers, "CONT": http2.Continuation}[words[0]], Stream: number(1)}
		for _, w := range words[2:] {
			name, value, field := strings.Cut(w, "=")
			size, err := strconv.Atoi(w)
			switch {
			case w == "END":
				h.Flags |= http2.EndStream
			case w == "PART":
				h.Flags |= 0x80 // ignored
			case field && name == ":status":
				status, _ := strconv.Atoi(value)
				p = http2.AppendStatus(p, status)
			case field:
				p = http2.AppendField(p, name, value)
			case err == nil:
				p = bytes.Repeat([]byte("d"), size)
			default:
				p = append(p, w...)
			}
		}
		if h.Type != http2.Data && !strings.Contains(frame, "PART") {
			h.Flags |= http2.EndHeaders
		}
	case "RST":
		return http2.AppendRST(nil, number(1), code(words[2]))
	case "GOAWAY":
		return http2.AppendGoAway(nil, number(1), code(words[2]), "")
	case "WINDOW":
		return http2.AppendWindowUpdate(nil, number(1), number(2))
	case "PING":
		return http2.AppendPing(nil, words[len(words)-1] == "ACK", [8]byte{byte(len(words))})
	case "SETTINGS":
		var all []http2.Setting
		for _, w := range words[1:] {
			id, value, _ := strings.Cut(w, "=")
			i, _ := strconv.Atoi(id)
			v, _ := strconv.Atoi(value)
			all = append(all, http2.Setting{ID: http2.SettingID(i), Value: uint32(v)})
		}
		return http2.AppendSettings(nil, all...)
	case "FRAME":
		h = http2.Header{Type: http2.Type(number(1)), Flags: http2.Flags(number(2)), Stream: number(3)}
		if len(words) > 4 {
			p = []byte(words[4])
		}
	default:
		return []byte(frame)
	}
	h.Length = uint32(len(p))
	return append(h.Append(nil), p...)
}

func code(name string) (c http2.Code) {
	for c.String() != name {
		c++
	}
	return c
}

// outcome makes a Call, and says what comes of it.
func outcome(co *coro.Co, call *client.Call) (said string) {
	call.Inform = func(r *client.Response) { said += fmt.Sprint(r.Status(), " ") }
	if err := co.Do(call); err != nil {
		return said + cause(err)
	}
	answer := call.Response()
	defer func() { _ = answer.Close() }()
	said += fmt.Sprint(answer.Status())
	for name, value := range answer.Fields() {
		said += fmt.Sprintf(" %s=%s", name, value)
	}
	content, err := io.ReadAll(coro.Reader(co, answer))
	if len(content) > 0 {
		said += fmt.Sprintf(" %s", content[:min(len(content), 10)])
	}
	for name, value := range answer.Trailers() {
		said += fmt.Sprintf(" %s=%s", name, value)
	}
	if err != nil {
		said += " " + cause(err)
	}
	return said
}

// cause is an error without the address.
func cause(err error) string {
	e := err.(*client.Error)
	if e.Sent {
		return fmt.Sprint("sent: ", e.Err)
	}
	return e.Err.Error()
}

// Sections are of RFC 9113. Each is played whole, and byte by byte.
func TestAnswersOfHTTP2(t *testing.T) {
	const ok, bye = "HEADERS 1 END :status=200", "HEADERS 1 END; GOAWAY NO_ERROR"
	for name, row := range map[string]struct{ says, gets, hears string }{
		"8.1 a head":                       {"?HEADERS; " + ok, "200", bye},
		"8.1 content":                      {"?HEADERS; HEADERS 1 :status=200 x=y; DATA 1 END abc", "200 x=y abc", bye},
		"8.1 an end of its own":            {"?HEADERS; HEADERS 1 :status=200; DATA 1 abc; DATA 1 END", "200 abc", bye},
		"8.1 trailers":                     {"?HEADERS; HEADERS 1 :status=200; DATA 1 abc; HEADERS 1 END x=y", "200 abc x=y", bye},
		"8.1 trailers without content":     {"?HEADERS; HEADERS 1 :status=200; HEADERS 1 END x=y", "200 x=y", bye},
		"8.1 interim heads":                {"?HEADERS; HEADERS 1 :status=103 x=y; HEADERS 1 :status=100; " + ok, "103 100 200", bye},
		"6.10 a head in pieces":            {"?HEADERS; HEADERS 1 PART :status=200; CONT 1 PART; CONT 1 x=y; DATA 1 END", "200 x=y", bye},
		"4.1 a type that is not known":     {"?HEADERS; FRAME 99 0 1 x; FRAME 99 0 0; " + ok, "200", bye},
		"6.3 PRIORITY":                     {"?HEADERS; FRAME 2 0 9 12345; " + ok, "200", bye},
		"8.1.1 a length that is kept":      {"?HEADERS; HEADERS 1 :status=200 content-length=3; DATA 1 END abc", "200 content-length=3 abc", bye},
		"8.1.1 too little":                 {"?HEADERS; HEADERS 1 :status=200 content-length=3; DATA 1 END ab; ?RST", "200 content-length=3 ab sent: http2: PROTOCOL_ERROR: less DATA than Content-Length says", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.1.1 nothing at all":             {"?HEADERS; HEADERS 1 END :status=200 content-length=3; ?RST", "200 content-length=3 sent: http2: PROTOCOL_ERROR: less DATA than Content-Length says", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.1.1 too much":                   {"?HEADERS; HEADERS 1 :status=200 content-length=3; DATA 1 abcd; ?RST", "200 content-length=3 sent: http2: PROTOCOL_ERROR: DATA before the head, or more than was announced", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.1 content of 204":               {"?HEADERS; HEADERS 1 :status=204; DATA 1 END abc; ?RST", "204 sent: http2: PROTOCOL_ERROR: DATA before the head, or more than was announced", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.1 content before the head":      {"?HEADERS; DATA 1 abc; ?RST", "sent: http2: PROTOCOL_ERROR: DATA before the head, or more than was announced", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.1 after an interim head":        {"?HEADERS; HEADERS 1 :status=100; DATA 1 abc; ?RST", "100 sent: http2: PROTOCOL_ERROR: DATA before the head, or more than was announced", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.1 trailers that go on":          {"?HEADERS; HEADERS 1 :status=200; HEADERS 1 x=y; ?RST", "200 sent: http2: PROTOCOL_ERROR: trailers after which the stream goes on", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.3.2 no status":                  {"?HEADERS; HEADERS 1 END x=y; ?RST", "sent: http2: PROTOCOL_ERROR: without a :status from 100 to 599", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.6 Switching Protocols":          {"?HEADERS; HEADERS 1 :status=101; ?RST", "sent: http2: PROTOCOL_ERROR: 101 (Switching Protocols)", "HEADERS 1 END; RST 1 PROTOCOL_ERROR; GOAWAY NO_ERROR"},
		"8.1 too many interim heads":       {"?HEADERS; 40*HEADERS 1 :status=103; ?RST", strings.Repeat("103 ", 32) + "sent: too many interim answers", "HEADERS 1 END; RST 1 ENHANCE_YOUR_CALM; GOAWAY NO_ERROR"},
		"10.5.1 a head that is too large":  {"?HEADERS; HEADERS 1 END :status=200" + strings.Repeat(" x=y", 101) + "; ?RST", "sent: httpd: too many fields", "HEADERS 1 END; RST 1 CANCEL; GOAWAY NO_ERROR"},
		"8.1 RST_STREAM":                   {"?HEADERS; RST 1 INTERNAL_ERROR", "sent: the server has reset the stream: INTERNAL_ERROR", bye},
		"8.1 after some content":           {"?HEADERS; HEADERS 1 :status=200; DATA 1 abc; RST 1 CANCEL", "200 abc sent: the server has reset the stream: CANCEL", bye},
		"8.7 REFUSED_STREAM":               {"?HEADERS; RST 1 REFUSED_STREAM; ?HEADERS; HEADERS 3 END :status=200", "200", "HEADERS 1 END; HEADERS 3 END; GOAWAY NO_ERROR"},
		"8.7 three times":                  {"?HEADERS; RST 1 REFUSED_STREAM; ?HEADERS; RST 3 REFUSED_STREAM; ?HEADERS; RST 5 REFUSED_STREAM", "the server has reset the stream: REFUSED_STREAM", "HEADERS 1 END; HEADERS 3 END; HEADERS 5 END; GOAWAY NO_ERROR"},
		"6.8 GOAWAY":                       {"?HEADERS; GOAWAY 1 NO_ERROR; " + ok, "200", bye},
		"6.8 a warning before":             {"?HEADERS; GOAWAY 2147483647 NO_ERROR; PING; GOAWAY 1 NO_ERROR; " + ok, "200", bye},
		"6.8 one that takes back another":  {"?HEADERS; GOAWAY 1 NO_ERROR; GOAWAY 3 NO_ERROR; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: a GOAWAY that takes back another", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"3.4 no SETTINGS":                  {"BARE; " + ok, "sent: http2: PROTOCOL_ERROR: the first frame is not SETTINGS", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"3.4 HTTP/1":                       {"BARE; HTTP/1.1 400 Bad Request", "sent: http2: PROTOCOL_ERROR: the first frame is not SETTINGS", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"5.1 a stream that has not begun":  {"?HEADERS; HEADERS 3 END :status=200; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: a frame of a stream that has not begun", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"5.1 a frame after the end":        {"?HEADERS; " + ok + "; DATA 1 abc; ?GOAWAY", "200", "HEADERS 1 END; GOAWAY STREAM_CLOSED"},
		"5.1.1 a stream of the server":     {"?HEADERS; HEADERS 2 END :status=200; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: a stream that only a server could have begun", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"6.6 PUSH_PROMISE":                 {"?HEADERS; FRAME 5 4 1 abcdefgh; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: PUSH_PROMISE, which nobody has allowed", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"6.5.2 a server that allows push":  {"?HEADERS; SETTINGS 2=1; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: a server that allows push", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"6.9.1 a window beyond 2^31-1":     {"?HEADERS; WINDOW 0 2147483647; ?GOAWAY", "sent: http2: FLOW_CONTROL_ERROR: a window beyond 2^31-1", "HEADERS 1 END; GOAWAY FLOW_CONTROL_ERROR"},
		"6.9 WINDOW_UPDATE of nothing":     {"?HEADERS; FRAME 8 0 1 \x00\x00\x00\x00; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: WINDOW_UPDATE of nothing", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"6.10 a block that is cut":         {"?HEADERS; HEADERS 1 PART :status=200; PING; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: a field block that another frame has cut", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"4.3 a block that is none":         {"?HEADERS; FRAME 1 5 1 \xff\xff\xff\xff\xff\xff\xff\xff; ?GOAWAY", "sent: http2: COMPRESSION_ERROR: a field block that cannot be decoded", "HEADERS 1 END; GOAWAY COMPRESSION_ERROR"},
		"9218 7.1 PRIORITY_UPDATE":         {"?HEADERS; FRAME 16 0 0 \x00\x00\x00\x01u; ?GOAWAY", "sent: http2: PROTOCOL_ERROR: PRIORITY_UPDATE from a server", "HEADERS 1 END; GOAWAY PROTOCOL_ERROR"},
		"10.5 a flood of PING":             {"?HEADERS; 501*PING; ?GOAWAY", "sent: http2: ENHANCE_YOUR_CALM: too many PING", "HEADERS 1 END; GOAWAY ENHANCE_YOUR_CALM"},
		"10.5 of SETTINGS":                 {"?HEADERS; 101*SETTINGS; ?GOAWAY", "sent: http2: ENHANCE_YOUR_CALM: too many SETTINGS", "HEADERS 1 END; GOAWAY ENHANCE_YOUR_CALM"},
		"10.5 of empty DATA":               {"?HEADERS; HEADERS 1 :status=200; 101*DATA 1; ?GOAWAY", "200 sent: http2: ENHANCE_YOUR_CALM: too much DATA without content", "HEADERS 1 END; GOAWAY ENHANCE_YOUR_CALM"},
		"10.5 of frames that mean nothing": {"?HEADERS; 501*FRAME 99 0 0; ?GOAWAY", "sent: http2: ENHANCE_YOUR_CALM: too many frames that mean nothing", "HEADERS 1 END; GOAWAY ENHANCE_YOUR_CALM"},
		"10.5 of CONTINUATION":             {"?HEADERS; HEADERS 1 PART :status=200; 40*CONT 1 PART; ?GOAWAY", "sent: http2: ENHANCE_YOUR_CALM: a field block in too many frames", "HEADERS 1 END; GOAWAY ENHANCE_YOUR_CALM"},
		"10.5 of windows":                  {"?HEADERS; 2003*WINDOW 0 1; ?GOAWAY", "sent: http2: ENHANCE_YOUR_CALM: too many WINDOW_UPDATE", "HEADERS 1 END; GOAWAY ENHANCE_YOUR_CALM"},
		"5.1 an end before the answer":     {"?HEADERS; EOF", "sent: the connection has ended before the answer", "HEADERS 1 END"},
		"5.1 within it":                    {"?HEADERS; HEADERS 1 :status=200; DATA 1 abc; EOF", "200 abc sent: the connection has ended before the answer", "HEADERS 1 END"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cut := range []bool{false, true} {
				server := &server2{scripts: []string{row.says}, cut: cut}
				play(t, server.serve, func(s *scene, co *coro.Co) {
					o := &client.Origin{Address: at, Protocol: client.HTTP2}
					require.Equal(s, row.gets, outcome(co, get(o, "/")), cut)
					o.Close()
				})
				if !cut { // otherwise the client may have gone before it knows what follows
					require.Equal(t, row.hears, strings.Join(server.heard, "; "))
				}
			}
		})
	}
}
