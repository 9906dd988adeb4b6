// Command nginx runs nginx as it is measured: it writes the configuration, gives up the rights of root if it
// has them, and becomes nginx.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/cpu"
)

func main() {
	var c config
	flag.StringVar(&c.Addr, "addr", "127.0.0.1:7007", "the address to listen on")
	flag.IntVar(&c.Reactors, "reactors", 1, "worker_processes, each on a CPU of its own if there are so many")
	flag.StringVar(&c.Prefix, "prefix", "", "the `directory` for what nginx writes; it is made")
	flag.StringVar(&c.Certificate, "tls-cert", "", "the `file` of a certificate; without one there is no TLS")
	flag.StringVar(&c.Key, "tls-key", "", "the `file` of its key")
	flag.BoolVar(&c.HTTP2, "http2", false, "serve HTTP/2; without TLS nothing else")
	flag.StringVar(&c.Origin, "origin", "", "proxy to the server at this `address`, instead of answering")
	program := flag.String("program", "nginx", "the `path` of nginx")
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix("nginx: ")
	log.Fatal(c.run(*program)) // it returns with an error only
}

// config is what the template takes.
type config struct {
	Addr        string
	Reactors    int
	Prefix      string
	CPUs        []int // one for each worker; none: not pinned
	Connections uint64
	Certificate string // a file; "": no TLS
	Key         string
	HTTP2       bool
	Origin      string // "": it answers itself
}

//go:embed nginx.conf
var text string

func (c config) run(program string) error {
	runtime.LockOSThread() // what prctl sets belongs to the thread, and so does an execve
	program, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	if err := errors.Join(c.prepare(), beNobody(c.Prefix)); err != nil {
		return err
	}
	path := filepath.Join(c.Prefix, "nginx.conf")
	if err := os.WriteFile(path, []byte(c.text()), 0o644); err != nil {
		return err
	}
	// SIGTERM, since of SIGKILL the workers would hear nothing. It is set here, as it does not outlast a
	// change of the user: prctl(2), PR_SET_PDEATHSIG.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(program, []string{"nginx", "-e", "stderr", "-p", c.Prefix, "-c", path}, os.Environ())
}

// prepare finds out what the configuration takes, and makes the directory.
func (c *config) prepare() error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	files.Cur = files.Max
	c.Connections = min(files.Max, 1<<15) // each costs nginx some 400 bytes, used or not
	if c.Origin != "" {
		c.Connections = min(files.Max, 1<<16) // two for a client
	}
	all, err := cpu.Allowed()
	if c.Reactors <= len(all) {
		c.CPUs = all[:c.Reactors]
	}
	return errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &files), os.MkdirAll(c.Prefix, 0o755))
}

// beNobody gives up the rights of root. The user nobody must be able to read the prefix.
func beNobody(prefix string) error {
	const nobody = 65534
	if os.Getuid() != 0 {
		return nil
	}
	return errors.Join(os.Chown(prefix, nobody, nobody), unix.Setgroups(nil), unix.Setgid(nobody), unix.Setuid(nobody))
}

// text is the configuration.
func (c config) text() string {
	var out strings.Builder
	t := template.Must(template.New("").Funcs(template.FuncMap{"mask": mask}).Parse(text))
	if err := t.Execute(&out, c); err != nil {
		panic("nginx.conf does not fit its data: " + err.Error())
	}
	return out.String()
}

// mask is a CPU as worker_cpu_affinity takes it: a binary number.
func mask(cpu int) string { return "1" + strings.Repeat("0", cpu) }
