package main

import (
	"fmt"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

// system is a server, and a way to replace it.
type system struct {
	name, how string
	// start starts it. replace returns when the new one serves and the old one has been told to end.
	start func(h *host) (replace func() error, err error)
}

var systems = []system{
	{"daimon", "SIGUSR2", daimon},
	{"daimon-restart", "SIGTERM and a start", restarted},
	{"nginx", "SIGHUP: reload", reloaded},
	{"nginx-upgrade", "SIGUSR2, SIGWINCH, SIGQUIT", upgraded},
	{"haproxy", "SIGUSR2: reload", func(h *host) (func() error, error) { return haproxy(h, false) }},
	{"haproxy-patient", "the same, with option idle-close-on-response", func(h *host) (func() error, error) { return haproxy(h, true) }},
	{"net/http", "SO_REUSEPORT, then Shutdown", nethttp},
}

func names() (all []string) {
	for _, s := range systems {
		all = append(all, s.name)
	}
	return all
}

// goServer builds a program with the flags -addr and -reactors. start runs it and returns when it listens.
func (h *host) goServer(build func(dir string) (string, error), dir string) (start func() (pid int, err error), err error) {
	program, err := build(dir)
	return func() (pid int, err error) {
		err = h.saysAgain("listening on "+h.addr, func() error {
			pid, err = h.run(program, "-addr", h.addr, "-reactors", strconv.Itoa(h.Reactors))
			return err
		})
		return pid, err
	}, err
}

var replacedBy = regexp.MustCompile(`replaced\s+\{"by process": (\d+)\}`)

// daimon upgrades examples/graceful.
func daimon(h *host) (replace func() error, err error) {
	start, err := h.goServer(h.builder.Daimon, "examples/graceful")
	if err != nil {
		return nil, err
	}
	pid, err := start()
	return func() error {
		err := h.saysAgain("\treplaced\t", func() error { return unix.Kill(pid, unix.SIGUSR2) })
		if err != nil {
			return err
		}
		all := replacedBy.FindAllStringSubmatch(h.said(), -1)
		if len(all) == 0 {
			return fmt.Errorf("nobody says by whom process %d was replaced", pid)
		}
		pid, err = strconv.Atoi(all[len(all)-1][1])
		return err
	}, err
}

// restarted ends examples/graceful, and starts it again when it has ended.
func restarted(h *host) (replace func() error, err error) {
	start, err := h.goServer(h.builder.Daimon, "examples/graceful")
	if err != nil {
		return nil, err
	}
	pid, err := start()
	return func() error {
		if err := unix.Kill(pid, unix.SIGTERM); err != nil {
			return err
		}
		if err := h.ends(pid); err != nil {
			return err
		}
		pid, err = start()
		return err
	}, err
}

// nethttp starts a new process that listens on the same port, and then ends the old one.
func nethttp(h *host) (replace func() error, err error) {
	start, err := h.goServer(h.builder.Go, "replace/nethttp")
	if err != nil {
		return nil, err
	}
	pid, err := start()
	return func() error {
		next, err := start()
		if err != nil {
			return err
		}
		old := pid
		pid = next
		return unix.Kill(old, unix.SIGTERM)
	}, err
}
