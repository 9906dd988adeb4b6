// Command mochi is a broker on github.com/mochi-mqtt/server/v2 with its defaults, which lets everyone in.
package main

import (
	"flag"
	"io"
	"log"
	"log/slog"
	"runtime"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:1883", "the address to listen on")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS; 0: the runtime's default")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	s := mqtt.New(&mqtt.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	err := s.AddHook(&auth.AllowHook{}, nil)
	if err == nil {
		err = s.AddListener(listeners.NewTCP(listeners.Config{ID: "tcp", Address: *addr}))
	}
	if err == nil {
		err = s.Serve()
	}
	if err != nil {
		log.Fatal(err)
	}
	select {}
}
