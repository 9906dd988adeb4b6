// Command netpoll is an echo server on netpoll, with -reactors pollers.
package main

import (
	"context"
	"flag"
	"log"
	"runtime"

	"github.com/cloudwego/netpoll"
)

// echo runs while there is something to read.
func echo(_ context.Context, c netpoll.Connection) error {
	in, err := c.Reader().Next(c.Reader().Len())
	if err != nil {
		return err
	}
	if _, err := c.Writer().WriteBinary(in); err != nil {
		return err
	}
	if err := c.Writer().Flush(); err != nil {
		return err
	}
	return c.Reader().Release()
}

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "pollers, and GOMAXPROCS; 0: as netpoll chooses")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	if err := netpoll.Configure(netpoll.Config{PollerNum: *reactors}); err != nil {
		log.Fatal(err)
	}
	l, err := netpoll.CreateListener("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	loop, err := netpoll.NewEventLoop(echo)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(loop.Serve(l))
}
