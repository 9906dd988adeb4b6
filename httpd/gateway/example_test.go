package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/gateway"
	"github.com/daimon-go/daimon/service"
)

// backend is a server that says its name and the path of the request.
func backend(name string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, name, r.URL.Path)
	}))
}

// get makes requests on one connection, and prints the answers.
func get(at string, paths ...string) {
	for _, path := range paths {
		answer, err := http.Get("http://" + at + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		content, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		fmt.Print(answer.StatusCode, " ", string(content))
	}
	http.DefaultClient.CloseIdleConnections()
}

func ExampleGateway() {
	one, two, images := backend("one"), backend("two"), backend("images")
	defer one.Close()
	defer two.Close()
	defer images.Close()

	table, err := gateway.NewTable(gateway.Config{
		Groups: []gateway.Group{
			{Name: "site", Backends: []gateway.Backend{
				{Address: one.Listener.Addr().String()}, {Address: two.Listener.Addr().String()},
			}},
			{Name: "images", Backends: []gateway.Backend{{Address: images.Listener.Addr().String()}}},
		},
		Routes: []gateway.Route{{Group: "site"}, {Path: "/images", Group: "images"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	g := &gateway.Gateway{}
	g.Swap(table)

	web := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: g.Serve}).Serve}
	ctx, end := context.WithCancel(context.Background())
	err = act.Run(ctx, act.Config{Schedulers: 1}, g.Setup, web.Setup, func(*act.Scheduler) error {
		go func() {
			defer end()
			get(web.Addr().String(), "/", "/", "/images/logo.png", "/")
		}()
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 200 one /
	// 200 two /
	// 200 images /images/logo.png
	// 200 one /
}

// Each mistake of a Config is named with its place, so that a program can show the line of its file.
func ExampleNewTable() {
	_, err := gateway.NewTable(gateway.Config{
		Groups: []gateway.Group{{Name: "site", Backends: []gateway.Backend{{Address: "127.0.0.1"}}}},
		Routes: []gateway.Route{{Group: "sites"}},
	})
	fmt.Println(err)
	var m *gateway.Mistake
	fmt.Println(errors.As(err, &m), m.Path)
	// Output:
	// groups[0].backends[0].address: neither "host:port" nor "unix:" and a path: "127.0.0.1"
	// routes[0].group: there is no group "sites"
	// true groups[0].backends[0].address
}
