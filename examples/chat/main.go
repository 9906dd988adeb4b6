// Command chat is a chat with rooms, on a page and on terminals. On a terminal the first line is the member's name. Then
// /join ROOM goes to another room, /who lists the members of the room, /leave leaves, and any other line is said to the
// room.
//
//	go run .
//	chromium http://127.0.0.1:7080/
//	nc 127.0.0.1 7010
//
// Several processes with one database of PostgreSQL have the same rooms. Each page connects to the next process when its own is gone,
// and gets what it has missed:
//
//	db=postgres://user@host/database
//	go run . -database $db -peers 127.0.0.1:7081 &
//	go run . -database $db -peers 127.0.0.1:7080 -addr 127.0.0.1:7011 -web 127.0.0.1:7081
package main

import (
	"crypto/tls"
	"flag"
	"strings"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	rooms := New()
	web := flag.String("web", "127.0.0.1:7080", "the `address` of the page; empty: none")
	flag.StringVar(&rooms.database, "database", "", "the `URL` of a database of PostgreSQL: all processes that have it have the same rooms")
	flag.Func("peers", "further `addresses` of the page, host:1,host:2, where it connects when this one is gone", func(list string) error {
		rooms.peers = strings.Split(list, ",")
		return nil
	})
	server := program.Server{Addr: "127.0.0.1:7010", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}},
	}}
	server.Parse()
	services := []program.Service{server.Listen(server.Addr, rooms.Member)}
	if *web != "" {
		site := &httpd.Server{Handler: rooms.Site()}
		services = append(services, server.Listen(*web, site.Serve))
	}
	server.Run(append(services, rooms)...)
}
