//go:build !unix

package main

// database starts nothing: no test that needs PostgreSQL runs on this system.
func database() (end func()) { return func() {} }
