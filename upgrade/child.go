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

	"github.com/daimon-go/daimon/internal/handover"
)

// patience is how long a new program may take until it is ready, by default.
const patience = time.Minute

// The words between the two programs, each a line.
const (
	ready   = "ready"   // the new one to the old one: all services are set up
	no      = "no: "    // with the reason: either of them to the other
	accept  = "go"      // the old one to the new one, with the states: it may accept
	serving = "serving" // the new one to the old one: it does
)

// message is the first line from the old program to the new one, in JSON.
type message struct {
	PID     int                 // of the old program
	Sockets []*handover.Sockets // FDs are the numbers that the descriptors have in the new program
}

// variable names the two descriptors by which the programs talk: the new one reads from the first and writes to the second.
const variable = "DAIMON_UPGRADE"

// child is the new program, as the old one sees it.
type child struct {
	process *os.Process
	to      *os.File
	from    *os.File
	lines   *bufio.Reader // of from
	sending bool          // the states are on their way, so it would take a word for a part of them
}

// replace starts the new program, and returns its number when it serves.
func (u *Upgrade) replace() (pid int, err error) {
	switch {
	case u.group == nil:
		return 0, errors.New("the program is not set up")
	case u.ending():
		return 0, errEnding
	case os.Getpid() == 1:
		return 0, errors.New("this is process 1, and its container would end with it; start another container")
	}
	within := cmp.Or(u.Timeout, patience)
	ctx, cancel := context.WithTimeoutCause(u.living, within, fmt.Errorf("it was not ready in %v", within))
	defer cancel()
	pid, err = u.tryReplace(ctx)
	switch {
	case err == nil:
		return pid, nil
	case errors.Is(err, errEnding) || u.living.Err() != nil: // which has interrupted it
		return 0, errEnding
	}
	return 0, fmt.Errorf("%w; process %d goes on", err, os.Getpid())
}

func (u *Upgrade) tryReplace(ctx context.Context) (pid int, err error) {
	c, err := u.start(ctx)
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, c.interrupt)()
	if err := u.handshake(ctx, c); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = cause
		}
		return 0, fmt.Errorf("the new program, process %d: %w", c.process.Pid, c.refuse(err))
	}
	c.close()
	go c.reap(u.log)
	return c.process.Pid, nil
}

// reap waits until the new program has ended. Otherwise it would stay a zombie until this one has ended, which may take long.
func (c *child) reap(log *zap.Logger) {
	if state, err := c.process.Wait(); err == nil {
		log.Info("the program that has replaced this one has ended", zap.Int("process", state.Pid()), zap.Stringer("state", state))
	}
}

// start starts the new program. Before that it writes the message, so that the new program can take over even if this process is
// killed in the next moment.
func (u *Upgrade) start(ctx context.Context) (*child, error) {
	program, err := exec.LookPath(cmp.Or(u.Program, os.Args[0]))
	if err != nil && u.Program == "" && !strings.ContainsRune(os.Args[0], os.PathSeparator) {
		program, err = os.Executable() // as with exec -a, or ExecStart=@ of systemd
	}
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
	var pid int
	if err == nil { // not on the thread of a scheduler: the process inherits the CPUs of the thread
		pid, _, err = syscall.StartProcess(program, os.Args, &syscall.ProcAttr{Env: environment(), Files: files})
	}
	if err == nil {
		c.process, err = os.FindProcess(pid)
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

// message returns the message to the new program, and the descriptors for it: first files, then the sockets. A
// descriptor's index in that list is its number in the new program. Descriptors are numbers here, and not of type
// os.File: an os.File has a finalizer that closes the socket, and its method Fd makes the socket block, in both
// processes.
func (u *Upgrade) message(sockets []*handover.Sockets, files []uintptr) (text []byte, all []uintptr, err error) {
	m := &message{PID: os.Getpid()}
	for _, x := range sockets {
		there := *x
		there.FDs = nil
		for _, fd := range x.FDs {
			there.FDs = append(there.FDs, len(files))
			files = append(files, uintptr(fd))
		}
		m.Sockets = append(m.Sockets, &there)
	}
	if text, err = json.Marshal(m); err == nil && len(text) >= pipeSize {
		err = fmt.Errorf("the names of the sockets take %d bytes; at most %d are possible", len(text), pipeSize)
	}
	return append(text, '\n'), files, err
}

// pipeSize is how many bytes fit into a pipe that nobody reads, at least.
const pipeSize = 16 << 10

// ours are the variables that are for one process alone.
var ours = []string{variable, listenPID, listenFDs, listenNames, "WATCHDOG_PID"}

// environment returns the environment of the new program.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ours, name)
	})
	return append(env, variable+"=3 4")
}

// sockets returns duplicates of the sockets, even with an error.
func (u *Upgrade) sockets() (all []*handover.Sockets, err error) {
	for _, l := range handover.Listeners(u.Services) {
		x, err := l.Sockets()
		if err != nil {
			return all, err
		}
		if x != nil {
			all = append(all, x)
		}
	}
	return all, nil
}

func closeAll(sockets []*handover.Sockets) {
	for _, x := range sockets {
		x.Close()
	}
}

// handshake waits until the new program is ready, and lets it serve, with the states. If this program is ending by
// then, it returns errEnding.
func (u *Upgrade) handshake(ctx context.Context, c *child) error {
	if err := c.expect(ready); err != nil {
		return err
	}
	if u.ending() {
		return errEnding
	}
	if err := u.save(ctx); err != nil {
		return err
	}
	if err := c.send(u.states); err != nil {
		return err
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

// interrupt ends calls that read from the new program or write to it.
func (c *child) interrupt() {
	past := time.Unix(1, 0)
	_ = c.to.SetDeadline(past)
	_ = c.from.SetDeadline(past)
}

// refuse ends the new program because of err, and returns err. If the program has ended by itself, the error says how.
func (c *child) refuse(err error) error {
	if !c.sending {
		_ = c.to.SetDeadline(time.Time{})
		_, _ = fmt.Fprintln(c.to, no+err.Error()) // it is not to take over
	}
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
