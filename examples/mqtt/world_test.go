package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/topic"
)

// TestWorldMQTT has a publisher and a subscriber that lose their connections and come again. All that is acknowledged to the
// publisher reaches the subscriber, with quality of service 1, in order but for repetitions. A client that falls silent
// is disconnected in time.
func TestWorldMQTT(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		b := &broker{topics: topic.New(topic.Config{Pending: 1 + w.Rand().IntN(4)})}
		tcp := &service.Listener{Address: "10.0.0.1:1883", Handler: func(c *listener.Conn) act.Action { return newClient(b, stream{c}) }}
		_, err := w.Server("mqtt", act.Config{Schedulers: 1 + w.Rand().IntN(3), Logger: zap.NewNop()}, b.topics.Setup, tcp.Setup)
		require.NoError(t, err)
		h := &history{}
		for i := range visits {
			w.Client(tcp.Address, h.subscriber(i))
			w.Client(tcp.Address, h.publisher(i))
		}
		w.Client(tcp.Address, silent)
	})
}

const visits = 5 // of each of the two clients

// history is what the two clients know from one connection to the next.
type history struct {
	subscribed  bool
	said, heard int
	ended       [2]int // connections of the subscriber and of the publisher
}

// turn waits until it is the turn of connection i. It reports false if that takes too long: another one was never admitted.
func turn(c *sim.Client, ended *int, i int) bool {
	for n := 0; *ended < i && n < 50; n++ {
		c.Sleep(100 * time.Millisecond)
	}
	return *ended == i
}

// enter connects as a client, and returns whether it had a session.
func enter(c *sim.Client, id string, flags, keepAlive byte) (in *bufio.Reader, present bool, err error) {
	in = bufio.NewReader(c)
	p, err := ask(c, in, raw(0x10, text("MQTT"), "\x04", string([]byte{flags, 0, keepAlive}), text(id)))
	if err == nil && (p.kind != connack || p.body[1] != 0) {
		err = fmt.Errorf("not a welcome: %v", p)
	}
	return in, err == nil && p.body[0] == 1, err
}

// ask says something, and returns the next packet.
func ask(c *sim.Client, in *bufio.Reader, says string) (p packet, err error) {
	if _, err := io.WriteString(c, says); err != nil {
		return p, err
	}
	all, err := in.Peek(2) // no packet here is longer than 127 bytes
	if err == nil {
		all, err = in.Peek(2 + int(all[1]))
	}
	if err == nil {
		p = packet{kind: all[0] >> 4, flags: all[0] & 0xf, body: bytes.Clone(all[2:])}
		_, err = in.Discard(len(all))
	}
	return p, err
}

func (h *history) subscriber(i int) sim.Script {
	return func(c *sim.Client) error {
		if !turn(c, &h.ended[0], i) {
			return nil
		}
		defer func() { h.ended[0]++ }()
		in, present, err := enter(c, "subscriber", kept, 0)
		switch {
		case err != nil:
			return err
		case h.subscribed != present && h.subscribed:
			return errors.New("the session is lost")
		case !h.subscribed:
			if _, err := ask(c, in, wants("t", 1)); err != nil {
				return err
			}
			h.subscribed = true
		}
		last, answer := i == visits-1, ""
		for n, idle := c.Rand().IntN(10), 0; n > 0 || last; n-- {
			if err := c.SetReadDeadline(c.Now().Add(time.Second)); err != nil {
				return err
			}
			p, err := ask(c, in, answer)
			if answer = ""; errors.Is(err, os.ErrDeadlineExceeded) {
				if idle++; idle < 30 {
					continue
				}
				if last && h.heard < h.said {
					return fmt.Errorf("%d were acknowledged, and %d came", h.said, h.heard)
				}
				break
			}
			if err != nil {
				return err
			}
			m, id, err := decodePublish(p)
			number, _ := strconv.Atoi(string(m.Data))
			if err == nil && m.Tag == 0 {
				continue // it makes the broker wait for room
			}
			if err != nil || number == 0 || number > h.heard+1 {
				return fmt.Errorf("%q after %d: %v", m.Data, h.heard, err)
			}
			if h.heard, answer = max(h.heard, number), received(id); !last && c.Rand().IntN(4) == 0 {
				answer = "" // it is not acknowledged
			}
		}
		c.Abort()
		return nil
	}
}

func (h *history) publisher(i int) sim.Script {
	return func(c *sim.Client) error {
		if !turn(c, &h.ended[1], i) {
			return nil
		}
		defer func() { h.ended[1]++ }()
		in, _, err := enter(c, "publisher", clean, 0)
		for n := c.Rand().IntN(20); n > 0 && err == nil && h.subscribed; n-- {
			number := h.said + 1
			p, failed := ask(c, in, strings.Repeat(said(0, "t", "0"), c.Rand().IntN(4))+sent(0, uint16(number), "t", strconv.Itoa(number)))
			if err = failed; err == nil && string(p.body) != string(received(uint16(number))[2:]) {
				err = fmt.Errorf("no PUBACK of %d: %v", number, p)
			}
			if err == nil {
				h.said = number
			}
		}
		c.Abort()
		return err
	}
}

// silent says nothing after its CONNECT and some pings.
func silent(c *sim.Client) error {
	in, _, err := enter(c, "silent", clean, 2)
	if err != nil {
		return err
	}
	since := c.Now() // the broker has heard it
	for n := 0; n < 4 && err == nil; n++ {
		c.Sleep(time.Second)
		asked := c.Now()
		if _, err = ask(c, in, ping); err == nil {
			since = asked
		}
	}
	if err == nil {
		_, err = in.ReadByte()
	}
	if silence := c.Now().Sub(since); err == io.EOF && silence < 2*time.Second {
		return fmt.Errorf("the client is disconnected after %v", silence)
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

// What was broken: a keep-alive shorter than the time until the CONNECT began with the second packet.
func TestAClientThatIsSilentFromTheBeginningIsDisconnectedInTime(t *testing.T) {
	sim.TestWith(t, sim.Options{}, func(w *sim.World) {
		b := &broker{topics: topic.New(topic.Config{})}
		tcp := &service.Listener{Address: "10.0.0.1:1883", Handler: func(c *listener.Conn) act.Action { return newClient(b, stream{c}) }}
		_, err := w.Server("mqtt", act.Config{Logger: zap.NewNop()}, b.topics.Setup, tcp.Setup)
		require.NoError(t, err)
		w.Client(tcp.Address, func(c *sim.Client) error {
			in, _, err := enter(c, "silent", clean, 2)
			require.NoError(t, err)
			since := c.Now()
			_, err = in.ReadByte()
			require.Equal(t, io.EOF, err)
			require.Equal(t, 3*time.Second, c.Now().Sub(since).Round(time.Second))
			return nil
		})
	})
}
