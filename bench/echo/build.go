package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are the paths of what is run.
type Programs struct{ Subject, Epoll, Plain, Load string }

// build compiles into the directory to. A subject that is given is not built.
func build(to, subject string) (p Programs, err error) {
	bench, err := moduleDir()
	if err != nil {
		return p, err
	}
	for _, c := range []struct {
		program  *string
		dir      string
		compiler []string
		source   string
	}{
		{&p.Epoll, bench, []string{"cc", "-O2", "-pthread"}, "echo/c/epoll.c"},
		{&p.Load, bench, []string{"cc", "-O2"}, "echo/c/load.c"},
		{&p.Plain, bench, []string{"go", "build"}, "./echo/plain"},
		{&p.Subject, filepath.Dir(bench), []string{"go", "build"}, "./examples/echo"}, // by the library's own go.mod
	} {
		if c.program == &p.Subject && subject != "" {
			p.Subject = subject
			continue
		}
		*c.program = filepath.Join(to, strings.TrimSuffix(filepath.Base(c.source), ".c"))
		if err := compile(c.dir, append(c.compiler, "-o", *c.program, c.source)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// moduleDir is the directory of bench/, from wherever inside it the harness is run.
func moduleDir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("run this inside bench/: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// compile shows what the compiler says only if it fails.
func compile(dir string, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
