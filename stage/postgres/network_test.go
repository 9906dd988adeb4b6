package postgres_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// network is a proxy between stores and a server, which does harm to the requests that its plan names. A request is what a
// client sends until a Sync, or a Query; its answer ends with ReadyForQuery. See "Message Formats" in PostgreSQL's
// documentation.
type network struct {
	listener net.Listener
	dial     func() (net.Conn, error) // a connection to the server
	class    func(sql string) string
	over     chan struct{} // closed by close
	all      sync.WaitGroup

	mu    sync.Mutex
	plan  []*fault
	seen  map[string]int // requests of each class
	sent  int
	links map[*link]struct{}
	split bool // a partition lasts
	held  int  // late requests that the server has not answered
}

// fault is what happens to one request.
type fault struct {
	class string
	nth   int  // of the class, from 1
	after bool // to its answer, when the server has done it; otherwise the server does not get it
	harm  harm
	hit   bool
}

type harm string

const (
	drop      harm = "drop"      // both connections are closed
	reset     harm = "reset"     // both are closed with RST
	tear      harm = "tear"      // half of it goes on, then both are closed
	delay     harm = "delay"     // for a short time
	late      harm = "late"      // it goes on after longer than a lease, even if the sender has gone
	silence   harm = "silence"   // from now on nothing gets through; the client learns of it late, and the server never
	partition harm = "partition" // the same for all connections, and for new ones while it lasts
)

var harms = []harm{drop, reset, tear, delay, late, silence, partition}

const (
	shortly = lease / 10
	long    = 4 * lease / 3
)

// newNetwork starts a proxy. class names the SQL of a client.
func newNetwork(t testing.TB, dial func() (net.Conn, error), class func(sql string) string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &network{
		listener: l, dial: dial, class: class,
		over: make(chan struct{}), seen: map[string]int{}, links: map[*link]struct{}{},
	}
	n.all.Go(n.accept)
	return n
}

func (n *network) port() int { return n.listener.Addr().(*net.TCPAddr).Port }

// harmed sets what is to happen, and begins to count anew.
func (n *network) harmed(plan ...*fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plan, n.seen = plan, map[string]int{}
}

// counts returns how many requests there were of each class.
func (n *network) counts() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen
}

// requests returns how many requests there were.
func (n *network) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent
}

// close ends all connections, and returns when nothing of the proxy runs any more.
func (n *network) close() {
	close(n.over)
	_ = n.listener.Close()
	n.mu.Lock()
	for l := range n.links {
		l.end(false)
	}
	n.mu.Unlock()
	n.all.Wait()
}

func (n *network) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		server, err := n.dial()
		if err != nil { // there is no server
			_ = client.Close()
			continue
		}
		l := &link{n: n, client: client, server: server}
		n.add(l)
		n.all.Go(func() { l.ended(l.client, l.requests()) })
		n.all.Go(func() { l.ended(l.server, l.answers()) })
	}
}

func (n *network) add(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[l] = struct{}{}
	select {
	case <-n.over:
		l.end(false)
	default:
	}
	if n.split {
		l.silence()
	}
}

// next counts a request, and returns what is to happen to it.
func (n *network) next(classes []string) (now *fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent++
	for _, class := range classes {
		n.seen[class]++
		for _, f := range n.plan {
			if f.class == class && f.nth == n.seen[class] && !f.hit && now == nil {
				f.hit, now = true, f
			}
		}
	}
	return now
}

// separate makes a partition.
func (n *network) separate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.split = true
	for l := range n.links {
		l.silence()
	}
	n.after(long, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.split = false
	})
}

// mute silences all connections for good, but not new ones: as when the server moves to another machine.
func (n *network) mute() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		l.mu.Lock()
		l.silent = true
		l.mu.Unlock()
	}
}

// after calls f later, unless the proxy is closed first.
func (n *network) after(d time.Duration, f func()) {
	n.all.Go(func() {
		if n.sleep(d) {
			f()
		}
	})
}

// sleep reports whether the proxy is still there afterwards.
func (n *network) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.over:
		return false
	}
}

// link is a connection of a client, and one to the server.
type link struct {
	n              *network
	client, server net.Conn

	mu      sync.Mutex
	silent  bool
	pending []request // those without an answer, in order
	over    bool      // the server sends no more
}

// request is one on its way.
type request struct {
	harm *fault // to its answer, or nil
	late bool   // it counts as held
}

// quiet reports whether no late request is under way.
func (n *network) quiet() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held == 0
}

func (n *network) hold(more int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held += more
}

// silence lets nothing through any more. The client gets a RST some time later.
func (l *link) silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent {
		return
	}
	l.silent = true
	l.n.after(long, func() {
		hangUp(l.client, true)
	})
}

func (l *link) isSilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent
}

// end closes both connections.
func (l *link) end(rst bool) {
	hangUp(l.client, rst)
	hangUp(l.server, rst)
}

// hangUp closes a connection, with RST instead of FIN if that is asked for.
func hangUp(c net.Conn, rst bool) {
	if tcp, ok := c.(*net.TCPConn); ok && rst {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// ended ends the other connection, too, but of a silent link.
func (l *link) ended(side net.Conn, _ error) {
	if l.isSilent() {
		_ = side.Close()
		return
	}
	l.end(false)
}

// forward writes to one side, unless the link is silent.
func (l *link) forward(to net.Conn, message []byte) error {
	if l.isSilent() {
		return nil
	}
	_, err := to.Write(message)
	return err
}

var errHarmed = errors.New("the plan says so")

// strike does the harm of f to a message on its way. If the error is nil, the message, or what is left, goes on.
func (l *link) strike(f *fault, to net.Conn, message []byte) error {
	switch f.harm {
	case drop, reset:
		l.end(f.harm == reset)
		return errHarmed
	case tear:
		_ = l.forward(to, message[:len(message)/2])
		l.end(false)
		return errHarmed
	case delay:
		l.n.sleep(shortly)
	case late:
		l.n.sleep(long)
	case silence:
		l.silence()
	case partition:
		l.n.separate()
	}
	return nil
}

// requests reads what the client sends.
func (l *link) requests() error {
	in := bufio.NewReader(l.client)
	startup, err := readMessage(in, 0)
	if err != nil {
		return err
	}
	if len(startup) == 16 { // a CancelRequest
		return l.forward(l.server, startup)
	}
	if err := l.send(startup, "connect"); err != nil {
		return err
	}
	var request []byte
	var classes []string
	prepared := map[string]string{} // the classes of statements, by name
	for {
		message, err := readMessage(in, 1)
		if err != nil {
			return err
		}
		request = append(request, message...)
		switch text := bytes.Split(message[5:], []byte{0}); message[0] {
		case 'P':
			class := l.n.class(string(text[1]))
			prepared[string(text[0])] = class
			classes = append(classes, class)
		case 'B':
			classes = append(classes, prepared[string(text[1])])
		case 'Q':
			classes = append(classes, l.n.class(string(text[0])))
		}
		switch message[0] {
		case 'S', 'Q':
			slices.Sort(classes)
			err = l.send(request, slices.Compact(classes)...)
			request, classes = nil, nil
		case 'X', 'p', 'H': // Terminate, a part of the password, Flush
			err = l.forward(l.server, request)
			request = nil
		}
		if err != nil {
			return err
		}
	}
}

// send passes a request on to the server.
func (l *link) send(bytes []byte, classes ...string) error {
	r := request{harm: l.n.next(classes)}
	if f := r.harm; f != nil {
		if r.late = f.harm == late; r.late {
			l.n.hold(+1)
		}
		if !f.after {
			if err := l.strike(f, l.server, bytes); err != nil {
				return err
			}
			r.harm = nil
		}
	}
	l.mu.Lock()
	l.pending = append(l.pending, r)
	if l.over {
		l.done()
	}
	l.mu.Unlock()
	return l.forward(l.server, bytes)
}

// done takes the first request from pending, which was answered.
func (l *link) done() {
	if len(l.pending) == 0 {
		return
	}
	if l.pending[0].late {
		l.n.hold(-1)
	}
	l.pending = l.pending[1:]
}

// answers reads what the server sends. Without a request, that is a notification.
func (l *link) answers() error {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
		for len(l.pending) > 0 {
			l.done()
		}
	}()
	in := bufio.NewReader(l.server)
	var answer []byte
	for {
		message, err := readMessage(in, 1)
		if err != nil {
			return err
		}
		answer = append(answer, message...)
		complete := message[0] == 'Z'
		l.mu.Lock()
		var f *fault
		if len(l.pending) > 0 {
			f = l.pending[0].harm
		}
		whole := complete || f == nil || f.class == "connect" // whose answer has several parts
		if f != nil && whole {
			l.pending[0].harm = nil
		}
		if complete {
			l.done()
		}
		l.mu.Unlock()
		if !whole {
			continue
		}
		if f != nil {
			if err := l.strike(f, l.client, answer); err != nil {
				return err
			}
		}
		if err := l.forward(l.client, answer); err != nil {
			return err
		}
		answer = nil
	}
}

// readMessage reads a message whose length, which counts itself, comes after that many bytes.
func readMessage(in io.Reader, after int) ([]byte, error) {
	head := make([]byte, after+4)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(head[after:]))
	if length < 4 || length > 1<<20 {
		return nil, errors.New("no message of PostgreSQL's")
	}
	message := append(head, make([]byte, length-4)...)
	_, err := io.ReadFull(in, message[after+4:])
	return message, err
}
