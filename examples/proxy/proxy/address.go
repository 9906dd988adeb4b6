package proxy

import (
	"errors"
	"net"
	"strings"
)

// CheckAddress returns an error if address can never be connected to. It must be "host:port", or "unix:" and a
// path. The error does not repeat the address.
func CheckAddress(address string) error {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return errors.New("missing path")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return withoutAddress(err)
	}
	if host == "" {
		return errors.New("missing host in address")
	}
	n, err := net.LookupPort("tcp", port)
	if err == nil && n == 0 {
		return errors.New("port 0 cannot be connected to")
	}
	return withoutAddress(err)
}

// withoutAddress returns err without the address that package net puts into it.
func withoutAddress(err error) error {
	var bad *net.AddrError
	if errors.As(err, &bad) {
		return errors.New(bad.Err)
	}
	return err
}
