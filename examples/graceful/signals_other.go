//go:build !unix

package main

import "os"

// signals are those that the flags may choose: none here.
var signals map[string]os.Signal
