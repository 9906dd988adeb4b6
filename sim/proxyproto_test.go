package sim_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldHeaders has clients that begin with PROXY headers, in pieces: some name an address, some speak for
// themselves, and some lie, break off or stay silent. The server first says whom it serves, so it must not wait for
// more than the header. In some worlds it trusts nobody who comes. An order may come at any time.
func TestWorldHeaders(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		const address = "10.0.0.1:7007"
		h := &headers{World: w, trusting: w.Rand().IntN(4) > 0}
		trusted := netip.MustParsePrefix("10.1.0.0/16")
		if !h.trusting {
			trusted = netip.MustParsePrefix("172.16.0.0/12")
		}
		limits := patient(w)
		limits.Read = pick(w, 0, 200)
		tcp := &service.Listener{Address: address, Limits: limits, MaxConns: pick(w, 0, 0, 3), FilterTimeout: time.Hour, EvictAfter: -1, Handler: h.serve,
			Filters: []listener.Filter{paused(w), proxyproto.Server(proxyproto.Config{Trusted: []netip.Prefix{trusted}})}}
		v, err := w.Server("server", act.Config{Schedulers: pick(w, 1, 2), TurnsPerPass: pick(w, 0, 1, 8)}, append(anyEngine(w), tcp.Setup)...)
		require.NoError(t, err)
		for i := range 8 {
			w.At(time.Duration(w.Rand().Int64N(int64(pick(w, time.Microsecond, time.Second)))), func() {
				w.Client(address, func(c *sim.Client) error { return h.visit(c, i) })
			})
		}
		if terms, given := order(w); given {
			w.At(time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, time.Second)))), func() { v.Shutdown(terms) })
		}
	})
}

type headers struct {
	*sim.World
	trusting bool
	liars    []string // what connections of clients that are refused would be taken for
}

// serve says whom it serves, and sends back what comes.
func (h *headers) serve(c *listener.Conn) act.Action {
	client := "unknown" // the system does not know it any more
	if a := c.RemoteAddr(); a != nil {
		client = a.String()
	}
	if slices.Contains(h.liars, client) {
		h.Errorf("%s is served, whose header is bad", client)
	}
	fmt.Fprintln(c, client)
	return echo.Echo(c)
}

// visit is a client with a number.
func (h *headers) visit(c *sim.Client, number int) error {
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(number)}), uint16(1+c.Rand().IntN(1<<16-1)))
	if c.Rand().IntN(3) == 0 {
		from = netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 15: byte(number)}), from.Port())
	}
	header := h.headerOf(c, from)
	me := c.LocalAddr().String()
	if !h.trusting {
		return h.served(c, "", me, header)
	}
	switch c.Rand().IntN(8) {
	case 0: // silence
		c.Sleep(time.Duration(c.Rand().Int64N(int64(5 * time.Second))))
		return c.Close()
	case 1: // it breaks off
		h.liars = append(h.liars, me, from.String())
		_ = h.send(c, header[:c.Rand().IntN(len(header))])
		_ = c.CloseWrite()
		return turnedAway(c)
	case 2: // it lies
		h.liars = append(h.liars, me, from.String())
		_ = h.send(c, spoilt(c, header))
		return turnedAway(c)
	case 3: // the proxy speaks for itself
		own := []string{"PROXY UNKNOWN\r\n", "PROXY UNKNOWN 1 2 3 4\r\n", "\r\n\r\n\x00\r\nQUIT\n\x20\x11\x00\x03xxx", "\r\n\r\n\x00\r\nQUIT\n\x21\x00\x00\x00"}
		return h.served(c, own[c.Rand().IntN(len(own))], me, "hello")
	}
	return h.served(c, header, from.String(), []string{"hello", header, "\r\n"}[c.Rand().IntN(3)])
}

// headerOf returns a header of at most 200 bytes.
func (h *headers) headerOf(c *sim.Client, from netip.AddrPort) string {
	to := netip.AddrPortFrom(from.Addr().Next(), 80)
	header := proxyproto.Header{Version: 1 + c.Rand().IntN(2), Source: net.TCPAddrFromAddrPort(from), Destination: net.TCPAddrFromAddrPort(to)}
	if c.Rand().IntN(2) == 0 {
		return string(header.Append(nil))
	}
	header.Version = 2
	p, n := header.Append(nil), c.Rand().IntN(100)
	values := slices.Concat([]byte{5, 0, byte(n)}, make([]byte, n), []byte{3, 0, 4, 0, 0, 0, 0})
	p = append(p, values...)
	binary.BigEndian.PutUint16(p[14:], uint16(len(p)-16))
	binary.BigEndian.PutUint32(p[len(p)-4:], crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)))
	return string(p)
}

// spoilt returns a header that is none.
func spoilt(c *sim.Client, header string) string {
	p := []byte(header)
	switch {
	case p[0] == 'P':
		return []string{"PROXY TCP5" + header[10:], header[:len(header)-2] + "\n", header[:len(header)-2] + " \r\n", "GET / HTTP/1.1\r\n\r\n"}[c.Rand().IntN(4)]
	case bytes.Contains(p[16:], []byte{3, 0, 4}) && c.Rand().IntN(2) == 0:
		p[len(p)-1]++ // of the checksum
	default:
		p[12+c.Rand().IntN(2)] |= 0x80 // version, family
	}
	return string(p)
}

// served sends the header, wants to be called by this name, often before it sends more, and wants that back.
func (h *headers) served(c *sim.Client, header, name, more string) error {
	rest := more
	if c.Rand().IntN(3) == 0 {
		header, rest = header+more, ""
	}
	if err := h.send(c, header); err != nil {
		return err
	}
	if err := hears(c, name+"\n"); err != nil {
		return err
	}
	if err := h.send(c, rest); err != nil {
		return err
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if err := hears(c, more); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("in place of the end: %w", party.Unexpected(err))
	}
	return c.Close()
}

func hears(c *sim.Client, text string) error {
	got := make([]byte, len(text))
	n, err := io.ReadFull(c, got)
	if string(got[:n]) != text[:n] {
		return fmt.Errorf("%q in place of %q", got[:n], text)
	}
	return err
}

// send sends text in pieces.
func (h *headers) send(c *sim.Client, text string) error {
	most := 1 + c.Rand().IntN(max(1, len(text)))
	for text != "" {
		n := 1 + c.Rand().IntN(min(most, len(text)))
		if _, err := io.WriteString(c, text[:n]); err != nil {
			return err
		}
		text = text[n:]
		c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Millisecond))))
	}
	return nil
}

// turnedAway reads to the end, in which nothing must come.
func turnedAway(c *sim.Client) error {
	if n, _ := io.Copy(io.Discard, c); n > 0 {
		return fmt.Errorf("%d bytes for a client that is refused", n)
	}
	return c.Close()
}
