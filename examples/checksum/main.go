// Command checksum prints the SHA-256 of files, as sha256sum does, and how far it is.
//
//	go run ./examples/checksum go.mod /usr/bin/*
package main

import (
	"flag"
	"os"
	"time"

	"github.com/daimon-go/daimon/examples/checksum/checksum"
	"github.com/daimon-go/daimon/examples/internal/cli"
)

func main() {
	every := flag.Duration("every", 100*time.Millisecond, "how often to say how far it is")
	flag.Parse()
	work := checksum.Work{Out: os.Stdout, Progress: os.Stderr}
	cli.Tool("checksum", work.Setup(*every, flag.Args()...))
	if work.Failed() > 0 { // each has been reported
		os.Exit(1)
	}
}
