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
		var pieces []string
		for i, rest := 0, says; rest != ""; i++ {
			n := 1
			if len(cuts) > 0 {
				n = min(len(rest), 1+int(cuts[i%len(cuts)]))
			}
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole := w.story([]string{says}, "whole", compress)
		require.Equal(t, whole, w.story([]string{says}, "pieces", compress))
		for name := range echoes {
			require.Equal(t, whole, w.story(pieces, name, compress), "%s, piece by piece", name)
		}
	})
}

// story returns what client and action see of a connection.
func (w *world) story(pieces []string, handler string, compress bool) string {
	var ended error
	v := &websocket.Server{Handler: echoes[handler](&ended), Options: websocket.Options{MaxMessage: 1000,
		Compression: websocket.Compression{On: compress}}}
	p := &listed{}
	w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(listener.NewConn(w.S, p, listener.Limits{})))
	p.say(w, handshake+"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
	require.True(w.T, strings.HasPrefix(string(p.heard), "HTTP/1.1 101 "))
	p.heard = nil
	for _, piece := range pieces {
		p.say(w, piece)
	}
	told := fmt.Sprintf("%q, ended %v", p.heard, ended)
	p.over = true
	p.say(w, "")
	require.True(w.T, p.gone)
	require.Error(w.T, ended)
	return fmt.Sprintf("%s, then %v", told, ended)
}

// listed is a peer that notes what it hears, and can end what it says.
type listed struct {
	peer
	heard []byte
	over  bool
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
