package upgrade

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/handover"
)

// predecessor is the older program, as the new one sees it. The zero predecessor means that no older program has
// started this one.
type predecessor struct {
	pid   int      // 0: none
	from  *os.File // nil: there is nothing more to say to it, or to hear from it
	to    *os.File
	lines *bufio.Reader // of from
}

// Inherit takes the sockets that an older program, or systemd, has passed on, and gives them to the Services. It is
// called before their Setup, once. Sockets that no service takes are closed, and Setup logs them. After an error the
// program cannot go on: it has said so to the older one.
//
// From now on the signal for an upgrade does not end the program. Until Setup it does nothing.
func (u *Upgrade) Inherit() error {
	if sig := u.signal(); sig != nil {
		signal.Ignore(sig)
	}
	m, err := u.predecessor.read()
	if err != nil {
		err = fmt.Errorf("what the older program has passed on: %w", err)
	} else {
		err = cmp.Or(u.findKeepers(), u.share(m))
	}
	if err != nil {
		u.predecessor.refuse(err)
		return fmt.Errorf("upgrade: %w", err)
	}
	return nil
}

// share gives the services their sockets from m, and from systemd.
func (u *Upgrade) share(m *message) error {
	activated, err := activation()
	if err != nil {
		return err
	}
	sockets := append(m.Sockets, activated...)
	for _, l := range handover.Listeners(u.Services) {
		if sockets, err = l.Inherit(sockets); err != nil {
			return err
		}
	}
	for _, x := range sockets {
		at, _ := handover.Adopt(x.FDs[0]) // nil if it is not known
		u.unclaimed = append(u.unclaimed, strings.TrimSpace(fmt.Sprintf("%s %v", x.Name, at)))
	}
	closeAll(sockets)
	return nil
}

// read reads the message of the older program. It is empty if there is no such program.
func (p *predecessor) read() (*message, error) {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return &message{}, nil
	}
	_ = os.Unsetenv(variable) // not for the children of this process
	var in, out int
	if n, err := fmt.Sscanf(text, "%d %d", &in, &out); n != 2 {
		return nil, fmt.Errorf("%s=%q: %w", variable, text, err)
	}
	closeOnExec(in)
	closeOnExec(out)
	p.from, p.to = os.NewFile(uintptr(in), "from the older program"), os.NewFile(uintptr(out), "to the older program")
	p.lines = bufio.NewReader(p.from)
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	m := &message{}
	if err := json.Unmarshal(line, m); err != nil {
		return nil, err
	}
	p.pid = m.PID
	return m, nil
}

// takeOver says that this program is ready, and waits for the word of the older one. It returns nil when this program
// may accept. If a signal has come, the older program must go on.
func (p *predecessor) takeOver(u *Upgrade) error {
	if p.from == nil {
		return nil
	}
	if u.group.Order() != nil {
		return errEnding
	}
	_, _ = fmt.Fprintln(p.to, ready) // if nobody reads it, the next line says why
	word, all, err := p.receive()
	switch {
	case err == io.EOF: // one that lives says no, or ends this one, before it closes the pipe
		u.log.Warn("the older program has ended in the middle of the upgrade: this one takes over", zap.Int("process", p.pid))
		p.close()
		return nil
	case err != nil:
		return fmt.Errorf("no word from the older program, process %d: %w", p.pid, err)
	case word != accept:
		return fmt.Errorf("refused by the older program, process %d: %s", p.pid, strings.TrimPrefix(word, no))
	}
	if err := u.load(all); err != nil {
		return err
	}
	if u.group.Order() != nil {
		return errEnding
	}
	_, _ = fmt.Fprintln(p.to, serving)
	u.log.Info("in place of an older program", zap.Int("process", p.pid))
	p.close()
	return nil
}

// refuse says to the older program, if it waits, that this one has failed with err. A nil err only closes the pipes.
func (p *predecessor) refuse(err error) {
	if p.from == nil {
		return
	}
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "upgrade: ")
		_, _ = fmt.Fprintln(p.to, no+strings.ReplaceAll(reason, "\n", " "))
	}
	p.close()
}

func (p *predecessor) close() {
	_ = p.from.Close()
	_ = p.to.Close()
	p.from = nil
}

// The variables of socket activation, see sd_listen_fds(3).
const (
	listenPID   = "LISTEN_PID"
	listenFDs   = "LISTEN_FDS"
	listenNames = "LISTEN_FDNAMES"
)

// firstFD is the first descriptor that systemd passes on: SD_LISTEN_FDS_START.
const firstFD = 3

// activation returns the sockets that systemd has opened. The variables are removed: they are not for the children of this
// process. go-systemd would read them too, but into values of type os.File: see Upgrade.message.
func activation() (all []*handover.Sockets, err error) {
	pid, count, names := os.Getenv(listenPID), os.Getenv(listenFDs), os.Getenv(listenNames)
	for _, name := range []string{listenPID, listenFDs, listenNames} {
		_ = os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) || count == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 1<<16 {
		return nil, fmt.Errorf("%s=%q", listenFDs, count)
	}
	var nameOf []string // nil: systemd has given no names
	if names != "" {
		if nameOf = strings.Split(names, ":"); len(nameOf) != n {
			return nil, fmt.Errorf("%s=%q has not as many names as %s=%d", listenNames, names, listenFDs, n)
		}
	}
	known := map[string]*handover.Sockets{}
	for i := range n {
		fd := firstFD + i
		addr, err := handover.Adopt(fd)
		if err != nil { // a FIFO, for example
			return nil, fmt.Errorf("%s: descriptor %d is neither a socket that listens nor one for datagrams: %w", listenFDs, fd, err)
		}
		x := &handover.Sockets{Lent: true}
		if nameOf != nil && nameOf[i] != "unknown" {
			x.Name = nameOf[i]
		}
		key := x.Name + " " + addr.Network() + " " + addr.String()
		if known[key] == nil { // ReusePort= makes several sockets of one address
			known[key] = x
			all = append(all, x)
		}
		known[key].FDs = append(known[key].FDs, fd)
	}
	return all, nil
}
