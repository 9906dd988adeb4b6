// Command server is the measured server of bench/nethttp and bench/http2: one site on net/http or on Daimon.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/bench/nethttp/site"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	log.SetPrefix("server: ")
	stack := flag.String("stack", "std", "std: net/http; daimon: package nethttp; inline: the same with Inline; native: package httpd; grpc: grpc-go")
	root := flag.String("root", ".", "the `directory` of the files")
	origin := flag.String("origin", "", "the `URL` of the server behind /proxy/")
	profile := flag.String("profile", "", "write a CPU profile to this `file`")
	options := program.Server{Addr: "127.0.0.1:7007", Options: []program.Option{&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}}}}
	options.Config.Logger = zap.NewNop() // its lines would stand between the lines of the table
	options.Parse()
	to, err := url.Parse(*origin)
	check(err)
	handler := site.New(*root, to)
	if *profile != "" {
		file, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(file))
		defer pprof.StopCPUProfile()
	}
	switch *stack {
	case "std":
		check(std(&options, handler))
	case "daimon", "inline":
		adapter := &nethttp.Adapter{Handler: handler, Inline: *stack == "inline"}
		web := &httpd.Server{Handler: adapter.Serve}
		options.Run(options.Listen(options.Addr, web.Serve))
	case "native":
		web := &httpd.Server{Handler: native()}
		options.Run(options.Listen(options.Addr, web.Serve))
	case "grpc":
		l, err := net.Listen("tcp", options.Addr)
		check(err)
		runtime.GOMAXPROCS(options.Config.Schedulers)
		check(site.GRPC().Serve(l))
	default:
		log.Fatal("-stack is std, daimon, inline, native or grpc")
	}
}

// std serves on net/http, with the flags of a Server of package program. GOMAXPROCS is the number of schedulers.
func std(o *program.Server, h http.Handler) error {
	runtime.GOMAXPROCS(o.Config.Schedulers)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: o.Addr, Handler: h, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	context.AfterFunc(ctx, func() { _ = server.Close() })
	certificate, key := flag.Lookup("tls-cert").Value.String(), flag.Lookup("tls-key").Value.String()
	var err error
	if certificate == "" {
		err = server.ListenAndServe()
	} else {
		err = server.ListenAndServeTLS(certificate, key)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
