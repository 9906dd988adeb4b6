// Command nbio is an echo server on nbio, with -reactors pollers.
package main

import (
	"flag"
	"log"
	"runtime"

	"github.com/lesismal/nbio"
	"github.com/lesismal/nbio/logging"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "pollers, and GOMAXPROCS; 0: as nbio chooses")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	logging.SetLevel(logging.LevelError)
	engine := nbio.NewEngine(nbio.Config{Network: "tcp", Addrs: []string{*addr}, NPoller: *reactors})
	engine.OnData(func(c *nbio.Conn, data []byte) {
		if _, err := c.Write(data); err != nil {
			_ = c.Close()
		}
	})
	if err := engine.Start(); err != nil {
		log.Fatal(err)
	}
	select {}
}
