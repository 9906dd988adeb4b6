// Package cli parses command lines, for package program and for the examples that are not servers. A wrong one ends the
// program with one sentence.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse parses the command line with the flags of [flag.CommandLine], and calls check to look at the result. An error ends
// the program with status 2, and -h with the list of flags and status 0.
func Parse(name string, check func() error) {
	fs := flag.CommandLine
	fs.Init(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // instead of the whole usage, Exit prints one sentence
	err := fs.Parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(os.Stderr)
		fs.Usage()
		os.Exit(0)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		Exit(name, err, 2)
	}
}

// NoArguments returns an error if there are arguments after the flags.
func NoArguments() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	return nil
}

// Exit prints err, as the error of the named program, and ends it.
func Exit(name string, err error, status int) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(status)
}

// Duration is a duration as the value of a flag, 0 or longer. Its errors say what is wrong with a text, and package flag puts the flag
// and the text before them.
type Duration time.Duration

// String returns the value as a time.Duration does.
func (d *Duration) String() string { return time.Duration(*d).String() }

// Set parses text.
func (d *Duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	switch _, unit := time.ParseDuration(text + "s"); {
	case err != nil && unit == nil:
		return errors.New("it needs a unit, as in " + text + "s")
	case err != nil:
		return errors.New("it is not a duration, such as 300ms, 5s or 1m30s")
	case v < 0:
		return errors.New("it must not be negative")
	}
	*d = Duration(v)
	return nil
}

// DurationVar defines a flag as [flag.DurationVar] does.
func DurationVar(p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flag.Var((*Duration)(p), name, usage)
}

// Size is a number of bytes as the value of a flag.
type Size int

// String returns the value in the largest unit that divides it.
func (s *Size) String() string {
	n, unit := int(*s), 0
	for n != 0 && n%1024 == 0 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	return strconv.Itoa(n) + units[unit]
}

// Set parses text.
func (s *Size) Set(text string) error {
	for unit, name := range slices.Backward(units) {
		if digits, ok := strings.CutSuffix(text, name); ok {
			n, err := strconv.ParseInt(digits, 10, strconv.IntSize)
			if err != nil || n > math.MaxInt>>(10*unit) || n < math.MinInt>>(10*unit) {
				return errors.New("it is not a size, such as 4096, 300KiB, 64MiB or 2GiB")
			}
			*s = Size(n << (10 * unit))
			return nil
		}
	}
	panic("not reached: every text ends in the unit of bytes")
}

var units = []string{"", "KiB", "MiB", "GiB"}
