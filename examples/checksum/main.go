// Command checksum prints the SHA-256 of files, as sha256sum does, and how far it is.
//
//	go run ./examples/checksum go.mod /usr/bin/*
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/daimon-go/daimon/examples/checksum/checksum"
	"github.com/daimon-go/daimon/examples/internal/cli"
)

func main() {
	var every time.Duration
	flags := flag.NewFlagSet("checksum", flag.ExitOnError)
	cli.Duration(flags, &every, "every", 100*time.Millisecond, "the `duration` between two reports of how far it is")
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: checksum [-every duration] file...")
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:]) // exits if there is an error
	if flags.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "checksum: missing file")
		flags.Usage()
		os.Exit(2)
	}
	work := checksum.Work{Out: os.Stdout, Progress: os.Stderr}
	cli.Tool("checksum", work.Setup(every, flags.Args()...))
	if work.Failed() > 0 { // each has been reported
		os.Exit(1)
	}
}
