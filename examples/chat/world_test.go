package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/sim/framing"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// TestMembersInSimulatedWorlds has members talk and change rooms. Each member hears the lines of another in order, none twice and none of its
// own, and ends by itself or with the chat, which is announced. A page that loses its connection and comes again hears each line of
// its room once. A member that only listens hears something.
func TestMembersInSimulatedWorlds(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		high := pick(w, 0, 1000)
		c := New()
		c.every, c.random = 0, rand.NewChaCha8([32]byte{byte(w.Rand().IntN(256))})
		tcp := &service.Listener{Address: "10.0.0.1:7010", Handler: c.Member, Limits: listener.Limits{
			Read: pick(w, 0, 100), High: high, Low: high / 4, Linger: time.Hour,
		}}
		site := &httpd.Server{Handler: c.Site()}
		web := &service.Listener{Address: "10.0.0.1:7080", Handler: site.Serve, Limits: listener.Limits{High: high, Low: high / 4, Linger: time.Hour}}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 3), Logger: zap.NewNop()}
		v, err := w.Server("chat", cfg, c.Setup, tcp.Setup, web.Setup)
		require.NoError(t, err)
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
		var r returning
		for i := range 3 {
			w.Client("10.0.0.1:7080", r.visit(i, ends))
		}
		var s secret
		w.Client("10.0.0.1:7010", s.listen)
		w.Client("10.0.0.1:7010", s.tell)
	})
}

func pick[T any](w *sim.World, all ...T) T { return all[w.Rand().IntN(len(all))] }

func while(w *sim.World) time.Duration { return time.Duration(w.Rand().Int64N(int64(3 * time.Second))) }

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
		case line == failed.text || line == over.text && !ends:
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

// returning is a page that connects several times, and says each time where it was: it hears each line of the lobby once.
type returning struct {
	epoch  string
	offset uint64
	visits int
}

func (r *returning) visit(i int, ends bool) sim.Script {
	return func(c *sim.Client) error {
		defer func() { r.visits++ }()
		for n := 0; r.visits < i; n++ {
			if n == 50 {
				return nil // that one was never admitted
			}
			c.Sleep(100 * time.Millisecond)
		}
		v, err := visit(c, "http://localhost")
		if err != nil {
			return err
		}
		if err := v.wish(wish{Type: "join", Name: "back", Key: "k", Epoch: r.epoch, Offset: r.offset}); err != nil {
			return err
		}
		if err := c.SetReadDeadline(c.Now().Add(2 * time.Second)); err != nil { // there may be no more lines
			return err
		}
		for lines := c.Rand().IntN(20); lines > 0; {
			n, err := v.next()
			switch code := closed(0); {
			case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &code) && code == 1001 && ends:
				return nil
			case err != nil:
				return err
			case n.Type == "taken",
				n.Type == "follows" && r.epoch != "" && (n.Epoch != r.epoch || n.Offset != r.offset || !n.Complete),
				n.Type == "said" && n.Offset != r.offset+1:
				return fmt.Errorf("%v was heard behind line %d", n, r.offset)
			case n.Type == "follows":
				r.epoch, r.offset = n.Epoch, n.Offset
			case n.Type == "said":
				r.offset, lines = n.Offset, lines-1
			}
		}
		c.Abort()
		return nil
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
	for n := 0; !s.heard && !s.gone && n <= 100; n++ { // more than once: nobody listens yet
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
