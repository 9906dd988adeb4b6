// Command nethttp is a server of net/http that can be replaced by another process of it: they listen on the same port, by
// SO_REUSEPORT. On SIGTERM it ends by Shutdown.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/replace/site"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "the address to listen on")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS; 0: the runtime's default")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := net.ListenConfig{Control: reusePort}
	l, err := config.Listen(ctx, "tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: site.Handler()}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	log.Printf("listening on %v", l.Addr())
	select {
	case err := <-served:
		log.Fatal(err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		log.Fatal(err)
	}
}

func reusePort(_, _ string, c syscall.RawConn) (err error) {
	controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	if controlErr != nil {
		return controlErr
	}
	return err
}
