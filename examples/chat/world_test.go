package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/sim/framing"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// TestWorldChat has members talk and change rooms, and rooms panic. Each member hears the lines of another in order, none
// twice and none of its own, and ends by itself or with the chat, which is announced. A member that only listens hears
// something. In the end no room is left.
func TestWorldChat(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		high := pick(w, 0, 1000)
		c := New()
		c.most, c.every = pick(w, 1, 2, 64), 0
		tcp := &service.Listener{Address: "10.0.0.1:7010", Handler: c.Member, Limits: listener.Limits{
			Read: pick(w, 0, 100), High: high, Low: high / 4, Linger: time.Hour,
		}}
		site := &httpd.Server{Handler: c.Site()}
		web := &service.Listener{Address: "10.0.0.1:7080", Handler: site.Serve, Limits: listener.Limits{High: high, Low: high / 4, Linger: time.Hour}}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 3), Logger: zap.NewNop()}
		v, err := w.Server("chat", cfg, c.Setup, tcp.Setup, web.Setup)
		require.NoError(t, err)
		if w.Rand().IntN(3) == 0 {
			for range 3 {
				w.At(while(w), func() { _ = c.hall.Send(c.sys, mine(w.Rand().IntN(10))) })
			}
		}
		ends := w.Rand().IntN(3) == 0
		if ends {
			w.At(while(w), func() { v.Shutdown(shutdown.Policy{Time: time.Hour}) })
		}
		for i := range 4 {
			w.Client("10.0.0.1:7010", guest(fmt.Sprint("m", i), w.Rand().IntN(20), ends))
		}
		for i := range 3 {
			w.Client("10.0.0.1:7080", pageGuest(fmt.Sprint("p", i), w.Rand().IntN(20), ends))
		}
		var s secret
		w.Client("10.0.0.1:7010", s.listen)
		w.Client("10.0.0.1:7010", s.tell)
		clock := &service.Listener{Address: "10.0.0.1:37", Handler: echo.Echo}
		_, err = w.Server("clock", act.Config{}, clock.Setup)
		require.NoError(t, err)
		w.Client("10.0.0.1:37", func(k *sim.Client) error {
			k.Sleep(20*time.Minute - w.Now())
			if alive := c.sys.Alive(); alive > 1 || ends && alive > 0 {
				w.Errorf("%d processes are left", alive)
			}
			return nil
		})
	})
}

func pick[T any](w *sim.World, all ...T) T { return all[w.Rand().IntN(len(all))] }

func while(w *sim.World) time.Duration { return time.Duration(w.Rand().Int64N(int64(3 * time.Second))) }

// mine is a query that makes the n-th room panic.
type mine int

func (n mine) at(h *hall, p *process.Self[query]) {
	if rooms := slices.Sorted(maps.Keys(h.rooms)); len(rooms) > 0 {
		_ = h.rooms[rooms[int(n)%len(rooms)]].Send(p, bomb{})
	}
}

// guest says a number of lines, each with its number, in various rooms.
func guest(name string, lines int, ends bool) sim.Script {
	return func(c *sim.Client) error {
		in := bufio.NewReader(c)
		if _, err := in.ReadString('\n'); err != nil { // "Your name?"
			return err
		}
		c.Go(func(*sim.Client) error { return listens(name, in, ends) })
		if _, err := fmt.Fprintln(c, name); err != nil {
			return err
		}
		for n := range lines {
			line := fmt.Sprint(n)
			switch c.Rand().IntN(10) {
			case 0:
				line = fmt.Sprint("/join room", c.Rand().IntN(3))
			case 1:
				line = "/who"
			}
			if _, err := fmt.Fprintln(c, line); err != nil {
				return err
			}
			if c.Rand().IntN(3) > 0 {
				c.Sleep(time.Duration(c.Rand().Int64N(int64(200 * time.Millisecond))))
			}
		}
		return c.CloseWrite()
	}
}

// listens reads until the server has closed.
func listens(name string, in *bufio.Reader, ends bool) error {
	heard, told := map[string]int{}, false
	for {
		line, err := in.ReadString('\n')
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case told:
			return fmt.Errorf("%q was heard behind the last line", line)
		case line == noWay.text || line == over.text && !ends:
			return errors.New(line)
		}
		told = line == over.text
		who, what, ok := strings.Cut(strings.TrimSpace(line), ": ")
		var n int
		if _, err := fmt.Sscan(what, &n); !ok || err != nil {
			continue // a member has entered or left
		}
		if last, ok := heard[who]; ok && n <= last || who == name {
			return fmt.Errorf("%q was heard behind line %d", line, last)
		}
		heard[who] = n
	}
}

// pageGuest is a guest on a page.
func pageGuest(name string, lines int, ends bool) sim.Script {
	return func(c *sim.Client) error {
		v, err := visit(c, "http://localhost")
		if err != nil {
			return err
		}
		c.Go(func(*sim.Client) error { return v.listens(ends) })
		if err := v.wish(wish{Type: "join", Name: name}); err != nil {
			return err
		}
		for n := range lines {
			x := wish{Type: "say", Text: fmt.Sprint(n)}
			switch c.Rand().IntN(10) {
			case 0:
				x = wish{Type: "join", Room: fmt.Sprint("room", c.Rand().IntN(3))}
			case 1:
				x = wish{Type: "who"}
			}
			if err := v.wish(x); err != nil {
				return err
			}
			if c.Rand().IntN(3) > 0 {
				c.Sleep(time.Duration(c.Rand().Int64N(int64(200 * time.Millisecond))))
			}
		}
		return v.wish(wish{Type: "leave"})
	}
}

// listens reads until the server has closed.
func (v *visitor) listens(ends bool) error {
	heard, told := map[string]int{}, false
	for {
		n, err := v.next()
		var code closed
		switch {
		case errors.As(err, &code) && (code == 1000 || code == 1001 && ends), err == io.EOF && ends:
			return nil
		case err != nil:
			return err
		case told:
			return fmt.Errorf("%v was heard behind the last line", n)
		case n.Type == "refused" || n.Type == "taken" || n.Type == "over" && !ends:
			return fmt.Errorf("%v", n)
		}
		told = n.Type == "over"
		if n.Type == "said" && n.Text != "psst" {
			var x int
			if _, err := fmt.Sscan(n.Text, &x); err != nil {
				return err
			}
			if last, ok := heard[n.Name]; ok && x <= last {
				return fmt.Errorf("%v was heard behind line %d", n, last)
			}
			heard[n.Name] = x
		}
	}
}

// secret is said by one member and heard by another, which only listens.
type secret struct{ listens, heard, gone bool }

func (s *secret) listen(c *sim.Client) error {
	s.listens = true // otherwise it was never admitted
	defer func() { s.gone = true }()
	if _, err := fmt.Fprint(c, "silent\n/join corner\n"); err != nil {
		return err
	}
	if err := c.SetReadDeadline(c.Now().Add(10 * time.Minute)); err != nil { // the talker may have been cut off
		return err
	}
	for in := bufio.NewReader(c); !s.heard; {
		line, err := in.ReadString('\n')
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
		s.heard = line == "talker: psst\n" || line == over.text
	}
	return nil
}

func (s *secret) tell(c *sim.Client) error {
	c.Go(func(c *sim.Client) error {
		_, err := io.Copy(io.Discard, c)
		s.gone = true
		return err
	})
	if _, err := fmt.Fprint(c, "talker\n/join corner\n"); err != nil {
		return err
	}
	for n := 0; !s.heard && !s.gone && n <= 100; n++ { // more than once: the room may panic
		if n == 100 && s.listens {
			return errors.New("the secret is not heard")
		}
		if _, err := fmt.Fprintln(c, "psst"); err != nil {
			return err
		}
		c.Sleep(3 * time.Second)
	}
	return c.CloseWrite()
}

// visitor is the connection of a page: a client of WebSocket whose messages are texts.
type visitor struct {
	net.Conn
	web framing.WebSocket
}

// visit makes the handshake on a connection, as a page of that origin.
func visit(c net.Conn, origin string) (*visitor, error) {
	v := &visitor{c, framing.WebSocket{Conn: c, Header: "Origin: " + origin + "\r\n"}}
	return v, v.web.Open("/ws")
}

func (v *visitor) wish(w wish) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return v.web.Write(framing.Text, text)
}

// closed is the code with which the server has closed.
type closed int

func (c closed) Error() string { return fmt.Sprintf("closed with code %d", int(c)) }

// next returns the next news.
func (v *visitor) next() (n news, err error) {
	_, text, err := v.web.Read()
	if end := (*framing.Closed)(nil); errors.As(err, &end) {
		return n, closed(end.Code)
	}
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(text, &n)
}
