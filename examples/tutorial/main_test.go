package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

func TestEachVisitHasANumber(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		web := &httpd.Server{Handler: routes().Serve}
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: web.Serve}
		if _, err := w.Server("desk", act.Config{Schedulers: 2}, tcp.Setup); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for range 10 {
			w.Client("10.0.0.1:80", func(c *sim.Client) error {
				answer, err := visit(c)
				if err != nil || answer == "" { // the connection has broken
					return err
				}
				if seen[answer] {
					return fmt.Errorf("two clients got %q", answer)
				}
				seen[answer] = true
				return nil
			})
		}
	})
}

func visit(c *sim.Client) (string, error) {
	if _, err := fmt.Fprint(c, "POST /visits/Ada HTTP/1.1\r\nHost: desk\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	return body, err
}
