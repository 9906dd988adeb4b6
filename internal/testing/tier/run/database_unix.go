//go:build unix

package main

import (
	"os"
	"strings"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
)

// database starts a PostgreSQL, which the packages of the run share. The function that it returns stops it.
func database() (end func()) {
	server, err := pgserver.Start(pgserver.ForTests)
	if err != nil {
		stop(err.Error())
	}
	name, value, _ := strings.Cut(server.Env(), "=")
	os.Setenv(name, value)
	return func() { server.Close() }
}
