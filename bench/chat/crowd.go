package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds how long a visitor waits for an answer, and all of them for the last line.
const patience = time.Minute

// crowd is the visitors. One thread serves them all, so that they take as little CPU time from the server as they can.
type crowd struct {
	Options
	visitors []*visitor
	poll     int // epoll
	buffer   []byte
	begun    time.Time
	took     []time.Duration // by each line to each visitor but its speaker
	last     []time.Duration // to the last visitor, by line
}

// visitor is a connection of WebSocket, and the beginning of a frame that has come in part.
type visitor struct {
	fd, number int
	part       []byte
}

// enter connects all visitors and has them enter the room.
func enter(ctx context.Context, at *net.TCPAddr, o Options) (*crowd, error) {
	c := &crowd{Options: o, buffer: make([]byte, 64<<10), last: make([]time.Duration, o.Lines), begun: time.Now()}
	var err error
	if c.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	for n := 0; n < o.Visitors && err == nil; n++ {
		if err = c.add(n, at); err != nil {
			err = fmt.Errorf("visitor %d: %w", n, err)
		}
		err = errors.Join(err, ctx.Err())
	}
	if err == nil { // the room tells how many are here once a second, until all know
		err = c.serve(ctx, time.Now().Add(3*time.Second))
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// add connects a visitor, which is welcome then.
func (c *crowd) add(n int, at *net.TCPAddr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err // of open files there are not enough: ulimit -n
	}
	v := &visitor{fd: fd, number: n}
	c.visitors = append(c.visitors, v)
	wait := unix.NsecToTimeval(patience.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.Connect(fd, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}),
		v.send("GET /ws HTTP/1.1\r\nHost: "+at.String()+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	if err != nil {
		return err
	}
	if err := v.until("\r\n\r\n", c.buffer); err != nil {
		return err
	}
	if err := v.wish(fmt.Sprintf(`{"type":"join","room":"crowd","name":"visitor %d"}`, n)); err != nil {
		return err
	}
	if err := v.until(`"welcome"`, c.buffer); err != nil {
		return err
	}
	v.skip()
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	return unix.EpollCtl(c.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(n)})
}

// until reads until a text has come. What has come is kept as part.
func (v *visitor) until(text string, buffer []byte) error {
	for !bytes.Contains(v.part, []byte(text)) {
		n, err := unix.Read(v.fd, buffer)
		if err == unix.EINTR { // with a time-out it is not restarted: signal(7)
			continue
		}
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("the server does not answer: %q: %w", v.part, err)
		}
		v.part = append(v.part, buffer[:n]...)
	}
	return nil
}

// skip leaves out the answer to the handshake, which lies before the first frame.
func (v *visitor) skip() {
	_, v.part, _ = bytes.Cut(v.part, []byte("\r\n\r\n"))
}

func (v *visitor) send(text string) error {
	n, err := unix.Write(v.fd, []byte(text))
	if err == nil && n < len(text) {
		err = errors.New("the server does not read")
	}
	return err
}

// wish sends a frame of text, with the key 0.
func (v *visitor) wish(text string) error {
	f := []byte{0x81, 0x80 | byte(min(len(text), 126))}
	if len(text) >= 126 {
		f = binary.BigEndian.AppendUint16(f, uint16(len(text)))
	}
	return v.send(string(f) + "\x00\x00\x00\x00" + text)
}

// talk has the talkers say all lines, one after the other, and returns when all visitors have them.
func (c *crowd) talk(ctx context.Context) error {
	want := c.Lines * (c.Visitors - 1)
	c.took = make([]time.Duration, 0, want)
	begun := time.Now()
	for n := range c.Lines {
		if err := c.serve(ctx, begun.Add(time.Duration(n)*c.between())); err != nil {
			return err
		}
		by := n % c.Talkers
		text := fmt.Sprintf("<%d %d %d>", n, by, time.Since(c.begun))
		text += strings.Repeat("x", max(0, c.Size-len(text)))
		if err := c.visitors[by].wish(`{"type":"say","text":"` + text + `"}`); err != nil {
			return err
		}
	}
	for end := time.Now().Add(patience); len(c.took) < want; {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d deliveries are missing", want-len(c.took), want)
		}
		if err := c.serve(ctx, time.Now().Add(10*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// serve reads what the visitors get, until then.
func (c *crowd) serve(ctx context.Context, then time.Time) error {
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		left := time.Until(then)
		if left <= 0 {
			return nil
		}
		n, err := unix.EpollWait(c.poll, events, int(left.Milliseconds())+1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			if err := c.read(c.visitors[e.Fd]); err != nil {
				return fmt.Errorf("visitor %d: %w", e.Fd, err)
			}
		}
	}
	return ctx.Err()
}

// read takes the frames that have come.
func (c *crowd) read(v *visitor) error {
	n, err := unix.Read(v.fd, c.buffer)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return nil
	case err != nil:
		return err
	case n == 0:
		return errors.New("the server has closed the connection")
	}
	in := c.buffer[:n]
	if len(v.part) > 0 {
		in = append(v.part, in...)
	}
	for {
		opcode, payload, size := frame(in)
		if size == 0 {
			v.part = append([]byte(nil), in...)
			return nil
		}
		if err := c.take(v, opcode, payload); err != nil {
			return err
		}
		in = in[size:]
	}
}

// frame returns the first frame of in, and its size; 0 if it is not there as a whole.
func frame(in []byte) (opcode byte, payload []byte, size int) {
	if len(in) < 2 {
		return 0, nil, 0
	}
	head, length := 2, int(in[1])
	if length == 126 {
		if len(in) < 4 {
			return 0, nil, 0
		}
		head, length = 4, int(binary.BigEndian.Uint16(in[2:]))
	}
	if len(in) < head+length {
		return 0, nil, 0
	}
	return in[0] & 0xf, in[head : head+length], head + length
}

// take notes how long a line has taken, and answers a ping.
func (c *crowd) take(v *visitor, opcode byte, payload []byte) error {
	switch opcode {
	case 1:
		_, line, said := bytes.Cut(payload, []byte(`"text":"\u003c`)) // "<"
		if !said {
			return nil // of who comes
		}
		line, _, _ = bytes.Cut(line, []byte(`\u003e`))
		words := strings.Fields(string(line))
		if len(words) != 3 {
			return fmt.Errorf("no line: %q", payload)
		}
		n, err := strconv.Atoi(words[0])
		by, err1 := strconv.Atoi(words[1])
		sent, err2 := strconv.Atoi(words[2])
		if err := errors.Join(err, err1, err2); err != nil {
			return err
		}
		if by != v.number {
			took := time.Since(c.begun) - time.Duration(sent)
			c.took = append(c.took, took)
			c.last[n] = max(c.last[n], took)
		}
		return nil
	case 9:
		return v.send("\x8a\x80\x00\x00\x00\x00") // our server's pings are empty
	}
	return fmt.Errorf("a frame of opcode %d: %q", opcode, payload)
}

func (c *crowd) close() {
	for _, v := range c.visitors {
		_ = unix.Close(v.fd)
	}
	_ = unix.Close(c.poll)
}
