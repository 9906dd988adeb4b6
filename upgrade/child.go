package upgrade

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/service"
)

// patience is how long a new program may take until it is ready, by default.
const patience = time.Minute

// The words between the two programs, each a line.
const (
	ready   = "ready"   // the new one to the old one: all services are set up
	no      = "no: "    // with the reason: either of them to the other
	accept  = "go"      // the old one to the new one: it may accept
	serving = "serving" // the new one to the old one: it does
)

// message is what the old program writes first, in JSON: what the new one gets.
type message struct {
	PID     int                // of the old program
	Sockets []*service.Sockets // with the numbers of the descriptors there
	States  map[string][]byte
}

// variable names the two descriptors by which the programs talk: the new one reads from the first and writes to the second.
const variable = "DAIMON_UPGRADE"

// child is the new program, as the old one sees it.
type child struct {
	process *os.Process
	to      *os.File
	from    *os.File
	lines   *bufio.Reader
}

// replace starts the new program, and returns its number when it serves.
func (u *Upgrade) replace() (pid int, err error) {
	within := cmp.Or(u.Within, patience)
	ctx, cancel := context.WithTimeoutCause(u.living, within, fmt.Errorf("it was not ready in %v", within))
	defer cancel()
	c, err := u.start(ctx)
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, c.interrupt)()
	if err := c.handshake(u.ending); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return 0, fmt.Errorf("the new program, process %d: %w", c.process.Pid, c.refuse(err))
	}
	c.close()
	go c.reap(u.log)
	return c.process.Pid, nil
}

// reap waits until the new program has ended, which would be a zombie otherwise: this one may take long to end.
func (c *child) reap(log *zap.Logger) {
	if state, err := c.process.Wait(); err == nil {
		log.Info("the program that has replaced this one has ended", zap.Int("process", state.Pid()), zap.Stringer("state", state))
	}
}

// start starts the new program. Its message is in the pipe by then, in case that this process is killed.
func (u *Upgrade) start(ctx context.Context) (*child, error) {
	program, err := executable(u.Program)
	if err != nil {
		return nil, fmt.Errorf("cannot start the new program: %w", err)
	}
	sockets, err := u.sockets()
	defer closeAll(sockets) // the new program has its own
	if err != nil {
		return nil, err
	}
	c, read, write, err := pipes()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	defer write.Close()
	defer context.AfterFunc(ctx, c.interrupt)()
	text, files, err := u.message(sockets, []uintptr{0, 1, 2, read.Fd(), write.Fd()})
	if err == nil {
		_, err = c.to.Write(text) // it may block: a user with very many pipes gets small ones, see pipe(7)
	}
	if err == nil {
		c.process, err = startProcess(program, environment("3 4"), files)
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	return c, nil
}

// pipes makes the two pipes between the programs. read and write are the ends of the new one.
func pipes() (c *child, read, write *os.File, err error) {
	read, to, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	from, write, err := os.Pipe()
	if err != nil {
		_ = read.Close()
		_ = to.Close()
		return nil, nil, nil, err
	}
	return &child{to: to, from: from, lines: bufio.NewReader(from)}, read, write, nil
}

// message returns the message to the new program, and its descriptors: those of the sockets come behind the first ones. In that
// list a descriptor's index is its number in the new program. As an os.File a socket would have a finalizer, and its method Fd
// would make the socket block, in both processes.
func (u *Upgrade) message(sockets []*service.Sockets, files []uintptr) (text []byte, all []uintptr, err error) {
	l := &message{PID: os.Getpid()}
	if l.States, err = u.states(); err != nil {
		return nil, nil, err
	}
	for _, x := range sockets {
		there := *x
		there.FDs = nil
		for _, fd := range x.FDs {
			there.FDs = append(there.FDs, len(files))
			files = append(files, uintptr(fd))
		}
		l.Sockets = append(l.Sockets, &there)
	}
	if text, err = json.Marshal(l); err == nil && len(text) >= pipe {
		err = fmt.Errorf("the names of the sockets and the states of the services take %d bytes; at most %d are possible", len(text), pipe)
	}
	return append(text, '\n'), files, err
}

// pipe is how many bytes fit into a pipe that nobody reads, at least.
const pipe = 16 << 10

// startProcess starts a program with the arguments of this one. A thread that belongs to a scheduler would pass on its CPU, so
// the goroutine must not be bound to one.
func startProcess(program string, env []string, files []uintptr) (*os.Process, error) {
	pid, _, err := syscall.StartProcess(program, os.Args, &syscall.ProcAttr{Env: env, Files: files})
	if err != nil {
		return nil, err
	}
	return os.FindProcess(pid)
}

// executable returns the path of a program; "" is this one. If this one was started by a path, the new program has to be there:
// the file of this process may have been moved away.
func executable(name string) (string, error) {
	path, err := exec.LookPath(cmp.Or(name, os.Args[0]))
	if err != nil && name == "" && !strings.ContainsRune(os.Args[0], os.PathSeparator) {
		if own, unknown := os.Executable(); unknown == nil {
			return own, nil
		}
	}
	return path, err
}

// ours are the variables that are for one process alone.
var ours = []string{variable, listenPID, listenFDs, listenNames, "WATCHDOG_PID"}

// environment is that of the new program.
func environment(descriptors string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ours, name)
	})
	return append(env, variable+"="+descriptors)
}

func (u *Upgrade) states() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, v := range u.Services {
		if k, ok := v.(Keeper); ok {
			state, err := k.SaveState()
			if err != nil {
				return nil, err
			}
			all[k.StateName()] = state
		}
	}
	return all, nil
}

// sockets returns duplicates, also with an error.
func (u *Upgrade) sockets() (all []*service.Sockets, err error) {
	for _, v := range u.Services {
		if l, ok := v.(Listener); ok {
			x, err := l.Sockets()
			if err != nil {
				return all, err
			}
			if x != nil {
				all = append(all, x)
			}
		}
	}
	return all, nil
}

func closeAll(sockets []*service.Sockets) {
	for _, x := range sockets {
		x.Close()
	}
}

// handshake has the new program serve, unless this one is ending by then.
func (c *child) handshake(ending func() bool) error {
	if err := c.expect(ready); err != nil {
		return err
	}
	if ending() {
		return errEnding
	}
	if _, err := fmt.Fprintln(c.to, accept); err != nil {
		return ended(err)
	}
	return c.expect(serving)
}

// ended returns errEnded for the error of a pipe that the new program has closed.
func ended(err error) error {
	if err == io.EOF || errors.Is(err, syscall.EPIPE) {
		return errEnded
	}
	return err
}

// expect reads a word.
func (c *child) expect(word string) error {
	line, err := c.lines.ReadString('\n')
	line = strings.TrimSuffix(line, "\n")
	reason, refused := strings.CutPrefix(line, no)
	switch {
	case refused:
		return errors.New(reason)
	case err != nil:
		return ended(err)
	case line != word:
		return fmt.Errorf("it says %q in place of %q", line, word)
	}
	return nil
}

var errEnded = errors.New("it has ended")

// interrupt ends what waits for the new program.
func (c *child) interrupt() {
	past := time.Unix(1, 0)
	_ = c.to.SetDeadline(past)
	_ = c.from.SetDeadline(past)
}

// refuse ends the new program, because of err. It returns err, with what became of the program if that is the reason.
func (c *child) refuse(err error) error {
	_ = c.to.SetDeadline(time.Time{})
	_, _ = fmt.Fprintln(c.to, no+err.Error()) // it is not to take over
	_ = c.process.Kill()
	state, waitErr := c.process.Wait()
	c.close()
	if err == errEnded && waitErr == nil {
		return fmt.Errorf("it has ended: %v", state)
	}
	return err
}

func (c *child) close() {
	_ = c.to.Close()
	_ = c.from.Close()
}
