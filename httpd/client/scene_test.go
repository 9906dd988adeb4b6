package client_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// scene is a world without faults: a server whose connections follow a script, and a program that calls it. Its clock passes only
// while nobody has anything to do.
type scene struct {
	*testing.T
	w     *sim.World
	calls *sim.Server
	asked []string // all requests in the order in which they came: the number of the connection, the method and the target
	conns int      // that were accepted
	open  int      // of these
}

const at = "10.0.0.1:80"

// peer is a connection at the server.
type peer struct {
	*coro.Conn
	*scene
	n    int // the number of the connection, from 1 on
	in   *bufio.Reader
	head string // of the latest request, in lines that end with "\n"
	path string // its target
}

// ask reads the head of a request, and returns its first line. At the end of the connection it is "".
func (p *peer) ask() (line string) {
	for p.head = ""; ; {
		text, err := p.in.ReadString('\n')
		if err != nil {
			return ""
		}
		text = strings.TrimRight(text, "\r\n")
		if p.head += text + "\n"; line == "" {
			line = strings.TrimSuffix(text, " HTTP/1.1")
			p.asked = append(p.asked, fmt.Sprint(p.n, " ", line))
			_, p.path, _ = strings.Cut(line, " ")
		}
		if text == "" {
			return line
		}
	}
}

// say sends text, in which "\n" stands for CRLF, ␊ for a bare LF and ␍ for a bare CR. It arrives at once.
func (p *peer) say(text string) { _, _ = io.WriteString(p, raw(text)) }

func raw(text string) string {
	return strings.NewReplacer("\n", "\r\n", "␊", "\n", "␍", "\r").Replace(text)
}

// answers serves requests with the same answer.
func answers(text string) func(p *peer) {
	return func(p *peer) {
		for p.ask() != "" {
			p.say(text)
		}
	}
}

// hello is an answer.
const hello = "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"

// play runs the bodies, each as a coroutine of the program, against the script. They have an hour.
func play(t *testing.T, script func(p *peer), bodies ...func(s *scene, co *coro.Co)) *scene {
	t.Helper()
	s := &scene{T: t, w: sim.New(sim.Options{Storm: time.Hour})}
	s.w.At(59*time.Minute, func() {})
	web := &service.Listener{Address: at, Handler: coro.Serve(func(c *coro.Conn) error {
		s.conns++
		s.open++
		defer func() { s.open-- }()
		script(&peer{Conn: c, scene: s, n: s.conns, in: bufio.NewReader(c)})
		return nil
	})}
	_, err := s.w.Server("web", act.Config{}, web.Setup)
	require.NoError(t, err)
	ended := 0
	s.calls, err = s.w.Server("program", act.Config{}, func(on *act.Scheduler) error {
		on.Spawn(coro.New(idles))
		for _, body := range bodies {
			on.Spawn(coro.New(func(co *coro.Co) error {
				body(s, co)
				ended++
				return nil
			}))
		}
		return nil
	})
	require.NoError(t, err)
	if err = s.w.Run(); t.Failed() {
		t.FailNow() // what a body has found says more
	}
	require.NoError(t, err)
	require.Equal(t, len(bodies), ended)
	require.Zero(t, s.open)
	return s
}

// idles keeps a program from its end until it is told to.
func idles(co *coro.Co) error {
	_ = co.UntilOrder(func() error { return co.Sleep(time.Hour) })
	return nil
}

// get is a Call that asks for a target.
func get(o *client.Origin, target string) *client.Call {
	return &client.Call{Origin: o, Target: target}
}

// done makes a Call that has to be answered with hello, and closes the answer.
func (s *scene) done(co *coro.Co, call *client.Call) {
	s.Helper()
	answer, content, err := fetch(co, call)
	require.NoError(s, err)
	require.Equal(s, "hello", content)
	require.NoError(s, answer.Close())
}

// fails makes a Call that has to fail, and returns why.
func (s *scene) fails(co *coro.Co, call *client.Call) (failure *client.Error) {
	s.Helper()
	require.ErrorAs(s, co.Do(call), &failure)
	return failure
}

func (s *scene) sleep(co *coro.Co, d time.Duration) { require.NoError(s, co.Sleep(d)) }
