// Command checksum prints the SHA-256 of files, as sha256sum does, and reports its progress.
//
//	go run ./examples/checksum go.mod /usr/bin/*
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/daimon-go/daimon/examples/checksum/checksum"
	"github.com/daimon-go/daimon/examples/internal/tool"
	"github.com/daimon-go/daimon/internal/cli"
)

func main() {
	var every time.Duration
	cli.DurationVar(&every, "every", 100*time.Millisecond, "the `duration` between two reports of the progress")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: checksum [-every duration] file...")
		flag.PrintDefaults()
	}
	cli.Parse("checksum", func() error {
		switch {
		case every <= 0:
			return fmt.Errorf("-every must be above 0: %v", every)
		case flag.NArg() == 0:
			return errors.New("missing file")
		}
		return nil
	})
	work := checksum.Work{Out: os.Stdout, Progress: os.Stderr}
	tool.Run("checksum", work.Setup(every, flag.Args()...))
}
