//go:build unix

package pgserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// patience is how long a program may take to start or to end. More is a hang.
const patience = 2 * time.Minute

// program is a server that can be started several times, with a folder of its own.
type program struct {
	dir   string
	port  int
	as    *syscall.Credential // nil: as this process
	guard *exec.Cmd
	pids  io.WriteCloser // to the guard: the process to kill, 0 for none

	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
}

// guarding is what the guard runs. A stopped parent starts no further children.
const guarding = `pid=0
while read -r next; do pid=$next; done
if [ "$pid" -gt 0 ]; then
	kill -STOP "$pid"
	kill -KILL $(cat "/proc/$pid/task/$pid/children") "$pid"
fi
rm -rf "$1" || { sleep 1; rm -rf "$1"; }`

func newProgram() (*program, error) {
	p := &program{}
	var err error
	if p.dir, err = os.MkdirTemp("", "daimon-pg-"); err != nil {
		return nil, err
	}
	p.guard = exec.Command("sh", "-c", guarding, "guard", p.dir)
	p.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // away from the signals of a terminal
	if p.pids, err = p.guard.StdinPipe(); err == nil {
		err = p.guard.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	if err := p.prepare(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// chooseUser chooses the user of the programs, since they refuse to run as root.
func (p *program) chooseUser() error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers on Unix
	gid, _ := strconv.Atoi(u.Gid)
	p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

// prepare chooses the user and the port.
func (p *program) prepare() error {
	err := p.chooseUser()
	if err == nil && p.as != nil {
		err = os.Chown(p.dir, int(p.as.Uid), int(p.as.Gid))
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.port = l.Addr().(*net.TCPAddr).Port
	return l.Close()
}

// command returns a command that runs a program as the user of the server.
func (p *program) command(name string, args ...string) (*exec.Cmd, error) {
	path, err := tier.Find(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as, Setsid: true}
	return cmd, nil
}

// run runs a command until its end, and returns its output.
func (p *program) run(name string, args ...string) (string, error) {
	cmd, err := p.command(name, args...)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return strings.TrimSpace(string(out)), nil
}

// write writes a file into the folder.
func (p *program) write(name, text string) error {
	path := filepath.Join(p.dir, name)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil && p.as != nil {
		err = os.Chown(path, int(p.as.Uid), int(p.as.Gid))
	}
	return err
}

// start starts the server, and waits until ready reports true.
func (p *program) start(ready func() bool, name string, args ...string) error {
	cmd, err := p.command(name, args...)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Fprintln(p.pids, cmd.Process.Pid)
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // an end that is a failure is in the log
		fmt.Fprintln(p.pids, 0)
		close(ended)
	}()
	for deadline := time.Now().Add(patience); !ready(); time.Sleep(5 * time.Millisecond) {
		if !p.Running() || time.Now().After(deadline) {
			said, _ := os.ReadFile(p.Log())
			return fmt.Errorf("%s does not start: %s", name, said[max(0, len(said)-2000):])
		}
	}
	return nil
}

// Log returns the path of the server's log.
func (p *program) Log() string { return filepath.Join(p.dir, "log") }

// Running reports whether the server runs.
func (p *program) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// processes returns the processes of the server, the parent of the others first.
func (p *program) processes() []int {
	if !p.Running() {
		return nil
	}
	pid := p.cmd.Process.Pid
	pids := []int{pid}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // it may have ended
	for _, child := range strings.Fields(string(children)) {
		n, _ := strconv.Atoi(child)
		pids = append(pids, n)
	}
	return pids
}

// CPU returns the processor time of the server so far, with that of its processes that have ended. It begins anew with
// each start.
func (p *program) CPU() (all time.Duration) {
	const tick = time.Second / 100 // USER_HZ, of proc_pid_stat(5)
	for i, pid := range p.processes() {
		fields := stat(pid)
		if len(fields) < 15 {
			continue // it has ended
		}
		last := 13 // stime
		if i == 0 {
			last = 15 // and the children of it that have ended
		}
		for _, field := range fields[11:last] {
			n, _ := strconv.ParseInt(field, 10, 64)
			all += time.Duration(n) * tick
		}
	}
	return all
}

// stat returns the fields of proc_pid_stat(5) from the third on, the state; none if there is no such process.
func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// Pause stops all processes of the server with SIGSTOP: connections stay open, and nothing answers. The parent comes first,
// so that it starts no more children.
func (p *program) Pause() {
	for i := 0; i < len(p.processes()); i++ {
		pid := p.processes()[i]
		_ = syscall.Kill(pid, syscall.SIGSTOP) // unless it has ended
		await(pid, "T", "Z")
	}
}

// await waits until a process is in one of these states, or has ended.
func await(pid int, states ...string) {
	for fields := stat(pid); len(fields) > 0 && !slices.Contains(states, fields[0]); fields = stat(pid) {
		time.Sleep(time.Millisecond)
	}
}

// Continue ends a Pause.
func (p *program) Continue() { p.signal(syscall.SIGCONT) }

// Kill ends all processes of the server at once, as a loss of power does, but for what the operating system has not
// written yet.
func (p *program) Kill() {
	if !p.Running() {
		return
	}
	p.Pause()
	pids := p.processes()
	p.signal(syscall.SIGKILL)
	for _, pid := range pids[min(1, len(pids)):] {
		await(pid, "Z")
	}
	<-p.ended // a process is a zombie when its first thread is, and another one may have its sockets open yet
}

func (p *program) signal(sig syscall.Signal) {
	for _, pid := range p.processes() {
		_ = syscall.Kill(pid, sig) // unless it has ended
	}
}

// stop asks the server to end, and waits until it has.
func (p *program) stop(sig syscall.Signal) error {
	if !p.Running() {
		return nil
	}
	p.Continue()
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s does not end", p.cmd.Path)
	}
}

// Close kills the server and removes its folder. It does nothing to a server that another process has started.
func (p *program) Close() error {
	if p.guard == nil {
		return nil
	}
	p.Kill()
	return errors.Join(p.pids.Close(), p.guard.Wait())
}
