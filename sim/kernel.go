package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	gonet "net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// kernel is the operating system of one Server: its descriptors and calls.
type kernel struct {
	w       *World
	server  *Server
	id      uint64
	files   []*file       // by descriptor; nil: free
	short   time.Duration // until then a fault lets Accept fail with shortOf
	shortOf syscall.Errno
	futile  int // Accepts without a free descriptor since begun; a close or a new event makes it 0
	begun   time.Duration
	lacked  time.Duration // when an accept or a registration last failed for want of a descriptor or of memory; 0: never
}

// file is the object of a descriptor: the end of a connection, a listening socket, a socket for datagrams, or a poller.
type file struct {
	k       *kernel
	fd      int
	end     *end
	l       *listening
	p       *poller
	fake    *Descriptor
	packets *packetSocket
	reg     *registration // of an end, or a fake
	ownReg  registration
}

// firstFile is the first descriptor after standard input, output and error.
const firstFile = 3

func newKernel(v *Server) *kernel {
	return &kernel{w: v.w, server: v, id: uint64(len(v.w.servers)), files: make([]*file, firstFile, 64)}
}

func (k *kernel) String() string { return k.server.name }
func (k *kernel) number() uint64 { return numbersOfKernels | k.id }

func (f *file) String() string {
	what := "a poller"
	switch {
	case f.end != nil:
		what = fmt.Sprintf("connection %d", f.end.c.id)
	case f.l != nil:
		what = f.l.String()
	case f.fake != nil:
		what = "of the scenario"
	case f.packets != nil:
		what = f.packets.String()
	}
	return fmt.Sprintf("descriptor %d of %v (%s)", f.fd, f.k, what)
}
func (f *file) number() uint64 { return numbersOfFiles | f.k.id<<32 | uint64(f.fd) }

// ready puts the descriptor on its poller's list.
func (f *file) ready() {
	if f.reg != nil {
		f.reg.list()
	}
}

// install gives f the lowest free number, as POSIX demands. So the number of a closed descriptor is soon in use again.
func (k *kernel) install(f *file) int {
	fd := firstFile
	for fd < len(k.files) && k.files[fd] != nil {
		fd++
	}
	if fd == len(k.files) {
		k.files = append(k.files, nil)
	}
	f.k, f.fd = k, fd
	k.files[fd] = f
	return fd
}

func (k *kernel) remove(fd int) {
	k.files[fd] = nil
	k.futile = 0
}

func (k *kernel) has(fd int) bool { return fd >= 0 && fd < len(k.files) && k.files[fd] != nil }

// get returns an open descriptor. If it is not open the world fails, and gets a connection that is closed.
func (k *kernel) get(fd int, what string) *file {
	if k.has(fd) {
		return k.files[fd]
	}
	k.w.Errorf("%v: %s on descriptor %d, which is not open", k, what, fd)
	return k.closed(fd)
}

func (k *kernel) closed(fd int) *file {
	e := &k.w.net.newConnection(true).ends[0]
	e.closed = true
	return &file{k: k, fd: fd, end: e}
}

// view is a kernel as one scheduler sees it: its engine.OS.
type view struct {
	*kernel
	r *runner
	p *poller
}

// OpenPoller opens a poller, which takes two descriptors.
func (v *view) OpenPoller() (engine.Poller, error) {
	k := v.kernel
	p := &poller{k: k, r: v.r}
	for i := range p.files {
		p.files[i] = k.install(&file{p: p})
	}
	v.p = p
	return p, k.w.result(k, "open a poller", p.files[0], nil)
}

// OpenBatch opens a batch, which takes a descriptor. The fault is only for batches that are opened in use, since a scheduler that
// wants no single calls opens one with its poller.
func (v *view) OpenBatch(int) (engine.Batch, error) {
	if v.p.waits > 0 && v.w.fault(refusedBatch, v.kernel) {
		return nil, v.w.result(v.kernel, "open a batch", 0, syscall.EPERM)
	}
	f := &file{p: v.p}
	fd := v.kernel.install(f)
	return &calls{v, fd}, v.w.result(v.kernel, "open a batch", fd, nil)
}

// calls is the engine.Batch of a scheduler. Its calls are made in any order.
type calls struct {
	v  *view
	fd int
}

func (b *calls) Do(all []netpoll.Call) {
	for _, i := range rand.New(&b.v.w.dice[network]).Perm(len(all)) {
		all[i].Make(b.v)
	}
}

func (b *calls) Close() error {
	b.v.remove(b.fd)
	return nil
}

// result records the result of a call, which belongs to a descriptor or to the kernel.
func (w *World) result(of subject, call string, n int, err error) error {
	w.note(eventKind("%[1]v: "+call+": %[2]v"), of, returned(n, err), 0)
	return err
}

func (v *view) ListenTCP(addr netip.AddrPort, backlog int) (int, error) {
	return v.listen("listen", func() (*listening, error) { return v.w.net.listenTCP(addr, true, backlog) })
}

func (v *view) JoinTCP(addr netip.AddrPort, backlog int) (int, error) {
	return v.listen("listen", func() (*listening, error) { return v.w.net.listenTCP(addr, false, backlog) })
}

func (v *view) ListenUnix(path string, backlog int, _ func(string) error) (int, error) {
	return v.listen("listen at a path", func() (*listening, error) { return v.w.net.listenUnix(path, backlog) })
}

func (v *view) listen(call string, listen func() (*listening, error)) (int, error) {
	l, err := listen()
	if err != nil {
		return -1, v.w.result(v.kernel, call, 0, err)
	}
	fd := v.install(&file{l: l})
	return fd, v.w.result(v.kernel, call, fd, nil)
}

func (v *view) DialTCP(addr netip.AddrPort) (fd int, done bool, err error) {
	return v.dial("dial", func(f *file) (*end, error) { return v.w.net.dialTCP(addr, f) })
}

func (v *view) DialUnix(path string) (fd int, done bool, err error) {
	return v.dial("dial a path", func(f *file) (*end, error) { return v.w.net.dialUnix(path, f) })
}

func (v *view) dial(call string, dial func(*file) (*end, error)) (fd int, done bool, err error) {
	f := &file{k: v.kernel}
	e, err := dial(f)
	if err == nil && e.phase == dead { // refused at once
		err = e.takeError()
		e.close()
	}
	if err != nil {
		return -1, false, v.w.result(v.kernel, call, 0, err)
	}
	f.end = e
	fd = v.install(f)
	return fd, e.phase == connected, v.w.result(v.kernel, call, fd, nil)
}

func (v *view) Accept(fd int) (int, error) {
	f := v.get(fd, "accept")
	if f.l == nil {
		v.w.Errorf("%v: accept, but it is not a listening socket", f)
		return -1, syscall.EINVAL
	}
	if v.r.accepts++; v.r.accepts > mostAccepts {
		v.w.Errorf("%v accepts for the %dth time in one turn", v.r, v.r.accepts)
	}
	got, err := v.accept(f.l)
	v.w.note(fdAccepts, f, returned(got, err), 0)
	return got, err
}

func (v *view) accept(l *listening) (int, error) {
	reg := l.watchedBy(v.p)
	if v.isShort(l) {
		v.lacked = v.w.now
		v.checkAccepts()
		return -1, v.shortOf
	}
	if len(l.queue) == 0 {
		if reg != nil {
			reg.reported &^= netpoll.In
		}
		return -1, syscall.EAGAIN
	}
	e := l.queue.pop()
	if !e.c.local && v.w.fault(abortedConn, l) {
		e.c.disrupt()
		l.refuse(e)
		of := [...]syscall.Errno{syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN, syscall.EHOSTUNREACH}
		return -1, of[v.w.dice[faults].below(len(of))]
	}
	g := &file{end: e}
	e.holder = g
	return v.install(g), nil
}

// mostAccepts bounds the calls of a service in one turn: 64 connections, and a call that finds none.
const mostAccepts = 65

// checkAccepts fails the world if Accept is called again and again without a free descriptor.
func (k *kernel) checkAccepts() {
	const often, window = 64, 10 * time.Millisecond
	if k.w.now > k.begun+window {
		k.begun, k.futile = k.w.now, 0
	}
	if k.futile++; k.futile > often {
		k.w.Errorf("%v spins: it has called accept %d times in %v without a free descriptor", k, k.futile, k.w.now-k.begun)
	}
}

// isShort reports whether a fault leaves no descriptor. As in accept4, that is checked first, so the error does not show whether a
// connection is there.
func (v *view) isShort(l *listening) bool {
	w, d := v.w, &v.w.dice[faults]
	if w.now >= v.short && len(l.queue) > 0 && w.fault(noDescriptors, v.kernel) {
		v.short = w.now + w.lasts(time.Millisecond, time.Second)
		v.shortOf = [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}[d.below(4)]
	}
	return w.now < v.short
}

// stream is get for calls on connections. A scheduler must not use a connection that another one watches.
func (v *view) stream(fd int, what string) *file {
	f := v.get(fd, what)
	switch {
	case f.end == nil:
		v.w.Errorf("%v: %s, but it is not a connection", f, what)
		return v.closed(fd)
	case f.reg != nil && f.reg.p.r != v.r:
		v.w.Errorf("%v: %s by %v, but %v watches it", f, what, v.r, f.reg.p.r)
	}
	return f
}

func (v *view) Receive(fd int, p []byte) (int, error) {
	f := v.stream(fd, "receive")
	if len(p) == 0 {
		return 0, nil
	}
	if r := f.reg; r != nil && r.reported&netpoll.In == 0 {
		v.w.Errorf("%v: receive, but it was empty, and no event has reported input since", f)
	}
	n, err := f.receive(p)
	f.learn(n, len(p), err)
	v.w.note(fdReceives, f, returned(n, err), int64(len(p)))
	return n, err
}

// receive is that of the end, with faults.
func (f *file) receive(p []byte) (int, error) {
	w, e := f.k.w, f.end
	most := min(len(p), e.unread())
	switch {
	case (most > 0 || e.readable()) && w.fault(falseEmpty, f):
		f.later()
		return 0, syscall.EAGAIN
	case most > 1 && w.fault(shortRead, f):
		p = p[:1+w.dice[faults].below(most-1)]
		if !e.c.local {
			f.later() // as if the rest came then
		}
	}
	return e.receive(p)
}

// learn updates what a caller may conclude from events and results, by the rule of package netpoll.
func (f *file) learn(n, room int, err error) {
	r := f.reg
	switch {
	case r == nil:
	case err == syscall.EAGAIN:
		r.reported &^= netpoll.In
	case err == nil && n < room && !f.end.c.local && r.reported&(netpoll.PeerClosed|netpoll.Error) == 0:
		r.reported &^= netpoll.In
	}
}

// later lets an event come after a while.
func (f *file) later() {
	if f.reg != nil {
		f.reg.later(20*time.Microsecond, 10*time.Millisecond)
	}
}

func (v *view) Send(fd int, head, p []byte) (int, error) {
	return v.send(v.stream(fd, "send"), head, p)
}

// mostVain bounds the sends that find no room without an event that reports some. A few are right: there is more to send, or a
// deadline has passed.
const mostVain = 64

func (v *view) send(f *file, head, p []byte) (int, error) {
	n, err := f.send(head, p)
	if r := f.reg; r != nil && err == syscall.EAGAIN {
		if r.vain++; r.vain > mostVain {
			v.w.Errorf("%v spins: %d sends found no room, and no event has reported any", f, r.vain)
		}
	}
	v.w.note(fdSends, f, returned(n, err), int64(len(head)+len(p)))
	return n, err
}

// send is that of the end, with faults.
func (f *file) send(head, p []byte) (int, error) {
	w, e := f.k.w, f.end
	if e.phase != connected || e.writeEnded {
		return e.send(head, p)
	}
	most := min(len(head)+len(p), e.out.room())
	switch {
	case most > 0 && w.fault(falseFull, f):
		f.later()
		return 0, syscall.EAGAIN
	case most > 1 && w.fault(shortWrite, f):
		f.later()
		n := 1 + w.dice[faults].below(most-1)
		head = head[:min(n, len(head))]
		p = p[:n-len(head)]
	}
	return e.send(head, p)
}

// SendFile reads a file of the real system. Its contents are part of the scenario.
func (v *view) SendFile(fd int, from *os.File, offset int64, n int) (int, error) {
	f := v.stream(fd, "sendfile")
	p := make([]byte, min(n, mostOfFile))
	k, err := from.ReadAt(p, offset)
	switch {
	case err == io.EOF && k == 0:
		return 0, nil
	case err != nil && err != io.EOF:
		return 0, err
	}
	return v.send(f, nil, p[:k])
}

// mostOfFile is the most that one SendFile sends. Linux's uses a pipe of this size.
const mostOfFile = 64 << 10

func (v *view) CloseWrite(fd int) error {
	f := v.stream(fd, "closing the write side")
	v.ends(f.end.c)
	return v.w.result(f, "close the write side", 0, f.end.closeWrite())
}

// soon is how long after a failed accept a service closes a connection.
const soon = 10 * time.Millisecond

// ends is called when the server ends its side of a connection, perhaps to have its descriptor for a client that waits.
func (k *kernel) ends(c *connection) {
	c.spared = c.spared || k.lacked > 0 && k.w.now <= k.lacked+soon
}

func (v *view) Close(fd int) error { return v.release("close", fd) }
func (v *view) Reset(fd int) error { return v.release("reset", fd) }

// release closes a descriptor, by Close or Reset.
func (v *view) release(call string, fd int) (err error) {
	w, f := v.w, v.get(fd, call)
	if f.p != nil {
		w.Errorf("%v: %v, but it belongs to a poller", f, call)
	}
	if f.p != nil || !v.has(fd) {
		return syscall.EBADF
	}
	v.remove(fd)
	if f.reg != nil {
		f.reg.drop()
	}
	switch {
	case f.l != nil:
		for len(f.l.watches) > 0 {
			f.l.watches[0].drop()
		}
		f.l.close()
	case f.packets != nil:
		f.packets.close()
	case call == "reset":
		f.end.reset()
	default:
		v.ends(f.end.c)
		f.end.close()
	}
	if w.fault(closeError, f) {
		err = syscall.EIO
	}
	return v.w.result(f, call, 0, err)
}

func (v *view) Unlink(path string) error {
	return v.w.result(v.kernel, "unlink", 0, v.w.net.unlink(path))
}

func (v *view) SocketError(fd int) error {
	f := v.stream(fd, "socket error")
	return v.w.result(f, "socket error", 0, f.end.takeError())
}

func (v *view) LocalAddr(fd int) gonet.Addr {
	if f := v.get(fd, "local address"); f.l != nil {
		return f.l.address()
	}
	return v.stream(fd, "local address").end.localAddr()
}

func (v *view) PeerAddrPort(fd int) netip.AddrPort {
	e := v.stream(fd, "peer address").end
	return e.c.addr[1-e.side]
}

func (v *view) PeerAddr(fd int) gonet.Addr {
	return v.stream(fd, "peer address").end.peerAddr()
}

// Options have no effect.
func (v *view) SetNoDelay(fd int, _ bool) error            { return v.option(fd) }
func (v *view) SetKeepAlive(fd int, _ time.Duration) error { return v.option(fd) }
func (v *view) SetBuffers(fd, _, _ int) error              { return v.option(fd) }

func (v *view) option(fd int) error {
	v.get(fd, "an option")
	return nil
}

func (v *view) Waiting(fd int) bool {
	f := v.get(fd, "waiting")
	return f.l != nil && len(f.l.queue) > 0
}

// watchedBy returns the registration with a poller, or nil.
func (l *listening) watchedBy(p *poller) *registration {
	i := slices.IndexFunc(l.watches, func(r *registration) bool { return r.p == p })
	if i < 0 {
		return nil
	}
	return l.watches[i]
}
