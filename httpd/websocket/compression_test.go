package websocket_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
)

const (
	packedHello = "\xf2\x48\xcd\xc9\xc9\x07\x00" // RFC 7692 7.2.3.1
	helloAgain  = "\xf2\x00\x11\x00\x00"         // 7.2.3.2: it refers to the message before it
	offers      = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
)

// small returns p compressed.
func small(p string) string { return string(deflate.Compress(nil, []byte(p), nil)) }

func squeezed(p string) string { return packed(text(small(p))) }

var long = strings.Repeat("€ and so on, ", 10)

// compressions are what a client says to an echo of at most 1000 bytes that has agreed to compression without context
// takeover, as in rules. The echo does not compress what would not become smaller.
var compressions = []struct{ name, says, told string }{
	{"7.2.3.1 one block", packed(text(packedHello)) + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"7.2.3.1 two fragments", packed(begin(packedHello[:3])) + last(packedHello[3:]) + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"7.2.3.2 no context", packed(text(packedHello)) + packed(text(helloAgain)),
		`text "Hello", close 1007 "malformed compressed data"`},
	{"7.2.3.3 a block without compression", packed(text("\x00\x05\x00\xfa\xffHello\x00")) + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"7.2.3.4 a final block", packed(text("\xf3\x48\xcd\xc9\xc9\x07\x00\x00")) + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"7.2.3.5 two blocks", packed(text("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00")) + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"7.2.3.6 nothing", packed(text("\x00")) + packed(one(frame.Binary, "\x00")) + bye(1000, ""), `text "", binary "", close 1000 ""`},
	{"7.2.2 no bytes", packed(text("")), `close 1007 "malformed compressed data"`},
	{"7.2.2 not compressed", packed(text("Hello")), `close 1007 "malformed compressed data"`},
	{"7.2.2 half of it", packed(begin(packedHello[:3])) + last(""), `close 1007 "malformed compressed data"`},
	{"7.2.2 a binary", packed(one(frame.Binary, packedHello[:3])), `close 1007 "malformed compressed data"`},
	{"6 messages of both kinds", text("a") + squeezed(long) + text("b") + packed(text(packedHello)) + begin("c") + last("d") + bye(1000, ""),
		`text "a", packed text of 150, text "b", text "Hello", text "cd", close 1000 ""`},
	{"6 a message that was not compressed", text(long) + bye(1000, ""), `packed text of 150, close 1000 ""`},
	{"6 a binary", packed(one(frame.Binary, small(long))) + bye(1000, ""), `packed binary of 150, close 1000 ""`},
	{"6.1 the bit of a continuation", packed(begin(packedHello[:3])) + packed(last(packedHello[3:])),
		`close 1002 "a reserved bit is set"`},
	{"6.1 the bit of a continuation only", begin("a") + packed(last("b")), `close 1002 "a reserved bit is set"`},
	{"6.1 the bit of a ping", packed(ping("a")), `close 1002 "a reserved bit is set"`},
	{"6.1 the bit of a close", packed(bye(1000, "")), `close 1002 "a reserved bit is set"`},
	{"6.1 another bit", "\xa1\x80\x00\x00\x00\x00", `close 1002 "a reserved bit is set"`},
	{"6.1 all bits", "\xf1\x80\x00\x00\x00\x00", `close 1002 "a reserved bit is set"`},
	{"6.1 control frames between fragments", packed(begin(small(long)[:9])) + ping("1") + more(small(long)[9:20]) + ping("2") + last(small(long)[20:]) + bye(1000, ""),
		`pong "1", pong "2", packed text of 150, close 1000 ""`},
	{"6.1 a close between fragments", packed(begin(packedHello)) + bye(1000, ""), `close 1000 ""`},
	{"6.1 a compressed text between fragments", packed(begin(packedHello)) + packed(text(packedHello)),
		`close 1002 "a message within a message, or a continuation of none"`},
	{"6.1 empty fragments", packed(begin("")) + more("") + more(packedHello) + last("") + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"RFC 6455 8.1 no UTF-8", packed(text(small("a\xffb"))), `close 1007 "a text that is not UTF-8"`},
	{"RFC 6455 8.1 it ends in a character", packed(text(small("a\xe2\x82"))), `close 1007 "a text that is not UTF-8"`},
	{"RFC 6455 8.1 what comes is no text", packed(text("\x00\x03\x00\xfc\xff\xe2\x82\xac\x00")) + bye(1000, ""), `text "€", close 1000 ""`},
	{"RFC 6455 8.1 a binary is anything", packed(one(frame.Binary, small("\xff"))) + bye(1000, ""), `binary "\xff", close 1000 ""`},
	{"RFC 6455 10.4 the largest", packed(text(small(strings.Repeat("x", 1000)))) + bye(1000, ""), `packed text of 1000, close 1000 ""`},
	{"RFC 6455 10.4 one more", packed(text(small(strings.Repeat("x", 1001)))), `close 1009 "a message is too large"`},
	{"RFC 6455 10.4 much more", packed(begin(small(strings.Repeat("x", 30_000)))) + last(""), `close 1009 "a message is too large"`},
	{"RFC 6455 10.4 more than it can need", packed(one(frame.Binary, strings.Repeat("\x00\x00\x00\xff\xff", 250)))[:8], `close 1009 "a message is too large"`},
	{"RFC 6455 10.4 in fragments", packed(begin(strings.Repeat("\x00\x00\x00\xff\xff", 200))) + more(strings.Repeat("\x00\x00\x00\xff\xff", 50)),
		`close 1009 "a message is too large"`},
}

// Whole, byte by byte, and in two pieces, split everywhere; received whole, and in pieces.
func TestCompression(t *testing.T) {
	for _, row := range compressions {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			for i, way := range ways(row.says) {
				for name, handler := range echoes {
					if name == "pieces" && i > 2 && !tier.Choose(false, false, true) {
						continue
					}
					var ended error
					v := &websocket.Server{Handler: handler(&ended), Options: websocket.Options{MaxMessage: 1000,
						Compression: websocket.Compression{On: true, Min: 1}}}
					c, extensions := w.offer(v, listener.Limits{}, offers)
					require.Equal(t, "permessage-deflate; server_no_context_takeover; client_no_context_takeover", extensions)
					c.send(way...)
					require.Equal(t, row.told, c.rest(), "%s, split %d", name, i)
					var err *websocket.CloseError
					require.ErrorAs(t, ended, &err)
					require.Equal(t, closeCode.FindStringSubmatch(row.told)[1], fmt.Sprint(err.Code))
				}
			}
			require.Empty(t, w.Logs.FilterMessage("a task failed").All())
		})
	}
}

// A server without compression refuses what has not been agreed upon; so does one whose client has offered nothing.
func TestCompressionIsAgreedUpon(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct {
		on      bool
		fields  string
		agreed  string
		refuses bool
	}{
		{false, offers, "", true},
		{true, "", "", true},
		{true, "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n", "", true},
		{true, "Sec-WebSocket-Extensions: x\r\nSec-WebSocket-Extensions: permessage-deflate\r\n",
			"permessage-deflate; server_no_context_takeover; client_no_context_takeover", false},
	} {
		v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{Compression: websocket.Compression{On: row.on}}}
		c, agreed := w.offer(v, listener.Limits{}, row.fields)
		require.Equal(t, row.agreed, agreed)
		c.send(text(long + long + long))
		if row.refuses {
			require.Equal(t, "text of 450", c.next())
			c.send(packed(text(packedHello)))
			require.Equal(t, `close 1002 "a reserved bit is set"`, c.rest())
			continue
		}
		require.Equal(t, "packed text of 450", c.next())
		c.send(text(long), packed(text(packedHello)), bye(1000, ""))
		require.Equal(t, `text of 150, text "Hello", close 1000 ""`, c.rest(), "small messages are not compressed")
	}
	for _, on := range []bool{false, true} {
		v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{Compression: websocket.Compression{On: on}}}
		c := w.connect(v, listener.Limits{})
		c.send(handshake + "Sec-WebSocket-Extensions: permessage-deflate; =1\r\n\r\n")
		require.Contains(t, c.until("\r\n\r\n"), "HTTP/1.1 400 ")
	}
}

// With context takeover a message refers to those before it, also behind some that are not compressed, or come in pieces.
func TestContextTakeover(t *testing.T) {
	w := newWorld(t)
	for name, handler := range echoes {
		var ended error
		v := &websocket.Server{Handler: handler(&ended), Options: websocket.Options{
			Compression: websocket.Compression{On: true, Takeover: true, Min: 100}}}
		c, extensions := w.offer(v, listener.Limits{}, offers)
		require.Equal(t, "permessage-deflate", extensions)
		c.send(packed(text(packedHello)), packed(text(helloAgain)))
		require.Equal(t, `text "Hello"`, c.next())
		require.Equal(t, `text "Hello"`, c.next())
		c.send(text("€"), packed(begin(helloAgain[:2])), ping("a"), last(helloAgain[2:]))
		require.Equal(t, `text "€"`, c.next())
		require.Equal(t, `pong "a"`, c.next())
		require.Equal(t, `text "Hello"`, c.next(), name)

		codec := deflate.New(deflate.Terms{Receives: true})
		sizes := []int{}
		for range 3 {
			c.send(text(long))
			in, said := &counted{r: c}, ""
			c.read(func() (err error) {
				said, err = readPacked(in, codec)
				return err
			})
			require.Equal(t, "packed text of 150", said)
			sizes = append(sizes, in.n)
		}
		require.Less(t, sizes[1], sizes[0]/2)
		require.Equal(t, sizes[1], sizes[2])
		c.send(bye(1000, ""))
		require.Equal(t, `close 1000 ""`, c.rest())
	}
}

// counted counts what is read.
type counted struct {
	r interface{ Read([]byte) (int, error) }
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// Either side can prevent context takeover for one direction (RFC 7692 7.1.1).
func TestContextTakeoverInOneDirection(t *testing.T) {
	w := newWorld(t)
	v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{Compression: websocket.Compression{On: true, Takeover: true}}}
	c, extensions := w.offer(v, listener.Limits{}, "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n")
	require.Equal(t, "permessage-deflate; server_no_context_takeover", extensions)
	c.send(packed(text(packedHello)), packed(text(helloAgain)), text(long), text(long), bye(1000, ""))
	require.Equal(t, `text "Hello", text "Hello", packed text of 150, packed text of 150, close 1000 ""`, c.rest())

	c, extensions = w.offer(v, listener.Limits{}, "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n")
	require.Equal(t, "permessage-deflate; client_no_context_takeover", extensions)
	c.send(packed(text(packedHello)), packed(text(helloAgain)))
	require.Equal(t, `text "Hello", close 1007 "malformed compressed data"`, c.rest())
}

// Messages of many sizes there and back, as the categories 12 and 13 of the Autobahn suite have them: with each kind of
// offer, in fragments and not, from a peer that has a compressor for the connection, or for a message.
func TestCompressedMessagesOfManySizes(t *testing.T) {
	w := newWorld(t)
	for _, offer := range []string{
		"permessage-deflate",
		"permessage-deflate; client_no_context_takeover; client_max_window_bits",
		"permessage-deflate; server_no_context_takeover; client_max_window_bits=9",
		"permessage-deflate; server_max_window_bits=15",
		"permessage-deflate; server_max_window_bits=9, permessage-deflate; client_no_context_takeover; server_no_context_takeover",
	} {
		for _, takeover := range []bool{false, true} {
			v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{
				Compression: websocket.Compression{On: true, Takeover: takeover}}}
			c, answer := w.offer(v, listener.Limits{}, "Sec-WebSocket-Extensions: "+offer+"\r\n")
			terms, on, err := deflate.Accept(func(yield func([]byte) bool) { yield([]byte(answer)) }, true)
			require.NoError(t, err)
			require.True(t, on)
			var wire bytes.Buffer
			stream, err := flate.NewWriter(&wire, 6)
			require.NoError(t, err)
			codec := deflate.New(deflate.Terms{Receives: terms.Receives})
			for i, n := range []int{0, 16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 131072} {
				p := strings.Repeat(fmt.Sprintf(`{"n":%d,"to":"someone","what":"€"},`, n), 1+n/35)
				if wire.Reset(); !terms.Sends {
					stream.Reset(&wire)
				}
				_, err = stream.Write([]byte(p))
				require.NoError(t, err)
				require.NoError(t, stream.Flush())
				z := strings.TrimSuffix(wire.String(), "\x00\x00\xff\xff")
				if i%2 == 0 {
					c.send(packed(text(z)))
				} else {
					c.send(packed(begin(z[:len(z)/3])), more(z[len(z)/3:len(z)/2]), ping(""), last(z[len(z)/2:]))
					require.Equal(t, `pong ""`, c.next())
				}
				said := ""
				c.read(func() (err error) {
					said, err = readPacked(c, codec)
					return err
				})
				if len(p) >= 256 {
					require.Equal(t, fmt.Sprint("packed text of ", len(p)), said)
				}
			}
			c.send(bye(1000, ""))
			require.Equal(t, `close 1000 ""`, c.rest())
		}
	}
}

// A message that is pushed is compressed once, for connections with context takeover and without. Those before it and behind
// it refer to what they should.
func TestPreparedMessagesAreCompressedOnce(t *testing.T) {
	w := newWorld(t)
	m := websocket.Prepare(websocket.Text, []byte(long+long))
	tiny := websocket.Prepare(websocket.Text, []byte("tiny"))
	unsqueezable := websocket.Prepare(websocket.Binary, []byte(small(small(strings.Repeat("0123456789", 100)))+"0123"))
	frames := map[string]int{}
	for _, takeover := range []bool{false, true, false, true} {
		for _, offered := range []string{"", offers} {
			a := waits()
			v := &websocket.Server{Handler: a.handler, Options: websocket.Options{
				Compression: websocket.Compression{On: true, Takeover: takeover, Min: 6}}}
			c, _ := w.offer(v, listener.Limits{}, offered)
			codec := deflate.New(deflate.Terms{Receives: takeover})
			name := map[bool]string{false: "", true: "packed "}[offered != ""]
			var errs []error
			w.Turn(func(*act.Task) {
				errs = append(errs, a.conn.Send(websocket.Text, []byte(long)), a.conn.Push(m), a.conn.Push(tiny), a.conn.Push(m),
					a.conn.Push(unsqueezable), a.conn.Send(websocket.Text, []byte(long)))
			})
			for _, err := range errs {
				require.NoError(t, err)
			}
			for _, want := range []string{"text of 150", "text of 300", "tiny", "text of 300", "binary ", "text of 150"} {
				in, said := &counted{r: c}, ""
				c.read(func() (err error) {
					said, err = readPacked(in, codec)
					return err
				})
				require.Contains(t, said, want)
				if strings.Contains(said, " of ") {
					require.Equal(t, name+want, said)
				}
				if strings.Contains(said, " of 300") {
					frames[fmt.Sprint(name, in.n)]++
				}
			}
		}
	}
	require.Len(t, frames, 2, "one compressed, and one not")
}

// The same of a server, to an echo that is a client.
func TestCompressionOfAClient(t *testing.T) {
	for _, row := range compressions {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			for i, way := range ways(bare(row.says)) {
				if i > 5 && !tier.Choose(false, true, true) {
					break
				}
				var ended error
				v := &websocket.Client{URL: "ws://a/", Handler: alone(echo(&ended)), Options: websocket.Options{MaxMessage: 1000,
					Compression: websocket.Compression{On: true, Min: 1}}}
				c, request, o := w.serve(v, listener.Limits{})
				c.send(strings.TrimSuffix(answer(request), "\r\n") + "Sec-WebSocket-Extensions: " + deflate.Offer(false) + "\r\n\r\n")
				c.send(way...)
				require.Equal(t, row.told, c.rest(), "split %d", i)
				w.Until("the end", func() bool { return o.over })
				require.NoError(t, o.err)
				var err *websocket.CloseError
				require.ErrorAs(t, ended, &err)
				require.Equal(t, closeCode.FindStringSubmatch(row.told)[1], fmt.Sprint(err.Code))
			}
		})
	}
}

// A connection that has compressed and inflated messages keeps nothing of them, or with context takeover the end of both.
func TestMemoryOfAConnectionThatCompresses(t *testing.T) {
	tier.NoRace(t, "measures memory")
	const n = 2000
	message := strings.Repeat("it is said again and again, ", 5000)
	each := map[websocket.Compression]int{}
	none, plain, takeover := websocket.Compression{}, websocket.Compression{On: true}, websocket.Compression{On: true, Takeover: true}
	for _, o := range []websocket.Compression{none, plain, takeover} {
		w := newWorld(t)
		says := text(message)
		if o.On {
			says = squeezed(message)
		}
		v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{Compression: o}}
		talk := func(p *peer) {
			p.says = []byte(handshake + offers + "\r\n")
			w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(listener.NewConn(w.S, p, listener.Limits{})))
			servertest.Step(t, w.S)
			p.forget()
			p.says = []byte(says)
			p.reader.Wake()
			servertest.Step(t, w.S)
			require.Positive(t, p.took)
			require.Equal(t, o.On, p.took < len(message))
		}
		peers := make([]peer, n+1)
		talk(&peers[n]) // what the scheduler has for all of them is there then
		before := heap()
		for i := range n {
			talk(&peers[i])
		}
		each[o] = (heap() - before) / n
		runtime.KeepAlive(peers)
	}
	t.Log(each)
	require.InDelta(t, each[none], each[plain], 200)
	require.InDelta(t, each[none]+40<<10, each[takeover], 1000)
}

// A message that is sent in pieces is compressed if its first piece is large enough. What comes behind it refers to it, or not.
func TestPiecesAreCompressed(t *testing.T) {
	w := newWorld(t)
	for _, takeover := range []bool{false, true} {
		a := waits()
		v := &websocket.Server{Handler: a.handler, Options: websocket.Options{
			Compression: websocket.Compression{On: true, Takeover: takeover, Min: 100}}}
		c, _ := w.offer(v, listener.Limits{}, offers)
		codec := deflate.New(deflate.Terms{Receives: takeover})
		for _, pieces := range [][]string{{long, long, ""}, {long, "a", "b"}, {long}, {"", long, long}, {long, "", long}, {"a", "b"}} {
			w.Turn(func(*act.Task) {
				for i, p := range pieces {
					require.NoError(t, a.conn.SendPiece(websocket.Text, []byte(p), i == len(pieces)-1))
				}
			})
			var packed []byte
			for i := range pieces {
				var h frame.Header
				var p []byte
				c.read(func() (err error) {
					h, p, err = readPayload(c)
					return err
				})
				require.Equal(t, i == len(pieces)-1, h.Final)
				require.Equal(t, i == 0 && pieces[0] == long, h.Compressed)
				packed = append(packed, p...)
			}
			if pieces[0] == long {
				var err error
				packed, err = codec.Inflate(nil, packed, 1000)
				require.NoError(t, err)
			}
			require.Equal(t, strings.Join(pieces, ""), string(packed))
		}
	}
}
