package upgrade

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
)

// predecessor is what a new program has got from the old one. The zero predecessor means that no older program has started this one.
type predecessor struct {
	old   int      // the process number; 0: none
	from  *os.File // nil when the old program needs no word any more
	to    *os.File
	lines *bufio.Reader
}

// Inherit takes what an older program, or systemd, has passed on, and gives it to the Services. It is called before their Setup,
// once. Sockets that no service takes are closed, which Setup logs. The error says that what has been passed on cannot be used.
//
// From now on the signal for an upgrade does not end the program.
func (u *Upgrade) Inherit() error {
	if sig := u.signal(); sig != nil {
		signal.Ignore(sig) // until Setup
	}
	l, err := u.predecessor.read()
	if err != nil {
		err = fmt.Errorf("what the older program has passed on: %w", err)
	} else {
		err = u.share(l)
	}
	if err != nil {
		u.predecessor.refuse(err)
		return fmt.Errorf("upgrade: %w", err)
	}
	return nil
}

// share gives the services what is in l.
func (u *Upgrade) share(l *message) error {
	activated, err := activation()
	if err != nil {
		return err
	}
	sockets := append(l.Sockets, activated...)
	for _, v := range u.Services {
		if x, ok := v.(Listener); ok {
			if sockets, err = x.Inherit(sockets); err != nil {
				return err
			}
		}
		if x, ok := v.(Keeper); ok {
			if state, ok := l.States[x.StateName()]; ok {
				if err := x.LoadState(state); err != nil {
					return err
				}
			}
		}
	}
	for _, x := range sockets {
		at, _, _ := monitor.AdoptSocket(x.FDs[0]) // nil if it is not known
		u.unclaimed = append(u.unclaimed, strings.TrimSpace(fmt.Sprintf("%s %v", x.Name, at)))
	}
	closeAll(sockets)
	return nil
}

// read reads what the old program writes.
func (h *predecessor) read() (*message, error) {
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
	h.from, h.to = os.NewFile(uintptr(in), "from the older program"), os.NewFile(uintptr(out), "to the older program")
	h.lines = bufio.NewReader(h.from)
	line, err := h.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	l := &message{}
	if err := json.Unmarshal(line, l); err != nil {
		return nil, err
	}
	h.old = l.PID
	return l, nil
}

// takeOver says that this program is ready, and returns when it may accept.
func (h *predecessor) takeOver(log *zap.Logger) error {
	if h.from == nil {
		return nil
	}
	_, _ = fmt.Fprintln(h.to, ready) // if nobody reads it, the next line says why
	line, err := h.lines.ReadString('\n')
	line = strings.TrimSuffix(line, "\n")
	switch {
	case line == accept:
		_, _ = fmt.Fprintln(h.to, serving)
		log.Info("in place of an older program", zap.Int("process", h.old))
	case err == io.EOF && gone(h.old):
		log.Warn("the older program has ended in the middle of the upgrade: this one takes over", zap.Int("process", h.old))
	case err != nil:
		return fmt.Errorf("upgrade: no word from the older program, process %d: %w", h.old, err)
	default:
		return fmt.Errorf("upgrade: refused by the older program, process %d: %s", h.old, strings.TrimPrefix(line, no))
	}
	h.close()
	return nil
}

// gone reports whether the parent of this process, whose files are closed, has ended. That takes a moment.
func gone(parent int) bool {
	for range 500 {
		if os.Getppid() != parent {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// refuse says that this program has failed, if the old one waits for its word.
func (h *predecessor) refuse(err error) {
	if h.from == nil {
		return
	}
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "upgrade: ")
		_, _ = fmt.Fprintln(h.to, no+strings.ReplaceAll(reason, "\n", " "))
	}
	h.close()
}

func (h *predecessor) close() {
	_ = h.from.Close()
	_ = h.to.Close()
	h.from = nil
}

// The variables of socket activation, see sd_listen_fds(3).
const (
	listenPID   = "LISTEN_PID"
	listenFDs   = "LISTEN_FDS"
	listenNames = "LISTEN_FDNAMES"
)

// activation returns the sockets that systemd has opened. The variables are removed: they are not for the children of this
// process.
func activation() (all []*service.Sockets, err error) {
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
	var name []string
	if names != "" {
		if name = strings.Split(names, ":"); len(name) != n {
			return nil, fmt.Errorf("%s=%q has not as many names as %s=%d", listenNames, names, listenFDs, n)
		}
	}
	known := map[string]*service.Sockets{}
	for i := range n {
		const first = 3 // SD_LISTEN_FDS_START
		addr, _, err := monitor.AdoptSocket(first + i)
		if err != nil { // a FIFO, or a socket for datagrams
			return nil, fmt.Errorf("%s: %w", listenFDs, err)
		}
		x := &service.Sockets{Lent: true}
		if name != nil && name[i] != "unknown" {
			x.Name = name[i]
		}
		key := x.Name + " " + addr.Network() + " " + addr.String()
		if known[key] == nil { // ReusePort= makes several sockets of one address
			known[key] = x
			all = append(all, x)
		}
		known[key].FDs = append(known[key].FDs, first+i)
	}
	return all, nil
}
