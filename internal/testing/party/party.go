// Package party has the client of simulated worlds. It sends and reads at a pace of its own, and parts in a way of its own:
// all that is drawn from the seed of its world. A scenario adds what it says and what it must read. The package also
// draws what servers have in common. Only tests import it.
package party

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/daimon-go/daimon/sim"
)

// Manners is how a client behaves.
type Manners struct {
	Most     int           // bytes in one write
	Gap      time.Duration // between two, at most
	ReadMost int           // bytes in one read
	ReadGap  time.Duration // between two, at most
	Deaf     time.Duration // before the first read
	Stop     int           // how many bytes it sends; -1: all
	Parting  Parting
}

// Parting is what a client does when it has sent as much as it wants.
type Parting int

const (
	Stays      Parting = iota // until it has read everything
	HalfCloses                // and reads to the end
	Silent                    // without a word, until the server gives up
	Resets                    // the connection
	Closes                    // the connection
)

// plenty is more bytes than anybody sends at a time.
const plenty = 1 << 30

// Prompt are the Manners of a client that does everything at once.
var Prompt = Manners{Most: plenty, ReadMost: plenty, Stop: -1}

// Draw draws Manners: of eight clients three are prompt, three slow to send, and two slow to read.
func Draw(r *rand.Rand) Manners {
	m := Prompt
	switch r.IntN(8) {
	case 0, 1:
		m.Most, m.Gap = 1+r.IntN(3000), Below(r, 20*time.Millisecond)
	case 2:
		m.Most, m.Gap = 1+r.IntN(100), time.Millisecond
	case 3, 4:
		m.ReadMost, m.ReadGap = 1+r.IntN(3000), 1+Below(r, 10*time.Millisecond)
	}
	return m
}

// Below draws a time of less than most.
func Below(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

// From draws one of some values.
func From[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// Pick draws one of some values, for a scenario.
func Pick[T any](w *sim.World, values ...T) T { return From(w.Rand(), values...) }

// Client is a connection to a server. One strand may send while another one reads.
type Client struct {
	*sim.Client
	World *sim.World
	Manners

	Sent   int           // bytes, including a write under way
	Latest time.Duration // when it has last sent
	Err    error         // of a write
	Half   bool          // it has closed its side
	Left   bool          // it has closed or reset the connection
	LeftAt time.Duration // when it has ended its output
	Got    int           // bytes that it has read
	ReadAt time.Duration // when it has last read any
	Lost   error         // why it can read no more
	Over   bool          // it reads no more
	cut    bool          // it has stopped
}

// Broken reports whether a write has failed.
func (c *Client) Broken() bool { return c.Err != nil }

// Cut reports whether the client has sent as much as it wants, though there was more.
func (c *Client) Cut() bool { return c.cut }

// Gone reports whether the server may have noticed that the client is not what it was.
func (c *Client) Gone() bool { return c.Left || c.Half || c.Over }

// Fit bounds the number of pieces that the client sends and reads in all.
func (c *Client) Fit(sends, reads int) {
	c.Most, c.ReadMost = max(c.Most, sends/200), max(c.ReadMost, reads/200)
}

// Rest sleeps for less than most, half of the time.
func (c *Client) Rest(most time.Duration) {
	if most > 0 && c.Rand().IntN(2) == 0 {
		c.Sleep(Below(c.Rand(), most))
	}
}

// Read reads at the client's pace. A reset is reported again and again.
func (c *Client) Read(p []byte) (int, error) {
	if c.Deaf > 0 {
		c.Sleep(c.Deaf)
		c.Deaf = 0
	}
	c.Rest(c.ReadGap)
	if c.Lost != nil {
		return 0, c.Lost
	}
	n, err := c.Client.Read(p[:min(len(p), c.ReadMost)])
	if n > 0 {
		c.Got, c.ReadAt = c.Got+n, c.World.Now()
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Lost = err
	}
	return n, err
}

// Send sends p at the client's pace, up to where it stops. It reports whether that was all of p.
func (c *Client) Send(p []byte) bool {
	for len(p) > 0 {
		if c.Over || c.Half || c.Left || c.Broken() {
			return false
		}
		n := min(len(p), 1+c.Rand().IntN(c.Most))
		if c.Stop >= 0 {
			if n = min(n, c.Stop-c.Sent); n <= 0 {
				c.cut = true
				return false
			}
		}
		c.Sent += n
		if _, c.Err = c.Write(p[:n]); c.Broken() {
			return false
		}
		c.Latest, p = c.World.Now(), p[n:]
		c.Rest(c.Gap)
	}
	return true
}

// Await waits until f reports true, or until there is no need to.
func (c *Client) Await(f func() bool) {
	for d := 50 * time.Microsecond; !c.Over && !c.Broken() && !f(); d = min(2*d, 100*time.Millisecond) {
		c.Sleep(d)
	}
}

// Part ends the client's output, in its way.
func (c *Client) Part() {
	if c.Over || c.Left {
		return
	}
	switch c.Parting {
	case HalfCloses:
		c.Half = true
		if err := c.CloseWrite(); err != nil {
			c.Err = err
		}
	case Resets:
		c.Left = true
		c.Abort()
	case Closes:
		c.Left = true
		_ = c.Close()
	default:
		return
	}
	c.LeftAt = c.World.Now()
}

// Ask sends text in pieces, and returns all that the server answers until it closes.
func Ask(c *sim.Client, text string) (string, error) {
	for text != "" {
		n := 1 + c.Rand().IntN(len(text))
		if _, err := io.WriteString(c, text[:n]); err != nil {
			return "", err
		}
		text = text[n:]
		c.Sleep(Below(c.Rand(), time.Millisecond))
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// Unexpected makes the end of a stream an unexpected one.
func Unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
