// Command plain is the usual echo server of datagrams: package net, and a goroutine that receives and sends one after the other.
package main

import (
	"flag"
	"log"
	"net"
	"runtime"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address of the socket")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS; 0: the runtime's default")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	c, err := net.ListenPacket("udp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	socket, in := c.(*net.UDPConn), make([]byte, 64<<10)
	for {
		n, from, err := socket.ReadFromUDPAddrPort(in)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := socket.WriteToUDPAddrPort(in[:n], from); err != nil {
			log.Print(err)
		}
	}
}
