package websocket_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// FuzzConnection sends any bytes behind a handshake, in any pieces, to both echoes: client and action see the same as for the
// bytes in one piece.
func FuzzConnection(f *testing.F) {
	for _, row := range rules {
		f.Add(row.says, []byte{1, 5}, false)
	}
	long := strings.Repeat("to be continued ", 50)
	small, _ := deflate.New(deflate.Terms{}).Compress(nil, []byte(long))
	for _, says := range []string{
		packed(text(string(small))) + text("a") + bye(1000, ""),
		packed(begin(string(small[:7]))) + ping("b") + last(string(small[7:])) + packed(text("\x06")),
	} {
		f.Add(says, []byte{0, 3}, true)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, says string, cuts []byte, compress bool) {
		w.T = t
		w.compare(says, cuts, compress, w.story)
	})
}

// FuzzClient sends any bytes behind the answer to a handshake, as a server, in any pieces.
func FuzzClient(f *testing.F) {
	f.Add("\x81\x05hello\x02\x02ab\x80\x01c\x89\x01d\x88\x02\x03\xe8\x81\x01e", []byte{0, 2}, false)
	f.Add("\x01\x03a\xe2\x82\x80\x01\xac\x8a\x00\x81\x01\xff", []byte{1}, false)
	f.Add("\x81\x85\x01\x02\x03\x04hello", []byte{}, false)
	packed, _ := deflate.New(deflate.Terms{}).Compress(nil, []byte(strings.Repeat("to be continued ", 50)))
	f.Add(string(append([]byte{0xC1, byte(len(packed))}, packed...))+"\xc1\x01\x06", []byte{0, 3}, true)
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, says string, cuts []byte, compress bool) {
		w.T = t
		w.compare(says, cuts, compress, w.storyOfAClient)
	})
}

// compare requires that both echoes, for any pieces, have the story of the bytes in one piece.
func (w *world) compare(says string, cuts []byte, compress bool, story func(pieces []string, handler string, compress bool) string) {
	var pieces []string
	for i, rest := 0, says; rest != ""; i++ {
		n := 1
		if len(cuts) > 0 {
			n = min(len(rest), 1+int(cuts[i%len(cuts)]))
		}
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	whole := story([]string{says}, "whole", compress)
	require.Equal(w.T, whole, story([]string{says}, "pieces", compress))
	for name := range echoes {
		require.Equal(w.T, whole, story(pieces, name, compress), "%s, piece by piece", name)
	}
}

func optionsOfAStory(compress bool) websocket.Options {
	return websocket.Options{MaxMessage: 1000, Compression: websocket.Compression{On: compress}}
}

// story returns what client and action see of a connection.
func (w *world) story(pieces []string, handler string, compress bool) string {
	var ended error
	v := &websocket.Server{Handler: echoes[handler](&ended), Options: optionsOfAStory(compress)}
	p := &listed{}
	w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(listener.NewConn(w.S, p, listener.Limits{})))
	p.say(w, handshake+"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
	require.True(w.T, strings.HasPrefix(string(p.heard), "HTTP/1.1 101 "))
	p.heard = nil
	return p.told(w, pieces, &ended)
}

// storyOfAClient returns what server and action see of a connection.
func (w *world) storyOfAClient(pieces []string, handler string, compress bool) string {
	var ended error
	v := &websocket.Client{URL: "ws://a/", Handler: alone(echoes[handler](&ended)), Options: optionsOfAStory(compress)}
	p := &listed{masked: true}
	w.S.Spawn(v.DialOn(listener.NewConn(w.S, p, listener.Limits{})))
	p.say(w, "")
	agreed := "\r\n\r\n"
	if compress {
		agreed = "\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n\r\n"
	}
	p.say(w, strings.TrimSuffix(answer(string(p.heard)), "\r\n\r\n")+agreed)
	p.heard = nil
	return p.told(w, pieces, &ended)
}

// told says pieces, ends what it says, and returns what it has heard and how the connection has ended.
func (p *listed) told(w *world, pieces []string, ended *error) string {
	for _, piece := range pieces {
		p.say(w, piece)
	}
	if p.masked {
		p.unmask(w)
	}
	told := fmt.Sprintf("%q, ended %v", p.heard, *ended)
	p.over = true
	p.say(w, "")
	require.True(w.T, p.gone)
	require.Error(w.T, *ended)
	return fmt.Sprintf("%s, then %v", told, *ended)
}

// unmask takes the masks of a client, which are drawn, from the frames that were heard.
func (p *listed) unmask(w *world) {
	var heard []byte
	for rest := p.heard; len(rest) > 0; {
		h, n, err := frame.Parse(rest, true, true)
		require.NoError(w.T, err)
		require.NotZero(w.T, n)
		payload := rest[n : n+int(h.Length)]
		frame.Mask(payload, payload, h.Key, 0)
		h.Masked, h.Key = false, [4]byte{}
		heard = append(h.Append(heard), payload...)
		rest = rest[n+int(h.Length):]
	}
	p.heard = heard
}

// listed is a peer that notes what it hears, and can end what it says.
type listed struct {
	peer
	heard  []byte
	over   bool
	masked bool // it hears a client
}

func (p *listed) say(w *world, piece string) {
	p.says = append(p.says, piece...)
	p.reader.Wake()
	servertest.Step(w.T, w.S)
}

func (p *listed) Lend(most int) ([]byte, error) {
	if len(p.says) == 0 && p.over {
		return nil, io.EOF
	}
	return p.peer.Lend(most)
}

func (p *listed) Receive(to []byte) (int, error) {
	in, err := p.Lend(len(to))
	return copy(to, in), err
}

func (p *listed) Send(head, b []byte, _ int) (int, error) {
	p.heard = append(append(p.heard, head...), b...)
	return len(b), nil
}

func (p *listed) AwaitInput(r act.Waker) {
	if p.peer.AwaitInput(r); p.over {
		r.Wake()
	}
}
