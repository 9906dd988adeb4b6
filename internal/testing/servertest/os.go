package servertest

import (
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// OS makes the system calls of netpoll.System, and counts the calls that a connection repeats. Its fields may be set
// while it is not in use, or on the thread of the scheduler that uses it. Any goroutine may call its methods.
type OS struct {
	netpoll.System

	// Fail is called before each counted call, with its name and the descriptor. The call fails with the error that it
	// returns.
	Fail func(call string, fd int) error
	// Events may add events to the result of a Wait, or remove some. There is room for all of got[:cap(got)].
	Events func(got []netpoll.Event) []netpoll.Event
	// Most bounds the bytes of a Receive, a Send or a SendFile, if it is not 0. After a Send that is cut short the kernel
	// reports no room, since there was room all the time.
	Most int

	partial atomic.Bool // an event has said so
	dialled int         // a connected socket that the next dial returns; 0: none

	mu    sync.Mutex
	calls map[string]int
	bytes map[string]int
	tags  map[int]uint64 // by descriptor, as last added
}

// Failing returns a value for OS.Fail with which the calls of that name fail with err.
func Failing(call string, err error) func(string, int) error {
	return func(name string, _ int) error {
		if name == call {
			return err
		}
		return nil
	}
}

// Receives returns how many receives a message on TCP takes: a second one, which returns EAGAIN, if the poller has said
// netpoll.Partial.
func (o *OS) Receives() int {
	if o.partial.Load() {
		return 2
	}
	return 1
}

// Count returns how many calls of that name were made since the last Forget: "accept", "add", "close", "closewrite",
// "interrupt", "receive", "reset", "send", "sendfile", "sendpackets", "wait", and "gathered" for sends of two parts.
func (o *OS) Count(call string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[call]
}

// Bytes returns how many bytes the calls of that name have transferred since the last Forget.
func (o *OS) Bytes(call string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes[call]
}

// Forget sets all counts to 0.
func (o *OS) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.calls)
	clear(o.bytes)
}

// Tag returns the tag with which fd was last added to a poller.
func (o *OS) Tag(fd int) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tags[fd]
}

func (o *OS) call(name string, fd int) error {
	o.mu.Lock()
	if o.calls == nil {
		o.calls, o.bytes, o.tags = map[string]int{}, map[string]int{}, map[int]uint64{}
	}
	o.calls[name]++
	o.mu.Unlock()
	if o.Fail != nil {
		return o.Fail(name, fd)
	}
	return nil
}

func (o *OS) moved(name string, n int) {
	o.mu.Lock()
	o.bytes[name] += n
	o.mu.Unlock()
}

func (o *OS) most(p []byte) []byte {
	if o.Most > 0 {
		return p[:min(len(p), o.Most)]
	}
	return p
}

// Accept implements engine.OS, as do the methods below.
func (o *OS) Accept(fd int) (int, error) {
	if err := o.call("accept", fd); err != nil {
		return -1, err
	}
	return o.System.Accept(fd)
}

// Receive receives at most Most bytes.
func (o *OS) Receive(fd int, p []byte) (int, error) {
	if err := o.call("receive", fd); err != nil {
		return 0, err
	}
	n, err := o.System.Receive(fd, o.most(p))
	o.moved("receive", n)
	return n, err
}

// Send sends at most Most bytes.
func (o *OS) Send(fd int, head, p []byte) (int, error) {
	if len(head) > 0 && len(p) > 0 {
		_ = o.call("gathered", fd)
	}
	if err := o.call("send", fd); err != nil {
		return 0, err
	}
	if o.Most > 0 {
		head = o.most(head)
		p = p[:min(len(p), o.Most-len(head))]
	}
	n, err := o.System.Send(fd, head, p)
	o.moved("send", n)
	return n, err
}

// SendFile sends at most Most bytes of f.
func (o *OS) SendFile(fd int, f *os.File, offset int64, n int) (int, error) {
	if err := o.call("sendfile", fd); err != nil {
		return 0, err
	}
	if o.Most > 0 {
		n = min(n, o.Most)
	}
	n, err := o.System.SendFile(fd, f, offset, n)
	o.moved("sendfile", n)
	return n, err
}

// SendPackets sends packets, unless Fail returns an error.
func (o *OS) SendPackets(fd int, b *netpoll.PacketBuffer, all []netpoll.Packet) (int, error) {
	if err := o.call("sendpackets", fd); err != nil {
		return 0, err
	}
	return o.System.SendPackets(fd, b, all)
}

// CloseWrite closes the sending side, unless Fail returns an error.
func (o *OS) CloseWrite(fd int) error {
	if err := o.call("closewrite", fd); err != nil {
		return err
	}
	return o.System.CloseWrite(fd)
}

// Close closes fd even if Fail returns an error, as the kernel does.
func (o *OS) Close(fd int) error {
	failed := o.call("close", fd)
	if err := o.System.Close(fd); err != nil {
		return err
	}
	return failed
}

// Reset closes fd even if Fail returns an error.
func (o *OS) Reset(fd int) error {
	failed := o.call("reset", fd)
	if err := o.System.Reset(fd); err != nil {
		return err
	}
	return failed
}

// DialTCP returns the socket that the test has connected, if there is one.
func (o *OS) DialTCP(addr netip.AddrPort) (fd int, done bool, err error) {
	if o.dialled != 0 {
		return o.dialled, true, nil
	}
	return o.System.DialTCP(addr)
}

// DialUnix returns the socket that the test has connected, if there is one.
func (o *OS) DialUnix(path string) (fd int, done bool, err error) {
	if o.dialled != 0 {
		return o.dialled, true, nil
	}
	return o.System.DialUnix(path)
}

// OpenPoller opens a poller whose waits Events may change.
func (o *OS) OpenPoller() (engine.Poller, error) {
	if err := o.call("open", -1); err != nil {
		return nil, err
	}
	p, err := o.System.OpenPoller()
	if err != nil {
		return nil, err
	}
	return &poller{Poller: p, os: o}, nil
}

// OpenBatch returns a batch that makes the calls one by one, so that the test sees them.
func (o *OS) OpenBatch(int) (engine.Batch, error) { return oneByOne{o}, nil }

type oneByOne struct{ os *OS }

func (b oneByOne) Do(calls []netpoll.Call) {
	for i := range calls {
		calls[i].Make(b.os)
	}
}

func (oneByOne) Close() error { return nil }

type poller struct {
	*netpoll.Poller
	os *OS
}

func (p *poller) Add(fd int, tag uint64, want netpoll.Ready) error {
	if err := p.os.call("add", fd); err != nil {
		return err
	}
	p.os.mu.Lock()
	p.os.tags[fd] = tag
	p.os.mu.Unlock()
	return p.Poller.Add(fd, tag, want)
}

func (p *poller) Wait(events []netpoll.Event, atMost time.Duration) (int, error) {
	if err := p.os.call("wait", -1); err != nil {
		return 0, err
	}
	n, err := p.Poller.Wait(events, atMost)
	if err == nil && slices.ContainsFunc(events[:n], func(e netpoll.Event) bool { return e.Ready&netpoll.Partial != 0 }) {
		p.os.partial.Store(true)
	}
	if p.os.Events != nil && err == nil {
		n = len(p.os.Events(events[:n]))
	}
	return n, err
}

func (p *poller) Interrupt() {
	_ = p.os.call("interrupt", -1)
	p.Poller.Interrupt()
}
