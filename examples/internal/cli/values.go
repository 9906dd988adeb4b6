package cli

import (
	"errors"
	"flag"
	"net"
	"strings"
	"time"
)

// Duration defines a flag as flag.Duration does, and says what is wrong with a value that it refuses.
func Duration(fs *flag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	fs.Var((*duration)(p), name, usage)
}

type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

// Set is for package flag, which names the flag and the value.
func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err == nil {
		*d = duration(v)
		return nil
	}
	if _, err := time.ParseDuration(text + "s"); err == nil {
		return errors.New("it needs a unit, as in " + text + "s")
	}
	return errors.New("it is no duration, such as 300ms, 5s or 1m30s")
}

// A Peer is a flag's value: whom to connect to, "host:port", or unix: and a path. Whether somebody is there
// shows when it is dialled.
type Peer string

func (p *Peer) String() string { return string(*p) }

// Set is for package flag, which names the flag and the value.
func (p *Peer) Set(text string) error {
	if err := dialable(text); err != nil {
		return err
	}
	*p = Peer(text)
	return nil
}

func dialable(address string) error {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return errors.New("missing path")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return unaddressed(err)
	}
	if host == "" {
		return errors.New("missing host in address")
	}
	n, err := net.LookupPort("tcp", port)
	if err == nil && n == 0 {
		return errors.New("port 0 cannot be connected to")
	}
	return unaddressed(err)
}

// unaddressed is err without the address, for a sentence that has named it: package net would again.
func unaddressed(err error) error {
	var bad *net.AddrError
	if errors.As(err, &bad) {
		return errors.New(bad.Err)
	}
	return err
}
