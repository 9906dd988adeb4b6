package secure_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// A server that speaks TLS, and a client of crypto/tls.
func ExampleServer() {
	cert, err := secure.SelfSigned("localhost")
	if err != nil {
		fmt.Println(err)
		return
	}
	greet := func(c *listener.Conn) act.Action {
		state, _ := secure.State(c)
		fmt.Fprintf(c, "welcome to %s, over %s\n", state.ServerName, tls.VersionName(state.Version))
		return nil // the connection is closed
	}
	server := &service.Listener{
		Address: "127.0.0.1:0",
		Filters: []listener.Filter{secure.Server(&tls.Config{Certificates: []tls.Certificate{cert}}, nil)},
		Handler: greet,
	}
	ctx, cancel := context.WithCancel(context.Background())
	visit := func() {
		defer cancel()
		trusted := x509.NewCertPool()
		trusted.AddCert(cert.Leaf)
		c, err := tls.Dial("tcp", server.Addr().String(), &tls.Config{ServerName: "localhost", RootCAs: trusted})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = c.Close() }()
		said, _ := io.ReadAll(c)
		fmt.Printf("%s", said)
	}
	err = act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, func(s *act.Scheduler) error {
		go visit()
		return nil
	})
	fmt.Println(err)
	// Output:
	// welcome to localhost, over TLS 1.3
	// <nil>
}

// A task that connects to a server of crypto/tls, and reads until the server has closed.
func ExampleClient() {
	cert, err := secure.SelfSigned("localhost")
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		c, err := server.Accept()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Fprintln(c, "this is the right server")
		_ = c.Close()
	}()

	trusted := x509.NewCertPool()
	trusted.AddCert(cert.Leaf)
	connect := &listener.Connect{
		Address: server.Addr().String(),
		Filters: []listener.Filter{secure.Client(&tls.Config{ServerName: "localhost", RootCAs: trusted}, nil)},
	}
	var c *listener.Conn
	read := act.Func(func(t *act.Task) act.Directive {
		if c == nil {
			c = connect.Conn()
		}
		in, err := c.Peek(1)
		fmt.Printf("%s", in)
		c.Discard(len(in))
		if err == io.EOF {
			_ = c.Close()
		}
		return listener.Next(t, err)
	})
	err = act.Run(context.Background(), act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Spawn(act.Seq(connect, read))
		return nil
	})
	fmt.Println(err)
	// Output:
	// this is the right server
	// <nil>
}
