//go:build !unix

package main

import "os"

// signals are the signals that the flags may choose: none here.
var signals map[string]os.Signal
