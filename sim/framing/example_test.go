package framing_test

import (
	"fmt"
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/examples/echo/echo"
	websocketecho "github.com/daimon-go/daimon/examples/websocket-echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/sim/framing"
)

// world runs a client of a server whose connections have this handler.
func world(handler func(*listener.Conn) act.Action, client sim.Script) {
	w := sim.New(sim.Options{Seed: 1, Faults: sim.Faults{}.With(20_000, "short read", "short write")})
	server := &service.Listener{Address: "10.0.0.1:80", Handler: handler}
	if _, err := w.Server("server", act.Config{}, server.Setup); err != nil {
		fmt.Println(err)
	}
	w.Client("10.0.0.1:80", client)
	if err := w.Run(); err != nil {
		fmt.Println(err)
	}
}

func ExampleLines() {
	world(echo.Echo, func(c *sim.Client) error {
		lines := &framing.Lines{Conn: c}
		if err := lines.Write("PING"); err != nil {
			return err
		}
		answer, err := lines.Read()
		fmt.Println(answer)
		return err
	})
	// Output: PING
}

// The server reads two bytes of length and the message. A library that wants a net.Conn may do the same in a coroutine.
func ExampleLengths() {
	serve := coro.Serve(func(c *coro.Conn) error {
		question := make([]byte, 2+4)
		if _, err := io.ReadFull(c, question); err != nil {
			return err
		}
		_, err := c.Write(append(question, 0, 1, '.'))
		return err
	})
	world(serve, func(c *sim.Client) error {
		messages := &framing.Lengths{Conn: c, Size: 2}
		if err := messages.Write([]byte("ping")); err != nil {
			return err
		}
		for {
			p, err := messages.Read()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", p)
		}
	})
	// Output:
	// ping
	// .
}

func ExampleWebSocket() {
	web := &httpd.Server{Handler: websocketecho.Site(websocket.Options{})}
	world(web.Serve, func(c *sim.Client) error {
		socket := &framing.WebSocket{Conn: c}
		if err := socket.Open("/ws"); err != nil {
			return err
		}
		if err := socket.Write(framing.Text, []byte("hello")); err != nil {
			return err
		}
		_, p, err := socket.Read()
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", p)
		if err := socket.Close(1000, "enough"); err != nil {
			return err
		}
		_, _, err = socket.Read()
		fmt.Println(err)
		return nil
	})
	// Output:
	// hello
	// framing: closed with code 1000
}
