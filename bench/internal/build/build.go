// Package build compiles what is measured, and what measures.
package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Builder compiles into the directory To, each source once. The zero value is of no use: see Into.
type Builder struct {
	To    string
	bench string            // the directory of this module
	done  map[string]string // the programs, by source
}

// Into is a builder for the directory to. The harness may be run anywhere inside bench/.
func Into(to string) (Builder, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return Builder{}, fmt.Errorf("run this inside bench/: %w", err)
	}
	return Builder{To: to, bench: filepath.Dir(strings.TrimSpace(string(out))), done: map[string]string{}}, nil
}

// Temporary is a builder for a new temporary directory, which Remove removes.
func Temporary() (Builder, error) {
	dir, err := os.MkdirTemp("", "daimon-bench-")
	if err != nil {
		return Builder{}, err
	}
	b, err := Into(dir)
	if err != nil {
		os.RemoveAll(dir)
	}
	return b, err
}

// Remove removes the directory of the builder.
func (b Builder) Remove() { os.RemoveAll(b.To) }

// C compiles a source file of bench/ and returns the program.
func (b Builder) C(source string) (program string, err error) {
	return b.compile(b.bench, source, "cc", "-O2", "-pthread")
}

// Go compiles a package of bench/ and returns the program.
func (b Builder) Go(dir string) (program string, err error) {
	return b.compile(b.bench, dir, "go", "build")
}

// Module compiles the main.go of a module below bench/ with a toolchain of its own, and returns the program.
func (b Builder) Module(dir, toolchain string) (program string, err error) {
	return b.compile(filepath.Join(b.bench, dir), "main.go", "env", "GOTOOLCHAIN="+toolchain, "go", "build")
}

// Daimon compiles a package of the library, or of an example, by its own go.mod, and returns the program.
func (b Builder) Daimon(dir string) (program string, err error) {
	return b.compile(filepath.Join(filepath.Dir(b.bench), dir), ".", "go", "build")
}

// compile shows the output of the compiler only if it fails.
func (b Builder) compile(in, source string, compiler ...string) (program string, err error) {
	key := filepath.Join(in, source)
	if program, ok := b.done[key]; ok {
		return program, nil
	}
	program = strings.TrimPrefix(strings.TrimSuffix(key, ".c"), filepath.Dir(b.bench)+"/")
	program = filepath.Join(b.To, strings.ReplaceAll(program, "/", "-")) // sources may end alike
	cmd := exec.Command(compiler[0], append(compiler[1:], "-o", program, "./"+source)...)
	cmd.Dir = in
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	b.done[key] = program
	return program, nil
}
