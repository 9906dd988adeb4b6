package websocket_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/listener"
)

// A story is what a peer hears of an echo when it says some pieces, and with which error the echo sees the connection end:
// before the peer ends what it says, and after that.
type story struct {
	heard         string
	before, ended error
}

func (s story) String() string {
	return fmt.Sprintf("%q, ended %v, then %v", s.heard, s.before, s.ended)
}

// ofAServer returns the story of an echo that is a server.
func (w *world) ofAServer(pieces []string, handler string, o websocket.Options) story {
	p, s := &peer{}, story{}
	v := &websocket.Server{Handler: echoes[handler](&s.ended), Options: o}
	w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(listener.NewConn(w.S, p, listener.Limits{})))
	p.say(w, handshake+"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
	require.True(w.T, strings.HasPrefix(string(p.heard), "HTTP/1.1 101 "))
	p.heard = nil
	s.play(w, p, pieces)
	s.heard = string(p.heard)
	return s
}

// ofAClient returns the story of an echo that is a client. The masks of what was heard are taken away: they are drawn.
func (w *world) ofAClient(pieces []string, handler string, o websocket.Options) story {
	p, s := &peer{}, story{}
	v := &websocket.Client{URL: "ws://a/", Handler: alone(echoes[handler](&s.ended)), Options: o}
	end := &outcome{}
	end.Action = v.DialOn(listener.NewConn(w.S, p, listener.Limits{}))
	w.S.Spawn(end)
	p.say(w, "")
	agreed := "\r\n"
	if o.Compress > 0 {
		agreed = "Sec-WebSocket-Extensions: " + deflate.Offer(false) + "\r\n\r\n"
	}
	p.say(w, strings.TrimSuffix(answer(string(p.heard)), "\r\n")+agreed)
	p.heard = nil
	s.play(w, p, pieces)
	require.True(w.T, end.over)
	require.NoError(w.T, end.err)
	s.heard = bare(string(p.heard))
	return s
}

func (s *story) play(w *world, p *peer, pieces []string) {
	for _, piece := range pieces {
		p.say(w, piece)
	}
	s.before = s.ended
	p.over = true
	p.say(w, "")
	require.True(w.T, p.gone)
	require.Error(w.T, s.ended)
}

// compare requires that both echoes, for any pieces, have the story of the bytes in one piece.
func compare(t *testing.T, says string, cuts []byte, compress bool, play func([]string, string, websocket.Options) story) {
	var pieces []string
	for i, rest := 0, says; rest != ""; i++ {
		n := 1
		if len(cuts) > 0 {
			n = min(len(rest), 1+int(cuts[i%len(cuts)]))
		}
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	o := websocket.Options{MaxMessage: 1000}
	if compress {
		o.Compress = 256
	}
	whole := play([]string{says}, "whole", o).String()
	require.Equal(t, whole, play([]string{says}, "pieces", o).String())
	for name := range echoes {
		require.Equal(t, whole, play(pieces, name, o).String(), "%s, piece by piece", name)
	}
}

// FuzzConnection sends any bytes after a handshake, in any pieces, to both echoes: client and action see the same as for the
// bytes in one piece.
func FuzzConnection(f *testing.F) {
	for _, row := range rules {
		f.Add(row.says, []byte{1, 5}, false)
	}
	for _, row := range compressions {
		f.Add(row.says, []byte{0, 3}, true)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, says string, cuts []byte, compress bool) {
		w.T = t
		compare(t, says, cuts, compress, w.ofAServer)
	})
}

// FuzzClient sends any bytes after the answer to a handshake, as a server, in any pieces.
func FuzzClient(f *testing.F) {
	for _, row := range rules {
		f.Add(bare(row.says), []byte{0, 2}, false)
	}
	f.Add(bare(squeezed(long)), []byte{0, 3}, true)
	f.Add(one(frame.Text, "a mask"), []byte{}, false)
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, says string, cuts []byte, compress bool) {
		w.T = t
		compare(t, says, cuts, compress, w.ofAClient)
	})
}
