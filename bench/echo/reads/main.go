// Command reads is examples/echo-coro with a Read and a Write for each message instead of one io.Copy. It measures the cost
// of a coroutine that runs for each message.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "the number of schedulers")
	flag.Parse()
	v := &service.Listener{Address: *addr, Handler: coro.Serve(echo)}
	soon := shutdown.Policy{Time: time.Second, Drop: true}
	if err := act.Run(context.Background(), act.Config{Schedulers: *reactors}, monitor.Signals(soon), v.Setup); err != nil {
		log.Print("reads: ", err)
	}
}

func echo(c *coro.Conn) error {
	buffer := make([]byte, 4<<10)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return err
		}
		if _, err := c.Write(buffer[:n]); err != nil {
			return err
		}
	}
}
