package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/server"
)

//go:embed nginx.conf
var nginxConf string

//go:embed haproxy.cfg
var haproxyCfg string

// configuration is what the templates take.
type configuration struct {
	Addr, Backend, Dir string
	Reactors           int
	Patient            bool
}

// configure writes the configuration of a proxy, and returns the path.
func (h *host) configure(name, text string, patient bool) (path string, err error) {
	path = filepath.Join(h.dir, name)
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return path, template.Must(template.New("").Parse(text)).Execute(file,
		configuration{h.addr, h.backend, h.dir, h.Reactors, patient})
}

// startNginx starts nginx. Only in the background it can be upgraded.
func startNginx(h *host) error {
	program, err := find("nginx", "nginx-light")
	if err != nil {
		return err
	}
	conf, err := h.configure("nginx.conf", nginxConf, false)
	if err != nil {
		return err
	}
	pid, err := h.run(program, "-p", h.dir, "-e", h.log.Name(), "-c", conf)
	if err != nil {
		return err
	}
	if err := h.ends(pid); err != nil { // the master goes on
		return err
	}
	return h.await("nginx's workers", func() bool { return len(h.nginxWorkers()) == h.Reactors })
}

// nginxMaster returns the process in nginx's pid file; 0 if there is none.
func (h *host) nginxMaster() int {
	text, _ := os.ReadFile(filepath.Join(h.dir, "nginx.pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func (h *host) nginxWorkers() []int {
	if master := h.nginxMaster(); master != 0 {
		return server.Children(master)
	}
	return nil
}

// reloaded has nginx start new workers.
func reloaded(h *host) (replace func() error, err error) {
	return func() error {
		old := h.nginxWorkers()
		if err := unix.Kill(h.nginxMaster(), unix.SIGHUP); err != nil {
			return err
		}
		err := h.await("new workers", func() bool { return without(h.nginxWorkers(), old) == h.Reactors })
		if err != nil {
			return err
		}
		return h.await("the end of old workers to begin", func() bool { return !slices.ContainsFunc(old, serves) })
	}, startNginx(h)
}

// serves reports whether a worker of nginx was not yet told to end. The master tells them 100 ms after it has started new ones.
func serves(worker int) bool {
	title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", worker))
	return err == nil && !strings.Contains(string(title), "is shutting down")
}

// upgraded has nginx start a new master, and ends the old one as nginx's manual says.
func upgraded(h *host) (replace func() error, err error) {
	return func() error {
		old := h.nginxMaster()
		if err := unix.Kill(old, unix.SIGUSR2); err != nil {
			return err
		}
		err := h.await("a new master with its workers", func() bool {
			return h.nginxMaster() != old && len(h.nginxWorkers()) == h.Reactors
		})
		if err != nil {
			return err
		}
		next := h.nginxMaster()
		if err := unix.Kill(old, unix.SIGWINCH); err != nil {
			return err
		}
		if err := h.await("the end of the old workers", func() bool { return without(server.Children(old), []int{next}) == 0 }); err != nil {
			return err
		}
		if err := unix.Kill(old, unix.SIGQUIT); err != nil {
			return err
		}
		return h.ends(old)
	}, startNginx(h)
}

// without counts the elements of all that are not in known.
func without(all, known []int) (n int) {
	for _, pid := range all {
		if !slices.Contains(known, pid) {
			n++
		}
	}
	return n
}

// haproxy has HAProxy's master start a new worker. The new one takes over the sockets, by the master.
func haproxy(h *host, patient bool) (replace func() error, err error) {
	program, err := find("haproxy", "haproxy")
	if err != nil {
		return nil, err
	}
	cfg, err := h.configure("haproxy.cfg", haproxyCfg, patient)
	if err != nil {
		return nil, err
	}
	master, err := h.run(program, "-W", "-f", cfg)
	if err != nil {
		return nil, err
	}
	const begun, done = "Reloading HAProxy", "Loading success"
	return func() error {
		old, reloads := server.Children(master), strings.Count(h.said(), begun)
		err := h.saysAgain(done, func() error {
			sent := time.Time{}
			return h.await(strconv.Quote(begun), func() bool { // a signal that comes too soon after the one before is lost
				if time.Since(sent) > time.Second {
					_ = unix.Kill(master, unix.SIGUSR2) // if it has ended, the wait fails
					sent = time.Now()
				}
				return strings.Count(h.said(), begun) > reloads
			})
		})
		if err == nil && without(server.Children(master), old) == 0 {
			err = fmt.Errorf("there is no new worker")
		}
		return err
	}, h.await(strconv.Quote(done), func() bool { return strings.Contains(h.said(), done) })
}
